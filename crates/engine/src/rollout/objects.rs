//! How does the cluster stand once what is planned is done? The World, with the planned writes applied to
//! what it knows of each object.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names;
use gradus_api::rollout::{
    BlueGreenStrategy, CanaryStep, CanaryStrategy, RolloutSpec, RolloutStatus,
};
use jiff::Timestamp;

use super::Memo;
use crate::decision::{Kind, ObjectRef};
use crate::kinds;
use crate::traffic::{self, RouteView, RoutingObjects};
use crate::world::{Deadline, Known, ReplicaSetView, RolloutView, RunView, ServiceView, World};

/// The objects as the planned writes leave them. Stages read it; only [`Objects::apply`] changes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Objects<'w> {
    /// What is really there.
    pub world: &'w World,
    /// The one time of this decision.
    pub now: Timestamp,
    /// The status of the Rollout.
    pub status: Arc<RolloutStatus>,
    /// What the engine will recall.
    pub memo: Memo,
    /// The generation of the Rollout.
    pub generation: i64,
    /// The revision annotation of the Rollout.
    pub revision: Option<String>,
    /// The ReplicaSets.
    pub sets: Vec<Arc<ReplicaSetView>>,
    /// The Services.
    pub services: BTreeMap<Arc<str>, Arc<ServiceView>>,
    /// The AnalysisRuns.
    pub runs: Vec<Arc<RunView>>,
    /// The Experiments.
    pub experiments: Vec<Arc<RunView>>,
    /// The objects that route traffic.
    pub routes: RoutingObjects,
}

/// What one write makes of the object it is about.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    /// Nothing that is looked at again in this decision.
    Unseen,
    /// One more ReplicaSet.
    NewSet(Arc<ReplicaSetView>),
    /// A ReplicaSet looks like this.
    Set(usize, Arc<ReplicaSetView>),
    /// A ReplicaSet has this size, and its note of the desired number of pods is of now.
    Resize(usize, i32),
    /// A ReplicaSet has this deadline, or none.
    Deadline(usize, Deadline),
    /// A ReplicaSet is being deleted.
    DeleteSet(usize),
    /// A Service looks like this.
    Service(Arc<ServiceView>),
    /// An AnalysisRun or Experiment looks like this.
    Run(Arc<RunView>),
    /// A routing object looks like this, or is gone.
    Route(Option<RouteView>),
    /// The Rollout has another spec.
    Generation,
    /// The Rollout has this revision.
    Revision(String),
}

impl<'w> Objects<'w> {
    /// The World as it is.
    pub fn new(world: &'w World, sets: &[Arc<ReplicaSetView>], now: Timestamp) -> Self {
        let rollout = &world.rollout;
        Objects {
            world,
            now,
            status: Arc::clone(&rollout.status),
            memo: world.recall.memo.clone(),
            generation: rollout.generation,
            revision: rollout.annotations.get(names::annotation::REVISION).cloned(),
            sets: sets.to_vec(),
            services: present(&world.services),
            runs: world.runs.present().cloned().unwrap_or_default(),
            experiments: world.experiments.present().cloned().unwrap_or_default(),
            routes: traffic::seen(world),
        }
    }

    /// Takes in what a write makes of its object.
    pub fn apply(&mut self, target: &ObjectRef, edit: Edit) {
        match edit {
            Edit::Unseen => {}
            Edit::NewSet(set) => self.sets.push(set),
            Edit::Set(at, set) => self.sets[at] = set,
            Edit::Resize(at, size) => self.resize(at, size),
            Edit::Deadline(at, deadline) => Arc::make_mut(&mut self.sets[at]).deadline = deadline,
            Edit::DeleteSet(at) => Arc::make_mut(&mut self.sets[at]).deleting = true,
            Edit::Service(service) => {
                self.services.insert(Arc::clone(&service.name), service);
            }
            Edit::Run(run) => self.put_run(&target.kind, run),
            Edit::Route(Some(route)) => {
                self.routes.insert(target.clone(), route);
            }
            Edit::Route(None) => {
                self.routes.remove(target);
            }
            Edit::Generation => self.generation += 1,
            Edit::Revision(revision) => self.revision = Some(revision),
        }
    }

