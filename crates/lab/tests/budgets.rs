//! How many writes does a rollout cost? Each story has a budget: the fewest that a controller can
//! make without losing its way in a crash, and one more.

use gradus_lab::Scenario;
use gradus_lab::faults::Faults;
use gradus_lab::simulate::{Prepared, narrate, simulate};
use serde_json::{Value, json};

/// What is applied, what is done to it, and how many writes of ours that may cost at most.
struct Budget {
    what: &'static str,
    strategy: Value,
    services: &'static [&'static str],
    /// Each when the rollout rests like this.
    deeds: Vec<(Value, Value)>,
    most: usize,
}

#[test]
fn no_story_costs_more_than_its_budget() {
    let rests = || json!({ "phase": "Healthy", "revision": 1 });
    let update = || (rests(), json!({ "setImage": "example.com/web:2" }));
    let canary =
        |steps: Value| json!({ "canary": { "maxSurge": 1, "maxUnavailable": 0, "steps": steps } });
    let weights = |weights: &[i32]| -> Vec<Value> {
        weights.iter().map(|weight| json!({ "setWeight": weight })).collect()
    };
    let paused: Vec<Value> = weights(&[20, 40, 60, 80])
        .into_iter()
        .flat_map(|weight| [weight, json!({ "pause": { "duration": 2 } })])
        .collect();
    let held = json!([{ "setWeight": 20 }, { "setWeight": 40 }, { "setWeight": 60 },
        { "pause": {} }, { "setWeight": 80 }, { "setWeight": 100 }]);
    let at_60 = json!({ "phase": "Paused", "weight": 60 });
    let blue_green =
        || json!({ "blueGreen": { "activeService": "active", "previewService": "preview" } });
    let both = &["active", "preview"];
    let nginx = |more: Value| {
        let mut canary = json!({ "stableService": "stable", "canaryService": "canary",
            "trafficRouting": { "nginx": { "stableIngress": "web" } } });
        canary.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "canary": canary })
    };
    let sides = &["stable", "canary"];
    let dynamic = nginx(json!({ "dynamicStableScale": true,
        "steps": [{ "setWeight": 60 }, { "pause": {} }] }));
    let back_at_60 = || vec![update(), (at_60.clone(), json!("abort"))];
    let steps = canary(json!(weights(&[20, 40, 60, 80, 100])));
    let budgets = [
        ("a first deploy", canary(json!([])), &[][..], vec![], 4),
        ("a first deploy behind two Services", blue_green(), both, vec![], 6),
        ("five weights", steps.clone(), &[], vec![update()], 18),
        ("a rolling update", canary(json!([])), &[], vec![update()], 14),
        ("four weights and four pauses", canary(json!(paused.clone())), &[], vec![update()], 22),
        ("blue-green", blue_green(), both, vec![update()], 9),
        ("an abort at 60 %", canary(held), &[], back_at_60(), 8),
        ("nginx, a first deploy", nginx(json!({})), sides, vec![], 7),
        (
            "nginx, four weights and pauses",
            nginx(json!({ "steps": paused })),
            sides,
            vec![update()],
            28,
        ),
        ("nginx, an abort at 60 %, dynamic", dynamic, sides, back_at_60(), 8),
        ("no change", steps, &[], vec![(rests(), json!("restartController"))], 0),
    ];
    let over: Vec<String> = budgets
        .into_iter()
        .map(|(what, strategy, services, deeds, most)| Budget {
            what,
            strategy,
            services,
            deeds,
            most,
        })
        .filter_map(|budget| budget.exceeded())
        .collect();
    assert!(over.is_empty(), "{}", over.join("\n\n"));
}

impl Budget {
    /// What the last deed cost, told line by line, if that is more than allowed.
    fn exceeded(&self) -> Option<String> {
        let (before, after) = match self.deeds.split_last() {
            None => (0, self.writes(&self.deeds)),
            Some((_, before)) => (self.writes(before), self.writes(&self.deeds)),
        };
        let cost = after - before;
        (self.most < cost).then(|| {
            let told = narrate(&self.story(&self.deeds), &Faults::default());
            format!("{}\n{}: {cost} writes, at most {}", told.trace, self.what, self.most)
        })
    }

    /// All writes of ours in the story with these deeds.
    fn writes(&self, deeds: &[(Value, Value)]) -> usize {
        let outcome = simulate(&self.story(deeds), &Faults::default());
        // The ends are not told here: other stories do.
        let wrong = outcome.violations.iter().find(|found| found.invariant != "the story");
        assert_eq!(wrong, None, "{}", self.what);
        outcome.writes
    }

    fn story(&self, deeds: &[(Value, Value)]) -> Prepared {
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
        let scenario: Scenario = serde_json::from_value(json!({
            "name": "budget", "about": self.what, "objects": objects, "steps": steps,
            "images": [{ "image": "*", "startUpSeconds": 0.2 }],
            "end": { "expect": {}, "sizes": {} },
        }))
        .expect("the story is well formed");
        Prepared::new(scenario).expect("its objects are accepted")
    }
}
