//! Revisions that subsets of a DestinationRule lead to: when does the canary's subset move, and what is
//! behind it after an abort?

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;

/// The routing of a Rollout whose revisions are subsets of one DestinationRule.
fn subsets() -> Value {
    json!({ "istio": { "virtualService": { "name": "web" }, "destinationRule": {
        "name": "web", "canarySubsetName": "canary", "stableSubsetName": "stable" } } })
}

fn with_subsets(fixture: Fixture) -> Fixture {
    let to = |subset: &str, weight: i32| json!({ "destination": { "host": "web", "subset": subset }, "weight": weight });
    let service = json!({ "kind": "VirtualService", "metadata": { "name": "web" },
        "spec": { "http": [{ "route": [to("stable", 100), to("canary", 0)] }] } });
    let rule = json!({ "kind": "DestinationRule", "metadata": { "name": "web" }, "spec": {
        "host": "web", "subsets": [{ "name": "stable" }, { "name": "canary" }] } });
    fixture.with_route(service).with_route(rule)
}

/// Four replicas whose revisions are told apart by subsets alone.
fn without_services(steps: Value) -> Fixture {
    let strategy = json!({ "stableService": null, "canaryService": null, "steps": steps });
    with_subsets(Fixture::routed(4, subsets(), strategy))
}

/// The canary's weight, and the revisions that the subsets of stable and canary lead to.
fn state(fixture: &Fixture) -> (i64, usize, usize) {
    let route = &fixture.route("VirtualService", "web").unwrap()["spec"]["http"][0]["route"];
    let subsets = &fixture.route("DestinationRule", "web").unwrap()["spec"]["subsets"];
    let revision = |at: usize| {
        let hash = &subsets[at]["labels"]["rollouts-pod-template-hash"];
        (0..fixture.sets()).position(|set| *hash == fixture.hash(set)).map_or(0, |at| at + 1)
    };
    (route[1]["weight"].as_i64().unwrap(), revision(0), revision(1))
}

