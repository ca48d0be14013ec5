//! How does the controller see what is stored? The frames of its watches and answers, without text
//! on the way.

use std::sync::Arc;

use gradus_engine::frame::{Frame, Meta, Owner};
use gradus_engine::uid::Uid;
use gradus_simkube::object::Object;
use serde_json::{Value, json};

/// The status as the server shows it: that of a pod is put together when it is asked for.
pub(super) fn status_of(object: &Object) -> Arc<Value> {
    match &object.pod {
        None => Arc::clone(&object.status),
        Some(status) => Arc::new(status.to_json(&object.spec)),
    }
}

/// A stored object as the controller's watches see it; nothing is made text on the way.
pub(crate) fn frame(object: &Object) -> Frame {
    let meta = &object.meta;
    let owner = |one: &gradus_simkube::object::OwnerReference| Owner {
        api_version: Arc::clone(&one.api_version),
        kind: Arc::clone(&one.kind),
        name: Arc::clone(&one.name),
        uid: Uid::parse(&one.uid),
        controller: one.controller == Some(true),
        block_owner_deletion: one.block_owner_deletion == Some(true),
    };
    Frame {
        meta: Meta {
            namespace: Arc::clone(&meta.namespace),
            name: Arc::clone(&meta.name),
            uid: Uid::parse(&meta.uid),
            version: object.version,
            generation: meta.generation,
            created: Some(meta.created),
            deleting: meta.deleting,
            labels: Arc::clone(&meta.labels),
            annotations: Arc::clone(&meta.annotations),
            owners: meta.owners.iter().map(owner).collect(),
            finalizers: meta.finalizers.clone(),
        },
        spec: match object.rest.get("template") {
            Some(template) => Arc::new(json!({ "template": template })),
            None if object.template.is_none() => Arc::clone(&object.spec),
            None => Arc::new(object.whole_spec()),
        },
        status: status_of(object),
    }
}
