//! Random cases: a Rollout with what it refers to, and a sequence of people's actions. The same seed
//! gives the same case.
//!
//! Whatever lasts in a case lasts either for at most two seconds or for longer than any case, so that
//! a side in which nothing changes for a moment is settled.

use gradus_api::names;
use gradus_lab::faults::Chance;
use serde_json::{Value, json};

use super::{
    case::{After, Case, Step},
    stage::{BAD, GOOD},
};

/// Ends within a checkpoint.
const SHORT_SECONDS: [u64; 2] = [1, 2];

/// Never ends within a case.
const LONG_SECONDS: u64 = 900;

/// People who race act within this time of each other.
const RACE_MILLISECONDS: u64 = 1_500;

/// Most actions of a case: each costs several seconds.
const ACTIONS: u64 = 5;

/// Weights of steps; both ends and some that leave a part of a pod.
const WEIGHTS: [u64; 9] = [0, 10, 20, 25, 40, 50, 60, 75, 100];

/// Who splits the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Basic,
    Nginx,
    Alb,
    BlueGreen,
}

/// The case of a seed, under the name `case<number>`.
pub fn case(seed: u64, number: u64) -> Case {
    let mut chance = Chance::new(seed);
    let name = format!("case{number}");
    let kinds =
        [Kind::Basic, Kind::Nginx, Kind::Nginx, Kind::Alb, Kind::BlueGreen, Kind::BlueGreen];
    let kind = chance.pick(&kinds).unwrap_or(Kind::Basic);
    let has_workload = chance.percent(12);
    let mut objects = Vec::new();
    let strategy = match kind {
        Kind::Basic => json!({ "canary": basic(&mut chance) }),
        Kind::Nginx | Kind::Alb => {
            objects.extend(["stable", "canary"].map(|role| service(&name, role)));
            objects.push(ingress(&name, kind));
            json!({ "canary": routed(&mut chance, &name, kind) })
        }
        Kind::BlueGreen => {
            objects.push(service(&name, "active"));
            let blue_green = blue_green(&mut chance, &name);
            if blue_green["previewService"].is_string() {
                objects.push(service(&name, "preview"));
            }
            json!({ "blueGreen": blue_green })
        }
    };
    if has_workload {
        objects.push(deployment(&name));
    }
    objects.push(rollout(&mut chance, &name, strategy, has_workload));
    let steps = steps(&mut chance, &name, has_workload);
    Case { seed, objects, steps }
}

fn rollout(chance: &mut Chance, name: &str, strategy: Value, has_workload: bool) -> Value {
    let mut spec = json!({
        "replicas": 1 + chance.below(5),
        "selector": { "matchLabels": { "app": name } },
        "strategy": strategy,
    });
    if has_workload {
        spec["workloadRef"] = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "name": format!("{name}-workload"),
        });
        if let Some(word) = chance.pick(&[None, Some("never"), Some("onsuccess")]).flatten() {
            spec["workloadRef"]["scaleDown"] = json!(word);
        }
    } else {
        spec["template"] = template(name);
    }
    if chance.percent(20) {
        spec["rollbackWindow"] = json!({ "revisions": 1 + chance.below(3) });
    }
    if chance.percent(15) {
        spec["revisionHistoryLimit"] = json!(chance.below(3));
    }
    if chance.percent(15) {
        spec["minReadySeconds"] = json!(1);
    }
    object(names::API_VERSION, names::kind::ROLLOUT, name, spec)
}

fn basic(chance: &mut Chance) -> Value {
    let mut canary = json!({});
    canary["steps"] = canary_steps(chance, false);
    limits(chance, &mut canary);
    metadata(chance, &mut canary, ["canaryMetadata", "stableMetadata"]);
    canary
}

