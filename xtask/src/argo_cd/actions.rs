//! Argo CD's actions: what a person clicks there is a script that changes an object. The difference is
//! laid over the object, first over its status, then over the rest, as Argo CD does.

use std::path::{Path, PathBuf};

use gradus_api::names;
use gradus_lab::{
    faults::Faults,
    person::Action,
    scenario::{self, Scenario, Step},
    sight::{Sight, When},
    simulate::{Prepared, simulate_watched},
};
use jiff::Timestamp;
use serde_json::{Value, json};
use thiserror::Error;

use super::script::{self, ScriptError};
use crate::{Failure, repository, summary::Summary};

/// A field that marks the moment at which a person looks.
const LOOKED: &str = "argo-cd.test/looked";

/// Why an action has no effect.
#[derive(Debug, Error)]
pub(super) enum Ineffective {
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error("{0} is offered, and changes nothing")]
    Nothing(String),
    #[error("{0}: expected it to be offered in this state: {1}")]
    NotOffered(&'static str, Value),
    #[error("{action}: expected {expected:?} at the end, found {found}")]
    OtherEnd { action: String, expected: Box<When>, found: Value },
}

/// The scripts.
pub(super) struct Actions {
    scripts: PathBuf,
}

/// What is clicked in which state of which scenario, and how it ends.
struct Case {
    what: &'static str,
    /// Its objects are taken, and its first step: an update.
    scenario: &'static str,
    clicks: Vec<(Value, &'static str)>,
    end: Value,
}

fn cases() -> Vec<Case> {
    let canary = |what, clicks, end| Case { what, scenario: "canary_pause_promote", clicks, end };
    let manual = |what, clicks, end| Case { what, scenario: "blue_green_manual", clicks, end };
    let first = || json!({ "phase": "Paused", "weight": 20 });
    let waits = || json!({ "phase": "Paused", "revision": 2 });
    let aborted = || json!({ "phase": "Degraded", "aborted": true });
    let done = || json!({ "phase": "Healthy", "revision": 2 });
    let second = || json!({ "phase": "Paused", "weight": 60, "step": 3 });
    vec![
        canary("a pause is ended", vec![(first(), "resume")], second()),
        canary("a step is skipped", vec![(first(), "skip-current-step")], second()),
        canary("all steps are skipped", vec![(first(), "promote-full")], done()),
        canary("an update is aborted", vec![(first(), "abort")], aborted()),
        canary(
            "an aborted update is tried again",
            vec![(first(), "abort"), (aborted(), "retry"), (first(), "promote-full")],
            done(),
        ),
        canary(
            "a Rollout is halted",
            vec![(first(), "pause")],
            json!({ "phase": "Paused", "step": 1 }),
        ),
        canary(
            "pods are restarted",
            vec![(first(), "restart")],
            json!({ "phase": "Paused", "restarted": true }),
        ),
        manual("a switch is allowed", vec![(waits(), "resume")], done()),
        manual("a switch is forced", vec![(waits(), "promote-full")], done()),
        manual("a preview is given up", vec![(waits(), "abort")], aborted()),
        manual(
            "a preview is tried again",
            vec![(waits(), "abort"), (aborted(), "retry"), (waits(), "resume")],
            done(),
        ),
    ]
}

/// Every case is one check.
pub(super) fn have_their_effect(actions: &Actions) -> Result<Summary, Failure> {
    let mut summary = Summary::default();
    for case in cases() {
        let result = actions.play(&case)?;
        if let Err(error) = &result {
            println!("  {}, {}: FAILED: {error}", case.scenario, case.what);
        }
        summary += Summary::of(result.is_ok());
    }
    let result = actions.ends_a_run();
    if let Err(error) = &result {
        println!("  a run is ended: FAILED: {error}");
    }
    summary += Summary::of(result.is_ok());
    println!("  effects of actions: {summary}");
    Ok(summary)
}

impl Actions {
    pub fn of(scripts: &Path) -> Self {
        Self { scripts: scripts.to_owned() }
    }

    /// Can each action that is offered in this state be clicked? Its script relies on fields that a
    /// controller has written for the spec as it is; of one that is not observed yet nothing is asked.
    pub fn can_be_computed(&self, kind: &str, object: &Value) -> Result<(), ScriptError> {
        let is_rollout = kind == names::kind::ROLLOUT;
        if object["status"].is_null() || is_rollout && !Sight::of(object).is_observed() {
            return Ok(());
        }
        for action in self.offered(kind, object)? {
            self.changed(kind, &action, object, Timestamp::UNIX_EPOCH)?;
        }
        Ok(())
    }

    /// The names of the actions that a person could click.
    fn offered(&self, kind: &str, object: &Value) -> Result<Vec<String>, ScriptError> {
        let path = self.scripts.join(kind).join("actions/discovery.lua");
        if !path.exists() {
            return Ok(Vec::new());
        }
        let found = script::run(&path, object, Timestamp::UNIX_EPOCH)?;
        let all = found.as_object().into_iter().flatten();
        let offered = all.filter(|(_, action)| action["disabled"] != true);
        Ok(offered.map(|(name, _)| name.clone()).collect())
    }

    /// The object after a click at that time.
    fn changed(
        &self,
        kind: &str,
        action: &str,
        object: &Value,
        now: Timestamp,
    ) -> Result<Value, ScriptError> {
        let path = self.scripts.join(kind).join("actions").join(action).join("action.lua");
        script::run(&path, object, now)
    }

