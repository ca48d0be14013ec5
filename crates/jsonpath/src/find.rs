//! What a template finds in a document.

use serde_json::Value;

use crate::compare::{Side, holds};
use crate::{Filter, PathError, Reading, Slice, Step};

/// Nobody reads more; `..` after `..` would find more than any memory holds.
const MOST_FOUND: usize = 100_000;

/// What each piece finds.
pub(super) fn find(
    pieces: &[Step],
    document: &Value,
    reading: Reading,
) -> Result<Vec<Vec<Value>>, PathError> {
    let mut finder = Finder { reading, found: 0 };
    let (found, _) = finder.pieces(pieces, 0, document, 0)?;
    Ok(found)
}

struct Finder {
    reading: Reading,
    found: usize,
}

/// What a step said beside what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Nothing,
    Range,
    End,
}

/// Values that were there when something went wrong: filters look at them all the same.
struct Failure {
    error: PathError,
    left: Vec<Value>,
}

impl Finder {
    /// The pieces from one on, up to the `end` of a range; where that was.
    fn pieces(
        &mut self,
        pieces: &[Step],
        first: usize,
        here: &Value,
        ranges: usize,
    ) -> Result<(Vec<Vec<Value>>, Option<usize>), PathError> {
        let mut all = Vec::new();
        let mut at = first;
        while let Some(piece) = pieces.get(at) {
            let (values, said) =
                self.step(vec![here.clone()], piece).map_err(|failure| failure.error)?;
            match said {
                Said::Nothing => all.push(values),
                Said::End if ranges > 0 => return Ok((all, Some(at))),
                Said::End => {
                    let message = "not in range, nothing to end".to_owned();
                    return Err(PathError::NotFound(message));
                }
                Said::Range => {
                    let mut end = None;
                    // Without values the body is gone through once, to find its end.
                    let nothing = [Value::Null];
                    let items = if values.is_empty() { &nothing[..] } else { &values };
                    for item in items {
                        let (found, ended) = self.pieces(pieces, at + 1, item, ranges + 1)?;
                        if !values.is_empty() {
                            all.extend(found);
                        }
                        end = ended.or(end);
                    }
                    at = end.unwrap_or(at);
                }
            }
            at += 1;
        }
        Ok((all, None))
    }

    fn step(&mut self, input: Vec<Value>, step: &Step) -> Result<(Vec<Value>, Said), Failure> {
        let found = match step {
            Step::List(steps) => return self.steps(input, steps),
            Step::Word(word) => match word.as_str() {
                "range" => return Ok((input, Said::Range)),
                "end" => return Ok((Vec::new(), Said::End)),
                other => {
                    let error = PathError::NotFound(format!("unrecognized identifier {other}"));
                    return Err(Failure { error, left: input });
                }
            },
            Step::Text(text) => vec![Value::String(text.clone())],
            Step::Literal(value) => vec![value.clone(); input.len()],
            Step::Field(name) => self.field(&input, name)?,
            Step::Slice(slice) => slice_of(input, *slice)?,
            Step::Filter(filter) => self.filter(input, filter)?,
            Step::Wildcard => input.iter().flat_map(children).collect(),
            Step::Recursive => {
                let mut found = Vec::new();
                input.iter().for_each(|value| below(value, &mut found));
                found
            }
            Step::Union(paths) => {
                let mut found = Vec::new();
                for path in paths {
                    found.extend(self.steps(input.clone(), path)?.0);
                }
                found
            }
        };
        self.found += found.len();
        if self.found > MOST_FOUND {
            return Err(Failure { error: PathError::TooMany(MOST_FOUND), left: Vec::new() });
        }
        Ok((found, Said::Nothing))
    }

    fn steps(&mut self, input: Vec<Value>, steps: &[Step]) -> Result<(Vec<Value>, Said), Failure> {
        let (mut values, mut said) = (input, Said::Nothing);
        for step in steps {
            let (found, told) = self.step(values, step)?;
            values = found;
            if told != Said::Nothing {
                said = told;
            }
        }
        Ok((values, said))
    }

    fn field(&self, input: &[Value], name: &str) -> Result<Vec<Value>, Failure> {
        let found: Vec<Value> = input.iter().filter_map(|value| value.get(name)).cloned().collect();
        let may_miss = input.is_empty() || self.reading == Reading::Object;
        if found.is_empty() && !may_miss {
            let error = PathError::NotFound(format!("{name} is not found"));
            return Err(Failure { error, left: Vec::new() });
        }
        Ok(found)
    }

