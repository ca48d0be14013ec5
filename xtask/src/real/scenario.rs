//! How is a scenario told on the control plane, and what does it leave behind?

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use gradus_api::names;
use gradus_engine::projection::project;
use gradus_lab::{
    Scenario,
    faults::{Fault, Planned},
    person::Action,
    scenario::Step,
    sight::Sight,
};
use jiff::Timestamp;
use kube::{Api, Client, api::DynamicObject, runtime::watcher};
use serde_json::{Value, json};
use thiserror::Error;

use super::{
    deeds,
    outside::{self, Outside},
    sets,
};
use crate::{
    Failure,
    audit::{Audit, Request, tally},
    plane::User,
    proxy, repository,
    stage::{ControllerKind, Stage, Supervised},
    summary::Summary,
};

/// What has not happened by then does not happen. Generous: many scenarios share two processors.
const STEP_WITHIN: Duration = Duration::from_secs(120);

/// Counts may be written a second late; what is not seen this long after its condition held is not
/// coming. A step without a condition, the end among them, has all the time of a step.
const SEEN_WITHIN: Duration = Duration::from_secs(15);

/// How long a watch may lag.
const SEEN_BY_ALL: Duration = Duration::from_secs(2);

/// How long the last writes of a scenario may still come.
const SETTLES_WITHIN: Duration = Duration::from_secs(3);

/// How a server answers who was overtaken by another writer.
const CONFLICT: u16 = 409;

/// Why a scenario did not go as it is told.
#[derive(Debug, Error)]
enum Untold {
    #[error("step {step}: not reached within {} s; the rollout stands at {seen}", STEP_WITHIN.as_secs())]
    NotReached { step: usize, seen: Value },
    #[error("step {step}: expected\n  {expected}\nfound\n  {seen}")]
    NotSeen { step: usize, expected: Value, seen: Value },
    #[error("the watch of rollout {0} ended: expected it to last")]
    WatchEnded(String),
}

/// How much of what is seen on the way counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Every expectation.
    Strict,
    /// Faults move things: only the order and the end count.
    Free,
}

/// What the controller has written for a scenario by its last step and shortly after, Events aside.
pub struct Counted {
    /// How often which object.
    pub writes: BTreeMap<String, usize>,
    /// How many tries more were refused because somebody else had written meanwhile.
    pub overtaken: usize,
    /// The seconds that were started.
    pub seconds: usize,
}

/// One scenario, with its times divided for a cluster that lives in real time.
pub struct RealScenario {
    scenario: Scenario,
    part: ControllerKind,
}

/// Every scenario of the repository, the example's included, but those that are left out.
pub fn all() -> Result<Vec<RealScenario>, Failure> {
    let every = every()?.into_iter();
    Ok(every.filter(|real| real.left_out_because().is_none()).collect())
}

/// The scenarios that cannot be played on a real control plane, each with a line that says why.
pub fn left_out() -> Result<Summary, Failure> {
    let mut summary = Summary::default();
    for real in every()? {
        if let Some(why) = real.left_out_because() {
            println!("  {} skipped: {why}", real.name());
            summary += Summary::skipped();
        }
    }
    Ok(summary)
}

fn every() -> Result<Vec<RealScenario>, Failure> {
    let mut scenarios = Vec::new();
    let folders = [
        ("scenarios", ControllerKind::Rollouts),
        ("examples/database-operator/scenarios", ControllerKind::Databases),
    ];
    for (folder, part) in folders {
        for scenario in gradus_lab::load_all(&repository().join(folder))? {
            scenarios.push(RealScenario { scenario: scenario.hastened(scenario.time_scale), part });
        }
    }
    Ok(scenarios)
}

impl RealScenario {
    /// A scenario about Rollouts that is in no file.
    pub fn of(scenario: Scenario) -> Self {
        RealScenario { scenario, part: ControllerKind::Rollouts }
    }

