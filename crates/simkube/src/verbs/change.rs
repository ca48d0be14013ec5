//! Update, and what update and patch share: from an old state and a wanted one to the new state.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::patch::unreadable;
use super::{check_named, check_path, check_type, undeterminable};
use crate::SimCluster;
use crate::admit;
use crate::error::{ApiError, Cause};
use crate::kinds::{Generation, KindId, KindInfo};
use crate::object::Object;
use crate::pod_status::PodStatus;
use crate::request::{Content, Reply, Request, Subresource, Verb};

impl SimCluster {
    pub(super) fn update(
        &mut self,
        request: &Request,
        kind: &KindInfo,
        now: Timestamp,
    ) -> Result<Reply, ApiError> {
        check_named(kind, &request.body)?;
        check_type(kind, &request.body, &request.name)?;
        let wanted = Object::from_json(kind.stored_as, Value::clone(&request.body))?;
        if wanted.meta.name.is_empty() {
            return Err(undeterminable(&request.name));
        }
        check_path(request, &wanted.meta)?;
        let before = match self.find(request, kind) {
            Err(error) if error.code == 404 && kind.put_creates => {
                return self.create_by_update(request, kind, &wanted, now);
            }
            found => found?,
        };
        if wanted.version == 0 && !kind.unconditional_update {
            return Err(no_version(kind, &request.name));
        }
        let uid = &wanted.meta.uid;
        if !uid.is_empty() && *uid != before.meta.uid {
            let (namespace, name) = (&before.meta.namespace, &before.meta.name);
            return Err(other_uid(kind, namespace, name, uid, &before.meta.uid));
        }
        self.change(request, kind, before, wanted, now)
    }

    /// Creates what an update does not find. Whoever names a version does not mind that there is
    /// none; whoever names a uid means another object.
    fn create_by_update(
        &mut self,
        request: &Request,
        kind: &KindInfo,
        wanted: &Object,
        now: Timestamp,
    ) -> Result<Reply, ApiError> {
        let uid = &wanted.meta.uid;
        if !uid.is_empty() {
            return Err(other_uid(kind, &request.namespace, &request.name, uid, ""));
        }
        let mut creation = request.clone();
        if let Some(Value::Object(meta)) = Arc::make_mut(&mut creation.body).get_mut("metadata") {
            meta.remove("resourceVersion");
        }
        self.create(creation, kind, now)
    }

    /// Brings a stored object to the wanted state, as far as the request may.
    pub(super) fn change(
        &mut self,
        request: &Request,
        kind: &KindInfo,
        before: Arc<Object>,
        mut wanted: Object,
        now: Timestamp,
    ) -> Result<Reply, ApiError> {
        let named = Some(wanted.version).filter(|version| *version != 0);
        let mut expected = named.into_iter().chain(request.options.expect_version);
        if expected.any(|version| version != before.version) {
            return Err(ApiError::stale(kind, &request.name));
        }
        admit::check_shape(kind, &wanted)?;
        let mut causes = Vec::new();
        let warnings = admit::unknown_fields(kind, &wanted, &request.options);
        let warnings = match request.verb {
            Verb::Patch(_) => warnings.map_err(|error| unreadable(error, &request.body)),
            _ => warnings,
        }?;
        keep_what_the_server_owns(&before, &mut wanted, kind, &mut causes);
        keep_the_other_side(&before, &mut wanted, kind, request.subresource);
        let sound = admit::complete_changed(&mut wanted, &before, kind);
        share_equal_parts(&before, &mut wanted);
        let content = has_new_content(&before, &wanted, kind);
        if content && kind.generation == Generation::Content {
            Arc::make_mut(&mut wanted.meta).generation += 1;
        }
        causes.extend(admit::check_changed(&wanted, &before, kind, sound));
        if !causes.is_empty() {
            return Err(ApiError::invalid(kind, &request.name, causes));
        }
        let stored = self.settle_change(request, kind, before, wanted, now)?;
        Ok(Reply { content: Content::Object(stored), created: false, warnings })
    }

