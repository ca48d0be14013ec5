//! How many writes may a rollout cost? Each scenario has a budget: the fewest that a controller can
//! make without losing its way in a crash, and one more. Pods are ready 200 ms after they are made.

use serde_json::{Value, json};

use crate::faults::Faults;
use crate::scenario::Scenario;
use crate::simulate::{Prepared, narrate, simulate};

/// What is applied, what is done to it, and how many writes of ours that may cost at most.
#[derive(Clone, Debug)]
pub struct Budget {
    /// What it is about.
    pub what: &'static str,
    /// How many writes its last deed, or else its first deploy, may cost.
    pub most: usize,
    strategy: Value,
    services: &'static [&'static str],
    /// Each when the rollout rests like this.
    deeds: Vec<(Value, Value)>,
    /// How it rests after the last one.
    rests: Value,
}

/// Every budget there is.
pub fn all() -> Vec<Budget> {
    let rests = || json!({ "phase": "Healthy", "revision": 1 });
    let update = || (rests(), json!({ "setImage": "example.com/web:2" }));
    let paused: Vec<Value> = weights(&[20, 40, 60, 80])
        .into_iter()
        .flat_map(|weight| [weight, json!({ "pause": { "duration": 2 } })])
        .collect();
    let held = json!([{ "setWeight": 20 }, { "setWeight": 40 }, { "setWeight": 60 },
        { "pause": {} }, { "setWeight": 80 }, { "setWeight": 100 }]);
    let at_60 = json!({ "phase": "Paused", "weight": 60 });
    let both = &["active", "preview"];
    let sides = &["stable", "canary"];
    let dynamic = nginx(json!([{ "setWeight": 60 }, { "pause": {} }]), true);
    let back_at_60 = || vec![update(), (at_60.clone(), json!("abort"))];
    let steps = canary(json!(weights(&[20, 40, 60, 80, 100])));
    let (new, back) = (
        json!({ "phase": "Healthy", "revision": 2 }),
        json!({ "aborted": true, "phase": "Degraded" }),
    );
    let budgets = [
        ("a first deploy", canary(json!([])), &[][..], vec![], rests(), 4),
        ("a first deploy behind two Services", blue_green(), both, vec![], rests(), 6),
        ("five weights", steps.clone(), &[], vec![update()], new.clone(), 18),
        ("a rolling update", canary(json!([])), &[], vec![update()], new.clone(), 14),
        (
            "four weights and four pauses",
            canary(json!(paused.clone())),
            &[],
            vec![update()],
            new.clone(),
            22,
        ),
        ("blue-green", blue_green(), both, vec![update()], new.clone(), 9),
        ("an abort at 60 %", canary(held), &[], back_at_60(), back.clone(), 8),
        ("nginx, a first deploy", nginx(json!([]), false), sides, vec![], rests(), 7),
        (
            "nginx, four weights and pauses",
            nginx(json!(paused), false),
            sides,
            vec![update()],
            new.clone(),
            28,
        ),
        ("nginx, an abort at 60 %, dynamic", dynamic, sides, back_at_60(), back.clone(), 8),
        ("no change", steps, &[], vec![(rests(), json!("restartController"))], rests(), 0),
    ];
    let budget = |(what, strategy, services, deeds, rests, most)| Budget {
        what,
        most,
        strategy,
        services,
        deeds,
        rests,
    };
    budgets.into_iter().map(budget).collect()
}

fn weights(weights: &[i32]) -> Vec<Value> {
    weights.iter().map(|weight| json!({ "setWeight": weight })).collect()
}

fn canary(steps: Value) -> Value {
    json!({ "canary": { "maxSurge": 1, "maxUnavailable": 0, "steps": steps } })
}

fn blue_green() -> Value {
    json!({ "blueGreen": { "activeService": "active", "previewService": "preview" } })
}

fn nginx(steps: Value, is_dynamic: bool) -> Value {
    json!({ "canary": { "stableService": "stable", "canaryService": "canary",
        "trafficRouting": { "nginx": { "stableIngress": "web" } },
        "dynamicStableScale": is_dynamic, "steps": steps } })
}

impl Budget {
    /// What the last deed cost, told line by line, if that is more than allowed.
    pub fn exceeded(&self) -> Option<String> {
        let cost = self.writes(&self.deeds) - self.before();
        (self.most < cost).then(|| {
            let told = narrate(&self.prepared(&self.deeds), &Faults::default());
            format!("{}\n{}: {cost} writes, at most {}", told.trace, self.what, self.most)
        })
    }

    /// What everything before the last deed costs.
    pub fn before(&self) -> usize {
        self.deeds.split_last().map_or(0, |(_, before)| self.writes(before))
    }

    /// All writes of ours in the scenario with these deeds.
    fn writes(&self, deeds: &[(Value, Value)]) -> usize {
        let outcome = simulate(&self.prepared(deeds), &Faults::default());
        // The ends are not told here: other scenarios do.
        let wrong = outcome.violations.iter().find(|found| found.invariant != "the scenario");
        assert_eq!(wrong, None, "{}", self.what);
        outcome.writes
    }

    fn prepared(&self, deeds: &[(Value, Value)]) -> Prepared {
        Prepared::new(self.told(deeds)).expect("its objects are accepted")
    }

    /// The whole scenario; its last step waits until it rests.
    pub fn scenario(&self) -> Scenario {
        let mut scenario = self.told(&self.deeds);
        let rests = json!({ "when": self.rests });
        scenario.steps.push(serde_json::from_value(rests).expect("a step is well formed"));
        scenario
    }

    fn told(&self, deeds: &[(Value, Value)]) -> Scenario {
        let template = json!({
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "web", "image": "example.com/web:1" }] },
        });
        let rollout = json!({
            "apiVersion": gradus_api::names::API_VERSION,
            "kind": gradus_api::names::kind::ROLLOUT,
            "metadata": { "name": "web" },
            "spec": { "replicas": 5, "selector": { "matchLabels": { "app": "web" } },
                "template": template, "strategy": self.strategy },
        });
        let service = |name: &&str| {
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
                "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] },
            })
        };
        let backend = json!({ "service": { "name": "stable", "port": { "number": 80 } } });
        let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
        let ingress = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": "web" },
            "spec": { "rules": [{ "http": { "paths": [path] } }] },
        });
        let objects: Vec<Value> =
            self.services.iter().map(service).chain([ingress, rollout]).collect();
        let steps: Vec<Value> =
            deeds.iter().map(|(when, what)| json!({ "when": when, "do": what })).collect();
        let name: String = self
            .what
            .split(|one: char| !one.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("_");
        serde_json::from_value(json!({
            "name": format!("budget_{}", name.to_lowercase()), "about": self.what, "objects": objects, "steps": steps,
            "images": [{ "image": "*", "startUpSeconds": 0.2 }],
            "end": { "expect": {}, "sizes": {} },
        }))
        .expect("the scenario is well formed")
    }
}
