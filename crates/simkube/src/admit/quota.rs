//! Does a namespace's ResourceQuota leave room for one more?

use serde_json::Value;

use crate::SimCluster;
use crate::error::ApiError;
use crate::kinds::{KindId, KindInfo};
use crate::object::Object;

impl SimCluster {
    /// Counts objects only (`pods`, `count/replicasets.apps`), not what they ask for.
    pub(crate) fn check_quota(&self, object: &Object, kind: &KindInfo) -> Result<(), ApiError> {
        if !kind.namespaced || !self.store.has_any(KindId::RESOURCE_QUOTA, &object.meta.namespace) {
            return Ok(());
        }
        let namespace = &object.meta.namespace;
        let counted = [kind.plural.to_string(), format!("count/{}", kind.resource())];
        for quota in self.store.list(KindId::RESOURCE_QUOTA, namespace) {
            for resource in &counted {
                let Some(most) = quantity(&quota.spec["hard"][resource.as_str()]) else { continue };
                let used =
                    self.store.list(object.kind, namespace).filter(|one| counts(one)).count();
                if used >= most {
                    let why = format!(
                        "exceeded quota: {}, requested: {resource}=1, used: {resource}={used}, \
                         limited: {resource}={most}",
                        quota.meta.name
                    );
                    return Err(ApiError::forbidden(kind, &object.meta.name, &why));
                }
            }
        }
        Ok(())
    }
}

/// A pod that has ended takes no room.
fn counts(object: &Object) -> bool {
    object.pod.as_ref().is_none_or(|pod| !pod.state.phase.has_ended())
}

fn quantity(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64().and_then(|number| usize::try_from(number).ok()),
    }
}
