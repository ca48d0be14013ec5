//! What would become of a user's own manifests? They are deployed on a cluster in memory, updated,
//! and watched to the end.

mod made_up;
mod measured;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_api::analysis::AnalysisTemplateSpec;
use gradus_api::names::{self, phase};
use gradus_api::rollout::RolloutSpec;
use gradus_engine::analysis::merge;
use gradus_engine::rollout::{analyses, services};
use gradus_engine::traffic::is_served;
use gradus_simkube::behave::{Behaviour, Behaviours};
use gradus_simkube::object::Object;
use gradus_simkube::{Place, SimCluster};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::checks::Violation;
use crate::deeds::{NAMESPACE, sight};
use crate::ends::{revision, sets};
use crate::faults::Faults;
use crate::outlook::{Outlook, unanswerable};
use crate::person::Action;
use crate::played::Script;
use crate::scenario::{Beside, End, Scenario, Step};
use crate::sight::When;
use crate::simulate::{Outcome, Prepared, Unprepared, simulate_watched};
use measured::Gatherer;
pub use measured::TryoutMeasurement;

/// The update begins so long after the first deploy: by then it is settled, and waiting is free.
const UPDATE_AT: SignedDuration = SignedDuration::from_hours(24);

/// The revision of the update.
const NEW: i64 = 2;

/// What is to be tried.
#[derive(Clone, Debug, Default)]
pub struct Tryout {
    /// The manifests: one Rollout, and what stands beside it.
    pub objects: Vec<Value>,
    /// The image of the update.
    pub image: String,
    /// The update, where it is more than another image: patches of objects, the Rollout's last.
    pub patches: Vec<Value>,
    /// How images behave.
    pub behaviours: Vec<Behaviour>,
    /// What people do: each at its time, and those that wait for a sight one after the other.
    pub deeds: Vec<PlannedDeed>,
    /// What step plugins answer, by name.
    pub plugins: BTreeMap<String, Script>,
    /// How the versions do, and what analyses find of it.
    pub outlook: Outlook,
}

/// What somebody does.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedDeed {
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
    pub result: UpdateResult,
    /// From the beginning of the update to its end, or to where it stays.
    pub duration: SignedDuration,
    /// Most pods at once, of all revisions, since the update began.
    pub peak_pods: i64,
    /// Where the rollout stood, whenever that changed; times count from the beginning of the
    /// update.
    pub timeline: Vec<Sample>,
    /// The share of requests that fail from each moment on; nothing where nobody declares any.
    pub errors: Vec<(SignedDuration, f64)>,
    /// What the analyses measured, in order.
    pub measured: Vec<TryoutMeasurement>,
    /// Invariants that were broken.
    pub violations: Vec<Violation>,
    /// Writes of the controller.
    pub writes: usize,
    /// Why it is where it is, in the words of its status.
    pub message: String,
}

/// How an update ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateResult {
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
    /// Share of users at the new revision, from 0 to 1: by weight, by switch, else by pods.
    pub share: f64,
    /// Wanted and available pods of each revision.
    pub pods: BTreeMap<i64, (i64, i64)>,
    /// The AnalysisRuns and Experiments there are.
    pub runs: Vec<RunSample>,
}

