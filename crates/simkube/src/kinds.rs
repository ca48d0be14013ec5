//! Which kinds does this cluster know, built in and installed, and how does each behave?

mod builtin;
mod check;
mod definition;

use std::sync::Arc;

use serde_json::Value;

use crate::schema::Schema;

pub(crate) use check::check;
pub(crate) use definition::{established, installed, stored_versions, terminating};

/// A kind in one of its versions: an index into [`Kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId(pub(crate) u16);

/// Everything the server knows about one kind in one version.
#[derive(Clone, Debug)]
pub struct KindInfo {
    /// API group, empty for the core group.
    pub group: Arc<str>,
    /// For example `v1`.
    pub version: Arc<str>,
    /// For example `ReplicaSet`.
    pub kind: Arc<str>,
    /// For example `ReplicaSetList`.
    pub list_kind: Arc<str>,
    /// For example `replicasets`.
    pub plural: Arc<str>,
    /// For example `replicaset`.
    pub singular: Arc<str>,
    /// For example `rs`.
    pub short_names: Vec<String>,
    /// For example `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether `status` is written through a subresource of its own.
    pub has_status: bool,
    /// Where the scale subresource finds its numbers.
    pub scale: Option<ScalePaths>,
    /// What raises `metadata.generation`.
    pub generation: Generation,
    /// Installed by a CustomResourceDefinition.
    pub custom: bool,
    /// Whether a PUT without resourceVersion is accepted.
    pub unconditional_update: bool,
    /// Whether a PUT of an object that is not there creates it.
    pub put_creates: bool,
    /// Whether DELETE answers with the object rather than a Status once it is gone.
    pub returns_deleted: bool,
    /// What its objects must look like (custom kinds).
    pub schema: Option<Arc<Schema>>,
    /// The same as written, for the OpenAPI document (custom kinds).
    pub open_api: Option<Arc<Value>>,
    /// Columns `kubectl get` shows (custom kinds).
    pub columns: Vec<Column>,
    /// Whether the version is served at all.
    pub served: bool,
    /// The kind under which its objects are stored: itself, or another version.
    pub stored_as: KindId,
}

/// Where the scale subresource finds its numbers, as paths without the leading dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// For example `spec.replicas`.
    pub wanted: String,
    /// For example `status.replicas`.
    pub seen: String,
    /// For example `status.selector`.
    pub selector: Option<String>,
}

/// What raises `metadata.generation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Any change of anything but metadata and, where it is a subresource, status.
    Content,
    /// The kind does not count.
    Never,
}

/// One column of `kubectl get`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `date` and so on.
    pub column_type: String,
    /// For example `int32`.
    pub format: String,
    /// What it tells.
    pub description: String,
    /// 0: always shown; above: only with `-o wide`.
    pub priority: i64,
    /// Where the value is, as a Kubernetes JSONPath.
    pub json_path: String,
}

/// The kinds of one cluster.
#[derive(Clone, Debug)]
pub struct Kinds {
    list: Vec<Arc<KindInfo>>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self { list: builtin::kinds() }
    }
}

impl Kinds {
    /// What is known about a kind.
    #[inline]
    pub fn get(&self, id: KindId) -> &KindInfo {
        &self.list[usize::from(id.0)]
    }

    /// The served kind behind `/apis/{group}/{version}/{plural}`.
    pub fn by_plural(&self, group: &str, version: &str, plural: &str) -> Option<KindId> {
        self.find(|kind| {
            *kind.group == *group && *kind.version == *version && *kind.plural == *plural
        })
    }

