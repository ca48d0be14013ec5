//! Who takes the next step, and when does time move? A seeded executor of index, queue, engine and
//! act against a cluster in memory.
//!
//! Actors are the reconciles, each worker of the cluster, each watch, and the person. At each turn
//! one of them takes one step. Time moves only when nobody can.

mod beside;
mod election;
mod ground;
mod mind;
mod pair;
mod playback;
mod replica;
mod stages;
#[cfg(test)]
mod tests;
mod watches;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use gradus_simkube::Actor;
use jiff::{SignedDuration, Timestamp};

use crate::checks::Violation;
use crate::deeds::sight;
use crate::door::Bench;
use crate::ends::Ending;
use crate::faults::{Chance, Faults};
use crate::meddler::{self, Meddler};
use crate::outside::MetricServers;
use crate::person::Action;
use crate::played::PlayedPlugins;
use crate::trace::{Record, Trace};
use crate::tryout::Watcher;
use beside::Bystander;
use playback::Playback;
use replica::Replica;
use stages::Stage;

pub use ground::{Ground, Prepared, Unprepared};

/// How long an end must last to be one.
const LASTING: SignedDuration = SignedDuration::from_hours(2);
/// How long nothing is written before a scenario is over that somebody else has changed.
const LASTING_CHANGED: SignedDuration = SignedDuration::from_hours(24);
/// No scenario takes longer in virtual time.
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);
/// No scenario takes more turns: who needs more is running in circles.
const MOST_TURNS: usize = 200_000;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Everything that was wrong, the scenario's own expectations included.
    pub violations: Vec<Violation>,
    /// How it ended.
    pub ending: Ending,
    /// What happened.
    pub trace: Trace,
    /// Requests of ours, reads included.
    pub requests: usize,
    /// Writes of ours that were done.
    pub writes: usize,
    /// Writes of ours that were tried, refused ones included: faults are planned by their number.
    pub attempts: usize,
    /// HTTP requests of ours to metric servers.
    pub provider_calls: usize,
    /// How long the scenario took in virtual time, up to the last write.
    pub lasted: SignedDuration,
    /// Where the run was interrupted: was an update under way?
    pub interrupted_update: Option<bool>,
}

/// Runs a scenario. The same scenario and faults always give the same outcome.
pub fn simulate(prepared: &Prepared, faults: &Faults) -> Outcome {
    Run::new(prepared, faults, Trace::hashed()).finish()
}

/// Runs a scenario and keeps everything that happened for printing.
pub fn narrate(prepared: &Prepared, faults: &Faults) -> Outcome {
    Run::new(prepared, faults, Trace::printable()).finish()
}

/// Runs a scenario while somebody looks at the cluster after every change.
pub fn simulate_watched(prepared: &Prepared, faults: &Faults, watcher: Watcher<'_>) -> Outcome {
    let run = Run::new(prepared, faults, Trace::hashed());
    Run { watcher: Some(watcher), ..run }.finish()
}

/// One run in progress.
struct Run<'p> {
    /// Looks at the cluster after every change.
    watcher: Option<Watcher<'p>>,
    /// The version it has last looked at.
    watched: u64,
    prepared: &'p Prepared,
    bench: Rc<RefCell<Bench>>,
    now: Timestamp,
    /// The controllers: one, or one and its standby.
    replicas: Vec<Replica>,
    playback: Playback,
    bystander: Bystander,
    chance: Option<Chance>,
    meddler: Option<Meddler>,
    faults: Faults,
    /// Nothing happens but what the scenario tells, its own faults included.
    is_as_told: bool,
    turns: Vec<Turn>,
    /// The version of the cluster, and the time, at which its workers had nothing to do.
    idle_at: Option<(u64, Timestamp)>,
    violations: Vec<Violation>,
    /// The end that was judged, and the version of the cluster in which it was.
    ending: Option<(u64, Ending)>,
    stage: Stage,
}

