//! Pods that must be registered in the target groups of load balancers before those of the revision
//! before may go.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use super::routers::with_fixed_services;
use crate::ask::{Split, WeightsSaid};

/// Weights are in force at once; of targets nothing is known yet.
fn verified(mut fixture: Fixture) -> Fixture {
    let message = String::new();
    let said = WeightsSaid { split: Split::AsTold, message, load_balancers: Vec::new() };
    fixture.balancers_say(Some(Ok(said)));
    fixture.targets_say(None);
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture
}

fn is_promoted(fixture: &Fixture) -> bool {
    fixture.status()["stableRS"] == fixture.status()["currentPodHash"]
}

/// Reasons of the Events about target groups since the last call.
fn told(fixture: &mut Fixture) -> Vec<String> {
    let mut told = fixture.take_events();
    told.retain(|reason| reason.starts_with("TargetGroup"));
    told
}

fn held(fixture: &Fixture) -> Value {
    let status = fixture.status();
    let mut known = status["conditions"].as_array().unwrap().iter();
    known.find(|known| known["type"] == "Held").map_or(Value::Null, |held| held["reason"].clone())
}

#[test]
fn a_blue_green_switch_is_complete_when_the_new_pods_are_registered() {
    let strategy = json!({ "scaleDownDelaySeconds": 30 });
    let mut fixture = verified(Fixture::blue_green(2, strategy));
    fixture.settle(at(1));
    assert_eq!((fixture.selects("active"), is_promoted(&fixture)), (2, false));
    assert!(fixture.why().contains("are the pods of Service active registered"));
    fixture.take_events();
    fixture.targets_say(Some(Split::Otherwise));
    fixture.settle(at(2));
    fixture.settle(at(3));
    assert_eq!((held(&fixture), is_promoted(&fixture)), (json!("TargetGroupUnverified"), false));
    assert_eq!(told(&mut fixture), ["TargetGroupUnverified"], "once");
    assert_eq!(fixture.decide().wake_at, Some(at(12)), "asked again after 10 s");
    fixture.settle(at(100));
    assert_eq!(fixture.sizes(), [2, 2], "the old pods stay, whatever their delay");
    fixture.targets_say(Some(Split::AsTold));
    fixture.settle(at(120));
    assert_eq!((held(&fixture), is_promoted(&fixture)), (Value::Null, true));
    assert_eq!(told(&mut fixture), ["TargetGroupVerified"]);
    fixture.settle(at(200));
    assert_eq!(fixture.sizes(), [0, 2]);
}

#[test]
fn an_abort_waits_for_no_targets() {
    let mut fixture = verified(Fixture::blue_green(2, json!({})));
    fixture.settle(at(1));
    fixture.patch_status(json!({ "abort": true }));
    fixture.settle(at(2));
    assert_eq!((fixture.selects("active"), held(&fixture)), (1, Value::Null));
}

#[test]
fn a_canary_keeps_its_old_pods_until_those_of_the_stable_service_are_registered() {
    let mut fixture = verified(with_fixed_services(json!([{ "setWeight": 50 }])));
    fixture.settle(at(1));
    assert!(is_promoted(&fixture), "promotion is of weights");
    assert_eq!((fixture.sizes(), fixture.selects("stable")), (vec![4, 4], 2));
    fixture.take_events();
    fixture.targets_say(Some(Split::Otherwise));
    fixture.settle(at(2));
    fixture.settle(at(100));
    assert_eq!((held(&fixture), fixture.sizes()), (json!("TargetGroupUnverified"), vec![4, 4]));
    assert_eq!(told(&mut fixture), ["TargetGroupUnverified"], "once");
    fixture.targets_say(Some(Split::AsTold));
    fixture.settle(at(120));
    assert_eq!((held(&fixture), fixture.sizes()), (Value::Null, vec![4, 4]), "their delay begins");
    assert_eq!(told(&mut fixture), ["TargetGroupVerified"]);
    fixture.settle(at(151));
    assert_eq!(fixture.sizes(), [0, 4]);
    fixture.take_lists();
    assert_eq!((fixture.rest(at(152)).len(), fixture.take_lists()), (0, 0), "at rest");
}
