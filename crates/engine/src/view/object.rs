//! What do all objects of the API have, however little of them is understood?

use gradus_api::names::{annotation, label};
use jiff::Timestamp;
use serde_json::Value;

/// An object as the API server shows it. What is missing reads as empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'o>(&'o Value);

impl<'o> Object<'o> {
    pub fn new(object: &'o Value) -> Self {
        Object(object)
    }

    pub fn part(&self, name: &str) -> &'o Value {
        &self.0[name]
    }

    pub fn name(&self) -> &'o str {
        text(&self.0["metadata"]["name"])
    }

    pub fn namespace(&self) -> &'o str {
        text(&self.0["metadata"]["namespace"])
    }

    pub fn uid(&self) -> &'o str {
        text(&self.0["metadata"]["uid"])
    }

    pub fn generation(&self) -> i64 {
        self.0["metadata"]["generation"].as_i64().unwrap_or(0)
    }

    pub fn created(&self) -> Option<Timestamp> {
        text(&self.0["metadata"]["creationTimestamp"]).parse().ok()
    }

    pub fn is_deleting(&self) -> bool {
        !self.0["metadata"]["deletionTimestamp"].is_null()
    }

    pub fn annotation(&self, key: &str) -> Option<&'o str> {
        self.0["metadata"]["annotations"][key].as_str()
    }

    /// Hash of the revision it belongs to.
    pub fn hash(&self) -> &'o str {
        text(&self.0["metadata"]["labels"][label::POD_TEMPLATE_HASH])
    }

    /// Number of the revision it belongs to; 0 where it is not annotated.
    pub fn revision(&self) -> i64 {
        self.annotation(annotation::REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Identity of the object that manages it.
    pub fn owner(&self) -> Option<&'o str> {
        let owners = self.0["metadata"]["ownerReferences"].as_array()?;
        owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
    }

    /// A number of its spec or status; 0 where there is none.
    pub fn number(&self, part: &str, field: &str) -> i64 {
        self.0[part][field].as_i64().unwrap_or(0)
    }
}

/// A text of an object; empty where there is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
