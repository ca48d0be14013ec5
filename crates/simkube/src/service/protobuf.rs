//! Kubernetes' protobuf bodies, which typed clients send (`kubectl create`), read into JSON.
//!
//! `protobuf.txt` has a line per message: its name, then `number:name:type` per field. Types are
//! `s` text, `i` integer, `b` boolean, `f` float, `y` bytes, `t` and `u` times, `q` quantity,
//! `o` integer or text, `r` JSON, or the name of a message; `[]` is a list, `{}` a map, `=` means
//! that a zero is meant, and the name `-` that the fields belong to the enclosing object.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// What every such body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Deeper nesting than any kind has; keeps a hostile body from exhausting the stack.
const MAX_DEPTH: u32 = 40;

/// The body is not what it says it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// It does not begin as such a body does.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Prefix,
    /// It ends too early, or a length in it is wrong.
    #[error("proto: unexpected EOF")]
    Truncated,
    /// It is of a kind that is not known here.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    KindInfo {
        /// The `apiVersion` it names.
        api_version: String,
        /// The `kind` it names.
        kind: String,
    },
}

/// Reads a body: envelope, then the object in it.
pub fn read(body: &[u8]) -> Result<Value, ProtobufError> {
    let rest = body.strip_prefix(MAGIC).ok_or(ProtobufError::Prefix)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &b""[..]);
    for field in Fields(rest) {
        match field? {
            (1, Wire::Bytes(type_meta)) => {
                for field in Fields(type_meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = as_text(text),
                        (2, Wire::Bytes(text)) => kind = as_text(text),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let Some(message) = message_of(&api_version, &kind) else {
        return Err(ProtobufError::KindInfo { api_version, kind });
    };
    let mut object = message_fields(message, raw, 0)?;
    object.insert("apiVersion".into(), json!(api_version));
    object.insert("kind".into(), json!(kind));
    Ok(Value::Object(object))
}

struct Row {
    number: u64,
    name: &'static str,
    is_list: bool,
    is_map: bool,
    keeps_zero: bool,
    kind: &'static str,
}

static MESSAGES: LazyLock<BTreeMap<&str, Vec<Row>>> = LazyLock::new(|| {
    let lines = include_str!("protobuf.txt").lines();
    let messages = lines.filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, words.filter_map(row).collect()))
    });
    messages.collect()
});

fn row(text: &'static str) -> Option<Row> {
    let mut parts = text.splitn(3, ':');
    let number = parts.next()?.parse().ok()?;
    let name = parts.next()?;
    let kind = parts.next()?;
    let (keeps_zero, kind) = strip(kind, "=");
    let (is_list, kind) = strip(kind, "[]");
    let (is_map, kind) = strip(kind, "{}");
    Some(Row { number, name, is_list, is_map, keeps_zero, kind })
}

fn strip(text: &'static str, prefix: &str) -> (bool, &'static str) {
    match text.strip_prefix(prefix) {
        Some(rest) => (true, rest),
        None => (false, text),
    }
}

/// The message of a kind: the first word of its group, or `core`, or `meta` for options.
fn message_of(api_version: &str, kind: &str) -> Option<&'static [Row]> {
    let group = api_version.rsplit_once('/').map_or("core", |(group, _)| group);
    let package = group.split('.').next().unwrap_or_default();
    let find = |package: &str| MESSAGES.get(format!("{package}.{kind}").as_str());
    find(package).or_else(|| find("meta")).map(Vec::as_slice)
}

fn message_fields(
    rows: &[Row],
    bytes: &[u8],
    depth: u32,
) -> Result<Map<String, Value>, ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::Truncated);
    }
    let mut object = Map::new();
    for field in Fields(bytes) {
        let (number, wire) = field?;
        let Some(row) = rows.iter().find(|row| row.number == number) else {
            continue;
        };
        if row.is_map {
            let (key, value) = entry(row, wire, depth)?;
            if let Some(map) = object.entry(row.name).or_insert_with(|| json!({})).as_object_mut() {
                map.insert(key, value);
            }
            continue;
        }
        let value = value(row.kind, wire, depth)?;
        match value {
            Value::Object(inside) if row.name == "-" => object.extend(inside),
            value if row.is_list => {
                if let Some(list) =
                    object.entry(row.name).or_insert_with(|| json!([])).as_array_mut()
                {
                    list.push(value);
                }
            }
            value if value.is_null() || (!row.keeps_zero && is_zero(&value)) => {}
            value => {
                object.insert(row.name.to_owned(), value);
            }
        }
    }
    Ok(object)
}

fn entry(row: &Row, wire: Wire<'_>, depth: u32) -> Result<(String, Value), ProtobufError> {
    let Wire::Bytes(bytes) = wire else {
        return Err(ProtobufError::Truncated);
    };
    let (mut key, mut found) = (String::new(), None);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Bytes(text)) => key = as_text(text),
            (2, wire) => found = Some(value(row.kind, wire, depth)?),
            _ => {}
        }
    }
    Ok((key, found.unwrap_or_else(|| json!(""))))
}