    fn left_out_because(&self) -> Option<&'static str> {
        if !self.scenario.plugins.is_empty() {
            return Some("its plugins are played by the simulator; real ones have their suite");
        }
        outside::unplayable(&self.scenario)
    }

    pub fn name(&self) -> &str {
        &self.scenario.name
    }

    /// The faults that it names, as the proxy does them.
    pub fn faults(&self) -> Vec<proxy::Planned> {
        let planned = |Planned { write, fault }: &Planned| proxy::Planned {
            write: proxy::Nth::ButEvents(*write),
            fault: struck(*fault),
        };
        self.scenario.faults.iter().map(planned).collect()
    }

    /// Whose scenario it is.
    pub fn part(&self) -> ControllerKind {
        self.part
    }

    /// A namespace of its own; `run` tells several runs of one scenario apart.
    pub fn namespace(&self, run: &str) -> String {
        let name = self.name().replace('_', "-");
        if run.is_empty() { name } else { format!("{name}-{run}") }
    }

    /// Plays it in a new namespace and returns how everything stands at the end, without what
    /// differs between two good runs.
    pub async fn play(
        &self,
        stage: &Stage,
        controller: &Supervised,
        namespace: &str,
        telling: Telling,
    ) -> Result<Value, Failure> {
        let audit = Audit::from_now(stage.plane.audit_log())?;
        let mut sightings = self.play_steps(stage, controller, namespace, telling).await?;
        let status = self.end(&mut sightings).await?;
        let deeds = deeds::of_controller(&audit, self.part.user(), namespace)?;
        Ok(json!({ "status": status, "sizes": self.scenario.end.sizes, "created": deeds }))
    }

    /// Plays it up to its last step.
    async fn play_steps(
        &self,
        stage: &Stage,
        controller: &Supervised,
        namespace: &str,
        telling: Telling,
    ) -> Result<Sightings, Failure> {
        let client = stage.plane.client(User::Person).await?;
        deeds::create_namespace(&client, namespace).await?;
        stage.kubelet.behave(namespace, self.scenario.images.clone());
        let outside = Outside::of(&self.scenario).await?;
        for object in &self.scenario.objects {
            let turned = outside.as_ref().map(|outside| outside.turned(object));
            deeds::apply(&client, namespace, turned.as_ref().unwrap_or(object)).await?;
            // Watches of two kinds are not ordered: a Rollout could be seen before what was there.
            if object["kind"] == "ReplicaSet" {
                tokio::time::sleep(SEEN_BY_ALL).await;
            }
        }
        let mut sightings = Sightings::of(client.clone(), namespace, self.scenario.rollout());
        sightings.outside = outside;
        let began = Instant::now();
        for (index, step) in self.scenario.steps.iter().enumerate() {
            sleep_until(began, step).await;
            let rollout = if step.gone {
                sightings.gone(index + 1).await?
            } else {
                sightings.reach(index + 1, step, telling).await?
            };
            let Some(action) = &step.r#do else { continue };
            match action {
                Action::Behave(behaviours) => stage.kubelet.behave(namespace, behaviours.clone()),
                Action::RestartController => controller.restart(),
                _ => {}
            }
            let name = self.scenario.rollout_name();
            for write in action.writes(name, &Sight::of(&rollout), Timestamp::now()) {
                let version = deeds::perform(&client, namespace, &write).await?;
                // What is done to another object need not change the Rollout.
                if write.kind == names::kind::ROLLOUT {
                    sightings.skip_to(version);
                }
            }
        }
        Ok(sightings)
    }

    /// Plays it up to its last step and counts.
    pub async fn count(&self, stage: &Stage, controller: &Supervised) -> Result<Counted, Failure> {
        let namespace = self.namespace("");
        let audit = Audit::from_now(stage.plane.audit_log())?;
        let began = Instant::now();
        self.play_steps(stage, controller, &namespace, Telling::Free).await?;
        let seconds = usize::try_from(began.elapsed().as_secs())? + 1;
        tokio::time::sleep(SETTLES_WITHIN).await;
        let requests = audit.requests_in(&namespace)?;
        let is_ours = |one: &&Request| {
            one.is_by(self.part.user()) && one.is_write() && one.resource != "events"
        };
        let (overtaken, writes): (Vec<&Request>, Vec<&Request>) =
            requests.iter().filter(is_ours).partition(|one| one.code == CONFLICT);
        Ok(Counted { writes: tally(writes), overtaken: overtaken.len(), seconds })
    }

    /// Waits for the end that the scenario names.
    async fn end(&self, sightings: &mut Sightings) -> Result<Value, Failure> {
        let end = &self.scenario.end;
        let step = self.scenario.steps.len() + 1;
        let last = Step { expect: Some(end.expect.clone()), ..Step::default() };
        sightings.reach(step, &last, Telling::Strict).await?;
        let (client, namespace) = (&sightings.client, sightings.namespace.as_str());
        let deadline = Instant::now() + STEP_WITHIN;
        loop {
            let listed = sets::list(client, namespace).await?;
            let sizes = sets::sizes(&listed);
            let marks = sets::marks(client, namespace, &listed).await?;
            let differs = |(revision, expected): (&i64, &String)| {
                marks.get(revision).is_none_or(|seen| seen.iter().any(|one| one != expected))
            };
            let is_marked = !end.pods.iter().any(differs);
            let mut found = Vec::new();
            for named in end.named() {
                found.push((named, deeds::find(client, namespace, named).await?));
            }
            let unmet = end.unmet(|wanted| {
                let one = found.iter().find(|(named, _)| *named == wanted)?;
                Some(one.1.clone()).filter(|object| !object.is_null())
            });
            if sizes == end.sizes && is_marked && unmet.is_none() {
                return Ok(end.expect.clone());
            }
            if deadline < Instant::now() {
                let expected = json!({ "sizes": end.sizes, "pods": end.pods });
                let seen = json!({ "sizes": sizes, "pods": marks, "?": unmet });
                return Err(Untold::NotSeen { step, expected, seen }.into());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// The Rollout, version after version.
struct Sightings {
    client: Client,
    namespace: String,
    name: String,
    versions: BoxStream<'static, watcher::Result<Option<DynamicObject>>>,
    /// The newest version seen; a null where there is none.
    rollout: Value,
    /// Versions before this one are older than what was done last.
    not_before: u64,
    /// It was there once.
    was_seen: bool,
    /// The metric servers of the scenario; they answer as long as it is looked at.
    outside: Option<Outside>,
}

impl Sightings {
    fn of(client: Client, namespace: &str, object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&object["metadata"]["name"]);
        let resource = deeds::resource(&text(&object["apiVersion"]), &text(&object["kind"]));
        let objects: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), namespace, &resource);
        let versions = watcher::watch_object(objects, &name).boxed();
        let namespace = namespace.to_owned();
        Self {
            client,
            namespace,
            name,
            versions,
            rollout: Value::Null,
            not_before: 0,
            was_seen: false,
            outside: None,
        }
    }

    /// What is older than this version no longer counts.
    fn skip_to(&mut self, version: u64) {
        self.not_before = self.not_before.max(version);
    }

    /// Waits until the Rollout stands as a step wants it.
    async fn reach(
        &mut self,
        number: usize,
        step: &Step,
        telling: Telling,
    ) -> Result<Value, Failure> {
        let began = Instant::now();
        let patience = if step.when.is_some() { SEEN_WITHIN } else { STEP_WITHIN };
        let mut held_since = None;
        loop {
            if self.holds(step) {
                let since = *held_since.get_or_insert_with(Instant::now);
                let Some(expected) = step.expect.clone().filter(|_| telling == Telling::Strict)
                else {
                    return Ok(self.rollout.clone());
                };
                let seen = self.projection().await?;
                if seen == expected {
                    return Ok(self.rollout.clone());
                }
                if since.elapsed() > patience {
                    return Err(Untold::NotSeen { step: number, expected, seen }.into());
                }
            } else {
                held_since = None;
            }
            if began.elapsed() > STEP_WITHIN {
                let seen = self.projection().await?;
                return Err(Untold::NotReached { step: number, seen }.into());
            }
            self.look().await?;
        }
    }

    /// Waits until the object is gone.
    async fn gone(&mut self, number: usize) -> Result<Value, Failure> {
        let began = Instant::now();
        while !self.rollout.is_null() {
            if began.elapsed() > STEP_WITHIN {
                let seen = self.rollout["metadata"].clone();
                return Err(Untold::NotReached { step: number, seen }.into());
            }
            self.look().await?;
        }
        self.not_before = 0;
        Ok(Value::Null)
    }

    fn holds(&self, step: &Step) -> bool {
        if self.rollout.is_null() {
            return step.when.is_none() && self.was_seen;
        }
        let version = self.rollout["metadata"]["resourceVersion"].as_str();
        let is_new = version.and_then(|text| text.parse().ok()) >= Some(self.not_before);
        let sight = Sight::of(&self.rollout);
        is_new && step.when.as_ref().is_none_or(|when| when.holds(&sight))
    }

    /// Takes the next version, or returns after a moment: ReplicaSets change without it.
    async fn look(&mut self) -> Result<(), Failure> {
        let moment = Duration::from_millis(500);
        match tokio::time::timeout(moment, self.versions.try_next()).await {
            Err(_) => {}
            Ok(Ok(Some(version))) => {
                self.rollout = serde_json::to_value(version)?;
                self.was_seen |= !self.rollout.is_null();
            }
            Ok(Ok(None)) => return Err(Untold::WatchEnded(self.name.clone()).into()),
            // The watch tries again by itself.
            Ok(Err(error)) => eprintln!("  {}: {error}", self.namespace),
        }
        Ok(())
    }

    async fn projection(&self) -> Result<Value, Failure> {
        if self.rollout.is_null() {
            return Ok(Value::Null);
        }
        let sets = sets::list(&self.client, &self.namespace).await?;
        let seen = project(&self.rollout["status"], &sets::revisions(&sets));
        Ok(self.outside.as_ref().map_or(seen.clone(), |outside| outside.as_declared(&seen)))
    }
}

