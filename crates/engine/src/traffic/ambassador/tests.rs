//! Mappings: a canary Mapping is there as long as the canary has traffic.

use super::*;
use crate::traffic::routers;
use crate::traffic::tests::{self, goal};

fn rollout() -> RolloutView {
    tests::rollout(json!({ "ambassador": { "mappings": ["web"] } }))
}

fn mapping(name: &str, spec: Value) -> Value {
    json!({ "metadata": { "name": name, "namespace": "shop", "labels": { "team": "a" } },
        "spec": spec })
}

fn base() -> Value {
    mapping("web", json!({ "prefix": "/stable", "service": "stable.shop:80", "timeout_ms": 5 }))
}

fn canary(weight: i32) -> Value {
    mapping("web-canary", json!({ "prefix": "/stable", "weight": weight }))
}

fn seen(objects: &[Value]) -> RoutingObjects {
    let entry = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap();
        let reference = ObjectRef::new(MAPPING, &"shop".into(), &name.into());
        (reference, RouteView(Arc::new(object.clone())))
    };
    objects.iter().map(entry).collect()
}

#[test]
fn a_canary_mapping_is_the_users_one_with_another_service_and_a_weight() {
    let rollout = rollout();
    let writes = routers(&rollout)[0].plan(&goal(20), &seen(&[base()])).unwrap();
    let RouteOp::Create(manifest) = &writes[0].op else { panic!("{writes:?}") };
    let spec = json!({ "prefix": "/stable", "service": "canary.shop:80", "timeout_ms": 5,
        "weight": 20 });
    assert_eq!((&manifest["spec"], &manifest["kind"]), (&spec, &json!("Mapping")));
    assert_eq!(manifest["metadata"]["labels"], json!(null), "metadata is not copied");
    assert_eq!(manifest["metadata"]["ownerReferences"][0]["name"], "app");
    let told = "Set canary mapping weight to 20".to_owned();
    assert_eq!(writes[0].told, [("CanaryMappingWeightUpdate", told)]);
    let carried = routers(&rollout)[0].carried(&goal(0).sides, &seen(&[base(), canary(20)]));
    assert_eq!(carried, 20);
}

/// What is there | the weight that is wanted | what is written.
#[test]
fn a_canary_mapping_comes_with_its_weight_and_goes_after_it() {
    let weight = |weight: i32| Some(RouteOp::Merge(json!({ "spec": { "weight": weight } })));
    let cases = [
        (vec![base()], 0, None),
        (vec![base(), canary(20)], 20, None),
        (vec![base(), canary(20)], 60, weight(60)),
        (vec![base(), canary(60)], 0, weight(0)),
        (vec![base(), canary(0)], 0, Some(RouteOp::Delete)),
        (vec![base(), canary(0)], 5, weight(5)),
    ];
    let rollout = rollout();
    for (at, (objects, wanted, expected)) in cases.into_iter().enumerate() {
        let mut writes = routers(&rollout)[0].plan(&goal(wanted), &seen(&objects)).unwrap();
        assert_eq!(writes.pop().map(|write| write.op), expected, "case {at}");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let path = "spec.strategy.canary.trafficRouting.ambassador.mappings";
    let weighted = mapping("web", json!({ "service": "stable", "weight": 10 }));
    let astray = mapping("web", json!({ "service": "other" }));
    let cases = [
        (
            vec![],
            format!(r#"{path}: Invalid value: "web": mappings.getambassador.io "web" not found"#),
        ),
        (
            vec![weighted],
            r#"spec.weight: Invalid value: "web": Ambassador mapping "web" can not define weight"#
                .to_owned(),
        ),
        (
            vec![astray],
            format!(
                r#"{path}: Invalid value: "web": Ambassador mapping "web" has no service stable"#
            ),
        ),
    ];
    let rollout = rollout();
    for (objects, expected) in cases {
        let fault = routers(&rollout)[0].fault(&seen(&objects)).unwrap();
        assert_eq!(fault.to_string(), expected);
    }
    let mut foreign = canary(20);
    foreign["metadata"]["ownerReferences"] = json!([{ "controller": true, "uid": "other" }]);
    let fault = routers(&rollout)[0].plan(&goal(60), &seen(&[base(), foreign])).unwrap_err();
    assert_eq!(fault.message, "canary mapping `web-canary` controlled by different object");
    let none = tests::rollout(json!({ "ambassador": { "mappings": [] } }));
    let fault = routers(&none)[0].fault(&RoutingObjects::new()).unwrap().to_string();
    assert_eq!(fault, format!("{path}: Required value: must provide at least one mapping"));
    let long = "x".repeat(260);
    let long = tests::rollout(json!({ "ambassador": { "mappings": [long] } }));
    let name = routers(&long)[0].needs().remove(1).object.name;
    assert_eq!((name.len(), name.ends_with("x-canary")), (253, true));
}