    fn filter(&mut self, input: Vec<Value>, filter: &Filter) -> Result<Vec<Value>, Failure> {
        let mut kept = Vec::new();
        for value in &input {
            let Value::Array(items) = value else {
                let error = PathError::NotFound(format!(
                    "{value} is not array or slice and cannot be filtered"
                ));
                return Err(Failure { error, left: input });
            };
            for item in items {
                match self.keeps(item, filter) {
                    Ok(true) => kept.push(item.clone()),
                    Ok(false) => {}
                    Err(error) => return Err(Failure { error, left: input }),
                }
            }
        }
        Ok(kept)
    }

    fn keeps(&mut self, item: &Value, filter: &Filter) -> Result<bool, PathError> {
        let left = self.steps(vec![item.clone()], &filter.left);
        let Some((operator, right)) = &filter.compared else {
            return match left {
                Ok((values, _)) => Ok(!values.is_empty()),
                Err(Failure { error: error @ PathError::TooMany(_), .. }) => Err(error),
                Err(failure) => Ok(!failure.left.is_empty()),
            };
        };
        let (left, _) = left.map_err(|failure| failure.error)?;
        let Some(one) = only(&left)? else { return Ok(false) };
        let found = self.steps(vec![item.clone()], right).map_err(|failure| failure.error)?;
        let Some(other) = only(&found.0)? else { return Ok(false) };
        let one = Side { value: one, is_literal: is_literal(&filter.left) };
        let other = Side { value: other, is_literal: is_literal(right) };
        holds(one, operator, other, self.reading)
    }
}

fn is_literal(steps: &[Step]) -> bool {
    matches!(steps.last(), Some(Step::Literal(_)))
}

fn only(values: &[Value]) -> Result<Option<&Value>, PathError> {
    match values {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(PathError::NotFound("can only compare one element at a time".to_owned())),
    }
}

fn slice_of(input: Vec<Value>, slice: Slice) -> Result<Vec<Value>, Failure> {
    let mut found = Vec::new();
    for value in &input {
        let items = match value {
            Value::Null => continue,
            Value::Array(items) => items,
            other => {
                let error = PathError::NotFound(format!("{} is not array or slice", kind(other)));
                return Err(Failure { error, left: input });
            }
        };
        match bounds(items.len(), slice) {
            Ok(None) => return Ok(found),
            Ok(Some((from, to, every))) => {
                found.extend(items[from..to].iter().step_by(every).cloned());
            }
            Err(text) => {
                return Err(Failure { error: PathError::NotFound(text), left: input });
            }
        }
    }
    Ok(found)
}

/// From, to and every so many; nothing where no element is asked for.
fn bounds(length: usize, slice: Slice) -> Result<Option<(usize, usize, usize)>, String> {
    let length_signed = i64::try_from(length).unwrap_or(i64::MAX);
    let from = slice.from.unwrap_or(0);
    let from = if from < 0 { from.saturating_add(length_signed) } else { from };
    let to = slice.to.unwrap_or(length_signed);
    let from_end = to < 0 || to == 0 && slice.is_index;
    let to = if from_end { to.saturating_add(length_signed) } else { to };
    if from == to {
        return Ok(None);
    }
    let outside =
        |index: i64| Err(format!("array index out of bounds: index {index}, length {length}"));
    let place = |index: i64| usize::try_from(index).ok().filter(|index| *index <= length);
    let Some(start) = place(from).filter(|from| *from < length) else { return outside(from) };
    let Some(end) = place(to) else { return outside(to.saturating_sub(1)) };
    if start > end {
        return Err(format!("starting index {start} is greater than ending index {end}"));
    }
    let every = slice.every.unwrap_or(1);
    match usize::try_from(every).ok().filter(|every| *every > 0) {
        Some(every) => Ok(Some((start, end, every))),
        None => Err("step must be > 0".to_owned()),
    }
}

/// Fields, elements, or the bytes of a text.
fn children(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        Value::Object(fields) => fields.values().cloned().collect(),
        Value::String(text) => text.bytes().map(Value::from).collect(),
        _ => Vec::new(),
    }
}

/// A value that has something in it, and all such values below it.
fn below(value: &Value, found: &mut Vec<Value>) {
    let is_empty = match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => true,
    };
    if is_empty || found.len() > MOST_FOUND {
        return;
    }
    found.push(value.clone());
    match value {
        Value::Array(items) => items.iter().for_each(|item| below(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| below(field, found)),
        _ => {}
    }
}

/// The name of a type in Go.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