/// What the proxy does where a scenario names this fault. It must know each of them.
fn struck(fault: Fault) -> proxy::Fault {
    match fault {
        Fault::CrashBefore => proxy::Fault::KillBefore,
        Fault::CrashAfter => proxy::Fault::KillAfter,
        Fault::Conflict => proxy::Fault::Answer(409),
        Fault::ServerError => proxy::Fault::Answer(500),
        Fault::Throttled => proxy::Fault::Answer(429),
        Fault::LostAnswer => proxy::Fault::LoseAnswer,
        Fault::Unreachable => proxy::Fault::Unreachable,
    }
}

async fn sleep_until(began: Instant, step: &Step) {
    let due = step.at.and_then(|at| Duration::try_from(at).ok());
    if let Some(wait) = due.and_then(|due| due.checked_sub(began.elapsed())) {
        tokio::time::sleep(wait).await;
    }
}

#[test]
fn the_faults_of_a_scenario_are_planned_at_its_writes() {
    let scenarios = all().unwrap();
    let scenario = scenarios.iter().find(|scenario| scenario.name() == "argo_issue_3316").unwrap();
    let planned = |number, fault| proxy::Planned { write: proxy::Nth::ButEvents(number), fault };
    let conflict = proxy::Fault::Answer(409);
    let expected = [
        planned(5, conflict),
        planned(6, conflict),
        planned(8, conflict),
        planned(11, proxy::Fault::LoseAnswer),
    ];
    assert_eq!(scenario.faults(), expected);
    let all_differ = Fault::ALL.map(struck);
    assert!(!all_differ.iter().enumerate().any(|(at, one)| all_differ[..at].contains(one)));
}
