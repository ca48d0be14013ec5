//! What must never be wrong with a write of ours? I-1 to I-9, I-21, I-22 and the user's commands, judged write
//! by write from running sums; the ends of runs are judged in `ends.rs`.

mod commands;
mod deadline;
mod evictions;
mod pauses;
mod runs;
mod services;
mod sizes;
mod steps;
#[cfg(test)]
mod tests;
mod told;
mod traffic;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use gradus_controller::cluster::Write as Sent;
use gradus_engine::decision::{Expect, Op};
use gradus_simkube::kinds::{KindId, Kinds};
use gradus_simkube::object::{Key, Object};
use gradus_simkube::{Change, Write};
use jiff::Timestamp;
use serde_json::Value;

use evictions::Pods;
use pauses::Resumed;
use runs::Runs;
use sizes::Sizes;
use told::Told;
use traffic::Traffic;

pub(crate) use runs::named as runs_of;

/// The name under which the controller writes.
pub const CONTROLLER: &str = "gradus";

/// Something that must never happen has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which invariant, as measures name it.
    pub invariant: &'static str,
    /// The write at fault: its number among ours and the version it made.
    pub write: String,
    /// The object at fault.
    pub object: String,
    /// What was found and what was expected.
    pub numbers: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { invariant, write, object, numbers } = self;
        write!(f, "{invariant} violated by {write} of {object}: {numbers}")
    }
}

/// How often each object was created and deleted by us.
pub type Counts = BTreeMap<String, (u32, u32)>;

/// Judges every write of ours.
#[derive(Clone, Debug)]
pub struct Checker {
    rollout: KindId,
    sizes: Sizes,
    runs: Runs,
    traffic: Traffic,
    pods: Pods,
    resumed: Resumed,
    /// The version of each object that the controller has seen, by uid.
    seen: BTreeMap<Arc<str>, u64>,
    /// The spec of the Rollout: as it is,
    spec: Option<Arc<Value>>,
    /// and as the controller was last shown it.
    shown_spec: Option<Arc<Value>>,
    /// Services that users reach.
    serving: Vec<String>,
    /// Without a Rollout nothing can be done wrong: what is still written about it is written by
    /// somebody whose watch has not shown its end.
    is_gone: bool,
    tally: Tally,
}

/// Judges every write of a controller.
pub trait Judge: fmt::Debug {
    /// Takes in one write, whoever made it, and judges it if it is the controller's.
    fn judge(&mut self, write: &Write, now: Timestamp);

    /// What was counted and found so far.
    fn tally(&self) -> &Tally;

    /// The same, to be changed.
    fn tally_mut(&mut self) -> &mut Tally;

    /// Takes in one write that another controller of ours has made, and counts it. Whether that one
    /// was right to make it, its own judge says.
    fn witness(&mut self, write: &Write, now: Timestamp) {
        let known = self.tally().violations.len();
        self.judge(write, now);
        self.tally_mut().violations.truncate(known);
    }

    /// The controller sends this write. It must say on what it rests, or it could undo what somebody
    /// has done since, at the one moment that nobody tries.
    fn sent(&mut self, sent: &Sent);

    /// The controller has been shown this object.
    fn shown(&mut self, _object: &Object) {}

    /// The controller has been told of these pods, which this selector selects.
    fn listed(&mut self, _selector: &str, _pods: &[Arc<Object>], _now: Timestamp) {}

    /// The controller has decided on what it was shown so far.
    fn decided(&mut self) {}

    /// The controller is another one, which was shown nothing.
    fn restarted(&mut self) {}

    /// What is wrong at the end.
    fn judge_end(&self) -> Option<(&'static str, String)> {
        None
    }

    /// How many writes of ours were done.
    fn writes(&self) -> usize {
        self.tally().writes
    }

    /// How often we created and deleted each object.
    fn counts(&self) -> &Counts {
        &self.tally().counts
    }

    /// What was found so far.
    fn violations(&self) -> &[Violation] {
        &self.tally().violations
    }
}

/// What is counted of every program's writes, and what was found.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    writes: usize,
    counts: Counts,
    /// The kind of objects that stand only while the canary has traffic. How often that comes and goes
    /// depends on what is seen when; whether one is left does not.
    passing: Option<KindId>,
    violations: Vec<Violation>,
}

impl Judge for Tally {
    fn judge(&mut self, write: &Write, _: Timestamp) {
        self.take_in(write);
    }

    fn tally(&self) -> &Tally {
        self
    }

