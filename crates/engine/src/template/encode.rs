//! Which bytes does Go's JSON encoder write for this value of a Kubernetes struct?
//!
//! Bytes go straight into a [`Sink`]; no tree is built on the way.

use std::fmt::{self, Write as _};

use gradus_api::values::Time;
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use super::digest::Sink;
use super::image::is_latest;
use super::order::{Compared, FIELDS_LIMIT, Field, FieldType, Struct, When};
use super::quantity::{self, Quantity};

/// Whose bytes are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Kubernetes libraries from 0.34 on.
    Current,
    /// Kubernetes libraries before 0.34: a missing `creationTimestamp` is written as `null`.
    Legacy,
    /// Nobody's, and no JSON: templates that ask for the same give the same bytes. Defaults are filled in, a
    /// missing list is an empty one, quantities are written by value, those of resource lists
    /// rounded up to milli as the API server does.
    Comparison,
}

/// Writes a value of the given kind; `None` and `null` are its zero value.
pub(super) fn write<S: Sink>(
    sink: &mut S,
    dialect: Dialect,
    kind: &FieldType,
    value: Option<&Value>,
) {
    Writer { sink, dialect }.value(kind, value.filter(|value| !value.is_null()));
}

/// Writes labels or annotations for a comparison, but for those that are not the user's.
pub(super) fn write_pairs<S: Sink>(
    sink: &mut S,
    value: Option<&Value>,
    is_users: impl Fn(&str) -> bool,
) {
    let mut writer = Writer { sink, dialect: Dialect::Comparison };
    match value.filter(|value| !is_zero(value)) {
        Some(Value::Object(map)) => {
            for (key, value) in map.iter().filter(|(key, _)| is_users(key)) {
                writer.text(key);
                writer.value(&FieldType::Text, Some(value).filter(|value| !value.is_null()));
            }
        }
        Some(other) => writer.json(other),
        None => {}
    }
    writer.sink.put(b";");
}

/// Is this what Go leaves out under `omitempty`?
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0) || number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Is this how Go reads what is not there? Its time of zero has a text, too.
fn is_absent(kind: &FieldType, value: &Value) -> bool {
    const NO_TIME: &str = "0001-01-01T00:00:00Z";
    value.is_null() || (matches!(kind, FieldType::Time) && value == NO_TIME)
}

struct Writer<'a, S: Sink> {
    sink: &'a mut S,
    dialect: Dialect,
}

