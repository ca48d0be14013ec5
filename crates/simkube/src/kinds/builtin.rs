//! The kinds every cluster has.

use std::sync::Arc;

use super::{Generation, KindId, KindInfo, ScalePaths};

impl KindId {
    /// core/v1 Namespace.
    pub const NAMESPACE: Self = Self(0);
    /// core/v1 Node.
    pub const NODE: Self = Self(1);
    /// core/v1 Pod.
    pub const POD: Self = Self(2);
    /// core/v1 Service.
    pub const SERVICE: Self = Self(3);
    /// core/v1 ConfigMap.
    pub const CONFIG_MAP: Self = Self(4);
    /// core/v1 Secret.
    pub const SECRET: Self = Self(5);
    /// core/v1 ServiceAccount.
    pub const SERVICE_ACCOUNT: Self = Self(6);
    /// core/v1 Event.
    pub const EVENT: Self = Self(7);
    /// core/v1 ResourceQuota.
    pub const RESOURCE_QUOTA: Self = Self(8);
    /// apps/v1 ReplicaSet.
    pub const REPLICA_SET: Self = Self(9);
    /// apps/v1 Deployment.
    pub const DEPLOYMENT: Self = Self(10);
    /// apps/v1 StatefulSet.
    pub const STATEFUL_SET: Self = Self(11);
    /// batch/v1 Job.
    pub const JOB: Self = Self(12);
    /// networking.k8s.io/v1 Ingress.
    pub const INGRESS: Self = Self(13);
    /// coordination.k8s.io/v1 Lease.
    pub const LEASE: Self = Self(14);
    /// policy/v1 PodDisruptionBudget.
    pub const POD_DISRUPTION_BUDGET: Self = Self(15);
    /// apiextensions.k8s.io/v1 CustomResourceDefinition.
    pub const CUSTOM_RESOURCE_DEFINITION: Self = Self(16);
    /// discovery.k8s.io/v1 EndpointSlice.
    pub const ENDPOINT_SLICE: Self = Self(17);
    /// rbac.authorization.k8s.io/v1 Role.
    pub const ROLE: Self = Self(18);
    /// rbac.authorization.k8s.io/v1 RoleBinding.
    pub const ROLE_BINDING: Self = Self(19);
    /// rbac.authorization.k8s.io/v1 ClusterRole.
    pub const CLUSTER_ROLE: Self = Self(20);
    /// rbac.authorization.k8s.io/v1 ClusterRoleBinding.
    pub const CLUSTER_ROLE_BINDING: Self = Self(21);
    /// core/v1 PersistentVolumeClaim.
    pub const PERSISTENT_VOLUME_CLAIM: Self = Self(22);
    /// core/v1 PodTemplate.
    pub const POD_TEMPLATE: Self = Self(23);

    /// Whether its objects make pods from a `spec.template`.
    pub(crate) fn makes_pods(self) -> bool {
        matches!(self, Self::REPLICA_SET | Self::DEPLOYMENT | Self::STATEFUL_SET | Self::JOB)
    }
}

/// What a row says beyond its names.
const STATUS: u16 = 1;
const SCALE: u16 = 2;
const COUNTS: u16 = 4;
const CLUSTER: u16 = 8;
const CONDITIONAL: u16 = 16;
const RETURNS: u16 = 32;
const ALL: u16 = 64;
const EXTENSIONS: u16 = 128;
const PUT_CREATES: u16 = 256;

type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, u16);

/// group, version, kind, plural, short names, what else.
const ROWS: [Row; 24] = [
    ("", "v1", "Namespace", "namespaces", "ns", STATUS | CLUSTER),
    ("", "v1", "Node", "nodes", "no", STATUS | CLUSTER),
    ("", "v1", "Pod", "pods", "po", STATUS | COUNTS | RETURNS | ALL),
    ("", "v1", "Service", "services", "svc", STATUS | RETURNS | ALL | PUT_CREATES),
    ("", "v1", "ConfigMap", "configmaps", "cm", 0),
    ("", "v1", "Secret", "secrets", "", 0),
    ("", "v1", "ServiceAccount", "serviceaccounts", "sa", RETURNS),
    ("", "v1", "Event", "events", "ev", PUT_CREATES),
    ("", "v1", "ResourceQuota", "resourcequotas", "quota", STATUS | RETURNS),
    ("apps", "v1", "ReplicaSet", "replicasets", "rs", STATUS | SCALE | COUNTS | ALL),
    ("apps", "v1", "Deployment", "deployments", "deploy", STATUS | SCALE | COUNTS | ALL),
    ("apps", "v1", "StatefulSet", "statefulsets", "sts", STATUS | SCALE | COUNTS | ALL),
    ("batch", "v1", "Job", "jobs", "", STATUS | COUNTS | ALL),
    ("networking.k8s.io", "v1", "Ingress", "ingresses", "ing", STATUS | COUNTS),
    ("coordination.k8s.io", "v1", "Lease", "leases", "", CONDITIONAL | PUT_CREATES),
    (
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "pdb",
        STATUS | COUNTS | CONDITIONAL,
    ),
    (
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd,crds",
        STATUS | COUNTS | CLUSTER | CONDITIONAL | RETURNS | EXTENSIONS,
    ),
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "", COUNTS),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", "", PUT_CREATES),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "", PUT_CREATES),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "", CLUSTER | PUT_CREATES),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        "",
        CLUSTER | PUT_CREATES,
    ),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", STATUS | RETURNS),
    ("", "v1", "PodTemplate", "podtemplates", "", COUNTS | RETURNS),
];

pub(super) fn kinds() -> Vec<Arc<KindInfo>> {
    (0..).zip(ROWS).map(|(index, row)| Arc::new(kind(KindId(index), row))).collect()
}

fn kind(id: KindId, (group, version, kind, plural, short, flags): Row) -> KindInfo {
    let has = |flag: u16| flags & flag != 0;
    KindInfo {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        plural: plural.into(),
        singular: kind.to_lowercase().into(),
        short_names: short.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        categories: [(ALL, "all"), (EXTENSIONS, "api-extensions")]
            .into_iter()
            .filter(|(flag, _)| has(*flag))
            .map(|(_, name)| name.to_owned())
            .collect(),
        namespaced: !has(CLUSTER),
        has_status: has(STATUS),
        scale: has(SCALE).then(|| ScalePaths {
            wanted: "spec.replicas".to_owned(),
            seen: "status.replicas".to_owned(),
            selector: None,
        }),
        generation: if has(COUNTS) { Generation::Content } else { Generation::Never },
        custom: false,
        unconditional_update: !has(CONDITIONAL),
        put_creates: has(PUT_CREATES),
        returns_deleted: has(RETURNS),
        schema: None,
        open_api: None,
        columns: Vec::new(),
        served: true,
        stored_as: id,
    }
}
