//! Rollouts that refer to a Deployment, as tables.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use crate::decision::{Frees, Guard};
use crate::rollout::decide;

const GENERATION: &str = "rollout.argoproj.io/workload-generation";

fn image(tag: &str) -> Value {
    let containers = json!([{ "name": "web", "image": format!("web:{tag}") }]);
    json!({ "template": { "spec": { "containers": containers } } })
}

#[test]
fn an_edit_of_the_deployment_is_an_update_and_never_enters_the_rollout() {
    let mut fixture = Fixture::referring(5, "never", 3);
    assert_eq!(fixture.reconcile(at(0)), ["create 1 size 5", "revision 1", "status"]);
    fixture.settle(at(0));
    assert_eq!(fixture.rollout()["metadata"]["annotations"][GENERATION], "1");
    assert_eq!(fixture.status()["workloadObservedGeneration"], "1");
    assert_eq!(fixture.status()["selector"], "app=web", "the selector is the Deployment's");

    fixture.patch_deployment(image("v2"));
    fixture.settle(at(10));
    assert_eq!((fixture.status()["phase"].as_str(), fixture.sizes()), (Some("Paused"), vec![4, 1]));
    assert_eq!(fixture.rollout()["metadata"]["annotations"][GENERATION], "2");
    assert_eq!(fixture.set(1)["metadata"]["annotations"][GENERATION], "2", "its ReplicaSet too");
    assert_eq!(fixture.status()["workloadObservedGeneration"], "2");
    let spec = &fixture.rollout()["spec"];
    assert_eq!((&spec["template"], &spec["selector"]), (&Value::Null, &Value::Null));
    fixture.promote();
    fixture.settle(at(20));
    assert_eq!(
        (fixture.status()["phase"].as_str(), fixture.sizes()),
        (Some("Healthy"), vec![0, 5])
    );
    assert_eq!(fixture.deployment().as_ref().unwrap()["spec"]["replicas"], 3, "left alone");
}

#[test]
fn an_edit_beside_the_template_is_noted_and_changes_no_pods() {
    let mut fixture = Fixture::referring(2, "", 3);
    fixture.settle(at(0));
    fixture.patch_deployment(json!({ "replicas": 4 }));
    assert_eq!(fixture.reconcile(at(1)).len(), 3, "the ReplicaSet, the Rollout and its status");
    assert_eq!(fixture.status()["workloadObservedGeneration"], "2");
    assert_eq!((fixture.sizes(), fixture.reconcile(at(2))), (vec![2], vec![]));
}

/// Replicas, mode, ready pods of the first revision, the Deployment's size, its size afterwards,
/// and what the row shows.
const SIZES: &str = "
5 | progressively | 3 | 5 | 2 | one pod less for each that is ready
5 | progressively | 1 | 0 | 4 | and back when they are lost
5 | progressively | 0 | 5 | 5 | nothing is ready: nothing is given up
5 | progressively | 7 | 5 | 0 | never below none
5 | onsuccess     | 3 | 5 | 5 | not before the rollout is healthy
5 | never         | 5 | 5 | 5 | never
5 |               | 5 | 5 | 5 | the same as never";

#[test]
fn the_deployment_gives_up_its_pods_as_the_rollout_takes_over() {
    for row in SIZES.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [replicas, mode, ready, before, after, what] = cells[..] else { panic!("{row}") };
        let number = |text: &str| text.parse::<i32>().unwrap();
        let mut fixture = Fixture::referring(number(replicas), mode, number(before));
        fixture.reconcile(at(0));
        fixture.pods_follow();
        fixture.set(0)["status"]["readyReplicas"] = json!(number(ready));
        fixture.set(0)["status"]["availableReplicas"] = json!(0);
        for second in 1..6 {
            fixture.reconcile(at(second));
        }
        let deployment = fixture.deployment().as_ref().unwrap();
        assert_eq!(deployment["spec"]["replicas"], number(after), "{what}");
    }
}

