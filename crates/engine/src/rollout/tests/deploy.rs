//! First deploys: what is made, what is found, what is in the way.

use std::sync::Arc;

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use crate::ask::{Answer, Class, Failure, Reply};
use crate::decision::ChangeId;
use crate::rollout::{decide, replica_sets};
use crate::world::World;

#[test]
fn a_first_deploy_takes_no_step_and_judges_nothing() {
    let analysis = json!({ "templates": [{ "templateName": "once" }] });
    let experiment = json!({ "templates": [{ "name": "a", "specRef": "canary" }] });
    let steps = json!([
        { "setWeight": 20 }, { "analysis": analysis }, { "experiment": experiment }, { "pause": {} },
    ]);
    let cases = [
        ("without steps", json!([]), Value::Null, Some("5ffbfbbd64")),
        ("with steps", steps, json!(4), None),
    ];
    for (what, steps, index, step_hash) in cases {
        let template = json!({ "metrics": [{ "name": "m", "provider": {} }] });
        let mut fixture = Fixture::canary(3, steps).with_template("once", template);
        fixture.patch_spec(json!({ "strategy": { "canary": { "analysis": analysis } } }));
        assert_eq!(fixture.reconcile(at(0)), ["create 1 size 3", "revision 1", "status"], "{what}");
        let (status, hash) = (fixture.status(), fixture.hash(0));
        assert_eq!(status["currentPodHash"], hash, "{what}");
        assert_eq!(status["stableRS"], hash, "{what}: stable before its pods are there");
        assert_eq!(status["currentStepIndex"], index, "{what}");
        assert!(step_hash.is_none_or(|known| status["currentStepHash"] == known), "{what}");
        let told = fixture.take_messages();
        assert_eq!(told[0], "Rollout resource added to informer: default/web", "{what}");
        let last = format!("Rollout completed update to revision 1 ({hash}): Initial deploy");
        assert_eq!(told.last(), Some(&last), "{what}");
        fixture.settle(at(1));
        assert_eq!(fixture.runs(), [""; 0], "{what}");
        assert_eq!(fixture.status()["phase"], "Healthy", "{what}");
    }
}

#[test]
fn a_number_of_replicas_that_is_not_said_is_written_down_as_one() {
    let mut fixture = Fixture::canary(5, json!([{ "setWeight": 20 }]));
    fixture.patch_spec(json!({ "replicas": null }));
    fixture.reconcile(at(0));
    assert_eq!(fixture.rollout()["spec"]["replicas"], 1);
    fixture.settle(at(1));
    assert_eq!((fixture.sizes(), fixture.status()["phase"].as_str()), (vec![1], Some("Healthy")));
    fixture.patch_spec(json!({ "replicas": null }));
    fixture.settle(at(2));
    assert_eq!(fixture.rollout()["spec"]["replicas"], 1, "an autoscaler finds it at any time");
    assert_eq!(fixture.reconcile(at(3)), [""; 0]);
}

/// A deployed Rollout whose status is lost, as after a restore from a manifest.
fn without_status(fixture: &mut Fixture) {
    let known = fixture.status();
    for field in known.as_object().unwrap().keys() {
        fixture.patch_status(json!({ field.as_str(): null }));
    }
    fixture.take_events();
}

#[test]
fn a_replica_set_that_is_there_already_is_found_not_made_again() {
    for (what, labelled) in [("by its hash", false), ("by the hash of Argo up to 1.8", true)] {
        let mut fixture = Fixture::canary(3, json!([{ "setWeight": 20 }]));
        fixture.settle(at(0));
        if labelled {
            let legacy = fixture.world().rollout.legacy_hash.to_string();
            let labels = &mut fixture.set(0)["metadata"]["labels"];
            labels["rollouts-pod-template-hash"] = json!(legacy);
            // A webhook has changed the pods: nothing but the label tells.
            fixture.set(0)["spec"]["template"]["spec"]["nodeName"] = json!("a");
        }
        without_status(&mut fixture);
        fixture.size(0, 3, 0);
        fixture.reconcile(at(10));
        assert_eq!(fixture.sizes(), [3], "{what}");
        let hash = fixture.hash(0);
        assert_eq!(fixture.status()["currentPodHash"], hash, "{what}: its own label counts");
        let told = ["RolloutAddedToInformer", "RolloutNotCompleted", "RolloutCompleted"];
        assert_eq!(fixture.take_events(), told, "{what}");
        fixture.settle(at(11));
        assert_eq!(fixture.status()["phase"], "Healthy", "{what}");
        assert_eq!(fixture.take_events(), [""; 0], "{what}: said once");
    }
}