    /// The end of a change: nothing, gone for good, or stored.
    fn settle_change(
        &mut self,
        request: &Request,
        kind: &KindInfo,
        before: Arc<Object>,
        mut wanted: Object,
        now: Timestamp,
    ) -> Result<Arc<Object>, ApiError> {
        let options = &request.options;
        if is_same(&before, &wanted) {
            return Ok(before);
        }
        if before.kind == KindId::CUSTOM_RESOURCE_DEFINITION
            && !Arc::ptr_eq(&before.spec, &wanted.spec)
        {
            self.install(&mut wanted, Some(&before), kind, options, now)?;
        }
        if options.dry_run {
            wanted.version = before.version;
            return Ok(Arc::new(wanted));
        }
        let meta = &wanted.meta;
        let may_go = meta.deleting.is_some()
            && meta.finalizers.is_empty()
            && meta.grace_seconds.unwrap_or(0) == 0
            && !(before.kind == KindId::NAMESPACE && has_finalizers(&wanted.spec));
        if !may_go {
            return Ok(self.put(wanted, request.verb, options.writer()));
        }
        // Watchers see the state that was stored last, the caller the one that let it go.
        let last = self.remove(&before, options.writer());
        Ok(Arc::new(Object { version: last.version, ..wanted }))
    }
}

/// What the server says to a change of an object without the version it was made from.
pub(super) fn no_version(kind: &KindInfo, name: &str) -> ApiError {
    let field = "metadata.resourceVersion";
    let cause = Cause::invalid(field, &json!(0), "must be specified for an update");
    // Found where things are stored, which knows the resource and not the kind.
    let stored = KindInfo { kind: kind.plural.clone(), ..kind.clone() };
    ApiError::invalid(&stored, name, vec![cause])
}

/// What the server says to who means another object than the one that is there.
fn other_uid(kind: &KindInfo, namespace: &str, name: &str, meant: &str, found: &str) -> ApiError {
    let group = if kind.custom { format!("{}/", kind.group) } else { String::new() };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{namespace}/{name}, \
         ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: \
         {meant}, UID in object meta: {found}",
        kind.plural
    );
    ApiError::conflict(kind, name, &why)
}

fn has_finalizers(spec: &Value) -> bool {
    spec["finalizers"].as_array().is_some_and(|list| !list.is_empty())
}

/// Puts back the metadata no writer may change, and tells who tried.
fn keep_what_the_server_owns(
    before: &Object,
    wanted: &mut Object,
    kind: &KindInfo,
    causes: &mut Vec<Cause>,
) {
    if Arc::ptr_eq(&before.meta, &wanted.meta) {
        return;
    }
    let old = &before.meta;
    let meta = Arc::make_mut(&mut wanted.meta);
    let named = [
        ("metadata.name", &meta.name, &old.name),
        ("metadata.namespace", &meta.namespace, &old.namespace),
        ("metadata.uid", &meta.uid, &old.uid),
    ];
    for (field, new, old) in named {
        if !new.is_empty() && new != old && (kind.namespaced || field != "metadata.namespace") {
            causes.push(Cause::invalid(field, &json!(new), "field is immutable"));
        }
    }
    if meta.deleting.is_some_and(|when| old.deleting != Some(when)) {
        let found = json!(meta.deleting.map(|when| when.to_string()));
        causes.push(Cause::invalid("metadata.deletionTimestamp", &found, "field is immutable"));
    }
    if meta.grace_seconds.is_some_and(|seconds| old.grace_seconds != Some(seconds)) {
        let field = "metadata.deletionGracePeriodSeconds";
        causes.push(Cause::invalid(field, &json!(meta.grace_seconds), "field is immutable"));
    }
    meta.name = old.name.clone();
    meta.namespace = old.namespace.clone();
    meta.uid = old.uid.clone();
    meta.generate_name = old.generate_name.clone();
    meta.generation = old.generation;
    meta.created = old.created;
    meta.deleting = old.deleting;
    meta.grace_seconds = old.grace_seconds;
    if old.deleting.is_some() {
        let new = meta.finalizers.iter().filter(|name| !old.finalizers.contains(name));
        let new: Vec<&String> = new.collect();
        if !new.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                new.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
            );
            // A custom object's metadata is checked twice, and both checks tell.
            let times = if kind.custom { 2 } else { 1 };
            causes.extend((0..times).map(|_| Cause::forbidden("metadata.finalizers", &why)));
        }
    }
}

