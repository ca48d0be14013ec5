//! What does a template like `{.status.phase}` pick from an object? The part of kubectl's JSONPath
//! that people use: fields, indices, slices, unions, wildcards, filters, ranges and texts.

mod parse;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use parse::TemplateError;

/// A template, ready to be printed.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<Piece>);

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// Printed as it is.
    Text(String),
    /// Everything it finds, separated by blanks.
    Path(Vec<Segment>),
    /// Once for everything it finds.
    Range(Vec<Segment>, Vec<Piece>),
}

/// One step into an object.
#[derive(Clone, Debug, PartialEq)]
enum Segment {
    /// A field.
    Field(String),
    /// An item; from the end where below zero.
    Index(i64),
    /// Items from one to another, which is left out, every so many; from the end where below zero.
    Slice(Option<i64>, Option<i64>, usize),
    /// What any of these finds, in their order.
    Union(Vec<Segment>),
    /// Every field or item.
    All,
    /// Every field of that name, however deep.
    Deep(String),
    /// Items for which a comparison holds.
    Filter(Vec<Segment>, Comparison, Value),
    /// Items that have something there.
    Having(Vec<Segment>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Reads a template; a bare path needs no braces.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        parse::template(text).map(JsonPath)
    }

    /// What it picks. What is not there is nothing.
    pub fn print(&self, object: &Value) -> String {
        self.0.iter().map(|piece| printed(piece, object)).collect()
    }
}

fn printed(piece: &Piece, here: &Value) -> String {
    match piece {
        Piece::Text(text) => text.clone(),
        Piece::Path(segments) => {
            let texts: Vec<String> = find(segments, here).into_iter().map(text).collect();
            texts.join(" ")
        }
        Piece::Range(segments, body) => {
            let items = find(segments, here).into_iter();
            items.flat_map(|item| body.iter().map(move |piece| printed(piece, item))).collect()
        }
    }
}

/// A text without its quotes; everything else as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn find<'v>(segments: &[Segment], value: &'v Value) -> Vec<&'v Value> {
    let mut found = vec![value];
    for segment in segments {
        found = found.into_iter().flat_map(|value| step(segment, value)).collect();
    }
    found
}

fn step<'v>(segment: &Segment, value: &'v Value) -> Vec<&'v Value> {
    match segment {
        Segment::Field(name) => value.get(name).into_iter().collect(),
        Segment::Index(index) => item(value, *index).into_iter().collect(),
        Segment::Slice(from, to, every) => slice(value, *from, *to, *every),
        Segment::Union(all) => all.iter().flat_map(|segment| step(segment, value)).collect(),
        Segment::All => children(value),
        Segment::Deep(name) => {
            let mut found: Vec<&Value> = value.get(name).into_iter().collect();
            found.extend(children(value).into_iter().flat_map(|child| step(segment, child)));
            found
        }
        Segment::Filter(path, comparison, wanted) => {
            let holds = |item: &&Value| {
                find(path, item).first().is_some_and(|found| holds(found, *comparison, wanted))
            };
            children(value).into_iter().filter(holds).collect()
        }
        Segment::Having(path) => {
            let has = |item: &&Value| !find(path, item).is_empty();
            children(value).into_iter().filter(has).collect()
        }
    }
}

fn item(value: &Value, index: i64) -> Option<&Value> {
    let items = value.as_array()?;
    let length = i64::try_from(items.len()).ok()?;
    let index = if index < 0 { length + index } else { index };
    items.get(usize::try_from(index).ok()?)
}

fn slice(value: &Value, from: Option<i64>, to: Option<i64>, every: usize) -> Vec<&Value> {
    let Some(items) = value.as_array() else { return Vec::new() };
    let place = |index: i64| {
        let from_end = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
        let place = if index < 0 { items.len().saturating_sub(from_end) } else { from_end };
        place.min(items.len())
    };
    let (from, to) = (from.map_or(0, place), to.map_or(items.len(), place));
    items.get(from..to).unwrap_or_default().iter().step_by(every).collect()
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

fn holds(found: &Value, comparison: Comparison, wanted: &Value) -> bool {
    let order = match (found.as_f64(), wanted.as_f64()) {
        (Some(found), Some(wanted)) => found.partial_cmp(&wanted),
        _ => Some(text(found).cmp(&text(wanted))),
    };
    let Some(order) = order else { return false };
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::Unequal => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}