fn value(kind: &str, wire: Wire<'_>, depth: u32) -> Result<Value, ProtobufError> {
    Ok(match (kind, wire) {
        ("i", Wire::Number(number)) => json!(number.cast_signed()),
        ("b", Wire::Number(number)) => json!(number != 0),
        ("f", Wire::Number(number)) => json!(f64::from_bits(number)),
        ("s", Wire::Bytes(text)) => json!(as_text(text)),
        ("y", Wire::Bytes(bytes)) => json!(base64(bytes)),
        ("t", Wire::Bytes(bytes)) => time(bytes, false)?,
        ("u", Wire::Bytes(bytes)) => time(bytes, true)?,
        ("q", Wire::Bytes(bytes)) => json!(as_text(only_bytes(bytes)?)),
        ("o", Wire::Bytes(bytes)) => integer_or_text(bytes)?,
        ("r", Wire::Bytes(bytes)) => {
            serde_json::from_slice(only_bytes(bytes)?).unwrap_or(Value::Null)
        }
        (name, Wire::Bytes(bytes)) => match MESSAGES.get(name) {
            Some(rows) => Value::Object(message_fields(rows, bytes, depth + 1)?),
            None => Value::Null,
        },
        (_, Wire::Number(_)) => return Err(ProtobufError::Truncated),
    })
}

fn time(bytes: &[u8], is_micro: bool) -> Result<Value, ProtobufError> {
    let (mut seconds, mut nanoseconds) = (0, 0);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Number(number)) => seconds = number.cast_signed(),
            (2, Wire::Number(number)) => nanoseconds = i32::try_from(number).unwrap_or_default(),
            _ => {}
        }
    }
    // The zero time of Go lies in the year 1; both mean that there is none.
    let moment = Timestamp::new(seconds, nanoseconds).ok().filter(|_| seconds > 0);
    Ok(moment.map_or(Value::Null, |moment| match is_micro {
        true => json!(format!("{moment:.6}")),
        false => json!(format!("{moment:.0}")),
    }))
}

fn integer_or_text(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Number(kind)) => is_text = kind == 1,
            (2, Wire::Number(found)) => number = found.cast_signed(),
            (3, Wire::Bytes(found)) => text = as_text(found),
            _ => {}
        }
    }
    Ok(if is_text { json!(text) } else { json!(number) })
}

/// The one bytes field of a message that wraps just that.
fn only_bytes(bytes: &[u8]) -> Result<&[u8], ProtobufError> {
    for field in Fields(bytes) {
        if let (1, Wire::Bytes(found)) = field? {
            return Ok(found);
        }
    }
    Ok(b"")
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn as_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |place: usize| u32::from(group.get(place).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { letter.into() } else { '=' });
        }
    }
    text
}

/// A field's content on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, in their order: number and content.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Wire<'a>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or(ProtobufError::Truncated))
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Wire<'a>)> {
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Number(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some((tag >> 3, wire))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta =
            [bytes_field(1, api_version.as_bytes()), bytes_field(2, kind.as_bytes())].concat();
        [MAGIC, &bytes_field(1, &type_meta), &bytes_field(2, raw)].concat()
    }

    #[test]
    fn a_secret_is_read() {
        let metadata = [bytes_field(1, b"a"), bytes_field(2, b""), bytes_field(8, b"")].concat();
        let entry = [bytes_field(1, b"key"), bytes_field(2, b"hi")].concat();
        let raw = [bytes_field(1, &metadata), bytes_field(2, &entry), bytes_field(3, b"")].concat();
        assert_eq!(
            read(&body("v1", "Secret", &raw)),
            Ok(json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
                "data": {"key": "aGk="},
            }))
        );
    }

    #[test]
    fn zeros_are_kept_where_they_are_meant() {
        let spec = [&[1 << 3, 0, 5 << 3, 0][..]].concat();
        let raw = bytes_field(2, &spec);
        let found = read(&body("apps/v1", "Deployment", &raw)).unwrap();
        assert_eq!(found["spec"], json!({"replicas": 0}));
    }

    #[test]
    fn fields_of_inlined_messages_belong_to_the_enclosing_object() {
        let source = bytes_field(2, b"");
        let volume = [bytes_field(1, b"v"), bytes_field(2, &source)].concat();
        let raw = bytes_field(2, &bytes_field(1, &volume));
        let found = read(&body("v1", "Pod", &raw)).unwrap();
        assert_eq!(found["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
    }

    #[test]
    fn what_is_no_such_body_is_refused() {
        assert_eq!(read(b"{}"), Err(ProtobufError::Prefix));
        assert_eq!(read(b"k8s\0\x0a\xff"), Err(ProtobufError::Truncated));
        assert!(matches!(read(&body("v1", "Frob", b"")), Err(ProtobufError::KindInfo { .. })));
    }

    #[test]
    fn every_message_that_is_named_is_there() {
        for (name, rows) in MESSAGES.iter() {
            for row in rows.iter().filter(|row| row.kind.contains('.')) {
                assert!(MESSAGES.contains_key(row.kind), "{name}.{} is a {}", row.name, row.kind);
            }
        }
        assert!(MESSAGES.len() > 200);
    }
}
