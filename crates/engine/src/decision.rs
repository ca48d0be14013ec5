//! What may an engine want done? Decision, Change, Event and Why: the whole vocabulary.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ask::Ask;
use crate::uid::Uid;

/// Everything one pass wants done, in the order it must be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision<S, M = ()> {
    /// Changes of other objects and of the main resource, in order; each safe to repeat, each object
    /// at most once.
    pub changes: Vec<Change>,
    /// The whole status as it should be; written last, as a difference, with a precondition.
    pub status: Option<S>,
    /// How long the status write may wait.
    pub urgency: Urgency,
    /// Events in the order in which the user shall see them.
    pub events: Vec<Event>,
    /// Everything it wants to know, answered or not.
    pub asks: Vec<Ask>,
    /// The engine's own memory; comes back as `recall.memo`.
    pub memo: M,
    /// When to look again even if nothing happens.
    pub wake_at: Option<Timestamp>,
    /// For every thing not done now: which guard holds it.
    pub why: Vec<Why>,
}

impl<S, M: Default> Default for Decision<S, M> {
    fn default() -> Self {
        Decision {
            changes: Vec::new(),
            status: None,
            urgency: Urgency::Now,
            events: Vec::new(),
            asks: Vec::new(),
            memo: M::default(),
            wake_at: None,
            why: Vec::new(),
        }
    }
}

/// How long a status write may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Urgency {
    /// In this pass.
    Now,
    /// Only counts and their companions changed: until it is a second old, or rides along.
    Within1s,
    /// The same of a rollout at rest, where nothing follows to ride on: a moment.
    Shortly,
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Kind of object.
    pub kind: Kind,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl ObjectRef {
    /// A reference from its parts.
    pub fn new(kind: Kind, namespace: &Arc<str>, name: &Arc<str>) -> Self {
        ObjectRef { kind, namespace: Arc::clone(namespace), name: Arc::clone(name) }
    }
}

impl std::fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", self.kind.name, self.namespace, self.name)
    }
}

/// A kind as the API server addresses it. All kinds a program uses are constants. The name comes
/// first because it tells most kinds apart when two are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Kind {
    /// Kind, as in manifests.
    pub name: std::borrow::Cow<'static, str>,
    /// API group, empty for core.
    pub group: std::borrow::Cow<'static, str>,
    /// Version within the group.
    pub version: std::borrow::Cow<'static, str>,
    /// Plural, as in paths.
    pub plural: std::borrow::Cow<'static, str>,
}

impl Kind {
    /// A kind known at compile time.
    pub const fn new(
        group: &'static str,
        version: &'static str,
        name: &'static str,
        plural: &'static str,
    ) -> Self {
        use std::borrow::Cow::Borrowed;
        Kind {
            group: Borrowed(group),
            version: Borrowed(version),
            name: Borrowed(name),
            plural: Borrowed(plural),
        }
    }

    /// `apps/v1`, or `v1` for core.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Does a person mean this kind by its name or plural, in any case?
    pub fn is_called(&self, text: &str) -> bool {
        self.name.eq_ignore_ascii_case(text) || self.plural.eq_ignore_ascii_case(text)
    }
}

/// Names a change within its key, the same in every pass that plans it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChangeId(pub Arc<str>);

impl ChangeId {
    /// The id of a change: what is done to which object.
    pub fn of(verb: &str, target: &ObjectRef) -> Self {
        let ObjectRef { kind, namespace, name } = target;
        ChangeId([verb, " ", &kind.name, " ", namespace, "/", name].concat().into())
    }
}

/// One write of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The same in every pass that plans it.
    pub id: ChangeId,
    /// What is written.
    pub target: ObjectRef,
    /// How.
    pub op: Op,
    /// What must still be so.
    pub expect: Expect,
    /// What a refusal means for the rest of the pass.
    pub on_refusal: OnRefusal,
}

impl Change {
    /// A create under a deterministic name; a repeated one is refused as `Exists`.
    pub fn create(target: ObjectRef, body: Value) -> Self {
        Change {
            id: ChangeId::of("create", &target),
            target,
            op: Op::Create(Arc::new(body)),
            expect: Expect::Nothing,
            on_refusal: OnRefusal::Stop,
        }
    }

