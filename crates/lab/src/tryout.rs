//! What would become of a user's own manifests? They are deployed on a cluster in memory, updated,
//! and watched to the end.

use std::collections::BTreeMap;

use gradus_api::names::{self, phase};
use gradus_engine::rollout::services;
use gradus_simkube::behave::{Behaviour, Behaviours};
use gradus_simkube::{Place, SimCluster};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::checks::Violation;
use crate::deeds::sight;
use crate::ends::{revision, sets};
use crate::faults::Faults;
use crate::person::Action;
use crate::scenario::{End, Scenario, Step};
use crate::sight::When;
use crate::simulate::{Outcome, Prepared, Unprepared, simulate_watched};

/// The update begins so long after the first deploy: by then it is settled, and waiting is free.
const UPDATE_AT: SignedDuration = SignedDuration::from_hours(24);

/// What is to be tried.
#[derive(Clone, Debug, Default)]
pub struct Tryout {
    /// The manifests: one Rollout, and what stands beside it.
    pub objects: Vec<Value>,
    /// The image of the update.
    pub image: String,
    /// How images behave.
    pub behaviours: Vec<Behaviour>,
    /// What people do, and when: one after the other.
    pub deeds: Vec<Deed>,
}

/// What somebody does.
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    /// Not before so long after the update began.
    pub after: Option<SignedDuration>,
    /// Not before the rollout stands like this.
    pub when: Option<When>,
    /// What is done.
    pub action: Action,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it ended.
    pub result: Verdict,
    /// From the beginning of the update to its end, or to where it stays.
    pub duration: SignedDuration,
    /// Most pods at once, of all revisions, since the update began.
    pub peak_pods: i64,
    /// Where the rollout stood, whenever that changed; times count from the beginning of the update.
    pub timeline: Vec<Sample>,
    /// Invariants that were broken.
    pub violations: Vec<Violation>,
    /// Writes of the controller.
    pub writes: usize,
    /// Why it is where it is, in the words of its status.
    pub message: String,
}

/// How an update ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The new revision serves everybody.
    Promoted,
    /// It was given up; the stable one serves.
    Aborted,
    /// It does not get on, and says so.
    Degraded,
    /// It waits for a person.
    Waiting,
    /// It does not get on, and nothing will change that.
    Stuck,
}

/// Where a rollout stood from a moment on.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Since the beginning of the update.
    pub at: SignedDuration,
    /// `status.phase`.
    pub phase: String,
    /// `status.message`.
    pub message: String,
    /// `status.currentStepIndex`.
    pub step: Option<i64>,
    /// Weight of the new revision: of the router, of the switch, else as the step asks.
    pub weight: i64,
    /// Wanted and available pods of each revision.
    pub pods: BTreeMap<i64, (i64, i64)>,
}

impl Tryout {
    /// The Rollout that is tried.
    pub fn rollout(&self) -> Option<&Value> {
        self.objects.iter().find(|object| object["kind"] == names::kind::ROLLOUT)
    }

    /// Names of the Services it needs and the manifests lack; they are made up.
    pub fn missing_services(&self) -> Vec<String> {
        let Some(rollout) = self.rollout() else { return Vec::new() };
        let (spec, _) = gradus_api::decode::decode(&rollout["spec"]);
        let is_there = |name: &str| {
            self.objects
                .iter()
                .any(|object| object["kind"] == "Service" && object["metadata"]["name"] == *name)
        };
        let named = services::references(&spec).into_iter().map(|named| named.name);
        named.filter(|name| !is_there(name)).map(str::to_owned).collect()
    }