#[test]
fn without_services_a_subset_moves_only_to_a_revision_whose_pods_are_all_there() {
    let mut fixture = without_services(json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle_without_new_pods(at(1));
    assert_eq!((fixture.sizes(), state(&fixture)), (vec![4, 2], (0, 1, 1)), "no pod is there");
    fixture.size(1, 2, 1);
    fixture.reconcile(at(4));
    fixture.reconcile(at(5));
    assert_eq!(state(&fixture), (0, 1, 1), "one of two is there");
    fixture.settle(at(6));
    assert_eq!(state(&fixture), (50, 1, 2), "both are there");
}

#[test]
fn a_revision_that_a_subset_leads_to_keeps_its_pods() {
    let mut fixture = without_services(json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    fixture.set_image("v3");
    fixture.settle_without_new_pods(at(2));
    fixture.settle_without_new_pods(at(99));
    assert_eq!(state(&fixture), (0, 1, 2), "the third version has no pods yet");
    assert_eq!(fixture.sizes(), [4, 2, 2], "whoever calls the subset finds some");
    fixture.settle(at(100));
    assert_eq!(state(&fixture), (50, 1, 3));
    fixture.settle(at(200));
    assert_eq!(fixture.sizes(), [4, 0, 2], "nothing leads there any more");
}

#[test]
fn when_the_pods_of_an_aborted_revision_are_gone_its_subset_leads_to_stable_ones() {
    for has_services in [false, true] {
        let steps = json!([{ "setWeight": 50 }, { "pause": {} }]);
        let mut fixture = match has_services {
            true => with_subsets(Fixture::routed(4, subsets(), json!({ "steps": steps }))),
            false => without_services(steps),
        };
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.settle(at(1));
        fixture.patch_status(json!({ "abort": true }));
        fixture.settle(at(2));
        assert_eq!((fixture.sizes(), state(&fixture)), (vec![4, 2], (0, 1, 2)), "its delay");
        fixture.settle(at(60));
        assert_eq!((fixture.sizes(), state(&fixture)), (vec![4, 0], (0, 1, 1)));
        fixture.patch_status(json!({ "abort": false }));
        fixture.settle(at(61));
        assert_eq!((fixture.sizes(), state(&fixture)), (vec![4, 2], (50, 1, 2)), "a retry");
    }
}

#[test]
fn subsets_lead_to_revisions_without_services() {
    let mut fixture = without_services(json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture.settle(at(0));
    assert_eq!(state(&fixture), (0, 1, 1), "weight, stable and canary");
    fixture.set_image("v2");
    fixture.settle(at(1));
    assert_eq!(state(&fixture), (50, 1, 2));
    fixture.set_image("v3");
    fixture.settle(at(2));
    assert_eq!(state(&fixture), (50, 1, 3), "overtaken");
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(3));
    assert_eq!(state(&fixture), (0, 1, 3), "given up");
    fixture.set_image("v4");
    fixture.settle(at(40));
    fixture.promote();
    fixture.settle(at(41));
    assert_eq!(state(&fixture), (0, 4, 4), "promoted");
}

#[test]
fn a_service_brings_no_traffic_where_subsets_carry_it() {
    // The third version has the pods for 20 %, which its subset gets; its Service needs no more.
    let steps = json!({ "steps": [
        { "setWeight": 20 }, { "pause": {} }, { "setWeight": 60 }, { "pause": {} },
    ] });
    let mut fixture = with_subsets(Fixture::routed(8, subsets(), steps));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    fixture.promote();
    fixture.settle(at(1));
    assert_eq!(fixture.sizes(), [8, 5]);
    assert_eq!((fixture.selects("stable"), fixture.selects("canary")), (1, 2));
    fixture.settle_without_first_pods(at(2));
    fixture.set_image("v3");
    fixture.settle_without_first_pods(at(2));
    assert_eq!(fixture.sizes(), [8, 5, 2], "stable cannot take back what v2 carries");
    fixture.settle(at(3));
    assert_eq!((fixture.selects("stable"), fixture.selects("canary")), (1, 3));
    fixture.settle(at(60));
    assert_eq!(fixture.sizes(), [8, 0, 2], "nothing leads to the second version any more");
}

#[test]
fn a_subset_without_a_revision_leads_to_stable_once_that_has_the_pods() {
    let mut fixture = without_services(json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture.settle_without_new_pods(at(0));
    fixture.set_image("v2");
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle_without_first_pods(at(1));
    assert_eq!(state(&fixture).1, 0, "all pods serve while the first revision has none");
    fixture.settle(at(2));
    assert_eq!(state(&fixture).1, 1);
}

#[test]
fn after_an_abort_a_subset_leaves_a_former_revision_once_stable_has_the_pods() {
    let steps = json!({ "steps": [{ "setWeight": 50 }, { "pause": {} }] });
    let mut fixture = with_subsets(Fixture::routed(4, subsets(), steps));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(1));
    fixture.patch_status(json!({ "promoteFull": true }));
    fixture.settle(at(2));
    assert_eq!((fixture.sizes(), state(&fixture)), (vec![4, 4], (0, 2, 2)), "the delay of v1");
    // The write of the DestinationRule was lost, and half of the pods have failed since.
    let former = json!({ "rollouts-pod-template-hash": fixture.hash(0) });
    let subsets = json!([
        { "name": "stable", "labels": former },
        { "name": "canary", "labels": { "rollouts-pod-template-hash": fixture.hash(1) } },
    ]);
    fixture.patch_route("DestinationRule", "web", &json!({ "spec": { "subsets": subsets } }));
    fixture.size(1, 4, 2);
    fixture.set_image("v3");
    fixture.reconcile(at(3));
    fixture.patch_status(json!({ "abort": true }));
    for second in 4..7 {
        fixture.reconcile(at(second));
        assert_eq!(state(&fixture).1, 1, "two of four are no place for all traffic");
    }
    fixture.size(1, 4, 4);
    fixture.settle(at(9));
    assert_eq!(state(&fixture).1, 2);
}
