//! What a metric server says about a cluster whose pods, weights and behaviours change.

use gradus_promql::{Query, Value};
use serde_json::{Value as Json, json};

use super::*;
use crate::behave::Behaviours;
use crate::kinds::KindId;
use crate::request::Request;

/// Two versions with a pod each, behind these objects.
fn cluster(behaviours: Json, objects: &[(KindId, Json)]) -> SimCluster {
    let behaviours: Behaviours = serde_json::from_value(behaviours).unwrap();
    let mut cluster = SimCluster::new(behaviours, at(0));
    for (version, image) in [("old", "web:1"), ("new", "web:2")] {
        let pod = json!({
            "metadata": { "name": version, "labels": { "app": "web", "version": version } },
            "spec": { "containers": [{ "name": "web", "image": image }] },
        });
        create(&mut cluster, KindId::POD, pod);
    }
    for (kind, object) in objects {
        create(&mut cluster, *kind, object.clone());
    }
    cluster.settle(at(0));
    cluster.settle(at(1));
    cluster
}

fn create(cluster: &mut SimCluster, kind: KindId, object: Json) {
    cluster.call(&Request::create(kind, "default", object), at(0)).unwrap();
}

fn service(name: &str, version: Option<&str>) -> (KindId, Json) {
    let mut selector = json!({ "app": "web" });
    if let Some(version) = version {
        selector["version"] = json!(version);
    }
    let spec = json!({ "selector": selector, "ports": [{ "port": 80 }] });
    (KindId::SERVICE, json!({ "metadata": { "name": name }, "spec": spec }))
}

fn ingress(name: &str, service: &str, annotations: Json) -> (KindId, Json) {
    let backend = json!({ "service": { "name": service, "port": { "number": 80 } } });
    let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
    let rule = json!({ "host": "web.example", "http": { "paths": [path] } });
    let metadata = json!({ "name": name, "annotations": annotations });
    (KindId::INGRESS, json!({ "metadata": metadata, "spec": { "rules": [rule] } }))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn ask(traffic: &Traffic, query: &str, second: i64) -> String {
    let value = Query::parse(query).unwrap().instant(traffic, at(second).as_millisecond());
    let Value::Vector(points) = value.unwrap() else { panic!("{query}: a vector") };
    let told = points.iter().map(|point| format!("{:.3}", point.value));
    told.collect::<Vec<_>>().join(" ")
}

#[test]
fn requests_go_where_services_and_routers_send_them() {
    let canary = |weight: &str| {
        json!({ "nginx.ingress.kubernetes.io/canary": "true",
                "nginx.ingress.kubernetes.io/canary-weight": weight })
    };
    let both = || [service("stable", Some("old")), service("canary", Some("new"))];
    let action = json!({ "Type": "forward", "ForwardConfig": { "TargetGroups": [
        { "ServiceName": "stable", "ServicePort": "80", "Weight": 70 },
        { "ServiceName": "canary", "ServicePort": "80", "Weight": 30 } ] } });
    let action = json!({ "alb.ingress.kubernetes.io/actions.root": action.to_string() });
    let nginx = |weight: &str| {
        [
            both().as_slice(),
            &[ingress("main", "stable", json!({})), ingress("c", "canary", canary(weight))],
        ]
        .concat()
    };
    let alb = [both().as_slice(), &[ingress("main", "root", action)]].concat();
    let cases = [
        ("one Service, by pods", vec![service("web", None)], "50.000 50.000"),
        ("nobody is asked", vec![], ""),
        ("each Service of its own", both().to_vec(), "100.000 100.000"),
        ("a canary Ingress", nginx("20"), "20.000 80.000"),
        ("a canary Ingress of 0", nginx("0"), "0.000 100.000"),
        ("an action of a load balancer", alb, "30.000 70.000"),
    ];
    for (what, objects, expected) in cases {
        let cluster = cluster(json!([]), &objects);
        let mut traffic = Traffic::default();
        traffic.observe(&cluster, at(1));
        let query = "sum by (version) (rate(http_requests_total[1m]))";
        assert_eq!(ask(&traffic, query, 120), expected, "{what}");
    }
}

#[test]
fn pods_answer_as_their_image_behaves() {
    let behaviours = json!([{ "image": "web:2", "errorPercent": 8, "latencyMilliseconds": 400 }]);
    let mut cluster = cluster(behaviours, &[service("web", None)]);
    let mut traffic = Traffic::default();
    traffic.observe(&cluster, at(1));
    let errors = r#"sum by (version) (rate(http_requests_total{code=~"5.."}[1m]))
        / sum by (version) (rate(http_requests_total[1m]))"#;
    let median = "histogram_quantile(0.5, sum by (version, le) (rate(http_request_duration_seconds_bucket[1m])))";
    assert_eq!(ask(&traffic, errors, 120), "0.080 0.000");
    assert_eq!(ask(&traffic, median, 120), "0.409 0.050");
    cluster.set_behaviours(Behaviours::default());
    traffic.observe(&cluster, at(120));
    assert_eq!(ask(&traffic, errors, 150), "0.036 0.000", "the last minute has both");
    assert_eq!(ask(&traffic, errors, 200), "0.000 0.000");
    let total = "sum(increase(http_requests_total[2m]))";
    assert_eq!(ask(&traffic, total, 200), "12000.000");
}

#[test]
fn a_pod_that_is_gone_is_sampled_no_more() {
    let mut cluster = cluster(json!([]), &[service("web", None)]);
    let mut traffic = Traffic::default();
    traffic.observe(&cluster, at(1));
    let request = Request::new(crate::request::Verb::Delete, KindId::POD, "default", "new");
    cluster.call(&request, at(60)).unwrap();
    cluster.settle(at(60));
    traffic.observe(&cluster, at(60));
    assert_eq!(ask(&traffic, "count(up)", 59), "2.000");
    assert_eq!(ask(&traffic, "count(up)", 70), "1.000");
    assert_eq!(ask(&traffic, "sum(rate(http_requests_total[30s]))", 200), "100.000");
    assert_eq!(ask(&traffic, r#"sum(rate(http_requests_total{pod="new"}[1m]))"#, 200), "");
}

#[test]
fn a_document_tells_of_the_last_minute() {
    let behaviours = json!([{ "image": "web:2", "errorPercent": 8 }]);
    let cluster = cluster(behaviours, &[service("web", None)]);
    let mut traffic = Traffic::default();
    traffic.observe(&cluster, at(1));
    let ask = |target: &str| {
        let EndpointReply { status, body } = traffic.answer(target, "", at(120));
        (status, serde_json::from_str::<Json>(&body).unwrap())
    };
    let rounded = |value: &Json| (value.as_f64().unwrap() * 1000.0).round() / 1000.0;
    let (status, body) = ask("/traffic?version=new");
    assert_eq!(status, 200);
    assert_eq!(rounded(&body["errorRate"]), 0.08);
    assert_eq!(rounded(&body["requestsPerSecond"]), 50.0);
    assert_eq!(ask("/traffic?version=none").1["errorRate"], Json::Null);
    assert_eq!(rounded(&ask("/traffic").1["errorRate"]), 0.04);
    let (status, body) = ask("/api/v1/query?query=count(up%7Bapp%3D%22web%22%7D)+%2B+1");
    assert_eq!((status, &body["data"]["result"][0]["value"][1]), (200, &json!("3")));
    assert_eq!(ask("/metrics").0, 404);
}
