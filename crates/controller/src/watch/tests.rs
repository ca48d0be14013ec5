//! Does a watch see everything, through whatever the server does?

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures::{Stream, StreamExt};
use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};

use super::*;

const ROLLOUT: Kind = Kind::new("argoproj.io", "v1alpha1", "Rollout", "rollouts");

/// What the server does with one request.
enum Reply {
    /// A status and a body, line by line.
    Answer(u16, Vec<Value>),
    /// An answer whose end never comes.
    Open(Vec<Value>),
    /// No answer.
    Refuse,
    /// Nothing at all.
    Hang,
}

/// A server that does so with one request after the other, and keeps their lines.
fn scripted(replies: Vec<Reply>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let replies = Arc::new(Mutex::new(VecDeque::from(replies)));
    let service = tower::service_fn(move |request: Request<Body>| {
        seen.lock().unwrap().push(request.uri().to_string());
        let reply = replies.lock().unwrap().pop_front().unwrap_or(Reply::Hang);
        async move {
            match reply {
                Reply::Hang => std::future::pending().await,
                Reply::Refuse => Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)),
                Reply::Answer(code, lines) => Ok(response(code, &lines, false)),
                Reply::Open(lines) => Ok(response(200, &lines, true)),
            }
        }
    });
    (Client::new(service, "default"), lines)
}

fn response(code: u16, lines: &[Value], open: bool) -> Response<axum::body::Body> {
    let lines: Vec<_> =
        lines.iter().map(|line| Ok::<_, std::io::Error>(format!("{line}\n"))).collect();
    let lines = stream::iter(lines);
    let body = if open {
        axum::body::Body::from_stream(lines.chain(stream::pending()))
    } else {
        axum::body::Body::from_stream(lines)
    };
    Response::builder().status(code).body(body).unwrap()
}

fn object(name: &str, version: u64) -> Value {
    let version = version.to_string();
    json!({ "metadata": { "name": name, "namespace": "shop", "resourceVersion": version } })
}

fn list(items: &[Value], more: Option<&str>) -> Reply {
    let metadata = json!({ "resourceVersion": "10", "continue": more.unwrap_or_default() });
    let list = json!({ "kind": "RolloutList", "apiVersion": "argoproj.io/v1alpha1",
        "metadata": metadata, "items": items });
    Reply::Answer(200, vec![list])
}

fn change(kind: &str, name: &str, version: u64) -> Value {
    json!({ "type": kind, "object": object(name, version) })
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message })
}

fn refusal(code: u16, reason: &str, message: &str) -> Reply {
    Reply::Answer(code, vec![status(code, reason, message)])
}

fn selection() -> Selection {
    Selection { kind: ROLLOUT, namespace: None, labels: None, metadata_alone: false }
}

/// What was seen, as one word and a name each.
async fn words(stream: impl Stream<Item = Result<Seen, Failed>>, count: usize) -> Vec<String> {
    let word = |seen: Result<Seen, Failed>| match seen {
        Ok(Seen::Init) => "init".to_owned(),
        Ok(Seen::InitApply(frame)) => format!("has {}", frame.meta.name),
        Ok(Seen::InitDone) => "done".to_owned(),
        Ok(Seen::Apply(frame)) => format!("apply {}", frame.meta.name),
        Ok(Seen::Delete(frame)) => format!("delete {}", frame.meta.name),
        Ok(Seen::Resumed) => "resumed".to_owned(),
        Err(failed) => failed.message,
    };
    stream.take(count).map(word).collect().await
}

#[tokio::test(start_paused = true)]
async fn a_list_of_two_pages_is_followed_by_changes() {
    let (client, lines) = scripted(vec![
        list(&[object("a", 1)], Some("more")),
        list(&[object("b", 2)], None),
        Reply::Open(vec![change("ADDED", "c", 11), change("DELETED", "a", 12)]),
    ]);
    let selection = Selection {
        namespace: Some("shop".into()),
        labels: Some("!argo-rollouts.argoproj.io/controller-instance-id".into()),
        ..selection()
    };
    let seen = words(watch(client, selection, &Outage::default()), 6).await;
    assert_eq!(seen, ["init", "has a", "has b", "done", "apply c", "delete a"]);
    let lines = lines.lock().unwrap();
    let path = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts?";
    assert!(lines.iter().all(|line| line.starts_with(path)), "{lines:?}");
    assert!(lines[0].contains("limit=100"), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("labelSelector=%21argo-rollouts")), "{lines:?}");
    assert!(lines[2].contains("watch=true") && lines[2].contains("resourceVersion=10"));
}