/// How an AnalysisRun or an Experiment stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSample {
    /// Its name.
    pub name: String,
    /// `status.phase`.
    pub phase: String,
    /// `status.message`.
    pub message: String,
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
        let named = services::references(&spec).map(|named| named.name);
        let mut missing: Vec<String> =
            named.filter(|name| !is_there(name)).map(str::to_owned).collect();
        // Without a Service nobody is asked, and there is nothing to measure.
        let is_service = |object: &Value| object["kind"] == "Service";
        let is_judged = |object: &Value| {
            object["kind"].as_str().is_some_and(|kind| kind.ends_with("AnalysisTemplate"))
        };
        if missing.is_empty()
            && !self.objects.iter().any(is_service)
            && self.objects.iter().any(is_judged)
        {
            missing.extend(rollout["metadata"]["name"].as_str().map(str::to_owned));
        }
        missing
    }

    /// Templates of its analyses that the manifests lack, and whether each is a cluster's; they are
    /// made up.
    pub fn missing_templates(&self) -> Vec<(String, bool)> {
        let Some(rollout) = self.rollout() else { return Vec::new() };
        let (spec, _) = gradus_api::decode::decode::<RolloutSpec>(&rollout["spec"]);
        let all = analyses::of(&spec);
        let mut named: BTreeSet<(String, bool)> = all
            .iter()
            .flat_map(|analysis| analysis.named().map(|(name, all)| (name.to_owned(), all)))
            .collect();
        let steps = spec.strategy.canary.iter().flat_map(|canary| &canary.steps);
        for analysis in steps.flat_map(|step| &step.experiment).flat_map(|one| &one.analyses) {
            let is_cluster = analysis.cluster_scope == Some(true);
            named.insert((analysis.template_name.clone(), is_cluster));
        }
        let is_there = |(name, is_cluster): &(String, bool)| {
            let kind = merge::kind_name(*is_cluster);
            let mut objects = self.objects.iter();
            objects.any(|object| object["kind"] == kind && object["metadata"]["name"] == **name)
        };
        named.into_iter().filter(|named| !is_there(named)).collect()
    }

    /// Metrics of templates in the manifests that a simulation cannot answer: the template, the
    /// metric, and why.
    pub fn unanswerable(&self) -> Vec<(String, String, String)> {
        let kinds = [names::kind::ANALYSIS_TEMPLATE, names::kind::CLUSTER_ANALYSIS_TEMPLATE];
        let mut found = Vec::new();
        for template in self.objects.iter().filter(|o| kinds.iter().any(|k| o["kind"] == *k)) {
            let (spec, _) = gradus_api::decode::decode::<AnalysisTemplateSpec>(&template["spec"]);
            let name = template["metadata"]["name"].as_str().unwrap_or_default();
            for metric in &spec.metrics {
                let has_value = self.outlook.declares(&metric.name);
                if let Some(why) = unanswerable(metric).filter(|_| !has_value) {
                    found.push((name.to_owned(), metric.name.clone(), why));
                }
            }
        }
        found
    }

    /// Plugins that its steps, metrics and traffic name and that nobody plays.
    pub fn unplayed_plugins(&self) -> BTreeSet<String> {
        let mut named = BTreeSet::new();
        for object in &self.objects {
            let (canary, spec) = (&object["spec"]["strategy"]["canary"], &object["spec"]);
            let steps = canary["steps"].as_array().into_iter().flatten();
            named.extend(steps.filter_map(|step| step["plugin"]["name"].as_str()));
            let routers = &canary["trafficRouting"]["plugins"];
            let metrics = spec["metrics"].as_array().into_iter().flatten();
            let maps = metrics.map(|metric| &metric["provider"]["plugin"]).chain([routers]);
            let names = maps.filter_map(Value::as_object).flat_map(|plugins| plugins.keys());
            named.extend(names.map(String::as_str));
        }
        let is_unplayed = |name: &&str| !self.plugins.contains_key(*name) && !is_served(name);
        named.into_iter().filter(is_unplayed).map(str::to_owned).collect()
    }

    /// The scenario of it; `is_awaited` says whether it ends only with the update.
    fn scenario(&self, is_awaited: bool) -> Scenario {
        let selector = self.rollout().map(|rollout| &rollout["spec"]["selector"]["matchLabels"]);
        let made_up = self.missing_services().into_iter().map(|name| {
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
                    "spec": { "selector": selector, "ports": [{ "port": 80 }] } })
        });
        let templates = self.missing_templates().into_iter().map(|(name, is_cluster)| {
            json!({ "apiVersion": names::API_VERSION, "kind": merge::kind_name(is_cluster),
                    "metadata": { "name": name }, "spec": { "metrics": [
                        { "name": "made-up", "provider": { "web": { "url": "http://made-up/traffic" } } }] } })
        });
        let made_up = made_up.chain(templates).chain(self.made_up_secrets());
        let objects = made_up.chain(self.objects.iter().cloned()).map(in_one_namespace).collect();
        let begin = self.updates().into_iter().enumerate().map(|(index, action)| {
            let healthy = When { phase: Some(phase::HEALTHY.to_owned()), ..When::default() };
            let when = (index == 0).then_some(healthy);
            Step { at: Some(UPDATE_AT), when, r#do: Some(action), ..Step::default() }
        });
        let waiting = self.deeds.iter().filter(|deed| deed.timed().is_none());
        let waiting = waiting.map(|deed| Step {
            at: deed.after.map(|after| UPDATE_AT + after),
            when: deed.when.clone(),
            r#do: Some(deed.action.clone()),
            ..Step::default()
        });
        let mut timed: Vec<(SignedDuration, Action)> =
            self.deeds.iter().filter_map(PlannedDeed::timed).collect();
        let turns: BTreeSet<SignedDuration> =
            self.outlook.turns().filter(|turn| turn.is_positive()).collect();
        timed.extend(turns.into_iter().map(|turn| {
            let behaviours = self.outlook.behaviours(&self.behaviours, turn);
            (turn, Action::Behave(Behaviours::new(behaviours)))
        }));
        timed.sort_by_key(|(after, _)| *after);
        let over = When { over: Some(true), ..When::default() };
        let end = is_awaited.then(|| Step { when: Some(over), ..Step::default() });
        Scenario {
            kind: names::kind::ROLLOUT.to_owned(),
            name: "tryout".to_owned(),
            about: "A user's own manifests.".to_owned(),
            time_scale: 1,
            objects,
            images: Behaviours::new(
                self.outlook.behaviours(&self.behaviours, SignedDuration::ZERO),
            ),
            metrics: None,
            plugins: self.plugins.clone(),
            steps: begin.chain(waiting).chain(end).collect(),
            faults: Vec::new(),
            end: End::default(),
            beside: Beside { update: UPDATE_AT, deeds: timed, outlook: Some(self.outlook.clone()) },
        }
    }

    /// Everything that the update changes.
    fn updates(&self) -> Vec<Action> {
        match self.patches.as_slice() {
            [] => vec![self.update()],
            patches => {
                let here = patches.iter().cloned().map(in_one_namespace);
                here.map(Action::Patch).collect()
            }
        }
    }

    /// The update: another image, where the template is.
    fn update(&self) -> Action {
        let Some(workload) = self.workload() else { return Action::SetImage(self.image.clone()) };
        let mut containers = template(workload)["spec"]["containers"].clone();
        for container in containers.as_array_mut().into_iter().flatten() {
            container["image"] = json!(self.image);
        }
        let template = json!({ "template": { "spec": { "containers": containers } } });
        let is_inside = !workload["spec"]["template"].is_null();
        let mut patch = if is_inside { json!({ "spec": template }) } else { template };
        for field in ["apiVersion", "kind", "metadata"] {
            patch[field] = workload[field].clone();
        }
        Action::Patch(patch)
    }

    /// The object that the Rollout takes its template from, where it names one.
    fn workload(&self) -> Option<&Value> {
        let named = &self.rollout()?["spec"]["workloadRef"];
        self.objects.iter().find(|object| {
            object["kind"] == named["kind"] && object["metadata"]["name"] == named["name"]
        })
    }

    /// The first image of the first revision.
    pub fn first_image(&self) -> Option<&str> {
        let source = self.workload().or(self.rollout())?;
        template(source)["spec"]["containers"][0]["image"].as_str()
    }

    /// The scenario as it may be disturbed: it is told even where nobody promotes at the end.
    pub fn prepared(&self) -> Result<Prepared, Unprepared> {
        Prepared::new(self.scenario(false))
    }

    /// Runs it.
    pub fn run(&self, faults: &Faults) -> Result<Report, Unprepared> {
        let prepared = Prepared::new(self.scenario(true))?;
        let begin = prepared.start() + UPDATE_AT;
        let mut timeline: Vec<Sample> = Vec::new();
        let mut gatherer = Gatherer::default();
        let outcome = simulate_watched(&prepared, faults, &mut |now, cluster, rollout| {
            gatherer.look(cluster, begin);
            if let Some(sample) = sample(now.duration_since(begin), cluster, rollout)
                && !timeline.last().is_some_and(|last| last.stands_like(&sample))
            {
                timeline.push(sample);
            }
        });
        let timeline = since_the_update(timeline);
        let errors = self.errors(&timeline);
        let mut report =
            Report { measured: gatherer.measured, ..report(outcome, timeline, errors) };
        report.show_promotion();
        Ok(report)
    }

    /// The share of requests that fail, whenever that changes.
    fn errors(&self, timeline: &[Sample]) -> Vec<(SignedDuration, f64)> {
        let last = timeline.last().filter(|_| self.outlook.has_errors()).map(|last| last.at);
        let Some(last) = last else { return Vec::new() };
        let first = self.first_image().unwrap_or_default();
        let turns = self.outlook.turns().filter(|turn| *turn <= last);
        let moments: BTreeSet<SignedDuration> =
            timeline.iter().map(|sample| sample.at).chain(turns).collect();
        let mut errors: Vec<(SignedDuration, f64)> = Vec::new();
        for at in moments {
            let share = timeline.iter().rev().find(|sample| sample.at <= at);
            let share = share.map_or(0.0, |sample| sample.share);
            let of = |image: &str| self.outlook.error_share(image, at);
            let failing = share * of(&self.image) + (1.0 - share) * of(first);
            if errors.last().is_none_or(|(_, before)| (before - failing).abs() > f64::EPSILON) {
                errors.push((at, failing));
            }
        }
        errors
    }
}

