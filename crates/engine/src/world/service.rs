//! What does a decision need of a Service? Which revision it selects, and whose it is.

use std::sync::Arc;

use gradus_api::names::{annotation, label};
use serde::{Deserialize, Serialize};

use crate::frame::{Frame, TextMap};
use crate::uid::Uid;

/// A Service as decisions see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceView {
    /// Name.
    pub name: Arc<str>,
    /// Identity.
    pub uid: Uid,
    /// `resourceVersion`.
    pub version: u64,
    /// The revision it selects, if it selects one.
    pub hash: Option<Arc<str>>,
    /// The rest of its selector.
    pub selector: TextMap,
    /// The Rollout that manages it, if one does.
    pub managed_by: Option<Arc<str>>,
}

impl ServiceView {
    /// The view of a frame.
    pub fn read(frame: &Frame) -> Self {
        let meta = &frame.meta;
        let selector = &frame.spec["selector"];
        let hash = selector[label::POD_TEMPLATE_HASH].as_str().filter(|hash| !hash.is_empty());
        let pairs = selector.as_object().into_iter().flatten();
        let pairs =
            pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        ServiceView {
            name: Arc::clone(&meta.name),
            uid: meta.uid,
            version: meta.version,
            hash: hash.map(Arc::from),
            selector: pairs.filter(|(key, _)| *key != label::POD_TEMPLATE_HASH).collect(),
            managed_by: meta
                .annotations
                .get(annotation::MANAGED_BY)
                .map(|name| name.as_str().into()),
        }
    }

    /// The revision it selects, or nothing.
    pub fn hash_text(&self) -> &str {
        self.hash.as_deref().unwrap_or_default()
    }
}
