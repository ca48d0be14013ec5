//! What does a decision want done? Stages make proposals; the plan takes them in, one after the other.

use std::borrow::Cow;
use std::sync::Arc;

use gradus_api::names::label;
use gradus_api::rollout::RolloutStatus;
use jiff::Timestamp;
use serde_json::Value;

use super::Memo;
use super::objects::{Edit, Objects};
use crate::ask::Ask;
use crate::decision::{After, Change, ChangeId, Event, EventKind, ObjectRef, Op};
use crate::kinds;

/// Everything proposed so far. Nothing is taken out of it again before it is decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Changes, in the order in which they are made.
    pub changes: Vec<Change>,
    /// Events, in the contract's order.
    pub events: Vec<Event>,
    /// What it wants to know, answered or not.
    pub asks: Vec<Ask>,
    /// The earliest moment at which time alone changes something.
    pub wake_at: Option<Timestamp>,
    /// How often a ReplicaSet got another size.
    pub resizes: usize,
    /// Where the creation of the new ReplicaSet stands.
    pub creation: Creation,
    /// May a ReplicaSet get another size?
    pub room: Room,
}

/// Once a decision is closed, a pass that wants another size is not acted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Room {
    /// Whatever is proposed is planned.
    #[default]
    Open,
    /// No size may be planned any more.
    Closed,
    /// One was proposed all the same: nobody acts on this pass.
    Exceeded,
}

/// A created ReplicaSet gets its first size in the same decision, and then no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Creation {
    /// Nothing was created here.
    #[default]
    None,
    /// Created with size 0; its first size may still be given.
    Unsized,
    /// Created, and its size is settled.
    Sized,
}

/// What one stage wants: writes with what they make of their objects, Events, questions, a time to
/// look again, and what it notes in the status or the memo.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Proposal {
    steps: Vec<Step>,
    asks: Vec<Ask>,
    wake_at: Option<Timestamp>,
    status: Option<Arc<RolloutStatus>>,
    memo: Option<Memo>,
}

#[derive(Debug)]
enum Step {
    /// A write, joined with what is planned for its object.
    Join(Change, Edit),
    /// A write, left out where one is planned for its object.
    IfFree(Change, Edit),
    Tell(Told),
}

/// An Event about the Rollout.
#[derive(Debug)]
struct Told {
    kind: EventKind,
    reason: Cow<'static, str>,
    message: String,
    /// The object whose write it reports; `None` for the status.
    of: Option<ObjectRef>,
}

impl Proposal {
    /// Writes an object, joined with what is planned for it.
    pub fn write(mut self, change: Change, edit: Edit) -> Self {
        self.steps.push(Step::Join(change, edit));
        self
    }

    /// Patches an object, joined with what is planned for it.
    pub fn patch(self, target: ObjectRef, body: Value, version: u64, edit: Edit) -> Self {
        self.write(Change::patch(target, body, version), edit)
    }

    /// Writes an object that nothing else is planned for.
    pub fn write_if_free(mut self, change: Change, edit: Edit) -> Self {
        self.steps.push(Step::IfFree(change, edit));
        self
    }

    /// Tells of what the status says.
    pub fn tell(
        self,
        kind: EventKind,
        reason: impl Into<Cow<'static, str>>,
        message: String,
    ) -> Self {
        self.told(kind, reason.into(), message, None)
    }

    /// Tells of the write of an object, or of the status where none is planned.
    pub fn tell_of(self, of: ObjectRef, reason: &'static str, message: String) -> Self {
        self.told(EventKind::Normal, reason.into(), message, Some(of))
    }

    fn told(
        mut self,
        kind: EventKind,
        reason: Cow<'static, str>,
        message: String,
        of: Option<ObjectRef>,
    ) -> Self {
        self.steps.push(Step::Tell(Told { kind, reason, message, of }));
        self
    }

    /// Asks a question, once per decision.
    pub fn ask(mut self, ask: Ask) -> Self {
        self.asks.push(ask);
        self
    }

    /// Asks to be woken at this moment, or earlier.
    pub fn wake(mut self, at: Timestamp) -> Self {
        self.wake_at = earlier(self.wake_at, Some(at));
        self
    }

