//! What is a stored object, and how does it look on the wire?

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::kinds::{KindId, Kinds};
use crate::patch;
use crate::pod_status::PodStatus;

/// Labels or annotations.
pub type Texts = BTreeMap<String, String>;

/// An object in parts: a write rebuilds only the part it changes, readers share the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Which kind it is.
    pub kind: KindId,
    /// `metadata.resourceVersion`; 0 for an object that was never stored.
    pub version: u64,
    /// `metadata`.
    pub meta: Arc<Meta>,
    /// `spec`, null where there is none.
    pub spec: Arc<Value>,
    /// `spec.template` of the kinds that make pods, so that a resize does not copy it. It is not in
    /// `spec`.
    pub template: Option<Arc<Value>>,
    /// `status`, null where there is none. Null for a pod the kubelet runs: see `pod`.
    pub status: Arc<Value>,
    /// All other fields of the top level: `data`, `rules`, `type`, `involvedObject` and so on.
    pub rest: Arc<Map<String, Value>>,
    /// The status of a pod the kubelet runs, made JSON only when somebody reads it.
    pub pod: Option<Arc<PodStatus>>,
}

/// `metadata` of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Name within namespace and kind.
    pub name: Arc<str>,
    /// Namespace, empty for what belongs to the whole cluster.
    pub namespace: Arc<str>,
    /// Unique over all time.
    pub uid: Arc<str>,
    /// What the name was made from, empty if the writer gave the whole name.
    pub generate_name: Arc<str>,
    /// Rises with every change of what is wanted; 0 for kinds that do not count.
    pub generation: i64,
    /// When it was created, in whole seconds.
    pub created: Timestamp,
    /// When it is to be gone; set once somebody deleted it.
    pub deleting: Option<Timestamp>,
    /// How long it was given to stop.
    pub grace_seconds: Option<i64>,
    /// Labels.
    pub labels: Arc<Texts>,
    /// Annotations.
    pub annotations: Arc<Texts>,
    /// What it belongs to.
    pub owners: Vec<OwnerReference>,
    /// Who still has to act before it may go.
    pub finalizers: Vec<String>,
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerReference {
    /// For example `apps/v1`.
    pub api_version: Arc<str>,
    /// For example `ReplicaSet`.
    pub kind: Arc<str>,
    /// Name of the owner.
    pub name: Arc<str>,
    /// The owner itself; a namesake does not count.
    pub uid: Arc<str>,
    /// Whether the owner manages this object.
    pub controller: Option<bool>,
    /// Whether the owner's foreground deletion waits for this object.
    pub block_owner_deletion: Option<bool>,
}

