//! Every field of every kind, with every wrong type in its place: is it named, and the rest kept?

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::decode::decode;

/// Pods and Jobs are kept as raw JSON: whoever uses it looks at its types.
const RAW: [&str; 2] = ["template", "spec"];

#[test]
fn a_wrong_type_anywhere_is_named_and_costs_that_field_alone() {
    let crds = crds();
    let part = |index: usize, part: &str| &schema_of(&crds[index].1)["properties"][part];
    let mut places = 0;
    places += each_place::<RolloutSpec>(part(0, "spec"));
    places += each_place::<RolloutStatus>(part(0, "status"));
    places += each_place::<AnalysisRunSpec>(part(1, "spec"));
    places += each_place::<AnalysisRunStatus>(part(1, "status"));
    places += each_place::<AnalysisTemplateSpec>(part(2, "spec"));
    places += each_place::<ExperimentSpec>(part(4, "spec"));
    places += each_place::<ExperimentStatus>(part(4, "status"));
    assert!(places > 700, "only {places} places");
}

fn each_place<T: DeserializeOwned + Default + PartialEq>(schema: &Value) -> usize {
    let schema = &without_raw(schema.clone());
    let whole = sample(schema);
    let mut places = Vec::new();
    collect(schema, String::new(), &mut places);
    for (pointer, schema) in &places {
        let (rest, _) = decode::<T>(&without(&whole, pointer));
        for wrong in values() {
            let mut object = whole.clone();
            *object.pointer_mut(pointer).unwrap() = wrong.clone();
            let (read, errors) = decode::<T>(&object);
            if fits(schema, &wrong) {
                assert_eq!(errors, [], "{pointer}: {wrong}");
                continue;
            }
            assert!(read == rest, "{pointer}: {wrong}: the rest is kept");
            let named: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
            // Null means missing, but nothing can be missing from a list of texts.
            let is_missing =
                wrong.is_null() && (schema["type"] == "object" || !pointer.ends_with("/0"));
            let expected = (!is_missing).then(|| path(pointer));
            let is_named = named.first().copied() == expected.as_deref();
            assert!(is_named, "{pointer}: {wrong}: {named:?}");
        }
    }
    places.len()
}

/// One of each type, and numbers that are too large or too fine.
fn values() -> [Value; 8] {
    let large = json!(3_000_000_000_i64);
    let (larger, fine) = (json!(u64::MAX), json!(1.5));
    [json!(null), json!(true), large, larger, fine, json!("text"), json!([]), json!({})]
}

/// Every place below this schema that a type of ours reads.
fn collect<'a>(schema: &'a Value, pointer: String, places: &mut Vec<(String, &'a Value)>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{pointer}/{name}");
        places.push((pointer.clone(), property));
        collect(property, pointer, places);
    }
    for (step, inner) in [("0", schema.get("items")), ("key", schema.get("additionalProperties"))] {
        if let Some(inner) = inner {
            places.push((format!("{pointer}/{step}"), inner));
            collect(inner, format!("{pointer}/{step}"), places);
        }
    }
}

/// The schema without what no type of ours reads.
fn without_raw(mut schema: Value) -> Value {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let is_free = |schema: &Value| schema.get("x-kubernetes-preserve-unknown-fields").is_some();
        properties.retain(|name, property| {
            let is_by_name = name.starts_with("plugin");
            !RAW.contains(&name.as_str()) && (is_by_name || !is_free(property))
        });
        for property in properties.values_mut() {
            *property = without_raw(property.take());
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(inner) {
            *inner = without_raw(inner.take());
        }
    }
    schema
}

fn fits(schema: &Value, value: &Value) -> bool {
    let is_int32 = value.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("date-time")) => false,
        (Some("string"), _) => value.is_string(),
        (Some("boolean"), _) => value.is_boolean(),
        (Some("integer"), Some("int64")) => value.as_i64().is_some(),
        (Some("integer"), _) => is_int32,
        (Some("array"), _) => *value == json!([]),
        (Some("object"), _) if schema.get("x-kubernetes-preserve-unknown-fields").is_some() => {
            value.is_object()
        }
        (Some("object"), _) if schema.get("additionalProperties").is_some() => *value == json!({}),
        (Some("object"), _) => value.is_object(),
        _ => is_int32 || value.is_string(),
    }
}

/// The whole without what stands there: an item of a list leaves an empty one if it can.
fn without(whole: &Value, pointer: &str) -> Value {
    let mut rest = whole.clone();
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match rest.pointer_mut(parent).unwrap() {
        Value::Array(items) if items[0].is_object() => items[0] = json!({}),
        Value::Array(items) => items.clear(),
        Value::Object(fields) => drop(fields.remove(last)),
        _ => unreachable!("only they have parts"),
    }
    rest
}

fn path(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace("/0", "[0]").replace('/', ".")
}
