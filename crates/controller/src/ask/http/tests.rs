//! What metric requests may do, against servers on loopback.

use std::sync::Arc;

use gradus_engine::ask::Class;
use gradus_engine::ask::secret::{SecretPlace, SecretRef, SecretText};
use gradus_engine::decision::ObjectRef;
use gradus_engine::frame::Frame;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::address::Network;
use super::super::secrets::Secrets;
use super::*;
use crate::cluster::{Cluster, Listing, PostedEvent, Write, WriteError, Written};

/// A cluster with one Secret.
struct OneSecret;

impl Cluster for OneSecret {
    async fn write(&self, _: Write) -> Result<Written, WriteError> {
        unreachable!("nobody writes here")
    }

    async fn read(&self, _: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        unreachable!("Secrets are read whole")
    }

    async fn read_whole(&self, target: &ObjectRef) -> Result<Option<Value>, WriteError> {
        let failed = |class| {
            let message = "in the server's words".to_owned();
            Err(WriteError { class, message, retry_after_secs: None })
        };
        match &*target.name {
            "locked" => return failed(Class::Denied),
            "away" => return failed(Class::Unreachable),
            _ => {}
        }
        let secret = json!({ "data": { "token": STANDARD.encode("s3cr3t") } });
        Ok((&*target.namespace == "shop" && &*target.name == "api").then_some(secret))
    }

    async fn permit(&self) -> Result<(), WriteError> {
        Ok(())
    }

    async fn list(&self, _: &Listing) -> Result<Vec<Frame>, WriteError> {
        unreachable!("nobody lists here")
    }

    async fn post(&self, _: &PostedEvent) -> Result<(), WriteError> {
        unreachable!("nobody posts here")
    }
}

/// A server that answers each connection so, and what it was sent.
async fn server(answers: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut seen = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = vec![0; 4096];
            let count = stream.read(&mut text).await.unwrap();
            seen.push(String::from_utf8_lossy(&text[..count]).to_lowercase());
            // Whoever has read enough closes the connection.
            let _closed = stream.write_all(answer.as_bytes()).await;
        }
        seen
    });
    (address, serving)
}

fn answer(status: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{more}\r\n{body}"
    )
}

fn loopback() -> Network {
    "127.0.0.0/8".parse().unwrap()
}

fn client(allow: &[Network]) -> HttpClient {
    let policy = AddressPolicy { allow: allow.to_vec(), ..AddressPolicy::default() };
    HttpClient::new(policy).unwrap()
}

async fn send(client: &HttpClient, request: &HttpRequest) -> HttpOutcome {
    let own: Arc<str> = "shop".into();
    let secrets = Secrets { cluster: &OneSecret, own: &own, home: None };
    let values = secrets.read(request).await.unwrap()?;
    client.send(&values, request).await
}

fn get(url: String) -> HttpRequest {
    HttpRequest::get(url, SignedDuration::from_secs(5))
}

fn token() -> SecretText {
    SecretText::secret(SecretRef::new(SecretPlace::Own, "api", "token"))
}

#[tokio::test]
async fn a_secret_is_sent_and_comes_back_in_no_answer() {
    let (url, serving) =
        server(vec![answer("200 OK", "x-you: s3cr3t\r\n", "you sent s3cr3t")]).await;
    let request = get(url).header("x-token", SecretText::plain("key ").then(token()));
    let reply = send(&client(&[loopback()]), &request).await.unwrap();
    assert_eq!((reply.status, &*reply.body), (200, "you sent *****"));
    assert_eq!(reply.headers["x-you"], "*****");
    let asked = serving.await.unwrap().remove(0);
    assert!(
        asked.contains("x-token: key s3cr3t") && asked.contains("user-agent: gradus/"),
        "{asked}"
    );
    let (url, serving) = server(vec![answer("200 OK", "", "1")]).await;
    let named = get(url).header("user-agent", SecretText::plain("curl"));
    send(&client(&[loopback()]), &named).await.unwrap();
    let asked = serving.await.unwrap().remove(0);
    assert!(asked.contains("user-agent: curl") && !asked.contains("gradus"), "{asked}");
}

#[tokio::test]
async fn the_user_of_a_url_is_sent_as_a_header_unless_there_is_one() {
    let sent = |more: Option<Auth>| async move {
        let (url, serving) = server(vec![answer("200 OK", "", "you sent bWU6czNjcjN0")]).await;
        let host = url.strip_prefix("http://").unwrap();
        let url = SecretText::plain("http://me:").then(token()).then(format!("@{host}/"));
        let request = HttpRequest::get(url, SignedDuration::from_secs(5));
        let request = HttpRequest { auth: more.unwrap_or_default(), ..request };
        let reply = send(&client(&[loopback()]), &request).await.unwrap();
        assert_eq!(&*reply.body, "you sent *****");
        serving.await.unwrap().remove(0)
    };
    let alone = sent(None).await;
    assert!(alone.contains("authorization: basic bwu6cznjcjn0\r\n"), "{alone}");
    let beside = sent(Some(Auth::Bearer("other".into()))).await;
    assert!(beside.contains("authorization: bearer other\r\n"), "{beside}");
    assert!(!beside.contains("me:"), "{beside}");
}