/// Where an object is stored within its kind. Sorts by namespace, then name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Namespace, empty for what belongs to the whole cluster.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl Object {
    /// Where it is stored within its kind.
    pub fn key(&self) -> Key {
        Key { namespace: self.meta.namespace.clone(), name: self.meta.name.clone() }
    }

    /// The object as HTTP sends it.
    pub fn to_json(&self, kinds: &Kinds) -> Value {
        let kind = kinds.get(self.kind);
        let mut map = Map::clone(&self.rest);
        map.insert("apiVersion".to_owned(), json!(kind.api_version()));
        map.insert("kind".to_owned(), json!(kind.kind));
        map.insert("metadata".to_owned(), self.meta.to_json(self.version));
        let mut spec = self.whole_spec();
        let mut status = Value::clone(&self.status);
        if let Some(pod) = &self.pod {
            if !pod.node.is_empty() {
                spec["nodeName"] = json!(pod.node);
            }
            status = pod.to_json(&self.spec);
        }
        if !spec.is_null() {
            map.insert("spec".to_owned(), spec);
        }
        if !status.is_null() {
            map.insert("status".to_owned(), status);
        }
        Value::Object(map)
    }

    /// Takes an object from the wire apart. What only the server decides (uid, times) is taken
    /// as written; admission puts it right.
    pub fn from_json(kind: KindId, value: Value) -> Result<Self, ApiError> {
        let Value::Object(mut rest) = value else {
            return Err(ApiError::bad_request("the body is not a JSON object"));
        };
        rest.remove("apiVersion");
        rest.remove("kind");
        let (meta, version) = Meta::from_json(rest.remove("metadata").unwrap_or_default())?;
        let mut spec = rest.remove("spec").unwrap_or_default();
        let template = take_template(kind, &mut spec).filter(|template| !template.is_null());
        let status = Arc::new(rest.remove("status").unwrap_or_default());
        Ok(Self {
            kind,
            version,
            meta: Arc::new(meta),
            spec: Arc::new(spec),
            template: template.map(Arc::new),
            status,
            rest: Arc::new(rest),
            pod: None,
        })
    }

    /// `spec` as HTTP sends it, with the template in it.
    pub fn whole_spec(&self) -> Value {
        let mut spec = Value::clone(&self.spec);
        if let Some(template) = &self.template {
            spec["template"] = Value::clone(template);
        }
        spec
    }

    /// What its pods are made from, null where it makes none.
    pub fn template(&self) -> &Value {
        self.template.as_deref().unwrap_or(&Value::Null)
    }

    /// Whether its pods are made from the very same template as those of another.
    pub(crate) fn shares_template(&self, other: &Self) -> bool {
        match (&self.template, &other.template) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// Lays a merge patch (RFC 7386) of `spec` over this.
    pub(crate) fn merge_spec(&mut self, mut change: Value) {
        match take_template(self.kind, &mut change) {
            Some(Value::Null) => self.template = None,
            Some(template) => {
                self.template = Some(Arc::new(patch::merged(self.template(), template)));
            }
            None if change.is_object() => {}
            None => self.template = None,
        }
        self.spec = Arc::new(patch::merged(&self.spec, change));
    }

    /// The text a field selector compares, or `None` where the object does not have the field.
    pub fn field(&self, path: &str) -> Option<String> {
        match (path, &self.pod) {
            ("metadata.name", _) => return Some(self.meta.name.to_string()),
            ("metadata.namespace", _) => return Some(self.meta.namespace.to_string()),
            ("spec.nodeName", Some(pod)) => return Some(pod.node.to_string()),
            ("status.phase", Some(pod)) => return Some(pod.state.phase.name().to_owned()),
            _ => {}
        }
        let mut parts = path.split('.');
        let first = parts.next()?;
        let top = match first {
            "spec" => &*self.spec,
            "status" => &*self.status,
            other => self.rest.get(other)?,
        };
        let found = parts.try_fold(top, |value, part| value.get(part))?;
        Some(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
    }

    /// The owner that manages this object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.meta.owners.iter().find(|owner| owner.controller == Some(true))
    }

    /// The same object seen as another version of its kind.
    pub fn as_kind(self: &Arc<Self>, kind: KindId) -> Arc<Self> {
        if self.kind == kind {
            return self.clone();
        }
        Arc::new(Self { kind, ..Self::clone(self) })
    }
}

impl Meta {
    /// `metadata` as HTTP sends it.
    pub fn to_json(&self, version: u64) -> Value {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| {
            map.insert(key.to_owned(), value);
        };
        put("name", json!(self.name));
        if !self.namespace.is_empty() {
            put("namespace", json!(self.namespace));
        }
        if !self.generate_name.is_empty() {
            put("generateName", json!(self.generate_name));
        }
        if !self.uid.is_empty() {
            put("uid", json!(self.uid));
            put("creationTimestamp", json!(self.created.to_string()));
        }
        if version > 0 {
            put("resourceVersion", json!(version.to_string()));
        }
        if self.generation > 0 {
            put("generation", json!(self.generation));
        }
        if let Some(when) = self.deleting {
            put("deletionTimestamp", json!(when.to_string()));
        }
        if let Some(seconds) = self.grace_seconds {
            put("deletionGracePeriodSeconds", json!(seconds));
        }
        if !self.labels.is_empty() {
            put("labels", json!(*self.labels));
        }
        if !self.annotations.is_empty() {
            put("annotations", json!(*self.annotations));
        }
        if !self.owners.is_empty() {
            put("ownerReferences", self.owners.iter().map(OwnerReference::to_json).collect());
        }
        if !self.finalizers.is_empty() {
            put("finalizers", json!(self.finalizers));
        }
        Value::Object(map)
    }

