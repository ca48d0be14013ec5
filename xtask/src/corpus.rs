//! `cargo xtask corpus`: do we answer as the Go originals did? Each line of a file is a question with
//! the original's answer; `ERR` at its beginning stands for any error.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use gradus_engine::analysis::condition;
use gradus_expr::{Inputs, Program, Value};
use gradus_jsonpath::JsonPath;
use gradus_manifest::{Document, Source};
use serde_json::Value as Json;
use thiserror::Error;

use crate::{Failure, summary::Summary};

/// Why a file cannot be run.
#[derive(Debug, Error)]
enum CorpusError {
    #[error("expected: cargo xtask corpus expr|jsonpath|yaml FILE")]
    Usage,
    #[error("cannot read {0}: {1}")]
    Unreadable(String, std::io::Error),
    #[error("{0}, line {1}: {2}")]
    Line(String, usize, String),
}

/// Runs one file and names every answer that differs.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let [language, file] = arguments else { return Err(CorpusError::Usage.into()) };
    let (passed, failed) = compare(language, Path::new(file))?;
    for text in &failed {
        println!("{text}");
    }
    println!("{passed} passed, {} failed", failed.len());
    // The line above is the last one: what is added up would be printed below it.
    if failed.is_empty() { Ok(Summary::default()) } else { Err("some answers differ".into()) }
}

/// How many answers agree, and those that do not.
fn compare(language: &str, file: &Path) -> Result<(usize, Vec<String>), CorpusError> {
    let name = file.display().to_string();
    let read = |path: &Path| {
        let unreadable = |error| CorpusError::Unreadable(path.display().to_string(), error);
        fs::read_to_string(path).map_err(unreadable)
    };
    let answer: Box<Ask> = match language {
        "expr" => Box::new(expression),
        "jsonpath" => {
            let text = read(&document_beside(file))?;
            let wrong =
                |error: serde_json::Error| CorpusError::Line(name.clone(), 0, error.to_string());
            let document: Json = serde_json::from_str(&text).map_err(wrong)?;
            Box::new(move |row| path(row, &document))
        }
        "yaml" => Box::new(yaml),
        _ => return Err(CorpusError::Usage),
    };
    let (mut passed, mut failed) = (0, Vec::new());
    for (at, line) in read(file)?.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |text: String| CorpusError::Line(name.clone(), at + 1, text);
        let row: Json = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        let expected = row["go"].as_str().ok_or_else(|| wrong("no answer \"go\"".to_owned()))?;
        let found = answer(&row).map_err(wrong)?;
        if found.agrees(expected) {
            passed += 1;
        } else {
            failed.push(format!("{line}\n    found {}", found.text()));
        }
    }
    Ok((passed, failed))
}

/// `jsonpath.jsonl` asks about `jsonpath-doc.json`.
fn document_beside(file: &Path) -> std::path::PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{stem}-doc.json"))
}

/// From a row to our answer.
type Ask = dyn Fn(&Json) -> Result<Answer, String>;

/// What we answer.
enum Answer {
    Error(String),
    /// As the original writes it.
    Text(String),
    /// JSON, compared by value.
    Json(Json),
    /// Values of a path, and how they are printed.
    Found(Json, String),
}