impl<S: Sink> Writer<'_, S> {
    /// A value of another type than its kind is written as it is: no API server accepts it, so
    /// there is no right answer, and it must not look like something else.
    fn value(&mut self, kind: &FieldType, value: Option<&Value>) {
        match (kind, value) {
            (FieldType::Text, None) => self.text(""),
            (FieldType::Text, Some(Value::String(text))) => self.text(text),
            (FieldType::Time, Some(value)) => match Time::deserialize(value) {
                Ok(time) => self.text(&time.to_string()),
                Err(_) => self.json(value),
            },
            (FieldType::Number | FieldType::IntOrText, None) => self.sink.put(b"0"),
            (FieldType::Flag, None) => self.sink.put(b"false"),
            (FieldType::Json | FieldType::List(_) | FieldType::Map(_) | FieldType::Time, None) => {
                self.sink.put(b"null")
            }
            (FieldType::Quantity, _) => self.quantity(value, Rounding::Exact),
            (FieldType::List(item), Some(Value::Array(items))) => self.list(item, items),
            (FieldType::Map(item), Some(Value::Object(map))) => self.map(item, map),
            (FieldType::Struct(kind), None) => self.object(kind, &Map::new()),
            (FieldType::Struct(kind), Some(Value::Object(map))) => self.object(kind, map),
            (_, Some(value)) => self.json(value),
        }
    }

    fn list(&mut self, item: &FieldType, items: &[Value]) {
        if items.is_empty() && self.dialect == Dialect::Comparison {
            return self.sink.put(b"null");
        }
        self.sink.put(b"[");
        for (index, value) in items.iter().enumerate() {
            self.separate(index == 0);
            self.value(item, Some(value).filter(|value| !value.is_null()));
        }
        self.sink.put(b"]");
    }

    /// Maps of quantities are resource lists.
    fn map(&mut self, item: &FieldType, map: &Map<String, Value>) {
        self.sink.put(b"{");
        for (index, (key, value)) in map.iter().enumerate() {
            self.separate(index == 0);
            self.text(key);
            self.sink.put(b":");
            let value = Some(value).filter(|value| !value.is_null());
            match item {
                FieldType::Quantity => self.quantity(value, Rounding::UpToMilli),
                _ => self.value(item, value),
            }
        }
        self.sink.put(b"}");
    }

    fn object(&mut self, kind: &Struct, map: &Map<String, Value>) {
        let mut given = [None; FIELDS_LIMIT];
        let mut open = kind.speaking;
        for (key, value) in map {
            let position = kind.fields.iter().position(|field| field.key == key);
            let Some(index) = position else { continue };
            if !is_absent(&kind.fields[index].kind, value) {
                given[index] = Some(value);
                open |= 1 << index;
            }
        }
        self.sink.put(b"{");
        let mut first = true;
        while open != 0 {
            let index = open.trailing_zeros() as usize;
            open &= open - 1;
            let field = &kind.fields[index];
            let content = self.content(field, given[index], map);
            if matches!(content, Content::Nothing) {
                continue;
            }
            match self.dialect {
                // Its place tells a field from the others, and is no sign of JSON.
                Dialect::Comparison => self.sink.put(&[0x80 | index as u8]),
                Dialect::Current | Dialect::Legacy => {
                    self.sink.put(&field.opening.as_bytes()[usize::from(first)..]);
                }
            }
            first = false;
            match content {
                Content::Nothing => {}
                Content::Value(value) => self.value(&field.kind, value),
                Content::Text(text) => self.text(text),
                Content::Json(json) => self.sink.put(json.as_bytes()),
            }
        }
        self.sink.put(b"}");
    }

    fn content<'v>(
        &self,
        field: &Field,
        given: Option<&'v Value>,
        map: &'v Map<String, Value>,
    ) -> Content<'v> {
        let is_comparison = self.dialect == Dialect::Comparison;
        if is_comparison && matches!(field.compared, Compared::Apart) {
            return Content::Nothing;
        }
        if given.is_some_and(|value| field.when != When::NotZero || !is_zero(value)) {
            return Content::Value(given);
        }
        let filled = if is_comparison { filled_in(field.compared, map) } else { Content::Nothing };
        match (filled, field.when) {
            (Content::Nothing, When::Always) => Content::Value(None),
            (Content::Nothing, When::AlwaysOrNull) => Content::Json("null"),
            (_, When::GivenOrLegacyNull) if self.dialect == Dialect::Legacy => {
                Content::Json("null")
            }
            (filled, _) => filled,
        }
    }

    fn separate(&mut self, first: bool) {
        if !first {
            self.sink.put(b",");
        }
    }

    fn quantity(&mut self, value: Option<&Value>, rounding: Rounding) {
        let mut typed = String::new();
        let text = match value {
            None => "0",
            Some(Value::String(text)) => text.trim(),
            Some(Value::Number(number)) => {
                write_number(&mut typed, number).expect("a String takes every number");
                &typed
            }
            Some(other) => return self.json(other),
        };
        if self.dialect != Dialect::Comparison {
            return self.text(&quantity::print(text));
        }
        // What is no quantity equals only the same text.
        let Ok(parsed) = Quantity::parse(text) else { return self.text(text) };
        let parsed = match rounding {
            Rounding::Exact => parsed,
            Rounding::UpToMilli => parsed.rounded_up_to_milli(),
        };
        let (sign, mantissa, exponent) = parsed.value();
        write!(Formatter(self.sink), "{sign}{mantissa}e{exponent}").expect("a sink never fails");
    }

    fn json(&mut self, value: &Value) {
        match value {
            Value::Null => self.sink.put(b"null"),
            Value::Bool(true) => self.sink.put(b"true"),
            Value::Bool(false) => self.sink.put(b"false"),
            Value::Number(number) => {
                write_number(&mut Formatter(self.sink), number).expect("a sink never fails");
            }
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                self.sink.put(b"[");
                for (index, item) in items.iter().enumerate() {
                    self.separate(index == 0);
                    self.json(item);
                }
                self.sink.put(b"]");
            }
            Value::Object(map) => {
                self.sink.put(b"{");
                for (index, (key, item)) in map.iter().enumerate() {
                    self.separate(index == 0);
                    self.text(key);
                    self.sink.put(b":");
                    self.json(item);
                }
                self.sink.put(b"}");
            }
        }
    }

    /// Go escapes what HTML or JavaScript could stumble over as well. In a comparison the length
    /// says where a text ends.
    fn text(&mut self, text: &str) {
        if self.dialect == Dialect::Comparison {
            self.sink.put(&((text.len() as u64) << 8 | u64::from(b'"')).to_le_bytes());
            return self.sink.put(text.as_bytes());
        }
        self.sink.put(b"\"");
        let bytes = text.as_bytes();
        let mut written = 0;
        for (index, byte) in bytes.iter().enumerate() {
            if !IS_SPECIAL[usize::from(*byte)] {
                continue;
            }
            let length = match bytes[index..] {
                [0xe2, 0x80, 0xa8 | 0xa9, ..] => 3,
                [0xe2, ..] => continue,
                _ => 1,
            };
            self.sink.put(&bytes[written..index]);
            self.escape(&bytes[index..index + length]);
            written = index + length;
        }
        self.sink.put(&bytes[written..]);
        self.sink.put(b"\"");
    }

    fn escape(&mut self, bytes: &[u8]) {
        match bytes {
            [b'"'] => self.sink.put(b"\\\""),
            [b'\\'] => self.sink.put(b"\\\\"),
            [b'\n'] => self.sink.put(b"\\n"),
            [b'\r'] => self.sink.put(b"\\r"),
            [b'\t'] => self.sink.put(b"\\t"),
            [0x08] => self.sink.put(b"\\b"),
            [0x0c] => self.sink.put(b"\\f"),
            [byte] => write!(Formatter(self.sink), "\\u{byte:04x}").expect("a sink never fails"),
            [.., 0xa8] => self.sink.put(b"\\u2028"),
            _ => self.sink.put(b"\\u2029"),
        }
    }
}

