//! Each fault does to the server, the controller and the answer what its name says.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures::{StreamExt, stream};
use http_body_util::{StreamBody, combinators::BoxBody};
use hyper::body::{Bytes, Frame};

use super::*;

/// An API server that counts what reaches it and answers `{}`; a watch never ends.
struct Server {
    url: String,
    reached: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn server() -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let reached = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reached);
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let count = Arc::clone(&count);
            let service = service_fn(move |request: Request<Incoming>| {
                count.fetch_add(1, Ordering::SeqCst);
                async move { Ok::<_, Infallible>(Response::new(reply(&request))) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Server { url, reached, task }
}

/// The token comes back, so that a test can see it arrived.
fn reply(request: &Request<Incoming>) -> BoxBody<Bytes, Infallible> {
    let token = request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes().to_vec());
    let first = stream::iter([Ok(Frame::data(token.unwrap_or_default().into()))]);
    if request.uri().query() == Some("watch=true") {
        return BoxBody::new(StreamBody::new(first.chain(stream::pending())));
    }
    BoxBody::new(StreamBody::new(first))
}

fn of_all(number: usize, fault: Fault) -> Planned {
    Planned { write: Nth::OfAll(number), fault }
}

/// The proxy, the controller's client and how often the controller was killed.
async fn between(server: &Server, plan: &[Planned]) -> (Proxy, Client, Arc<AtomicUsize>) {
    let killed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&killed);
    let kill = move || {
        count.fetch_add(1, Ordering::SeqCst);
    };
    let proxy = Proxy::start(config(&server.url), plan.to_vec(), kill).await.unwrap();
    let mut config = config(&proxy.url());
    config.auth_info.token = Some(String::from("secret").into());
    let client = Client::try_from(config).unwrap();
    (proxy, client, killed)
}

fn config(url: &str) -> Config {
    let mut config = Config::new(url.parse().unwrap());
    config.default_retry = false;
    config
}

/// The status and body of the answer, or `None` if the connection broke.
async fn send(client: &Client, method: Method, path: &str) -> Option<(u16, String)> {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let answer = client.send(request).await.ok()?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.ok()?.to_bytes();
    Some((status, String::from_utf8(body.to_vec()).unwrap()))
}

#[tokio::test]
async fn each_fault_strikes_its_write_and_no_other() {
    let cases = [
        // fault, answer to the second write, writes the server saw, kills
        (Fault::KillBefore, None, 2, 1),
        (Fault::KillAfter, None, 3, 1),
        (Fault::LoseAnswer, None, 3, 0),
        (Fault::Unreachable, None, 2, 0),
        (Fault::Answer(409), Some(409), 2, 0),
        (Fault::Answer(429), Some(429), 2, 0),
        (Fault::Answer(500), Some(500), 2, 0),
    ];
    for (fault, expected, reached, kills) in cases {
        let server = server().await;
        let (proxy, client, killed) = between(&server, &[of_all(2, fault)]).await;
        assert!(send(&client, Method::POST, "/one").await.is_some(), "{fault:?}");
        assert_eq!(proxy.missed(), [of_all(2, fault)], "{fault:?}");
        let second = send(&client, Method::PATCH, "/two").await.map(|(status, _)| status);
        assert_eq!(second, expected, "{fault:?}");
        assert_eq!(proxy.missed(), [], "{fault:?}");
        assert!(send(&client, Method::DELETE, "/three").await.is_some(), "{fault:?}");
        assert_eq!(server.reached.load(Ordering::SeqCst), reached, "{fault:?}");
        assert_eq!(killed.load(Ordering::SeqCst), kills, "{fault:?}");
        assert_eq!(proxy.writes().len(), 3, "{fault:?}");
    }
}

/// Method, path and answer of each write; the connection breaks where there is none.
const SEVERAL: [(&str, &str, Option<u16>); 6] = [
    ("POST", "/apis/apps/v1/namespaces/x/replicasets", Some(200)),
    ("POST", "/apis/events.k8s.io/v1/namespaces/x/events", Some(200)),
    ("PATCH", "/apis/argoproj.io/v1alpha1/namespaces/x/rollouts/web", Some(409)),
    ("POST", "/api/v1/namespaces/x/events", Some(500)),
    ("PATCH", "/apis/argoproj.io/v1alpha1/namespaces/x/rollouts/web", None),
    ("PATCH", "/apis/argoproj.io/v1alpha1/namespaces/x/rollouts/web", Some(200)),
];

#[tokio::test]
async fn several_faults_strike_in_one_run_and_scenarios_do_not_count_events() {
    let but_events = |number, fault| Planned { write: Nth::ButEvents(number), fault };
    let plan = [
        but_events(2, Fault::Answer(409)),
        of_all(4, Fault::Answer(500)),
        but_events(3, Fault::LoseAnswer),
        of_all(5, Fault::Answer(429)), // The same write; the first of two counts.
        but_events(9, Fault::KillBefore),
    ];
    let server = server().await;
    let (proxy, client, killed) = between(&server, &plan).await;
    for (method, path, expected) in SEVERAL {
        let method = method.parse().unwrap();
        let answer = send(&client, method, path).await.map(|(status, _)| status);
        assert_eq!(answer, expected, "{path}");
    }
    assert_eq!(proxy.missed(), [but_events(9, Fault::KillBefore)]);
    assert_eq!(killed.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn reads_are_not_counted_and_the_token_is_passed_on() {
    let server = server().await;
    let (proxy, client, _) = between(&server, &[of_all(1, Fault::KillBefore)]).await;
    let answer = send(&client, Method::GET, "/pods").await;
    assert_eq!(answer, Some((200, "Bearer secret".to_owned())));
    assert_eq!(proxy.writes(), []);
}

#[tokio::test]
async fn a_watch_streams_through_while_it_lasts() {
    let server = server().await;
    let (_proxy, client, _) = between(&server, &[]).await;
    let request = Request::get("/pods?watch=true").body(Body::empty()).unwrap();
    let mut body = client.send(request).await.unwrap().into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first.as_ref(), b"Bearer secret");
}