    /// The story of it; `is_awaited` says whether it ends only with the update.
    fn scenario(&self, is_awaited: bool) -> Scenario {
        let selector = self.rollout().map(|rollout| &rollout["spec"]["selector"]["matchLabels"]);
        let made_up = self.missing_services().into_iter().map(|name| {
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
                    "spec": { "selector": selector, "ports": [{ "port": 80 }] } })
        });
        let objects = made_up.chain(self.objects.iter().cloned()).map(in_one_namespace).collect();
        let begin = Step {
            at: Some(UPDATE_AT),
            when: Some(When { phase: Some(phase::HEALTHY.to_owned()), ..When::default() }),
            r#do: Some(Action::SetImage(self.image.clone())),
            ..Step::default()
        };
        let deeds = self.deeds.iter().map(|deed| Step {
            at: deed.after.map(|after| UPDATE_AT + after),
            when: deed.when.clone(),
            r#do: Some(deed.action.clone()),
            ..Step::default()
        });
        let over = When { over: Some(true), ..When::default() };
        let end = is_awaited.then(|| Step { when: Some(over), ..Step::default() });
        Scenario {
            kind: names::kind::ROLLOUT.to_owned(),
            name: "tryout".to_owned(),
            about: "A user's own manifests.".to_owned(),
            time_scale: 1,
            objects,
            images: Behaviours::new(self.behaviours.clone()),
            steps: std::iter::once(begin).chain(deeds).chain(end).collect(),
            faults: Vec::new(),
            end: End::default(),
        }
    }

    /// The story as it may be disturbed: it is told even where nobody promotes at the end.
    pub fn prepared(&self) -> Result<Prepared, Unprepared> {
        Prepared::new(self.scenario(false))
    }

    /// Runs it.
    pub fn run(&self, faults: &Faults) -> Result<Report, Unprepared> {
        let prepared = Prepared::new(self.scenario(true))?;
        let begin = prepared.start() + UPDATE_AT;
        let mut timeline: Vec<Sample> = Vec::new();
        let outcome = simulate_watched(&prepared, faults, &mut |now, cluster, rollout| {
            if let Some(sample) = sample(now.duration_since(begin), cluster, rollout)
                && !timeline.last().is_some_and(|last| last.stands_like(&sample))
            {
                timeline.push(sample);
            }
        });
        timeline.retain(|sample| !sample.at.is_negative());
        Ok(report(outcome, timeline))
    }
}

impl Sample {
    fn stands_like(&self, other: &Sample) -> bool {
        *self == Sample { at: self.at, ..other.clone() }
    }

    /// All pods that are wanted.
    pub fn wanted(&self) -> i64 {
        self.pods.values().map(|(wanted, _)| wanted).sum()
    }
}

/// Manifests of any namespace are tried in one.
fn in_one_namespace(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("namespace");
    }
    object
}

fn sample(at: SignedDuration, cluster: &SimCluster, rollout: &Place) -> Option<Sample> {
    let object = cluster.get(rollout.kind, &rollout.key.namespace, &rollout.key.name)?;
    if !sight(object).is_observed() {
        return None; // The status still speaks of the revision before.
    }
    let text = |field: &str| object.status[field].as_str().unwrap_or_default().to_owned();
    let routed = object.status["canary"]["weights"]["canary"]["weight"].as_i64();
    let active = object.status["blueGreen"]["activeSelector"].as_str();
    let switched = active.map(|hash| if object.status["currentPodHash"] == hash { 100 } else { 0 });
    let count = |value: &Value| value.as_i64().unwrap_or(0);
    let pods = sets(cluster).into_iter().map(|set| {
        let wanted = count(&set.spec["replicas"]);
        (revision(set).unwrap_or(0), (wanted, count(&set.status["availableReplicas"])))
    });
    Some(Sample {
        at,
        phase: text("phase"),
        message: text("message"),
        step: object.status["currentStepIndex"].as_i64(),
        weight: routed.or(switched).unwrap_or_else(|| sight(object).weight()),
        pods: pods.collect(),
    })
}

fn report(outcome: Outcome, timeline: Vec<Sample>) -> Report {
    let status = &outcome.ending.status;
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    let is_begun = !timeline.is_empty();
    let result = match text("phase") {
        _ if !is_begun => Verdict::Stuck,
        _ if status["abort"] == true => Verdict::Aborted,
        phase::HEALTHY => Verdict::Promoted,
        phase::DEGRADED => Verdict::Degraded,
        phase::PAUSED => Verdict::Waiting,
        _ => Verdict::Stuck,
    };
    // That nothing is left to happen is the result, not a fault.
    let is_fault = |violation: &Violation| violation.invariant != "I-12";
    Report {
        result,
        duration: timeline.last().map_or(SignedDuration::ZERO, |last| last.at),
        peak_pods: timeline.iter().map(Sample::wanted).max().unwrap_or(0),
        violations: outcome.violations.iter().filter(|found| is_fault(found)).cloned().collect(),
        writes: outcome.writes,
        message: text("message").to_owned(),
        timeline,
    }
}

/// Who looks at the cluster after every change.
pub type Watcher<'w> = &'w mut dyn FnMut(Timestamp, &SimCluster, &Place);

#[cfg(test)]
mod tests;
