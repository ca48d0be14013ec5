//! What should happen next: pure decisions from a snapshot of the cluster.
//!
//! Read in this order: the vocabulary ([`decision`], [`ask`]), what a decision may look at
//! ([`world`]), then [`rollout`] and what of it may be acted on ([`interlock`]). No clock, no I/O, no logging: the same World and now always give
//! the same Decision.

pub mod analysis;
pub mod ask;
pub mod command;
pub mod decision;
pub mod diagnose;
pub mod experiment;
pub mod explain;
pub mod family;
pub mod frame;
pub mod interlock;
pub mod kinds;
pub mod metrics;
pub mod obtain;
pub mod patch;
pub mod projection;
pub mod release;
pub mod remedy;
pub mod replica_set_create;
pub mod rollout;
pub mod template;
pub mod traffic;
pub mod uid;
pub mod view;
pub mod world;

use gradus_api::patch::Difference;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ask::Class;
use crate::decision::{Decision, Kind, ObjectRef};
use crate::interlock::Harm;
use crate::uid::Uid;

/// A controller's mind: what should happen next to one object of one kind.
pub trait Engine: 'static {
    /// Everything a decision may look at.
    type World: Clone + Serialize + DeserializeOwned;
    /// The status it writes.
    type Status: Clone + PartialEq + Difference + Serialize + DeserializeOwned + std::fmt::Debug;
    /// What it recalls between two passes.
    type Memo: Clone + Default + PartialEq + Serialize + DeserializeOwned + std::fmt::Debug;

    /// The kind it decides about.
    const KIND: Kind;
    /// Where that kind's status lives.
    const STATUS: StatusPlace;

    /// The object the World is about.
    fn head(world: &Self::World) -> Head;

    /// What should happen next.
    fn decide(world: &Self::World, now: Timestamp) -> Decision<Self::Status, Self::Memo>;

    /// What a decision would break, and the decision without it; `None` if it may be acted on.
    fn check(
        _world: &Self::World,
        _decision: &Decision<Self::Status, Self::Memo>,
        _now: Timestamp,
    ) -> Option<Harm<Decision<Self::Status, Self::Memo>>> {
        None
    }

    /// The status as it is stored, for the difference that is written.
    fn stored_status(world: &Self::World) -> &Self::Status;

    /// A fixed delay before a failure of this class is tried again; `None` for the back-off.
    fn retry_after(_class: Class) -> Option<SignedDuration> {
        None
    }
}

/// Where a kind's status lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusPlace {
    /// In a subresource of its own.
    Subresource,
    /// In the main resource.
    Main,
}

/// What is needed of the object itself to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which object.
    pub object: ObjectRef,
    /// Its identity.
    pub uid: Uid,
    /// Its `resourceVersion` in the World.
    pub version: u64,
}
