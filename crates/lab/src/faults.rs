//! What can go wrong, and when? Crashes, refusals, lost answers, slow requests and lame watches,
//! planned one by one or drawn from one seed.

use gradus_engine::ask::Class;
use serde::Deserialize;

use crate::person::Action;

/// What happens to one write of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// The controller dies before the write reaches the server.
    CrashBefore,
    /// The controller dies after the write was done and before it hears so.
    CrashAfter,
    /// The server says 409 although nothing has changed.
    Conflict,
    /// The server says 500 and has done nothing.
    ServerError,
    /// The server has done it, but nobody hears so.
    LostAnswer,
    /// The server asks us to wait.
    Throttled,
    /// The request does not reach the server.
    Unreachable,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 7] = [
        Fault::CrashBefore,
        Fault::CrashAfter,
        Fault::Conflict,
        Fault::ServerError,
        Fault::LostAnswer,
        Fault::Throttled,
        Fault::Unreachable,
    ];

    /// Those that a read can meet.
    pub const OF_READS: [Fault; 3] = [Fault::ServerError, Fault::Throttled, Fault::Unreachable];

    /// Its name among everything that can disturb a run.
    pub fn name(self) -> &'static str {
        match self {
            Fault::CrashBefore => "crash before a write",
            Fault::CrashAfter => "crash after a write",
            Fault::Conflict => "conflict",
            Fault::ServerError => "server error",
            Fault::LostAnswer => "answer lost",
            Fault::Throttled => "throttled",
            Fault::Unreachable => "unreachable",
        }
    }

    /// Is the write done all the same?
    pub fn is_applied(self) -> bool {
        matches!(self, Fault::CrashAfter | Fault::LostAnswer)
    }

    /// What the controller hears of it; `None` if it does not live to hear it.
    pub fn class(self) -> Option<Class> {
        match self {
            Fault::CrashBefore | Fault::CrashAfter => None,
            Fault::Conflict => Some(Class::Stale),
            Fault::ServerError | Fault::LostAnswer => Some(Class::Unknown),
            Fault::Throttled => Some(Class::Throttled),
            Fault::Unreachable => Some(Class::Unreachable),
        }
    }
}

/// A fault at a certain write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// Which write of ours, counted from 1, refused ones included.
    pub write: usize,
    /// What happens to it.
    pub fault: Fault,
}

/// Somebody acts just before one of our requests reaches the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Interruption {
    /// Which request of ours (writes and reads), counted from 1.
    pub request: usize,
    /// What is done.
    pub action: Action,
}

/// What happens to the controller that leads, where there is a second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeadFault {
    /// Somebody gives its Lease to the other controller. Both are alive.
    Stolen,
    /// Somebody gives its Lease to a name that nobody has.
    Misplaced,
    /// Somebody deletes the Lease.
    Deleted,
    /// It takes no step for longer than its Lease holds, with a write under way that it was allowed to
    /// make: the write arrives afterwards.
    Frozen,
    /// For longer than its Lease holds, none of its requests arrives and no watch shows it anything.
    CutOff,
}

impl LeadFault {
    /// All of them.
    pub const ALL: [LeadFault; 5] = [
        LeadFault::Stolen,
        LeadFault::Misplaced,
        LeadFault::Deleted,
        LeadFault::Frozen,
        LeadFault::CutOff,
    ];

    /// Its name among everything that can disturb a run.
    pub fn name(self) -> &'static str {
        match self {
            LeadFault::Stolen => "lease stolen",
            LeadFault::Misplaced => "lease misplaced",
            LeadFault::Deleted => "lease deleted",
            LeadFault::Frozen => "leader frozen in mid-write",
            LeadFault::CutOff => "leader cut off",
        }
    }
}

/// Two controllers, of which one leads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    /// What happens to the leader before a certain write, counted as [`Planned`] counts.
    pub planned: Option<(usize, LeadFault)>,
    /// Of a hundred writes, before how many something happens to the leader.
    pub percent: u64,
}

