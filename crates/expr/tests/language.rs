//! The language as the Go original speaks it: `language.jsonl`, and for `matches` `patterns.jsonl`, hold expressions, a result, and what
//! the original answered. `cargo xtask corpus expr` runs files of the same form.

use gradus_expr::{Environment, Inputs, Program, Value};
use serde_json::Value as Json;

/// The type and the text of the value, or `ERR` and why there is none.
fn answer(source: &str, result: &Value) -> String {
    let environment = Environment::new().with_value("result", result);
    let inputs = Inputs::new().with("result", result.clone());
    let value = Program::compile(source, &environment).and_then(|program| program.run(&inputs));
    match value {
        Ok(Value::Bool(truth)) => truth.to_string(),
        Ok(value) => format!("{} {value}", value.type_name()),
        Err(error) => format!("ERR: {error}"),
    }
}

fn result(row: &Json) -> Value {
    let numbers = || row["val"].as_array().into_iter().flatten().filter_map(Json::as_f64);
    match row["type"].as_str() {
        Some("f64s") => Value::floats(numbers()),
        Some("nan") => Value::Float(f64::NAN),
        Some("inf") => Value::Float(f64::INFINITY),
        _ => Value::from_json(&row["val"]).expect("a result is not nested so deep"),
    }
}

#[test]
fn every_answer_is_that_of_the_original() {
    all_agree(include_str!("language.jsonl"));
}

#[test]
fn patterns_match_as_those_of_the_original() {
    all_agree(include_str!("patterns.jsonl"));
}

/// Users read these in the status of a run.
#[test]
fn what_is_wrong_is_said_in_the_words_of_the_original() {
    for line in include_str!("errors.jsonl").lines() {
        let row: Json = serde_json::from_str(line).expect("each line is JSON");
        let text = |field: &str| row[field].as_str().expect("each line has both texts");
        let found = answer(text("expr"), &result(&row));
        assert_eq!(found.trim_end(), text("go"), "{}", text("expr"));
    }
}

fn all_agree(rows: &str) {
    for line in rows.lines() {
        let row: Json = serde_json::from_str(line).expect("each line is JSON");
        let text = |field: &str| row[field].as_str().expect("each line has both texts");
        let (source, expected) = (text("expr"), text("go"));
        let found = answer(source, &result(&row));
        let is_error = |text: &str| text.starts_with("ERR");
        let agrees = found == expected || is_error(&found) && is_error(expected);
        assert!(agrees, "{source}\nexpected {expected}\nfound    {found}");
    }
}
