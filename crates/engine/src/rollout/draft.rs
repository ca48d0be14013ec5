//! How far has this decision come? The scratch copy of the World that the passes work on.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names;
use gradus_api::rollout::{
    BlueGreenStrategy, CanaryStep, CanaryStrategy, RolloutSpec, RolloutStatus,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Memo;
use super::runs::Findings;
use crate::ask::Ask;
use crate::decision::{After, Change, ChangeId, Event, EventKind, ObjectRef, Op};
use crate::traffic::{self, RoutingObjects};
use crate::world::{Known, ReplicaSetView, RolloutView, RunView, ServiceView, World};

/// The scratch copy as it goes from hand to hand, some forty times in a pass: by its address.
pub(super) type Draft<'w> = Box<Scratch<'w>>;

/// The World as the passes so far leave it, and what they want done.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scratch<'w> {
    /// What is really there.
    pub world: &'w World,
    /// The one time of this decision.
    pub now: Timestamp,
    /// The status as the last pass left it.
    pub status: Arc<RolloutStatus>,
    /// The ReplicaSets as the planned changes leave them.
    pub sets: Vec<Arc<ReplicaSetView>>,
    /// The Services as the planned changes leave them.
    pub services: BTreeMap<Arc<str>, Arc<ServiceView>>,
    /// The AnalysisRuns as the planned changes leave them.
    pub runs: Vec<Arc<RunView>>,
    /// The Experiments as the planned changes leave them.
    pub experiments: Vec<Arc<RunView>>,
    /// What this pass has found out about both; every pass begins with nothing.
    pub found: Box<Findings>,
    /// The routing objects as the planned changes leave them.
    pub routes: RoutingObjects,
    /// The generation as the planned changes leave it.
    pub generation: i64,
    /// The revision annotation as the planned changes leave it.
    pub revision: Option<String>,
    /// Changes planned, in order.
    pub changes: Vec<Change>,
    /// Events, in the contract's order.
    pub events: Vec<Event>,
    /// What it wants to know, answered or not.
    pub asks: Vec<Ask>,
    /// What the engine will recall.
    pub memo: Memo,
    /// The earliest moment at which time alone changes something.
    pub wake_at: Option<Timestamp>,
    /// How often a ReplicaSet got another size.
    pub resizes: usize,
    /// Where the creation of the new ReplicaSet stands in this decision.
    pub creation: Creation,
    /// No further change may be planned: a pass that wants one is not acted on.
    pub is_closed: bool,
    /// A further change was wanted all the same.
    pub is_overfull: bool,
}

/// A created ReplicaSet gets its first size in the same decision, and then no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Creation {
    /// Nothing was created here.
    None,
    /// Created with size 0; its first size may still be given.
    Unsized,
    /// Created, and its size is settled.
    Sized,
}

impl<'w> Scratch<'w> {
    /// The World as it is.
    pub fn new(world: &'w World, sets: &[Arc<ReplicaSetView>], now: Timestamp) -> Draft<'w> {
        let rollout = &world.rollout;
        Box::new(Scratch {
            world,
            now,
            status: Arc::clone(&rollout.status),
            sets: sets.to_vec(),
            services: present(&world.services),
            runs: world.runs.present().cloned().unwrap_or_default(),
            experiments: world.experiments.present().cloned().unwrap_or_default(),
            found: Box::default(),
            routes: traffic::seen(world),
            generation: rollout.generation,
            revision: rollout.annotations.get(names::annotation::REVISION).cloned(),
            changes: Vec::new(),
            events: Vec::new(),
            asks: Vec::new(),
            memo: world.recall.memo.clone(),
            wake_at: None,
            resizes: 0,
            creation: Creation::None,
            is_closed: false,
            is_overfull: false,
        })
    }

    /// The Rollout as it is stored.
    pub fn rollout(&self) -> &'w RolloutView {
        &self.world.rollout
    }

