//! In which form are objects printed?

use std::io::Write;
use std::str::FromStr;

use anyhow::bail;
use gradus_jsonpath::JsonPath;
use serde::Serialize;
use serde_json::Value;

/// A form of output other than the usual one.
#[derive(Clone, Debug)]
pub enum Output {
    /// The whole object.
    Json,
    /// The whole object.
    Yaml,
    /// The usual form with more columns.
    Wide,
    /// Kind and name alone.
    Name,
    /// What a template picks.
    JsonPath(JsonPath),
}

impl FromStr for Output {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if let Some(template) = text.strip_prefix("jsonpath=") {
            return Ok(Output::JsonPath(JsonPath::parse_relaxed(template)?));
        }
        match text {
            "json" => Ok(Output::Json),
            "yaml" => Ok(Output::Yaml),
            "wide" => Ok(Output::Wide),
            "name" => Ok(Output::Name),
            _ => bail!("expected json, yaml, name, wide or jsonpath=TEMPLATE"),
        }
    }
}

impl Output {
    /// The object, or the list of objects, in this form; none where that is the usual one.
    pub fn of(&self, object: &Value) -> anyhow::Result<Option<String>> {
        Ok(match self {
            Output::Wide => None,
            Output::Json => Some(json(&for_people(object))? + "\n"),
            Output::Yaml => Some(serde_saphyr::to_string(&for_people(object))?),
            Output::Name => Some(names(object)),
            Output::JsonPath(path) => Some(path.print(object)?),
        })
    }
}

/// Prints a text. A reader who has seen enough is told by an error, not by a panic.
pub fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Prints a line of what was done, or found. A reader who has gone changes neither what is still to
/// do nor the exit code, so that alone is no error.
pub fn say(line: &str) -> std::io::Result<()> {
    match print(&format!("{line}\n")) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        said => said,
    }
}

/// Prints a line on standard error. Where that is closed, nobody is left to be told.
pub fn warn(line: &str) {
    let mut out = std::io::stderr().lock();
    writeln!(out, "{line}").ok();
}

/// Several objects as one, as kubectl prints them.
pub fn list(items: Vec<Value>) -> Value {
    serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items,
        "metadata": { "resourceVersion": "" } })
}

/// Without `managedFields`, which kubectl does not show either.
fn for_people(object: &Value) -> Value {
    let mut object = object.clone();
    for item in object.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        *item = for_people(item);
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

fn json(object: &Value) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let indented = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    object.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, indented))?;
    Ok(String::from_utf8(bytes)?)
}

fn names(object: &Value) -> String {
    if let Some(items) = object["items"].as_array() {
        return items.iter().map(names).collect();
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&object["kind"]).to_lowercase();
    let api_version = text(&object["apiVersion"]);
    let name = text(&object["metadata"]["name"]);
    match api_version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}\n"),
        None => format!("{kind}/{name}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_and_lists_are_printed_as_kubectl_prints_them() {
        let object = json!({ "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "a", "managedFields": [{}] } });
        let all = list(vec![object.clone()]);
        let cases = [
            ("name", &all, "pod/a\n"),
            ("jsonpath={.items[0].kind}", &all, "Pod"),
            ("yaml", &object, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n"),
        ];
        for (form, object, expected) in cases {
            let printed = form.parse::<Output>().unwrap().of(object).unwrap();
            assert_eq!(printed.as_deref(), Some(expected), "{form}");
        }
        let json = "json".parse::<Output>().unwrap().of(&all).unwrap().unwrap();
        assert!(json.starts_with("{\n    \"apiVersion\"") && !json.contains("managed"), "{json}");
        assert!("wide".parse::<Output>().unwrap().of(&object).unwrap().is_none());
        assert!("table".parse::<Output>().is_err());
    }
}