    /// Notes another status.
    pub fn note(mut self, status: impl Into<Arc<RolloutStatus>>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// Recalls this.
    pub fn recall(mut self, memo: Memo) -> Self {
        self.memo = Some(memo);
        self
    }

    /// Both, this one first. Of two statuses or memos the later one counts.
    pub fn and(mut self, other: Proposal) -> Self {
        self.steps.extend(other.steps);
        self.asks.extend(other.asks);
        self.wake_at = earlier(self.wake_at, other.wake_at);
        self.status = other.status.or(self.status);
        self.memo = other.memo.or(self.memo);
        self
    }
}

impl FromIterator<Proposal> for Proposal {
    fn from_iter<I: IntoIterator<Item = Proposal>>(all: I) -> Self {
        all.into_iter().fold(Proposal::default(), Proposal::and)
    }
}

impl Plan {
    /// Is a write of this object planned?
    pub fn has(&self, target: &ObjectRef) -> bool {
        self.changes.iter().any(|change| change.target == *target)
    }

    /// A created ReplicaSet has got its size.
    pub fn with_size(mut self) -> Self {
        if self.creation != Creation::None {
            self.creation = Creation::Sized;
        }
        self
    }

    /// Takes a proposal in; the objects become what its writes make of them.
    pub fn add(&mut self, objects: &mut Objects<'_>, proposal: Proposal) {
        for step in proposal.steps {
            match step {
                Step::Join(change, edit) => self.join(objects, change, edit),
                Step::IfFree(change, _) if self.has(&change.target) => {}
                Step::IfFree(change, edit) => {
                    objects.apply(&change.target, edit);
                    self.changes.push(change);
                }
                Step::Tell(told) => self.tell(objects, told),
            }
        }
        for ask in proposal.asks {
            match self.asks.iter_mut().find(|known| known.id == ask.id) {
                Some(known) => known.after = known.after.max(ask.after),
                None => self.asks.push(ask),
            }
        }
        self.wake_at = earlier(self.wake_at, proposal.wake_at);
        if let Some(status) = proposal.status {
            objects.status = status;
        }
        if let Some(memo) = proposal.memo {
            objects.memo = memo;
        }
    }

    fn join(&mut self, objects: &mut Objects<'_>, change: Change, edit: Edit) {
        if self.room != Room::Open && matches!(edit, Edit::Resize(..)) {
            self.room = Room::Exceeded;
            return;
        }
        match &edit {
            Edit::Resize(at, size) if objects.sets[*at].size != *size => self.resizes += 1,
            Edit::NewSet(_) => self.creation = Creation::Unsized,
            _ => {}
        }
        let target = change.target.clone();
        let planned = self.changes.iter_mut().find(|planned| planned.target == target);
        match (planned.map(|planned| &mut planned.op), &change.op) {
            (Some(Op::Create(planned) | Op::Merge(planned)), Op::Merge(body)) => {
                merge(Arc::make_mut(planned), Value::clone(body));
            }
            (Some(_), _) => {} // What is being deleted needs no patch.
            (None, _) => {
                let at = self.place_of(objects, &change);
                self.changes.insert(at, change);
            }
        }
        objects.apply(&target, edit);
    }

    /// A ReplicaSet is resized before a new one is created: the new one's pods count on the room. So
    /// is, after an abort, whatever takes users off the version that was given up: a create may be
    /// refused.
    fn place_of(&self, objects: &Objects<'_>, change: &Change) -> usize {
        let is_set = |change: &Change| change.target.kind == kinds::REPLICA_SET;
        let is_create = |planned: &Change| is_set(planned) && matches!(planned.op, Op::Create(_));
        let create = self.changes.iter().position(is_create);
        let is_patch = matches!(change.op, Op::Merge(_));
        let is_early =
            is_set(change) || objects.rollout().status.abort && leads_away(objects, change);
        create.filter(|_| is_patch && is_early).unwrap_or(self.changes.len())
    }

    fn tell(&mut self, objects: &Objects<'_>, told: Told) {
        let Told { kind, reason, message, of } = told;
        let after = of.and_then(|of| self.id_of_write(&of)).map_or(After::Status, After::Change);
        let about = objects.rollout().reference();
        self.events.push(Event { about, uid: None, kind, reason, message, after });
    }

