//! Every rule of the first stage, by the first error it gives.

use serde_json::{Value, json};

use super::*;
use crate::decode::decode;

/// A spec without a mistake, with `change` merged into it (null removes).
fn spec(change: Value) -> RolloutSpec {
    let mut value = json!({
        "selector": { "matchLabels": { "app": "web" } },
        "template": {
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
        },
        "strategy": { "canary": {} },
    });
    merge(&mut value, change);
    let (spec, errors) = decode(&value);
    assert_eq!(errors, []);
    spec
}

fn merge(value: &mut Value, change: Value) {
    match (value, change) {
        (Value::Object(map), Value::Object(change)) => {
            for (key, change) in change {
                if change.is_null() {
                    map.remove(&key);
                } else {
                    merge(map.entry(key).or_insert(Value::Null), change);
                }
            }
        }
        (value, change) => *value = change,
    }
}

fn first_error(change: Value) -> String {
    let errors = validate(&spec(change), Source::Written);
    errors.first().map(ToString::to_string).unwrap_or_default()
}

fn check(cases: &[(&str, Value, &str)]) {
    for (what, change, expected) in cases {
        assert_eq!(first_error(change.clone()), *expected, "{what}");
    }
}

fn canary(change: Value) -> Value {
    json!({ "strategy": { "canary": change } })
}

fn blue_green(change: Value) -> Value {
    json!({ "strategy": { "canary": null, "blueGreen": change } })
}

/// One step, with the routing given.
fn step(step: Value, routing: Value) -> Value {
    canary(json!({ "steps": [step], "trafficRouting": routing, "stableService": "s",
        "canaryService": "c" }))
}

fn pod(change: Value) -> Value {
    json!({ "template": { "spec": change } })
}

#[test]
fn a_sound_spec_has_no_errors() {
    check(&[
        ("a canary", json!({}), ""),
        ("a blue-green", blue_green(json!({ "activeService": "a" })), ""),
        ("no replicas at all", json!({ "replicas": 0 }), ""),
        (
            "a workload instead of a template",
            json!({ "workloadRef": { "name": "w" },
            "selector": null, "template": null }),
            "",
        ),
        (
            "a selector of expressions",
            json!({ "selector": { "matchLabels": null,
            "matchExpressions": [{ "key": "app", "operator": "In", "values": ["web"] }] } }),
            "",
        ),
    ]);
}

