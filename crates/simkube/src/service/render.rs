//! In which shape does the client want its answer: whole objects, a table, or metadata alone?

use jiff::Timestamp;
use serde_json::{Value, json};

use super::query::Query;
use crate::error::ApiError;
use crate::kinds::Kinds;
use crate::object::Object;
use crate::request::{Content, Reply};
use crate::table::{self, Include};

/// The shape of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Objects as they are.
    Plain,
    /// Rows and columns, as `kubectl get` prints them.
    Table(Include),
    /// Metadata alone.
    Metadata,
}

impl Shape {
    /// The first shape of the `Accept` header that this server can give.
    pub fn negotiate(accept: &str, query: &Query) -> Result<Self, ApiError> {
        if accept.is_empty() {
            return Ok(Self::Plain);
        }
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            if !matches!(media_type, "application/json" | "application/*" | "*/*") {
                continue;
            }
            let parameters: Vec<&str> = parts.collect();
            let value = |name: &str| {
                parameters.iter().find_map(|one| one.strip_prefix(name)?.strip_prefix('='))
            };
            let asked = value("as");
            let is_known =
                value("g") == Some("meta.k8s.io") && matches!(value("v"), Some("v1" | "v1beta1"));
            match asked {
                Some(_) if !is_known => {}
                None => return Ok(Self::Plain),
                Some("Table") => return Ok(Self::Table(include(query)?)),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => {
                    return Ok(Self::Metadata);
                }
                Some(_) => {}
            }
        }
        Err(ApiError {
            code: 406,
            reason: "NotAcceptable",
            message: "only the following media types are accepted: application/json".into(),
            details: Some(Box::default()),
        })
    }

    /// The `Content-Type` of the answer.
    pub fn content_type(self) -> &'static str {
        "application/json"
    }

    /// The whole answer.
    pub fn render(self, reply: &Reply, kinds: &Kinds, now: Timestamp) -> Value {
        match (self, &reply.content) {
            (Self::Table(include), Content::Object(object)) => {
                let metadata = json!({"resourceVersion": object.version.to_string()});
                table::table(kinds, object.kind, [&**object], metadata, include, now)
            }
            (Self::Table(include), Content::List(list)) => {
                let items = list.items.iter().map(|item| &**item);
                table::table(kinds, list.kind, items, list.metadata(kinds), include, now)
            }
            (Self::Table(include), Content::Json(document)) if document["kind"] == "Scale" => {
                table::scale(document.clone(), include, now)
            }
            (Self::Metadata, Content::Object(object)) => metadata_of(object),
            (Self::Metadata, Content::List(list)) => json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": list.metadata(kinds),
                "items": list.items.iter().map(|item| metadata_of(item)).collect::<Vec<_>>(),
            }),
            _ => reply.to_json(kinds),
        }
    }

    /// One object within a watch; `is_first` tells whether a table still has to name its columns.
    pub fn render_event(
        self,
        object: &Object,
        kinds: &Kinds,
        now: Timestamp,
        is_first: bool,
    ) -> Value {
        match self {
            Self::Plain => object.to_json(kinds),
            Self::Metadata => metadata_of(object),
            Self::Table(include) => {
                let metadata = json!({"resourceVersion": object.version.to_string()});
                let mut table = table::table(kinds, object.kind, [object], metadata, include, now);
                if !is_first {
                    table["columnDefinitions"] = Value::Null;
                }
                table
            }
        }
    }
}

fn metadata_of(object: &Object) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.meta.to_json(object.version),
    })
}

fn include(query: &Query) -> Result<Include, ApiError> {
    match query.get("includeObject") {
        None | Some("Metadata") => Ok(Include::Metadata),
        Some("None") => Ok(Include::None),
        Some("Object") => Ok(Include::Object),
        Some(other) => Err(ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: \
                 {other:?}: must be 'Metadata', 'Object', 'None', or empty"
        ))),
    }
}