    fn patch(
        &self,
        kind: &str,
        action: &str,
        (now, object): (Timestamp, &Value),
    ) -> Result<Value, Ineffective> {
        let changed = self.changed(kind, action, object, now)?;
        let patch = script::difference(object, &changed);
        patch.ok_or_else(|| Ineffective::Nothing(action.to_owned()))
    }

    fn play(&self, case: &Case) -> Result<Result<(), Ineffective>, Failure> {
        let folder = repository().join("scenarios");
        let origin = scenario::load(&folder.join(format!("{}.yaml", case.scenario)))?;
        let mut steps: Vec<Step> = origin.steps.iter().take(1).cloned().collect();
        for (when, action) in &case.clicks {
            let when: When = serde_json::from_value(when.clone())?;
            let Some((now, object)) = seen_at(&origin, &steps, &when)? else {
                let expected = Box::new(when);
                let found = last(&origin, &steps)?["status"].clone();
                let action = format!("before {action}");
                return Ok(Err(Ineffective::OtherEnd { action, expected, found }));
            };
            let patch = match self.click(action, now, &object) {
                Ok(patch) => patch,
                Err(error) => return Ok(Err(error)),
            };
            steps.extend(writes(&origin, &when, patch));
        }
        let end: When = serde_json::from_value(case.end.clone())?;
        let found = last(&origin, &steps)?;
        let (action, expected) = (case.what.to_owned(), Box::new(end));
        Ok(match expected.holds(&Sight::of(&found)) {
            true => Ok(()),
            false => {
                let found = found["status"].clone();
                Err(Ineffective::OtherEnd { action, expected, found })
            }
        })
    }

    fn click(
        &self,
        action: &'static str,
        now: Timestamp,
        object: &Value,
    ) -> Result<Value, Ineffective> {
        let kind = names::kind::ROLLOUT;
        if !self.offered(kind, object)?.iter().any(|one| one == action) {
            return Err(Ineffective::NotOffered(action, object["status"].clone()));
        }
        self.patch(kind, action, (now, object))
    }

    /// An AnalysisRun is ended by the field that our engine ends runs by.
    fn ends_a_run(&self) -> Result<(), Ineffective> {
        let run = json!({ "metadata": { "name": "run" }, "spec": { "metrics": [] },
            "status": { "phase": "Running" } });
        let kind = names::kind::ANALYSIS_RUN;
        let patch = self.patch(kind, "terminate", (Timestamp::UNIX_EPOCH, &run))?;
        if patch == json!({ "spec": { "terminate": true } }) {
            return Ok(());
        }
        Err(Ineffective::NotOffered("terminate", patch))
    }
}

/// First the status, then the rest.
fn writes(scenario: &Scenario, when: &When, mut patch: Value) -> Vec<Step> {
    let status = patch.as_object_mut().and_then(|fields| fields.remove("status"));
    let rest = patch.as_object().is_some_and(|fields| !fields.is_empty()).then_some(patch);
    let status =
        status.map(|status| Action::PatchStatus(named(scenario, json!({ "status": status }))));
    let rest = rest.map(|rest| Action::Patch(named(scenario, rest)));
    let mut when = Some(when.clone());
    let step = |action| Step { when: when.take(), r#do: Some(action), ..Step::default() };
    status.into_iter().chain(rest).map(step).collect()
}

fn named(scenario: &Scenario, mut patch: Value) -> Value {
    patch["apiVersion"] = json!(names::API_VERSION);
    patch["kind"] = json!(names::kind::ROLLOUT);
    patch["metadata"]["name"] = json!(scenario.rollout_name());
    patch
}

/// When a person who waits for this sight after these steps sees it, and what; nothing where it never
/// comes.
fn seen_at(
    origin: &Scenario,
    steps: &[Step],
    when: &When,
) -> Result<Option<(Timestamp, Value)>, Failure> {
    let mark = json!({ "metadata": { "annotations": { LOOKED: "true" } } });
    let mark = Action::Patch(named(origin, mark));
    let look = Step { when: Some(when.clone()), r#do: Some(mark), ..Step::default() };
    let (mut before, mut found) = (Value::Null, None);
    watched(origin, steps.iter().cloned().chain([look]).collect(), |now, rollout| {
        if rollout["metadata"]["annotations"][LOOKED].is_null() {
            before = rollout;
        } else if found.is_none() {
            found = Some((now, before.clone()));
        }
    })?;
    Ok(found)
}

/// The Rollout at the end.
fn last(origin: &Scenario, steps: &[Step]) -> Result<Value, Failure> {
    let mut last = Value::Null;
    watched(origin, steps.to_vec(), |_, rollout| last = rollout)?;
    Ok(last)
}

fn watched(
    origin: &Scenario,
    steps: Vec<Step>,
    mut see: impl FnMut(Timestamp, Value),
) -> Result<(), Failure> {
    let mut scenario = origin.clone();
    scenario.steps = steps;
    // How it ends is judged by the caller.
    scenario.end = scenario::End::default();
    let prepared = Prepared::new(scenario)?;
    simulate_watched(&prepared, &Faults::default(), &mut |now, cluster, place| {
        if let Some(rollout) = cluster.at(place) {
            see(now, rollout.to_json(cluster.kinds()));
        }
    });
    Ok(())
}
