//! How is an object of any shape read without ever failing?

mod bounded;

use std::sync::Arc;

use gradus_engine::frame::{Frame, Meta};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::version;
use bounded::Bounded;

/// An object as the server sent it. Its `Deserialize` fails only where the text is no object of
/// the Kubernetes API: one of an unexpected shape must not stop the watch of all others.
#[derive(Clone, Debug, Default)]
pub struct Tolerant(pub Frame);

impl<'de> Deserialize<'de> for Tolerant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor).map(Tolerant)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Frame;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a Kubernetes object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Frame, A::Error> {
        let mut frame = Frame::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => frame.meta = meta(map.next_value::<LooseMeta>()?.0),
                "spec" => frame.spec = Arc::new(map.next_value::<Bounded>()?.0),
                "status" => frame.status = Arc::new(map.next_value::<Bounded>()?.0),
                // A PodTemplate has no spec: its template is kept where all others have theirs.
                "template" => {
                    frame.spec = Arc::new(json!({ "template": map.next_value::<Bounded>()?.0 }))
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(frame)
    }
}

/// Metadata as raw fields, without `managedFields`, which is often half of an object's text.
struct LooseMeta(Map<String, Value>);

impl<'de> Deserialize<'de> for LooseMeta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetaVisitor).map(LooseMeta)
    }
}

struct MetaVisitor;

impl<'de> Visitor<'de> for MetaVisitor {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == "managedFields" {
                map.next_value::<IgnoredAny>()?;
            } else {
                fields.insert(key, map.next_value::<Bounded>()?.0);
            }
        }
        Ok(fields)
    }
}

/// The metadata; where it does not decode as a whole, the fields that do.
fn meta(fields: Map<String, Value>) -> Meta {
    let version = fields.get("resourceVersion").and_then(Value::as_str).map(version::number);
    Meta { version: version.unwrap_or_default(), ..decoded(fields) }
}

fn decoded(fields: Map<String, Value>) -> Meta {
    let whole = Value::Object(fields);
    if let Ok(meta) = Meta::deserialize(&whole) {
        return meta;
    }
    let Value::Object(mut fields) = whole else { return Meta::default() };
    fields.retain(|key, value| {
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        Meta::deserialize(&Value::Object(alone)).is_ok()
    });
    Meta::deserialize(Value::Object(fields)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Frame {
        serde_json::from_str::<Tolerant>(text).unwrap().0
    }

    #[test]
    fn a_wrong_field_costs_that_field_alone() {
        let cases = [
            ("labels that are no map", r#""labels":[1]"#),
            ("a label that is a number", r#""labels":{"x":1}"#),
            ("a bad time", r#""creationTimestamp":"soon""#),
            ("no namespace", r#""namespace":null"#),
            ("a number that is text", r#""generation":"x""#),
        ];
        for (what, field) in cases {
            let meta = format!(r#""name":"a","resourceVersion":"7",{field}"#);
            let frame = read(&format!(r#"{{"metadata":{{{meta}}},"spec":"hello"}}"#));
            assert_eq!((&*frame.meta.name, frame.meta.version), ("a", 7), "{what}");
        }
    }

    #[test]
    fn an_ordinary_object_is_read_whole() {
        let frame = read(
            r#"{"kind":"Rollout","spec":{"replicas":3},"status":{"phase":"Healthy"},"metadata":{
            "managedFields":[{"f":{}}],"name":"web","namespace":"shop","labels":{"a":"b"},
            "generation":4}}"#,
        );
        assert_eq!(&*frame.meta.namespace, "shop");
        assert_eq!(frame.meta.labels["a"], "b");
        assert_eq!(frame.meta.generation, 4);
        assert_eq!(frame.spec["replicas"], 3);
        assert_eq!(frame.status["phase"], "Healthy");
    }

    #[test]
    fn a_field_that_is_nested_too_deeply_costs_that_field_alone() {
        let nested =
            |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let read = |levels: usize| {
            let spec = format!(r#"{{"replicas":3,"template":{}}}"#, nested(levels));
            let object = format!(r#"{{"metadata":{{"name":"a"}},"spec":{spec}}}"#);
            // As deep as in a list, beside an ordinary one.
            let list = format!(r#"{{"items":[{object},{{"metadata":{{"name":"b"}}}}]}}"#);
            let list: std::collections::BTreeMap<String, Vec<Tolerant>> =
                serde_json::from_str(&list).unwrap();
            let [Tolerant(deep), Tolerant(other)] = &list["items"][..] else { panic!("two") };
            assert_eq!((&*deep.meta.name, &*other.meta.name), ("a", "b"));
            assert_eq!(deep.spec["replicas"], 3);
            deep.clone()
        };
        assert_eq!(read(90).spec["template"].to_string(), nested(90));
        for levels in [150, 5_000] {
            let deep = read(levels);
            assert_eq!(deep.spec["template"], "a value nested too deeply", "{levels}");
            let errors = &gradus_engine::world::RolloutView::read(&deep, None).spec.errors;
            assert!(errors.iter().any(|error| error.contains("spec.template")), "{errors:?}");
        }
    }

    #[test]
    fn versions_that_are_no_numbers_rise_as_they_arrive() {
        let version = |text: &str| {
            read(&format!(r#"{{"metadata":{{"name":"a","resourceVersion":"{text}"}}}}"#))
                .meta
                .version
        };
        let (earlier, later) = (version("zz-tolerant"), version("aa-tolerant"));
        assert!(version("7") < earlier && earlier < later);
        assert_eq!(version("zz-tolerant"), earlier);
    }

    #[test]
    fn an_object_without_metadata_is_an_empty_one() {
        assert_eq!(read("{}").meta.version, 0);
    }
}
