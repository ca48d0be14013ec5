//! Rows and columns: what `kubectl get` prints.

pub mod age;
mod built_in;
mod network;
mod pod;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Column, KindId, KindInfo, Kinds};
use crate::object::Object;
use crate::path::JsonPath;

/// How much of each object goes along with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

/// A `Table` of these objects.
pub fn table<'a>(
    kinds: &Kinds,
    id: KindId,
    objects: impl IntoIterator<Item = &'a Object>,
    metadata: Value,
    include: Include,
    now: Timestamp,
) -> Value {
    let documents = objects.into_iter().map(|object| object.to_json(kinds));
    filled(&columns(id, kinds.get(id)), documents, metadata, include, now)
}

/// A `Table` of a Scale.
pub fn scale(scale: Value, include: Include, now: Timestamp) -> Value {
    let mut columns = vec![built_in_column(built_in::NAME)];
    columns.extend(
        [
            ("Desired", "integer", ".spec.replicas"),
            ("Available", "integer", ".status.replicas"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ]
        .map(|(name, column_type, path)| {
            custom_column(&Column {
                name: name.into(),
                column_type: column_type.into(),
                json_path: path.into(),
                ..Column::default()
            })
        }),
    );
    let metadata = json!({"resourceVersion": scale["metadata"]["resourceVersion"]});
    filled(&columns, [scale], metadata, include, now)
}

fn filled(
    columns: &[Printed],
    documents: impl IntoIterator<Item = Value>,
    metadata: Value,
    include: Include,
    now: Timestamp,
) -> Value {
    let rows: Vec<Value> = documents
        .into_iter()
        .map(|document| {
            let cells: Vec<Value> =
                columns.iter().map(|column| column.cell.of(&document, now)).collect();
            let is_pod = document["kind"] == "Pod" && document["apiVersion"] == "v1";
            let conditions = is_pod.then(|| pod::conditions(&document)).flatten();
            let included = match include {
                Include::None => Value::Null,
                Include::Object => document,
                Include::Metadata => json!({
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": document["metadata"],
                }),
            };
            let mut row = json!({"cells": cells, "object": included});
            if let Some(conditions) = conditions {
                row["conditions"] = conditions;
            }
            row
        })
        .collect();
    let definitions: Vec<Value> = columns.iter().map(Printed::definition).collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

/// A column, and how its cells are found.
struct Printed {
    name: String,
    column_type: String,
    format: String,
    description: String,
    priority: i64,
    cell: Cell,
}

enum Cell {
    /// Computed from the whole object.
    Computed(fn(&Value, Timestamp) -> Value),
    /// Found at a path, shown as this type.
    At(Option<JsonPath>, String),
}

impl Printed {
    fn definition(&self) -> Value {
        json!({
            "name": self.name, "type": self.column_type, "format": self.format,
            "description": self.description, "priority": self.priority,
        })
    }
}

impl Cell {
    fn of(&self, document: &Value, now: Timestamp) -> Value {
        match self {
            Self::Computed(compute) => compute(document, now),
            Self::At(path, column_type) => {
                let found = path.as_ref().and_then(|path| path.first(document));
                found.map_or(Value::Null, |value| shown(value, column_type, now))
            }
        }
    }
}

fn columns(id: KindId, kind: &KindInfo) -> Vec<Printed> {
    if !kind.custom {
        return built_in::columns(id).into_iter().map(built_in_column).collect();
    }
    let mut columns = vec![built_in_column(built_in::NAME)];
    columns.extend(kind.columns.iter().map(custom_column));
    if kind.columns.is_empty() {
        let age = Column {
            name: "Age".into(),
            column_type: "date".into(),
            json_path: ".metadata.creationTimestamp".into(),
            ..Column::default()
        };
        columns.push(custom_column(&age));
    }
    columns
}

fn built_in_column(column: built_in::BuiltIn) -> Printed {
    let (name, column_type, priority, compute) = column;
    Printed {
        name: name.into(),
        column_type: column_type.into(),
        format: if name == "Name" { "name".into() } else { String::new() },
        description: String::new(),
        priority,
        cell: Cell::Computed(compute),
    }
}

fn custom_column(column: &Column) -> Printed {
    Printed {
        name: column.name.clone(),
        column_type: column.column_type.clone(),
        format: column.format.clone(),
        description: column.description.clone(),
        priority: column.priority,
        // A path that cannot be read was refused when the definition was made; show nothing.
        cell: Cell::At(JsonPath::parse(&column.json_path).ok(), column.column_type.clone()),
    }
}

/// A value as a column of this type shows it; nothing if it does not fit.
fn shown(value: &Value, column_type: &str, now: Timestamp) -> Value {
    match (column_type, value) {
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(_) => value.clone(),
            None => json!(number.as_f64().unwrap_or_default() as i64),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(moment) => json!(age::since(moment, now)),
            Err(_) => json!("<invalid>"),
        },
        ("string", Value::String(_)) => value.clone(),
        ("string", other) if !other.is_null() => json!(other.to_string()),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_shown_with_its_numbers() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let scaled = json!({
            "kind": "Scale", "spec": {"replicas": 3}, "status": {"replicas": 2},
            "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
        });
        let table = scale(scaled, Include::None, now);
        let columns = table["columnDefinitions"].as_array().unwrap();
        let names: Vec<_> = columns.iter().map(|column| &column["name"]).collect();
        assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
        assert_eq!(table["rows"][0]["cells"], json!(["a", 3, 2, "10m"]));
    }

    #[test]
    fn custom_cells_are_shown_by_their_type() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let cases = [
            ("integer", json!(3), json!(3)),
            ("integer", json!(3.7), json!(3)),
            ("integer", json!("3"), json!(null)),
            ("string", json!("a"), json!("a")),
            ("string", json!({"a": 1}), json!("{\"a\":1}")),
            ("boolean", json!(true), json!(true)),
            ("date", json!("2026-01-01T00:00:00Z"), json!("10m")),
            ("date", json!("noon"), json!("<invalid>")),
            ("number", json!(1.5), json!(1.5)),
        ];
        for (column_type, value, expected) in cases {
            assert_eq!(shown(&value, column_type, now), expected, "{column_type} {value}");
        }
    }
}
