//! Delete: at once, after a grace period, or once the finalizers are gone.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::list::Filter;
use crate::SimCluster;
use crate::admit::CLEAN_UP;
use crate::error::{ApiError, Details};
use crate::kinds::{Generation, KindId, KindInfo, terminating};
use crate::object::{Meta, Object, whole_seconds};
use crate::request::{Content, List, Options, Propagation, Reply, Request, Verb};

/// Set on an object whose dependents must go first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Set on an object whose dependents must be let go first.
pub(crate) const ORPHAN: &str = "orphan";
/// Namespaces that stay.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];
/// How long a pod may take to stop, unless it says otherwise.
const POD_GRACE: i64 = 30;

impl SimCluster {
    pub(super) fn delete(
        &mut self,
        request: &Request,
        kind: &KindInfo,
        now: Timestamp,
    ) -> Result<Reply, ApiError> {
        let object = self.find(request, kind)?;
        if object.kind == KindId::NAMESPACE && IMMORTAL.contains(&&*object.meta.name) {
            let why = "this namespace may not be deleted";
            return Err(ApiError::forbidden(kind, &object.meta.name, why));
        }
        let content = match self.delete_object(&object, kind, &request.options, now)? {
            Deleted::Later(object) => Content::Object(object),
            Deleted::Now(last) if kind.returns_deleted => Content::Object(last),
            Deleted::Now(last) => Content::Deleted(Details {
                name: last.meta.name.to_string(),
                group: kind.group.to_string(),
                kind: kind.plural.to_string(),
                uid: last.meta.uid.to_string(),
                ..Details::default()
            }),
        };
        Ok(Reply { content, created: false, warnings: Vec::new() })
    }

    pub(super) fn delete_collection(
        &mut self,
        request: &Request,
        kind: &KindInfo,
        now: Timestamp,
    ) -> Result<Reply, ApiError> {
        let filter = Filter::of(&request.options, kind)?;
        let namespace = request.namespace.clone();
        let found = self.store.list(kind.stored_as, &namespace);
        let most = request.options.limit.unwrap_or(usize::MAX);
        let found = found.filter(|one| filter.accepts(one)).take(most);
        let items: Vec<Arc<Object>> = found.cloned().collect();
        for object in &items {
            self.delete_object(object, kind, &request.options, now)?;
        }
        let list = List {
            kind: kind.stored_as,
            version: self.version(),
            items,
            continue_token: String::new(),
            remaining: None,
        };
        Ok(Reply { content: Content::List(list), created: false, warnings: Vec::new() })
    }

    /// Deletes one object, or begins to.
    pub(crate) fn delete_object(
        &mut self,
        object: &Arc<Object>,
        kind: &KindInfo,
        options: &Options,
        now: Timestamp,
    ) -> Result<Deleted, ApiError> {
        check_preconditions(object, kind, options)?;
        let mut meta = Meta::clone(&object.meta);
        add_finalizer(&mut meta, options.propagation);
        let is_definition = object.kind == KindId::CUSTOM_RESOURCE_DEFINITION;
        if is_definition && !meta.finalizers.iter().any(|name| name == CLEAN_UP) {
            meta.finalizers.push(CLEAN_UP.to_owned());
        }
        let grace = grace_of(object, options);
        let held = !meta.finalizers.is_empty() || object.kind == KindId::NAMESPACE;
        if grace == 0 && !held {
            if options.dry_run {
                return Ok(Deleted::Now(object.clone()));
            }
            return Ok(Deleted::Now(self.remove(object, options.writer())));
        }
        let is_shorter = meta.grace_seconds.is_some_and(|given| grace < given);
        if meta.deleting.is_none() || is_shorter {
            let end = now + SignedDuration::from_secs(grace);
            meta.deleting = Some(whole_seconds(end));
            meta.grace_seconds = Some(grace);
            if !is_shorter && kind.generation == Generation::Content {
                meta.generation += 1;
            }
        }
        if meta == *object.meta {
            return Ok(Deleted::Later(object.clone()));
        }
        let mut marked = Object { meta: Arc::new(meta), ..Object::clone(object) };
        if object.kind == KindId::NAMESPACE {
            marked.status = Arc::new(json!({ "phase": "Terminating" }));
        }
        if is_definition {
            marked.status = Arc::new(terminating(&object.status, whole_seconds(now)));
        }
        if options.dry_run {
            return Ok(Deleted::Later(Arc::new(marked)));
        }
        let marked = self.put(marked, Verb::Delete, options.writer());
        if is_definition {
            self.end_objects(&marked, now);
        }
        Ok(Deleted::Later(marked))
    }

    /// Takes an object out for good, and what depends on its being there.
    pub(crate) fn remove(&mut self, object: &Arc<Object>, writer: &Arc<str>) -> Arc<Object> {
        self.withdraw(object);
        let last = self.take(object, Verb::Delete, writer);
        self.end_definition(object.kind);
        last
    }
}

/// How far a deletion has come.
pub(crate) enum Deleted {
    /// The object is gone.
    Now(Arc<Object>),
    /// The object waits for its kubelet or its finalizers.
    Later(Arc<Object>),
}

fn check_preconditions(
    object: &Object,
    kind: &KindInfo,
    options: &Options,
) -> Result<(), ApiError> {
    if options.expect_uid.is_none() && options.expect_version.is_none() {
        return Ok(());
    }
    let name = &object.meta.name;
    // The server names the kind here, not the resource.
    let kind = &KindInfo { plural: kind.kind.clone(), ..kind.clone() };
    if let Some(uid) = options.expect_uid.as_ref().filter(|uid| **uid != object.meta.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The \
             object might have been deleted and then recreated",
            object.meta.uid
        );
        return Err(ApiError::conflict(kind, name, &why));
    }
    if let Some(version) = options.expect_version.filter(|version| *version != object.version) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the \
             ResourceVersion in record ({}). The object might have been modified",
            object.version
        );
        return Err(ApiError::conflict(kind, name, &why));
    }
    Ok(())
}

fn add_finalizer(meta: &mut Meta, propagation: Option<Propagation>) {
    let (wanted, unwanted) = match propagation {
        None => return,
        Some(Propagation::Background) => (None, [FOREGROUND, ORPHAN].as_slice()),
        Some(Propagation::Foreground) => (Some(FOREGROUND), [ORPHAN].as_slice()),
        Some(Propagation::Orphan) => (Some(ORPHAN), [FOREGROUND].as_slice()),
    };
    meta.finalizers.retain(|name| !unwanted.contains(&name.as_str()));
    if let Some(wanted) = wanted.filter(|wanted| !meta.finalizers.iter().any(|one| one == wanted)) {
        meta.finalizers.push(wanted.to_owned());
    }
}

/// Only a pod that runs somewhere is given time.
fn grace_of(object: &Object, options: &Options) -> i64 {
    if object.kind != KindId::POD {
        return 0;
    }
    let has_ended = match &object.pod {
        Some(pod) => pod.state.phase.has_ended(),
        None => object.spec["nodeName"].as_str().is_none_or(str::is_empty),
    };
    if has_ended {
        return 0;
    }
    let own = object.spec["terminationGracePeriodSeconds"].as_i64();
    options.grace_seconds.or(own).unwrap_or(POD_GRACE).max(0)
}
