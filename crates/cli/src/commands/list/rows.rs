//! What stands in the rows of a list?

use gradus_api::decode::decode;
use gradus_api::experiment::{ExperimentSpec, ExperimentStatus};
use gradus_api::rollout::{RolloutSpec, RolloutStatus};
use gradus_api::values::parse_go_duration;
use gradus_engine::view::{self, StrategyName};
use gradus_simkube::age;
use jiff::Timestamp;
use serde_json::Value;

use crate::table::Cell;

/// The columns that every list of rollouts has, with their least widths.
const ROLLOUT: [(&str, usize); 9] = [
    ("NAME", 10),
    ("STRATEGY", 9),
    ("STATUS", 12),
    ("STEP", 4),
    ("SET-WEIGHT", 10),
    ("READY", 5),
    ("DESIRED", 7),
    ("UP-TO-DATE", 10),
    ("AVAILABLE", 9),
];

const EXPERIMENT: [(&str, usize); 5] =
    [("NAME", 10), ("STATUS", 6), ("DURATION", 8), ("REMAINING", 9), ("AGE", 3)];

const NAMESPACE: (&str, usize) = ("NAMESPACE", 9);
const TIMESTAMP: (&str, usize) = ("TIMESTAMP", 20);

/// What only a wide list has.
const WIDE: [(&str, usize); 3] = [("AGE", 3), ("IMAGES", 6), ("MESSAGE", 7)];

/// Where there is nothing to say.
const NOTHING: &str = "-";

/// Which columns a list of rollouts has.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// When each row was printed.
    pub timestamps: bool,
    /// The namespaces.
    pub namespaces: bool,
    /// Age, images and message.
    pub wide: bool,
}

impl Columns {
    fn all(self) -> Vec<(&'static str, usize)> {
        let first = self.timestamps.then_some(TIMESTAMP).into_iter();
        let wide = WIDE.into_iter().filter(|_| self.wide);
        first.chain(self.namespaces.then_some(NAMESPACE)).chain(ROLLOUT).chain(wide).collect()
    }

    /// The least widths.
    pub fn widths(self) -> Vec<usize> {
        self.all().into_iter().map(|(_, width)| width).collect()
    }

    /// The names.
    pub fn header(self) -> Vec<Cell> {
        self.all().into_iter().map(|(name, _)| Cell::plain(name)).collect()
    }

    /// A rollout.
    pub fn row(self, rollout: &Value, now: Timestamp) -> Vec<Cell> {
        let time = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let mut row = Vec::new();
        row.extend(self.timestamps.then(|| time.to_string()));
        row.extend(self.namespaces.then(|| text(&rollout["metadata"]["namespace"])));
        row.extend(values(rollout));
        if self.wide {
            row.extend(wide(rollout, now));
        }
        row.into_iter().map(Cell::plain).collect()
    }
}

/// Namespace and name.
pub fn key(object: &Value) -> String {
    format!("{}/{}", text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

/// What every list says of a rollout.
pub fn values(rollout: &Value) -> Vec<String> {
    let spec: RolloutSpec = decode(&rollout["spec"]).0;
    let status: RolloutStatus = decode(&rollout["status"]).0;
    let generation = rollout["metadata"]["generation"].as_i64().unwrap_or(0);
    let strategy = match view::strategy(&spec) {
        Some(StrategyName::Canary) => "Canary",
        Some(StrategyName::BlueGreen) => "BlueGreen",
        None => "unknown",
    };
    let weight = spec.strategy.canary.as_ref().map(|canary| view::set_weight(canary, &status));
    vec![
        text(&rollout["metadata"]["name"]),
        strategy.to_owned(),
        view::phase(generation, &spec, &status).0,
        view::step(&spec, &status).unwrap_or_else(|| NOTHING.to_owned()),
        weight.map_or_else(|| NOTHING.to_owned(), |weight| weight.to_string()),
        format!("{}/{}", status.ready_replicas, status.replicas),
        spec.replicas_or_default().to_string(),
        status.updated_replicas.to_string(),
        status.available_replicas.to_string(),
    ]
}

fn wide(rollout: &Value, now: Timestamp) -> [String; 3] {
    let containers = rollout["spec"]["template"]["spec"]["containers"].as_array();
    let images = containers.into_iter().flatten().map(|container| text(&container["image"]));
    let message = text(&rollout["status"]["message"]);
    [
        age::of(&rollout["metadata"]["creationTimestamp"], now),
        images.collect::<Vec<_>>().join(","),
        if message.is_empty() { NOTHING.to_owned() } else { message },
    ]
}

/// The header of a list of experiments.
pub fn experiment_header(namespaced: bool) -> Vec<Cell> {
    let names = namespaced.then_some(NAMESPACE).into_iter().chain(EXPERIMENT);
    names.map(|(name, _)| Cell::plain(name)).collect()
}

/// The least widths of a list of experiments.
pub fn experiment_widths(namespaced: bool) -> Vec<usize> {
    let names = namespaced.then_some(NAMESPACE).into_iter().chain(EXPERIMENT);
    names.map(|(_, width)| width).collect()
}

/// An experiment.
pub fn experiment(experiment: &Value, namespaced: bool, now: Timestamp) -> Vec<Cell> {
    let spec: ExperimentSpec = decode(&experiment["spec"]).0;
    let status: ExperimentStatus = decode(&experiment["status"]).0;
    let duration = parse_go_duration(&spec.duration).ok().filter(|_| !spec.duration.is_empty());
    let begun = status.available_at.map(|time| time.timestamp());
    let left = duration.zip(begun).map(|(length, begun)| {
        let passed = now.as_second() - begun.as_second();
        length.as_secs() - passed
    });
    let left = left.filter(|left| *left > 0 && !is_over(&status.phase));
    let or_nothing =
        |seconds: Option<i64>| seconds.map_or_else(|| NOTHING.to_owned(), age::duration);
    let mut row = Vec::new();
    row.extend(namespaced.then(|| text(&experiment["metadata"]["namespace"])));
    row.extend([
        text(&experiment["metadata"]["name"]),
        status.phase,
        or_nothing(duration.map(|length| length.as_secs())),
        or_nothing(left),
        age::of(&experiment["metadata"]["creationTimestamp"], now),
    ]);
    row.into_iter().map(Cell::plain).collect()
}

/// Has an Experiment of this phase ended?
fn is_over(phase: &str) -> bool {
    use gradus_api::names::analysis_phase::{ERROR, FAILED, INCONCLUSIVE, SUCCESSFUL};
    [ERROR, FAILED, INCONCLUSIVE, SUCCESSFUL].contains(&phase)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_experiment_says_what_is_left_of_it_while_it_runs() {
        let now: Timestamp = "2024-01-01T00:10:00Z".parse().unwrap();
        let cases = [
            ("it runs", "1h", "Running", true, ["60m", "50m"]),
            ("its time is over", "5m", "Running", true, ["5m", "-"]),
            ("it has ended", "1h", "Successful", true, ["60m", "-"]),
            ("it has not begun", "1h", "Pending", false, ["60m", "-"]),
            ("no time at all", "0s", "Running", true, ["0s", "-"]),
            ("without end", "", "Running", true, ["-", "-"]),
        ];
        for (what, duration, phase, has_begun, expected) in cases {
            let begun = has_begun.then_some("2024-01-01T00:00:00Z");
            let object = json!({ "metadata": { "name": "e" }, "spec": { "duration": duration },
                "status": { "phase": phase, "availableAt": begun } });
            let row = experiment(&object, false, now);
            assert_eq!([row[2].seen.as_str(), row[3].seen.as_str()], expected, "{what}");
        }
    }
}