    fn id_of_write(&self, target: &ObjectRef) -> Option<ChangeId> {
        let planned = self.changes.iter().find(|change| change.target == *target);
        planned.map(|change| change.id.clone())
    }
}

/// Does this take users off a version that is given up? A router gives such a version no more than it
/// has; a Service may also move on to the next one.
fn leads_away(objects: &Objects<'_>, change: &Change) -> bool {
    let Op::Merge(body) = &change.op else { return false };
    let selected = &body["spec"]["selector"][label::POD_TEMPLATE_HASH];
    objects.routes.contains_key(&change.target) || *selected == *objects.status.stable_rs
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
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
    use serde_json::json;

    use super::super::tests::fixture::Fixture;
    use super::*;

    /// A ReplicaSet that is created, and one that is there.
    const SETS: [&str; 2] = ["web-new", "web-old"];

    fn set(name: &str) -> ObjectRef {
        ObjectRef::new(kinds::REPLICA_SET, &"shop".into(), &name.into())
    }

    fn patch(name: &str, body: Value) -> Change {
        Change::patch(set(name), body, 7)
    }

    #[test]
    fn an_object_occurs_once_and_resizes_stand_before_a_create() {
        let [new, old] = SETS;
        let create = || Change::create(set(new), json!({ "kind": "ReplicaSet" }));
        let size = |size: i32| json!({ "spec": { "replicas": size } });
        let pod = ObjectRef::new(kinds::POD, &"shop".into(), &"web-1".into());
        let evict = || Change::evict(pod.clone(), crate::uid::Uid::default());
        let joined = |change| Proposal::default().write(change, Edit::Unseen);
        let if_free = |change| Proposal::default().write_if_free(change, Edit::Unseen);
        let cases: [(&str, Vec<Proposal>, Vec<Change>); 5] = [
            (
                "a patch of what is created is part of the create",
                vec![joined(create()), joined(patch(new, size(2)))],
                vec![Change::create(
                    set(new),
                    json!({ "kind": "ReplicaSet", "spec": { "replicas": 2 } }),
                )],
            ),
            (
                "of two sizes the later one counts",
                vec![joined(patch(old, size(4))), joined(patch(old, size(3)))],
                vec![patch(old, size(3))],
            ),
            (
                "the room is made before it is used",
                vec![joined(create()), joined(patch(old, size(3)))],
                vec![patch(old, size(3)), create()],
            ),
            (
                "what is planned is left alone",
                vec![if_free(evict()), if_free(evict())],
                vec![evict()],
            ),
            (
                "what is being deleted needs no patch",
                vec![
                    joined(Change::delete(set(old), crate::uid::Uid::default())),
                    joined(patch(old, size(0))),
                ],
                vec![Change::delete(set(old), crate::uid::Uid::default())],
            ),
        ];
        let world = Fixture::canary(2, json!([])).world();
        for (what, proposals, expected) in cases {
            let mut objects = Objects::new(&world, &[], Timestamp::UNIX_EPOCH);
            let mut plan = Plan::default();
            proposals.into_iter().for_each(|proposal| plan.add(&mut objects, proposal));
            assert_eq!(plan.changes, expected, "{what}");
        }
    }

    #[test]
    fn an_event_follows_the_write_it_reports_or_the_status() {
        let [new, old] = SETS;
        let world = Fixture::canary(2, json!([])).world();
        let mut objects = Objects::new(&world, &[], Timestamp::UNIX_EPOCH);
        let mut plan = Plan::default();
        let proposal = Proposal::default()
            .write(Change::create(set(new), json!({})), Edit::Unseen)
            .patch(set(new), json!({ "spec": {} }), 7, Edit::Unseen)
            .tell_of(set(new), "Resized", "as part of its creation".into())
            .tell_of(set(old), "Created", "before this decision".into());
        plan.add(&mut objects, proposal);
        let after: Vec<After> = plan.events.into_iter().map(|event| event.after).collect();
        let create = ChangeId::of("create", &set(new));
        assert_eq!(after, [After::Change(create), After::Status]);
    }

    #[test]
    fn a_question_is_asked_once_and_wants_the_later_answer() {
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        let ask = |after| Ask { after, ..Ask::read(set("web")) };
        let world = Fixture::canary(2, json!([])).world();
        for (one, other, expected) in
            [(None, None, None), (at(5), None, at(5)), (None, at(5), at(5)), (at(6), at(5), at(6))]
        {
            let mut objects = Objects::new(&world, &[], Timestamp::UNIX_EPOCH);
            let mut plan = Plan::default();
            plan.add(&mut objects, Proposal::default().ask(ask(one)).ask(ask(other)));
            assert_eq!(plan.asks, [ask(expected)]);
        }
    }

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
