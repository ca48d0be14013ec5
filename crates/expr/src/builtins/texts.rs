//! Functions on texts, and to and from JSON and Base64.

use super::{Builtin, Call, Check, base64, wrong_type};
use crate::error::Fault;
use crate::number::to_int;
use crate::types::{ListKind, Type};
use crate::value::{List, Value, to_json_text};

const STRINGS: Type = Type::List(ListKind::Text, None);

/// More than this is no text that a condition needs; the original has the same limit.
const MOST_REPEATED: i64 = 1_000_000;

const fn texts(overloads: &'static [&'static [Type]], result: Type) -> Check {
    Check::Overloads(overloads, result)
}

const ONE: &[&[Type]] = &[&[Type::Text]];
const TWO: &[&[Type]] = &[&[Type::Text, Type::Text]];
const ONE_OR_TWO: &[&[Type]] = &[&[Type::Text], &[Type::Text, Type::Text]];
const TWO_OR_ONE: &[&[Type]] = &[&[Type::Text, Type::Text], &[Type::Text]];
const SPLIT: &[&[Type]] = &[&[Type::Text, Type::Text], &[Type::Text, Type::Text, Type::Int]];
const REPLACE: &[&[Type]] =
    &[&[Type::Text, Type::Text, Type::Text, Type::Int], &[Type::Text, Type::Text, Type::Text]];
const JOIN: &[&[Type]] =
    &[&[Type::ANYTHING, Type::Text], &[Type::ANYTHING], &[STRINGS, Type::Text], &[STRINGS]];

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin { name: "trim", check: texts(ONE_OR_TWO, Type::Text), call: trim },
    Builtin { name: "trimPrefix", check: texts(TWO_OR_ONE, Type::Text), call: trim_prefix },
    Builtin { name: "trimSuffix", check: texts(TWO_OR_ONE, Type::Text), call: trim_suffix },
    Builtin { name: "upper", check: texts(ONE, Type::Text), call: |call| letters(call, upper) },
    Builtin { name: "lower", check: texts(ONE, Type::Text), call: |call| letters(call, lower) },
    Builtin { name: "split", check: texts(SPLIT, STRINGS), call: |call| split(call, false) },
    Builtin { name: "splitAfter", check: texts(SPLIT, STRINGS), call: |call| split(call, true) },
    Builtin { name: "replace", check: texts(REPLACE, Type::Text), call: replace },
    Builtin { name: "repeat", check: texts(&[&[Type::Text, Type::Int]], Type::Text), call: repeat },
    Builtin { name: "join", check: texts(JOIN, Type::Text), call: join },
    Builtin {
        name: "indexOf",
        check: texts(TWO, Type::Int),
        call: |call| Ok(place(call.text(0)?.find(call.text(1)?))),
    },
    Builtin {
        name: "lastIndexOf",
        check: texts(TWO, Type::Int),
        call: |call| Ok(place(call.text(0)?.rfind(call.text(1)?))),
    },
    Builtin {
        name: "hasPrefix",
        check: texts(TWO, Type::Bool),
        call: |call| Ok(Value::Bool(call.text(0)?.starts_with(call.text(1)?))),
    },
    Builtin {
        name: "hasSuffix",
        check: texts(TWO, Type::Bool),
        call: |call| Ok(Value::Bool(call.text(0)?.ends_with(call.text(1)?))),
    },
    Builtin {
        name: "toJSON",
        check: texts(&[&[Type::Any]], Type::Text),
        call: |call| {
            let text = to_json_text(call.value(0))?;
            call.budget.text(text.len())?;
            Ok(Value::text(&text))
        },
    },
    Builtin { name: "fromJSON", check: texts(ONE, Type::Any), call: from_json },
    Builtin {
        name: "toBase64",
        check: texts(ONE, Type::Text),
        call: |call| {
            let text = base64::encode(call.text(0)?.as_bytes());
            call.budget.text(text.len())?;
            Ok(Value::text(&text))
        },
    },
    Builtin { name: "fromBase64", check: texts(ONE, Type::Text), call: from_base64 },
];

fn trim(call: &mut Call<'_>) -> Result<Value, Fault> {
    let text = call.text(0)?;
    if call.arguments.len() < 2 {
        return Ok(Value::text(text.trim()));
    }
    let letters = call.text(1)?;
    Ok(Value::text(text.trim_matches(|letter| letters.contains(letter))))
}

fn trim_prefix(call: &mut Call<'_>) -> Result<Value, Fault> {
    let prefix = if call.arguments.len() < 2 { " " } else { call.text(1)? };
    let text = call.text(0)?;
    Ok(Value::text(text.strip_prefix(prefix).unwrap_or(text)))
}

