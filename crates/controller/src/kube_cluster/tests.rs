//! Do requests and answers mean what they should?

use std::sync::{Arc, Mutex};

use gradus_engine::ask::Class;
use gradus_engine::decision::{Expect, Kind, ObjectRef, Op};
use gradus_engine::uid::Uid;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};

mod lists;

use super::{KubeCluster, answer};
use crate::cluster::{Cluster, Lane, Listing, PostedEvent, ResourcePart, Write, WriteError};
use crate::engines::GRADUS;
use crate::telemetry::Metrics;

const ROLLOUT: Kind = Kind::new("argoproj.io", "v1alpha1", "Rollout", "rollouts");
const REPLICA_SET: Kind = Kind::new("apps", "v1", "ReplicaSet", "replicasets");
const UID: &str = "3f2a1c5e-0001-4abc-8def-00112233445a";

fn target(kind: Kind) -> ObjectRef {
    ObjectRef::new(kind, &"shop".into(), &"web".into())
}

/// A request as a server would see it.
#[derive(Clone, Debug, PartialEq)]
struct SentRequest {
    line: String,
    content_type: String,
    body: Value,
}

/// A cluster that gives the answers one after the other and keeps the requests.
fn scripted(answers: Vec<(u16, Value)>) -> (KubeCluster, Arc<Mutex<Vec<SentRequest>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let answers = Arc::new(Mutex::new(answers.into_iter()));
    let seen = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, answers) = (Arc::clone(&seen), Arc::clone(&answers));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let content_type = head.headers.get("content-type").cloned();
            seen.lock().unwrap().push(SentRequest {
                line: format!("{} {}", head.method, head.uri),
                content_type: content_type.map_or(String::new(), |v| v.to_str().unwrap().into()),
                body: serde_json::from_slice(&body).unwrap_or_default(),
            });
            let (status, body) = answers.lock().unwrap().next().unwrap();
            let body = Body::from(body.to_string().into_bytes());
            Response::builder().status(status).body(body)
        }
    });
    let client = kube::Client::new(service, "default");
    (KubeCluster::new(client, Metrics::new(), GRADUS.reporter), asked)
}

fn object(version: &str) -> Value {
    json!({ "metadata": { "namespace": "shop", "name": "web", "resourceVersion": version } })
}

async fn one(write: Write) -> SentRequest {
    let (cluster, asked) = scripted(vec![(200, object("43"))]);
    cluster.write(write).await.unwrap();
    asked.lock().unwrap().remove(0)
}

#[tokio::test]
async fn a_create_names_its_object() {
    let body = Arc::new(json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "x": 1 } }));
    let asked = one(Write {
        target: target(REPLICA_SET),
        part: ResourcePart::Main,
        op: Op::Create(body),
        expect: Expect::Nothing,
        lane: Lane::Ordinary,
    })
    .await;
    assert_eq!(asked.line, "POST /apis/apps/v1/namespaces/shop/replicasets?fieldManager=gradus");
    assert_eq!(
        asked.body,
        json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": { "x": 1 },
            "metadata": { "namespace": "shop", "name": "web", "labels": { "a": "b" } } })
    );
}

#[tokio::test]
async fn a_patch_carries_what_must_still_be_so() {
    let patch = Arc::new(json!({ "status": { "phase": null } }));
    let cases = [
        (
            "a version",
            ResourcePart::Status,
            Expect::Version(42),
            json!({ "resourceVersion": "42" }),
        ),
        ("a uid", ResourcePart::Main, Expect::Uid(Uid::parse(UID)), json!({ "uid": UID })),
        ("nothing", ResourcePart::Main, Expect::Nothing, Value::Null),
    ];
    for (what, part, expect, metadata) in cases {
        let (target, op) = (target(ROLLOUT), Op::Merge(patch.clone()));
        let write = Write { target, part, op, expect, lane: Lane::Ordinary };
        let asked = one(write).await;
        let part = if part == ResourcePart::Status { "/status" } else { "" };
        let path = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web";
        assert_eq!(asked.line, format!("PATCH {path}{part}?fieldManager=gradus"), "{what}");
        assert_eq!(asked.content_type, "application/merge-patch+json", "{what}");
        assert_eq!(asked.body["metadata"], metadata, "{what}");
        assert_eq!(asked.body["status"], json!({ "phase": null }), "{what}: nulls are kept");
    }
}