fn routed(chance: &mut Chance, name: &str, kind: Kind) -> Value {
    let routing = match kind {
        Kind::Alb => json!({ "alb": { "ingress": format!("{name}-web"), "servicePort": 80,
            "rootService": format!("{name}-root") } }),
        _ => json!({ "nginx": { "stableIngress": format!("{name}-web") } }),
    };
    let mut canary = json!({
        "stableService": format!("{name}-stable"), "canaryService": format!("{name}-canary"),
        "trafficRouting": routing,
    });
    canary["steps"] = canary_steps(chance, true);
    limits(chance, &mut canary);
    metadata(chance, &mut canary, ["canaryMetadata", "stableMetadata"]);
    if chance.percent(15) {
        canary["dynamicStableScale"] = json!(true);
    } else {
        canary["scaleDownDelaySeconds"] = json!(delay(chance));
    }
    canary["abortScaleDownDelaySeconds"] = json!(delay(chance));
    if chance.percent(20) {
        canary["replicaProgressThreshold"] = match chance.percent(50) {
            true => json!({ "type": "Percent", "value": chance.pick(&[25, 50, 75]) }),
            false => json!({ "type": "Pods", "value": 1 }),
        };
    }
    canary
}

fn blue_green(chance: &mut Chance, name: &str) -> Value {
    let mut spec = json!({ "activeService": format!("{name}-active") });
    if chance.percent(70) {
        spec["previewService"] = json!(format!("{name}-preview"));
    }
    if chance.percent(60) {
        spec["autoPromotionEnabled"] = json!(false);
        if chance.percent(25) {
            spec["autoPromotionSeconds"] = json!(short(chance));
        }
    }
    if chance.percent(35) {
        spec["previewReplicaCount"] = json!(1 + chance.below(2));
    }
    spec["scaleDownDelaySeconds"] = json!(delay(chance));
    spec["abortScaleDownDelaySeconds"] = json!(delay(chance));
    if chance.percent(15) {
        spec["scaleDownDelayRevisionLimit"] = json!(chance.below(2));
    }
    metadata(chance, &mut spec, ["previewMetadata", "activeMetadata"]);
    spec
}

fn canary_steps(chance: &mut Chance, is_routed: bool) -> Value {
    let mut steps = Vec::new();
    for _ in 0..chance.below(5) {
        steps.push(match chance.below(if is_routed { 7 } else { 6 }) {
            0..=2 => json!({ "setWeight": chance.pick(&WEIGHTS) }),
            3 | 4 => json!({ "pause": {} }),
            5 => json!({ "pause": { "duration": short(chance) } }),
            _ => json!({ "setCanaryScale": { "replicas": 1 + chance.below(3) } }),
        });
    }
    steps.into()
}

fn limits(chance: &mut Chance, canary: &mut Value) {
    if !chance.percent(50) {
        return;
    }
    let surge = chance.pick(&["0", "1", "2", "50%"]).unwrap_or_default();
    let unavailable = chance.pick(&["0", "1", "25%"]).unwrap_or_default();
    // Both none would stop every update.
    let unavailable = if surge == "0" && unavailable == "0" { "1" } else { unavailable };
    let limit = |text: &str| text.parse::<u64>().map_or_else(|_| json!(text), |count| json!(count));
    canary["maxSurge"] = limit(surge);
    canary["maxUnavailable"] = limit(unavailable);
}

fn metadata(chance: &mut Chance, strategy: &mut Value, fields: [&str; 2]) {
    if chance.percent(15) {
        for field in fields {
            strategy[field] = json!({ "labels": { "role": field.to_lowercase() } });
        }
    }
}

