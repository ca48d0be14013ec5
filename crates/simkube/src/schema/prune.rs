//! Which fields of an object disappear, which appear by default, and which would be reported.

use serde_json::Value;

use super::{Additional, Children, Node};

const RESOURCE_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes unknown fields, and nulls where the schema allows none and has no default.
pub fn prune(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let mut children = node.children();
            let mut unwanted = Vec::new();
            for (name, value) in fields.iter_mut() {
                let is_wanted = match child(node, &mut children, name) {
                    Some(_) if matches!(value, Value::String(_) | Value::Number(_)) => true,
                    Some(child) => {
                        prune(child, value);
                        !value.is_null() || may_be_null(child)
                    }
                    None => is_known(node, name),
                };
                if !is_wanted {
                    unwanted.push(name.clone());
                }
            }
            for name in unwanted {
                fields.remove(&name);
            }
        }
        Value::Array(items) => {
            if let Some(each) = &node.items {
                for item in items {
                    prune(each, item);
                }
            }
        }
        _ => {}
    }
}

/// Puts in the defaults of absent fields, from the outside in.
pub fn default(node: &Node, value: &mut Value) {
    if !node.holds.defaults {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, child) in &node.properties {
                let Some(default) = &child.default else {
                    continue;
                };
                let is_absent = match fields.get(&**name) {
                    None => true,
                    Some(value) => value.is_null() && !child.nullable,
                };
                if is_absent {
                    fields.insert(name.to_string(), default.clone());
                }
            }
            let mut children = node.children();
            for (name, value) in fields.iter_mut() {
                if let Some(child) = child(node, &mut children, name) {
                    default(child, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(each) = &node.items {
                for item in items {
                    default(each, item);
                }
            }
        }
        _ => {}
    }
}

/// Paths of the fields the schema does not name.
pub fn unknown_fields(node: &Node, path: &str, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(node, path, value, &mut found);
    found
}

fn collect(node: &Node, path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let mut children = node.children();
            for (name, value) in fields {
                let below = || {
                    if path.is_empty() { name.clone() } else { format!("{path}.{name}") }
                };
                match child(node, &mut children, name) {
                    Some(child) => collect(child, &below(), value, found),
                    None if is_known(node, name) => {}
                    None => found.push(below()),
                }
            }
        }
        Value::Array(items) => {
            if let Some(each) = &node.items {
                for (at, item) in items.iter().enumerate() {
                    collect(each, &format!("{path}[{at}]"), item, found);
                }
            }
        }
        _ => {}
    }
}

fn may_be_null(node: &Node) -> bool {
    node.nullable || node.default.is_some() || node.kind.is_none()
}

fn is_known(node: &Node, name: &str) -> bool {
    node.preserves_unknown
        || matches!(node.additional, Additional::Any)
        || (node.is_resource && RESOURCE_FIELDS.contains(&name))
}

/// The schema of a field. `metadata` of a resource is not the schema's business: the server knows
/// its shape itself.
fn child<'a>(node: &Node, children: &mut Children<'a>, name: &str) -> Option<&'a Node> {
    let is_known = node.is_resource && RESOURCE_FIELDS.contains(&name);
    if is_known { None } else { children.find(name) }
}
