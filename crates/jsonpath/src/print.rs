//! How what was found is printed.

use serde_json::Value;

use crate::Reading;

/// What was found in an answer, as client-go prints it: the values of each piece are separated by
/// blanks, the pieces follow each other, and every number is a fraction.
pub fn show(found: &[Vec<Value>]) -> String {
    shown(found, Reading::Answer)
}

pub(super) fn shown(found: &[Vec<Value>], reading: Reading) -> String {
    let pieces = found.iter().map(|values| {
        let texts: Vec<String> = values.iter().map(|value| text(value, reading)).collect();
        texts.join(" ")
    });
    pieces.collect()
}

fn text(value: &Value, reading: Reading) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if reading == Reading::Object && !number.is_f64() => {
            number.to_string()
        }
        Value::Number(number) => fraction(number.as_f64().unwrap_or(f64::NAN)),
        Value::Array(_) | Value::Object(_) => {
            // As Go writes JSON; these letters stand in texts alone.
            let text = value.to_string();
            text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
        }
        other => other.to_string(),
    }
}

/// Go writes an exponent where it is below -4 or above 5.
fn fraction(number: f64) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{number}"),
    }
}
