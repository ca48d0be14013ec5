//! Text that may contain secrets: only references to them are kept here. The executor reads the
//! values when it sends a request, and they never enter a World, a Decision or a trace.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Encloses a reference within a text, together with [`CLOSE`]. Both are noncharacters of Unicode:
/// [`unmarked`] removes them from what users write.
const OPEN: char = '\u{fdd0}';
/// See [`OPEN`].
const CLOSE: char = '\u{fdd1}';

/// Where the value of a reference is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SecretPlace {
    /// A Secret in the namespace of the object that asks.
    Own,
    /// A Secret in the namespace of the controller.
    Controller,
    /// An environment variable of the controller; `name` is empty and `key` is the variable.
    Environment,
}

/// One value that only the executor may see.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SecretRef {
    /// Where it is found.
    pub place: SecretPlace,
    /// Name of the Secret.
    pub name: String,
    /// Key within the Secret.
    pub key: String,
    /// Used instead where the Secret has no such key, or an empty one. Without it that is an error.
    pub or: Option<Box<SecretText>>,
    /// Texts to use instead of values, compared without case: `eu` → `https://api.eu.…`. Where the
    /// table is not empty, any other value is an error.
    pub table: Vec<(String, String)>,
    /// Variables that must be set as well; where one is not, this reference has no value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<String>,
    /// How the value is written into the text around it.
    pub encoding: Encoding,
}

/// How a value is written into the text around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Encoding {
    /// As it is.
    Raw,
    /// As the value of a form or of the query of a URL.
    Form,
    /// Inside a JSON string.
    Json,
}

impl SecretRef {
    /// A key of a Secret, or a variable of the environment.
    pub fn new(place: SecretPlace, name: &str, key: &str) -> Self {
        SecretRef {
            place,
            name: name.to_owned(),
            key: key.to_owned(),
            or: None,
            table: Vec::new(),
            along: Vec::new(),
            encoding: Encoding::Raw,
        }
    }

    /// The same, but of use only where these variables are set, too.
    pub fn along(self, variables: &[&str]) -> Self {
        SecretRef { along: variables.iter().map(|name| (*name).to_owned()).collect(), ..self }
    }

    /// The same with something to use where the key is missing.
    pub fn or(self, other: SecretText) -> Self {
        SecretRef { or: Some(Box::new(other)), ..self }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            SecretPlace::Own | SecretPlace::Controller => {
                write!(f, "<Secret {}, key {}>", self.name, self.key)
            }
            SecretPlace::Environment => write!(f, "<variable {}>", self.key),
        }
    }
}

impl fmt::Debug for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TextPart {
    /// As it stands.
    Plain(String),
    /// To be filled in by the executor.
    Secret(SecretRef),
}

/// A text of which some parts may be secrets. Printing shows the references alone.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SecretText(Vec<TextPart>);

/// Why a reference has no value.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum SecretError {
    /// There is no such Secret.
    #[error("secrets \"{0}\" not found")]
    NoSecret(String),
    /// The Secret has no such key.
    #[error("key '{key}' does not exist in secret '{name}'")]
    NoKey {
        /// Name of the Secret.
        name: String,
        /// The key.
        key: String,
    },
    /// The value is none of those that are known.
    #[error("{reference} must be one of {expected}")]
    Unexpected {
        /// The reference; its value is not shown.
        reference: String,
        /// The known values.
        expected: String,
    },
}

impl SecretText {
    /// A text without secrets.
    pub fn plain(text: impl Into<String>) -> Self {
        SecretText(vec![TextPart::Plain(text.into())])
    }

    /// A text that is one secret.
    pub fn secret(reference: SecretRef) -> Self {
        SecretText(vec![TextPart::Secret(reference)])
    }

