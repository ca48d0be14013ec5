//! What does a user write, and what is everything called?

use gradus_engine::decision::Kind;
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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// 1 runs it, 0 stops it; the API server fills it in.
    pub replicas: u32,
    /// Data and credentials outlive the Database.
    #[serde(default)]
    pub keep_data: bool,
    #[serde(flatten)]
    pub settled: Settled,
}

/// What a database is made with. Later specs are held against it, so it is kept on the Secret, which
/// lives as long as the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Name of the database within PostgreSQL.
    pub database: String,
    /// Size of its volume, as `10Gi`.
    pub storage: String,
    /// Its owner, who logs in.
    pub user: String,
    /// Version of PostgreSQL, `major.minor`.
    pub version: String,
}
