//! kubectl's JSONPath: what a template like `{.status.phase}` finds in a document, and how it is
//! printed. It follows client-go, also where that surprises: `['a.b']` is two fields, and a filter
//! that asks whether something is there takes an error for a yes.
//!
//! ```
//! use gradus_jsonpath::JsonPath;
//! use serde_json::json;
//!
//! let path = JsonPath::parse("{.items[?(@.name=='a')].v}")?;
//! let found = path.find(&json!({ "items": [{ "name": "a", "v": 1 }, { "name": "b" }] }))?;
//! assert_eq!(found, [[json!(1)]]);
//! # Ok::<(), gradus_jsonpath::PathError>(())
//! ```

mod compare;
mod find;
mod parse;
mod print;

use serde_json::Value;
use thiserror::Error;

pub use print::show;

/// A template, ready to be used.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    pieces: Vec<Step>,
}

/// Why there is no template, or nothing is found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// The text is no template.
    #[error("{0}")]
    Syntax(String),
    /// The document does not have what the template asks for.
    #[error("{0}")]
    NotFound(String),
    /// The template asks for more than anybody could read.
    #[error("more than {0} values are found")]
    TooMany(usize),
}

/// One step into a document.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// Steps in braces, one after the other.
    List(Vec<Step>),
    /// A text, whatever the document is.
    Text(String),
    /// A number or a truth, for every value that was found.
    Literal(Value),
    /// A field.
    Field(String),
    /// Elements of a list.
    Slice(Slice),
    /// Elements for which something holds.
    Filter(Filter),
    /// Every field or element.
    Wildcard,
    /// The values and all below them.
    Recursive,
    /// What any of these finds, in their order.
    Union(Vec<Vec<Step>>),
    /// `range`, `end`, or a word that means nothing.
    Word(String),
}

/// From one index to another, which is left out, every so many; from the end where below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    from: Option<i64>,
    to: Option<i64>,
    /// A single index was written: the end follows from it.
    is_index: bool,
    every: Option<i64>,
}

/// What must hold for an element.
#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Step>,
    /// Nothing where it is asked whether the left is there.
    compared: Option<(String, Vec<Step>)>,
}

/// How a document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// As an answer over HTTP: every number is a fraction, and what is missing is an error.
    Answer,
    /// As an object of the API: integers are integers, and what is missing is nothing.
    Object,
}

impl JsonPath {
    /// Reads a template: texts, and paths in braces.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        parse::template(text).map(|pieces| JsonPath { pieces })
    }

    /// Reads a template that may be a bare path without braces, as people type it.
    pub fn parse_relaxed(text: &str) -> Result<Self, PathError> {
        if text.contains('{') {
            return Self::parse(text);
        }
        let path = text.trim_start_matches('$');
        let point = if path.starts_with(['.', '[']) || path.is_empty() { "" } else { "." };
        Self::parse(&format!("{{{point}{path}}}"))
    }

    /// What each piece of the template finds in a JSON document, where all numbers are fractions.
    /// What is not there is an error.
    pub fn find(&self, document: &Value) -> Result<Vec<Vec<Value>>, PathError> {
        find::find(&self.pieces, document, Reading::Answer)
    }

    /// The first value of the first piece that finds something at all; nothing if it finds none.
    pub fn first(&self, document: &Value) -> Result<Option<Value>, PathError> {
        let found = self.find(document)?;
        Ok(found.into_iter().next().and_then(|values| values.into_iter().next()))
    }

    /// What kubectl prints for an object. What is not there is nothing.
    pub fn print(&self, object: &Value) -> Result<String, PathError> {
        let found = find::find(&self.pieces, object, Reading::Object)?;
        Ok(print::shown(&found, Reading::Object))
    }
}