    /// A text in which [`marker`]s stand for secrets.
    pub fn from_marked(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, reference, after)) = next_marker(rest) {
            if !before.is_empty() {
                parts.push(TextPart::Plain(before.to_owned()));
            }
            parts.push(TextPart::Secret(reference));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TextPart::Plain(rest.to_owned()));
        }
        SecretText(parts)
    }

    /// Its parts.
    pub fn parts(&self) -> &[TextPart] {
        &self.0
    }

    /// The same with more text behind it.
    pub fn then(mut self, more: impl Into<SecretText>) -> Self {
        self.0.extend(more.into().0);
        self
    }

    /// The same, written as this encoding asks: plain parts now, secrets by the executor.
    pub fn encoded(self, encoding: Encoding) -> Self {
        let parts = self.0.into_iter().map(|part| match part {
            TextPart::Plain(text) => TextPart::Plain(encoding.apply(&text)),
            TextPart::Secret(reference) => TextPart::Secret(SecretRef { encoding, ..reference }),
        });
        SecretText(parts.collect())
    }

    /// The same with its secrets written as this encoding asks; its plain parts are so already.
    pub fn with_secrets(self, encoding: Encoding) -> Self {
        let parts = self.0.into_iter().map(|part| match part {
            TextPart::Secret(reference) => TextPart::Secret(SecretRef { encoding, ..reference }),
            plain => plain,
        });
        SecretText(parts.collect())
    }

    /// Is there nothing in it?
    pub fn is_empty(&self) -> bool {
        let is_empty = |part: &TextPart| matches!(part, TextPart::Plain(text) if text.is_empty());
        self.0.iter().all(is_empty)
    }

    /// All references in it, those of fallbacks included.
    pub fn references(&self) -> Vec<&SecretRef> {
        let mut found = Vec::new();
        for part in &self.0 {
            let TextPart::Secret(reference) = part else { continue };
            found.push(reference);
            found.extend(reference.or.iter().flat_map(|or| or.references()));
        }
        found
    }

    /// The text with its secrets, for the executor alone. `value` gives the value of a reference, or
    /// `None` where the Secret lacks the key.
    pub fn resolve(
        &self,
        value: &mut dyn FnMut(&SecretRef) -> Result<Option<String>, SecretError>,
    ) -> Result<String, SecretError> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                TextPart::Plain(plain) => text.push_str(plain),
                TextPart::Secret(reference) => {
                    text.push_str(&reference.encoding.apply(&resolve(reference, value)?));
                }
            }
        }
        Ok(text)
    }
}

impl From<&str> for SecretText {
    fn from(text: &str) -> Self {
        SecretText::plain(text)
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        SecretText::plain(text)
    }
}

