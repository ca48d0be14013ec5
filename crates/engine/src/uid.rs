//! A Kubernetes uid in sixteen bytes.

use serde::{Deserialize, Serialize};
use siphasher::sip128::SipHasher13;
use uuid::Uuid;

/// A uid. The API server hands out UUIDs; any other text is kept as a digest, which equals itself
/// and nothing else but prints as something the server never issued (a precondition then fails).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(from = "String", into = "String")]
pub struct Uid(Uuid);

impl Uid {
    /// Parses the text of `metadata.uid`.
    pub fn parse(text: &str) -> Self {
        Uid(canonical(text).unwrap_or_else(|| digest(text)))
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Self {
        Uid::parse(&text)
    }
}

impl From<Uid> for String {
    fn from(uid: Uid) -> Self {
        uid.to_string()
    }
}

impl std::fmt::Display for Uid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A UUID in the one form that prints as it was read: lower-case, with dashes.
fn canonical(text: &str) -> Option<Uuid> {
    let uuid = Uuid::try_parse(text).ok()?;
    let mut printed = Uuid::encode_buffer();
    (uuid.hyphenated().encode_lower(&mut printed) == text).then_some(uuid)
}

fn digest(text: &str) -> Uuid {
    Uuid::from_u128(SipHasher13::new().hash(text.as_bytes()).as_u128())
}

#[cfg(test)]
mod tests {
    use super::Uid;

    #[test]
    fn a_uuid_prints_as_it_was_read() {
        let text = "3f2a1c5e-0001-4abc-8def-00112233445a";
        assert_eq!(Uid::parse(text).to_string(), text);
    }

    #[test]
    fn a_text_that_is_no_uuid_prints_as_another() {
        let cases = [
            ("an upper-case digit", "3F2a1c5e-0001-4abc-8def-00112233445a"),
            ("a letter that is no digit", "3f2a1c5e-0001-4abc-8def-0011223344zz"),
            ("a digit for a dash", "3f2a1c5e000014abc-8def-00112233445a0"),
            ("a sign after the digits", "3f2a1c5e-0001-4abc-8def-0011223344:5"),
            ("a sign before the letters", "3f2a1c5e-0001-4abc-8def-0011223344`5"),
            ("a letter beyond them", "3f2a1c5e-0001-4abc-8def-0011223344o5"),
            ("one too short", "3f2a1c5e-0001-4abc-8def-00112233445"),
            ("no dashes", "3f2a1c5e00014abc8def00112233445a"),
            ("braces", "{3f2a1c5e-0001-4abc-8def-00112233445a}"),
            ("a URN", "urn:uuid:3f2a1c5e-0001-4abc-8def-00112233445a"),
        ];
        for (what, text) in cases {
            assert_ne!(Uid::parse(text).to_string(), text, "{what}");
            assert_eq!(Uid::parse(text), Uid::parse(text), "{what}");
        }
    }

    #[test]
    fn other_texts_are_told_apart() {
        assert_ne!(Uid::parse("a"), Uid::parse("b"));
        assert_eq!(Uid::parse("a"), Uid::parse("a"));
    }
}
