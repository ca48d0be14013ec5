//! What does an unquoted word of YAML mean to kubectl? Go's YAML 1.1, then Go's JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

const NULLS: [&str; 5] = ["", "~", "null", "Null", "NULL"];
const TRUTHS: [&str; 11] =
    ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"];
const LIES: [&str; 11] =
    ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"];
const NO_JSON: [&str; 15] = [
    ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN",
    ".NAN", "+.nan", "+.NaN", "+.NAN",
];

/// The value of a plain scalar. Infinite and undefined numbers have no place in JSON.
pub fn resolve(text: &str) -> Result<Value, String> {
    if NULLS.contains(&text) {
        return Ok(Value::Null);
    }
    if TRUTHS.contains(&text) {
        return Ok(Value::Bool(true));
    }
    if LIES.contains(&text) {
        return Ok(Value::Bool(false));
    }
    if NO_JSON.contains(&text) {
        return Err(format!("json: unsupported value: {text}"));
    }
    let number = number(text).map(|(number, _)| number);
    Ok(number.map_or_else(|| Value::String(text.to_owned()), Value::Number))
}

/// The value of a scalar with a tag, which may contradict it. `is_plain` says that it stands there
/// without quotes.
pub fn tagged(text: &str, tag: &str, is_plain: bool) -> Result<Value, String> {
    let as_text = || Value::String(text.to_owned());
    match tag {
        "binary" => {
            let bytes = STANDARD.decode(text.split_whitespace().collect::<String>());
            let bytes = bytes.map_err(|_| "!!binary value contains invalid base64 data")?;
            Ok(Value::String(String::from_utf8_lossy(&bytes).into_owned()))
        }
        "null" | "bool" | "int" | "float" => {
            let value = resolve(text)?;
            let found = match &value {
                Value::Null => "null",
                Value::Bool(_) => "bool",
                Value::Number(_) if number(text).is_some_and(|(_, is_whole)| is_whole) => "int",
                Value::Number(_) => "float",
                _ => "str",
            };
            match (found, tag) {
                ("int", "float") => Ok(value),
                (found, tag) if found == tag => Ok(value),
                _ => Err(format!("cannot decode !!{found} `{text}` as a !!{tag}")),
            }
        }
        "timestamp" | "merge" if is_plain => resolve(text),
        _ => Ok(as_text()),
    }
}

/// A plain key as the text that JSON makes of it. Of a number with a fraction that is what Go writes of
/// 32 bits.
pub fn key(text: &str) -> Result<Value, String> {
    if let Some(at) = NO_JSON.iter().position(|number| *number == text) {
        let texts = [".inf", ".inf", "-.inf", ".nan", ".nan"];
        return Ok(Value::String(texts[at / 3].to_owned()));
    }
    match number(text) {
        Some((number, false)) => Ok(Value::String(short(number.as_f64().unwrap_or(f64::NAN)))),
        _ => resolve(text),
    }
}

/// A number of 32 bits as Go writes it with as few digits as tell it from others.
#[expect(clippy::cast_possible_truncation, reason = "keys are as long as Go makes them")]
fn short(number: f64) -> String {
    let number = number as f32;
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return number.to_string() };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// A number, and whether it is written as an integer.
fn number(text: &str) -> Option<(Number, bool)> {
    let plain = match text.as_bytes().first()? {
        // Behind a point Go's YAML knows no `_`.
        b'.' => text.to_owned(),
        b'_' => return None,
        _ => text.replace('_', ""),
    };
    let whole = integer(&plain).map(|number| (number, true));
    whole.or_else(|| float(&plain).map(|number| (number, false)))
}

/// An integer with the prefixes of Go: `0x`, `0o`, `0b`, and `0` for octal.
fn integer(text: &str) -> Option<Number> {
    let (is_negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    // A second sign is none of ours.
    if !digits.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if is_negative {
        let value = i64::try_from(-i128::from(magnitude)).ok()?;
        return Some(value.into());
    }
    Some(magnitude.into())
}

/// A decimal number; a whole one is written without its point, as Go's JSON does.
fn float(text: &str) -> Option<Number> {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (body, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let is_exponent = |text: &str| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        !digits.is_empty() && are_digits(digits)
    };
    if !has_digits
        || !are_digits(whole)
        || !are_digits(fraction)
        || !exponent.is_none_or(is_exponent)
    {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    let is_whole = value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within 2^53")]
    if is_whole { Some((value as i64).into()) } else { Number::from_f64(value) }
}
