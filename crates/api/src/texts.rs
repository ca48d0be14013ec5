//! How are labels kept, of which an object has a few, and there are thousands of objects? Sorted, in one
//! piece: a tree takes half a kilobyte for a single one.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::schema::Schema;

/// Texts by name: labels or annotations.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Texts(Box<[(Box<str>, Box<str>)]>);

impl Texts {
    /// The text of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (&**name, &**text))
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same with one more, or another one of this name.
    pub fn with(&self, name: &str, text: &str) -> Self {
        self.iter().filter(|(known, _)| *known != name).chain([(name, text)]).collect()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Texts {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(texts: I) -> Self {
        // The last of a name counts, as in any map.
        let sorted: BTreeMap<&str, &str> = texts.into_iter().collect();
        Texts(sorted.into_iter().map(|(name, text)| (name.into(), text.into())).collect())
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for Texts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
        Ok(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect())
    }
}

impl Schema for Texts {
    fn schema() -> Value {
        BTreeMap::<String, String>::schema()
    }
}

#[test]
fn texts_are_found_by_name_and_come_back_from_json() {
    let texts: Texts = [("b", "2"), ("a", "1"), ("b", "3")].into_iter().collect();
    assert_eq!(texts.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "3")]);
    assert_eq!((texts.get("b"), texts.get("c")), (Some("3"), None));
    let more = texts.with("a", "0").with("c", "4");
    assert_eq!(serde_json::to_string(&more).unwrap(), r#"{"a":"0","b":"3","c":"4"}"#);
    let text = serde_json::to_string(&texts).unwrap();
    assert_eq!(serde_json::from_str::<Texts>(&text).unwrap(), texts);
    assert!(Texts::default().is_empty());
}