/// Who may take the next step.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Worker(Actor),
    /// A controller, and one of its watches.
    Watch(usize, usize),
    /// A controller, and one of its engines.
    Decide(usize, usize),
    /// A controller, an engine, and one of its works.
    Flight(usize, usize, usize),
    /// The election of a controller.
    Campaign(usize),
    Person,
    Bystander,
}

impl<'p> Run<'p> {
    fn new(prepared: &'p Prepared, faults: &Faults, trace: Trace) -> Self {
        let Prepared { scenario, cluster, rollout, start, subject, .. } = prepared;
        let is_as_told = *faults == Faults::default();
        let mut faults = faults.clone();
        faults.planned.extend(&scenario.faults);
        let count = if faults.pair.is_some() { 2 } else { 1 };
        let checkers = (0..count).map(|_| (subject.judge)(rollout.kind, cluster.kinds()));
        let checkers = checkers.collect();
        let mut bench =
            Bench::new(cluster.clone(), rollout.clone(), checkers, *start, &faults, trace);
        bench.plugins = PlayedPlugins::new(&scenario.plugins);
        bench.outside = MetricServers::of(scenario, *start);
        let bench = Rc::new(RefCell::new(bench));
        let replicas = (0..count).map(|number| Replica::new(&bench, number, prepared)).collect();
        Run {
            watcher: None,
            watched: 0,
            prepared,
            bench,
            now: *start,
            replicas,
            playback: Playback::new(Arc::clone(scenario), *start, faults.may_change_the_way()),
            bystander: Bystander::new(Arc::clone(scenario), *start),
            chance: faults.seed.map(Chance::new),
            meddler: faults.meddling_seed().map(|seed| Meddler::new(seed, scenario.images.clone())),
            faults,
            is_as_told,
            turns: Vec::new(),
            idle_at: None,
            violations: Vec::new(),
            ending: None,
            stage: Stage::Told(0),
        }
    }

    fn finish(mut self) -> Outcome {
        while self.advance() {}
        self.outcome()
    }

    fn outcome(mut self) -> Outcome {
        let bench = self.bench.borrow();
        for checker in &bench.checkers {
            self.violations.extend_from_slice(checker.violations());
        }
        // An end that was judged and not touched since is looked at once.
        let ending = self.ending.filter(|(version, _)| *version == bench.cluster.version());
        let look = || Ending::of(&bench.cluster, bench.rollout(), bench.checkers[0].counts());
        Outcome {
            violations: self.violations,
            ending: ending.map_or_else(look, |(_, ending)| ending),
            trace: bench.trace.clone(),
            requests: bench.requests,
            writes: bench.checkers[0].writes(),
            attempts: bench.attempts,
            provider_calls: bench.outside.as_ref().map_or(0, |outside| outside.asked),
            lasted: bench.last_write.duration_since(self.prepared.start),
            interrupted_update: bench.interrupted_update,
        }
    }

    /// One turn, or the next moment. False when the scenario is told and nothing happens any more.
    fn tell(&mut self) -> Result<bool, Violation> {
        let deed = self.meddler.as_mut().and_then(Meddler::before_a_turn);
        if self.meddle(deed) || self.take_turn()? {
            return Ok(true);
        }
        if let Some(next) = self.next_campaign() {
            self.move_to(next);
            return Ok(true);
        }
        let deed = self.meddler.as_mut().and_then(Meddler::at_rest);
        if self.meddle(deed) {
            return Ok(true);
        }
        let next = self.next_moment();
        let last = self.bench.borrow().last_write;
        let lasts = |time: SignedDuration| next.is_none_or(|next| last + time < next);
        let is_told = self.playback.is_told() && self.bystander.is_done();
        // A scenario that somebody else has changed may never come to its next step, and who looks
        // again for ever, as for pods that may go or a plugin that is not there, never rests.
        let is_changed = self.faults.may_change_the_scenario() && lasts(LASTING_CHANGED);
        let is_over = is_told && lasts(LASTING) || is_changed;
        if is_over || next.is_none() {
            let deed = self.last_word();
            if self.meddle(deed) {
                return Ok(true);
            }
        }
        match next {
            _ if is_over => Ok(false),
            // An interrupted scenario need not come to its end: the interruption has changed it.
            None if self.faults.may_change_the_scenario() => Ok(false),
            None => Err(self.stuck("nothing is left to happen")),
            Some(next) if self.prepared.start + LONGEST < next => {
                Err(self.stuck("it has taken a week"))
            }
            Some(next) => {
                self.skip_campaigns(next);
                self.move_to(next);
                Ok(true)
            }
        }
    }