#[tokio::test]
async fn a_missing_secret_is_named_and_nothing_is_sent() {
    let other = SecretText::secret(SecretRef::new(SecretPlace::Own, "none", "token"));
    let request = get("http://127.0.0.1:1/".to_owned()).header("x-token", other);
    let error = send(&client(&[loopback()]), &request).await.unwrap_err();
    assert_eq!(error.to_string(), "secrets \"none\" not found");
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_now_is_no_answer_and_one_that_may_not_be_read_is() {
    let own: Arc<str> = "shop".into();
    let secrets = Secrets { cluster: &OneSecret, own: &own, home: None };
    let of = |name: &str| {
        let secret = SecretText::secret(SecretRef::new(SecretPlace::Own, name, "token"));
        get("http://127.0.0.1:1/".to_owned()).header("x-token", secret)
    };
    let (away, locked) = (of("away"), of("locked"));
    assert_eq!(secrets.read(&away).await.err().map(|error| error.class), Some(Class::Unreachable));
    let refused = secrets.read(&locked).await.unwrap().err().unwrap();
    assert_eq!(refused.to_string(), "Secret shop/locked: in the server's words");
}

#[tokio::test]
async fn addresses_of_this_host_are_refused_unless_they_are_allowed() {
    let urls = [
        "http://127.0.0.1:9/",
        "http://localhost:9/",
        "http://[::1]:9/",
        "http://169.254.169.254/",
    ];
    for url in urls {
        let error = send(&client(&[]), &get(url.to_owned())).await.unwrap_err();
        assert!(matches!(error, HttpError::Forbidden(_)), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_redirect_is_checked_and_takes_no_secret_to_another_host() {
    let forbidden = answer("302 Found", "location: http://169.254.169.254/\r\n", "");
    let (url, _serving) = server(vec![forbidden]).await;
    let client = client(&[loopback()]);
    let error = send(&client, &get(url)).await.unwrap_err();
    assert!(matches!(error, HttpError::Forbidden(_)), "{error}");

    let (other, at_other) = server(vec![answer("200 OK", "", "there")]).await;
    let elsewhere = answer("302 Found", &format!("location: {other}/there\r\n"), "");
    let (url, at_first) = server(vec![elsewhere]).await;
    let request = HttpRequest { auth: Auth::Bearer(token()), ..get(url) };
    let request = request.header("x-token", token()).header("x-plain", "1");
    assert_eq!(&*send(&client, &request).await.unwrap().body, "there");
    assert!(at_first.await.unwrap()[0].contains("authorization: bearer s3cr3t"));
    let seen = at_other.await.unwrap().remove(0);
    assert!(seen.contains("x-plain: 1") && !seen.contains("s3cr3t"), "{seen}");
}

#[tokio::test]
async fn an_answer_has_its_limits() {
    let body = "x".repeat(BODY_LIMIT + 1);
    let (url, _serving) = server(vec![answer("200 OK", "", &body)]).await;
    let client = client(&[loopback()]);
    assert_eq!(send(&client, &get(url)).await, Err(HttpError::TooLarge));
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let timeout = SignedDuration::from_millis(50);
    let url = format!("http://{}", silent.local_addr().unwrap());
    let late = HttpRequest { timeout, ..get(url) };
    assert_eq!(send(&client, &late).await, Err(HttpError::Timeout(timeout)));
}

#[tokio::test]
async fn a_token_is_fetched_with_credentials_in_a_header_and_then_in_the_form() {
    let refused = answer("401 Unauthorized", "", "{}");
    let granted = answer("200 OK", "", r#"{"access_token": "fresh"}"#);
    let (tokens, issued) = server(vec![refused, granted]).await;
    let (url, serving) = server(vec![answer("200 OK", "", "ok")]).await;
    let auth = Auth::OAuth2 {
        token_url: tokens.into(),
        client_id: "web".into(),
        client_secret: token(),
        scopes: vec!["a".into(), "b".into()],
    };
    let request = HttpRequest { auth, ..get(url) };
    assert_eq!(send(&client(&[loopback()]), &request).await.unwrap().status, 200);
    let issued = issued.await.unwrap();
    assert!(issued[0].contains("authorization: basic") && issued[0].contains("scope=a+b"));
    assert!(issued[1].contains("client_id=web&client_secret=s3cr3t"), "{}", issued[1]);
    assert!(serving.await.unwrap()[0].contains("authorization: bearer fresh"));
}

#[tokio::test]
async fn one_address_is_asked_by_so_many_at_once_and_no_more() {
    // What comes before the server makes its peers wait: nothing, or all but the body.
    for head in ["", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\n"] {
        assert_eq!(most_at_once(head).await, ADDRESS_LIMIT, "{head:?}");
    }
}

/// So many requests were open at once at a server that sends this first and the rest once as many are
/// open as may be.
async fn most_at_once(head: &'static str) -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    // Each answer waits until as many are open as may be.
    let full = Arc::new(tokio::sync::Barrier::new(ADDRESS_LIMIT));
    let shown = Arc::clone(&most);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (open, most, full) = (Arc::clone(&open), Arc::clone(&most), Arc::clone(&full));
            tokio::spawn(async move {
                let mut text = vec![0; 4096];
                assert!(stream.read(&mut text).await.unwrap() > 0);
                most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                stream.write_all(head.as_bytes()).await.unwrap();
                full.wait().await;
                open.fetch_sub(1, Ordering::SeqCst);
                let whole = answer("200 OK", "", "1");
                let rest = if head.is_empty() { whole.as_str() } else { "1" };
                stream.write_all(rest.as_bytes()).await.unwrap();
            });
        }
    });
    let client = client(&[loopback()]);
    let asking = (0..3 * ADDRESS_LIMIT).map(|_| async {
        let request = HttpRequest::get(address.as_str(), SignedDuration::from_secs(30));
        send(&client, &request).await.unwrap().status
    });
    let answers = futures::future::join_all(asking).await;
    assert!(answers.iter().all(|status| *status == 200), "{answers:?}");
    shown.load(Ordering::SeqCst)
}