/// A status write leaves the rest alone, any other write leaves the status alone.
fn keep_the_other_side(
    before: &Object,
    wanted: &mut Object,
    kind: &KindInfo,
    subresource: Subresource,
) {
    wanted.pod = before.pod.clone();
    if subresource == Subresource::Status {
        if let Some(pod) = &before.pod {
            let foreign = PodStatus::foreign_conditions(&wanted.status);
            if *pod.foreign != foreign {
                wanted.pod = Some(Arc::new(PodStatus {
                    foreign: Arc::new(foreign),
                    ..PodStatus::clone(pod)
                }));
            }
            wanted.status = before.status.clone();
        }
        wanted.spec = before.spec.clone();
        wanted.template = before.template.clone();
        wanted.rest = before.rest.clone();
        if kind.custom {
            wanted.meta = before.meta.clone();
        }
        return;
    }
    if kind.has_status {
        wanted.status = before.status.clone();
    }
    if let Some(pod) = &before.pod
        && wanted.spec["nodeName"] == *pod.node
        && let Some(spec) = Arc::make_mut(&mut wanted.spec).as_object_mut()
    {
        // Added when it was read; the stored spec is shared by all pods of a template.
        spec.remove("nodeName");
    }
}

/// Parts that are equal become the old ones, so that readers see by pointer what changed.
fn share_equal_parts(before: &Object, wanted: &mut Object) {
    fn share<T: PartialEq>(old: &Arc<T>, new: &mut Arc<T>) {
        if !Arc::ptr_eq(old, new) && **old == **new {
            *new = old.clone();
        }
    }
    share(&before.meta, &mut wanted.meta);
    share(&before.spec, &mut wanted.spec);
    if let (Some(old), Some(new)) = (&before.template, &mut wanted.template) {
        share(old, new);
    }
    if !Arc::ptr_eq(&before.status, &wanted.status)
        && is_same_status(&before.status, &wanted.status)
    {
        wanted.status = before.status.clone();
    }
    share(&before.rest, &mut wanted.rest);
}

/// Equality, seen from the end: most of a status is its conditions, which come early by name and
/// change seldom, while phases and counts of replicas come late and change often.
fn is_same_status(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.len() == new.len() && old.iter().rev().eq(new.iter().rev())
        }
        _ => old == new,
    }
}

fn has_new_content(before: &Object, wanted: &Object, kind: &KindInfo) -> bool {
    !Arc::ptr_eq(&before.spec, &wanted.spec)
        || !before.shares_template(wanted)
        || !Arc::ptr_eq(&before.rest, &wanted.rest)
        || (!kind.has_status && !Arc::ptr_eq(&before.status, &wanted.status))
}

fn is_same(before: &Object, wanted: &Object) -> bool {
    Arc::ptr_eq(&before.meta, &wanted.meta)
        && Arc::ptr_eq(&before.spec, &wanted.spec)
        && before.shares_template(wanted)
        && Arc::ptr_eq(&before.status, &wanted.status)
        && Arc::ptr_eq(&before.rest, &wanted.rest)
        && before.pod == wanted.pod
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_seen_from_its_end_is_the_same_only_if_it_is_equal() {
        let states = [
            json!(null),
            json!("text"),
            json!({}),
            json!({"conditions": [{"type": "A"}]}),
            json!({"conditions": [{"type": "A"}], "replicas": 1}),
            json!({"conditions": [{"type": "B"}], "replicas": 1}),
            json!({"conditions": [{"type": "A"}], "replicas": 2}),
            json!({"conditions": [{"type": "A"}], "replica": 1}),
        ];
        for old in &states {
            for new in &states {
                assert_eq!(is_same_status(old, new), old == new, "{old} {new}");
            }
        }
    }
}
