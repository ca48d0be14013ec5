//! The HTTP side in process: plain requests, hooks, watches, and a real kube client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use serde_json::{Value, json};
use tower::Service as _;

use super::{HookAction, NoAnswer};
use crate::SimCluster;
use crate::behave::Behaviours;
use crate::error::ApiError;
use crate::server::{Clock, Server};

/// A server whose clock is tokio's, so that paused time moves it.
fn server() -> Server {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let began = tokio::time::Instant::now();
    let clock: Clock =
        Arc::new(move || start + jiff::SignedDuration::try_from(began.elapsed()).unwrap());
    Server::new(SimCluster::new(Behaviours::default(), start), clock)
}

async fn send(
    server: &Server,
    method: Method,
    path: &str,
    body: Value,
) -> Result<(StatusCode, Value), NoAnswer> {
    let content_type = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .header("authorization", "Bearer tester")
        .body(Full::new(body))
        .unwrap();
    let response = server.service().call(request).await?;
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
}

fn config_map(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn objects_are_made_read_changed_and_deleted() {
    let server = server();
    let (status, _) = send(&server, Method::POST, MAPS, config_map("a", json!({}))).await.unwrap();
    assert_eq!(status, StatusCode::CREATED);
    let patch = json!({"data": {"x": "1"}});
    let one = format!("{MAPS}/a");
    let (_, map) = send(&server, Method::PATCH, &one, patch).await.unwrap();
    assert_eq!(map["data"], json!({"x": "1"}));
    let (_, list) = send(&server, Method::GET, MAPS, Value::Null).await.unwrap();
    assert_eq!(list["kind"], "ConfigMapList");
    let (status, _) = send(&server, Method::DELETE, &one, Value::Null).await.unwrap();
    assert_eq!(status, StatusCode::OK);
    let (status, gone) = send(&server, Method::GET, &one, Value::Null).await.unwrap();
    assert_eq!((status, &gone["reason"]), (StatusCode::NOT_FOUND, &json!("NotFound")));
}

#[tokio::test(start_paused = true)]
async fn options_that_make_no_sense_are_refused_by_name() {
    let server = server();
    send(&server, Method::POST, MAPS, config_map("a", json!({}))).await.unwrap();
    let manager = "m".repeat(129);
    let cases = [
        (Method::POST, "?dryRun=Some".to_owned(), json!({}), "CreateOptions", "dryRun"),
        (Method::PUT, "/a?dryRun=Some".to_owned(), json!({}), "UpdateOptions", "dryRun"),
        (
            Method::PATCH,
            "/a?fieldValidation=x".into(),
            json!({}),
            "PatchOptions",
            "fieldValidation",
        ),
        (Method::DELETE, "/a?dryRun=Some".to_owned(), Value::Null, "DeleteOptions", "dryRun"),
        (
            Method::POST,
            format!("?fieldManager={manager}"),
            json!({}),
            "CreateOptions",
            "fieldManager",
        ),
        (Method::POST, "?fieldManager=a%0A".into(), json!({}), "CreateOptions", "fieldManager"),
        (
            Method::DELETE,
            "/a".to_owned(),
            json!({"propagationPolicy": "Orphan", "orphanDependents": true}),
            "DeleteOptions",
            "propagationPolicy",
        ),
        (
            Method::GET,
            "?sendInitialEvents=1".into(),
            Value::Null,
            "ListOptions",
            "sendInitialEvents",
        ),
        (
            Method::GET,
            "?continue=1.a/b&resourceVersion=1&resourceVersionMatch=Exact".to_owned(),
            Value::Null,
            "ListOptions",
            "resourceVersionMatch",
        ),
    ];
    for (method, path, body, kind, field) in cases {
        let what = format!("{method} {path}");
        let answer = send(&server, method, &format!("{MAPS}{path}"), body).await.unwrap();
        assert_eq!(answer.0, StatusCode::UNPROCESSABLE_ENTITY, "{what}");
        let details = &answer.1["details"];
        assert_eq!(details["kind"], kind, "{what}");
        assert_eq!(details["causes"][0]["field"], field, "{what}");
    }
    let (status, _) =
        send(&server, Method::GET, &format!("{MAPS}?dryRun=Some"), Value::Null).await.unwrap();
    assert_eq!(status, StatusCode::OK, "reading changes nothing anyway");
}

#[tokio::test(start_paused = true)]
async fn what_only_a_container_could_answer_is_refused_clearly() {
    let server = server();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    send(&server, Method::POST, pods, pod).await.unwrap();
    for side in ["log", "exec", "attach", "portforward"] {
        let path = format!("{pods}/a/{side}");
        let (status, answer) = send(&server, Method::GET, &path, Value::Null).await.unwrap();
        assert_eq!(status, StatusCode::NOT_IMPLEMENTED, "{side}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.starts_with("no containers run in this cluster"), "{message}");
    }
    let (status, answer) =
        send(&server, Method::GET, &format!("{pods}/b/log"), Value::Null).await.unwrap();
    assert_eq!(
        (status, &answer["message"]),
        (StatusCode::NOT_FOUND, &json!("pods \"b\" not found"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_can_refuse_lose_and_delay() {
    let server = server();
    let verdicts = [
        HookAction::Refuse(ApiError::too_many_requests("slow down")),
        HookAction::LoseAnswer,
        HookAction::Drop,
        HookAction::Delay(Duration::from_secs(5)),
    ];
    for (at, verdict) in verdicts.into_iter().enumerate() {
        let chosen = verdict.clone();
        server.set_hook(move |seen| {
            assert_eq!(seen.authorization, "Bearer tester");
            if seen.method == Method::POST { chosen.clone() } else { HookAction::Pass }
        });
        let name = format!("m{at}");
        let before = tokio::time::Instant::now();
        let answer = send(&server, Method::POST, MAPS, config_map(&name, json!({}))).await;
        let (found, _) =
            send(&server, Method::GET, &format!("{MAPS}/{name}"), Value::Null).await.unwrap();
        match verdict {
            HookAction::Refuse(_) => {
                assert_eq!(answer.unwrap().0, StatusCode::TOO_MANY_REQUESTS);
                assert_eq!(found, StatusCode::NOT_FOUND);
            }
            HookAction::LoseAnswer => {
                assert_eq!(answer, Err(NoAnswer));
                assert_eq!(found, StatusCode::OK, "it was done all the same");
            }
            HookAction::Drop => {
                assert_eq!(answer, Err(NoAnswer));
                assert_eq!(found, StatusCode::NOT_FOUND);
            }
            HookAction::Delay(wait) => {
                assert_eq!(answer.unwrap().0, StatusCode::CREATED);
                assert_eq!(before.elapsed(), wait);
            }
            HookAction::Pass => {}
        }
    }
}

/// The events of a watch until it ends: type, name, and version of a bookmark as "bookmark".
async fn watched(server: &Server, query: &str) -> Vec<String> {
    let request = Request::builder()
        .uri(format!("{MAPS}?watch=true&timeoutSeconds=10&{query}"))
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = server.service().call(request).await.unwrap();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            let object = &event["object"];
            let name = object["metadata"]["name"].as_str().or(object["reason"].as_str());
            format!("{} {}", event["type"].as_str().unwrap(), name.unwrap_or("-"))
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_watch_follows_objects_in_and_out_of_its_selector() {
    let server = server();
    let blue = json!({"color": "blue"});
    for (name, labels) in [("a", blue.clone()), ("b", json!({}))] {
        send(&server, Method::POST, MAPS, config_map(name, labels)).await.unwrap();
    }
    let (_, list) = send(&server, Method::GET, MAPS, Value::Null).await.unwrap();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let selector = "labelSelector=color%3Dblue";
    let (from_now, query) = (server.clone(), selector.to_owned());
    let live = tokio::spawn(async move { watched(&from_now, &query).await });
    tokio::task::yield_now().await;
    let label = |value: Value| json!({"metadata": {"labels": {"color": value}}});
    for (name, patch) in [("b", label(json!("blue"))), ("a", label(json!(null)))] {
        send(&server, Method::PATCH, &format!("{MAPS}/{name}"), patch).await.unwrap();
    }
    send(&server, Method::PATCH, &format!("{MAPS}/b"), json!({"data": {"x": "1"}})).await.unwrap();
    send(&server, Method::DELETE, &format!("{MAPS}/b"), Value::Null).await.unwrap();
    let then = ["ADDED b", "DELETED a", "MODIFIED b", "DELETED b"];
    assert_eq!(live.await.unwrap(), [&["ADDED a"], &then[..]].concat());
    let replayed = watched(&server, &format!("{selector}&resourceVersion={version}")).await;
    assert_eq!(replayed, then, "a replay tells the same");
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_with_a_marked_bookmark() {
    let server = server();
    send(&server, Method::POST, MAPS, config_map("a", json!({}))).await.unwrap();
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    assert_eq!(watched(&server, query).await, ["ADDED a", "BOOKMARK -", "BOOKMARK -"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_forgotten_version_is_told_so() {
    let server = server();
    send(&server, Method::POST, MAPS, config_map("a", json!({}))).await.unwrap();
    server.with(|cluster, _| cluster.compact());
    assert_eq!(watched(&server, "resourceVersion=1").await, ["ERROR Expired"]);
}

#[tokio::test(start_paused = true)]
async fn a_kube_client_works_without_a_socket() {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
    let server = server();
    let client = kube::Client::new(server.service(), "default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let map = serde_json::from_value(config_map("a", json!({}))).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"x": "1"}}));
    maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    let list = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items[0].data.as_ref().unwrap()["x"], "1");
    let missing = maps.get("b").await.unwrap_err();
    assert!(matches!(missing, kube::Error::Api(status) if status.code == 404));
}

#[tokio::test(start_paused = true)]
async fn a_kube_watcher_lists_and_follows_in_both_ways() {
    use futures::TryStreamExt;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;
    use kube::runtime::watcher::{self, Event};
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let server = server();
        send(&server, Method::POST, MAPS, config_map("a", json!({}))).await.unwrap();
        let maps: Api<ConfigMap> =
            Api::default_namespaced(kube::Client::new(server.service(), "default"));
        let mut events = std::pin::pin!(watcher::watcher(maps, config));
        let mut seen = Vec::new();
        while seen.len() < 5 {
            seen.push(match events.try_next().await.unwrap().unwrap() {
                Event::Init => "init".into(),
                Event::InitApply(map) => format!("there {}", map.metadata.name.unwrap()),
                Event::InitDone => {
                    let path = format!("{MAPS}/a");
                    send(&server, Method::POST, MAPS, config_map("b", json!({}))).await.unwrap();
                    send(&server, Method::DELETE, &path, Value::Null).await.unwrap();
                    "done".into()
                }
                Event::Apply(map) => format!("new {}", map.metadata.name.unwrap()),
                Event::Delete(map) => format!("gone {}", map.metadata.name.unwrap()),
            });
        }
        assert_eq!(seen, ["init", "there a", "done", "new b", "gone a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn pods_start_by_themselves_in_virtual_time() {
    let server = server();
    let workers = server.clone();
    let running = tokio::spawn(async move { workers.run_workers().await });
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }},
    });
    let path = "/apis/apps/v1/namespaces/default/replicasets";
    send(&server, Method::POST, path, set).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (_, set) = send(&server, Method::GET, &format!("{path}/web"), Value::Null).await.unwrap();
    assert_eq!(set["status"]["readyReplicas"], 2);
    running.abort();
}