    /// The served kind an object's `apiVersion` and `kind` name.
    pub fn by_name(&self, api_version: &str, name: &str) -> Option<KindId> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        self.find(|kind| *kind.group == *group && *kind.version == *version && *kind.kind == *name)
    }

    /// A served kind of this group and kind in any version, the stored one first.
    pub fn by_group(&self, group: &str, name: &str) -> Option<KindId> {
        let found = self.find(|kind| *kind.group == *group && *kind.kind == *name)?;
        Some(self.get(found).stored_as)
    }

    /// All served kinds, built-in ones first.
    pub fn served(&self) -> impl Iterator<Item = (KindId, &KindInfo)> {
        self.all().filter(|(_, kind)| kind.served)
    }

    /// All kinds under which objects are stored.
    pub(crate) fn stored(&self) -> impl Iterator<Item = KindId> {
        self.all().filter(|(id, kind)| kind.stored_as == *id).map(|(id, _)| id)
    }

    /// How many there are, served or not.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// Adds the versions of a custom kind, or replaces those of the same group and plural.
    /// The first of `versions` is the stored one.
    pub(crate) fn install(&mut self, versions: Vec<KindInfo>) {
        let Some(first) = versions.first() else { return };
        let (group, plural) = (first.group.clone(), first.plural.clone());
        self.withdraw(&group, &plural);
        let mut stored_as = None;
        for mut kind in versions {
            let place = self.list.iter().position(|old| {
                old.group == kind.group && old.plural == kind.plural && old.version == kind.version
            });
            let at = place.unwrap_or(self.list.len());
            let id = KindId(u16::try_from(at).expect("a cluster has fewer than 65,536 kinds"));
            kind.stored_as = *stored_as.get_or_insert(id);
            match place {
                Some(place) => self.list[place] = Arc::new(kind),
                None => self.list.push(Arc::new(kind)),
            }
        }
    }

    /// Stops serving a custom kind.
    pub(crate) fn withdraw(&mut self, group: &str, plural: &str) {
        for kind in &mut self.list {
            if kind.custom && *kind.group == *group && *kind.plural == *plural {
                Arc::make_mut(kind).served = false;
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = (KindId, &KindInfo)> {
        let ids = (0..=u16::MAX).map(KindId);
        ids.zip(self.list.iter().map(|kind| &**kind))
    }

    fn find(&self, wanted: impl Fn(&KindInfo) -> bool) -> Option<KindId> {
        self.served().find(|(_, kind)| wanted(kind)).map(|(id, _)| id)
    }
}

impl KindInfo {
    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            return self.version.to_string();
        }
        format!("{}/{}", self.group, self.version)
    }

    /// Is this its `apiVersion`?
    pub fn has_api_version(&self, text: &str) -> bool {
        let (group, version) = text.split_once('/').unwrap_or(("", text));
        *self.group == *group && *self.version == *version && !text.starts_with('/')
    }

    /// `replicasets.apps`, or `pods` for the core group.
    pub fn resource(&self) -> String {
        qualify(&self.plural, &self.group)
    }

    /// `ReplicaSet.apps`, or `Pod` for the core group.
    pub fn qualified(&self) -> String {
        qualify(&self.kind, &self.group)
    }
}

fn qualify(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_constants_are_the_kinds_they_say() {
        let kinds = Kinds::default();
        let cases = [
            (KindId::NAMESPACE, "Namespace"),
            (KindId::NODE, "Node"),
            (KindId::POD, "Pod"),
            (KindId::SERVICE, "Service"),
            (KindId::CONFIG_MAP, "ConfigMap"),
            (KindId::SECRET, "Secret"),
            (KindId::SERVICE_ACCOUNT, "ServiceAccount"),
            (KindId::EVENT, "Event"),
            (KindId::RESOURCE_QUOTA, "ResourceQuota"),
            (KindId::REPLICA_SET, "ReplicaSet"),
            (KindId::DEPLOYMENT, "Deployment"),
            (KindId::STATEFUL_SET, "StatefulSet"),
            (KindId::JOB, "Job"),
            (KindId::INGRESS, "Ingress"),
            (KindId::LEASE, "Lease"),
            (KindId::POD_DISRUPTION_BUDGET, "PodDisruptionBudget"),
            (KindId::CUSTOM_RESOURCE_DEFINITION, "CustomResourceDefinition"),
            (KindId::ENDPOINT_SLICE, "EndpointSlice"),
            (KindId::ROLE, "Role"),
            (KindId::ROLE_BINDING, "RoleBinding"),
            (KindId::CLUSTER_ROLE, "ClusterRole"),
            (KindId::CLUSTER_ROLE_BINDING, "ClusterRoleBinding"),
            (KindId::PERSISTENT_VOLUME_CLAIM, "PersistentVolumeClaim"),
            (KindId::POD_TEMPLATE, "PodTemplate"),
        ];
        for (id, name) in cases {
            assert_eq!(&*kinds.get(id).kind, name);
        }
    }

    #[test]
    fn kinds_are_found_by_what_the_wire_calls_them() {
        let kinds = Kinds::default();
        assert_eq!(kinds.by_plural("apps", "v1", "replicasets"), Some(KindId::REPLICA_SET));
        assert_eq!(kinds.by_name("v1", "Pod"), Some(KindId::POD));
        assert_eq!(kinds.by_name("apps/v1", "Pod"), None, "pods are in the core group");
        assert_eq!(kinds.by_group("batch", "Job"), Some(KindId::JOB));
    }
}