    fn tally_mut(&mut self) -> &mut Tally {
        self
    }

    fn sent(&mut self, sent: &Sent) {
        if !matches!(sent.op, Op::Create(_)) && sent.expect == Expect::Nothing {
            let write = format!("a write after our write {}", self.writes);
            let numbers = "it names no version and no uid".to_owned();
            let object = sent.target.to_string();
            self.violations.push(Violation { invariant: "rule 2", write, object, numbers });
        }
    }
}

impl Tally {
    /// Something is wrong that no write of an object shows.
    pub(crate) fn accuse(&mut self, violation: Violation) {
        self.violations.push(violation);
    }

    /// Counts a write if it is the controller's; is it?
    fn take_in(&mut self, write: &Write) -> bool {
        // Events are told, not done: a crash may lose some, and they are not counted.
        let is_ours = &*write.user == CONTROLLER && write.after.kind != KindId::EVENT;
        if is_ours {
            self.writes += 1;
            self.count(write);
        }
        is_ours
    }

    fn count(&mut self, write: &Write) {
        if write.after.kind == KindId::POD {
            return self.count_eviction(write);
        }
        let made = match write.change {
            Change::Added => (1, 0),
            Change::Deleted => (0, 1),
            Change::Modified => return,
        };
        let name = lasting_name_of(&write.after);
        let count = self.counts.entry(name.clone()).or_default();
        *count = (count.0 + made.0, count.1 + made.1);
        if self.passing == Some(write.after.kind) && *count == (1, 1) {
            self.counts.remove(&name);
        }
    }

    /// Names of pods are drawn anew in every run: their evictions are counted by owner.
    fn count_eviction(&mut self, write: &Write) {
        let owner = write.after.controller().filter(|_| evictions::is_eviction(write));
        if let Some(owner) = owner {
            self.counts.entry(format!("a pod of {}", owner.name)).or_default().1 += 1;
        }
    }

    fn blame(&mut self, invariant: &'static str, write: &Write, numbers: String) {
        let place = format!("our write {} (version {})", self.writes, write.version);
        let object = name_of(&write.after);
        self.violations.push(Violation { invariant, write: place, object, numbers });
    }
}

impl Checker {
    /// A checker for a cluster that knows these kinds, in which Rollouts are of this one.
    pub fn new(rollout: KindId, kinds: &Kinds) -> Self {
        Checker {
            rollout,
            sizes: Sizes::default(),
            runs: Runs::default(),
            traffic: Traffic::new(kinds),
            pods: Pods::default(),
            resumed: Resumed::default(),
            seen: BTreeMap::new(),
            spec: None,
            shown_spec: None,
            serving: Vec::new(),
            is_gone: false,
            tally: Tally {
                passing: kinds.by_group("getambassador.io", "Mapping"),
                ..Tally::default()
            },
        }
    }
}

