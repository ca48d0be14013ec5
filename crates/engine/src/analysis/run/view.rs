//! An AnalysisRun as decisions about it see it.

use std::sync::Arc;

use gradus_api::analysis::{AnalysisRunSpec, AnalysisRunStatus};
use gradus_api::decode::decode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decision::ObjectRef;
use crate::frame::Frame;
use crate::kinds;
use crate::uid::Uid;

/// An AnalysisRun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnalysisRunView {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Identity.
    pub uid: Uid,
    /// `resourceVersion`.
    pub version: u64,
    /// Is its deletion asked for?
    pub is_deleting: bool,
    /// Its spec, without the metrics.
    pub spec: AnalysisRunSpec,
    /// Its metrics as stored: arguments are filled in before they are read.
    pub metrics: Arc<Value>,
    /// Its status as stored.
    pub status: Arc<AnalysisRunStatus>,
}

impl AnalysisRunView {
    /// The view of a frame. Fields of the wrong type count as missing, as everywhere.
    pub fn read(frame: &Frame) -> Self {
        let mut spec = Value::clone(&frame.spec);
        let metrics = spec.as_object_mut().and_then(|fields| fields.remove("metrics"));
        AnalysisRunView {
            namespace: Arc::clone(&frame.meta.namespace),
            name: Arc::clone(&frame.meta.name),
            uid: frame.meta.uid,
            version: frame.meta.version,
            is_deleting: frame.meta.deleting.is_some(),
            spec: decode(&spec).0,
            metrics: Arc::new(metrics.unwrap_or_default()),
            status: Arc::new(decode(&frame.status).0),
        }
    }

    /// Which object it is.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef::new(kinds::ANALYSIS_RUN, &self.namespace, &self.name)
    }
}