/// Bytes that are escaped or, in the case of 0xe2, may begin a letter that is.
const IS_SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = byte < 0x20 || matches!(byte as u8, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2);
        byte += 1;
    }
    table
};

/// What is written for a field.
enum Content<'a> {
    Nothing,
    /// This value, or zero.
    Value(Option<&'a Value>),
    Text(&'static str),
    Json(&'static str),
}

/// What the API server would fill in where nothing is given.
fn filled_in(compared: Compared, map: &Map<String, Value>) -> Content<'_> {
    let sibling = |key| map.get(key).filter(|value| !is_zero(value));
    match compared {
        Compared::AsGiven | Compared::Apart => Content::Nothing,
        Compared::OrText(text) => Content::Text(text),
        Compared::OrJson(json) => Content::Json(json),
        Compared::OrSameAs(key) => match sibling(key) {
            Some(value) => Content::Value(Some(value)),
            None => Content::Nothing,
        },
        Compared::OrPullPolicyOf(key) => {
            let image = sibling(key).and_then(Value::as_str).unwrap_or_default();
            Content::Text(if is_latest(image) { "Always" } else { "IfNotPresent" })
        }
        Compared::OrEmptyIfAlone => {
            let is_alone = map.iter().all(|(key, value)| key == "name" || value.is_null());
            if is_alone { Content::Json("{}") } else { Content::Nothing }
        }
    }
}

#[derive(Clone, Copy)]
enum Rounding {
    Exact,
    UpToMilli,
}

/// Go writes 1.0 as `1`, and very large or small numbers with an exponent.
fn write_number(out: &mut impl fmt::Write, number: &Number) -> fmt::Result {
    if let Some(number) = number.as_u64() {
        return write_digits(out, number);
    }
    if number.is_i64() {
        return write!(out, "{number}");
    }
    let float = number.as_f64().unwrap_or_default();
    match float.abs() {
        size if size >= 1e21 => {
            let text = format!("{float:e}");
            out.write_str(&text.replace('e', "e+"))
        }
        size if size != 0.0 && size < 1e-6 => write!(out, "{float:e}"),
        _ => write!(out, "{float}"),
    }
}

/// Most numbers are small and whole, and general formatting is slow.
fn write_digits(out: &mut impl fmt::Write, number: u64) -> fmt::Result {
    const LONGEST: usize = 20;
    let mut digits = [b'0'; LONGEST];
    let (mut at, mut left) = (LONGEST - 1, number);
    while left > 9 {
        digits[at] += (left % 10) as u8;
        left /= 10;
        at -= 1;
    }
    digits[at] += left as u8;
    out.write_str(str::from_utf8(&digits[at..]).expect("digits are text"))
}

/// Lets `write!` print into a sink without a string in between.
struct Formatter<'a, S: Sink>(&'a mut S);

