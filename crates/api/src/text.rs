//! How is a text kept that is copied far more often than it is made? Known to the program, or shared.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::names::{condition, condition_status, message, reason};

/// What most statuses say. Thousands of rollouts are kept in memory; these texts once for all.
const COMMON: [&str; 19] = [
    "",
    condition_status::TRUE,
    condition_status::FALSE,
    condition_status::UNKNOWN,
    condition::PROGRESSING,
    condition::AVAILABLE,
    condition::PAUSED,
    condition::COMPLETED,
    condition::HEALTHY,
    reason::AVAILABLE,
    reason::ROLLOUT_COMPLETED,
    reason::ROLLOUT_HEALTHY,
    reason::NEW_REPLICA_SET_AVAILABLE,
    reason::REPLICA_SET_UPDATED,
    message::AVAILABLE,
    message::UNAVAILABLE,
    message::HEALTHY,
    message::UNHEALTHY,
    message::PAUSED,
];

/// A text that costs nothing to copy: a status is copied on every pass, and few of its texts change.
#[derive(Clone)]
pub struct Text(Kept);

#[derive(Clone)]
enum Kept {
    Known(&'static str),
    Shared(Arc<str>),
}

impl Text {
    /// A text from outside.
    fn read(text: &str) -> Self {
        let common = COMMON.iter().find(|common| **common == text);
        Text(common.map_or_else(|| Kept::Shared(text.into()), |common| Kept::Known(common)))
    }

    /// The text itself.
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Kept::Known(text) => text,
            Kept::Shared(text) => text,
        }
    }
}

impl Default for Text {
    #[inline]
    fn default() -> Self {
        Text(Kept::Known(""))
    }
}

impl Deref for Text {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&'static str> for Text {
    #[inline]
    fn from(text: &'static str) -> Self {
        Text(Kept::Known(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text(Kept::Shared(text.into()))
    }
}

impl From<fmt::Arguments<'_>> for Text {
    fn from(text: fmt::Arguments<'_>) -> Self {
        match text.as_str() {
            Some(known) => Text(Kept::Known(known)),
            None => text.to_string().into(),
        }
    }
}

impl From<&Arc<str>> for Text {
    #[inline]
    fn from(text: &Arc<str>) -> Self {
        Text(Kept::Shared(Arc::clone(text)))
    }
}

impl PartialEq for Text {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        *self == *other.as_str()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    #[inline]
    fn eq(&self, other: &str) -> bool {
        // Most texts that differ do so in length, and most equal texts are one text.
        let one = self.as_str();
        one.len() == other.len() && (std::ptr::eq(one, other) || one == other)
    }
}

impl PartialEq<&str> for Text {
    #[inline]
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq<Text> for &str {
    #[inline]
    fn eq(&self, other: &Text) -> bool {
        *other == **self
    }
}

impl PartialEq<String> for Text {
    #[inline]
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(formatter)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text::read(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_it_says_however_it_is_kept() {
        for word in ["Healthy", "more replicas need to be updated"] {
            let (known, json) = (Text::from(word), format!("{word:?}"));
            let read: Text = serde_json::from_str(&json).unwrap();
            assert_eq!(known, read);
            assert_eq!(read, word);
            assert_eq!(read, word.to_owned());
            assert_eq!(serde_json::to_string(&read).unwrap(), json);
            assert_eq!(format!("{read} {read:?}"), format!("{word} {json}"));
            assert_ne!(known, Text::default());
        }
    }
}
