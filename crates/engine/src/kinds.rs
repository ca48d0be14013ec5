//! Which kinds do the engines name?

use gradus_api::names;

use crate::decision::Kind;

/// Our Rollout.
pub const ROLLOUT: Kind =
    Kind::new(names::GROUP, names::VERSION, names::kind::ROLLOUT, names::plural::ROLLOUTS);

/// The ReplicaSet of apps.
pub const REPLICA_SET: Kind = Kind::new("apps", "v1", "ReplicaSet", "replicasets");

/// The Ingress of networking.k8s.io.
pub const INGRESS: Kind = Kind::new("networking.k8s.io", "v1", "Ingress", "ingresses");

/// The Service of core.
pub const SERVICE: Kind = Kind::new("", "v1", "Service", "services");
