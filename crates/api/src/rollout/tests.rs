//! Steps by kind and in words, and the text of the JSON that hashes and comparisons rest on.

use serde_json::{Value, from_value, json, to_value};

use super::*;
use crate::decode::decode;

fn step(value: Value) -> CanaryStep {
    from_value(value).unwrap()
}

#[test]
fn a_step_is_named_in_events_as_users_know_it() {
    let cases = [
        (json!({ "setWeight": 20 }), "setWeight: 20"),
        (json!({ "pause": {} }), "pause"),
        (json!({ "pause": { "duration": "10s" } }), "pause: 10s"),
        (json!({ "pause": { "duration": 10 } }), "pause: 10"),
        (json!({ "experiment": { "templates": [] } }), "experiment"),
        (json!({ "analysis": {} }), "analysis"),
        (json!({ "setCanaryScale": { "weight": 25 } }), "setCanaryScale{weight: 25}"),
        (json!({ "setCanaryScale": { "replicas": 3 } }), "setCanaryScale{replicas: 3}"),
        (
            json!({ "setCanaryScale": { "matchTrafficWeight": true } }),
            "setCanaryScale{matchTrafficWeight: true}",
        ),
        (json!({ "plugin": { "name": "a/b" } }), "plugin: a/b"),
        (json!({ "setHeaderRoute": { "name": "h" } }), "setHeaderRoute: h"),
        (json!({ "setMirrorRoute": { "name": "m" } }), "setMirrorRoute: m"),
        (json!({}), "invalid"),
        (json!({ "setCanaryScale": { "replicas": 3 }, "setWeight": 5 }), "setWeight: 5"),
    ];
    for (value, text) in cases {
        assert_eq!(step(value).text(), text);
    }
}

#[test]
fn of_several_members_the_first_in_precedence_decides() {
    let all = json!({
        "pause": {}, "setCanaryScale": {}, "setWeight": 1, "experiment": {}, "analysis": {},
        "setHeaderRoute": {}, "setMirrorRoute": {}, "plugin": {},
    });
    let order = [
        "pause",
        "setCanaryScale",
        "setWeight",
        "experiment",
        "analysis",
        "setHeaderRoute",
        "setMirrorRoute",
        "plugin",
    ];
    let mut rest = all.as_object().unwrap().clone();
    for member in order {
        let found = match step(Value::Object(rest.clone())).kind() {
            StepKind::Pause(_) => "pause",
            StepKind::SetCanaryScale(_) => "setCanaryScale",
            StepKind::SetWeight(_) => "setWeight",
            StepKind::Experiment(_) => "experiment",
            StepKind::Analysis(_) => "analysis",
            StepKind::SetHeaderRoute(_) => "setHeaderRoute",
            StepKind::SetMirrorRoute(_) => "setMirrorRoute",
            StepKind::Plugin(_) => "plugin",
            StepKind::Empty => "empty",
        };
        assert_eq!(found, member);
        rest.remove(member);
    }
    assert_eq!(step(Value::Object(rest)).kind(), StepKind::Empty);
}

/// The step hash is made of this text.
#[test]
fn steps_are_written_field_by_field_as_go_writes_them() {
    let written = [
        r#"{"setWeight":20}"#,
        r#"{"pause":{}}"#,
        r#"{"pause":{"duration":10}}"#,
        r#"{"pause":{"duration":"1h"}}"#,
        r#"{"analysis":{"templates":[{"templateName":"a"}]}}"#,
        concat!(
            r#"{"analysis":{"templates":[{"templateName":"a","clusterScope":false}],"#,
            r#""args":[{"name":"x","value":"1"},{"name":"y","valueFrom":{"#,
            r#""podTemplateHashValue":"Latest","fieldRef":{"fieldPath":"metadata.name"}}}],"#,
            r#""dryRun":[{"metricName":".*"}],"#,
            r#""measurementRetention":[{"metricName":"m","limit":0}],"#,
            r#""analysisRunMetadata":{}}}"#,
        ),
        concat!(
            r#"{"experiment":{"templates":[{"name":"t","specRef":"canary","replicas":0,"#,
            r#""metadata":{"labels":{"a":"b"}},"selector":{"matchLabels":{"a":"b"}},"#,
            r#""weight":0,"service":{}}],"duration":"1h","analyses":[{"name":"n","#,
            r#""templateName":"t","clusterScope":true,"requiredForCompletion":true}],"#,
            r#""analysisRunMetadata":{},"scaleDownDelaySeconds":0}}"#,
        ),
        r#"{"setCanaryScale":{"weight":0,"replicas":0,"matchTrafficWeight":true}}"#,
        concat!(
            r#"{"setHeaderRoute":{"name":"h","match":[{"headerName":"k","#,
            r#""headerValue":{"exact":"e","prefix":"p","regex":"r"}}]}}"#,
        ),
        concat!(
            r#"{"setMirrorRoute":{"name":"","match":[{"method":{},"path":{},"#,
            r#""headers":{"k":{"exact":"v"}}}],"percentage":0}}"#,
        ),
        r#"{"plugin":{"name":"p","config":{"a":1,"b":[null]}}}"#,
    ];
    for text in written {
        let step: CanaryStep = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&step).unwrap(), text);
    }
}

#[test]
fn an_empty_status_is_written_as_go_writes_it() {
    let text = serde_json::to_string(&RolloutStatus::default()).unwrap();
    assert_eq!(text, r#"{"canary":{},"blueGreen":{}}"#);
}

#[test]
fn a_status_survives_a_round_trip() {
    let time = "2026-08-17T10:11:12Z";
    let run = json!({ "name": "r", "status": "" });
    let status = json!({
        "HPAReplicas": 3, "abort": true, "abortedAt": time, "availableReplicas": 2,
        "alb": { "loadBalancer": { "name": "n", "arn": "a" }, "canaryTargetGroup":
            { "name": "", "arn": "" }, "stableTargetGroup": { "name": "", "arn": "" } },
        "blueGreen": { "activeSelector": "h", "prePromotionAnalysisRunStatus": run },
        "canary": {
            "currentStepAnalysisRunStatus": run,
            "weights": {
                "canary": { "weight": 0, "podTemplateHash": "h" },
                "stable": { "weight": 100, "serviceName": "s" }, "verified": false,
            },
            "stepPluginStatuses": [{ "index": 0, "name": "p", "operation": "Run",
                "status": { "x": [1] }, "startedAt": time, "backoff": "30s" }],
        },
        "collisionCount": 0, "conditions": [{ "type": "Paused", "status": "True", "reason": "",
            "message": "", "lastUpdateTime": time, "lastTransitionTime": time }],
        "controllerPause": true, "currentPodHash": "h", "currentStepHash": "s",
        "currentStepIndex": 0, "duration": { "rolloutStartedAt": time,
            "totalManualPauseDurationSeconds": 0, "completionStatus": "Promoted" },
        "message": "CanaryPauseStep", "observedGeneration": "7",
        "pauseConditions": [{ "reason": "CanaryPauseStep", "startTime": time }],
        "phase": "Paused", "promoteFull": true, "readyReplicas": 2, "replicas": 3,
        "restartedAt": time, "selector": "app=web", "stableRS": "t", "updatedReplicas": 1,
        "workloadObservedGeneration": "1",
    });
    let (decoded, errors) = decode::<RolloutStatus>(&status);
    assert_eq!(errors, []);
    assert_eq!(to_value(&decoded).unwrap(), status);
    assert_eq!(decoded.condition("Paused").unwrap().status, "True");
    assert_eq!(decoded.pause_condition("BlueGreenPause"), None);
}