#[tokio::test(start_paused = true)]
async fn an_object_of_odd_shape_does_not_stop_the_others() {
    let mut odd = change("ADDED", "odd", 11);
    odd["object"]["metadata"]["labels"] = json!({ "a": 1 });
    odd["object"]["spec"] = json!("nothing");
    let (client, _) =
        scripted(vec![list(&[], None), Reply::Open(vec![odd, change("ADDED", "b", 12)])]);
    let seen = words(watch(client, selection(), &Outage::default()), 4).await;
    assert_eq!(seen, ["init", "done", "apply odd", "apply b"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_named_and_found_once_it_is_there() {
    let (client, _) = scripted(vec![
        Reply::Answer(404, vec![json!("404 page not found")]),
        list(&[object("a", 1)], None),
    ]);
    let seen = words(watch(client, selection(), &Outage::default()), 5).await;
    let message = "the cluster has no rollouts.argoproj.io: install the CRD \
                   (kubectl apply -f manifests/crds/)";
    assert_eq!(seen, ["init", message, "init", "has a", "done"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_named_with_verb_and_resource() {
    let said = r#"rollouts.argoproj.io is forbidden: User "gradus" cannot list resource"#;
    let (client, _) = scripted(vec![refusal(403, "Forbidden", said)]);
    let mut stream = Box::pin(watch(client, selection(), &Outage::default()).skip(1));
    let failed = stream.next().await.unwrap().unwrap_err();
    assert_eq!(failed.cause, FailedCause::Forbidden);
    let start = "no permission to list rollouts.argoproj.io in all namespaces: ";
    assert_eq!(failed.message, format!("{start}{said}"));
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_goes_on_where_it_was() {
    let (client, lines) = scripted(vec![
        list(&[], None),
        Reply::Answer(200, vec![change("ADDED", "a", 15)]),
        Reply::Refuse,
        Reply::Open(vec![change("ADDED", "b", 16)]),
    ]);
    let seen = words(watch(client, selection(), &Outage::default()), 5).await;
    assert_eq!(seen[..3], ["init", "done", "apply a"]);
    assert!(seen[3].starts_with("cannot reach the API server: "), "{}", seen[3]);
    assert_eq!(seen[4], "apply b");
    assert!(lines.lock().unwrap()[3].contains("resourceVersion=15"));
}

#[tokio::test(start_paused = true)]
async fn a_version_the_server_does_not_have_costs_a_new_list() {
    let cases = [
        ("too old, said at once", refusal(410, "Expired", "too old resource version")),
        ("too new for a restored store", refusal(504, "Timeout", "Too large resource version")),
        (
            "too old, said in the stream",
            Reply::Answer(
                200,
                vec![json!({ "type": "ERROR", "object": status(410, "Expired", "too old") })],
            ),
        ),
    ];
    for (what, reply) in cases {
        let (client, _) = scripted(vec![list(&[], None), reply, list(&[object("a", 1)], None)]);
        let watch = watch(client, selection(), &Outage::default());
        let seen = words(watch.filter(|seen| std::future::ready(seen.is_ok())), 5).await;
        assert_eq!(seen[2..], ["init", "has a", "done"], "{what}: {seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_hangs_is_begun_anew() {
    let (client, lines) = scripted(vec![Reply::Hang, list(&[object("a", 1)], None)]);
    let seen = words(watch(client, selection(), &Outage::default()), 5).await;
    let message = "cannot reach the API server: no answer within 60 s";
    assert_eq!(seen, ["init", message, "init", "has a", "done"]);
    assert_eq!(lines.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_for_a_minute_is_found_soon_after() {
    let start = tokio::time::Instant::now();
    let mut replies: Vec<_> = (0..16).map(|_| Reply::Refuse).collect();
    replies.push(list(&[], None));
    let (client, _) = scripted(replies);
    let seen = words(watch(client, selection(), &Outage::default()), 16 * 2 + 2).await;
    assert_eq!(seen.last().unwrap(), "done");
    let passed = start.elapsed().as_secs();
    assert!((55..65).contains(&passed), "sixteen tries take a minute, not {passed} s");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_does_not_become_a_flood() {
    let mut replies: Vec<_> = (0..1_000).map(|_| Reply::Answer(200, Vec::new())).collect();
    replies.insert(0, list(&[], None));
    let (client, lines) = scripted(replies);
    let minute = Duration::from_secs(60);
    let watching = words(watch(client, selection(), &Outage::default()), 3);
    assert!(tokio::time::timeout(minute, watching).await.is_err(), "there is nothing to see");
    let requests = lines.lock().unwrap().len();
    assert!((30..40).contains(&requests), "{requests} requests in a minute");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_goes_on_says_so_though_nothing_happens() {
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let (client, lines) = scripted(vec![
        list(&[], None),
        Reply::Refuse,
        Reply::Refuse,
        Reply::Open(Vec::new()),
        Reply::Hang,
    ]);
    let seen = words(watch(client, selection(), &Outage::default()), 5).await;
    drop(guard);
    assert_eq!(seen.last().unwrap(), "resumed", "{seen:?}");
    assert_eq!(lines.lock().unwrap().len(), 4, "and it costs no list");
    assert_eq!(log.0.lock().unwrap().last().unwrap(), "the API server answers again");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_after_it_began_has_not_gone_on() {
    let broken = || {
        let error = json!({ "type": "ERROR", "object": status(500, "InternalError", "no") });
        Reply::Answer(200, vec![error])
    };
    let (client, _) = scripted(vec![list(&[], None), broken(), broken(), broken()]);
    let seen = words(watch(client, selection(), &Outage::default()), 5).await;
    let message = "cannot watch rollouts.argoproj.io: the server answered 500: no";
    assert_eq!(seen, ["init", "done", message, message, message]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_start_hangs_is_begun_anew() {
    let (client, lines) =
        scripted(vec![list(&[], None), Reply::Hang, Reply::Open(vec![change("ADDED", "a", 11)])]);
    let start = tokio::time::Instant::now();
    let seen = words(watch(client, selection(), &Outage::default()), 4).await;
    let message = "cannot reach the API server: no answer within 15 s";
    assert_eq!(seen, ["init", "done", message, "apply a"]);
    assert!(start.elapsed().as_secs() < 17, "{:?}", start.elapsed());
    assert!(lines.lock().unwrap()[2].contains("resourceVersion=10"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_is_not_taken_for_a_server_that_is_away() {
    let (client, _) = scripted(vec![list(&[json!(1)], None)]);
    let mut stream = Box::pin(watch(client, selection(), &Outage::default()).skip(1));
    let failed = stream.next().await.unwrap().unwrap_err();
    let start = "cannot read an object of rollouts.argoproj.io: invalid type: integer `1`";
    assert!(failed.message.starts_with(start), "{}", failed.message);
}

#[tokio::test(start_paused = true)]
async fn lists_and_watches_are_counted() {
    let metrics = crate::telemetry::Metrics::new();
    let expired = refusal(410, "Expired", "too old resource version");
    let (client, _) = scripted(vec![list(&[], None), expired, Reply::Refuse]);
    let client = counted(client, &selection(), &metrics);
    words(watch(client, selection(), &Outage::default()), 4).await;
    let text = metrics.text(jiff::Timestamp::UNIX_EPOCH);
    for (verb, code) in [("List", "200"), ("Watch", "410"), ("List", "<error>")] {
        let labels = format!(r#"name="N/A",namespace="",status_code="{code}",verb="{verb}""#);
        assert!(text.contains(&labels), "{verb} {code}: {text}");
    }
}

/// Keeps log lines.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("gradus")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
                self.0 = format!("{value:?}");
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_logged_once_and_its_end_once() {
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let refused = || refusal(403, "Forbidden", "no");
    let (client, _) = scripted(vec![refused(), refused(), refused(), list(&[], None)]);
    words(watch(client, selection(), &Outage::default()), 8).await;
    drop(guard);
    assert_eq!(
        *log.0.lock().unwrap(),
        [
            "no permission to list rollouts.argoproj.io in all namespaces: no; trying again",
            "watching rollouts.argoproj.io again",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_logged_once_for_all_kinds() {
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let outage = Outage::default();
    let kinds = [ROLLOUT, Kind::new("apps", "v1", "ReplicaSet", "replicasets")];
    let watches = kinds.map(|kind| {
        let unauthorized = refusal(401, "Unauthorized", "Unauthorized");
        let (client, _) =
            scripted(vec![Reply::Refuse, Reply::Refuse, unauthorized, list(&[], None)]);
        words(watch(client, Selection { kind, ..selection() }, &outage), 8)
    });
    futures::future::join_all(watches).await;
    drop(guard);
    assert_eq!(
        *log.0.lock().unwrap(),
        [
            "cannot reach the API server: connection refused; trying again",
            "the API server does not accept our token; trying again",
            "the API server answers again",
        ]
    );
}

/// What a watch says in the log while it is shown so many things, and why it saw nothing.
async fn told(replies: Vec<Reply>, count: usize) -> (Vec<String>, Vec<FailedCause>) {
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let (client, _) = scripted(replies);
    let seen = watch(client, selection(), &Outage::default()).take(count);
    let causes = seen.filter_map(|seen| std::future::ready(seen.err().map(|failed| failed.cause)));
    let causes = causes.collect().await;
    drop(guard);
    let lines = log.0.lock().unwrap().clone();
    (lines, causes)
}

const AWAY: &str = "cannot reach the API server: connection refused; trying again";
const BACK: &str = "the API server answers again";

#[tokio::test(start_paused = true)]
async fn a_server_that_has_just_come_back_is_not_taken_at_its_word() {
    let (lines, causes) = told(
        vec![
            list(&[], None),
            Reply::Refuse,
            refusal(403, "Forbidden", "no"),
            Reply::Answer(404, vec![json!("404 page not found")]),
            refusal(429, "TooManyRequests", "storage is (re)initializing"),
            refusal(500, "InternalError", "not yet"),
            list(&[], None),
        ],
        12,
    )
    .await;
    assert_eq!(causes, [FailedCause::Away; 5]);
    assert_eq!(lines, [AWAY, BACK]);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_still_says_half_a_minute_later_is_believed() {
    let refused = (0..12).map(|_| refusal(403, "Forbidden", "no"));
    let (lines, causes) = told([Reply::Refuse].into_iter().chain(refused).collect(), 26).await;
    assert_eq!(causes.first(), Some(&FailedCause::Away));
    assert_eq!(causes.last(), Some(&FailedCause::Forbidden));
    let refused = "no permission to list rollouts.argoproj.io in all namespaces: no; trying again";
    assert_eq!(lines, [AWAY, BACK, refused]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_patience_has_it_once() {
    let busy = || refusal(429, "TooManyRequests", "storage is (re)initializing");
    let (lines, causes) = told(vec![busy(), list(&[], None)], 4).await;
    assert_eq!((lines, causes), (vec![], vec![FailedCause::Away]));
    let (lines, _) = told(vec![busy(), busy(), busy(), list(&[], None)], 8).await;
    let said = "cannot list rollouts.argoproj.io: the server answered 429: \
                storage is (re)initializing; trying again";
    assert_eq!(lines, [said, "watching rollouts.argoproj.io again"]);
}

#[tokio::test(start_paused = true)]
async fn of_a_server_that_takes_no_writes_one_tells_for_all() {
    let outage = Outage::default();
    assert!(outage.refuses_writes());
    assert!(!outage.refuses_writes(), "another object, the same server");
    outage.takes_writes();
    assert!(outage.refuses_writes());
    outage.takes_writes();
    outage.note("rollouts".into(), outage::Trouble::Unreachable, "away");
    assert!(!outage.refuses_writes(), "a watch has told");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_grew_old_is_nothing_to_talk_about() {
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let expired = refusal(410, "Expired", "too old resource version");
    let (client, _) = scripted(vec![list(&[], None), expired, list(&[object("a", 1)], None)]);
    let seen = words(watch(client, selection(), &Outage::default()), 5).await;
    drop(guard);
    assert_eq!(seen, ["init", "done", "init", "has a", "done"]);
    assert_eq!(*log.0.lock().unwrap(), Vec::<String>::new());
}