fn trim_suffix(call: &mut Call<'_>) -> Result<Value, Fault> {
    let suffix = if call.arguments.len() < 2 { " " } else { call.text(1)? };
    let text = call.text(0)?;
    Ok(Value::text(text.strip_suffix(suffix).unwrap_or(text)))
}

fn letters(call: &mut Call<'_>, change: fn(char) -> char) -> Result<Value, Fault> {
    let text: String = call.text(0)?.chars().map(change).collect();
    call.budget.text(text.len())?;
    Ok(Value::text(&text))
}

/// Go changes letter by letter: one that would become two stays.
fn upper(letter: char) -> char {
    let mut changed = letter.to_uppercase();
    match (changed.next(), changed.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

fn lower(letter: char) -> char {
    let mut changed = letter.to_lowercase();
    match (changed.next(), changed.next()) {
        (Some(one), None) => one,
        // Of İ the letter is taken, not the point above it.
        (Some(one), Some(_)) => one,
        (None, _) => letter,
    }
}

/// At most as many parts as asked for, the last with all that is left; a negative number is all.
fn split(call: &mut Call<'_>, keeps_separator: bool) -> Result<Value, Fault> {
    let (text, separator) = (call.text(0)?, call.text(1)?);
    let most = if call.arguments.len() > 2 { to_int(call.value(2))? } else { -1 };
    if most == 0 {
        return Ok(Value::List(List::nil_of(ListKind::Text)));
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut rest = text;
    while parts.len() + 1 < most {
        let found = match separator {
            // Between every two letters.
            "" => rest.char_indices().nth(1).map(|(at, _)| at),
            _ => rest.find(separator),
        };
        let Some(at) = found else { break };
        let end = if keeps_separator { at + separator.len() } else { at };
        parts.push(Value::text(&rest[..end]));
        rest = &rest[at + separator.len()..];
    }
    if !(separator.is_empty() && rest.is_empty()) {
        parts.push(Value::text(rest));
    }
    call.budget.items(parts.len())?;
    List::new(ListKind::Text, parts).map(Value::List)
}

fn replace(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (text, from, to) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let most = if call.arguments.len() > 3 { to_int(call.value(3))? } else { -1 };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let found = if from.is_empty() { text.chars().count() + 1 } else { text.matches(from).count() };
    let length = text.len().saturating_add(found.min(most).saturating_mul(to.len()));
    call.budget.text(length)?;
    Ok(Value::text(&text.replacen(from, to, most)))
}

fn repeat(call: &mut Call<'_>) -> Result<Value, Fault> {
    let times = to_int(call.value(1))?;
    if times < 0 {
        let message =
            format!("invalid argument for repeat (expected positive integer, got {times})");
        return Err(Fault::run(message));
    }
    let text = call.text(0)?;
    if times > MOST_REPEATED {
        return Err(Fault::limit("memory budget exceeded"));
    }
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    call.budget.items(text.len().saturating_mul(times))?;
    Ok(Value::text(&text.repeat(times)))
}

fn join(call: &mut Call<'_>) -> Result<Value, Fault> {
    let glue = if call.arguments.len() < 2 { "" } else { call.text(1)? };
    let list = match call.value(0) {
        Value::List(list) if matches!(list.kind(), ListKind::Any | ListKind::Text) => list,
        other => {
            let name = other.type_name();
            return Err(Fault::run(format!("invalid argument for join (type {name})")));
        }
    };
    let mut texts = Vec::with_capacity(list.items().len());
    for item in list.items() {
        match item {
            Value::Text(text) => texts.push(&**text),
            other => return Err(wrong_type(other, "string")),
        }
    }
    let joined = texts.join(glue);
    call.budget.text(joined.len())?;
    Ok(Value::text(&joined))
}

fn place(found: Option<usize>) -> Value {
    Value::int(found.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX)))
}

fn from_json(call: &mut Call<'_>) -> Result<Value, Fault> {
    let text = call.text(0)?;
    call.budget.text(text.len())?;
    let json = serde_json::from_str(text).map_err(|error| Fault::run(error.to_string()))?;
    Value::read_json(&json)
}

fn from_base64(call: &mut Call<'_>) -> Result<Value, Fault> {
    let illegal = |at| Fault::run(format!("illegal base64 data at input byte {at}"));
    let bytes = base64::decode(call.text(0)?).map_err(illegal)?;
    Ok(Value::text(&String::from_utf8_lossy(&bytes)))
}