    /// A merge patch onto the version that was seen.
    pub fn patch(target: ObjectRef, body: Value, version: u64) -> Self {
        Change {
            id: ChangeId::of("patch", &target),
            target,
            op: Op::Merge(Arc::new(body)),
            expect: Expect::Version(version),
            on_refusal: OnRefusal::Stop,
        }
    }

    /// A delete of exactly the object that was seen.
    pub fn delete(target: ObjectRef, uid: Uid) -> Self {
        Change {
            id: ChangeId::of("delete", &target),
            target,
            op: Op::Delete,
            expect: Expect::Uid(uid),
            on_refusal: OnRefusal::Stop,
        }
    }

    /// Asks a pod to leave, unless a disruption budget says no.
    pub fn evict(target: ObjectRef, uid: Uid) -> Self {
        Change {
            id: ChangeId::of("evict", &target),
            target,
            op: Op::Evict,
            expect: Expect::Uid(uid),
            on_refusal: OnRefusal::Stop,
        }
    }

    /// The same change, but this must still be so.
    pub fn expecting(self, expect: Expect) -> Self {
        Change { expect, ..self }
    }

    /// The same change, but its refusal does not end the pass.
    pub fn or_skip(self) -> Self {
        Change { on_refusal: OnRefusal::Skip, ..self }
    }

    /// The same change, but its refusal does not end the pass, and if the server asks to wait it is
    /// tried again after this delay.
    pub fn or_skip_for(self, delay: SignedDuration) -> Self {
        Change { on_refusal: OnRefusal::SkipFor(delay), ..self }
    }
}

/// How an object is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Made anew.
    Create(Arc<Value>),
    /// Changed by an RFC 7386 merge patch; the precondition is added by the shell.
    Merge(Arc<Value>),
    /// Removed, dependents in the background.
    Delete,
    /// Removed as an eviction: of pods alone, within their disruption budgets.
    Evict,
}

/// What must still be so for a change to apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expect {
    /// Nothing: the operation itself is safe to repeat.
    Nothing,
    /// The object has this `resourceVersion`.
    Version(u64),
    /// The object has this uid.
    Uid(Uid),
}

impl Expect {
    /// The version that must still be there.
    pub fn version(&self) -> Option<u64> {
        match self {
            Expect::Version(version) => Some(*version),
            Expect::Nothing | Expect::Uid(_) => None,
        }
    }
}

/// What a refused change means for the rest of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnRefusal {
    /// The pass ends here.
    Stop,
    /// The pass goes on.
    Skip,
    /// The pass goes on, and where the server asks to wait this change is not tried again before so
    /// long.
    SkipFor(SignedDuration),
}

/// A Kubernetes Event about an object, posted after the write it reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The object it is about.
    pub about: ObjectRef,
    /// The identity of that object, where it is not the one that is decided about.
    #[serde(default)]
    pub uid: Option<Uid>,
    /// Normal or Warning.
    pub kind: EventKind,
    /// Machine-readable reason.
    pub reason: std::borrow::Cow<'static, str>,
    /// For people.
    pub message: String,
    /// The write it reports.
    pub after: After,
}

/// The type of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// All is well.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Which write an Event reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum After {
    /// This change of the same Decision.
    Change(ChangeId),
    /// The status write of the same Decision.
    Status,
}

/// Why something is not done now, and what would free it. Formatted only by who prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// Which guard holds it.
    pub guard: Guard,
    /// The object at fault, or waited for.
    pub object: ObjectRef,
    /// Its field.
    pub field: std::borrow::Cow<'static, str>,
    /// Since when, as far as it is known.
    pub since: Option<Timestamp>,
    /// What would free it.
    pub frees: Frees,
}

