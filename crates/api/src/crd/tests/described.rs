//! Every field of the five kinds is documented as an API: what it does, its default, its allowed
//! values, its unit. `kubectl explain` prints these texts.

use serde_json::Value;

use super::super::crds;
use super::schema_of;

/// The fewest words that can say what a field does.
const FEWEST_WORDS: usize = 4;

/// Words that say nothing about a field.
const EMPTY_WORDS: [&str; 12] =
    ["a", "an", "and", "for", "in", "is", "of", "or", "that", "the", "this", "to"];

/// A description that begins so leaves it to the reader to find out what is meant.
const RIDDLES: [&str; 10] =
    ["How", "It", "Its", "That", "Their", "What", "When", "Where", "Whether", "Who"];

/// One field of a kind.
struct Field<'a> {
    path: String,
    name: &'a str,
    schema: &'a Value,
    is_required: bool,
}

#[test]
fn every_field_is_documented_as_an_api() {
    let mut complaints = Vec::new();
    for (file, crd) in &crds() {
        let mut fields = Vec::new();
        collect(schema_of(crd), "", &mut fields);
        assert!(fields.len() > 50, "{file} has fields");
        for field in fields {
            let wrong = wrong(&field);
            complaints.extend(wrong.map(|wrong| format!("{file} {}: {wrong}", field.path)));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn fields_of_one_object_are_told_apart() {
    for (file, crd) in &crds() {
        let mut fields = Vec::new();
        collect(schema_of(crd), "", &mut fields);
        let mut seen = std::collections::BTreeMap::new();
        for field in &fields {
            let parent = field.path.rsplit_once('.').map_or("", |(parent, _)| parent);
            let twin = seen.insert((parent, description(field.schema)), field.name);
            assert_eq!(twin, None, "{file} {}: described as its neighbour is", field.path);
        }
    }
}

#[test]
fn a_description_that_does_not_document_is_refused() {
    let cases = [
        ("a good one", "replicas", "integer", "Number of pods, 0 or more. Default: 1.", None),
        ("none at all", "replicas", "integer", "", Some("too short")),
        ("a single word", "enabled", "boolean", "Whether.", Some("too short")),
        ("a joke", "clientSecret", "string", "What only they know.", Some("a riddle")),
        ("no sentence", "replicas", "integer", "Number of pods to run", Some("a full stop")),
        ("the name again", "address", "string", "The address of this.", Some("but its name")),
        ("no default", "replicas", "integer", "Number of desired pods.", Some("its default")),
        ("no unit", "delaySeconds", "integer", "Delay of all pods. Default: 30.", Some("its unit")),
    ];
    for (what, name, r#type, text, expected) in cases {
        let schema = serde_json::json!({ "type": r#type, "description": text });
        let path = format!(".spec.{name}");
        let found = wrong(&Field { path, name, schema: &schema, is_required: false });
        let is_expected = match (&found, expected) {
            (Some(found), Some(expected)) => found.contains(expected),
            (found, expected) => found.is_none() && expected.is_none(),
        };
        assert!(is_expected, "{what}: {found:?}");
    }
}

/// What a description lacks, if anything.
fn wrong(field: &Field<'_>) -> Option<String> {
    let text = description(field.schema);
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_of_spec = field.path.starts_with(".spec.");
    let has_default = text.contains("Default: ") || text.contains("equired");
    let unknown = allowed(field.schema).into_iter().find(|value| !text.contains(value.as_str()));
    if text.split_whitespace().count() < FEWEST_WORDS {
        Some(format!("{text:?} is too short"))
    } else if RIDDLES.contains(&first) {
        Some(format!("{text:?} begins as a riddle"))
    } else if !text.ends_with('.') {
        Some(format!("{text:?} does not end with a full stop"))
    } else if !says_more_than(text, field.name) {
        Some(format!("{text:?} says nothing but its name"))
    } else if is_of_spec && field.is_required && !text.contains("equired") {
        Some(format!("{text:?} does not say that it is required"))
    } else if is_of_spec && !has_default {
        Some(format!("{text:?} does not say its default, or that it is required"))
    } else if let Some(value) = unknown {
        Some(format!("{text:?} does not mention the value {value}"))
    } else if is_kubernetes(field.schema) && !text.contains("`kubectl explain ") {
        Some(format!("{text:?} does not say where its fields are documented"))
    } else if !unit(field).iter().any(|unit| text.contains(unit)) {
        Some(format!("{text:?} does not say its unit: expected one of {:?}", unit(field)))
    } else {
        None
    }
}

fn description(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// The values that the schema allows or fills in, as a description quotes them.
fn allowed(schema: &Value) -> Vec<String> {
    let values = schema["enum"].as_array().into_iter().flatten();
    values
        .chain(schema.get("default"))
        .filter_map(Value::as_str)
        .map(|v| format!("`{v}`"))
        .collect()
}

/// Is there a word besides those of the field's name?
fn says_more_than(text: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).any(|word| {
        !EMPTY_WORDS.contains(&word.as_str()) && !name.contains(word.trim_end_matches('s'))
    })
}

/// What names the unit of this field; any text will do where it has none.
fn unit(field: &Field<'_>) -> &'static [&'static str] {
    let Field { name, schema, .. } = field;
    let (r#type, name) = (schema["type"].as_str().unwrap_or_default(), name.to_lowercase());
    let is_any_of = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if schema["format"] == "date-time" {
        &["Time", "time"]
    } else if is_any_of(&["seconds"]) || (r#type == "integer" && is_any_of(&["timeout"])) {
        &["econds"]
    } else if is_any_of(&["maxsurge", "maxunavailable"]) {
        &["percentage"]
    } else if r#type == "integer" && is_any_of(&["weight", "percentage"]) {
        &["ercentage", "1 to 100"]
    } else if r#type == "integer" && is_any_of(&["replicas", "count", "limit", "revisions"]) {
        &["Number of"]
    } else if is_any_of(&["interval", "backoff", "requesttimeout", "initialdelay"])
        || (r#type == "string" && name == "duration")
    {
        &["duration such as"]
    } else {
        &[""]
    }
}

/// All fields below a schema, but the object's metadata and those of Kubernetes' own types. They have no descriptions, which
/// would make the CRDs too large; `kubectl explain` prints them for pods and Jobs.
fn collect<'a>(schema: &'a Value, path: &str, fields: &mut Vec<Field<'a>>) {
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if path == ".metadata" {
            continue;
        }
        let is_required = required.iter().any(|one| one == name);
        fields.push(Field { path: path.clone(), name, schema: property, is_required });
        if !is_kubernetes(property) {
            collect(property, &path, fields);
        }
    }
    if let Some(items) = schema.get("items") {
        collect(items, &format!("{path}[]"), fields);
    }
    if let Some(values) = schema.get("additionalProperties") {
        collect(values, &format!("{path}{{}}"), fields);
    }
}

/// Is this a pod template or the spec of a Job?
fn is_kubernetes(schema: &Value) -> bool {
    let fields = &schema["properties"];
    fields["spec"]["properties"].get("containers").is_some() || fields.get("backoffLimit").is_some()
}
