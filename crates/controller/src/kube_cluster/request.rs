//! Which HTTP request makes a write, a read or an Event?

use gradus_engine::decision::{Expect, Kind, ObjectRef, Op};
use http::{Method, Request, header};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cluster::{Listing, PostedEvent, ResourcePart, Write};
use crate::engines::Reporter;
use crate::version;

const EVENT: Kind = Kind::new("", "v1", "Event", "events");

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// The request of a write and its verb.
pub(super) fn write(write: &Write, manager: &str) -> (&'static str, Request<Vec<u8>>) {
    match &write.op {
        Op::Create(body) => {
            let path = format!("{}?fieldManager={manager}", collection(&write.target));
            ("Create", build(Method::POST, &path, JSON, &named(body, &write.target)))
        }
        Op::Merge(patch) => {
            let part = match write.part {
                ResourcePart::Main => "",
                ResourcePart::Status => "/status",
            };
            let path = format!("{}{part}?fieldManager={manager}", item(&write.target));
            ("Patch", build(Method::PATCH, &path, MERGE_PATCH, &guarded(patch, &write.expect)))
        }
        Op::Delete => {
            let options = delete_options(&write.expect);
            ("Delete", build(Method::DELETE, &item(&write.target), JSON, &options))
        }
        Op::Evict => {
            let path = format!("{}/eviction?fieldManager={manager}", item(&write.target));
            ("Create", build(Method::POST, &path, JSON, &eviction(write)))
        }
    }
}

/// The request that reads one object, not from a cache of the server.
pub(super) fn read(target: &ObjectRef) -> Request<Vec<u8>> {
    finish(Request::builder().method(Method::GET).uri(item(target)), Vec::new())
}

/// Objects per page of a list.
pub(super) const PAGE: usize = 500;

/// The request for one page of a list, not from a cache of the server: the first, or the one that the
/// page before it names.
pub(super) fn list(listing: &Listing, page: Option<&str>) -> Request<Vec<u8>> {
    let all = all_of(&listing.kind, &listing.namespace);
    let mut path = format!("{all}?labelSelector={}&limit={PAGE}", segment(&listing.labels));
    if let Some(page) = page {
        path.push_str("&continue=");
        path.push_str(&segment(page));
    }
    finish(Request::builder().method(Method::GET).uri(path), Vec::new())
}

/// The Event object itself, as a target.
pub(super) fn event_ref(event: &PostedEvent) -> ObjectRef {
    // Events about cluster-scoped objects live in `default`.
    let namespace = match &*event.about.namespace {
        "" => "default".into(),
        _ => event.about.namespace.clone(),
    };
    ObjectRef { kind: EVENT, namespace, name: event.name.as_str().into() }
}

/// The request that creates an Event.
pub(super) fn event(
    event: &PostedEvent,
    target: &ObjectRef,
    reporter: Reporter,
) -> Request<Vec<u8>> {
    let mut involved = json!({
        "apiVersion": event.about.kind.api_version(),
        "kind": event.about.kind.name,
        "namespace": event.about.namespace,
        "name": event.about.name,
        "uid": event.uid,
    });
    if event.version != 0 {
        involved["resourceVersion"] = version::text(event.version).into();
    }
    let body = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "namespace": target.namespace, "name": target.name },
        "involvedObject": involved,
        "type": event.kind,
        "reason": event.reason,
        "message": event.message,
        "source": { "component": reporter.component },
        "reportingComponent": reporter.component,
        "firstTimestamp": seconds(event.first),
        "lastTimestamp": seconds(event.last),
        "count": event.count,
    });
    let path = format!("{}?fieldManager={}", collection(target), reporter.manager);
    build(Method::POST, &path, JSON, &body)
}

/// The request that raises the count of an Event.
pub(super) fn raise(event: &PostedEvent, target: &ObjectRef, manager: &str) -> Request<Vec<u8>> {
    let patch = json!({ "count": event.count, "lastTimestamp": seconds(event.last) });
    let path = format!("{}?fieldManager={manager}", item(target));
    build(Method::PATCH, &path, MERGE_PATCH, &patch)
}

/// The path of all objects of the target's kind in its namespace.
fn collection(target: &ObjectRef) -> String {
    all_of(&target.kind, &target.namespace)
}

fn all_of(kind: &Kind, namespace: &str) -> String {
    let Kind { group, version, plural, .. } = kind;
    let root = if group.is_empty() { "/api" } else { "/apis/" };
    let namespace = match namespace {
        "" => String::new(),
        namespace => format!("namespaces/{}/", segment(namespace)),
    };
    format!("{root}{group}/{version}/{namespace}{plural}")
}

fn item(target: &ObjectRef) -> String {
    format!("{}/{}", collection(target), segment(&target.name))
}

/// A name as one segment of a path. Names come from specs too, where users may write anything.
fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~".contains(&byte);
    let dots = name.bytes().all(|byte| byte == b'.');
    let encode = |byte: u8| match byte {
        b'.' if !dots => ".".to_owned(),
        _ if plain(byte) => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(encode).collect()
}

/// The body with what the target says already: a create names its object.
fn named(body: &Value, target: &ObjectRef) -> Value {
    let mut body = body.clone();
    body["apiVersion"] = target.kind.api_version().into();
    body["kind"] = target.kind.name.as_ref().into();
    body["metadata"]["name"] = target.name.as_ref().into();
    if !target.namespace.is_empty() {
        body["metadata"]["namespace"] = target.namespace.as_ref().into();
    }
    body
}

/// The patch with what must still be so: the server refuses it with a conflict otherwise.
fn guarded(patch: &Value, expect: &Expect) -> Value {
    let mut patch = patch.clone();
    match expect {
        Expect::Nothing => {}
        Expect::Version(version) => {
            patch["metadata"]["resourceVersion"] = version::text(*version).into();
        }
        Expect::Uid(uid) => patch["metadata"]["uid"] = uid.to_string().into(),
    }
    patch
}

fn eviction(write: &Write) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": { "name": write.target.name, "namespace": write.target.namespace },
        "deleteOptions": { "preconditions": preconditions(&write.expect) },
    })
}

fn delete_options(expect: &Expect) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": preconditions(expect),
        "propagationPolicy": "Background",
    })
}

fn preconditions(expect: &Expect) -> Map<String, Value> {
    let mut preconditions = Map::new();
    match expect {
        Expect::Nothing => {}
        Expect::Version(version) => {
            preconditions.insert("resourceVersion".into(), version::text(*version).into());
        }
        Expect::Uid(uid) => {
            preconditions.insert("uid".into(), uid.to_string().into());
        }
    }
    preconditions
}

fn build(method: Method, path: &str, content_type: &str, body: &Value) -> Request<Vec<u8>> {
    let builder = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, content_type)
        .header(header::ACCEPT, JSON);
    finish(builder, body.to_string().into_bytes())
}

fn finish(builder: http::request::Builder, body: Vec<u8>) -> Request<Vec<u8>> {
    builder.body(body).expect("a path of encoded segments")
}

/// As Kubernetes writes times in Events.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