    fn resize(&mut self, at: usize, size: i32) {
        let replicas = self.replicas();
        let view = Arc::make_mut(&mut self.sets[at]);
        view.desired_replicas = Some(replicas);
        if view.size != size {
            // Of pods that an earlier, unseen resize has taken away none comes back by growing
            // again.
            view.reported_available = view.available();
            view.size = size;
            view.generation += 1;
        }
    }

    fn put_run(&mut self, kind: &Kind, run: Arc<RunView>) {
        let list = if *kind == kinds::EXPERIMENT { &mut self.experiments } else { &mut self.runs };
        match list.iter_mut().find(|known| known.name == run.name) {
            Some(known) => *known = run,
            None => list.push(run),
        }
    }

    /// The AnalysisRuns, or the Experiments.
    pub fn runs_of(&self, kind: &Kind) -> &[Arc<RunView>] {
        if *kind == kinds::EXPERIMENT { &self.experiments } else { &self.runs }
    }

    /// A Service.
    pub fn service(&self, name: &str) -> Option<&Arc<ServiceView>> {
        self.services.get(name)
    }

    /// The Rollout as it is stored.
    pub fn rollout(&self) -> &'w RolloutView {
        &self.world.rollout
    }

    /// What the user asks for.
    pub fn spec(&self) -> &'w RolloutSpec {
        &self.world.rollout.spec.fields
    }

    /// The canary strategy; decisions of other strategies do not ask for it.
    pub fn canary(&self) -> &'w CanaryStrategy {
        self.spec().strategy.canary.as_ref().expect("only canaries ask for it")
    }

    /// The blue-green strategy; decisions of other strategies do not ask for it.
    pub fn blue_green(&self) -> &'w BlueGreenStrategy {
        self.spec().strategy.blue_green.as_ref().expect("only blue-green rollouts ask for it")
    }

    /// Is this a blue-green rollout?
    pub fn is_blue_green(&self) -> bool {
        self.spec().strategy.blue_green.is_some()
    }

    /// The canary's steps; none of other strategies.
    pub fn steps(&self) -> &'w [CanaryStep] {
        self.spec().strategy.canary.as_ref().map_or(&[], |canary| &canary.steps)
    }

    /// `spec.replicas`.
    pub fn replicas(&self) -> i32 {
        self.spec().replicas_or_default()
    }

    /// The step being carried out, with its index; none when all are done.
    pub fn current_step(&self) -> Option<(usize, &'w CanaryStep)> {
        let index = usize::try_from(self.status.current_step_index.unwrap_or(0)).unwrap_or(0);
        self.steps().get(index).map(|step| (index, step))
    }

    /// Does a person want the rest skipped? An abort that came after that wish takes it back; a wish
    /// that came after an abort (its time is already noted) takes the abort back.
    pub fn promotes_fully(&self) -> bool {
        let status = &self.status;
        let is_overruled = status.abort && status.aborted_at.is_none();
        status.promote_full && !is_overruled
    }

    /// Is the update given up, in favour of the stable revision?
    pub fn is_aborted(&self) -> bool {
        self.status.abort && !self.promotes_fully() && !self.is_promoted()
    }

    /// Is the status about the update to this ReplicaSet already?
    pub fn has_begun(&self, new: usize) -> bool {
        *self.sets[new].hash == *self.status.current_pod_hash
    }

    /// Does the stored status say so already?
    pub fn is_begun_in_store(&self, new: usize) -> bool {
        *self.sets[new].hash == *self.rollout().status.current_pod_hash
    }

    /// Is the current revision the stable one?
    pub fn is_promoted(&self) -> bool {
        self.status.stable_rs == self.status.current_pod_hash
    }

    /// Is the status about the generation that is there now?
    pub fn is_observed(&self) -> bool {
        self.status.observed_generation.parse() == Ok(self.generation)
    }

    /// The generation as the status writes it.
    pub fn generation_text(&self) -> String {
        self.generation.to_string()
    }
}

fn present(
    services: &BTreeMap<Arc<str>, Known<Arc<ServiceView>>>,
) -> BTreeMap<Arc<str>, Arc<ServiceView>> {
    let found = services.iter().filter_map(|(name, known)| Some((name, known.present()?)));
    found.map(|(name, service)| (Arc::clone(name), Arc::clone(service))).collect()
}
