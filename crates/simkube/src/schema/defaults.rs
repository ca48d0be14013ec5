//! Does every default of a written schema fit the schema it stands in?

use serde_json::{Value, json};

use super::structural::Path;
use super::{Cause, FieldSchema, compile, validate};

/// The defaults that the schema itself would refuse or prune.
pub fn problems(schema: &Value, path: &Path) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Value::Object(fields) = schema else { return causes };
    if let Some(default) = fields.get("default").filter(|default| !default.is_null()) {
        causes.extend(check(schema, default, &format!("{path}.default")));
    }
    if let Some(items) = fields.get("items") {
        causes.extend(problems(items, &Path::FieldSchema(path, "items")));
    }
    for (name, property) in
        fields.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        causes.extend(problems(property, &Path::Property(path, name)));
    }
    causes
}

fn check(schema: &Value, default: &Value, path: &str) -> Vec<Cause> {
    // What cannot be compiled is told elsewhere.
    let Ok(node) = compile::part(schema) else { return Vec::new() };
    let part =
        FieldSchema { node: &node, path, has_rules: false, by_itself: true, known_sound: false };
    let mut pruned = default.clone();
    part.prune(&mut pruned);
    let mut causes = Vec::new();
    if pruned != *default {
        causes.push(Cause::invalid(path, &json!(default), "must not have unknown fields"));
    }
    causes.extend(validate::parts(&[(part, default, None)], Vec::new(), false));
    causes
}