    /// `metadata` and the resourceVersion in it (0 if there is none).
    pub fn from_json(value: Value) -> Result<(Self, u64), ApiError> {
        let mut meta = Self::default();
        let mut version = 0;
        let map = match value {
            Value::Null => Map::new(),
            Value::Object(map) => map,
            other => return Err(wrong_type("metadata", "an object", &other)),
        };
        for (field, value) in map {
            meta.read(&field, value, &mut version)?;
        }
        Ok((meta, version))
    }

    /// Lays a merge patch (RFC 7386) of `metadata` over this; returns the resourceVersion it names.
    /// A patch that only repeats what stands there, as many do, leaves it shared.
    pub fn merge(self: &mut Arc<Self>, patch: &Value) -> Result<u64, ApiError> {
        let mut version = 0;
        let patch = match patch {
            Value::Object(patch) => patch,
            Value::Null => {
                *self = Arc::default();
                return Ok(version);
            }
            other => return Err(wrong_type("metadata", "an object", other)),
        };
        for (field, value) in patch {
            match (field.as_str(), value) {
                ("resourceVersion", _) => version = read_version(value)?,
                ("labels", Value::Object(changes)) => {
                    let labels = merged_texts(&self.labels, changes, "metadata.labels")?;
                    if let Some(labels) = labels {
                        Arc::make_mut(self).labels = labels;
                    }
                }
                ("annotations", Value::Object(changes)) => {
                    let texts = merged_texts(&self.annotations, changes, "metadata.annotations")?;
                    if let Some(texts) = texts {
                        Arc::make_mut(self).annotations = texts;
                    }
                }
                _ => Arc::make_mut(self).read(field, value.clone(), &mut version)?,
            }
        }
        Ok(version)
    }

    fn read(&mut self, field: &str, value: Value, version: &mut u64) -> Result<(), ApiError> {
        match field {
            "name" => self.name = text("metadata.name", &value)?,
            "namespace" => self.namespace = text("metadata.namespace", &value)?,
            "uid" => self.uid = text("metadata.uid", &value)?,
            "generateName" => self.generate_name = text("metadata.generateName", &value)?,
            "resourceVersion" => *version = read_version(&value)?,
            "labels" => self.labels = Arc::new(texts("metadata.labels", value)?),
            "annotations" => self.annotations = Arc::new(texts("metadata.annotations", value)?),
            "finalizers" => {
                let list = list("metadata.finalizers", value)?;
                let names = list.iter().map(|one| text("metadata.finalizers", one));
                self.finalizers =
                    names.map(|name| name.map(|n| n.to_string())).collect::<Result<_, _>>()?;
            }
            "ownerReferences" => {
                let list = list("metadata.ownerReferences", value)?;
                self.owners =
                    list.iter().map(OwnerReference::from_json).collect::<Result<_, _>>()?;
            }
            "creationTimestamp" => {
                self.created = time(field, &value)?.unwrap_or_default();
            }
            "deletionTimestamp" => self.deleting = time(field, &value)?,
            "deletionGracePeriodSeconds" => self.grace_seconds = value.as_i64(),
            "generation" => self.generation = value.as_i64().unwrap_or_default(),
            // managedFields, selfLink: not kept.
            _ => {}
        }
        Ok(())
    }
}

impl OwnerReference {
    /// One entry of `metadata.ownerReferences`.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid,
        });
        if let Some(flag) = self.controller {
            value["controller"] = json!(flag);
        }
        if let Some(flag) = self.block_owner_deletion {
            value["blockOwnerDeletion"] = json!(flag);
        }
        value
    }

    /// One entry of `metadata.ownerReferences`.
    pub fn from_json(value: &Value) -> Result<Self, ApiError> {
        let of = |field: &str| match value.get(field) {
            None => Ok(Arc::default()),
            Some(Value::String(text)) => Ok(text.as_str().into()),
            Some(other) => text(&format!("metadata.ownerReferences.{field}"), other),
        };
        Ok(Self {
            api_version: of("apiVersion")?,
            kind: of("kind")?,
            name: of("name")?,
            uid: of("uid")?,
            controller: value.get("controller").and_then(Value::as_bool),
            block_owner_deletion: value.get("blockOwnerDeletion").and_then(Value::as_bool),
        })
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        // All objects of a namespace share its name, and most keys of an object share its own.
        let texts = |one: &Arc<str>, other: &Arc<str>| {
            if Arc::ptr_eq(one, other) { Ordering::Equal } else { one.cmp(other) }
        };
        texts(&self.namespace, &other.namespace).then_with(|| texts(&self.name, &other.name))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Key {
    /// A key from its two names.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// A moment as stored objects carry it: in whole seconds.
pub fn whole_seconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).expect("a timestamp's own seconds are in range")
}

