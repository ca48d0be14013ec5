//! Values that no log, status, Event, metric or World may show, in every form in which a server or a
//! plugin may give them back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gradus_engine::ask::secret::Encoding;
use serde_json::Value;

/// What stands in their place.
const SHOWN: &str = "*****";
/// A line of a longer secret, such as a key in PEM, is hidden by itself from so many bytes on.
const LINE_LEAST: usize = 8;

/// Values that nobody may see. Printing it shows none.
#[derive(Clone, Default)]
pub(crate) struct Hidden {
    /// The longest first: one may be part of another.
    forms: Vec<String>,
}

impl Hidden {
    /// Those of these values.
    pub fn of(values: impl IntoIterator<Item = String>) -> Self {
        let mut hidden = Hidden::default();
        values.into_iter().for_each(|value| hidden.add(&value));
        hidden
    }

    /// Hides one more value: as it is, as a form, a JSON string, a URL or a Basic header would carry
    /// it, and each of its lines.
    pub fn add(&mut self, value: &str) {
        let lines = value.lines().filter(|line| line.len() >= LINE_LEAST);
        for text in [value].into_iter().chain(lines) {
            let spaced = Encoding::Form.apply(text).replace('+', "%20");
            let encoded = [Encoding::Form.apply(text), Encoding::Json.apply(text), spaced];
            self.forms.extend(encoded);
            let ascii = in_ascii(&Encoding::Json.apply(text));
            self.forms.extend([text.to_owned(), STANDARD.encode(text), ascii]);
        }
        self.forms.retain(|form| !form.is_empty());
        self.forms.sort_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
        self.forms.dedup();
    }

    /// Hides what another one hides as well.
    pub fn join(&mut self, other: Hidden) {
        self.forms.extend(other.forms);
        self.forms.sort_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
        self.forms.dedup();
    }

    /// How many forms are hidden.
    pub fn len(&self) -> usize {
        self.forms.len()
    }

    /// A text in which none of them is left.
    pub fn clean(&self, text: &str) -> String {
        self.forms.iter().fold(text.to_owned(), |text, form| text.replace(form.as_str(), SHOWN))
    }

    /// The body of an answer in which none of them is left, nor will be once it is read: JSON can
    /// write any character as an escape.
    pub fn clean_body(&self, body: &str) -> String {
        let is_escaped = !self.forms.is_empty() && body.contains('\\');
        match is_escaped.then(|| serde_json::from_str::<Value>(body)) {
            Some(Ok(value)) => self.clean_value(value).to_string(),
            _ => self.clean(body),
        }
    }

    fn clean_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.clean(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.clean_value(item)).collect(),
            Value::Object(fields) => {
                let clean =
                    |(key, value): (String, Value)| (self.clean(&key), self.clean_value(value));
                Value::Object(fields.into_iter().map(clean).collect())
            }
            // A secret may be a number.
            Value::Number(number) => {
                let text = number.to_string();
                let clean = self.clean(&text);
                if clean == text { Value::Number(number) } else { Value::String(clean) }
            }
            other => other,
        }
    }
}

/// The inside of a JSON string as programs write it that send ASCII alone.
fn in_ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() {
            text.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            text.push_str(&format!("\\u{unit:04x}"));
        }
    }
    text
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hidden({} forms)", self.forms.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_hidden_in_every_form_in_which_it_may_come_back() {
        let hidden = Hidden::of(["s3 c\"r/t", "s3", "✓", ""].map(str::to_owned));
        let cases = [
            ("as it is", "said s3 c\"r/t.", "said *****."),
            ("as a form", "?q=s3+c%22r%2Ft&x", "?q=*****&x"),
            ("in a URL", "?q=s3%20c%22r%2Ft&x", "?q=*****&x"),
            ("in JSON", r#"{"a":"s3 c\"r/t"}"#, r#"{"a":"*****"}"#),
            ("in JSON of ASCII", r"clé \u2713", "clé *****"),
            ("in Base64", "Basic czMgYyJyL3Q=", "Basic *****"),
            ("a part of another", "s3", "*****"),
            ("nothing", "s 3", "s 3"),
        ];
        for (what, text, expected) in cases {
            assert_eq!(hidden.clean(text), expected, "{what}");
        }
        let escaped = r#"{"b":["\u00733 c\"r\/t",1.5],"\u00733":null}"#;
        assert_eq!(hidden.clean_body(escaped), r#"{"*****":null,"b":["*****",1.5]}"#);
        assert_eq!(hidden.clean_body("\\ no JSON s3"), "\\ no JSON *****");
        let number = Hidden::of(["4711".to_owned()]);
        assert_eq!(number.clean_body(r#"{"n":4711,"e":"\n"}"#), r#"{"e":"\n","n":"*****"}"#);
        assert_eq!(format!("{number:?}"), "Hidden(2 forms)");
    }

    #[test]
    fn a_line_of_a_key_is_hidden_by_itself() {
        let hidden = Hidden::of(["-----BEGIN\nMIIBVQIBADANBg\nend".to_owned()]);
        assert_eq!(hidden.clean("key: MIIBVQIBADANBg, end"), "key: *****, end");
    }
}
