//! Which kinds do the engines name?

use gradus_api::names;

use crate::decision::Kind;

/// Our Rollout.
pub const ROLLOUT: Kind =
    Kind::new(names::GROUP, names::VERSION, names::kind::ROLLOUT, names::plural::ROLLOUTS);

/// One run of an analysis.
pub const ANALYSIS_RUN: Kind = Kind::new(
    names::GROUP,
    names::VERSION,
    names::kind::ANALYSIS_RUN,
    names::plural::ANALYSIS_RUNS,
);

/// ReplicaSets beside a Rollout, for comparison.
pub const EXPERIMENT: Kind =
    Kind::new(names::GROUP, names::VERSION, names::kind::EXPERIMENT, names::plural::EXPERIMENTS);

/// A template for runs, in a namespace.
pub const ANALYSIS_TEMPLATE: Kind = Kind::new(
    names::GROUP,
    names::VERSION,
    names::kind::ANALYSIS_TEMPLATE,
    names::plural::ANALYSIS_TEMPLATES,
);

/// A template for runs, for the whole cluster.
pub const CLUSTER_ANALYSIS_TEMPLATE: Kind = Kind::new(
    names::GROUP,
    names::VERSION,
    names::kind::CLUSTER_ANALYSIS_TEMPLATE,
    names::plural::CLUSTER_ANALYSIS_TEMPLATES,
);

/// The ReplicaSet of apps.
pub const REPLICA_SET: Kind = Kind::new("apps", "v1", "ReplicaSet", "replicasets");

/// The Ingress of networking.k8s.io.
pub const INGRESS: Kind = Kind::new("networking.k8s.io", "v1", "Ingress", "ingresses");

/// The Service of core.
pub const SERVICE: Kind = Kind::new("", "v1", "Service", "services");

/// The Pod of core.
pub const POD: Kind = Kind::new("", "v1", "Pod", "pods");

/// The Event of core.
pub const EVENT: Kind = Kind::new("", "v1", "Event", "events");

/// The Secret.
pub const SECRET: Kind = Kind::new("", "v1", "Secret", "secrets");

/// The Job of batch.
pub const JOB: Kind = Kind::new("batch", "v1", "Job", "jobs");

/// The Deployment of apps.
pub const DEPLOYMENT: Kind = Kind::new("apps", "v1", "Deployment", "deployments");

/// The PodTemplate of core.
pub const POD_TEMPLATE: Kind = Kind::new("", "v1", "PodTemplate", "podtemplates");
