//! What would a dry run have written that the controller beside it has not? Each decision is given a
//! while to be carried out by somebody else; what is not, and would still be done, is a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_engine::decision::{Change, Kind, ObjectRef, Op};
use gradus_engine::frame::{Frame, Meta};
use gradus_engine::kinds;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::act::Job;
use crate::shell::Seen;
use crate::watched::{Key, Selection};

/// How long somebody else has for it: an update in several passes, or a watch that is late.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// Most wishes that are kept: a controller that finds so much to do is alone, and has said so.
const LIMIT: usize = 10_000;

/// Counts of pods in a status: they follow the pods, and each controller counts at moments of its own.
const COUNTS: [&str; 5] =
    ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "HPAReplicas"];

/// What should become of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WantedState {
    /// It is there.
    There,
    /// It is gone, or on its way.
    Gone,
    /// It says what a merge patch says.
    So(Arc<Value>),
}

/// One write of a decision, not made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UnmadeWrite {
    /// The place of its engine.
    pub at: usize,
    /// Whose decision.
    pub key: Key,
    /// What would have been written.
    pub target: ObjectRef,
    wanted: WantedState,
    since: Timestamp,
    is_told: bool,
}

/// What was decided and is not there yet.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// By number, the older ones first.
    wishes: BTreeMap<u64, UnmadeWrite>,
    by_target: BTreeMap<ObjectRef, BTreeSet<u64>>,
    /// By engine and key.
    by_key: BTreeMap<(usize, Key), BTreeSet<u64>>,
    /// When those that are not told have waited for long enough.
    due: BTreeSet<(Timestamp, u64)>,
    /// How many there have been.
    count: u64,
}

impl Beside {
    /// Takes in a decision that is not carried out. It stands in place of the one before.
    pub(super) fn decided(&mut self, at: usize, job: &Job, now: Timestamp) {
        let changes = job.changes.iter().map(|change| (change.target.clone(), wanted(&change.op)));
        let status = job.status.iter().filter_map(|status| {
            let patch = of_status(&job.head.object.kind, &status.patch)?;
            Some((job.head.object.clone(), WantedState::So(patch)))
        });
        // Nobody watches pods.
        let is_seen = |(target, _): &(ObjectRef, WantedState)| *target.kind.plural != *"pods";
        let all: Vec<(ObjectRef, WantedState)> = changes.chain(status).filter(is_seen).collect();
        let before = self.by_key.get(&(at, job.key.clone())).into_iter().flatten();
        let is_over = |number: &&u64| {
            let wish = self.wishes.get(number);
            wish.is_none_or(|wish| !all.iter().any(|(target, wanted)| wish.is_for(target, wanted)))
        };
        let over: Vec<u64> = before.filter(is_over).copied().collect();
        over.into_iter().for_each(|number| self.forget(number));
        for (target, wanted) in all {
            let is_same = |(_, wish): (u64, &UnmadeWrite)| wish.at == at && wish.wanted == wanted;
            let is_known = self.of(&target).any(is_same);
            if !is_known && self.wishes.len() < LIMIT {
                let key = job.key.clone();
                self.add(UnmadeWrite { at, key, target, wanted, since: now, is_told: false });
            }
        }
    }

    /// Takes in what a watch has shown: what is there by now is no difference.
    pub(super) fn seen(&mut self, watch: &Selection, seen: &Seen) {
        let (frame, is_end) = match seen {
            Seen::Apply(frame) | Seen::InitApply(frame) => (frame, false),
            Seen::Delete(frame) => (frame, true),
            Seen::Init | Seen::InitDone | Seen::Resumed => return,
        };
        if self.wishes.is_empty() {
            return;
        }
        let Meta { namespace, name, .. } = &frame.meta;
        let object = ObjectRef::new(watch.kind.clone(), namespace, name);
        let met = self.of(&object).filter(|(_, wish)| is_end || wish.wanted.is_met(frame));
        let met: Vec<u64> = met.map(|(number, _)| number).collect();
        met.into_iter().for_each(|number| self.forget(number));
    }

    /// When something has waited for long enough.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    /// What nobody has done in time and `still` says would be done, each once.
    pub(super) fn take_due(
        &mut self,
        now: Timestamp,
        still: impl Fn(&UnmadeWrite) -> Option<Value>,
    ) -> Vec<UnmadeWrite> {
        let mut told = Vec::new();
        while let Some((_, number)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.due.pop_first();
            let Some(wish) = self.wishes.get_mut(&number) else { continue };
            wish.is_told = still(wish).is_some_and(|inspected| wish.is_wanted(&inspected));
            if wish.is_told {
                told.push(wish.clone());
            } else {
                self.forget(number);
            }
        }
        told
    }

    /// The wishes about an object.
    fn of(&self, target: &ObjectRef) -> impl Iterator<Item = (u64, &UnmadeWrite)> {
        let numbers = self.by_target.get(target).into_iter().flatten();
        numbers.filter_map(|number| Some((*number, self.wishes.get(number)?)))
    }

