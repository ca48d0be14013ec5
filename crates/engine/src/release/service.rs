//! Our marks on a Service: the revision it selects, and whose it is. Without them it selects pods of
//! every revision again.

use std::sync::Arc;

use gradus_api::names::{annotation, kind, label};
use serde_json::{Value, json};

use super::Mark;
use crate::decision::Kind;
use crate::frame::Frame;
use crate::kinds;
use crate::rollout::services;
use crate::traffic::Undo;
use crate::uid::Uid;
use crate::world::ServiceView;

impl Mark for ServiceView {
    const KIND: Kind = kinds::SERVICE;
    const FIELD: &'static str = "spec.selector";
    const IS_ALWAYS_THERE: bool = true;

    /// The Service of an Experiment selects one revision for as long as it is there: that is no mark.
    fn read(frame: &Frame) -> Self {
        let service = ServiceView::read(frame);
        match frame.meta.controller() {
            Some(owner) if *owner.kind == *kind::EXPERIMENT => {
                ServiceView { hash: None, managed_by: None, ..service }
            }
            _ => service,
        }
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn uid(&self) -> Uid {
        self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn is_marked(&self) -> bool {
        self.hash.is_some() || self.managed_by.is_some()
    }

    fn managers(&self) -> Vec<Arc<str>> {
        self.managed_by.iter().cloned().collect()
    }

    fn unmarked(&self, _released: &[Arc<str>]) -> Undo {
        let mut body = json!({});
        if self.hash.is_some() {
            body["spec"] = json!({ "selector": { label::POD_TEMPLATE_HASH: null } });
        }
        if self.managed_by.is_some() {
            body["metadata"] = json!({ "annotations": { annotation::MANAGED_BY: null } });
        }
        Undo::Patch(body)
    }

    fn named_in(_rollout: &str, spec: &Value) -> Vec<String> {
        services::names_in(spec).into_iter().map(str::to_owned).collect()
    }
}
