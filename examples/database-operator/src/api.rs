//! What does a user write, what is told in return, and what is everything called?

use gradus_engine::decision::Kind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The kind this controller looks after; `crd.yaml` defines it.
pub const DATABASE: Kind = Kind::new("database.gradus.dev", "v1", "Database", "databases");
/// Holds the credentials.
pub const SECRET: Kind = Kind::new("", "v1", "Secret", "secrets");
/// Gives the database a name in the network.
pub const SERVICE: Kind = Kind::new("", "v1", "Service", "services");
/// Runs the database.
pub const STATEFUL_SET: Kind = Kind::new("apps", "v1", "StatefulSet", "statefulsets");
/// Holds the data; the StatefulSet makes it.
pub const CLAIM: Kind = Kind::new("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");

/// On everything that belongs to a Database: its name.
pub const LABEL: &str = "database.gradus.dev/name";
/// On the Secret: what was accepted last, which must not be taken back.
pub const ACCEPTED: &str = "database.gradus.dev/accepted";
/// On a Database that keeps its data: it goes when Secret and claim are let go.
pub const FINALIZER: &str = "database.gradus.dev/keep-data";

/// What a user wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Version of PostgreSQL, `major.minor`.
    pub version: String,
    /// 1 runs it, 0 stops it.
    #[serde(default = "one")]
    pub replicas: u32,
    /// Size of its volume, as `10Gi`.
    pub storage: String,
    /// Name of the database within PostgreSQL.
    pub database: String,
    /// Its owner, who logs in.
    pub user: String,
    /// Data and credentials outlive the Database.
    #[serde(default)]
    pub keep_data: bool,
}

/// What a user is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// One word for tables: Starting, Ready, Stopping, Stopped, Refused, CredentialsLost, Waiting.
    pub phase: String,
    /// The generation of the spec that this status speaks of.
    pub observed_generation: i64,
    /// `Accepted`, `Ready` and, when it is so, `CredentialsLost`.
    pub conditions: Vec<Condition>,
}

/// One aspect of how things stand, as everywhere in Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which aspect.
    pub r#type: String,
    /// `True` or `False`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// Since when `status` is what it is.
    pub last_transition_time: Timestamp,
}

fn one() -> u32 {
    1
}
