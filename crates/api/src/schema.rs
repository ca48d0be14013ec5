//! What a field's type says about the CRD's schema.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::values::{DurationText, IntOrPercent, IntOrString, Time};

/// A type that knows its structural schema.
pub(crate) trait Schema {
    /// The OpenAPI v3 schema a CRD carries for this type.
    fn schema() -> Value;
}

/// The schema of a struct. Each field: whether it is required, its JSON name, its doc comment, its
/// schema.
pub(crate) fn object<const N: usize>(fields: [(bool, &str, &str, Value); N]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (is_required, name, about, schema) in fields {
        if is_required {
            required.push(name);
        }
        properties.insert(name.to_owned(), with(schema, json!({ "description": about.trim() })));
    }
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    if !properties.is_empty() {
        schema.insert("properties".into(), Value::Object(properties));
    }
    if !required.is_empty() {
        required.sort();
        schema.insert("required".into(), required.into());
    }
    Value::Object(schema)
}

/// An object whose fields are kept whatever they are.
pub(crate) fn free_form_object() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Anything at all, kept as it is.
pub(crate) fn anything() -> Value {
    json!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// A copy of `schema` with more keywords.
pub(crate) fn with(mut schema: Value, keywords: Value) -> Value {
    if let (Value::Object(schema), Value::Object(keywords)) = (&mut schema, keywords) {
        schema.extend(keywords);
    }
    schema
}

impl Schema for String {
    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl Schema for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

impl Schema for i32 {
    fn schema() -> Value {
        json!({ "type": "integer", "format": "int32" })
    }
}

impl Schema for i64 {
    fn schema() -> Value {
        json!({ "type": "integer", "format": "int64" })
    }
}

impl Schema for Time {
    fn schema() -> Value {
        json!({ "type": "string", "format": "date-time" })
    }
}

impl Schema for IntOrString {
    fn schema() -> Value {
        json!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "x-kubernetes-int-or-string": true,
        })
    }
}

impl Schema for IntOrPercent {
    fn schema() -> Value {
        IntOrString::schema()
    }
}

impl Schema for DurationText {
    fn schema() -> Value {
        IntOrString::schema()
    }
}

impl<T: Schema> Schema for Option<T> {
    fn schema() -> Value {
        T::schema()
    }
}

impl<T: Schema> Schema for Box<T> {
    fn schema() -> Value {
        T::schema()
    }
}

impl<T: Schema> Schema for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

impl<T: Schema> Schema for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}
