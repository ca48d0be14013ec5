//! The Go types of the arguments: which fields travel, under which name, in which shape.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The shape of a value on the wire.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    Text,
    Int,
    Bool,
    Bytes,
    Time,
    /// A number or a text, which Go has a struct for.
    IntOrString,
    Struct(&'static str),
    List(Box<Shape>),
    Map(Box<Shape>),
}

/// One field of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Its name in Go.
    pub name: &'static str,
    /// Its name in JSON; empty where its own fields stand in the parent's JSON.
    pub json: String,
    pub shape: Shape,
    /// An absent struct is not sent.
    pub is_pointer: bool,
}

/// All types by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    types: BTreeMap<&'static str, Vec<Field>>,
}

impl Schema {
    /// The types of Argo Rollouts.
    pub fn argo() -> &'static Schema {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| Schema::parse(include_str!("schema/types.txt")))
    }

    pub fn parse(text: &'static str) -> Schema {
        let mut schema = Schema::default();
        let mut current = None;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            if !line.starts_with(' ') {
                current = words.next();
            }
            let Some(name) = current else { continue };
            schema.types.entry(name).or_default().extend(words.map(field));
        }
        schema.types.insert(
            "IntOrString",
            ["Type:i", "IntVal:i", "StrVal:s"].into_iter().map(field).collect(),
        );
        schema
    }

    /// The fields of a struct.
    pub fn fields(&self, name: &str) -> &[Field] {
        self.types.get(name).map_or(&[], Vec::as_slice)
    }
}

fn field(word: &'static str) -> Field {
    let (name, kind) = word.split_once(':').unwrap_or((word, "s"));
    let (name, json) = match name.split_once('(') {
        Some((name, json)) => (name, json.trim_end_matches(')').replace('.', "")),
        None => {
            let (first, rest) = name.split_at(1);
            (name, format!("{}{rest}", first.to_lowercase()))
        }
    };
    let is_pointer = kind.ends_with('?');
    Field { name, json, shape: shape(kind.trim_end_matches('?')), is_pointer }
}

fn shape(kind: &'static str) -> Shape {
    let inner = |open, close| kind.strip_prefix(open)?.strip_suffix(close);
    match kind {
        "s" => Shape::Text,
        "i" => Shape::Int,
        "b" => Shape::Bool,
        "y" => Shape::Bytes,
        "t" => Shape::Time,
        "IOS" => Shape::IntOrString,
        _ => match (inner('[', ']'), inner('{', '}')) {
            (Some(kind), _) => Shape::List(Box::new(shape(kind))),
            (_, Some(kind)) => Shape::Map(Box::new(shape(kind))),
            (None, None) => Shape::Struct(kind),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_struct_that_a_field_names_is_there() {
        fn check(schema: &Schema, shape: &Shape, place: &str) {
            match shape {
                Shape::Struct(name) => {
                    assert!(schema.types.contains_key(name), "{place}: no type {name}");
                }
                Shape::List(inner) | Shape::Map(inner) => check(schema, inner, place),
                _ => {}
            }
        }
        let schema = Schema::argo();
        for (name, fields) in &schema.types {
            for field in fields {
                check(schema, &field.shape, &format!("{name}.{}", field.name));
            }
        }
        assert_eq!(schema.types.len(), 238);
    }

    #[test]
    fn names_follow_the_rule_unless_the_table_says_otherwise() {
        let cases = [
            ("ObjectMeta", "UID", "uid"),
            ("ObjectMeta", "ResourceVersion", "resourceVersion"),
            ("Rollout", "TypeMeta", ""),
            ("Rollout", "ObjectMeta", "metadata"),
            ("RolloutStatus", "HPAReplicas", "HPAReplicas"),
            ("RolloutStatus", "StableRS", "stableRS"),
            ("Volume", "VolumeSource", ""),
        ];
        for (owner, name, json) in cases {
            let found = Schema::argo().fields(owner).iter().find(|field| field.name == name);
            assert_eq!(found.map(|field| field.json.as_str()), Some(json), "{owner}.{name}");
        }
    }
}
