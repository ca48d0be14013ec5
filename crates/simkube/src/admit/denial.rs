//! What does admission refuse that the API server itself would take? A LimitRange or a webhook, as far
//! as callers see them: the kind, the namespace and the words.

use serde_json::Value;

use crate::SimCluster;
use crate::error::ApiError;
use crate::kinds::{KindId, KindInfo};
use crate::object::Object;

/// New objects that are refused.
#[derive(Clone, Debug)]
pub struct Denial {
    /// Of this kind.
    pub kind: KindId,
    /// In this namespace.
    pub namespace: String,
    /// With a container of this image; empty for any.
    pub image: String,
    /// In these words.
    pub message: String,
}

impl SimCluster {
    /// Refuses a new object that a denial is about.
    pub(crate) fn check_denials(&self, object: &Object, kind: &KindInfo) -> Result<(), ApiError> {
        let found = self.denials.iter().find(|denial| {
            denial.kind == object.kind
                && *denial.namespace == *object.meta.namespace
                && (denial.image.is_empty() || has_image(&object.spec, &denial.image))
        });
        match found {
            None => Ok(()),
            Some(denial) => Err(ApiError::forbidden(kind, &object.meta.name, &denial.message)),
        }
    }
}

fn has_image(spec: &Value, image: &str) -> bool {
    spec["containers"].as_array().into_iter().flatten().any(|one| one["image"] == image)
}
