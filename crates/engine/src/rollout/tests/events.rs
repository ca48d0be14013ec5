//! What is told, to the letter and in order: users filter by reasons, tools wait for them.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;
use super::rows::act;
use crate::ask::PluginReply;
use crate::decision::{Event, EventKind};

/// Plays blocks of `== second deed`, each followed by what is told until all has come to rest.
/// `<1>` stands for the hash of the first ReplicaSet; a warning begins with `!`.
fn hear(fixture: &mut Fixture, blocks: &str) {
    for block in blocks.trim().split("== ").skip(1) {
        let (head, expected) = block.split_once('\n').unwrap_or((block, ""));
        let (second, deed) = head.split_once(' ').unwrap_or((head, ""));
        act(fixture, deed.trim_end_matches(" stuck"));
        let now = at(second.parse().unwrap());
        if deed.ends_with("stuck") {
            fixture.settle_without_new_pods(now)
        } else {
            fixture.settle(now)
        }
        assert_eq!(told(fixture), expected.trim_end(), "{head}");
    }
}

fn told(fixture: &mut Fixture) -> String {
    let hashes: Vec<String> = (0..fixture.sizes().len()).map(|set| fixture.hash(set)).collect();
    let line = |event: Event| {
        let mut text = format!("{} {}", event.reason, event.message);
        for (hash, number) in hashes.iter().zip(1..) {
            text = text.replace(hash, &format!("<{number}>"));
        }
        let is_warning = event.kind == EventKind::Warning;
        let text = if is_warning { format!("! {text}") } else { text };
        text.trim_end().to_owned()
    };
    fixture.take_told().into_iter().map(line).collect::<Vec<_>>().join("\n")
}

const ROUTED: &str = "
== 0 image v1
RolloutAddedToInformer Rollout resource added to informer: default/web
RolloutUpdated Rollout updated to revision 1
NewReplicaSetCreated Created ReplicaSet web-<1> (revision 1)
RolloutNotCompleted Rollout not completed, started update to revision 1 (<1>)
ScalingReplicaSet Scaled up ReplicaSet web-<1> (revision 1) from 0 to 5
RolloutCompleted Rollout completed update to revision 1 (<1>): Initial deploy
SwitchService Switched selector for service 'stable' from '' to '<1>'
SwitchService Switched selector for service 'canary' from '' to '<1>'
CreatingCanaryIngress Creating canary ingress `web-web-canary` with weight `0`
TrafficWeightUpdated Traffic weight updated to 0
== 100 image v2
RolloutUpdated Rollout updated to revision 2
NewReplicaSetCreated Created ReplicaSet web-<2> (revision 2)
RolloutNotCompleted Rollout not completed, started update to revision 2 (<2>)
TrafficWeightUpdated Traffic weight updated
ScalingReplicaSet Scaled up ReplicaSet web-<2> (revision 2) from 0 to 1
SwitchService Switched selector for service 'canary' from '<1>' to '<2>'
PatchingCanaryIngress Updating Ingress `web-web-canary` to desiredWeight '20'
TrafficWeightUpdated Traffic weight updated from 0 to 20
RolloutStepCompleted Rollout step 1/6 completed (setWeight: 20)
RolloutPaused Rollout is paused (CanaryPauseStep)
== 200
RolloutStepCompleted Rollout step 2/6 completed (pause: 10s)
RolloutResumed Rollout is resumed
== 300 turns 2-2 Running
AnalysisRunRunning Step Analysis Run 'web-<2>-2-2' Status New: 'Running' Previous: ''
== 400 turns 2-2 Successful
AnalysisRunSuccessful Step Analysis Run 'web-<2>-2-2' Status New: 'Successful' Previous: 'Running'
RolloutStepCompleted Rollout step 3/6 completed (analysis)
ScalingReplicaSet Scaled up ReplicaSet web-<2> (revision 2) from 1 to 3
RolloutStepCompleted Rollout step 4/6 completed (setCanaryScale{weight: 50})
ScalingReplicaSet Scaled down ReplicaSet web-<2> (revision 2) from 3 to 1
RolloutStepCompleted Rollout step 5/6 completed (setCanaryScale{matchTrafficWeight: true})
RolloutPaused Rollout is paused (CanaryPauseStep)
== 500 abort
SwitchService Switched selector for service 'canary' from '<2>' to '<1>'
PatchingCanaryIngress Updating Ingress `web-web-canary` to desiredWeight '0'
TrafficWeightUpdated Traffic weight updated from 20 to 0
! RolloutAborted Rollout aborted update to revision 2
== 510 retry
SwitchService Switched selector for service 'canary' from '<1>' to '<2>'
PatchingCanaryIngress Updating Ingress `web-web-canary` to desiredWeight '20'
TrafficWeightUpdated Traffic weight updated from 0 to 20
RolloutStepCompleted Rollout step 1/6 completed (setWeight: 20)
RolloutPaused Rollout is paused (CanaryPauseStep)
== 600
RolloutStepCompleted Rollout step 2/6 completed (pause: 10s)
RolloutResumed Rollout is resumed
== 700 turns 2-2.1 Failed m: 3
! AnalysisRunFailed Step Analysis Run 'web-<2>-2-2.1' Status New: 'Failed' Previous: ''
! RolloutAborted Rollout aborted update to revision 2: Step-based analysis phase error/failed: m: 3
SwitchService Switched selector for service 'canary' from '<2>' to '<1>'
PatchingCanaryIngress Updating Ingress `web-web-canary` to desiredWeight '0'
TrafficWeightUpdated Traffic weight updated from 20 to 0
== 710 full
ScalingReplicaSet Scaled up ReplicaSet web-<2> (revision 2) from 1 to 5
SwitchService Switched selector for service 'canary' from '<1>' to '<2>'
RolloutCompleted Rollout completed update to revision 2 (<2>): Full promotion requested
SwitchService Switched selector for service 'stable' from '<1>' to '<2>'
TrafficWeightUpdated Traffic weight updated
== 800
ScalingReplicaSet Scaled down ReplicaSet web-<1> (revision 1) from 5 to 0";

