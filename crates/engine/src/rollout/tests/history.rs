//! What is kept of former updates, and whose labels it carries.

use serde_json::json;

use super::at;
use super::fixture::Fixture;

#[test]
fn ten_old_revisions_are_kept_unless_something_else_is_said() {
    let mut fixture = Fixture::canary(1, json!([]));
    for number in 1..=12 {
        fixture.set_image(&format!("v{number}"));
        fixture.settle(at(number * 100));
    }
    assert_eq!(fixture.sizes().len(), 1 + 10, "the eleventh old one goes");
    assert_eq!(fixture.note(0, "rollout.argoproj.io/revision"), "2", "which is the oldest");
}

#[test]
fn an_old_revision_that_still_has_pods_is_kept_and_no_younger_one_goes_in_its_stead() {
    let mut fixture = Fixture::blue_green(1, json!({ "scaleDownDelaySeconds": 1000 }));
    fixture.patch_spec(json!({ "revisionHistoryLimit": 1 }));
    for number in 1..=3 {
        fixture.set_image(&format!("v{number}"));
        fixture.settle(at(number * 100));
    }
    assert_eq!(fixture.sizes(), [1, 1, 1], "both old ones wait for their end");
    fixture.set_image("v4");
    fixture.settle(at(1250));
    assert_eq!(fixture.sizes(), [1, 1, 1], "the first is at its end and goes, the others wait");
    assert_eq!(fixture.note(0, "rollout.argoproj.io/revision"), "2");
}

#[test]
fn what_a_rollout_starts_belongs_to_its_instance() {
    let once = json!({ "metrics": [{ "name": "m", "provider": { "web": { "url": "x" } } }] });
    let analysis = json!({ "templates": [{ "templateName": "once" }] });
    let experiment = json!({ "templates": [{ "name": "a", "specRef": "canary" }] });
    let steps = json!([{ "experiment": experiment }]);
    let mut fixture = Fixture::canary(1, steps).with_template("once", once);
    fixture.patch_spec(json!({ "strategy": { "canary": { "analysis": analysis } } }));
    let key = "argo-rollouts.argoproj.io/controller-instance-id";
    fixture.label(key, "shop");
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.settle(at(10));
    assert_eq!(fixture.runs(), ["2 -", "2-0 -"]);
    for name in ["2", "2-0"] {
        assert_eq!(fixture.named_run(name)["metadata"]["labels"][key], "shop", "{name}");
    }
}
