//! Numbers and JSON as Go writes them: the texts in a status are compared and read by tools.

use serde_json::Value;

/// Compact JSON: keys sorted, numbers as float64, `<`, `>` and `&` escaped.
pub fn go_json(value: &Value) -> String {
    let mut text = String::new();
    write_json(value, &mut text);
    text
}

fn write_json(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(yes) => text.push_str(if *yes { "true" } else { "false" }),
        Value::Number(number) => {
            text.push_str(&go_json_number(number.as_f64().unwrap_or(f64::NAN)));
        }
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_json(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, value)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_string(key, text);
                text.push(':');
                write_json(value, text);
            }
            text.push('}');
        }
    }
}

fn write_string(string: &str, text: &mut String) {
    for c in Value::from(string).to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => text.push(c),
        }
    }
}

/// A number as Go's JSON writes it: with an exponent below 1e-6 and from 1e21 on.
pub fn go_json_number(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return decimal(number);
    }
    let scientific = format!("{number:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => scientific,
    }
}

/// A number without an exponent, as Prometheus writes it.
pub fn decimal(number: f64) -> String {
    match number {
        n if n.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        n => n.to_string(),
    }
}

/// Several numbers without exponents: `[1,2.5]`.
pub fn decimals(numbers: &[f64]) -> String {
    list(numbers.iter().copied().map(decimal))
}

/// TextMap in brackets, separated by commas.
pub fn list(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.collect();
    format!("[{}]", texts.join(","))
}

/// A number as Go's `%v` prints a float64: with an exponent from 1e21 on in JSON, here from a
/// precision of 21 digits, which is a million for short numbers.
pub fn go_number(number: f64) -> String {
    if !number.is_finite() {
        return decimal(number);
    }
    crate::analysis::arguments::as_go_prints(number)
}

/// A status with its name, as the first line of an answer has it: `404 Not Found`.
pub fn status_line(status: u16) -> String {
    let name = match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        status => return status.to_string(),
    };
    format!("{status} {name}")
}

/// The same JSON with all numbers as floating-point, as Go decodes them.
pub fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => Value::Array(items.into_iter().map(floats).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, value)| (key, floats(value))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_written_as_go_writes_it() {
        let cases = [
            (
                json!({ "b": 1, "a": [true, null, "x<y>&\"z"] }),
                r#"{"a":[true,null,"x\u003cy\u003e\u0026\"z"],"b":1}"#,
            ),
            (json!(3.0), "3"),
            (json!(0.25), "0.25"),
            (json!(12_345_678_901_234_567_890_u64), "12345678901234567000"),
            (json!(0.000_000_1), "1e-7"),
            (json!(0.000_001), "0.000001"),
            (json!(1e21), "1e+21"),
            (json!(1e20), "100000000000000000000"),
        ];
        for (value, expected) in cases {
            assert_eq!(go_json(&value), expected, "{value}");
        }
    }

    #[test]
    fn numbers_are_written_as_each_provider_writes_them() {
        let cases = [
            (1_000_000.0, "1000000", "1e+06"),
            (0.5, "0.5", "0.5"),
            (f64::NAN, "NaN", "NaN"),
            (f64::INFINITY, "+Inf", "+Inf"),
            (f64::NEG_INFINITY, "-Inf", "-Inf"),
        ];
        for (number, plain, printed) in cases {
            assert_eq!((&*decimal(number), &*go_number(number)), (plain, printed));
        }
        assert_eq!(decimals(&[1.0, 0.5]), "[1,0.5]");
        assert_eq!(floats(json!([1, { "a": 2 }])), json!([1.0, { "a": 2.0 }]));
    }
}
