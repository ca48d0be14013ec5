//! Lists come in pages, and each has its own time.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Bytes;
use futures::stream::{self, StreamExt};

use super::*;

fn listing() -> Listing {
    let kind = Kind::new("", "v1", "Pod", "pods");
    Listing { kind, namespace: "shop".into(), labels: "hash=a1".to_owned() }
}

fn page(version: &str, next: &str) -> (u16, Value) {
    (200, json!({ "metadata": { "continue": next }, "items": [object(version)] }))
}

fn versions(found: Result<Vec<gradus_engine::frame::Frame>, WriteError>) -> Vec<u64> {
    found.unwrap().iter().map(|frame| frame.meta.version).collect()
}

#[tokio::test]
async fn all_pages_of_a_list_are_read() {
    let (cluster, asked) = scripted(vec![page("1", "a+b"), page("2", "c"), page("3", "")]);
    assert_eq!(versions(cluster.list(&listing()).await), [1, 2, 3]);
    let lines: Vec<String> = asked.lock().unwrap().iter().map(|one| one.line.clone()).collect();
    let first = "GET /api/v1/namespaces/shop/pods?labelSelector=hash%3Da1&limit=500";
    let expected =
        [first.to_owned(), format!("{first}&continue=a%2Bb"), format!("{first}&continue=c")];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_list_whose_next_page_is_forgotten_begins_anew() {
    let forgotten = || (410, json!({ "reason": "Expired", "message": "too old" }));
    let answers = vec![page("1", "a"), forgotten(), page("1", "b"), page("2", "")];
    let (cluster, _) = scripted(answers);
    assert_eq!(versions(cluster.list(&listing()).await), [1, 2], "nothing twice");
    let answers = (0..3).flat_map(|_| [page("1", "a"), forgotten()]).collect();
    let (cluster, _) = scripted(answers);
    assert_eq!(cluster.list(&listing()).await.unwrap_err().class, Class::Gone, "not for ever");
}

/// A server that sends its answer a byte at a time, with a pause before each.
fn slow(pause: Duration, answer: &'static str) -> KubeCluster {
    let service = tower::service_fn(move |_: Request<Body>| async move {
        let bytes = stream::iter(answer.bytes()).then(move |byte| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, Infallible>(Bytes::from(vec![byte]))
        });
        Ok::<_, Infallible>(Response::new(axum::body::Body::from_stream(bytes)))
    });
    KubeCluster::new(kube::Client::new(service, "default"), Metrics::new(), GRADUS.reporter)
}

#[tokio::test(start_paused = true)]
async fn a_long_list_has_time_as_long_as_something_comes() {
    let cases = [
        ("a minute for the whole", Duration::from_secs(3), true),
        ("nothing for too long", Duration::from_secs(5), false),
    ];
    for (what, pause, is_read) in cases {
        let found = slow(pause, r#"{"items":[]}"#).list(&listing()).await;
        assert_eq!(found.is_ok(), is_read, "{what}: {found:?}");
    }
}
