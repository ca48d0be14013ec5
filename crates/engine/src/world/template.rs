//! What does a decision need of an AnalysisTemplate or ClusterAnalysisTemplate? What it measures.

use std::sync::Arc;

use gradus_api::analysis::AnalysisTemplateSpec;
use gradus_api::decode::decode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::frame::Frame;

/// A template as decisions see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TemplateView {
    /// Name.
    pub name: Arc<str>,
    /// `resourceVersion`.
    pub version: u64,
    /// Its fields.
    pub fields: AnalysisTemplateSpec,
    /// Its spec as stored: metrics are copied into runs from here, so that none of their fields is
    /// lost on the way.
    pub raw: Arc<Value>,
}

impl TemplateView {
    /// The view of a frame. Fields of the wrong type count as missing, as everywhere.
    pub fn read(frame: &Frame) -> Self {
        TemplateView {
            name: Arc::clone(&frame.meta.name),
            version: frame.meta.version,
            fields: decode(&frame.spec).0,
            raw: Arc::clone(&frame.spec),
        }
    }

    /// The templates it names, as (name, is it of the cluster).
    pub fn nested(&self) -> impl Iterator<Item = (&str, bool)> {
        self.fields
            .templates
            .iter()
            .map(|named| (named.template_name.as_str(), named.cluster_scope))
    }
}