impl Report {
    /// A router leads everybody to the new pods before these are the stable ones and its weight is 0
    /// again; where both happen in one write, the moment between them is shown all the same.
    fn show_promotion(&mut self) {
        let Some(last) = self.timeline.iter().rposition(|sample| sample.weight > 0) else { return };
        let (Some(before), Some(after)) = (self.timeline.get(last), self.timeline.get(last + 1))
        else {
            return;
        };
        if self.result != UpdateResult::Promoted || before.weight >= 100 {
            return;
        }
        let shown = Sample { at: after.at, weight: 100, share: 1.0, ..before.clone() };
        self.timeline.insert(last + 1, shown);
    }

    /// The share of requests that fail at a moment, where anybody declares it.
    pub fn errors_at(&self, at: SignedDuration) -> Option<f64> {
        self.errors.iter().rev().find(|(from, _)| *from <= at).map(|(_, share)| *share)
    }
}

impl PlannedDeed {
    /// When and what, if it waits for nothing but its time.
    fn timed(&self) -> Option<(SignedDuration, Action)> {
        let after = self.after.filter(|_| self.when.is_none())?;
        Some((after, self.action.clone()))
    }
}

/// What was seen since the update began; where that is nothing, how it stood then.
fn since_the_update(timeline: Vec<Sample>) -> Vec<Sample> {
    let (before, since): (Vec<Sample>, Vec<Sample>) =
        timeline.into_iter().partition(|sample| sample.at.is_negative());
    match before.last().filter(|last| since.is_empty() && last.phase == phase::HEALTHY) {
        Some(last) => vec![Sample { at: SignedDuration::ZERO, ..last.clone() }],
        None => since,
    }
}