impl Judge for Checker {
    fn judge(&mut self, write: &Write, now: Timestamp) {
        let is_ours = self.tally.take_in(write);
        self.runs.take_in(write, is_ours, write.after.kind == self.rollout);
        let found = match write.after.kind {
            KindId::REPLICA_SET => {
                let mut found = self.sizes.replica_set(write, is_ours, &self.traffic);
                let grows = self.runs.judge_size(write, is_ours);
                found.extend(grows.map(|numbers| ("I-8", numbers)));
                found
            }
            KindId::POD => {
                let found = self.pods.judge(write, is_ours, self.sizes.wanted(), now);
                found.map(|numbers| ("I-1", numbers)).into_iter().collect()
            }
            KindId::SERVICE => {
                let empty = services::judge(write, &self.serving, &self.sizes);
                let found = empty.filter(|_| is_ours);
                let traffic = self.traffic.judge(write, is_ours, &self.sizes, &self.runs);
                let moves = self.runs.judge_switch(write, &self.serving).filter(|_| is_ours);
                let moves = moves.map(|numbers| ("I-8", numbers));
                found.into_iter().chain(traffic).chain(moves).collect()
            }
            kind if self.traffic.is_route(kind) => {
                self.traffic.judge(write, is_ours, &self.sizes, &self.runs)
            }
            kind if kind == self.rollout => {
                self.is_gone = write.change == Change::Deleted;
                self.traffic.rollout(&write.after);
                self.rollout_spec(&write.after.spec);
                self.sizes.rollout_status(&write.after.status);
                self.rollout_write(write, is_ours, now)
            }
            _ => Vec::new(),
        };
        let is_gone = self.is_gone;
        for (invariant, numbers) in found.into_iter().filter(|_| !is_gone) {
            self.tally.blame(invariant, write, numbers);
        }
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn tally_mut(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn sent(&mut self, sent: &Sent) {
        self.tally.sent(sent);
    }

    /// What is older than what it has seen says nothing.
    fn shown(&mut self, object: &Object) {
        let seen = self.seen.entry(Arc::clone(&object.meta.uid)).or_default();
        if object.version < *seen {
            return;
        }
        *seen = object.version;
        if object.kind == KindId::REPLICA_SET {
            self.sizes.shown(object);
        } else if object.kind == self.rollout {
            self.traffic.shown(object);
            if !is_same(self.shown_spec.as_ref(), &object.spec) {
                self.sizes.shown_rollout(&object.spec);
                self.pods.shown(&object.spec);
                self.shown_spec = Some(Arc::clone(&object.spec));
            }
        } else {
            self.runs.shown(object);
        }
    }

    fn listed(&mut self, selector: &str, pods: &[Arc<Object>], now: Timestamp) {
        self.pods.listed(selector, pods, now);
    }

    fn judge_end(&self) -> Option<(&'static str, String)> {
        self.traffic.judge_end(&self.sizes)
    }

    fn decided(&mut self) {
        self.sizes.decided();
        self.runs.decided();
        self.traffic.decided();
        self.pods.decided(self.sizes.decided_available());
    }

    fn restarted(&mut self) {
        self.seen.clear();
        self.shown_spec = None;
        self.sizes.restarted();
        self.runs.restarted();
        self.pods.restarted();
    }
}

impl Checker {
    /// Takes in the spec of the Rollout, if it is another.
    fn rollout_spec(&mut self, spec: &Arc<Value>) {
        if is_same(self.spec.as_ref(), spec) {
            return;
        }
        self.sizes.rollout(spec);
        self.serving = services::of(spec);
        self.pods.rollout(spec);
        self.spec = Some(Arc::clone(spec));
    }

    fn rollout_write(
        &mut self,
        write: &Write,
        is_ours: bool,
        now: Timestamp,
    ) -> Vec<(&'static str, String)> {
        let wrong = |what: &str| vec![("ownership", format!("a Rollout is never {what}"))];
        let before = match (&write.before, write.change) {
            (None, _) if is_ours => return wrong("made by the controller"),
            (_, Change::Deleted) if is_ours => return wrong("deleted by the controller"),
            (None, _) | (_, Change::Deleted) => return Vec::new(),
            (Some(before), _) => before,
        };
        if Arc::ptr_eq(&before.status, &write.after.status) {
            return Vec::new();
        }
        let (old, new) = (Told::read(&before.status), Told::read(&write.after.status));
        let found = if is_ours { self.status_write(write, &old, &new, now) } else { Vec::new() };
        self.resumed.take_in(&write.after.spec, (&old, &new), is_ours);
        found
    }

    fn status_write(
        &self,
        write: &Write,
        old: &Told<'_>,
        new: &Told<'_>,
        now: Timestamp,
    ) -> Vec<(&'static str, String)> {
        let spec = &write.after.spec;
        let seen =
            steps::StepContext { runs: &self.runs, sizes: &self.sizes, resumed: self.resumed, now };
        let steps = steps::judge(spec, (old, new), seen);
        let command = commands::judge(spec, old, new).map(|numbers| ("commands", numbers));
        let before = write.before.as_ref().map_or(&Value::Null, |before| &*before.status);
        let late = deadline::judge(spec, (before, &write.after.status), &self.sizes);
        let late = late.map(|numbers| ("I-22", numbers));
        steps.map(|numbers| ("I-7", numbers)).into_iter().chain(command).chain(late).collect()
    }
}

/// Is this part of an object the one that was taken in last?
fn is_same(known: Option<&Arc<Value>>, part: &Arc<Value>) -> bool {
    known.is_some_and(|known| Arc::ptr_eq(known, part))
}

/// The name of an object as it is in every run. Uids are drawn anew in each: what is named by the uid
/// of its owner, as a Job by that of its AnalysisRun, is named by the owner instead.
fn lasting_name_of(object: &Object) -> String {
    let name = name_of(object);
    match object.controller() {
        Some(owner) => name.replace(&owner.uid.to_string(), &owner.name),
        None => name,
    }
}

fn name_of(object: &Object) -> String {
    let Key { namespace, name } = object.key();
    format!("{namespace}/{name}")
}