    /// What those who are not part of the scenario owe it before it can end.
    fn last_word(&mut self) -> Option<Action> {
        let bench = self.bench.borrow();
        let verdict = bench.rollout().and_then(|rollout| Action::good_verdict(&sight(rollout)));
        self.meddler.as_mut()?.last_word(verdict)
    }

    /// Lets somebody act who is not part of the scenario; false if nobody does.
    fn meddle(&mut self, deed: Option<Action>) -> bool {
        let Some(deed) = deed else { return false };
        let mut bench = self.bench.borrow_mut();
        let is_updating = bench.rollout().is_some_and(|rollout| !sight(rollout).is_over());
        bench.trace.note(self.now, Record::Meddled(meddler::name(&deed, is_updating)));
        if let Err(error) = bench.perform(&deed) {
            bench.trace.note(self.now, Record::Alarm(format!("{deed:?} is refused: {error}")));
        }
        true
    }

    /// One step of one actor. False if nobody can take one now.
    fn take_turn(&mut self) -> Result<bool, Violation> {
        self.follow_leads();
        let turn = match &self.chance {
            None => self.first_turn(),
            Some(_) => self.drawn_turn(),
        };
        match turn {
            None => return Ok(false),
            Some(Turn::Worker(actor)) => {
                let mut bench = self.bench.borrow_mut();
                bench.cluster.step(actor, self.now);
                bench.judge(None);
                bench.trace.note(self.now, Record::Worked(worker_name(actor)));
            }
            Some(Turn::Watch(who, at)) => self.show(who, at),
            Some(Turn::Decide(who, mind)) => {
                let replica = &mut self.replicas[who];
                let clock = replica.clock(self.now);
                for selection in replica.minds[mind].decide((self.now, clock)) {
                    let cluster = &self.bench.borrow().cluster;
                    watches::want(&mut replica.feeds, selection, mind, cluster);
                    replica.quiet_at = None;
                }
            }
            Some(Turn::Flight(who, mind, at)) => {
                let clock = self.replicas[who].clock(self.now);
                self.replicas[who].minds[mind].fly(at, (self.now, clock));
            }
            Some(Turn::Campaign(who)) => self.replicas[who].campaign(),
            Some(Turn::Person) => self.playback.act(&self.bench)?,
            Some(Turn::Bystander) => self.bystander.act(&self.bench)?,
        }
        if self.bench.borrow().interrupted_update == Some(true) && self.faults.ends_scenario() {
            self.playback.stop();
        }
        let crashed = self.bench.borrow().crashed;
        if let Some(crashed) = crashed {
            self.restart(crashed);
        }
        self.blame_decisions();
        if let Some(watcher) = &mut self.watcher {
            let bench = self.bench.borrow();
            if bench.cluster.version() != self.watched {
                self.watched = bench.cluster.version();
                watcher(self.now, &bench.cluster, &bench.place);
            }
        }
        Ok(true)
    }

