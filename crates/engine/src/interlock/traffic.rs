//! I-3, I-4, I-5 and I-6 of routed canaries: is traffic sent where the pods for it are not, or are
//! pods taken away under it?

use gradus_api::names::value;
use gradus_api::rollout::{CanaryStrategy, RolloutStatus};

use super::Invariant;
use super::pods::{Pods, size_after};
use crate::decision::{Change, Op};
use crate::rollout::scale::pods_for;
use crate::traffic::{self, Backends, RouteView, Router, RoutingObjects, Sides, TrafficSide};
use crate::world::World;

/// The routing objects as the changes so far leave them.
pub(super) struct Traffic<'w> {
    world: &'w World,
    strategy: &'w CanaryStrategy,
    routers: Vec<Box<dyn Router + 'w>>,
    seen: RoutingObjects,
}

impl<'w> Traffic<'w> {
    /// `None` where no router splits the traffic.
    pub(super) fn of(world: &'w World) -> Option<Self> {
        let strategy = world.rollout.spec.fields.strategy.canary.as_ref()?;
        let routers = traffic::routers(&world.rollout);
        let is_routed = !routers.is_empty();
        is_routed.then(|| Traffic { world, strategy, routers, seen: traffic::seen(world) })
    }

    /// What is wrong with a change of a routing object or of a ReplicaSet, if anything.
    pub(super) fn judge(&self, pods: &Pods, change: &Change) -> Option<(Invariant, String)> {
        if let Some(next) = size_after(change) {
            let found = self.starves(pods, change, next);
            return found.map(|message| (Invariant::TrafficBeforeTeardown, message));
        }
        let moves = self.moved(change).and_then(|(from, to)| self.moves(pods, from, to));
        moves.or_else(|| self.leads_elsewhere(pods, change))
    }

    /// What is wrong with a split that a plugin will be told of because the status says so.
    pub(super) fn judge_told(
        &self,
        world: &World,
        next: &RolloutStatus,
    ) -> Option<(Invariant, String)> {
        if !traffic::names_plugins(&world.rollout) {
            return None;
        }
        let weight = |status: &RolloutStatus| {
            status.canary.weights.as_ref().map(|weights| weights.canary.weight)
        };
        let (from, to) = (weight(&world.rollout.status).unwrap_or(0), weight(next)?);
        if from == to { None } else { self.moves(&Pods::of(world), from, to) }
    }

    /// The revision that a side leads to: as the objects of a router say, or as its Service selects.
    pub(super) fn selected(&self, pods: &Pods, side: TrafficSide) -> String {
        self.revision_in(side, &self.seen).unwrap_or_else(|| {
            let Backends { stable, canary } = self.backends();
            let name = if side == TrafficSide::Canary { canary } else { stable };
            pods.selected(name).to_owned()
        })
    }

    fn revision_in(&self, side: TrafficSide, seen: &RoutingObjects) -> Option<String> {
        self.routers.iter().find_map(|router| router.revision(side, seen))
    }

    /// Does a side that has traffic come to lead to a revision without the pods for it?
    fn leads_elsewhere(&self, pods: &Pods, change: &Change) -> Option<(Invariant, String)> {
        let after = self.patched(change)?;
        let weights = self.carried();
        let most = weights.iter().copied().max().unwrap_or(0);
        let rest = self.strategy.max_weight() - weights.iter().copied().min().unwrap_or(0);
        let sides = [
            (TrafficSide::Canary, most, self.canary_needs(most)),
            (TrafficSide::Stable, rest, self.stable_needs(rest)),
        ];
        sides.into_iter().find_map(|(side, weight, needed)| {
            let from = self.revision_in(side, &self.seen)?;
            let to = self.revision_in(side, &after).filter(|to| *to != from)?;
            let ((have, all), (left, _)) = (pods.behind(&to), pods.behind(&from));
            if weight == 0 || left == 0 || needed <= have || self.replicas() == 0 {
                return None; // Traffic that leaves a revision without pods may go anywhere.
            }
            let invariant = match have == 0 && all > 0 {
                true => Invariant::NoTrafficToNothing,
                false => Invariant::EnoughBehindTheWeight,
            };
            let message = format!(
                "weight {weight} from revision {from} to {to}: {have} available pods, {needed} \
                 needed"
            );
            Some((invariant, message))
        })
    }

    /// The canary side's weight before and after a change, if it changes that.
    pub(super) fn moved(&self, change: &Change) -> Option<(i32, i32)> {
        let after = self.patched(change)?;
        let (from, to) = (self.carried(), self.carried_in(&after));
        from.into_iter().zip(to).find(|(from, to)| from != to)
    }

    /// Notes a change as done.
    pub(super) fn take_in(&mut self, change: &Change) {
        if let Some(after) = self.patched(change) {
            self.seen = after;
        }
    }

