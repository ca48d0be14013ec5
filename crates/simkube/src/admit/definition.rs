//! A CustomResourceDefinition takes effect when it is stored, and ends when it is gone.

use std::sync::Arc;

use jiff::Timestamp;

use crate::SimCluster;
use crate::error::ApiError;
use crate::kinds::{Kind, KindId, Kinds, check, established, installed};
use crate::object::{Object, whole_seconds};
use crate::request::{Options, Verb};

/// The user under which objects of a withdrawn kind go.
const USER: &str = "customresource-controller";

impl SimCluster {
    /// Installs the kinds of a definition that is about to be stored. Anything else is left alone.
    pub(crate) fn install(
        &mut self,
        object: &mut Object,
        kind: &Kind,
        options: &Options,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        if object.kind != KindId::CUSTOM_RESOURCE_DEFINITION {
            return Ok(());
        }
        let mut causes = check(&object.meta.name, &object.spec);
        let mut versions = Vec::new();
        if causes.is_empty() {
            match installed(&object.spec) {
                Ok(kinds) => versions = kinds,
                Err(found) => causes = found,
            }
        }
        if !causes.is_empty() {
            return Err(ApiError::invalid(kind, &object.meta.name, causes));
        }
        object.status = Arc::new(established(&object.spec, whole_seconds(now)));
        if !options.dry_run {
            Arc::<Kinds>::make_mut(&mut self.kinds).install(versions);
            self.store.widen(self.kinds.count());
        }
        Ok(())
    }

    /// Ends the kinds of a definition that is about to go, and all their objects with them.
    pub(crate) fn withdraw(&mut self, object: &Object) {
        if object.kind != KindId::CUSTOM_RESOURCE_DEFINITION {
            return;
        }
        let group = object.spec["group"].as_str().unwrap_or_default();
        let names = &object.spec["names"];
        let stored = self.kinds.by_group(group, names["kind"].as_str().unwrap_or_default());
        if let Some(stored) = stored {
            let all: Vec<Arc<Object>> = self.store.list(stored, "").cloned().collect();
            for one in all {
                self.take(&one, Verb::Delete, &USER.into());
            }
        }
        let plural = names["plural"].as_str().unwrap_or_default();
        Arc::<Kinds>::make_mut(&mut self.kinds).withdraw(group, plural);
    }
}
