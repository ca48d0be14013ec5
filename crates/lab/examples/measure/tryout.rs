//! How long does `gradus simulate` take? Milliseconds of the fastest run, everything included that
//! happens after the manifests are read.

use gradus_api::names;
use gradus_lab::faults::Faults;
use gradus_lab::tryout::{Tryout, UpdateResult};
use serde_json::{Value, json};

/// Two hours in five steps.
pub fn hours(runs: usize) {
    tell_fastest(&update(10, 5, "1h"), runs);
}

/// A thousand pods in twenty steps.
pub fn pods(runs: usize) {
    tell_fastest(&update(1_000, 20, "1m"), runs);
}

fn tell_fastest(tryout: &Tryout, runs: usize) {
    let fastest = (0..runs).map(|_| milliseconds(tryout)).fold(f64::INFINITY, f64::min);
    println!("{fastest:.1} ms");
}

fn milliseconds(tryout: &Tryout) -> f64 {
    #[expect(clippy::disallowed_types, reason = "this measures real time")]
    let begin = std::time::Instant::now();
    let report = tryout.run(&Faults::default()).expect("the manifests are accepted");
    assert_eq!(report.result, UpdateResult::Promoted, "{}", report.message);
    begin.elapsed().as_secs_f64() * 1000.0
}

/// A canary of so many pods and steps: weights and pauses by turns.
fn update(replicas: usize, count: usize, pause: &str) -> Tryout {
    let weight = |at: usize| json!({ "setWeight": 100 * (at + 1) / (count + 1) });
    let step = |at: usize| match at % 2 {
        0 => weight(at),
        _ => json!({ "pause": { "duration": pause } }),
    };
    let steps: Vec<Value> = (0..count).map(step).collect();
    let labels = json!({ "app": "web" });
    let rollout = json!({
        "apiVersion": names::API_VERSION, "kind": names::kind::ROLLOUT,
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels },
                          "spec": { "containers": [{ "name": "web", "image": "web:1" }] } },
            "strategy": { "canary": { "steps": steps } },
        },
    });
    Tryout { objects: vec![rollout], image: "web:2".to_owned(), ..Tryout::default() }
}