#[test]
fn a_routed_update_tells_what_it_does_in_the_order_it_is_done() {
    let once = json!({ "metrics": [{ "name": "m", "provider": { "web": { "url": "x" } } }] });
    let analysis = json!({ "templates": [{ "templateName": "once" }] });
    let scale = |scale: Value| json!({ "setCanaryScale": scale });
    let steps = json!([
        { "setWeight": 20 }, { "pause": { "duration": "10s" } }, { "analysis": analysis },
        scale(json!({ "weight": 50 })), scale(json!({ "matchTrafficWeight": true })),
        { "pause": {} },
    ]);
    let mut fixture = Fixture::nginx(5, json!({ "steps": steps })).with_template("once", once);
    hear(&mut fixture, ROUTED);
}

/// Basic, of one pod; 50 %, then a person; one revision in the window; a deadline that aborts.
const BASIC: &str = r#"
== 0 image v1
RolloutAddedToInformer Rollout resource added to informer: default/web
RolloutUpdated Rollout updated to revision 1
NewReplicaSetCreated Created ReplicaSet web-<1> (revision 1)
RolloutNotCompleted Rollout not completed, started update to revision 1 (<1>)
ScalingReplicaSet Scaled up ReplicaSet web-<1> (revision 1) from 0 to 1
RolloutCompleted Rollout completed update to revision 1 (<1>): Initial deploy
== 10 image v2
RolloutUpdated Rollout updated to revision 2
NewReplicaSetCreated Created ReplicaSet web-<2> (revision 2)
RolloutNotCompleted Rollout not completed, started update to revision 2 (<2>)
ScalingReplicaSet Scaled up ReplicaSet web-<2> (revision 2) from 0 to 1
RolloutStepCompleted Rollout step 1/2 completed (setWeight: 50)
RolloutPaused Rollout is paused (CanaryPauseStep)
== 20 pause
== 30 resume
== 40 promote
RolloutStepCompleted Rollout step 2/2 completed (pause)
ScalingReplicaSet Scaled down ReplicaSet web-<1> (revision 1) from 1 to 0
RolloutCompleted Rollout completed update to revision 2 (<2>): Completed all 2 canary steps
== 50 image v3 stuck
RolloutUpdated Rollout updated to revision 3
NewReplicaSetCreated Created ReplicaSet web-<3> (revision 3)
RolloutNotCompleted Rollout not completed, started update to revision 3 (<3>)
ScalingReplicaSet Scaled up ReplicaSet web-<3> (revision 3) from 0 to 1
== 200 stuck
! RolloutAborted ReplicaSet "web-<3>" has timed out progressing.
! RolloutAborted Rollout aborted update to revision 3: ReplicaSet "web-<3>" has timed out progressing.
ScalingReplicaSet Scaled down ReplicaSet web-<3> (revision 3) from 1 to 0
== 300 image v2
RolloutUpdated Rollout updated to revision 4
SkipSteps Rollback to stable ReplicaSets
== 310 image v1
RolloutUpdated Rollout updated to revision 5
RolloutNotCompleted Rollout not completed, started update to revision 5 (<1>)
ScalingReplicaSet Scaled up ReplicaSet web-<1> (revision 5) from 0 to 1
ScalingReplicaSet Scaled down ReplicaSet web-<2> (revision 4) from 1 to 0
RolloutCompleted Rollout completed update to revision 5 (<1>): Rollback within window"#;

#[test]
fn a_basic_update_tells_what_it_does_in_the_order_it_is_done() {
    let mut fixture = Fixture::canary(1, json!([{ "setWeight": 50 }, { "pause": {} }]));
    fixture.patch_spec(json!({ "rollbackWindow": { "revisions": 1 },
        "progressDeadlineSeconds": 60, "progressDeadlineAbort": true }));
    hear(&mut fixture, BASIC);
}