/// The guards that can hold a rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Guard {
    /// A pause step.
    PauseStep {
        /// The step, from 0.
        index: usize,
        /// Of how many.
        count: usize,
    },
    /// A blue-green rollout waits before its switch.
    SwitchPause,
    /// `spec.paused` is set.
    SpecPaused,
    /// The update was aborted; the stable version serves.
    Aborted {
        /// Why, as the status says it.
        message: String,
    },
    /// Pods of a ReplicaSet are not available.
    NotAvailable {
        /// Pods that are.
        available: i32,
        /// Pods that should be.
        wanted: i32,
    },
    /// A ReplicaSet has not the wanted number of pods yet.
    NotScaled {
        /// Pods there are.
        replicas: i32,
        /// Pods there should be.
        wanted: i32,
    },
    /// The ReplicaSet controller has not seen our last write.
    NotObserved,
    /// Older ReplicaSets still have pods.
    OldReplicas {
        /// How many.
        available: i32,
    },
    /// A ReplicaSet has lost its traffic and keeps its pods until its time has come.
    Delay,
    /// The spec keeps the pods of an aborted revision until somebody decides.
    Kept {
        /// The ReplicaSet whose pods they are.
        set: Arc<str>,
    },
    /// A run or an Experiment has not spoken its verdict.
    Verdict {
        /// How it stands, empty while nobody has looked at it.
        phase: String,
    },
    /// A run or an Experiment ended without a verdict.
    Undecided,
    /// A step waits for its plugin.
    PluginStep {
        /// The step, from 0.
        index: usize,
        /// Of how many.
        count: usize,
        /// What was last heard of it.
        message: String,
    },
    /// An analysis step names no templates: nobody will ever speak a verdict.
    NoTemplates {
        /// The step, from 0.
        index: usize,
        /// Of how many.
        count: usize,
    },
    /// The route that a step asks for is not there.
    RouteStep {
        /// The step, from 0.
        index: usize,
        /// Of how many.
        count: usize,
    },
    /// A restart is not done.
    Restart {
        /// Pods from before it; `None` while its time has not come.
        older: Option<usize>,
    },
    /// The spec is refused.
    InvalidSpec {
        /// What is wrong with it.
        message: String,
    },
    /// A change was refused and is tried again later.
    Refused {
        /// The server's words.
        message: String,
        /// How often in a row.
        times: u32,
    },
    /// A traffic router cannot be told what to do.
    Router {
        /// Why, in the router's or the server's words.
        message: String,
    },
    /// A kind is not readable: not synced, forbidden or away.
    Unreadable {
        /// The server's words.
        message: String,
    },
    /// What was decided would break an invariant, and is not done.
    Interlock {
        /// Which invariant, as documents name it.
        invariant: std::borrow::Cow<'static, str>,
        /// What would have happened.
        message: String,
    },
    /// A question to the outside is not answered yet.
    Unanswered {
        /// What was asked.
        question: String,
    },
}

impl Guard {
    /// The fixed name of the guard in logs and as a label of metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Guard::PauseStep { .. } => "PauseStep",
            Guard::SwitchPause => "SwitchPause",
            Guard::SpecPaused => "SpecPaused",
            Guard::Aborted { .. } => "Aborted",
            Guard::NotAvailable { .. } => "NotAvailable",
            Guard::NotScaled { .. } => "NotScaled",
            Guard::NotObserved => "NotObserved",
            Guard::OldReplicas { .. } => "OldReplicas",
            Guard::Delay => "Delay",
            Guard::Kept { .. } => "Kept",
            Guard::Verdict { .. } => "Verdict",
            Guard::Undecided => "Undecided",
            Guard::PluginStep { .. } => "PluginStep",
            Guard::NoTemplates { .. } => "NoTemplates",
            Guard::RouteStep { .. } => "RouteStep",
            Guard::Restart { .. } => "Restart",
            Guard::InvalidSpec { .. } => "InvalidSpec",
            Guard::Refused { .. } => "Refused",
            Guard::Router { .. } => "Router",
            Guard::Unreadable { .. } => "Unreadable",
            Guard::Interlock { .. } => "Interlock",
            Guard::Unanswered { .. } => "Unanswered",
        }
    }

    /// Does it hold the rollout up? Pods that stay for a while, or for good, because the spec says so
    /// do not: nobody needs to be told of them.
    pub fn holds_up(&self) -> bool {
        !matches!(self, Guard::Delay | Guard::Kept { .. })
    }
}

/// What would free a held rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frees {
    /// Time alone, at this moment.
    At(Timestamp),
    /// A person, with this command of the plugin (`promote`, `retry rollout`, …).
    Command(std::borrow::Cow<'static, str>),
    /// A person who edits the field.
    Edit,
    /// The cluster: pods, controllers, permissions.
    Cluster,
}
