//! How is a scenario told? The YAML of `scenarios/`: objects, how images behave, what people do,
//! and what must be seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gradus_api::values::DurationText;
use gradus_simkube::behave::Behaviours;
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::faults::Planned;
use crate::outlook::Outlook;
use crate::outside::ServerAnswer;
use crate::person::Action;
use crate::played::{EXPECTED, Script};
use crate::sight::When;

/// One scenario, read from one file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// Its name: the file's name without ending.
    pub name: String,
    /// What it tells, in a sentence.
    pub about: String,
    /// Kind of the object it is about, of which there is one; a Rollout if left out.
    #[serde(default = "rollout")]
    pub kind: String,
    /// On a real control plane every pause and time is divided by this.
    #[serde(default = "one")]
    pub time_scale: u32,
    /// What is applied at the beginning, in this order. `file: x.yaml` stands for the documents of
    /// `examples/rollouts/x.yaml`.
    pub objects: Vec<Value>,
    /// How the images behave that are special.
    #[serde(default)]
    pub images: Behaviours,
    /// What step plugins answer, by name: `running@20s,successful`. They are played in the simulator
    /// alone; of others nobody has heard.
    #[serde(default, deserialize_with = "scripts")]
    pub plugins: BTreeMap<String, Script>,
    /// What happens, one after the other.
    pub steps: Vec<Step>,
    /// Faults the undisturbed run meets too.
    #[serde(default)]
    pub faults: Vec<Planned>,
    /// Requests to metric servers are answered: so where one of these fits (the first counts), else
    /// by the metric server of the embedded cluster. Without it nobody answers.
    #[serde(default)]
    pub metrics: Option<Vec<ServerAnswer>>,
    /// How it must end.
    pub end: End,
    /// What happens beside the steps; nothing in a scenario that is read from a file.
    #[serde(skip)]
    pub beside: Beside,
}

/// What happens beside the steps of a scenario, each at its own time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beside {
    /// When the update begins: other times count from then on.
    pub update: SignedDuration,
    /// Deeds that wait for nothing but their time, in its order.
    pub deeds: Vec<(SignedDuration, Action)>,
    /// What analyses find. Without it they are left to others.
    pub outlook: Option<Outlook>,
}

/// One step: wait, look, act. Every part may be left out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Step {
    /// Not before so long after the beginning.
    pub at: Option<SignedDuration>,
    /// Not before the rollout stands like this.
    pub when: Option<When>,
    /// Not before the object it is about is gone.
    pub gone: bool,
    /// The whole projected status that must be seen then.
    pub expect: Option<Value>,
    /// What is done then, in words, where the scenario is told aloud.
    pub say: Option<String>,
    /// What is done then.
    pub r#do: Option<Action>,
}

/// How a scenario ends.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct End {
    /// The whole projected status; null where the object is gone, or where nobody knows the end.
    pub expect: Value,
    /// Wanted pods of each ReplicaSet, by revision.
    #[serde(default)]
    pub sizes: BTreeMap<i64, i64>,
    /// Other objects that must be there and contain what stands here.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// Objects that must not be there.
    #[serde(default)]
    pub absent: Vec<Value>,
    /// Labels and annotations of every pod of a revision, where the scenario is about them.
    #[serde(default)]
    pub pods: BTreeMap<i64, String>,
}

/// Why a scenario cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A file or folder cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {message}", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What was expected.
        message: String,
    },
}

fn scripts<'de, D>(deserializer: D) -> Result<BTreeMap<String, Script>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
    let script = |(name, text): (String, String)| {
        let script = Script::parse(&text);
        let wrong = || serde::de::Error::custom(format!("plugin {name}: expected {EXPECTED}"));
        Ok((name.clone(), script.ok_or_else(wrong)?))
    };
    texts.into_iter().map(script).collect()
}

/// All scenarios of a folder, by name. Files they refer to are in `examples/rollouts` beside it.
pub fn load_all(folder: &Path) -> Result<Vec<Scenario>, ScenarioError> {
    let unreadable = |source| ScenarioError::Unreadable { path: folder.to_owned(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| load(path)).collect()
}

/// The scenario of one file.
pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
    let mut scenario: Scenario = parse(path, &text_of(path)?)?;
    let malformed = |message: String| ScenarioError::Malformed { path: path.to_owned(), message };
    if path.file_stem().is_none_or(|stem| stem != scenario.name.as_str()) {
        return Err(malformed(format!("name {:?}: expected the file's own name", scenario.name)));
    }
    let examples = path.ancestors().nth(2).unwrap_or(Path::new("")).join("examples/rollouts");
    let mut objects = Vec::new();
    for object in scenario.objects {
        match object["file"].as_str() {
            None => objects.push(object),
            Some(file) => {
                let path = examples.join(file);
                let text = text_of(&path)?;
                let documents = serde_saphyr::from_multiple::<Value>(&text);
                objects.extend(documents.map_err(|error| ScenarioError::Malformed {
                    path,
                    message: error.to_string(),
                })?);
            }
        }
    }
    scenario.objects = objects;
    if scenario.rollouts().count() != 1 {
        return Err(malformed(format!("objects: expected exactly one {}", scenario.kind)));
    }
    Ok(scenario)
}

impl Scenario {
    /// The object it is about, as it is first applied.
    pub fn rollout(&self) -> &Value {
        self.rollouts().next().unwrap_or(&Value::Null)
    }