#[tokio::test]
async fn the_answer_to_a_write_tells_version_and_status() {
    let (op, expect) = (Op::Merge(Arc::new(json!({}))), Expect::Version(7));
    let write = Write {
        target: target(ROLLOUT),
        part: ResourcePart::Status,
        op,
        expect,
        lane: Lane::Ordinary,
    };
    let stored =
        json!({ "metadata": { "resourceVersion": "8" }, "status": { "phase": "Healthy" } });
    let (cluster, _) = scripted(vec![(200, stored)]);
    let written = cluster.write(write).await.unwrap();
    assert_eq!((written.version, &*written.status), (8, &json!({ "phase": "Healthy" })));
}

#[tokio::test]
async fn a_delete_is_of_one_uid_and_in_the_background() {
    let write = Write {
        target: target(REPLICA_SET),
        part: ResourcePart::Main,
        op: Op::Delete,
        expect: Expect::Uid(Uid::parse(UID)),
        lane: Lane::Ordinary,
    };
    let (cluster, asked) = scripted(vec![(200, json!({ "kind": "Status", "status": "Success" }))]);
    let written = cluster.write(write).await.expect("a plain success is one");
    assert_eq!(written.version, 0, "it names no version");
    let asked = asked.lock().unwrap().remove(0);
    assert_eq!(asked.line, "DELETE /apis/apps/v1/namespaces/shop/replicasets/web");
    assert_eq!(asked.body["preconditions"], json!({ "uid": UID }));
    assert_eq!(asked.body["propagationPolicy"], "Background");
}

#[tokio::test]
async fn an_eviction_is_of_one_uid_and_a_budget_that_refuses_it_is_told() {
    let pod = Kind::new("", "v1", "Pod", "pods");
    let (part, op, expect) = (ResourcePart::Main, Op::Evict, Expect::Uid(Uid::parse(UID)));
    let write = Write { target: target(pod), part, op, expect, lane: Lane::Ordinary };
    let refusal = json!({ "kind": "Status", "reason": "TooManyRequests", "message": "budget" });
    let (cluster, asked) =
        scripted(vec![(201, json!({ "kind": "Status", "status": "Success" })), (429, refusal)]);
    let written = cluster.write(write.clone()).await.expect("a plain success is one");
    assert_eq!(written.version, 0, "it names no version");
    let refused = cluster.write(write).await.unwrap_err();
    assert_eq!((refused.class, refused.message.as_str()), (Class::Throttled, "budget"));
    let asked = asked.lock().unwrap().remove(0);
    assert_eq!(asked.line, "POST /api/v1/namespaces/shop/pods/web/eviction?fieldManager=gradus");
    assert_eq!(
        asked.body,
        json!({ "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": { "namespace": "shop", "name": "web" },
            "deleteOptions": { "preconditions": { "uid": UID } } })
    );
}

#[tokio::test]
async fn a_list_is_of_the_labels_asked_for() {
    let kind = Kind::new("", "v1", "Pod", "pods");
    let listing = Listing { kind, namespace: "shop".into(), labels: "hash=a1".to_owned() };
    let list = json!({ "items": [object("7"), object("8")] });
    let (cluster, asked) = scripted(vec![(200, list), (403, json!({ "message": "no" }))]);
    let versions: Vec<u64> =
        cluster.list(&listing).await.unwrap().iter().map(|frame| frame.meta.version).collect();
    assert_eq!(versions, [7, 8]);
    let line = asked.lock().unwrap()[0].line.clone();
    assert_eq!(line, "GET /api/v1/namespaces/shop/pods?labelSelector=hash%3Da1&limit=500");
    assert_eq!(cluster.list(&listing).await.unwrap_err().class, Class::Denied);
}

#[tokio::test]
async fn a_read_of_nothing_is_no_error() {
    let service = Kind::new("", "v1", "Service", "services");
    let (cluster, asked) = scripted(vec![(200, object("7")), (404, json!({}))]);
    let there = cluster.read(&target(service.clone())).await.unwrap();
    assert_eq!(there.unwrap().meta.version, 7);
    assert!(cluster.read(&target(service)).await.unwrap().is_none());
    assert_eq!(asked.lock().unwrap()[0].line, "GET /api/v1/namespaces/shop/services/web");
}