    /// The routing objects as a change of one of them leaves them.
    fn patched(&self, change: &Change) -> Option<RoutingObjects> {
        let is_ours = self.routers.iter().any(|router| router.works_on(&change.target, &self.seen));
        let mut seen = self.seen.clone();
        match &change.op {
            _ if !is_ours => return None,
            Op::Create(body) => drop(seen.insert(change.target.clone(), RouteView(body.clone()))),
            Op::Merge(body) => {
                let patched = seen.get(&change.target)?.patched(body);
                seen.insert(change.target.clone(), patched);
            }
            Op::Delete | Op::Evict => drop(seen.remove(&change.target)),
        }
        Some(seen)
    }

    /// The canary side's weight, router by router.
    pub(super) fn carried(&self) -> Vec<i32> {
        self.carried_in(&self.seen)
    }

    fn carried_in(&self, seen: &RoutingObjects) -> Vec<i32> {
        let sides = self.sides();
        self.routers.iter().map(|router| router.carried(&sides, seen)).collect()
    }

    /// A weight changes: is it one, and does whoever gets more have the pods for it?
    fn moves(&self, pods: &Pods, from: i32, to: i32) -> Option<(Invariant, String)> {
        let max = self.strategy.max_weight();
        let text = |what: String| format!("the canary's weight from {from} to {to}: {what}");
        if !(0..=max).contains(&to) {
            let message = text(format!("expected 0 to {max}"));
            return Some((Invariant::WeightsWellFormed, message));
        }
        let new = self.selected(pods, TrafficSide::Canary);
        let old = self.selected(pods, TrafficSide::Stable);
        if new == old || self.replicas() == 0 {
            return None; // Both sides lead to the same pods, or nobody is sent anywhere.
        }
        let (canary, all) = pods.behind(&new);
        let (stable, _) = pods.behind(&old);
        if from < to && canary == 0 && all > 0 {
            let message = text(format!("it has none of {all} available pods"));
            return Some((Invariant::NoTrafficToNothing, message));
        }
        let (have, needed) = if from < to {
            (canary, self.canary_needs(to))
        } else if canary == 0 {
            return None; // Traffic that leaves a revision without pods may go anywhere.
        } else {
            (stable, self.stable_needs(max - to))
        };
        let message = text(format!("{have} available pods, {needed} needed"));
        (have < needed).then_some((Invariant::EnoughBehindTheWeight, message))
    }

    /// Would too few pods be left for the traffic that a ReplicaSet carries?
    fn starves(&self, pods: &Pods, change: &Change, next: i32) -> Option<String> {
        let (hash, size) = pods.size(&change.target.name)?;
        if size <= next || self.replicas() == 0 {
            return None;
        }
        let weights = self.carried();
        let most = weights.iter().copied().max().unwrap_or(0);
        let least = weights.iter().copied().min().unwrap_or(0);
        let is_behind = |side: TrafficSide| self.selected(pods, side) == hash;
        let canary = if is_behind(TrafficSide::Canary) { self.canary_needs(most) } else { 0 };
        let rest = self.strategy.max_weight() - least;
        let stable = if is_behind(TrafficSide::Stable) { self.stable_needs(rest) } else { 0 };
        let needed = canary.max(stable);
        (next < needed).then(|| {
            let name = &change.target.name;
            format!(
                "ReplicaSet {name} from {size} to {next} under traffic that needs {needed} pods"
            )
        })
    }

    /// Pods behind a weight of the canary, rounded up. A step or a threshold may ask for fewer, but
    /// never for none.
    fn canary_needs(&self, weight: i32) -> i32 {
        let whole = pods_for(self.replicas(), weight, self.strategy.max_weight());
        let may_be_fewer = self.strategy.replica_progress_threshold.is_some()
            || self.strategy.steps.iter().any(|step| step.set_canary_scale.is_some());
        if may_be_fewer { whole.min(1) } else { whole }
    }

    /// Pods behind a weight of stable, rounded down.
    fn stable_needs(&self, weight: i32) -> i32 {
        let max = i64::from(self.strategy.max_weight().max(1));
        let pods = i64::from(weight) * i64::from(self.replicas()) / max;
        let pods = i32::try_from(pods).unwrap_or(i32::MAX);
        if self.strategy.replica_progress_threshold.is_some() { pods.min(1) } else { pods }
    }

    fn replicas(&self) -> i32 {
        self.world.rollout.spec.fields.replicas_or_default()
    }

    /// The Services of both sides.
    pub(super) fn backends(&self) -> Backends<'w> {
        let sides = self.sides();
        sides.ping_pong.unwrap_or(sides.fixed)
    }

    fn sides(&self) -> Sides<'w> {
        let is_ping = self.world.rollout.status.canary.stable_ping_pong == value::PING;
        let ping_pong = self.strategy.ping_pong.as_ref().map(|pair| {
            let (ping, pong) = (pair.ping_service.as_str(), pair.pong_service.as_str());
            let (stable, canary) = if is_ping { (ping, pong) } else { (pong, ping) };
            Backends { stable, canary }
        });
        let fixed = Backends {
            stable: &self.strategy.stable_service,
            canary: &self.strategy.canary_service,
        };
        Sides { fixed, ping_pong }
    }
}
