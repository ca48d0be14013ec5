//! How the traffic is split as the routing objects stand. Only the router of these objects can tell;
//! everybody else asks it.

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
