//! How far has a run come, and what is done to its end before it counts as one?

use jiff::{SignedDuration, Timestamp};

use super::{MOST_TURNS, Run};
use crate::checks::Violation;
use crate::ends::Ending;

/// What is done to an end that must cause no write.
const REPEATS: [&str; 3] = ["decided again", "started again", "started once more"];

/// For so long nobody may write then. Counts may be written a second late, so one instant would not
/// do.
const REPEAT: SignedDuration = SignedDuration::from_secs(2);

/// How long it takes until one of two leads that have just started.
const ELECTED: SignedDuration = SignedDuration::from_secs(30);

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// The scenario is being told, for so many turns now.
    Told(usize),
    /// Its end is judged and being tried: how, after how many writes that were tried, and until
    /// when. A write that changes nothing is one, too.
    Tried {
        repeat: usize,
        writes: usize,
        until: Timestamp,
    },
    Over,
}

impl Run<'_> {
    /// One step further. False where the run is over.
    pub(super) fn advance(&mut self) -> bool {
        match self.stage {
            Stage::Told(MOST_TURNS) => self.give_up(self.stuck("it runs in circles")),
            Stage::Told(turns) => match self.tell() {
                Ok(true) => self.stage = Stage::Told(turns + 1),
                Ok(false) => {
                    self.judge_end();
                    let writes = self.bench.borrow().attempts;
                    self.begin_repeat(0, writes);
                }
                Err(stuck) => self.give_up(stuck),
            },
            Stage::Tried { repeat, writes, until } => self.try_end(repeat, writes, until),
            Stage::Over => {}
        }
        !matches!(self.stage, Stage::Over)
    }

    fn give_up(&mut self, violation: Violation) {
        self.violations.push(violation);
        self.stage = Stage::Over;
    }

    /// Judges the end by its expectations.
    fn judge_end(&mut self) {
        let bench = self.bench.borrow();
        let rollout = bench.rollout();
        let counts = bench.checkers[0].counts();
        self.violations.extend((self.prepared.subject.judge_end)(&bench.cluster, rollout, counts));
        // Whoever acts besides the scenario gives it another end.
        let is_alone = self.faults.interruption.is_none() && !self.faults.is_meddled_with;
        if is_alone && self.playback.is_told() {
            self.violations.extend(self.playback.judge_around(&bench));
        }
        let traffic = bench.checkers[0].judge_end();
        let traffic = traffic.map(|(invariant, numbers)| self.at_end(invariant, numbers));
        self.violations.extend(traffic);
        if self.is_as_told {
            let ending = Ending::of(&bench.cluster, rollout, counts);
            self.violations.extend(self.playback.judge_end(&ending));
            self.ending = Some((bench.cluster.version(), ending));
        }
    }

    fn begin_repeat(&mut self, repeat: usize, writes: usize) {
        if repeat == 0 {
            self.bench.borrow_mut().leave_alone();
            for replica in self.replicas.iter_mut().filter(|replica| replica.leads()) {
                let clock = replica.clock(self.now);
                replica.minds.iter_mut().for_each(|mind| mind.wake_all(clock));
            }
        } else {
            (0..self.replicas.len()).for_each(|replica| self.restart(replica));
        }
        // Of two that start anew, one leads once the Lease of their predecessors has run out.
        let wait = if self.replicas.len() > 1 { ELECTED } else { SignedDuration::ZERO };
        self.stage = Stage::Tried { repeat, writes, until: self.now + REPEAT + wait };
    }

    /// One step after the end: nobody may write any more.
    fn try_end(&mut self, repeat: usize, writes: usize, until: Timestamp) {
        if matches!(self.take_turn(), Ok(true)) {
            return;
        }
        let next = self.next_moment().into_iter().chain(self.campaign_due()).min();
        if let Some(next) = next.filter(|next| *next <= until) {
            return self.move_to(next);
        }
        let more = self.bench.borrow().attempts - writes;
        if more > 0 {
            let numbers = format!("{more} writes when {}, expected none", REPEATS[repeat]);
            return self.give_up(self.at_end("I-10", numbers));
        }
        // Without chance a second start would see and do what the first one has.
        let count = if self.chance.is_some() { REPEATS.len() } else { 2 };
        if repeat + 1 < count {
            self.begin_repeat(repeat + 1, writes);
        } else {
            self.stage = Stage::Over;
        }
    }
}
