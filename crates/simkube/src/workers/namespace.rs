//! Empties a namespace that is being deleted, then lets it go.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use crate::SimCluster;
use crate::kinds::KindId;
use crate::object::{Key, Object};
use crate::request::{Options, Verb};

impl SimCluster {
    pub(super) fn sync_namespace(&mut self, key: &Key, now: Timestamp) {
        let Some(namespace) = self.store.get(KindId::NAMESPACE, key).cloned() else { return };
        if namespace.meta.deleting.is_none() {
            return;
        }
        let user = self.work.users.namespaces.clone();
        let options = Options { user: user.clone(), ..Options::default() };
        let kinds = self.kinds.clone();
        let mut is_empty = true;
        for kind in kinds.stored().filter(|kind| kinds.get(*kind).namespaced) {
            let content: Vec<Arc<Object>> = self.store.list(kind, &key.name).cloned().collect();
            for object in content {
                is_empty = false;
                if object.meta.deleting.is_none() {
                    self.delete_object(&object, kinds.get(kind), &options, now)
                        .expect("a deletion without preconditions is never refused");
                }
            }
        }
        // Deletions above wake this worker again.
        if !is_empty {
            return;
        }
        if !namespace.meta.finalizers.is_empty() {
            let has_finalizer =
                namespace.spec["finalizers"].as_array().is_some_and(|list| !list.is_empty());
            if has_finalizer {
                let after = Object { spec: Arc::new(json!({})), ..Object::clone(&namespace) };
                self.put(after, Verb::Update, &user);
            }
            return;
        }
        self.take(&namespace, Verb::Delete, &user);
        self.work.namespaces.forget(key);
    }
}