#[test]
fn a_rollout_that_is_never_valid_is_greeted_all_the_same_and_once() {
    let mut fixture = Fixture::canary(3, json!([{ "setWeight": 101 }]));
    fixture.reconcile(at(0));
    assert_eq!(fixture.take_events(), ["RolloutAddedToInformer"]);
    fixture.patch_spec(json!({ "strategy": { "canary": { "steps": [{ "setWeight": 20 }] } } }));
    fixture.settle(at(1));
    assert_eq!(fixture.take_events()[..2], ["RolloutUpdated", "NewReplicaSetCreated"]);
}

/// What is found under the name of the new ReplicaSet: who controls it, its template, and the count
/// of collisions afterwards.
#[test]
fn a_name_that_is_taken_is_used_if_it_is_ours_and_equal_and_else_stepped_around() {
    let ours = "00000000-0000-4000-8000-000000000001";
    let cases = [
        ("ours and equal", ours, "web:v1", None),
        ("ours, with other pods", ours, "web:v9", Some(1)),
        ("somebody else's", "other", "web:v1", Some(1)),
    ];
    for (what, owner, image, collisions) in cases {
        let mut world = Fixture::canary(2, json!([])).world();
        let target = replica_sets::create_target(&world.rollout);
        let failure = Failure {
            class: Class::Exists,
            message: "already exists".into(),
            times: 1,
            retry_at: at(9),
        };
        world.recall.failed.insert(ChangeId::of("create", &target), failure);
        let waits = decide(&world, at(0));
        assert_eq!((waits.changes.len(), waits.asks.len()), (0, 1), "{what}: it is read first");
        answer(&mut world, &waits.asks[0].id, owner, image);
        let decision = decide(&world, at(0));
        assert_eq!(decision.changes, [], "{what}: nothing is made under this name");
        let status = decision.status.as_ref();
        assert_eq!(status.and_then(|status| status.collision_count), collisions, "{what}");
    }
}

fn answer(world: &mut World, id: &crate::ask::AskId, owner: &str, image: &str) {
    let found = json!({
        "metadata": { "ownerReferences": [{ "controller": true, "uid": owner }] },
        "spec": { "template": {
            "metadata": { "labels": { "app": "web", "rollouts-pod-template-hash": "x" } },
            "spec": { "containers": [{ "name": "web", "image": image }] },
        } },
    });
    let reply = Ok(Reply::Object(Some(Arc::new(found))));
    let answer = Answer { asked_at: at(0), answered_at: at(0), reply };
    world.answers.insert(id.clone(), answer);
}

#[test]
fn a_collision_changes_the_name_and_nothing_else() {
    let name = |fixture: &Fixture| replica_sets::create_target(&fixture.world().rollout).name;
    let mut fixture = Fixture::canary(2, json!([]));
    let first = name(&fixture);
    fixture.patch_status(json!({ "collisionCount": 1 }));
    assert_ne!(name(&fixture), first);
    fixture.settle(at(0));
    assert_eq!(fixture.status()["collisionCount"], 1);
    assert_eq!(fixture.status()["phase"], "Healthy");
}

#[test]
fn a_rollout_on_its_way_out_is_left_alone() {
    let mut fixture = Fixture::canary(5, json!([{ "setWeight": 20 }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    fixture.reconcile(at(1));
    let mut world = fixture.world();
    Arc::make_mut(&mut world.rollout).deleting = true;
    let decision = decide(&world, at(2));
    assert_eq!(decision.changes, []);
    assert_eq!((decision.status, decision.asks.len(), decision.wake_at), (None, 0, None));
}

#[test]
fn a_privileged_container_is_deployed_like_any_other() {
    let mut fixture = Fixture::canary(2, json!([]));
    let container = json!({ "name": "web", "image": "web:v1",
        "securityContext": { "privileged": true },
        "volumeMounts": [{ "name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional" }] });
    let pods = json!({ "containers": [container], "volumes": [{ "name": "v", "emptyDir": {} }] });
    fixture.patch_spec(json!({ "template": { "spec": pods } }));
    fixture.settle(at(0));
    assert_eq!(fixture.status()["phase"], "Healthy");
}
