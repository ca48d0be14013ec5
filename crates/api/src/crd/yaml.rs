//! JSON as YAML for people: always the same text for the same value.

use serde_json::{Map, Value};

/// A map or list of plain values is written on one line up to this column.
const MAX_COLUMN: usize = 100;

/// The value as one YAML document, keys sorted.
pub fn render(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => write_map(&mut text, map, 0),
        Value::Array(items) if !items.is_empty() => write_list(&mut text, items, 0),
        other => text.push_str(&(scalar(other) + "\n")),
    }
    text
}

fn write_map(text: &mut String, map: &Map<String, Value>, depth: usize) {
    for (index, (key, value)) in map.iter().enumerate() {
        // The first key of an item of a list stands behind its dash.
        if index > 0 || !text.ends_with("- ") {
            indent(text, depth);
        }
        text.push_str(&quoted_if_needed(key));
        text.push(':');
        write_value(text, value, depth);
    }
}

fn write_list(text: &mut String, items: &[Value], depth: usize) {
    for item in items {
        indent(text, depth);
        text.push('-');
        match item {
            Value::Object(map) if one_line(text, item).is_none() => {
                text.push(' ');
                write_map(text, map, depth + 1);
            }
            _ => write_value(text, item, depth + 1),
        }
    }
}

/// What stands behind a key or a dash. Lists are not indented further than their key.
fn write_value(text: &mut String, value: &Value, depth: usize) {
    if let Some(line) = one_line(text, value) {
        text.push(' ');
        text.push_str(&line);
        text.push('\n');
        return;
    }
    text.push('\n');
    match value {
        Value::Object(map) => write_map(text, map, depth + 1),
        Value::Array(items) => write_list(text, items, depth),
        _ => {}
    }
}

/// The value on one line, where that is allowed and fits behind what is there already.
fn one_line(text: &str, value: &Value) -> Option<String> {
    let line = match value {
        Value::Object(map) => {
            let pairs: Option<Vec<String>> = map.iter().map(pair).collect();
            format!("{{{}}}", pairs?.join(", "))
        }
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(member).collect();
            format!("[{}]", items?.join(", "))
        }
        plain => return Some(scalar(plain)),
    };
    let column = text.len() - text.rfind('\n').map_or(0, |end| end + 1);
    (line.len() == 2 || column + 1 + line.len() <= MAX_COLUMN).then_some(line)
}

fn pair((key, value): (&String, &Value)) -> Option<String> {
    Some(format!("{}: {}", quoted_if_needed(key), member(value)?))
}

/// A plain value inside a map or list on one line, where a comma would end it.
fn member(value: &Value) -> Option<String> {
    match value {
        Value::Object(_) | Value::Array(_) => None,
        Value::String(string) if string.contains(',') => Some(value.to_string()),
        plain => Some(scalar(plain)),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(string) => quoted_if_needed(string),
        other => other.to_string(),
    }
}

fn indent(text: &mut String, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
}

/// The string as it is where no reader can take it for anything else, else in double quotes,
/// where YAML reads what JSON writes.
fn quoted_if_needed(string: &str) -> String {
    let is_word = |text: &str| text.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_plain = is_word(string.strip_prefix('.').unwrap_or(string))
        && string.chars().all(|c| c.is_ascii_alphanumeric() || "-_./ ,;()".contains(c))
        && !string.ends_with(' ')
        && !RESERVED.contains(&string.to_ascii_lowercase().as_str());
    if is_plain { string.to_owned() } else { Value::from(string).to_string() }
}

/// Words that some reader of YAML takes for something other than text.
const RESERVED: [&str; 11] =
    ["true", "false", "null", "yes", "no", "on", "off", "y", "n", ".nan", ".inf"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_shape_has_its_one_text() {
        let value = json!({
            "empty": { "list": [], "map": {} },
            "list": [1, "two", { "a": 1, "b": [true, null] }, [3, [4]], { "c": "x, y" }],
            "long": "word ".repeat(30).trim(),
            "plain": { "text": "words, here", "type": "string" },
        });
        let long = "word ".repeat(30);
        let expected = format!(
            "\
empty:
  list: []
  map: {{}}
list:
- 1
- two
- a: 1
  b: [true, null]
-
  - 3
  - [4]
- {{c: \"x, y\"}}
long: {}
plain: {{text: \"words, here\", type: string}}
",
            long.trim()
        );
        assert_eq!(render(&value), expected);
    }

    #[test]
    fn a_text_that_could_be_misread_is_quoted() {
        let quoted =
            ["", "true", "No", "1", "0x1", "1e3", "-", "a: b", "a #b", "x ", "'a'", ".nan", ".5e3"];
        for text in quoted {
            assert_eq!(render(&json!(text)), format!("{}\n", json!(text)), "{text}");
        }
        for text in ["Desired", ".spec.replicas", "int-or-string", "argoproj.io/v1alpha1"] {
            assert_eq!(render(&json!(text)), format!("{text}\n"), "{text}");
        }
        assert_eq!(render(&json!({ "y": [["a\"b\n"]] })), "\"y\":\n- [\"a\\\"b\\n\"]\n");
    }
}