    /// What the user asks for.
    pub fn spec(&self) -> &'w RolloutSpec {
        &self.world.rollout.spec.fields
    }

    /// The canary strategy; decisions of other strategies do not come here.
    pub fn canary(&self) -> &'w CanaryStrategy {
        self.spec().strategy.canary.as_ref().expect("only canaries are drafted here")
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

    /// Plans a merge patch of an object, joined with what is already planned for it.
    pub fn patch(mut self: Box<Self>, target: ObjectRef, body: Value, version: u64) -> Box<Self> {
        let planned = self.changes.iter_mut().find(|change| change.target == target);
        match planned.map(|change| &mut change.op) {
            Some(Op::Create(planned) | Op::Merge(planned)) => merge(Arc::make_mut(planned), body),
            Some(Op::Delete | Op::Evict) => {} // What is being deleted needs no patch.
            None => {
                let change = Change::patch(target, body, version);
                let at = self.place_of(&change);
                self.changes.insert(at, change);
            }
        }
        self
    }

    /// Plans a change of an object that nothing else is planned for.
    pub fn plan(mut self: Box<Self>, change: Change) -> Box<Self> {
        if !self.changes.iter().any(|planned| planned.target == change.target) {
            self.changes.push(change);
        }
        self
    }

    /// A ReplicaSet is resized before a new one is created: the new one's pods count on the room. So
    /// is, after an abort, whatever takes users off the version that was given up: a create may be
    /// refused.
    fn place_of(&self, change: &Change) -> usize {
        let is_set = |change: &Change| change.target.kind == crate::kinds::REPLICA_SET;
        let is_create = |planned: &Change| is_set(planned) && matches!(planned.op, Op::Create(_));
        let create = self.changes.iter().position(is_create);
        let leads_away = self.rollout().status.abort && self.leads_away(change);
        create.filter(|_| is_set(change) || leads_away).unwrap_or(self.changes.len())
    }

    /// Does this take users off a version that is given up? A router gives such a version no more than
    /// it has; a Service may also move on to the next one.
    fn leads_away(&self, change: &Change) -> bool {
        let Op::Merge(body) = &change.op else { return false };
        let selected = &body["spec"]["selector"][names::label::POD_TEMPLATE_HASH];
        self.routes.contains_key(&change.target) || *selected == *self.status.stable_rs
    }

    /// Resizes a ReplicaSet, or only refreshes its note of the desired number of pods.
    pub fn resize(mut self: Box<Self>, at: usize, size: i32) -> Box<Self> {
        let replicas = self.replicas();
        if self.sets[at].size == size && self.sets[at].desired_replicas == Some(replicas) {
            return self;
        }
        if self.is_closed {
            self.is_overfull = true;
            return self;
        }
        let set = Arc::clone(&self.sets[at]);
        let mut body = json!({ "metadata": { "annotations": {
            names::annotation::DESIRED_REPLICAS: replicas.to_string(),
        } } });
        if size == 0 && set.deadline != crate::world::Deadline::None {
            body["metadata"]["annotations"][names::annotation::SCALE_DOWN_DEADLINE] = Value::Null;
        }
        if set.size != size {
            body["spec"] = json!({ "replicas": size });
        }
        let target = self.rollout().replica_set(&set.name);
        let mut draft = self.patch(target.clone(), body, set.version);
        let view = Arc::make_mut(&mut draft.sets[at]);
        view.desired_replicas = Some(replicas);
        if set.size == size {
            return draft;
        }
        // Of pods that an earlier, unseen resize has taken away none comes back by growing again.
        view.reported_available = view.available();
        view.size = size;
        draft.resizes += 1;
        view.generation += 1;
        let direction = if size > set.size { "up" } else { "down" };
        let revision = set.revision.unwrap_or(0);
        let message = format!(
            "Scaled {direction} ReplicaSet {} (revision {revision}) from {} to {size}",
            set.name, set.size
        );
        let after = After::Change(draft.id_of_write(&target));
        draft.event(EventKind::Normal, names::event::SCALING_REPLICA_SET, message, after)
    }

    /// Adds an Event about the Rollout.
    pub fn event(
        mut self: Box<Self>,
        kind: EventKind,
        reason: &'static str,
        message: String,
        after: After,
    ) -> Box<Self> {
        let about = self.rollout().reference();
        self.events.push(Event { about, uid: None, kind, reason: reason.into(), message, after });
        self
    }

    /// The id that a write of this object has, or will have, in this decision.
    pub fn id_of_write(&self, target: &ObjectRef) -> ChangeId {
        let planned = self.changes.iter().find(|change| change.target == *target);
        planned.map_or_else(|| ChangeId::of("patch", target), |change| change.id.clone())
    }

    /// Asks a question once per decision.
    pub fn ask(mut self: Box<Self>, ask: Ask) -> Box<Self> {
        if self.asks.iter().all(|known| known.id != ask.id) {
            self.asks.push(ask);
        }
        self
    }

    /// Asks to be woken at this moment, or earlier.
    pub fn wake(mut self: Box<Self>, at: Timestamp) -> Box<Self> {
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
        self
    }
}

fn present(
    services: &BTreeMap<Arc<str>, Known<Arc<ServiceView>>>,
) -> BTreeMap<Arc<str>, Arc<ServiceView>> {
    let found = services.iter().filter_map(|(name, known)| Some((name, known.present()?)));
    found.map(|(name, service)| (Arc::clone(name), Arc::clone(service))).collect()
}

/// RFC 7386, for joining two patches of one object: nulls are kept, they delete.
fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_of_one_object_are_joined() {
        let mut first = json!({ "metadata": { "annotations": { "a": "1" } } });
        merge(
            &mut first,
            json!({ "metadata": { "annotations": { "b": null } }, "spec": { "replicas": 2 } }),
        );
        let expected = json!({
            "metadata": { "annotations": { "a": "1", "b": null } }, "spec": { "replicas": 2 }
        });
        assert_eq!(first, expected);
    }
}
