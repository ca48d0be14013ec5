//! Random strategies: what an update goes through.

use gradus_lab::faults::Chance;
use serde_json::{Value, json};

use super::{Kind, LONG_SECONDS, SHORT_SECONDS};

/// Weights of steps; both ends and some that leave a part of a pod.
const WEIGHTS: [u64; 9] = [0, 10, 20, 25, 40, 50, 60, 75, 100];

/// The header route of a case.
const HEADER_ROUTE: &str = "header";

pub fn basic(chance: &mut Chance, name: &str) -> Value {
    let mut canary = json!({});
    if chance.percent(25) {
        canary["stableService"] = json!(format!("{name}-stable"));
        canary["canaryService"] = json!(format!("{name}-canary"));
    }
    canary["steps"] = canary_steps(chance, name, Kind::Basic);
    limits(chance, &mut canary);
    of_every_canary(chance, name, &mut canary);
    canary
}

pub fn routed(chance: &mut Chance, name: &str, kind: Kind) -> Value {
    let mut routing = match kind {
        Kind::Alb => json!({ "alb": { "ingress": format!("{name}-web"), "servicePort": 80,
            "rootService": format!("{name}-root") } }),
        _ => json!({ "nginx": { "stableIngress": format!("{name}-web") } }),
    };
    let mut canary = json!({
        "stableService": format!("{name}-stable"), "canaryService": format!("{name}-canary"),
    });
    if kind == Kind::Alb {
        routing["managedRoutes"] = json!([{ "name": HEADER_ROUTE }]);
    } else if chance.percent(10) {
        routing["maxTrafficWeight"] = json!(200);
    }
    if kind == Kind::Alb && chance.percent(20) {
        canary = json!({ "pingPong": {
            "pingService": format!("{name}-canary"), "pongService": format!("{name}-stable"),
        } });
    }
    canary["trafficRouting"] = routing;
    canary["steps"] = canary_steps(chance, name, kind);
    limits(chance, &mut canary);
    of_every_canary(chance, name, &mut canary);
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
    if chance.percent(12) {
        canary["minPodsPerReplicaSet"] = json!(1 + chance.below(3));
    }
    canary
}

pub fn blue_green(chance: &mut Chance, name: &str) -> Value {
    let mut spec = json!({ "activeService": format!("{name}-active") });
    if chance.percent(70) {
        spec["previewService"] = json!(format!("{name}-preview"));
    }
    if chance.percent(60) {
        spec["autoPromotionEnabled"] = json!(false);
    }
    if chance.percent(20) {
        spec["autoPromotionSeconds"] = json!(short(chance));
    }
    if chance.percent(35) {
        spec["previewReplicaCount"] = json!(1 + chance.below(2));
    }
    if chance.percent(25) {
        spec["prePromotionAnalysis"] = analysis(name);
    }
    if chance.percent(20) {
        spec["postPromotionAnalysis"] = analysis(name);
    }
    spec["scaleDownDelaySeconds"] = json!(delay(chance));
    spec["abortScaleDownDelaySeconds"] = json!(delay(chance));
    if chance.percent(15) {
        spec["scaleDownDelayRevisionLimit"] = json!(chance.below(2));
    }
    metadata(chance, &mut spec, ["previewMetadata", "activeMetadata"]);
    anti_affinity(chance, &mut spec);
    spec
}

/// What both a routed canary and another may have.
fn of_every_canary(chance: &mut Chance, name: &str, canary: &mut Value) {
    metadata(chance, canary, ["canaryMetadata", "stableMetadata"]);
    anti_affinity(chance, canary);
    if chance.percent(12) {
        canary["analysis"] = analysis(name);
        if chance.percent(50) {
            canary["analysis"]["startingStep"] = json!(1 + chance.below(2));
        }
    }
}

/// Steps of a canary; also those that replace others in the middle of an update.
pub fn canary_steps(chance: &mut Chance, name: &str, kind: Kind) -> Value {
    let mut steps = Vec::new();
    for _ in 0..chance.below(5) {
        let kinds = match kind {
            Kind::Alb => 10,
            Kind::Nginx => 9,
            Kind::Basic | Kind::BlueGreen => 8,
        };
        steps.push(match chance.below(kinds) {
            0..=2 => json!({ "setWeight": chance.pick(&WEIGHTS) }),
            3 | 4 => json!({ "pause": {} }),
            5 => json!({ "pause": { "duration": short(chance) } }),
            6 => json!({ "analysis": analysis(name) }),
            7 if chance.percent(50) => experiment(chance),
            7 => json!({ "setWeight": chance.pick(&WEIGHTS) }),
            8 => json!({ "setCanaryScale": canary_scale(chance) }),
            _ => json!({ "setHeaderRoute": header_route(chance) }),
        });
    }
    steps.into()
}

fn canary_scale(chance: &mut Chance) -> Value {
    match chance.below(4) {
        0 | 1 => json!({ "replicas": 1 + chance.below(3) }),
        2 => json!({ "weight": chance.pick(&WEIGHTS) }),
        _ => json!({ "matchTrafficWeight": true }),
    }
}

/// Without a match the route goes again.
fn header_route(chance: &mut Chance) -> Value {
    let mut route = json!({ "name": HEADER_ROUTE });
    if chance.percent(75) {
        route["match"] = json!([{ "headerName": "team", "headerValue": { "exact": "ours" } }]);
    }
    route
}

/// One that ends by itself, or not within a case.
fn experiment(chance: &mut Chance) -> Value {
    let side = chance.pick(&["canary", "stable"]);
    let mut experiment = json!({ "templates": [{ "name": "trial", "specRef": side }] });
    if chance.percent(50) {
        experiment["duration"] = json!(format!("{}s", short(chance)));
    }
    json!({ "experiment": experiment })
}

fn analysis(name: &str) -> Value {
    json!({ "templates": [{ "templateName": format!("{name}-check") }] })
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

fn anti_affinity(chance: &mut Chance, strategy: &mut Value) {
    if chance.percent(8) {
        strategy["antiAffinity"] = match chance.percent(50) {
            true => json!({ "preferredDuringSchedulingIgnoredDuringExecution": { "weight": 5 } }),
            false => json!({ "requiredDuringSchedulingIgnoredDuringExecution": {} }),
        };
    }
}

pub fn short(chance: &mut Chance) -> u64 {
    chance.pick(&SHORT_SECONDS).unwrap_or(SHORT_SECONDS[0])
}

fn delay(chance: &mut Chance) -> u64 {
    if chance.percent(50) { short(chance) } else { LONG_SECONDS }
}
