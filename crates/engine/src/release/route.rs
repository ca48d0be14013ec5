//! What routers leave behind on objects of one kind: marks in objects of users, which come off, and
//! objects of their own, which go.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Mark;
use crate::decision::Kind;
use crate::frame::Frame;
use crate::traffic::{self, Release, RouteView, Undo};
use crate::uid::Uid;

/// An object of the kind [`traffic::released_kind`] has at this place; whole only where routers have
/// left something on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManagedRoute<const AT: usize> {
    name: Arc<str>,
    uid: Uid,
    version: u64,
    managers: Vec<Arc<str>>,
    object: Option<Arc<Value>>,
}

impl<const AT: usize> Mark for ManagedRoute<AT> {
    const KIND: Kind = traffic::released_kind(AT);
    const FIELD: &'static str = "metadata";
    // Ingresses are there in every cluster; other kinds only where somebody has installed them.
    const IS_ALWAYS_THERE: bool = AT == 0;

    fn read(frame: &Frame) -> Self {
        let meta = &frame.meta;
        let found = traffic::releases_of(Self::KIND).map(|release| (release.managers)(meta));
        let managers = found.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
        ManagedRoute {
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

    fn unmarked(&self, released: &[Arc<str>]) -> Undo {
        let object = self.object.clone().unwrap_or_default();
        let meta = serde_json::from_value(object["metadata"].clone()).unwrap_or_default();
        let is_of = |release: &&Release| !(release.managers)(&meta).is_empty();
        match traffic::releases_of(Self::KIND).find(is_of) {
            Some(release) => (release.released)(&RouteView(object), released),
            None => Undo::Patch(json!({})),
        }
    }

    fn named_in(rollout: &str, spec: &Value) -> Vec<String> {
        let releases = traffic::releases_of(Self::KIND);
        releases.flat_map(|release| (release.named_in)(rollout, spec)).collect()
    }

    fn is_selected_by(spec: &Value) -> bool {
        traffic::selects_in(&Self::KIND, spec)
    }

    fn is_kept_for(spec: &Value) -> bool {
        traffic::plugins_in(spec)
    }
}

/// Ingresses, the one kind of these that every cluster has.
pub type ManagedIngress = ManagedRoute<0>;
