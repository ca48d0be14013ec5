//! What do routers read of a routing object, and what does a patch leave of it?

use std::sync::Arc;

use gradus_api::patch;
use serde_json::Value;

use crate::uid::Uid;

/// A routing object, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteView(pub Arc<Value>);

impl RouteView {
    /// Its name.
    pub fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Its `resourceVersion`; 0 where it is not made yet.
    pub fn version(&self) -> u64 {
        let text = self.0["metadata"]["resourceVersion"].as_str();
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Its identity.
    pub fn uid(&self) -> Uid {
        self.0["metadata"]["uid"].as_str().map(Uid::parse).unwrap_or_default()
    }

    /// Identity of the object that controls it.
    pub fn owner(&self) -> Option<Uid> {
        let owners = self.0["metadata"]["ownerReferences"].as_array()?;
        let owner = owners.iter().find(|owner| owner["controller"] == true)?;
        owner["uid"].as_str().map(Uid::parse)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0["metadata"]["annotations"][key].as_str()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0["metadata"]["labels"][key].as_str()
    }

    /// Its spec.
    pub fn spec(&self) -> &Value {
        &self.0["spec"]
    }

    /// The object as a merge patch leaves it.
    pub fn patched(&self, change: &Value) -> Self {
        let mut object = Value::clone(&self.0);
        patch::apply(&mut object, change);
        RouteView(Arc::new(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_leaves_what_it_does_not_name() {
        let view = RouteView(Arc::new(json!({
            "metadata": { "name": "web", "resourceVersion": "7", "annotations": {
                "a": "1", "b": "2",
            } },
            "spec": { "rules": [{ "host": "x" }], "tls": [] },
        })));
        let patched = view.patched(&json!({
            "metadata": { "annotations": { "a": "3", "b": null } }, "spec": { "rules": [] },
        }));
        assert_eq!((patched.annotation("a"), patched.annotation("b")), (Some("3"), None));
        assert_eq!(*patched.spec(), json!({ "rules": [], "tls": [] }));
        assert_eq!((patched.name(), patched.version(), patched.owner()), ("web", 7, None));
    }
}
