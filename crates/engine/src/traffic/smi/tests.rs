//! The TrafficSplit: made once, then its weights alone change.

use std::sync::Arc;

use super::*;
use crate::traffic::tests::{self, goal};
use crate::traffic::{Destination, routers};

fn seen(object: &Value) -> RoutingObjects {
    let name = object["metadata"]["name"].as_str().unwrap();
    let reference = ObjectRef::new(TRAFFIC_SPLIT, &"shop".into(), &name.into());
    RoutingObjects::from([(reference, RouteView(Arc::new(object.clone())))])
}

fn created(config: Value, goal: &Goal<'_>) -> (Value, Vec<(&'static str, String)>) {
    let rollout = tests::rollout(json!({ "smi": config }));
    let mut writes = routers(&rollout)[0].plan(goal, &RoutingObjects::new()).unwrap();
    let write = writes.remove(0);
    let RouteOp::Create(manifest) = write.op else { panic!("{write:?}") };
    (manifest, write.told)
}

#[test]
fn the_traffic_split_has_the_canary_first_and_stable_last() {
    let one = |service: &str, weight: i32| Destination {
        service: service.into(),
        hash: "x".into(),
        port: None,
        weight,
    };
    let further = [one("b-try", 10), one("a-try", 5)];
    let with = Goal { additional: &further, ..goal(20) };
    let (manifest, told) =
        created(json!({ "rootService": "root", "trafficSplitName": "split" }), &with);
    let backend = |service: &str, weight: &str| json!({ "service": service, "weight": weight });
    let backends = [
        backend("canary", "20"),
        backend("b-try", "10"),
        backend("a-try", "5"),
        backend("stable", "65"),
    ];
    let owner = &manifest["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["controller"], &owner["name"]), (&json!(true), &json!("app")));
    assert_eq!(manifest["apiVersion"], "split.smi-spec.io/v1alpha1");
    assert_eq!(manifest["spec"], json!({ "service": "root", "backends": backends }));
    assert_eq!(told, [("TrafficSplitCreated", "TrafficSplit `split` created".to_owned())]);
    let (manifest, _) = created(json!({}), &goal(0));
    assert_eq!(manifest["metadata"]["name"], "app", "named after the Rollout");
    assert_eq!(manifest["spec"]["service"], "stable");
}

#[test]
fn a_traffic_split_is_patched_only_where_it_says_something_else() {
    let (manifest, _) = created(json!({}), &goal(20));
    let rollout = tests::rollout(json!({ "smi": {} }));
    let router = &routers(&rollout)[0];
    assert_eq!(router.plan(&goal(20), &seen(&manifest)).unwrap(), []);
    let mut numbers = manifest.clone();
    numbers["spec"]["backends"][0]["weight"] = json!(20);
    assert_eq!(router.plan(&goal(20), &seen(&numbers)).unwrap(), [], "a quantity in other words");
    assert_eq!(router.carried(&goal(0).sides, &seen(&numbers)), 20);
    let writes = router.plan(&goal(60), &seen(&manifest)).unwrap();
    let RouteOp::Merge(patch) = &writes[0].op else { panic!("{writes:?}") };
    let (wanted, _) = created(json!({}), &goal(60));
    assert_eq!(*patch, json!({ "spec": wanted["spec"] }));
    assert_eq!(writes[0].told, [], "no Event");
    let mut foreign = manifest;
    foreign["metadata"]["ownerReferences"] = json!([]);
    let fault = router.plan(&goal(60), &seen(&foreign)).unwrap_err();
    let field = "spec.strategy.canary.trafficRouting.smi.trafficSplitName";
    assert_eq!(fault.to_string(), format!("{field}: Rollout does not own TrafficSplit `app`"));
}
