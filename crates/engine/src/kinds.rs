//! Which kinds do the engines name?

use gradus_api::names;

use crate::decision::Kind;

/// Our Rollout.
pub const ROLLOUT: Kind =
    Kind::new(names::GROUP, names::VERSION, names::kind::ROLLOUT, names::plural::ROLLOUTS);

/// The ReplicaSet of apps.
pub const REPLICA_SET: Kind = Kind::new("apps", "v1", "ReplicaSet", "replicasets");

/// The Service of core.
pub const SERVICE: Kind = Kind::new("", "v1", "Service", "services");