#[tokio::test]
async fn a_name_cannot_leave_its_place_in_the_path() {
    let service = Kind::new("", "v1", "Service", "services");
    let cases = [
        ("a slash", "../secrets/x", "..%2Fsecrets%2Fx"),
        ("dots", "..", "%2E%2E"),
        ("a question", "a?watch=1", "a%3Fwatch%3D1"),
        ("a space", "a b", "a%20b"),
        ("an ordinary name", "web-1.v2", "web-1.v2"),
    ];
    for (what, name, segment) in cases {
        let (cluster, asked) = scripted(vec![(404, json!({}))]);
        let target = ObjectRef::new(service.clone(), &"shop".into(), &name.into());
        cluster.read(&target).await.unwrap();
        let line = asked.lock().unwrap().remove(0).line;
        assert_eq!(line, format!("GET /api/v1/namespaces/shop/services/{segment}"), "{what}");
    }
    let (cluster, asked) = scripted(vec![]);
    let nameless = ObjectRef::new(service, &"shop".into(), &"".into());
    assert_eq!(cluster.read(&nameless).await.unwrap_err().class, Class::Denied);
    assert!(asked.lock().unwrap().is_empty(), "a path without a name means all of them");
}

fn event(count: u32) -> PostedEvent {
    PostedEvent {
        about: target(ROLLOUT),
        uid: Uid::parse(UID),
        version: 42,
        name: "web.17a".into(),
        kind: "Normal",
        reason: "RolloutPaused".into(),
        message: "Rollout is paused (CanaryPauseStep)".into(),
        first: Timestamp::from_second(1_000_000_000).unwrap(),
        last: Timestamp::from_millisecond(1_000_000_061_500).unwrap(),
        count,
    }
}

#[tokio::test]
async fn a_first_event_is_created() {
    let (cluster, asked) = scripted(vec![(201, json!({}))]);
    cluster.post(&event(1)).await.unwrap();
    let asked = asked.lock().unwrap().remove(0);
    assert_eq!(asked.line, "POST /api/v1/namespaces/shop/events?fieldManager=gradus");
    assert_eq!(asked.body["involvedObject"]["resourceVersion"], "42");
    assert_eq!(asked.body["involvedObject"]["apiVersion"], "argoproj.io/v1alpha1");
    assert_eq!(asked.body["metadata"]["name"], "web.17a");
    assert_eq!(asked.body["firstTimestamp"], "2001-09-09T01:46:40Z");
    assert_eq!(asked.body["lastTimestamp"], "2001-09-09T01:47:41Z");
}

#[tokio::test]
async fn a_repeated_event_is_counted_up_or_made_anew() {
    let (cluster, asked) = scripted(vec![(200, json!({})), (404, json!({})), (201, json!({}))]);
    cluster.post(&event(2)).await.unwrap();
    cluster.post(&event(3)).await.unwrap();
    let asked = asked.lock().unwrap().clone();
    let path = "/api/v1/namespaces/shop/events";
    let lines: Vec<_> = asked.iter().map(|asked| asked.line.as_str()).collect();
    assert_eq!(
        lines,
        [
            &*format!("PATCH {path}/web.17a?fieldManager=gradus"),
            &*format!("PATCH {path}/web.17a?fieldManager=gradus"),
            &*format!("POST {path}?fieldManager=gradus"),
        ]
    );
    assert_eq!(asked[0].body, json!({ "count": 2, "lastTimestamp": "2001-09-09T01:47:41Z" }));
    assert_eq!(asked[2].body["count"], 3);
}