impl Answer {
    fn agrees(&self, expected: &str) -> bool {
        let word = expected.split([' ', ':']).next().unwrap_or_default();
        let is_error = ["ERR", "COMPILE_ERR", "RUN_ERR", "PARSE_ERR"].contains(&word);
        let same = |json: &Json, text: &str| {
            serde_json::from_str(text).is_ok_and(|expected| numbers(&expected) == numbers(json))
        };
        match self {
            Answer::Error(_) => is_error,
            _ if is_error => false,
            Answer::Text(text) => text == expected,
            Answer::Json(json) => same(json, expected),
            Answer::Found(json, printed) => {
                let (values, print) = expected.split_once("   print: ").unwrap_or((expected, ""));
                let is_printed = print.strip_suffix(" <nil>").is_none_or(|print| print == printed);
                let values = serde_json::from_str(values).map(|values| floats(&values));
                values.is_ok_and(|values| numbers(&values) == numbers(&floats(json))) && is_printed
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Answer::Error(text) => format!("ERR: {text}"),
            Answer::Text(text) => text.clone(),
            Answer::Json(json) => json.to_string(),
            Answer::Found(json, printed) => format!("{json}   print: {printed}"),
        }
    }
}

/// Values as Go decodes them: all numbers are floating-point.
fn floats(json: &Json) -> Json {
    match json {
        Json::Number(number) => number.as_f64().map_or(Json::Null, Json::from),
        Json::Array(items) => items.iter().map(floats).collect(),
        Json::Object(fields) => {
            Json::Object(fields.iter().map(|(key, value)| (key.clone(), floats(value))).collect())
        }
        other => other.clone(),
    }
}

/// 1 and 1.0 are one number.
fn numbers(json: &Json) -> Json {
    match json {
        Json::Number(number) if number.is_f64() => match number.as_f64() {
            Some(whole) if whole.fract() == 0.0 && whole.abs() < 1e15 => Json::from(whole as i64),
            _ => json.clone(),
        },
        Json::Array(items) => items.iter().map(numbers).collect(),
        Json::Object(fields) => {
            Json::Object(fields.iter().map(|(key, value)| (key.clone(), numbers(value))).collect())
        }
        other => other.clone(),
    }
}

fn expression(row: &Json) -> Result<Answer, String> {
    let source = row["expr"].as_str().ok_or("no \"expr\"")?;
    let numbers = || row["val"].as_array().into_iter().flatten().filter_map(Json::as_f64);
    let result = match row["type"].as_str().ok_or("no \"type\"")? {
        "nan" => Value::Float(f64::NAN),
        "inf" => Value::Float(f64::INFINITY),
        "nanf64s" => Value::floats([f64::NAN]),
        "f64s" => Value::floats(numbers()),
        "f64" | "str" | "nil" | "any" => Value::from_json(&row["val"]).ok_or("nested too deep")?,
        other => return Err(format!("unknown type {other:?}")),
    };
    let now = jiff::Timestamp::now().as_second();
    let inputs = Inputs::new().with("result", result.clone()).at(now, 0);
    let value = Program::compile(source, &condition::environment(&result))
        .and_then(|program| program.run(&inputs));
    Ok(match value {
        Ok(Value::Bool(truth)) => Answer::Text(truth.to_string()),
        Ok(other) => Answer::Error(format!("expected bool, but got {}", other.type_name())),
        Err(error) => Answer::Error(error.to_string()),
    })
}

fn path(row: &Json, document: &Json) -> Result<Answer, String> {
    let text = row["path"].as_str().ok_or("no \"path\"")?;
    Ok(match JsonPath::parse(text).and_then(|path| path.find(document)) {
        Ok(found) => {
            let values = found.iter().flatten().cloned().collect();
            Answer::Found(values, gradus_jsonpath::show(&found))
        }
        Err(error) => Answer::Error(error.to_string()),
    })
}

fn yaml(row: &Json) -> Result<Answer, String> {
    let text = row["yaml"].as_str().ok_or("no \"yaml\"")?;
    let source = Arc::new(Source { name: "-".to_owned(), text: text.to_owned() });
    Ok(match gradus_manifest::read(&source) {
        Err(malformed) => Answer::Error(malformed.message),
        Ok(documents) => match documents.first() {
            Some(Document { root, .. }) => match root.repeated_key() {
                Some((key, _)) => Answer::Error(format!("key {key:?} already set in map")),
                None => Answer::Json(root.json()),
            },
            None => Answer::Json(Json::Null),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_corpora_pass() {
        let root = crate::repository();
        let cases = [
            ("expr", "crates/expr/tests/conditions.jsonl", 300),
            ("jsonpath", "crates/jsonpath/tests/paths.jsonl", 200),
            ("yaml", "crates/manifest/tests/yaml.jsonl", 100),
        ];
        for (language, file, least) in cases {
            let (passed, failed) = compare(language, &root.join(file)).unwrap();
            assert_eq!(failed, Vec::<String>::new(), "{file}");
            assert!(passed >= least, "{file}: {passed}");
        }
    }

    #[test]
    fn an_error_agrees_with_any_error_and_with_nothing_else() {
        let error = Answer::Error("x".to_owned());
        let cases = [
            ("ERR: unknown name foo", true),
            ("COMPILE_ERR: unknown name foo", true),
            ("PARSE_ERR unclosed action", true),
            ("true", false),
            ("ERROR", false),
        ];
        for (expected, agrees) in cases {
            assert_eq!(error.agrees(expected), agrees, "{expected}");
        }
        assert!(Answer::Json(Json::from(1)).agrees("1.0"));
        assert!(!Answer::Text("true".to_owned()).agrees("false"));
    }
}