#[test]
fn the_top_level_is_checked_in_order() {
    check(&[
        (
            "negative replicas",
            json!({ "replicas": -1 }),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "no selector",
            json!({ "selector": null }),
            "spec.selector: Required value: Rollout has missing field '.spec.selector'",
        ),
        (
            "an empty selector",
            json!({ "selector": { "matchLabels": null } }),
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        (
            "an unknown operator",
            json!({ "selector": { "matchExpressions": [{ "key": "a", "operator": "Near" }] } }),
            "spec.selector.matchExpressions[0].operator: Invalid value: \"Near\": not a valid \
             selector operator",
        ),
        (
            "both a workload and a template",
            json!({ "workloadRef": { "name": "w" } }),
            "spec.template: Internal error: template must be empty for workload reference rollout",
        ),
        (
            "another label",
            json!({ "template": { "metadata": { "labels": { "app": "<b>" } } } }),
            "spec.template.metadata.labels: Invalid value: {\"app\":\"\\u003cb\\u003e\"}: \
             `selector` does not match template `labels`",
        ),
        (
            "no label",
            json!({ "template": { "metadata": null } }),
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match \
             template `labels`",
        ),
        (
            "negative minReadySeconds",
            json!({ "minReadySeconds": -1 }),
            "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "negative revisionHistoryLimit",
            json!({ "revisionHistoryLimit": -1 }),
            "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "a deadline too short",
            json!({ "progressDeadlineSeconds": 5, "minReadySeconds": 5 }),
            "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
        ),
        (
            "no strategy",
            json!({ "strategy": { "canary": null } }),
            "spec.strategy.strategy: Required value: Rollout has missing field \
             '.spec.strategy.canary or .spec.strategy.blueGreen'",
        ),
        (
            "two strategies",
            json!({ "strategy": { "blueGreen": { "activeService": "a" } } }),
            "spec.strategy.strategy: Invalid value: \"blueGreen: true canary: true\": Multiple \
             Strategies can not be listed",
        ),
        (
            "the first of several",
            json!({ "replicas": -2, "minReadySeconds": -1 }),
            "spec.replicas: Invalid value: -2: must be greater than or equal to 0",
        ),
    ]);
}

#[test]
fn a_resolved_template_is_checked_like_a_written_one() {
    let change = json!({ "workloadRef": { "name": "w" }, "template": { "spec": null } });
    let errors = validate(&spec(change), Source::Resolved);
    assert_eq!(errors[0].to_string(), "spec.template.spec.containers: Required value");
}

#[test]
fn pods_must_be_such_as_a_replica_set_accepts() {
    let container = |change: Value| {
        let mut container = json!({ "name": "web", "image": "web:1" });
        merge(&mut container, change);
        pod(json!({ "containers": [container] }))
    };
    let at = "spec.template.spec";
    let cases = [
        ("no container", pod(json!({ "containers": [] })), "containers: Required value"),
        ("no name", container(json!({ "name": null })), "containers[0].name: Required value"),
        ("no image", container(json!({ "image": null })), "containers[0].image: Required value"),
        (
            "dots in a name",
            container(json!({ "name": "a.b" })),
            "containers[0].name: Invalid value: \"a.b\": must not contain dots",
        ),
        (
            "a name twice",
            pod(json!({ "initContainers": [{ "name": "web", "image": "i" }] })),
            "initContainers[0].name: Duplicate value: \"web\"",
        ),
        (
            "a port too high",
            container(json!({ "ports": [{ "containerPort": 70000 }] })),
            "containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and \
             65535, inclusive",
        ),
        (
            "no such volume",
            container(json!({ "volumeMounts": [{ "name": "v", "mountPath": "/v" }] })),
            "containers[0].volumeMounts[0].name: Not found: \"v\"",
        ),
        (
            "an unknown pull policy",
            container(json!({ "imagePullPolicy": "Often" })),
            "containers[0].imagePullPolicy: Unsupported value: \"Often\": supported values: \
             \"Always\", \"IfNotPresent\", \"Never\"",
        ),
        (
            "a probe of an init container",
            pod(json!({ "initContainers": [
            { "name": "i", "image": "i", "readinessProbe": {} }] })),
            "initContainers[0].readinessProbe: Forbidden: may not be set for init containers \
             without restartPolicy=Always",
        ),
        (
            "never restarted",
            pod(json!({ "restartPolicy": "Never" })),
            "restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
        ),
        (
            "an unknown restart policy",
            pod(json!({ "restartPolicy": "Often" })),
            "restartPolicy: Unsupported value: \"Often\": supported values: \"Always\", \
             \"OnFailure\", \"Never\"",
        ),
        (
            "a deadline",
            pod(json!({ "activeDeadlineSeconds": 5 })),
            "activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not \
             Supported",
        ),
        (
            "ephemeral containers",
            pod(json!({ "ephemeralContainers": [{ "name": "e" }] })),
            "ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template",
        ),
    ];
    for (what, change, expected) in cases {
        assert_eq!(first_error(change), format!("{at}.{expected}"), "{what}");
    }
}

#[test]
fn privileged_containers_are_allowed_as_they_are_written() {
    let privileged = |more: Value| {
        let mut context = json!({ "privileged": true });
        merge(&mut context, more);
        pod(json!({ "volumes": [{ "name": "v" }], "containers": [{ "name": "web", "image": "i",
            "securityContext": context, "volumeMounts": [
                { "name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional" }] }] }))
    };
    check(&[
        ("privileged with a shared mount", privileged(json!({})), ""),
        (
            "a shared mount alone",
            privileged(json!({ "privileged": false })),
            "spec.template.spec.containers[0].volumeMounts.mountPropagation: Forbidden: \
             Bidirectional mount propagation is available only to privileged containers",
        ),
    ]);
    let error = first_error(privileged(json!({ "allowPrivilegeEscalation": false })));
    assert!(
        error.ends_with("cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
    );
}

#[test]
fn a_blue_green_needs_two_services_and_enough_history() {
    check(&[
        (
            "equal services",
            blue_green(json!({ "activeService": "a", "previewService": "a" })),
            "spec.strategy.activeService: Invalid value: \"a\": This rollout uses the same service \
             for the active and preview services, but two different services are required.",
        ),
        (
            "no services",
            blue_green(json!({})),
            "spec.strategy.activeService: Invalid value: \"\": This rollout uses the same service \
             for the active and preview services, but two different services are required.",
        ),
        (
            "more delayed than kept",
            blue_green(json!({ "activeService": "a", "scaleDownDelayRevisionLimit": 11 })),
            "spec.strategy.scaleDownDelayRevisionLimit: Invalid value: 11: This rollout's revision \
             history limit can not be smaller than the rollout's scale down limit",
        ),
        (
            "neither affinity",
            blue_green(json!({ "activeService": "a", "antiAffinity": {} })),
            "spec.strategy.antiAffinity: Invalid value: \
             \"antiAffinity.PreferredDuringSchedulingIgnoredDuringExecution: false \
             antiAffinity.RequiredDuringSchedulingIgnoredDuringExecution: false\": AntiAffinity \
             must have exactly one strategy listed",
        ),
    ]);
}

#[test]
fn a_canary_is_checked_in_order() {
    let no_room = "MaxSurge and MaxUnavailable both can not be zero";
    let both = "Canary service and Stable service must to be set to use Traffic Routing";
    let ping_pong = |more: Value| {
        let mut change = json!({ "pingPong": { "pingService": "ping", "pongService": "pong" } });
        merge(&mut change, more);
        canary(change)
    };
    let cases = [
        ("no room to move", canary(json!({ "maxSurge": "0%", "maxUnavailable": 0 })),
            format!("maxSurge: Invalid value: \"0%\": {no_room}")),
        ("room that is no number", canary(json!({ "maxSurge": "abc", "maxUnavailable": "12.5%" })),
            format!("maxSurge: Invalid value: \"abc\": {no_room}")),
        ("equal services", canary(json!({ "stableService": "s", "canaryService": "s" })),
            "stableService: Invalid value: \"s\": This rollout uses the same service for the \
             stable and canary services, but two different services are required.".into()),
        ("ping-pong by another router", ping_pong(json!({ "trafficRouting": { "smi": {} } })),
            "trafficRouting.alb: Invalid value: null: Ping-pong feature works with the ALB, Istio, \
             and plugin-based traffic routers only".into()),
        ("half a ping-pong", ping_pong(json!({ "pingPong": { "pongService": "" } })),
            "pingPong.pongService: Invalid value: \"\": Ping service and Pong service must to be \
             set to use Ping-Pong feature".into()),
        ("ping is pong", ping_pong(json!({ "pingPong": { "pongService": "ping" } })),
            "pingPong.pingService: Invalid value: \"ping\": This rollout uses the same service for \
             the ping and pong services, but two different services are required.".into()),
        ("ping-pong without a root",
            ping_pong(json!({ "trafficRouting": { "alb": { "servicePort": 80 } } })),
            "trafficRouting.alb.rootService: Invalid value: \"\": Root service field is required \
             for the configuration with ALB and ping-pong feature enabled".into()),
        ("a router without services", canary(json!({ "trafficRouting": { "nginx": {} } })),
            format!("stableService: Invalid value: \"\": {both}")),
        ("a router with half of them",
            canary(json!({ "stableService": "s", "trafficRouting": { "smi": {} } })),
            format!("canaryService: Invalid value: \"\": {both}")),
        ("a delay without a router", canary(json!({ "scaleDownDelaySeconds": 1 })),
            "scaleDownDelaySeconds: Invalid value: 1: Canary scaleDownDelaySeconds can only be \
             used with traffic routing".into()),
        ("a dynamic stable without a router", canary(json!({ "dynamicStableScale": true })),
            "dynamicStableScale: Invalid value: true: Canary dynamicStableScale can only be used \
             with traffic routing".into()),
        ("a dynamic stable with a delay", canary(json!({ "dynamicStableScale": true,
            "scaleDownDelaySeconds": 1, "trafficRouting": { "plugins": { "a/b": {} } } })),
            "dynamicStableScale: Invalid value: true: Canary dynamicStableScale cannot be used \
             with scaleDownDelaySeconds".into()),
        ("a maximum that no router knows",
            canary(json!({ "trafficRouting": { "maxTrafficWeight": 1000 } })),
            "trafficRouting.maxTrafficWeight: Invalid value: 1000: Canary maxTrafficWeight in \
             traffic routing only supported in Nginx and Plugins".into()),
        ("a preference too strong", canary(json!({ "antiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": { "weight": 101 } } })),
            "antiAffinity.weight: Invalid value: 101: AntiAffinity weight must be between 1-100"
                .into()),
    ];
    for (what, change, expected) in cases {
        assert_eq!(first_error(change), format!("spec.strategy.{expected}"), "{what}");
    }
    let free = json!({ "istio": { "destinationRule": { "name": "d", "canarySubsetName": "c",
        "stableSubsetName": "s" } } });
    for routing in [json!({}), json!({ "plugins": { "a/b": {} } }), free] {
        assert_eq!(first_error(canary(json!({ "trafficRouting": routing }))), "", "{routing}");
    }
}

#[test]
fn a_step_must_be_one_that_can_be_carried_out() {
    let kind = "Step must have one of the following set: experiment, setWeight, setCanaryScale, \
                plugin or pause";
    let none = json!(null);
    let istio = json!({ "istio": { "virtualService": { "name": "v" } },
        "managedRoutes": [{ "name": "known" }] });
    let header = |value: Value| {
        json!({ "setHeaderRoute": { "name": "known", "match": [
            { "headerName": "h", "headerValue": value }] } })
    };
    let cases = [
        ("two kinds", step(json!({ "setWeight": 1, "pause": {} }), none.clone()),
            format!("steps[0]: Invalid value: \"step.Experiment: false step.Pause: true \
             step.SetWeight: true step.Analysis: false\": {kind}")),
        ("no kind", step(json!({}), none.clone()),
            format!("steps[0]: Invalid value: \"step.Experiment: true step.Pause: true \
             step.SetWeight: true step.Analysis: true step.SetCanaryScale: true \
             step.SetHeaderRoute: true step.SetMirrorRoutes: true step.Plugin: true\": {kind}")),
        ("too much weight", step(json!({ "setWeight": 101 }), none.clone()),
            "steps[0].setWeight: Invalid value: 101: SetWeight needs to be between 0 and 100".into()),
        ("a larger whole", step(json!({ "setWeight": 1001 }),
            json!({ "nginx": {}, "maxTrafficWeight": 1000 })),
            "steps[0].setWeight: Invalid value: 1001: SetWeight needs to be between 0 and 1000"
                .into()),
        ("an odd pause", step(json!({ "pause": { "duration": "soon" } }), none.clone()),
            "steps[0].pause.duration: Invalid value: -1: Duration needs to be greater than 0".into()),
        ("a scale without a router",
            step(json!({ "setCanaryScale": { "replicas": 1 } }), none.clone()),
            "trafficRouting: Required value: SetCanaryScale requires TrafficRouting to be set"
                .into()),
        ("a header route without a router", step(header(json!({ "exact": "x" })), none.clone()),
            "steps[0].setHeaderRoute: Invalid value: {\"name\":\"known\",\"match\":[{\"headerName\":\
             \"h\",\"headerValue\":{\"exact\":\"x\"}}]}: SetHeaderRoute requires TrafficRouting, \
             supports Istio and ALB and Apisix".into()),
        ("a header without a value", step(header(json!({})), istio.clone()),
            "steps[0].setHeaderRoute.match[0]: Invalid value: {}: StringMatch value missed, match \
             value must have one of the following: exact, regex, prefix".into()),
        ("two values", step(header(json!({ "exact": "x", "regex": "y" })), istio.clone()),
            "steps[0].setHeaderRoute.match[0]: Invalid value: {\"exact\":\"x\",\"regex\":\"y\"}: \
             StringMatch match value must have exactly one of the following: exact, regex, prefix"
                .into()),
        ("a prefix with ALB", step(header(json!({ "prefix": "x" })),
            json!({ "alb": { "servicePort": 1 }, "managedRoutes": [{ "name": "known" }] })),
            "steps[0].setHeaderRoute.match[0]: Invalid value: {\"prefix\":\"x\"}: SetHeaderRoute \
             match value invalid. ALB supports 'exact' value only".into()),
        ("a mirror without Istio",
            step(json!({ "setMirrorRoute": { "name": "m" } }), json!({ "smi": {} })),
            "steps[0].setMirrorRoute: Invalid value: {\"name\":\"m\"}: SetMirrorRoute requires \
             TrafficRouting, supports Istio and Plugins".into()),
        ("no managed routes", step(json!({ "setMirrorRoute": { "name": "m" } }),
            json!({ "plugins": { "a/b": {} } })),
            "trafficRouting.managedRoutes: Required value: Rollout has missing field \
             'spec.strategy.canary.trafficRouting.managedRoutes'".into()),
        ("an unknown route", step(json!({ "setHeaderRoute": { "name": "x" } }), istio.clone()),
            "steps[0].setHeaderRoute: Invalid value: \"x\": Steps define a route that does not \
             exist in spec.strategy.canary.trafficRouting.managedRoutes".into()),
    ];
    for (what, change, expected) in cases {
        assert_eq!(first_error(change), format!("spec.strategy.{expected}"), "{what}");
    }
    assert_eq!(first_error(step(header(json!({ "regex": "x" })), istio)), "");
}

#[test]
fn experiments_and_arguments_of_steps_are_checked() {
    let weighted = json!({ "experiment": { "templates": [
        { "name": "a", "specRef": "canary" }, { "name": "b", "specRef": "stable", "weight": 5 }] } });
    let argument = |path: &str| {
        json!({ "analysis": { "templates": [{ "templateName": "t" }], "args": [
            { "name": "a", "valueFrom": { "fieldRef": { "fieldPath": path } } }] } })
    };
    let at = "spec.strategy.steps[0]";
    assert_eq!(
        first_error(step(weighted.clone(), json!(null))),
        format!(
            "{at}.experiment.templates[1].weight: Invalid value: 5: Experiment template weight cannot \
         be set unless TrafficRouting is enabled"
        )
    );
    assert_eq!(
        first_error(step(weighted.clone(), json!({ "nginx": {} }))),
        format!(
            "{at}.experiment.templates[1].weight: Invalid value: 5: Experiment template weight is only \
         available for TrafficRouting with SMI, ALB, Istio and Plugins at this time"
        )
    );
    assert_eq!(first_error(step(weighted, json!({ "smi": {} }))), "");
    for good in ["metadata.name", "metadata.labels['app']", "metadata.annotations['A/b']", "spec.x"]
    {
        assert_eq!(first_error(step(argument(good), json!(null))), "", "{good}");
    }
    for bad in ["metadata", "metadata.other", "metadata.labels['a b']", "metadata.uid['x']"] {
        let value = json!([{ "name": "a", "valueFrom": { "fieldRef": { "fieldPath": bad } } }]);
        assert_eq!(
            first_error(step(argument(bad), json!(null))),
            format!(
                "{at}.analyses: Invalid value: {value}: Analyses arguments must refer to valid object \
             metadata supported by downwardAPI"
            ),
            "{bad}"
        );
    }
}