impl fmt::Display for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            TextPart::Plain(text) => f.write_str(text),
            TextPart::Secret(reference) => fmt::Display::fmt(reference, f),
        })
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl Encoding {
    /// The text as it is written there.
    pub fn apply(self, text: &str) -> String {
        match self {
            Encoding::Raw => text.to_owned(),
            Encoding::Form => form_encoded(text),
            Encoding::Json => {
                let quoted = serde_json::Value::from(text).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
        }
    }
}

/// A reference to a Secret of the run's own namespace, as it stands inside a text until the request
/// is built. [`SecretText::from_marked`] reads it.
pub fn marker(name: &str, key: &str) -> String {
    format!("{OPEN}{}/{}{CLOSE}", unmarked(name), unmarked(key))
}

/// A text of a user, which cannot contain a marker.
pub fn unmarked(text: &str) -> String {
    text.replace([OPEN, CLOSE], "\u{fffd}")
}

/// Does the text contain a marker?
pub fn has_marker(text: &str) -> bool {
    next_marker(text).is_some()
}

/// The text before the first marker, the reference, and the text after it.
fn next_marker(text: &str) -> Option<(&str, SecretRef, &str)> {
    let (before, rest) = text.split_once(OPEN)?;
    let (inside, after) = rest.split_once(CLOSE)?;
    let (name, key) = inside.split_once('/')?;
    Some((before, SecretRef::new(SecretPlace::Own, name, key), after))
}

fn resolve(
    reference: &SecretRef,
    value: &mut dyn FnMut(&SecretRef) -> Result<Option<String>, SecretError>,
) -> Result<String, SecretError> {
    let found = value(reference)?.filter(|found| !found.is_empty() || reference.or.is_none());
    let found = match (found, &reference.or) {
        (Some(found), _) => found,
        (None, Some(or)) => return or.resolve(value),
        (None, None) => {
            let (name, key) = (reference.name.clone(), reference.key.clone());
            return Err(SecretError::NoKey { name, key });
        }
    };
    if reference.table.is_empty() {
        return Ok(found);
    }
    let known = reference.table.iter().find(|(known, _)| known.eq_ignore_ascii_case(&found));
    match known {
        Some((_, text)) => Ok(text.clone()),
        None => {
            let expected: Vec<&str> = reference.table.iter().map(|(known, _)| &**known).collect();
            let (reference, expected) = (reference.to_string(), expected.join(", "));
            Err(SecretError::Unexpected { reference, expected })
        }
    }
}

/// As a value of `application/x-www-form-urlencoded`.
fn form_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &SecretText) -> Result<String, String> {
        let mut value = |reference: &SecretRef| match (&*reference.name, &*reference.key) {
            ("s", "token") => Ok(Some("a b\"&".to_owned())),
            ("s", "region") => Ok(Some("EU".to_owned())),
            ("s", "empty") => Ok(Some(String::new())),
            ("s", _) => Ok(None),
            (name, _) => Err(SecretError::NoSecret(name.to_owned())),
        };
        text.resolve(&mut value).map_err(|error| error.to_string())
    }

    fn key(key: &str) -> SecretRef {
        SecretRef::new(SecretPlace::Own, "s", key)
    }

    #[test]
    fn a_secret_is_filled_in_where_its_marker_stands() {
        let marked = format!("https://x/?q=1&t={}#z", marker("s", "token"));
        let text = SecretText::from_marked(&marked);
        assert_eq!(text.to_string(), "https://x/?q=1&t=<Secret s, key token>#z");
        let region = SecretRef { table: vec![("eu".into(), "europe".into())], ..key("region") };
        let odd = SecretRef { table: vec![("us".into(), "x".into())], ..key("region") };
        let elsewhere = SecretRef::new(SecretPlace::Own, "t", "k");
        let cases: Vec<(&str, SecretText, &str)> = vec![
            ("raw", text.clone(), "https://x/?q=1&t=a b\"&#z"),
            ("form", SecretText::secret(key("token")).encoded(Encoding::Form), "a+b%22%26"),
            ("json", SecretText::secret(key("token")).encoded(Encoding::Json), "a b\\\"&"),
            ("plain parts too", SecretText::plain("a b").encoded(Encoding::Form), "a+b"),
            ("no key", SecretText::secret(key("k")), "key 'k' does not exist in secret 's'"),
            ("no Secret", SecretText::secret(elsewhere), "secrets \"t\" not found"),
            ("a fallback", SecretText::secret(key("k").or("else".into())), "else"),
            ("for an empty value too", SecretText::secret(key("empty").or("e".into())), "e"),
            ("a table", SecretText::secret(region), "europe"),
            ("not in it", SecretText::secret(odd), "<Secret s, key region> must be one of us"),
        ];
        for (what, text, expected) in cases {
            assert_eq!(resolved(&text).unwrap_or_else(|error| error), expected, "{what}");
        }
    }

    #[test]
    fn what_is_printed_or_saved_shows_the_reference_alone() {
        let text = SecretText::plain("Bearer ").then(SecretText::secret(key("token")));
        assert_eq!(format!("{text:?}"), "\"Bearer <Secret s, key token>\"");
        let saved = serde_json::to_string(&text).unwrap();
        assert_eq!(serde_json::from_str::<SecretText>(&saved).unwrap(), text);
        assert_eq!(text.references(), [&key("token")]);
    }

    #[test]
    fn a_user_cannot_write_a_marker() {
        let forged = unmarked(&marker("other", "key"));
        assert!(!has_marker(&forged), "{forged}");
        let text = SecretText::from_marked(&forged);
        assert!(text.references().is_empty());
        let open = SecretText::from_marked("\u{fdd0}no end");
        assert_eq!(open.to_string(), "\u{fdd0}no end", "half a marker is text");
    }
}
