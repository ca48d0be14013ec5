//! One controller of a run: its engines, its watches and, where there are two, its election.

use std::cell::RefCell;
use std::rc::Rc;

use gradus_controller::clock::Stopwatch;
use gradus_controller::lease::Leadership;
use gradus_controller::lease::election::Moment;
use jiff::{SignedDuration, Timestamp};

use super::Prepared;
use super::election::Campaign;
use super::mind::Mind;
use super::watches::{self, Feed};
use crate::door::{Bench, Reader};
use crate::trace::Record;

/// One controller.
pub(super) struct Replica {
    bench: Rc<RefCell<Bench>>,
    number: usize,
    start: Timestamp,
    /// Its engines: first the one the scenario is about.
    pub(super) minds: Vec<Mind>,
    /// The watches that they share.
    pub(super) feeds: Vec<Feed>,
    /// The version of the cluster of which every watch has shown all there is.
    pub(super) quiet_at: Option<u64>,
    /// How it stands for election; a controller that is alone does not.
    pub(super) campaign: Option<Campaign>,
    leadership: Leadership,
    leads: bool,
    /// It holds the lead, and lists everything again before it decides.
    renews: bool,
}

impl Replica {
    pub(super) fn new(bench: &Rc<RefCell<Bench>>, number: usize, prepared: &Prepared) -> Self {
        let (campaign, leadership) = stand(bench, number, prepared.start);
        let list = prepared.subject.engines.list.iter().enumerate();
        let reader = |at| Reader { replica: number, is_judged: at == watches::JUDGED };
        let minds = list.map(|(at, entry)| Mind::new(bench, entry, reader(at), leadership.clone()));
        Replica {
            bench: Rc::clone(bench),
            number,
            start: prepared.start,
            minds: minds.collect(),
            feeds: prepared.feeds.clone(),
            quiet_at: None,
            leads: campaign.is_none(),
            renews: false,
            campaign,
            leadership,
        }
    }

    /// Does it decide?
    pub(super) fn leads(&self) -> bool {
        self.leads
    }

    /// What its clock shows.
    pub(super) fn clock(&self, now: Timestamp) -> Timestamp {
        now + self.ahead()
    }

    fn ahead(&self) -> SignedDuration {
        self.bench.borrow().ahead(self.number)
    }

    /// Does it take no step now?
    pub(super) fn is_frozen(&self) -> bool {
        self.bench.borrow().frozen_until(self.number).is_some()
    }

    /// Does no watch show it anything now?
    pub(super) fn is_blind(&self) -> bool {
        let bench = self.bench.borrow();
        bench.frozen_until(self.number).or(bench.cut_off_until(self.number)).is_some()
    }

    /// Is nothing under way in its election?
    pub(super) fn is_settled(&self) -> bool {
        !self.is_blind() && self.campaign.as_ref().is_none_or(Campaign::is_asleep)
    }

    /// Can its election take a step?
    pub(super) fn can_campaign(&self, now: Timestamp) -> bool {
        let bench = self.bench.borrow();
        self.campaign.as_ref().is_some_and(|campaign| campaign.due(&bench) <= now)
    }

    /// When its election can take a step again.
    pub(super) fn campaign_due(&self) -> Option<Timestamp> {
        let bench = self.bench.borrow();
        let due = self.campaign.as_ref()?.due(&bench);
        Some(bench.frozen_until(self.number).map_or(due, |until| until.max(due)))
    }

    /// Lets its election take a step.
    pub(super) fn campaign(&mut self) {
        if let Some(campaign) = &mut self.campaign {
            campaign.step();
        }
    }

    /// Takes in whether it leads, as the loop of production does.
    pub(super) fn follow(&mut self, now: Timestamp) {
        if self.is_frozen() {
            return;
        }
        let holds = self.leadership.holds();
        if holds && !self.leads && !self.renews {
            self.feeds.iter_mut().for_each(Feed::begin_anew);
            self.quiet_at = None;
        }
        self.renews = holds && self.feeds.iter().any(Feed::is_unlisted);
        let leads = holds && !self.renews;
        if self.leads == leads {
            return;
        }
        self.leads = leads;
        let record = if leads { Record::Leads(self.number) } else { Record::StandsBy(self.number) };
        self.bench.borrow_mut().trace.note(now, record);
        let clock = self.clock(now);
        for mind in &mut self.minds {
            mind.stand_by();
            if leads {
                mind.wake_all(clock);
            }
        }
    }

    /// It dies with all it knows; another one starts.
    pub(super) fn restart(&mut self, feeds: &[Feed]) {
        self.bench.borrow_mut().reborn(self.number);
        (self.campaign, self.leadership) = stand(&self.bench, self.number, self.start);
        (self.leads, self.renews) = (self.campaign.is_none(), false);
        for mind in &mut self.minds {
            mind.restart(self.leadership.clone());
        }
        // What was watched on demand is not watched before it is demanded again.
        self.feeds.clear();
        self.feeds.extend_from_slice(feeds);
        self.quiet_at = None;
    }

    /// The time has moved.
    pub(super) fn stir(&mut self) {
        if let Some(campaign) = &self.campaign {
            campaign.show(&self.bench.borrow());
        }
        self.minds.iter_mut().for_each(Mind::stir);
    }

    /// The earliest moment at which it can take a step again, elections aside.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let ahead = self.ahead();
        let clock = now + ahead;
        let minds = self.minds.iter();
        let flights = minds.clone().filter_map(|mind| mind.next_arrival(now));
        let decisions = minds.filter(|_| self.leads).filter_map(|mind| mind.next_due(clock));
        let feeds = self.feeds.iter().filter_map(|feed| feed.next_due(now));
        let bench = self.bench.borrow();
        let away = [bench.frozen_until(self.number), bench.cut_off_until(self.number)];
        let moments = decisions.map(|due| due - ahead).chain(flights).chain(feeds);
        let moments = moments.chain(away.into_iter().flatten());
        moments.filter(|moment| now < *moment).min()
    }
}

/// A controller of two stands for election; one alone leads.
fn stand(
    bench: &Rc<RefCell<Bench>>,
    number: usize,
    start: Timestamp,
) -> (Option<Campaign>, Leadership) {
    if bench.borrow().pair.is_some() {
        let (campaign, leadership) = Campaign::new(bench, number, start);
        return (Some(campaign), leadership);
    }
    let (stopwatch, _) =
        Stopwatch::moved(Moment { elapsed: std::time::Duration::ZERO, wall: start });
    (None, Leadership::alone(stopwatch))
}
