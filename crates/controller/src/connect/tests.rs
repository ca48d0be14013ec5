//! Does a client find its server, say who it is, and survive what goes wrong?

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use gradus_engine::ask::Class;
use gradus_engine::decision::{Kind, ObjectRef};

use super::*;
use crate::cluster::Cluster;
use crate::engines::GRADUS;
use crate::kube_cluster::KubeCluster;
use crate::telemetry::Metrics;

/// A folder of its own for a test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gradus-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn kubeconfig(server: &str, token_file: &Path) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u, namespace: shop}}}}]\n\
         users: [{{name: u, user: {{tokenFile: '{}'}}}}]\n",
        token_file.display()
    )
}

/// A server that knows one token, and the headers it saw last.
async fn serve(token: Arc<Mutex<String>>) -> (String, Arc<Mutex<HeaderMap>>) {
    let seen = Arc::new(Mutex::new(HeaderMap::new()));
    let last = Arc::clone(&seen);
    let answer = move |headers: HeaderMap| {
        let wanted = format!("Bearer {}", token.lock().unwrap());
        let known = headers.get("authorization").is_some_and(|given| *given == wanted);
        *last.lock().unwrap() = headers;
        std::future::ready(if known { StatusCode::NOT_FOUND } else { StatusCode::UNAUTHORIZED })
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (server, seen)
}

/// Connects as a controller that is given a kubeconfig.
async fn connect(path: &Path) -> Result<Connection, ConnectError> {
    ConnectionFlags::of_file(path).of_controller().await
}

fn rollout() -> ObjectRef {
    let kind = Kind::new("argoproj.io", "v1alpha1", "Rollout", "rollouts");
    ObjectRef::new(kind, &"shop".into(), &"web".into())
}

#[tokio::test]
async fn a_renewed_token_is_used_after_one_refusal() {
    let folder = Folder::new("renewed");
    let token = Arc::new(Mutex::new("first".to_owned()));
    let (server, seen) = serve(Arc::clone(&token)).await;
    let token_file = folder.write("token", "first\n");
    let config = folder.write("config", &kubeconfig(&server, &token_file));
    let connection = connect(&config).await.unwrap();
    assert_eq!(connection.namespace, "shop");
    let cluster = KubeCluster::new(connection.client.clone(), Metrics::new(), GRADUS.reporter);
    assert!(cluster.read(&rollout()).await.unwrap().is_none());
    let agent = concat!("gradus/", env!("CARGO_PKG_VERSION"));
    assert_eq!(seen.lock().unwrap()["user-agent"], agent);

    *token.lock().unwrap() = "second".to_owned();
    assert_eq!(cluster.read(&rollout()).await.unwrap_err().class, Class::Unreachable);
    folder.write("token", "second\n");
    assert!(cluster.read(&rollout()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_name_a_password_and_a_proxy_are_taken_from_flags() {
    let folder = Folder::new("basic");
    let (server, seen) = serve(Arc::default()).await;
    let nobody = kubeconfig(&server, Path::new("x")).replace("{tokenFile: 'x'}", "{}");
    let mut flags = ConnectionFlags::of_file(&folder.write("config", &nobody));
    flags.username = Some("ann".to_owned());
    flags.password = Some("secret".to_owned());
    let connection = flags.clone().of_controller().await.unwrap();
    knock(&connection.client).await.unwrap();
    assert_eq!(seen.lock().unwrap()["authorization"], "Basic YW5uOnNlY3JldA==");
    let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    flags.proxy_url = Some(address);
    let connection = flags.of_controller().await.unwrap();
    let asked = async {
        let (mut stream, _) = proxy.accept().await.unwrap();
        let mut line = [0; 8];
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut line).await.unwrap();
        line
    };
    let (line, knocked) = tokio::join!(asked, knock(&connection.client));
    assert!(line.starts_with(b"CONNECT ") && knocked.is_err());
}

#[tokio::test]
async fn the_server_tells_its_time() {
    let (server, _) = serve(Arc::default()).await;
    let connection = client(Config::new(server.parse().unwrap())).unwrap();
    let server = reach(&connection).await;
    assert!(server.time.is_some(), "even with a refusal");
    assert!(!server.is_ready, "it has not said so");
}

#[tokio::test]
async fn a_server_that_comes_later_is_found() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let connection = client(Config::new(format!("http://{address}").parse().unwrap())).unwrap();
    let reaching = reach(&connection);
    let starting = async {
        assert!(knock(&connection.client).await.is_err());
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let router = Router::new().route("/readyz", get(|| async { "ok" }));
        tokio::spawn(async move { axum::serve(listener, router).await });
    };
    let (server, ()) = tokio::join!(reaching, starting);
    assert!(server.time.is_some());
    assert!(!server.is_ready, "it was away just now");
    assert!(reach(&connection).await.is_ready);
}

#[tokio::test]
async fn a_missing_token_file_is_named_and_nothing_was_sent() {
    let folder = Folder::new("missing");
    let config = kubeconfig("http://127.0.0.1:1", &folder.0.join("nothing"));
    let config = folder.write("config", &config);
    let connection = connect(&config).await.unwrap();
    let cluster = KubeCluster::new(connection.client, Metrics::new(), GRADUS.reporter);
    let error = cluster.read(&rollout()).await.unwrap_err();
    assert_eq!(error.class, Class::Unreachable);
    assert!(error.message.contains("nothing: No such file"), "{error}");
}

#[tokio::test]
async fn a_bad_kubeconfig_is_refused_in_one_line() {
    let folder = Folder::new("bad");
    let cases = [
        ("no such file", folder.0.join("none")),
        ("no YAML", folder.write("yaml", "{{{")),
        ("no context", folder.write("empty", "apiVersion: v1\nkind: Config\n")),
    ];
    for (what, path) in cases {
        let error = connect(&path).await.err().unwrap();
        let line = one_line(&error);
        assert!(line.contains(path.to_str().unwrap()) && !line.contains('\n'), "{what}: {line}");
    }
}

#[tokio::test]
async fn files_that_are_not_there_are_passed_over_in_a_list() {
    let folder = Folder::new("list");
    let missing = folder.0.join("missing");
    let whole = kubeconfig("http://127.0.0.1:1", &folder.0.join("token"));
    let is_context = |line: &&str| line.starts_with("c") && line.contains("context");
    let (contexts, rest): (Vec<&str>, Vec<&str>) = whole.lines().partition(is_context);
    let contexts = folder.write("contexts", &contexts.join("\n"));
    let rest = folder.write("rest", &rest.join("\n"));
    let other = folder.write("other", &whole.replace("shop", "other"));
    let cases = [
        ("one is missing", vec![&missing, &rest, &contexts], Some("shop")),
        ("what comes first holds", vec![&rest, &contexts, &other], Some("shop")),
        ("the order of the rest plays no part", vec![&contexts, &missing, &rest], Some("shop")),
        ("all are missing", vec![&missing, &missing], None),
        ("nothing is named", vec![], None),
    ];
    for (what, paths, namespace) in cases {
        let file = merged(paths.into_iter().cloned()).ok();
        let found = match file {
            Some(file) => {
                let options = kube::config::KubeConfigOptions::default();
                Some(Config::from_custom_kubeconfig(file, &options).await.unwrap())
            }
            None => None,
        };
        let found = found.map(|config| config.default_namespace);
        assert_eq!(found.as_deref(), namespace, "{what}");
    }
    let broken = folder.write("broken", "{{{");
    assert!(merged([broken, other].into_iter()).is_err(), "a file that is there must be right");
}

#[test]
fn a_date_header_is_a_time() {
    let date = dated::http_date("Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(date, Some("1994-11-06T08:49:37Z".parse().unwrap()));
    assert_eq!(dated::http_date("tomorrow"), None);
}

#[test]
fn only_a_command_that_takes_long_is_told_of() {
    let (tell, told) = channel();
    let tell_quick = tell.clone();
    drop(unless_dropped(Duration::from_secs(60), move || tell_quick.send("quick").unwrap()));
    let slow = unless_dropped(Duration::ZERO, move || tell.send("slow").unwrap());
    assert_eq!(told.iter().collect::<Vec<_>>(), ["slow"], "and nobody else tells any more");
    drop(slow);
}
