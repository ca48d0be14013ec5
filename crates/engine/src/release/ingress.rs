//! Our marks on the Ingress of an AWS load balancer: the actions that split its traffic, and the book
//! of which annotations are whose. Without them each action sends all to its own Service.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Mark;
use crate::decision::Kind;
use crate::frame::Frame;
use crate::kinds;
use crate::traffic::{self, Release, RouteView};
use crate::uid::Uid;

/// An Ingress; whole only where Rollouts have written in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManagedIngress {
    name: Arc<str>,
    uid: Uid,
    version: u64,
    managers: Vec<Arc<str>>,
    object: Option<Arc<Value>>,
}

impl Mark for ManagedIngress {
    const KIND: Kind = kinds::INGRESS;
    const FIELD: &'static str = "metadata.annotations";

    fn read(frame: &Frame) -> Self {
        let meta = &frame.meta;
        let managers = release().map(|marks| (marks.managers)(&meta.annotations));
        let managers = managers.unwrap_or_default();
        ManagedIngress {
            name: Arc::clone(&meta.name),
            uid: meta.uid,
            version: meta.version,
            object: (!managers.is_empty()).then(|| Arc::new(frame.object())),
            managers,
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
        !self.managers.is_empty()
    }

    fn managers(&self) -> Vec<Arc<str>> {
        self.managers.clone()
    }

    fn unmarked(&self, released: &[Arc<str>]) -> Value {
        let object = RouteView(self.object.clone().unwrap_or_default());
        release().map_or_else(|| json!({}), |marks| (marks.released)(&object, released))
    }

    fn named_in(spec: &Value) -> Vec<&str> {
        release().map(|marks| (marks.named_in)(spec)).unwrap_or_default()
    }
}

/// What the router of such Ingresses knows of its marks.
fn release() -> Option<&'static Release> {
    traffic::release_of(&kinds::INGRESS)
}