fn steps(chance: &mut Chance, name: &str, has_workload: bool) -> Vec<Step> {
    let is_racing = chance.percent(33);
    let mut steps = vec![Step::settled(image(name, has_workload, &format!("{GOOD}2")))];
    for _ in 0..1 + chance.below(ACTIONS) {
        let action = action(chance, name, has_workload);
        let after = match is_racing && chance.percent(60) {
            true => After::Milliseconds(chance.below(RACE_MILLISECONDS)),
            false => After::Settled,
        };
        steps.push(Step { after, r#do: action });
    }
    steps
}

fn action(chance: &mut Chance, name: &str, has_workload: bool) -> Value {
    match chance.below(100) {
        0..=26 => image(name, has_workload, &format!("{GOOD}{}", 1 + chance.below(3))),
        27..=30 => image(name, has_workload, BAD),
        31..=52 => json!("promote"),
        53..=60 => json!("promoteFull"),
        61..=73 => json!("abort"),
        74..=80 => json!("retry"),
        81..=84 => json!("pause"),
        85..=88 => json!("resume"),
        _ => json!({ "scale": chance.below(6) }),
    }
}

/// A new image of the Rollout, or of the Deployment that it refers to.
fn image(name: &str, has_workload: bool, image: &str) -> Value {
    if !has_workload {
        return json!({ "setImage": image });
    }
    let containers = json!([{ "name": "app", "image": image }]);
    json!({ "patch": {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": format!("{name}-workload") },
        "spec": { "template": { "spec": { "containers": containers } } },
    } })
}

fn short(chance: &mut Chance) -> u64 {
    chance.pick(&SHORT_SECONDS).unwrap_or(SHORT_SECONDS[0])
}

fn delay(chance: &mut Chance) -> u64 {
    if chance.percent(50) { short(chance) } else { LONG_SECONDS }
}

fn template(name: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": name } },
        "spec": { "containers": [{ "name": "app", "image": format!("{GOOD}1") }] },
    })
}

fn deployment(name: &str) -> Value {
    let spec = json!({
        "replicas": 0,
        "selector": { "matchLabels": { "app": name } },
        "template": template(name),
    });
    object("apps/v1", "Deployment", &format!("{name}-workload"), spec)
}

fn service(name: &str, role: &str) -> Value {
    let spec = json!({ "selector": { "app": name }, "ports": [{ "port": 80 }] });
    object("v1", "Service", &format!("{name}-{role}"), spec)
}

fn ingress(name: &str, kind: Kind) -> Value {
    let (class, backend) = match kind {
        Kind::Alb => {
            let port = json!({ "name": "use-annotation" });
            ("alb", json!({ "name": format!("{name}-root"), "port": port }))
        }
        _ => ("nginx", json!({ "name": format!("{name}-stable"), "port": { "number": 80 } })),
    };
    let path = json!({ "path": "/", "pathType": "Prefix", "backend": { "service": backend } });
    let spec = json!({
        "ingressClassName": class,
        "rules": [{ "host": "app.example.com", "http": { "paths": [path] } }],
    });
    object("networking.k8s.io/v1", "Ingress", &format!("{name}-web"), spec)
}

fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_case_and_another_seed_another() {
        assert_eq!(case(7, 1), case(7, 1));
        assert_ne!(case(7, 1), case(8, 1));
        assert_eq!(case(7, 1).renamed("case2"), case(7, 2));
    }

    #[test]
    fn a_third_of_the_cases_races_and_every_action_can_be_done() {
        let cases: Vec<Case> = (0..1_000).map(|seed| case(seed, seed)).collect();
        let racing = cases.iter().filter(|case| case.is_racing()).count();
        assert!((200..400).contains(&racing), "{racing}");
        for case in &cases {
            assert_eq!(case.steps[0].after, After::Settled, "seed {}", case.seed);
            for step in &case.steps {
                assert!(step.action().is_ok(), "seed {}: {}", case.seed, step.r#do);
            }
        }
    }

    #[test]
    fn every_area_is_among_a_hundred_cases() {
        let texts: Vec<String> = (0..100).map(|seed| json!(case(seed, seed)).to_string()).collect();
        let areas = [
            "nginx",
            "\"alb\"",
            "blueGreen",
            "workloadRef",
            "rollbackWindow",
            "canaryMetadata",
            "activeMetadata",
            "replicaProgressThreshold",
            "previewReplicaCount",
            "dynamicStableScale",
            "setCanaryScale",
            "\"abort\"",
            "promoteFull",
            "\"pause\":{}",
        ];
        for area in areas {
            assert!(texts.iter().any(|text| text.contains(area)), "no case has {area}");
        }
    }
}
