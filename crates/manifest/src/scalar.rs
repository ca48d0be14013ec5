//! What does an unquoted word of YAML mean to kubectl? Go's YAML 1.1, then Go's JSON.

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
    if text.starts_with('_') {
        return Ok(Value::String(text.to_owned()));
    }
    let number = integer(&text.replace('_', "")).or_else(|| float(text));
    Ok(number.map_or_else(|| Value::String(text.to_owned()), Value::Number))
}

/// A key as the text that JSON makes of it.
pub fn key(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
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