#[test]
fn an_answer_means_one_class() {
    use Class::*;
    let cases = [
        // what, status, reason, the server's words, class
        ("made by somebody", 409, "AlreadyExists", r#""web-1" already exists"#, Exists),
        ("another version", 409, "Conflict", "the object has been modified; please apply", Stale),
        ("another uid", 409, "Conflict", "Precondition failed: UID in precondition: a", Stale),
        ("no such object", 404, "NotFound", r#"rollouts.argoproj.io "web" not found"#, Gone),
        (
            "no such kind",
            404,
            "NotFound",
            "the server could not find the requested resource",
            Unreachable,
        ),
        ("no such namespace", 404, "NotFound", r#"namespaces "shop" not found"#, Gone),
        ("no permission", 403, "Forbidden", r#"User "x" cannot create replicasets"#, Denied),
        ("over quota", 403, "Forbidden", "exceeded quota: few, requested: pods=1", Denied),
        ("denied", 400, "BadRequest", r#"admission webhook "a.b" denied the request: no"#, Denied),
        ("denied plainly", 403, "Forbidden", r#"admission webhook "a.b" denied it"#, Denied),
        ("webhook away", 500, "InternalError", r#"failed calling webhook "a.b": refused"#, Denied),
        ("against the schema", 422, "Invalid", "spec.template: Required value", Denied),
        ("too large", 413, "RequestEntityTooLarge", "limit is 3145728", Denied),
        ("too many", 429, "TooManyRequests", "too many requests, please try again", Throttled),
        ("an expired token", 401, "Unauthorized", "Unauthorized", Unreachable),
        ("silent store", 500, "InternalError", "etcdserver: request timed out", Unknown),
        ("unavailable", 503, "ServiceUnavailable", "unable to handle the request", Unknown),
        ("a gateway gave up", 504, "Timeout", "request did not complete", Unknown),
    ];
    for (what, status, reason, message, class) in cases {
        let body = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure", "message": message, "reason": reason, "code": status });
        let error = refused(status, HeaderMap::new(), body.to_string());
        assert_eq!((error.class, &*error.message), (class, message), "{what}");
    }
}

#[test]
fn a_patch_meant_for_another_uid_is_stale() {
    let body = json!({ "kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422,
        "message": "metadata.uid: Invalid value: field is immutable", "details": { "causes": [{
            "reason": "FieldValueInvalid", "message": "field is immutable",
            "field": "metadata.uid" }] } });
    assert_eq!(refused(422, HeaderMap::new(), body.to_string()).class, Class::Stale);
}

fn refused(status: u16, headers: HeaderMap, body: String) -> WriteError {
    answer::refused(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes())
}

#[test]
fn the_wait_the_server_asks_for_is_kept() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_static("3"));
    assert_eq!(refused(429, headers, String::new()).retry_after_secs, Some(3));
    let body = json!({ "details": { "retryAfterSeconds": 5 } });
    assert_eq!(refused(429, HeaderMap::new(), body.to_string()).retry_after_secs, Some(5));
}

#[test]
fn an_answer_that_is_no_status_is_quoted() {
    let page = "<html>\n<h1>502 Bad Gateway</h1></html>".to_owned();
    let error = refused(502, HeaderMap::new(), page);
    assert_eq!(error.class, Class::Unknown);
    assert_eq!(error.message, "the server answered 502: <html> <h1>502 Bad Gateway</h1></html>");
}

async fn failing(error: std::io::Error) -> WriteError {
    let error = Mutex::new(Some(error));
    let service = tower::service_fn(move |_: Request<Body>| {
        let error = error.lock().unwrap().take().unwrap();
        async move { Err::<Response<Body>, _>(error) }
    });
    let cluster =
        KubeCluster::new(kube::Client::new(service, "default"), Metrics::new(), GRADUS.reporter);
    cluster.read(&target(ROLLOUT)).await.unwrap_err()
}

#[tokio::test]
async fn only_what_was_never_sent_is_unreachable() {
    let refused = failing(std::io::ErrorKind::ConnectionRefused.into()).await;
    assert_eq!(refused.class, Class::Unreachable);
    let reset = failing(std::io::ErrorKind::ConnectionReset.into()).await;
    assert_eq!(reset.class, Class::Unknown, "it may have been done");
    assert!(reset.message.starts_with("Get Rollout shop/web: "), "{}", reset.message);
}

#[tokio::test]
async fn a_port_without_listener_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let client = kube::Client::try_from(kube::Config::new(uri)).unwrap();
    let error = KubeCluster::new(client, Metrics::new(), GRADUS.reporter)
        .read(&target(ROLLOUT))
        .await
        .unwrap_err();
    assert_eq!(error.class, Class::Unreachable, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_leaves_the_write_unknown() {
    let service = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, std::io::Error>>()
    });
    let cluster =
        KubeCluster::new(kube::Client::new(service, "default"), Metrics::new(), GRADUS.reporter);
    let error = cluster.read(&target(ROLLOUT)).await.unwrap_err();
    assert_eq!(error.class, Class::Unknown);
    assert_eq!(error.message, "Get Rollout shop/web: no answer within 4 s");
}