    /// Name of the object it is about.
    pub fn rollout_name(&self) -> &str {
        self.rollout()["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Are there objects of this kind in it, now or later? Without them nobody has to let go of
    /// one.
    pub fn has(&self, kind: &str) -> bool {
        let applied = self.steps.iter().filter_map(|step| match &step.r#do {
            Some(Action::Apply(object)) => Some(object),
            _ => None,
        });
        self.objects.iter().chain(applied).any(|object| object["kind"] == kind)
    }

    /// The same scenario with every pause and time divided by `scale`.
    pub fn hastened(&self, scale: u32) -> Scenario {
        let mut scenario = self.clone();
        let divisor = i32::try_from(scale).unwrap_or(i32::MAX).max(1);
        for object in &mut scenario.objects {
            hasten(object, divisor);
        }
        for step in &mut scenario.steps {
            step.at = step.at.map(|at| at / divisor);
            if let Some(Action::Apply(object) | Action::Patch(object)) = &mut step.r#do {
                hasten(object, divisor);
            }
        }
        scenario
    }

    fn rollouts(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(|object| object["kind"] == self.kind.as_str())
    }
}

/// Times of a strategy that are waited for, in seconds.
const DELAYS: [&str; 3] =
    ["scaleDownDelaySeconds", "abortScaleDownDelaySeconds", "autoPromotionSeconds"];

/// Divides the pauses, Experiments and delays of a strategy, and the time before a metric is first
/// measured; each stays at least a second.
fn hasten(object: &mut Value, divisor: i32) {
    let metrics = object.pointer_mut("/spec/metrics").and_then(Value::as_array_mut);
    for delay in metrics.into_iter().flatten().filter_map(|it| it.get_mut("initialDelay")) {
        if let Some(seconds) = divided(delay, divisor) {
            *delay = json!(format!("{seconds}s"));
        }
    }
    let steps = object.pointer_mut("/spec/strategy/canary/steps").and_then(Value::as_array_mut);
    for step in steps.into_iter().flatten() {
        if let Some(duration) = step.pointer_mut("/pause/duration")
            && let Some(seconds) = divided(duration, divisor)
        {
            *duration = json!(seconds);
        }
        if let Some(duration) = step.pointer_mut("/experiment/duration")
            && let Some(seconds) = divided(duration, divisor)
        {
            *duration = json!(format!("{seconds}s"));
        }
    }
    for strategy in ["canary", "blueGreen"] {
        for delay in DELAYS {
            let place = object.pointer_mut(&format!("/spec/strategy/{strategy}/{delay}"));
            if let Some((seconds, place)) = place.and_then(|place| Some((place.as_i64()?, place)))
                && seconds > 0
            {
                *place = json!((seconds / i64::from(divisor)).max(1));
            }
        }
    }
}

fn divided(duration: &Value, divisor: i32) -> Option<i32> {
    let text: DurationText = serde_json::from_value(duration.clone()).ok()?;
    Some((text.seconds()? / divisor).max(1))
}

fn text_of(path: &Path) -> Result<String, ScenarioError> {
    std::fs::read_to_string(path)
        .map_err(|source| ScenarioError::Unreadable { path: path.to_owned(), source })
}

fn parse(path: &Path, text: &str) -> Result<Scenario, ScenarioError> {
    serde_saphyr::from_str(text).map_err(|error| ScenarioError::Malformed {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

fn one() -> u32 {
    1
}

fn rollout() -> String {
    gradus_api::names::kind::ROLLOUT.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenarios() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
    }

    #[test]
    fn a_hastened_scenario_pauses_for_seconds() {
        let scenario = load(&scenarios().join("canary_pause_promote.yaml")).unwrap();
        let pause = |scenario: &Scenario| {
            scenario.rollout()["spec"]["strategy"]["canary"]["steps"][1]["pause"]["duration"]
                .clone()
        };
        assert_eq!(pause(&scenario), "30m");
        assert_eq!(pause(&scenario.hastened(scenario.time_scale)), 3);
        assert_eq!(pause(&scenario.hastened(1_000_000)), 1, "never none");
        let scenario = load(&scenarios().join("experiment_weights.yaml")).unwrap().hastened(4);
        let steps = &scenario.rollout()["spec"]["strategy"]["canary"]["steps"];
        assert_eq!(steps[1]["experiment"]["duration"], "30s");
        let scenario = load(&scenarios().join("background_job_analysis_fails.yaml")).unwrap();
        let hastened = scenario.hastened(scenario.time_scale);
        assert_eq!(hastened.objects[0]["spec"]["metrics"][0]["initialDelay"], "60s");
    }

    #[test]
    fn a_mistake_in_a_scenario_is_told_with_its_file() {
        let cases = [
            ("an unknown field", "name: a\nabout: b\nobject: []\n"),
            ("an unknown action", "name: a\nabout: b\nobjects: []\nsteps: [{do: dance}]\n"),
            (
                "an unknown condition",
                "name: a\nabout: b\nobjects: []\nsteps: [{when: {fase: x}}]\n",
            ),
        ];
        for (what, text) in cases {
            let error = parse(Path::new("a.yaml"), text).unwrap_err();
            assert!(error.to_string().starts_with("a.yaml: "), "{what}: {error}");
        }
    }
}
