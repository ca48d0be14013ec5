//! Specs that cannot be carried out.

use super::*;

#[test]
fn a_spec_that_is_wrong_ends_the_run_with_its_reason() {
    let with = |field: &str, rules: Value| json!({ "metrics": [web(json!({}))], field: rules });
    let limits = json!({ "count": 2, "interval": "1s", "failureLimit": 2,
        "consecutiveSuccessLimit": 1 });
    let cases = [
        (json!({ "metrics": [] }), "no metrics specified"),
        (json!({ "metrics": [web(json!({})), web(json!({}))] }), "metrics[1]: duplicate name 'm'"),
        (
            one(json!({ "consecutiveSuccessLimit": -1 })),
            "metrics[0]: consecutiveSuccessLimit must be >= 0",
        ),
        (
            one(json!({ "failureLimit": -2 })),
            "metrics[0]: failureLimit must be >= 0, or -1 to be disabled",
        ),
        (
            one(json!({ "failureLimit": -1 })),
            "metrics[0]: failureLimit and consecutiveSuccessLimit cannot both be disabled",
        ),
        (one(json!({ "inconclusiveLimit": -1 })), "metrics[0]: inconclusiveLimit must be >= 0"),
        (
            one(json!({ "consecutiveErrorLimit": -1 })),
            "metrics[0]: consecutiveErrorLimit must be >= 0",
        ),
        (
            one(limits),
            "metrics[0]: count (2) must be >= failureLimit + consecutiveSuccessLimit (2 + 1) if both >= 0",
        ),
        (
            one(json!({ "count": 1, "failureLimit": -1, "consecutiveSuccessLimit": 2 })),
            "metrics[0]: count must be >= consecutiveSuccessLimit",
        ),
        (
            one(json!({ "count": 1, "inconclusiveLimit": 2 })),
            "metrics[0]: count must be >= inconclusiveLimit",
        ),
        (one(json!({ "count": 2 })), "metrics[0]: interval must be specified when count > 1"),
        (
            one(json!({ "interval": "x" })),
            "metrics[0]: invalid interval string: time: invalid duration \"x\"",
        ),
        (
            one(json!({ "initialDelay": "1" })),
            "metrics[0]: invalid startDelay string: time: missing unit in duration \"1\"",
        ),
        (one(json!({ "provider": {} })), "metrics[0]: no provider specified"),
        (
            one(json!({ "provider": { "web": {}, "job": {} } })),
            "metrics[0]: multiple providers specified",
        ),
        (
            with("dryRun", json!([{ "metricName": "m" }, { "metricName": "x" }])),
            "dryRun[1]: Rule didn't match any metric name(s)",
        ),
        (
            with("measurementRetention", json!([{ "metricName": "*", "limit": 1 }])),
            "measurementRetention[0]: Rule didn't match any metric name(s)",
        ),
    ];
    for (spec, expected) in cases {
        let mut play = Play::new(spec.clone(), "");
        play.go(60);
        let status = play.status();
        assert_eq!(status.message, format!("Analysis spec invalid: {expected}"), "{spec}");
        assert_eq!((&*status.phase, status.completed_at), ("Error", None), "{spec}");
        assert_eq!(play.events, ["AnalysisRunError Analysis Completed. Result: Error"], "{spec}");
    }
}

#[test]
fn arguments_without_a_value_end_the_run() {
    let with = |args: Value, condition: &str| {
        let mut spec = one(json!({ "successCondition": condition }));
        spec["args"] = args;
        spec
    };
    let secret =
        json!([{ "name": "s", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "k" } } }]);
    let mut secret_url = with(secret, "");
    secret_url["metrics"][0]["provider"]["web"]["url"] = json!("http://w/{{args.s}}");
    let cases = [
        (with(json!([{ "name": "a" }]), ""), "", "argument \"a\" was not supplied"),
        (with(json!([]), "{{args.a}}"), "", "failed to resolve {{args.a}}"),
        (secret_url, "S", "secrets \"keys\" not found"),
    ];
    for (spec, answers, expected) in cases {
        let mut play = Play::new(spec, answers);
        play.go(60);
        let expected = format!("Unable to resolve metric arguments: {expected}");
        assert_eq!((&*play.status().phase, &*play.status().message), ("Error", &*expected));
    }
}

#[test]
fn arguments_reach_limits_conditions_and_requests() {
    let mut spec = one(json!({ "interval": "{{args.every}}", "count": "{{args.count}}",
        "successCondition": "result >= {{ args.least }}" }));
    spec["args"] = json!([{ "name": "every", "value": "5s" }, { "name": "count", "value": "2" },
        { "name": "least", "value": "3" }]);
    let mut play = Play::new(spec, "4 2");
    play.go(60);
    assert_eq!((&*play.status().phase, play.result("m").count), ("Failed", 2));
}

#[test]
fn a_secret_that_cannot_be_read_now_changes_nothing() {
    let mut play = Play::new(one(json!({})), "-");
    play.settle();
    let ask = decide(&play.world, play.now).asks.remove(0);
    let retry_at = play.now + SignedDuration::from_secs(3);
    let failure = Failure {
        class: crate::ask::Class::Unreachable,
        message: "away".into(),
        times: 1,
        retry_at,
    };
    let answer = Answer { asked_at: play.now, answered_at: play.now, reply: Err(failure) };
    play.world.answers.insert(ask.id.clone(), answer);
    let decision = decide(&play.world, play.now);
    assert_eq!((decision.status, decision.wake_at), (None, Some(retry_at)));
    assert_eq!(decision.asks[0].id, ask.id, "it is still asked for");
}