/// Two pods, promoted by a person after an analysis.
const BLUE_GREEN: &str = "
== 0 image v1
RolloutAddedToInformer Rollout resource added to informer: default/web
RolloutUpdated Rollout updated to revision 1
NewReplicaSetCreated Created ReplicaSet web-<1> (revision 1)
SwitchService Switched selector for service 'preview' from '' to '<1>'
ScalingReplicaSet Scaled up ReplicaSet web-<1> (revision 1) from 0 to 2
RolloutCompleted Rollout completed update to revision 1 (<1>): Initial deploy
SwitchService Switched selector for service 'active' from '' to '<1>'
== 10 image v2
RolloutUpdated Rollout updated to revision 2
NewReplicaSetCreated Created ReplicaSet web-<2> (revision 2)
SwitchService Switched selector for service 'preview' from '<1>' to '<2>'
RolloutNotCompleted Rollout not completed, started update to revision 2 (<2>)
ScalingReplicaSet Scaled up ReplicaSet web-<2> (revision 2) from 0 to 2
== 20 turns 2-pre Inconclusive
AnalysisRunInconclusive PrePromotion Analysis Run 'web-<2>-2-pre' Status New: 'Inconclusive' Previous: ''
RolloutPaused Rollout is paused (InconclusiveAnalysisRun)
== 30 promote
== 40 turns 2-pre.1 Successful
AnalysisRunSuccessful PrePromotion Analysis Run 'web-<2>-2-pre.1' Status New: 'Successful' Previous: ''
RolloutPaused Rollout is paused (BlueGreenPause)
== 50 promote
SwitchService Switched selector for service 'active' from '<1>' to '<2>'
RolloutCompleted Rollout completed update to revision 2 (<2>): Completed blue-green update
== 60 image v1
RolloutUpdated Rollout updated to revision 3
SwitchService Switched selector for service 'preview' from '<2>' to '<1>'
RolloutNotCompleted Rollout not completed, started update to revision 3 (<1>)
SwitchService Switched selector for service 'active' from '<2>' to '<1>'
RolloutCompleted Rollout completed update to revision 3 (<1>): Fast rollback
== 200
ScalingReplicaSet Scaled down ReplicaSet web-<2> (revision 2) from 2 to 0";

#[test]
fn a_blue_green_update_tells_what_it_does_in_the_order_it_is_done() {
    let once = json!({ "metrics": [{ "name": "m", "provider": { "web": { "url": "x" } } }] });
    let analysis = json!({ "templates": [{ "templateName": "once" }] });
    let strategy = json!({ "autoPromotionEnabled": false, "prePromotionAnalysis": analysis });
    hear(&mut Fixture::blue_green(2, strategy).with_template("once", once), BLUE_GREEN);
}

#[test]
fn a_replica_set_that_cannot_be_made_is_told_in_the_servers_words() {
    let mut fixture = Fixture::canary(1, json!([]));
    fixture.refuse("quota exceeded", at(5));
    fixture.reconcile(at(1));
    let hash = fixture.world().rollout.hash.to_string();
    let expected = format!(
        "RolloutAddedToInformer Rollout resource added to informer: default/web\n\
         ! ReplicaSetCreateError Failed to create new replica set \"web-{hash}\": quota exceeded"
    );
    assert_eq!(told(&mut fixture), expected);
    fixture.reconcile(at(2));
    assert_eq!(told(&mut fixture), "", "once");
}

#[test]
fn an_experiment_and_a_plugin_are_told_by_name() {
    let experiment = json!({ "templates": [{ "name": "a", "specRef": "canary" }] });
    let mut fixture = Fixture::canary(1, json!([{ "experiment": experiment }, { "pause": {} }]));
    fixture.settle(at(0));
    fixture.set_image("v2");
    told(&mut fixture);
    fixture.settle(at(10));
    let made = "ExperimentCreated Created Experiment 'web-<2>-2-0'";
    assert!(told(&mut fixture).lines().any(|line| line == made));

    let cases = [
        (
            PluginReply::Broken("away".to_owned()),
            "! StepPluginTransition Step plugin a (step 1) transitioned to Error",
        ),
        (
            PluginReply::Unusable("not there".to_owned()),
            "! ReconciliationError Reconciliation failed with error: could not create step plugin \
             at index 0 : not there",
        ),
    ];
    for (reply, line) in cases {
        let plugin = json!({ "plugin": { "name": "a" } });
        let mut fixture = Fixture::canary(1, json!([plugin, { "pause": {} }]));
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.plugin_answers(vec![reply]);
        fixture.settle(at(10));
        let heard = told(&mut fixture);
        assert!(heard.lines().any(|known| known == line), "{line} in:\n{heard}");
    }
}