/// How a run is disturbed. By default it is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Faults at certain writes.
    pub planned: Vec<Planned>,
    /// Somebody who acts between two requests.
    pub interruption: Option<Interruption>,
    /// The seed that decides who takes the next step; `None` keeps the fixed order.
    pub seed: Option<u64>,
    /// Of a hundred writes, how many meet a fault of any kind.
    pub write_percent: u64,
    /// Of a hundred reads, how many fail.
    pub read_percent: u64,
    /// Of a hundred watch events, how many make their watch fall silent for a while.
    pub late_percent: u64,
    /// Of a hundred watch events, how many come twice.
    pub twice_percent: u64,
    /// Of a hundred watch events, how many are overtaken by the next one, of another object.
    pub overtaken_percent: u64,
    /// Of a hundred watch events, how many are lost until the next list.
    pub lost_percent: u64,
    /// Of a hundred requests, how many take their time.
    pub slow_percent: u64,
    /// People, an autoscaler and a pipeline act at moments drawn from the seed; the scenario may
    /// then end otherwise than it is told.
    pub is_meddled_with: bool,
    /// A second controller stands by; without this there is one, which acts without an election.
    pub pair: Option<Pair>,
}

/// After so many faults drawn from a seed there are no more: a run must be able to end.
pub const MOST_DRAWN: u32 = 20;

impl Faults {
    /// One fault at one write.
    pub fn at(write: usize, fault: Fault) -> Self {
        Faults { planned: vec![Planned { write, fault }], ..Faults::default() }
    }

    /// Somebody acts just before one of our requests.
    pub fn interrupted(request: usize, action: Action) -> Self {
        Faults { interruption: Some(Interruption { request, action }), ..Faults::default() }
    }

    /// Only the order of steps is drawn from the seed.
    pub fn order(seed: u64) -> Self {
        Faults { seed: Some(seed), ..Faults::default() }
    }

    /// Order and all kinds of faults are drawn from the seed.
    pub fn mixed(seed: u64) -> Self {
        Faults {
            seed: Some(seed),
            write_percent: 10,
            read_percent: 10,
            late_percent: 10,
            twice_percent: 10,
            overtaken_percent: 10,
            lost_percent: 5,
            slow_percent: 5,
            ..Faults::default()
        }
    }

    /// All of that, and somebody who acts on the rollout at any moment.
    pub fn meddled(seed: u64) -> Self {
        Faults { is_meddled_with: true, ..Faults::mixed(seed) }
    }

    /// Two controllers, and one thing that happens to the leader before one write.
    pub fn of_pair(write: usize, fault: LeadFault) -> Self {
        let pair = Pair { planned: Some((write, fault)), percent: 0 };
        Faults { pair: Some(pair), ..Faults::default() }
    }

    /// Two controllers, and all that a seed stands for: clocks that differ, crashes, leases lost.
    pub fn pair_of_seed(seed: u64) -> Self {
        let pair = Pair { planned: None, percent: 5 };
        Faults { pair: Some(pair), ..Faults::of_seed(seed) }
    }

    /// What a seed stands for: every other one lets somebody act who is not part of the scenario.
    pub fn of_seed(seed: u64) -> Self {
        if Chance::new(seed).percent(50) { Faults::mixed(seed) } else { Faults::meddled(seed) }
    }

    /// The seed of those who act from outside the scenario, if somebody does.
    pub fn meddling_seed(&self) -> Option<u64> {
        self.seed.filter(|_| self.is_meddled_with)
    }

    /// May the scenario be changed by somebody who is not part of it?
    pub fn may_change_the_scenario(&self) -> bool {
        self.interruption.is_some() || self.is_meddled_with
    }

    /// Does whoever interrupts an update decide how it ends?
    pub fn ends_scenario(&self) -> bool {
        let action = self.interruption.as_ref().map(|one| &one.action);
        matches!(action, Some(Action::Abort | Action::PromoteFull))
    }

    /// May the order of steps differ from the fixed one?
    pub fn is_seeded(&self) -> bool {
        self.seed.is_some()
    }

    /// May a scenario take another course on its way to the same end?
    pub fn may_change_the_way(&self) -> bool {
        self.is_seeded() || self.pair.is_some()
    }
}

/// All chance of a run: a generator with one seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The chance of a seed.
    pub fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// A number below `limit`, or 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// True so many times of a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        percent > 0 && self.below(100) < percent
    }

    /// One of the list.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        let at = usize::try_from(self.below(list.len() as u64)).ok()?;
        list.get(at).copied()
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_chance() {
        let draw = |seed| {
            let mut chance = Chance::new(seed);
            (0..50).map(|_| chance.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn chances_are_about_what_they_say() {
        let mut chance = Chance::new(1);
        let hits = (0..10_000).filter(|_| chance.percent(30)).count();
        assert!((2_800..3_200).contains(&hits), "{hits}");
        assert!(!(0..100).any(|_| chance.percent(0)));
        assert_eq!(chance.pick::<u8>(&[]), None);
    }
}