#[test]
fn a_deployment_whose_rollout_was_healthy_stays_at_0_until_there_is_a_second_revision() {
    for mode in ["onsuccess", "progressively"] {
        let mut fixture = Fixture::referring(3, mode, 3);
        fixture.settle(at(0));
        let size = |fixture: &mut Fixture| {
            fixture.deployment().as_ref().unwrap()["spec"]["replicas"].clone()
        };
        assert_eq!(size(&mut fixture), 0, "{mode}");
        fixture.patch_spec(json!({ "replicas": 6 }));
        fixture.reconcile(at(1));
        fixture.reconcile(at(2));
        assert_eq!(size(&mut fixture), 0, "{mode}: more pods are the rollout's affair");
        fixture.settle(at(3));
        fixture.patch_deployment(image("v2"));
        fixture.settle(at(4));
        fixture.patch_deployment(json!({ "replicas": 2 }));
        fixture.settle(at(5));
        assert_eq!(size(&mut fixture), 2, "{mode}: the take-over is over");
    }
}

/// What the Rollout refers to, what the user reads, and what the row shows.
#[test]
fn a_workload_that_cannot_be_used_makes_the_spec_invalid_until_it_can() {
    let named = |version: &str, kind: &str| json!({ "workloadRef": { "apiVersion": version, "kind": kind, "name": "web" } });
    let labelled = json!({ "template": { "metadata": { "labels": { "app": "web" } } } });
    let cases = [
        (named("apps/v1", "Deployment"), "deployments.apps \"web\" not found"),
        (named("apps/v1", "ReplicaSet"), "replicasets.apps \"web\" not found"),
        (named("v1", "PodTemplate"), "podtemplates \"web\" not found"),
        (named("apps/v1", "StatefulSet"), "workload of type apps/StatefulSet is not supported"),
        (named("v1", "Pod"), "workload of type /Pod is not supported"),
        (
            named("apps/v1beta1", "Deployment"),
            "no matches for kind \"Deployment\" in version \"apps/v1beta1\"",
        ),
        (labelled, "template must be empty for workload reference rollout"),
    ];
    for (patch, error) in cases {
        let mut fixture = Fixture::referring(2, "", 3);
        *fixture.deployment() = None;
        fixture.patch_spec(patch);
        let decision = decide(&fixture.world(), at(0));
        assert_eq!(decision.wake_at, Some(at(20)), "{error}");
        let why = &decision.why[0];
        assert!(matches!(why.guard, Guard::InvalidSpec { .. }), "{error}");
        assert_eq!((&*why.field, &why.frees), ("spec.workloadRef", &Frees::Edit));
        assert_eq!(fixture.reconcile(at(0)), ["status"], "{error}");
        let message = format!("InvalidSpec: The Rollout \"web\" is invalid: {error}");
        assert_eq!(fixture.status()["message"], message);
        assert_eq!(fixture.reconcile(at(20)), [""; 0], "{error}: said once");
    }
}

#[test]
fn a_rollout_whose_deployment_vanishes_keeps_its_pods_and_recovers() {
    let mut fixture = Fixture::referring(2, "", 3);
    fixture.settle(at(0));
    let deployment = fixture.deployment().take();
    fixture.settle(at(1));
    assert_eq!((fixture.status()["phase"].as_str(), fixture.sizes()), (Some("Degraded"), vec![2]));
    *fixture.deployment() = deployment;
    fixture.settle(at(2));
    assert_eq!((fixture.status()["phase"].as_str(), fixture.sizes()), (Some("Healthy"), vec![2]));
}

#[test]
fn a_deployment_that_may_not_be_scaled_does_not_hold_up_the_rollout() {
    use crate::ask::{Class, Failure};
    use crate::decision::ChangeId;
    let mut fixture = Fixture::referring(3, "onsuccess", 3);
    fixture.settle_without_new_pods(at(0));
    fixture.pods_follow();
    let target = crate::rollout::workload::reference(&fixture.world().rollout).unwrap();
    let refused = Failure {
        class: Class::Denied,
        message: "forbidden".to_owned(),
        times: 1,
        retry_at: at(60),
    };
    fixture.recall().failed.insert(ChangeId::of("patch", &target), refused);
    fixture.settle(at(1));
    assert_eq!(fixture.status()["phase"], "Healthy");
    assert_eq!(decide(&fixture.world(), at(1)).wake_at, Some(at(60)), "it is tried again");
    fixture.settle(at(60));
    assert_eq!(fixture.deployment().as_ref().unwrap()["spec"]["replicas"], 0);
}
