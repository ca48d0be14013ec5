//! What two servers must have in common: an answer without what differs by nature.

use serde_json::{Map, Value, json};

use super::Step;

/// The group of the suite's own kinds, whose objects are compared whole.
pub const GROUP: &str = "conformance.gradus.dev";

/// A body as a document; a watch is a list of its events.
pub fn read(bytes: &[u8]) -> Value {
    if let Ok(document) = serde_json::from_slice(bytes) {
        return document;
    }
    let text = String::from_utf8_lossy(bytes);
    let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    match lines {
        Ok(events) if !events.is_empty() => Value::Array(events),
        _ => Value::from(text.trim()),
    }
}

/// What a JSON pointer leads to, of which a part may also be a field of a list's item, as
/// `name=pods` or `metadata.name=apps`.
pub fn at<'a>(body: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(body, |value, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        match (value, part.split_once('=')) {
            (Value::Array(items), Some((field, wanted))) => items.iter().find(|item| {
                let found = field.split('.').try_fold(*item, |value, field| value.get(field));
                found.is_some_and(|found| found == wanted)
            }),
            (Value::Array(items), None) => items.get(part.parse::<usize>().ok()?),
            (value, _) => value.get(&part),
        }
    })
}

/// The normal form of an answer.
pub fn answer(step: &Step, code: u16, mut body: Value, namespace: &str) -> Value {
    let is_watch = step.call.contains("watch=");
    if is_watch && body.get("type").is_some() {
        body = Value::Array(vec![body]);
    }
    if body["kind"] == "Status" && body["status"] == "Failure" {
        return refusal(step, code, &body, namespace);
    }
    let mut answer = json!({"code": code});
    if is_watch && code == 200 {
        answer["events"] = events(step, body, namespace);
        return answer;
    }
    clean(&mut body, namespace);
    if let Some(pointers) = &step.compare {
        answer["fields"] = fields(&body, pointers);
    } else if is_own(&body) || body["kind"] == "Status" || body.is_string() {
        answer["body"] = body;
    }
    answer
}

fn refusal(step: &Step, code: u16, status: &Value, namespace: &str) -> Value {
    let details = &status["details"];
    let mut causes: Vec<Value> = details["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| json!([cause["field"], cause["reason"]]))
        .collect();
    causes.sort_by_key(Value::to_string);
    // A real server checks the metadata of custom objects twice.
    causes.dedup();
    let mut answer = json!({
        "code": code, "reason": status["reason"],
        "about": [details["group"], details["kind"], details["name"]],
    });
    if !causes.is_empty() {
        answer["causes"] = json!(causes);
    }
    if step.message {
        answer["message"] = status["message"].clone();
    }
    replace(&mut answer, namespace);
    answer
}

/// Bookmarks come when a server likes, except the one that ends the initial events.
fn events(step: &Step, body: Value, namespace: &str) -> Value {
    let events = match body {
        Value::Array(events) => events,
        _ => Vec::new(),
    };
    let counts = |event: &Value| {
        event["type"] != "BOOKMARK" || event["object"]["metadata"].get("annotations").is_some()
    };
    let events = events.into_iter().filter(counts).map(|mut event| {
        clean(&mut event["object"], namespace);
        let object = &event["object"];
        match &step.compare {
            _ if event["type"] == "ERROR" => json!(["ERROR", object["code"], object["reason"]]),
            Some(pointers) => json!([event["type"], fields(object, pointers)]),
            None if is_own(object) && event["type"] != "BOOKMARK" => json!([event["type"], object]),
            None => json!([event["type"], object["metadata"]["name"]]),
        }
    });
    events.collect()
}

fn fields(body: &Value, pointers: &[String]) -> Value {
    let fields: Map<String, Value> = pointers
        .iter()
        .map(|pointer| (pointer.clone(), at(body, pointer).cloned().unwrap_or_default()))
        .collect();
    Value::Object(fields)
}

fn is_own(body: &Value) -> bool {
    body["apiVersion"].as_str().is_some_and(|version| version.starts_with(GROUP))
}

/// Takes out what differs by nature: versions, uids, times, who wrote which field.
fn clean(value: &mut Value, namespace: &str) {
    tidy(value);
    replace(value, namespace);
}

fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in
                ["managedFields", "uid", "resourceVersion", "selfLink", "storageVersionHash"]
            {
                fields.remove(name);
            }
            if let Some(base) = fields.get("generateName").and_then(Value::as_str) {
                fields.insert("name".into(), json!(format!("{base}<generated>")));
            }
            match fields.get("continue").and_then(Value::as_str) {
                None => {}
                // Some kinds of lists say that there is no more, others say nothing.
                Some("") => {
                    fields.remove("continue");
                }
                Some(_) => {
                    fields.insert("continue".into(), json!("<token>"));
                }
            }
            if fields.contains_key("columnDefinitions") {
                hide_ages(fields);
            }
            for (name, value) in fields.iter_mut() {
                if is_time(name) && value.is_string() {
                    *value = json!("<time>");
                } else {
                    tidy(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn is_time(name: &str) -> bool {
    name.ends_with("Timestamp") || name.ends_with("Time")
}

/// The cells of a table that show a time, and the descriptions of its columns.
fn hide_ages(table: &mut Map<String, Value>) {
    let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
    let shows_time = |at: usize| {
        let name = columns.get(at).and_then(|column| column["name"].as_str()).unwrap_or_default();
        matches!(name, "Age" | "Created At" | "Last Seen" | "First Seen" | "Duration")
    };
    for column in table["columnDefinitions"].as_array_mut().into_iter().flatten() {
        column["description"].take();
    }
    for row in table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        for (at, cell) in row["cells"].as_array_mut().into_iter().flatten().enumerate() {
            if shows_time(at) {
                *cell = json!("<age>");
            }
        }
    }
}

/// The case's namespace has another name in every run.
fn replace(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) if text.contains(namespace) => {
            *text = text.replace(namespace, "{ns}");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, namespace)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, namespace)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_finds_items_by_what_they_say() {
        let body = json!({"items": [
            {"name": "pods", "metadata": {"name": "a"}},
            {"name": "pods/status", "metadata": {"name": "b.c"}, "verbs": ["get"]},
        ]});
        let cases = [
            ("", Some(&body)),
            ("/items/0/name", Some(&body["items"][0]["name"])),
            ("/items/name=pods/metadata/name", Some(&body["items"][0]["metadata"]["name"])),
            ("/items/name=pods~1status/verbs/0", Some(&body["items"][1]["verbs"][0])),
            ("/items/metadata.name=b.c", Some(&body["items"][1])),
            ("/items/name=frob", None),
            ("/items/7", None),
            ("/items/frob", None),
        ];
        for (pointer, expected) in cases {
            assert_eq!(at(&body, pointer), expected, "{pointer}");
        }
    }
}