impl<S: Sink> fmt::Write for Formatter<'_, S> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.put(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::order::ObjectMeta;
    use super::*;

    fn encoded(kind: &FieldType, value: &Value) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes, Dialect::Current, kind, Some(value));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn text_is_escaped_as_go_does() {
        let cases = [
            ("plain", "a/b é", "a/b é"),
            ("quotes and backslashes", "\"\\", r#"\"\\"#),
            ("short escapes", "\n\r\t\u{8}\u{c}", r"\n\r\t\b\f"),
            ("other control characters", "\u{0}\u{1f}\u{7f}", "\\u0000\\u001f\u{7f}"),
            ("what HTML could read", "<a>&", r"\u003ca\u003e\u0026"),
            ("JavaScript's line ends", "x\u{2028}\u{2029}y", r"x\u2028\u2029y"),
            ("their neighbours", "\u{2027}\u{202a}", "\u{2027}\u{202a}"),
        ];
        for (what, text, expected) in cases {
            assert_eq!(
                encoded(&FieldType::Text, &json!(text)),
                format!("\"{expected}\""),
                "{what}"
            );
        }
    }

    #[test]
    fn numbers_are_written_as_go_does() {
        let cases = [
            ("whole", json!(30), "30"),
            ("negative", json!(-7), "-7"),
            ("largest", json!(u64::MAX), "18446744073709551615"),
            ("a whole float", json!(1.0), "1"),
            ("a fraction", json!(0.25), "0.25"),
            ("tiny", json!(1e-7), "1e-7"),
            ("huge", json!(1e21), "1e+21"),
            // Read to its last digit: `float_roundtrip` of serde_json.
            ("long", serde_json::from_str("123456789.12345679").unwrap(), "123456789.12345679"),
        ];
        for (what, number, expected) in cases {
            assert_eq!(encoded(&FieldType::Json, &number), expected, "{what}");
        }
    }

    #[test]
    fn times_are_written_in_utc_and_whole_seconds() {
        let cases = [
            ("as stored", "2026-08-17T10:11:12Z", "2026-08-17T10:11:12Z"),
            ("another zone", "2026-08-17T10:11:12+02:00", "2026-08-17T08:11:12Z"),
            ("a fraction", "2026-08-17T10:11:12.987Z", "2026-08-17T10:11:12Z"),
            ("no time", "yesterday", "yesterday"),
        ];
        for (what, text, expected) in cases {
            assert_eq!(
                encoded(&FieldType::Time, &json!(text)),
                format!("\"{expected}\""),
                "{what}"
            );
        }
    }

    #[test]
    fn the_time_of_zero_is_no_time() {
        let meta =
            json!({"creationTimestamp": "0001-01-01T00:00:00Z", "name": "0001-01-01T00:00:00Z"});
        let expected = r#"{"name":"0001-01-01T00:00:00Z"}"#;
        assert_eq!(encoded(&FieldType::Struct(ObjectMeta), &meta), expected);
    }

    #[test]
    fn free_json_keeps_its_zeros_and_sorts_its_keys() {
        let value = json!({"b": [null, {}, false], "a": {"z": 0, "<": ""}});
        let expected = r#"{"a":{"\u003c":"","z":0},"b":[null,{},false]}"#;
        assert_eq!(encoded(&FieldType::Json, &value), expected);
    }
}
