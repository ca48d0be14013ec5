//! How the traffic is split as the routing objects stand. Only the router of these objects can tell;
//! everybody else asks it.

use super::Backends;
use crate::decision::ObjectRef;

/// What one routing object makes of the traffic that reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightSplit {
    /// The object that carries the weights.
    pub object: ObjectRef,
    /// Who gets how much.
    pub parts: Vec<WeightPart>,
}

/// A part of the traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightPart {
    /// Which side it belongs to.
    pub side: TrafficSide,
    /// Who receives it.
    pub receiver: Receiver,
    /// How much it is.
    pub weight: i32,
}

/// The sides of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficSide {
    /// The new revision's.
    Canary,
    /// The stable revision's.
    Stable,
    /// An Experiment's, or somebody else's.
    Other,
}

/// Who receives a part of the traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The pods behind this Service.
    Service(String),
    /// The pods of this revision, whatever Services select; empty means those of every revision.
    Revision(String),
}

impl WeightSplit {
    /// The canary side's weight.
    pub fn canary(&self) -> i32 {
        self.weight(|part| part.side == TrafficSide::Canary)
    }

    /// The weight that goes to a Service.
    pub fn service(&self, name: &str) -> i32 {
        self.weight(|part| matches!(&part.receiver, Receiver::Service(known) if known == name))
    }

    fn weight(&self, is_counted: impl Fn(&WeightPart) -> bool) -> i32 {
        let counted = self.parts.iter().filter(|part| is_counted(part));
        counted.fold(0, |sum, part| sum.saturating_add(part.weight))
    }
}

impl WeightPart {
    /// A part that goes to a Service.
    pub fn service(side: TrafficSide, name: &str, weight: i32) -> Self {
        WeightPart { side, receiver: Receiver::Service(name.to_owned()), weight }
    }
}

/// The parts of routers whose weights are relative: whatever the weights of these Services add up to
/// is all of the traffic. What rounding leaves over is the stable side's.
pub(super) fn relative(
    weights: &[(String, i64)],
    backends: Backends<'_>,
    max: i32,
) -> Vec<WeightPart> {
    /// No router takes larger weights.
    const LARGEST: i64 = 1_000_000;
    let weights = weights.iter().map(|(name, weight)| (name, (*weight).clamp(0, LARGEST)));
    let weights: Vec<(&String, i64)> = weights.collect();
    let (sum, max) = (weights.iter().map(|(_, weight)| weight).sum::<i64>(), i64::from(max));
    let share = |side: TrafficSide, weight: i64| match sum {
        0 => 0,
        sum if sum == max => weight,
        sum if side == TrafficSide::Canary => (weight * max + sum - 1) / sum,
        sum => weight * max / sum,
    };
    let part = |(name, weight): (&String, i64)| {
        let side = backends.side(name);
        let share = i32::try_from(share(side, weight)).unwrap_or(i32::MAX);
        WeightPart::service(side, name, share)
    };
    let mut parts: Vec<WeightPart> = weights.into_iter().map(part).collect();
    let told: i64 = parts.iter().map(|part| i64::from(part.weight)).sum();
    let stable = parts.iter_mut().find(|part| part.side == TrafficSide::Stable);
    if let Some(stable) = stable.filter(|_| sum > 0) {
        let rest = i64::from(stable.weight) + max - told;
        stable.weight = i32::try_from(rest.max(0)).unwrap_or(i32::MAX);
    }
    parts
}