    /// The fixed order: workers, watches, reconciles; the person when all are at rest.
    fn first_turn(&mut self) -> Option<Turn> {
        let moment = (self.bench.borrow().cluster.version(), self.now);
        if self.idle_at != Some(moment) {
            if let Some(actor) = self.bench.borrow().cluster.runnable(self.now).next() {
                return Some(Turn::Worker(actor));
            }
            self.idle_at = Some(moment);
        }
        if let Some(turn) = self.first_shown().or_else(|| self.first_flown()) {
            return Some(turn);
        }
        // Whoever sees nothing for a while is shown it afterwards.
        if !self.replicas.iter().any(Replica::is_blind) {
            self.bench.borrow_mut().forget_seen();
        }
        if let Some(turn) = self.first_stirred() {
            return Some(turn);
        }
        let bench = self.bench.borrow();
        if self.playback.has_begun() && self.bystander.is_ready(&bench, self.now) {
            return Some(Turn::Bystander);
        }
        self.playback.is_ready(&bench, self.now).then_some(Turn::Person)
    }

    /// The seed picks one of those who can take a step.
    fn drawn_turn(&mut self) -> Option<Turn> {
        let mut turns = std::mem::take(&mut self.turns);
        turns.clear();
        turns.extend(self.bench.borrow().cluster.runnable(self.now).map(Turn::Worker));
        self.controllers_turns(&mut turns);
        let bench = self.bench.borrow();
        let has_answer = turns.is_empty() || !self.playback.is_unanswered(&bench);
        if has_answer && self.playback.is_ready(&bench, self.now) {
            turns.push(Turn::Person);
        }
        if self.playback.has_begun() && self.bystander.is_ready(&bench, self.now) {
            turns.push(Turn::Bystander);
        }
        drop(bench);
        let turn = self.chance.as_mut().and_then(|chance| chance.pick(&turns));
        self.turns = turns;
        turn
    }

    /// What the interlock had to hold, or what panicked, is a fault of ours, unless it was decided
    /// about a Rollout whose end was not seen yet: its ReplicaSets may be gone before.
    fn blame_decisions(&mut self) {
        let minds = self.replicas.iter_mut().flat_map(|replica| &mut replica.minds);
        let harms = minds.flat_map(|mind| mind.take_harms());
        for (invariant, numbers) in harms {
            if self.bench.borrow().rollout().is_none() {
                continue;
            }
            let object = self.prepared.rollout.key.name.to_string();
            let write = "a decision".to_owned();
            self.violations.push(Violation { invariant, write, object, numbers });
        }
    }

    /// A controller dies with all it knows; another one starts.
    fn restart(&mut self, who: usize) {
        self.replicas[who].restart(&self.prepared.feeds);
        let mut bench = self.bench.borrow_mut();
        bench.crashed = None;
        bench.checkers[who].restarted();
        bench.trace.note(self.now, Record::Restarted);
    }

    /// The earliest moment at which somebody can take a step again.
    fn next_moment(&self) -> Option<Timestamp> {
        let bench = self.bench.borrow();
        let playback = self.playback.next_due(self.now);
        let beside = || self.bystander.next_due(&bench, self.now);
        let beside = self.playback.has_begun().then(beside).flatten();
        let moments = [bench.cluster.next_due(), playback, beside];
        let replicas = self.replicas.iter().filter_map(|replica| replica.next_due(self.now));
        moments.into_iter().flatten().chain(replicas).filter(|moment| self.now < *moment).min()
    }

    fn move_to(&mut self, moment: Timestamp) {
        self.now = moment;
        self.bench.borrow_mut().now = moment;
        self.replicas.iter_mut().for_each(Replica::stir);
    }

    fn stuck(&self, why: &str) -> Violation {
        self.at_end("I-12", format!("{why}: {}", self.playback.standing(&self.bench.borrow())))
    }

    fn at_end(&self, invariant: &'static str, numbers: String) -> Violation {
        let object = self.prepared.rollout.key.name.to_string();
        Violation { invariant, write: "the end".to_owned(), object, numbers }
    }
}

fn worker_name(actor: Actor) -> &'static str {
    match actor {
        Actor::Deployments => "Deployment controller",
        Actor::ReplicaSets => "ReplicaSet controller",
        Actor::StatefulSets => "StatefulSet controller",
        Actor::Jobs => "Job controller",
        Actor::Pods => "kubelet",
        Actor::Garbage => "garbage collector",
        Actor::Namespaces => "namespace controller",
    }
}
