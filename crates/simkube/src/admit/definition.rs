//! A CustomResourceDefinition takes effect when it is stored, and ends when it is gone.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::SimCluster;
use crate::error::ApiError;
use crate::kinds::{KindId, KindInfo, Kinds, established, installed, stored_versions};
use crate::object::{Key, Meta, Object, whole_seconds};
use crate::request::{Options, Verb};

/// The user under which objects of a withdrawn kind go.
const USER: &str = "customresource-controller";
/// Holds a definition that is being deleted until its objects are gone.
pub(crate) const CLEAN_UP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl SimCluster {
    /// Installs the kinds of a definition that is about to be stored. Anything else is left alone.
    pub(crate) fn install(
        &mut self,
        object: &mut Object,
        before: Option<&Object>,
        kind: &KindInfo,
        options: &Options,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        if object.kind != KindId::CUSTOM_RESOURCE_DEFINITION {
            return Ok(());
        }
        let stored =
            stored_versions(&object.spec, before.map_or(&Value::Null, |before| &before.status));
        let versions = installed(&object.spec)
            .map_err(|causes| ApiError::invalid(kind, &object.meta.name, causes))?;
        object.status = Arc::new(established(&object.spec, &stored, whole_seconds(now)));
        if !options.dry_run {
            Arc::<Kinds>::make_mut(&mut self.kinds).install(versions);
            self.store.widen(self.kinds.count());
        }
        Ok(())
    }

    /// Deletes the objects of a definition that is being deleted. It goes with the last of them.
    pub(crate) fn end_objects(&mut self, definition: &Object, now: Timestamp) {
        let Some(id) = self.defined(definition) else { return };
        let kind = self.kinds.get(id).clone();
        let options = Options { user: USER.into(), ..Options::default() };
        let all: Vec<Arc<Object>> = self.store.list(id, "").cloned().collect();
        for one in all {
            self.delete_object(&one, &kind, &options, now)
                .expect("a deletion without preconditions is never refused");
        }
        self.end_definition(id);
    }

    /// Lets a definition go that is being deleted, if no object of its kind is left.
    pub(crate) fn end_definition(&mut self, id: KindId) {
        let kind = self.kinds.get(id);
        if !kind.custom || self.store.list(id, "").next().is_some() {
            return;
        }
        let Some(definition) = self.definition_of(kind).cloned() else { return };
        if definition.meta.deleting.is_none() {
            return;
        }
        let mut meta = Meta::clone(&definition.meta);
        meta.finalizers.retain(|name| name != CLEAN_UP);
        if meta.finalizers.is_empty() {
            self.remove(&definition, &USER.into());
        } else if meta != *definition.meta {
            let after = Object { meta: Arc::new(meta), ..Object::clone(&definition) };
            self.put(after, Verb::Update, &USER.into());
        }
    }

    /// The definition of a custom kind.
    pub(crate) fn definition_of(&self, kind: &KindInfo) -> Option<&Arc<Object>> {
        let name = format!("{}.{}", kind.plural, kind.group);
        let key = Key { namespace: Arc::default(), name: name.into() };
        self.store.get(KindId::CUSTOM_RESOURCE_DEFINITION, &key)
    }

    /// The kind that a definition defines, as it is stored.
    fn defined(&self, definition: &Object) -> Option<KindId> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let spec = &definition.spec;
        self.kinds.by_group(&text(&spec["group"]), &text(&spec["names"]["kind"]))
    }

    /// Ends the kinds of a definition that is about to go, and all their objects with them.
    pub(crate) fn withdraw(&mut self, object: &Object) {
        if object.kind != KindId::CUSTOM_RESOURCE_DEFINITION {
            return;
        }
        if let Some(stored) = self.defined(object) {
            let all: Vec<Arc<Object>> = self.store.list(stored, "").cloned().collect();
            for one in all {
                self.take(&one, Verb::Delete, &USER.into());
            }
        }
        let group = object.spec["group"].as_str().unwrap_or_default();
        let plural = object.spec["names"]["plural"].as_str().unwrap_or_default();
        Arc::<Kinds>::make_mut(&mut self.kinds).withdraw(group, plural);
    }
}
