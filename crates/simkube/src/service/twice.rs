//! Which fields does a JSON document name more than once? A strict writer is told; for others the
//! last one counts.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Their paths, in the order of the document. One that cannot be read has none: whoever reads it
/// says so.
pub fn duplicates(document: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(document);
    let read = Visited { path: String::new(), found: &mut found }.deserialize(&mut reader);
    if read.is_ok() { found } else { Vec::new() }
}

/// One value of the document.
struct Visited<'a> {
    path: String,
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Visited<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Visited<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any value")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<(), M::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            let dot = if self.path.is_empty() { "" } else { "." };
            let path = format!("{}{dot}{name}", self.path);
            if !names.insert(name) {
                self.found.push(path.clone());
            }
            fields.next_value_seed(Visited { path, found: &mut *self.found })?;
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<(), S::Error> {
        for at in 0.. {
            let path = format!("{}[{at}]", self.path);
            let item = Visited { path, found: &mut *self.found };
            if items.next_element_seed(item)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_there_twice_are_found_wherever_they_are() {
        let cases = [
            (r#"{"a": 1, "b": {"a": 2}}"#, vec![]),
            (r#"{"a": 1, "a": 2}"#, vec!["a"]),
            (r#"{"l": [{"x": 1}, {"x": 1, "y": null, "x": true}]}"#, vec!["l[1].x"]),
            (r#"{"b": {"c": "", "c": []}, "b": 1.5}"#, vec!["b.c", "b"]),
            (r#"{"a": 1, "a": 2"#, vec![]),
            ("7", vec![]),
        ];
        for (document, expected) in cases {
            assert_eq!(duplicates(document.as_bytes()), expected, "{document}");
        }
    }
}
