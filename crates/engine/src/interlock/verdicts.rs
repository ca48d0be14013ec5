//! I-8: does anything move towards a revision that a run or an Experiment has not found good?

use gradus_api::rollout::{RolloutStatus, StepKind};

use super::pods::{Pods, selected_after, size_after};
use super::traffic::Traffic;
use crate::decision::Change;
use crate::traffic::TrafficSide;
use crate::world::{Known, RunPhase, RunView, World};

/// The verdicts against a revision that nobody has overruled.
pub(super) struct Verdicts<'w> {
    world: &'w World,
    /// Those who did not find it good.
    against: Vec<&'w RunView>,
}

impl<'w> Verdicts<'w> {
    pub(super) fn of(world: &'w World) -> Self {
        let against = if is_overruled(world) { Vec::new() } else { named(world) };
        Verdicts { world, against }
    }

    /// What is wrong with a change, if anything: users are sent to a condemned revision.
    pub(super) fn judge(
        &self,
        pods: &Pods,
        traffic: Option<&Traffic<'_>>,
        change: &Change,
    ) -> Option<String> {
        if self.against.is_empty() {
            return None;
        }
        let name = &change.target.name;
        if let Some(hash) = selected_after(change) {
            let is_new = pods.selected(name) != hash && self.is_reached(name, traffic);
            let by = self.condemner(hash).filter(|_| is_new)?;
            return Some(format!("Service {name} would select revision {hash}, {}", verdict(by)));
        }
        if let Some(next) = size_after(change) {
            let (hash, size) = pods.size(name)?;
            let by = self.condemner(hash).filter(|_| size < next && self.is_sent_by_pods())?;
            return Some(format!("ReplicaSet {name} from {size} to {next}, {}", verdict(by)));
        }
        let traffic = traffic?;
        let (from, to) = traffic.moved(change).filter(|(from, to)| from < to)?;
        let by = self.condemner(&traffic.selected(pods, TrafficSide::Canary))?;
        Some(format!("the canary's weight from {from} to {to}, {}", verdict(by)))
    }

    /// What is wrong with the next status, if anything: a condemned revision becomes the stable one.
    pub(super) fn judge_status(&self, next: &RolloutStatus) -> Option<String> {
        let stored = &self.world.rollout.status;
        let by = self.condemner(&next.stable_rs).filter(|_| next.stable_rs != stored.stable_rs)?;
        Some(format!("revision {} would become the stable one, {}", next.stable_rs, verdict(by)))
    }

    fn condemner(&self, hash: &str) -> Option<&'w RunView> {
        self.against.iter().copied().find(|run| *run.hash == *hash)
    }

    /// Do users come through this Service? A preview's do not, nor those of a side without traffic.
    fn is_reached(&self, name: &str, traffic: Option<&Traffic<'_>>) -> bool {
        let strategy = &self.world.rollout.spec.fields.strategy;
        let active = strategy.blue_green.as_ref().map(|blue_green| &blue_green.active_service);
        let stable = strategy.canary.as_ref().map(|canary| &canary.stable_service);
        let is_canary = traffic.is_some_and(|traffic| {
            traffic.backends().canary == name && traffic.carried().into_iter().any(|it| it > 0)
        });
        is_canary || active.into_iter().chain(stable).any(|service| service == name)
    }

    /// Is a canary's share of the traffic its share of the pods, as many as there were before?
    fn is_sent_by_pods(&self) -> bool {
        let spec = &self.world.rollout.spec.fields;
        let canary = spec.strategy.canary.as_ref();
        let sets = self.world.replica_sets.present().into_iter().flatten();
        let mut noted = sets.filter(|set| set.size > 0).filter_map(|set| set.desired_replicas);
        canary.is_some_and(|canary| canary.traffic_routing.is_none())
            && noted.all(|noted| noted == spec.replicas_or_default())
    }
}

fn verdict(by: &RunView) -> String {
    format!("which {} has not found good ({})", by.name, by.phase.text())
}

/// Has a person decided since: all of it, another attempt, or to go on without a verdict?
fn is_overruled(world: &World) -> bool {
    let stored = &world.rollout.status;
    let is_retried = stored.aborted_at.is_some() && !stored.abort;
    let is_resumed = stored.controller_pause && stored.pause_conditions.is_empty();
    stored.promote_full || is_retried || is_resumed
}

/// The AnalysisRuns and Experiments that the status names and that did not end well. One of a step that a person has
/// skipped does not count.
fn named(world: &World) -> Vec<&RunView> {
    let (spec, stored) = (&world.rollout.spec.fields, &*world.rollout.status);
    let index = usize::try_from(stored.current_step_index.unwrap_or(0)).unwrap_or(0);
    let steps = spec.strategy.canary.as_ref().map_or(&[][..], |canary| &canary.steps);
    let at_experiment =
        steps.get(index).is_some_and(|step| matches!(step.kind(), StepKind::Experiment(_)));
    let (canary, blue_green) = (&stored.canary, &stored.blue_green);
    let slots = [
        &canary.current_step_analysis_run_status,
        &canary.current_background_analysis_run_status,
        &blue_green.pre_promotion_analysis_run_status,
        &blue_green.post_promotion_analysis_run_status,
    ];
    let slots = slots.into_iter().flatten().map(|slot| &*slot.name);
    let runs = slots.filter_map(|name| find(&world.runs, name));
    let runs = runs.filter(|run| run.step.is_none_or(|step| step == index));
    let experiment = Some(&*canary.current_experiment).filter(|_| at_experiment);
    let experiment = experiment.and_then(|name| find(&world.experiments, name));
    runs.chain(experiment).filter(|run| is_against(run.phase)).collect()
}

fn is_against(phase: RunPhase) -> bool {
    phase.is_completed() && phase != RunPhase::Successful
}

/// The AnalysisRun or Experiment of this name.
pub(super) fn find<'w>(
    known: &'w Known<Vec<std::sync::Arc<RunView>>>,
    name: &str,
) -> Option<&'w RunView> {
    let found = known.present()?.iter().find(|run| *run.name == *name)?;
    Some(found)
}
