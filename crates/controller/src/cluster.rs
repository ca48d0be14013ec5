//! What does the controller need of a cluster? One write at a time, one read or list, one Event.

use std::future::Future;
use std::sync::Arc;

use gradus_engine::ask::Class;
use gradus_engine::decision::{Expect, Kind, ObjectRef, Op};
use gradus_engine::frame::Frame;
use gradus_engine::uid::Uid;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// The door to a cluster: a real one, or the embedded one. All writes go through here.
pub trait Cluster {
    /// Makes one write. The answer tells the version that the object has afterwards.
    fn write(&self, write: Write) -> impl Future<Output = Result<Written, WriteError>>;

    /// Reads one object; `None` where there is none of that name.
    fn read(&self, target: &ObjectRef) -> impl Future<Output = Result<Option<Frame>, WriteError>>;

    /// Reads one object with everything the server sends of it.
    fn read_whole(
        &self,
        target: &ObjectRef,
    ) -> impl Future<Output = Result<Option<Value>, WriteError>>;

    /// May something outside the cluster be changed now? Who holds writes back holds this back, too.
    fn permit(&self) -> impl Future<Output = Result<(), WriteError>>;

    /// Reads all objects of a kind with certain labels in a namespace, by name.
    fn list(&self, listing: &Listing) -> impl Future<Output = Result<Vec<Frame>, WriteError>>;

    /// Creates an Event, or raises the count of an earlier one.
    fn post(&self, event: &PostedEvent) -> impl Future<Output = Result<(), WriteError>>;
}

/// Which objects are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Of this kind.
    pub kind: Kind,
    /// In this namespace.
    pub namespace: Arc<str>,
    /// With labels that this selector matches.
    pub labels: String,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// What is written.
    pub target: ObjectRef,
    /// Which part of it.
    pub part: ResourcePart,
    /// How.
    pub op: Op,
    /// What must still be so.
    pub expect: Expect,
    /// Before whom it goes.
    pub lane: Lane,
}

/// Who goes first where requests must wait for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// What is written for an abort.
    Urgent,
    /// Other writes, and reads of one object: a key waits for each.
    #[default]
    Ordinary,
    /// Lists. A controller that has just started wants very many.
    Last,
}

/// The part of an object that a write touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourcePart {
    /// The main resource.
    Main,
    /// The status subresource.
    Status,
}

/// The answer to a write that was done.
#[derive(Clone, Debug)]
pub struct Written {
    /// The version of the object afterwards, as the server returned it (for a delete: its last).
    pub version: u64,
    /// Its status afterwards.
    pub status: Arc<Value>,
}

/// Why a write or read failed, sorted by what the engine does about it next time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WriteError {
    /// What it means for the next pass.
    pub class: Class,
    /// The server's words.
    pub message: String,
    /// The server asked us to wait so long.
    pub retry_after_secs: Option<u32>,
}

impl WriteError {
    /// Until when the server asked us to wait.
    pub fn asked_until(&self, now: Timestamp) -> Option<Timestamp> {
        let seconds = self.retry_after_secs?;
        now.checked_add(SignedDuration::from_secs(seconds.into())).ok()
    }
}

/// A Kubernetes Event ready to be posted.
#[derive(Clone, Debug, PartialEq)]
pub struct PostedEvent {
    /// The object it is about.
    pub about: ObjectRef,
    /// That object's uid.
    pub uid: Uid,
    /// That object's version when the Event was made.
    pub version: u64,
    /// Name of the Event object: strictly rising per object.
    pub name: String,
    /// `Normal` or `Warning`.
    pub kind: &'static str,
    /// Machine-readable reason.
    pub reason: String,
    /// For people.
    pub message: String,
    /// First and last time, RFC 3339.
    pub first: Timestamp,
    /// Last time.
    pub last: Timestamp,
    /// How often; above 1 the Event exists already and is patched.
    pub count: u32,
}