/// Takes the pod template out of the spec of a kind that has one.
fn take_template(kind: KindId, spec: &mut Value) -> Option<Value> {
    spec.as_object_mut().filter(|_| kind.makes_pods())?.remove("template")
}

/// What changes make of labels or annotations, if they change anything.
fn merged_texts(
    texts: &Arc<Texts>,
    changes: &Map<String, Value>,
    field: &str,
) -> Result<Option<Arc<Texts>>, ApiError> {
    let mut merged = Arc::clone(texts);
    for (key, value) in changes {
        match value {
            Value::Null if !merged.contains_key(key) => {}
            Value::Null => {
                Arc::make_mut(&mut merged).remove(key);
            }
            Value::String(text) if merged.get(key) == Some(text) => {}
            Value::String(text) => {
                Arc::make_mut(&mut merged).insert(key.clone(), text.clone());
            }
            other => return Err(wrong_type(field, "a string", other)),
        }
    }
    Ok(Some(merged).filter(|merged| !Arc::ptr_eq(merged, texts)))
}

fn texts(field: &str, value: Value) -> Result<Texts, ApiError> {
    match value {
        Value::Null => Ok(Texts::new()),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| match value {
                Value::String(text) => Ok((key, text)),
                Value::Null => Ok((key, String::new())),
                other => Err(wrong_type(field, "a string", &other)),
            })
            .collect(),
        other => Err(wrong_type(field, "an object", &other)),
    }
}

fn text(field: &str, value: &Value) -> Result<Arc<str>, ApiError> {
    match value {
        Value::Null => Ok(Arc::default()),
        Value::String(text) => Ok(text.as_str().into()),
        other => Err(wrong_type(field, "a string", other)),
    }
}

fn list(field: &str, value: Value) -> Result<Vec<Value>, ApiError> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(list) => Ok(list),
        other => Err(wrong_type(field, "an array", &other)),
    }
}

fn time(field: &str, value: &Value) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = value.as_str() else { return Ok(None) };
    let moment = text.parse().map_err(|_| wrong_type(field, "an RFC 3339 time", value))?;
    Ok(Some(moment))
}

fn read_version(value: &Value) -> Result<u64, ApiError> {
    match value.as_str() {
        None | Some("") => Ok(0),
        Some(text) => text.parse().map_err(|_| {
            ApiError::internal(format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))
        }),
    }
}

fn wrong_type(field: &str, expected: &str, found: &Value) -> ApiError {
    ApiError::bad_request(format!("{field}: expected {expected}, found {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_survives_the_way_out_and_back() {
        let wire = json!({
            "name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"x": "y"},
            "deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30,
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "1",
                "controller": true}],
            "finalizers": ["a/b"],
        });
        let (meta, version) = Meta::from_json(wire.clone()).unwrap();
        assert_eq!(version, 7);
        assert_eq!(meta.to_json(7), wire);
    }

    #[test]
    fn a_merge_patch_of_metadata_touches_what_it_names() {
        let wire = json!({"name": "a", "labels": {"x": "1", "y": "2"}});
        let mut meta = Arc::new(Meta::from_json(wire).unwrap().0);
        let patch = json!({"labels": {"x": null, "z": "3"}, "resourceVersion": "9"});
        assert_eq!(meta.merge(&patch).unwrap(), 9);
        assert_eq!(meta.to_json(0), json!({"name": "a", "labels": {"y": "2", "z": "3"}}));
        assert!(meta.merge(&json!({"labels": {"x": 1}})).is_err(), "labels are strings");
        let before = meta.clone();
        let patch = json!({"labels": {"x": null, "z": "3"}, "resourceVersion": "10"});
        assert_eq!(meta.merge(&patch).unwrap(), 10);
        assert!(Arc::ptr_eq(&before, &meta), "what is only repeated stays shared");
    }
}