/// The pod template of a workload.
fn template(workload: &Value) -> &Value {
    let inside = &workload["spec"]["template"];
    if inside.is_null() { &workload["template"] } else { inside }
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
    let pods: BTreeMap<i64, (i64, i64)> = pods.collect();
    let stable = object.status["canary"]["weights"]["stable"]["weight"].as_i64();
    let weights = routed.zip(stable).or(switched.map(|weight| (weight, 100 - weight)));
    let (new, old) = weights.unwrap_or_else(|| by_pods(&pods));
    Some(Sample {
        at,
        phase: text("phase"),
        message: text("message"),
        step: object.status["currentStepIndex"].as_i64(),
        weight: routed.or(switched).unwrap_or_else(|| sight(object).weight()),
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 pods")]
        share: new as f64 / (new + old).max(1) as f64,
        pods,
        runs: runs(cluster),
    })
}

/// Available pods of the new revision, and of all others.
fn by_pods(pods: &BTreeMap<i64, (i64, i64)>) -> (i64, i64) {
    let available = |is_new: bool| {
        let side = pods.iter().filter(|(revision, _)| (**revision >= NEW) == is_new);
        side.map(|(_, (_, available))| available).sum()
    };
    (available(true), available(false))
}

fn runs(cluster: &SimCluster) -> Vec<RunSample> {
    let kinds = [names::kind::ANALYSIS_RUN, names::kind::EXPERIMENT];
    let kinds =
        kinds.into_iter().filter_map(|kind| cluster.kinds().by_name(names::API_VERSION, kind));
    let objects = kinds.flat_map(|kind| cluster.list(kind, NAMESPACE));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let sample = |object: &Arc<Object>| RunSample {
        name: object.meta.name.to_string(),
        phase: text(&object.status["phase"]),
        message: text(&object.status["message"]),
    };
    objects.map(sample).collect()
}

fn report(outcome: Outcome, timeline: Vec<Sample>, errors: Vec<(SignedDuration, f64)>) -> Report {
    let status = &outcome.ending.status;
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    let is_begun = !timeline.is_empty();
    let result = match text("phase") {
        _ if !is_begun => UpdateResult::Stuck,
        _ if status["abort"] == true => UpdateResult::Aborted,
        phase::HEALTHY => UpdateResult::Promoted,
        phase::DEGRADED => UpdateResult::Degraded,
        phase::PAUSED => UpdateResult::Waiting,
        _ => UpdateResult::Stuck,
    };
    // That nothing is left to happen is the result, not a fault.
    let is_fault = |violation: &Violation| violation.invariant != "I-12";
    Report {
        result,
        measured: Vec::new(),
        duration: timeline.last().map_or(SignedDuration::ZERO, |last| last.at),
        peak_pods: timeline.iter().map(Sample::wanted).max().unwrap_or(0),
        violations: outcome.violations.iter().filter(|found| is_fault(found)).cloned().collect(),
        errors,
        writes: outcome.writes,
        message: text("message").to_owned(),
        timeline,
    }
}

/// Who looks at the cluster after every change.
pub type Watcher<'w> = &'w mut dyn FnMut(Timestamp, &SimCluster, &Place);

#[cfg(test)]
mod tests;