    fn add(&mut self, wish: UnmadeWrite) {
        self.count += 1;
        let number = self.count;
        self.by_target.entry(wish.target.clone()).or_default().insert(number);
        self.by_key.entry((wish.at, wish.key.clone())).or_default().insert(number);
        self.due.insert((wish.due(), number));
        self.wishes.insert(number, wish);
    }

    fn forget(&mut self, number: u64) {
        let Some(wish) = self.wishes.remove(&number) else { return };
        self.due.remove(&(wish.due(), number));
        leave(&mut self.by_target, &wish.target, number);
        leave(&mut self.by_key, &(wish.at, wish.key), number);
    }
}

/// Takes a number out of a set of them; an empty set is not kept.
fn leave<K: Ord>(sets: &mut BTreeMap<K, BTreeSet<u64>>, key: &K, number: u64) {
    if let Some(numbers) = sets.get_mut(key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            sets.remove(key);
        }
    }
}

impl UnmadeWrite {
    /// When somebody else has had the time for it.
    fn due(&self) -> Timestamp {
        self.since + PATIENCE
    }

    /// Is this what a decision would write there?
    fn is_for(&self, target: &ObjectRef, wanted: &WantedState) -> bool {
        self.target == *target && self.wanted == *wanted
    }

    /// Would the decision as it is now write the same?
    fn is_wanted(&self, inspected: &Value) -> bool {
        let decision = &inspected["decision"];
        let changes: Vec<Change> =
            serde_json::from_value(decision["changes"].clone()).unwrap_or_default();
        let is_planned = changes
            .iter()
            .any(|change| change.target == self.target && wanted(&change.op) == self.wanted);
        let is_status = match &self.wanted {
            WantedState::So(patch) if !patch["status"].is_null() => {
                says(&json!({ "status": decision["status"] }), patch)
            }
            _ => false,
        };
        is_planned || is_status
    }

    /// What would be written, for people.
    pub(super) fn words(&self) -> String {
        match &self.wanted {
            WantedState::There => format!("create {}", self.target),
            WantedState::Gone => format!("delete {}", self.target),
            WantedState::So(patch) => format!("patch {} with {patch}", self.target),
        }
    }
}

impl WantedState {
    fn is_met(&self, frame: &Frame) -> bool {
        match self {
            WantedState::There => true,
            WantedState::Gone => frame.meta.deleting.is_some(),
            WantedState::So(patch) => says(&frame.object(), patch),
        }
    }
}

fn wanted(op: &Op) -> WantedState {
    match op {
        Op::Create(_) => WantedState::There,
        Op::Delete | Op::Evict => WantedState::Gone,
        Op::Merge(patch) => WantedState::So(Arc::clone(patch)),
    }
}

/// What of a status is compared; nothing where there is nothing.
fn of_status(kind: &Kind, patch: &Value) -> Option<Arc<Value>> {
    // What is measured, and when, is a matter of each controller.
    let is_run = *kind == kinds::ANALYSIS_RUN;
    let fields = patch["status"].as_object()?.iter();
    let compared = fields.filter(|(name, _)| match is_run {
        true => *name == "phase",
        false => !COUNTS.contains(&name.as_str()) && *name != "duration",
    });
    let fields: serde_json::Map<String, Value> =
        compared.map(|(name, value)| (name.clone(), value.clone())).collect();
    (!fields.is_empty()).then(|| Arc::new(json!({ "status": fields })))
}

/// Does an object say what a merge patch would make it say? Moments need not be the same.
fn says(object: &Value, patch: &Value) -> bool {
    match (object, patch) {
        (_, Value::Null) => is_empty(object),
        (_, Value::Object(fields)) => fields.iter().all(|(name, wanted)| {
            let found = &object[name.as_str()];
            if is_moment(name) {
                return is_empty(found) == is_empty(wanted);
            }
            says(found, wanted)
        }),
        (Value::Array(found), Value::Array(wanted)) if is_typed(wanted) => {
            wanted.iter().all(|one| found.iter().any(|found| says(found, one)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            let mut pairs = found.iter().zip(wanted);
            found.len() == wanted.len() && pairs.all(|(found, wanted)| says(found, wanted))
        }
        (found, wanted) => found == wanted || is_empty(found) && is_empty(wanted),
    }
}

/// Conditions: in any order, and there may be others.
fn is_typed(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|one| one["type"].is_string())
}

/// `startedAt`, `lastUpdateTime`, `scale-down-deadline`.
fn is_moment(name: &str) -> bool {
    ["At", "Time", "deadline"].iter().any(|end| name.ends_with(end)) || is_version(name)
}

/// What each write of an object changes.
fn is_version(name: &str) -> bool {
    name == "resourceVersion" || name == "uid"
}

/// Nothing, as Go leaves it out.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_so) => !is_so,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests;
