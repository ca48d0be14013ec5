//! Which step can the controllers take next, and when does their election matter?

use jiff::{SignedDuration, Timestamp};

use super::{Run, Turn};

/// Time that passes at once, while one leads and nothing happens, is skipped for the election from
/// here on: hours of renewals that are all alike would be most of a run.
const SKIPPED: SignedDuration = SignedDuration::from_secs(10);

impl Run<'_> {
    /// The first watch that has something to show.
    pub(super) fn first_shown(&mut self) -> Option<Turn> {
        let bench = self.bench.borrow();
        let mut replicas = self.replicas.iter_mut().enumerate();
        replicas.find_map(|(who, replica)| {
            if replica.is_blind() {
                return None;
            }
            replica.first_ready_watch(&bench, self.now).map(|at| Turn::Watch(who, at))
        })
    }

    /// The first work, or election, that can go on.
    pub(super) fn first_flown(&self) -> Option<Turn> {
        self.replicas.iter().enumerate().filter(|(_, replica)| !replica.is_frozen()).find_map(
            |(who, replica)| {
                let mut minds = replica.minds.iter().enumerate();
                let flown = minds.find_map(|(mind, one)| {
                    one.arrived(self.now).next().map(|at| Turn::Flight(who, mind, at))
                });
                let campaigns = || replica.can_campaign(self.now).then_some(Turn::Campaign(who));
                flown.or_else(campaigns)
            },
        )
    }

    /// The first engine that may have something to decide.
    pub(super) fn first_stirred(&self) -> Option<Turn> {
        self.replicas.iter().enumerate().find_map(|(who, replica)| {
            if !replica.leads() || replica.is_frozen() {
                return None;
            }
            let stirred = replica.minds.iter().position(|mind| mind.is_stirred());
            stirred.map(|mind| Turn::Decide(who, mind))
        })
    }

    /// Every step that a controller can take.
    pub(super) fn controllers_turns(&self, turns: &mut Vec<Turn>) {
        let bench = self.bench.borrow();
        for (who, replica) in self.replicas.iter().enumerate() {
            if !replica.is_blind() {
                let ready = replica.ready_watches(&bench, self.now);
                turns.extend(ready.into_iter().map(|at| Turn::Watch(who, at)));
            }
        }
        for (who, replica) in self.replicas.iter().enumerate() {
            if replica.is_frozen() {
                continue;
            }
            for (mind, one) in replica.minds.iter().enumerate() {
                turns.extend(one.arrived(self.now).map(|at| Turn::Flight(who, mind, at)));
                if replica.leads() && one.is_stirred() {
                    turns.push(Turn::Decide(who, mind));
                }
            }
            if replica.can_campaign(self.now) {
                turns.push(Turn::Campaign(who));
            }
        }
    }

    /// Everybody takes in whether they lead.
    pub(super) fn follow_leads(&mut self) {
        if self.replicas.len() > 1 {
            let now = self.now;
            self.replicas.iter_mut().for_each(|replica| replica.follow(now));
        }
    }

    /// When an election can take a step again.
    pub(super) fn campaign_due(&self) -> Option<Timestamp> {
        let due = self.replicas.iter().filter_map(|replica| replica.campaign_due());
        due.filter(|due| self.now < *due).min()
    }

    /// The next step of an election, where it matters: it comes before anything else happens, and
    /// nobody leads, or somebody does and not for long before something happens.
    pub(super) fn next_campaign(&self) -> Option<Timestamp> {
        let due = self.campaign_due()?;
        let next = self.next_moment();
        if next.is_some_and(|next| next <= due) {
            return None;
        }
        let is_soon = next.is_some_and(|next| next < self.now + SKIPPED);
        (is_soon || !self.is_settled()).then_some(due)
    }

    /// Time goes on to `next` at once; an election that would have gone on as it is does not notice.
    pub(super) fn skip_campaigns(&mut self, next: Timestamp) {
        if self.campaign_due().is_none_or(|due| next <= due) {
            return;
        }
        if let Some(pair) = &mut self.bench.borrow_mut().pair {
            pair.skipped += next.duration_since(self.now);
        }
    }

    /// Does one controller lead whose name is in the Lease, with nothing under way?
    fn is_settled(&self) -> bool {
        let bench = self.bench.borrow();
        let holder = bench.holder();
        let Some(pair) = &bench.pair else { return true };
        let leads = |who: usize| self.replicas[who].leads();
        let held = pair.identities.iter().position(|one| Some(one) == holder.as_ref());
        held.is_some_and(|held| leads(held) && !leads(1 - held))
            && self.replicas.iter().all(|replica| replica.is_settled())
    }
}
