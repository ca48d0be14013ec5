//! Comparisons in filters: of values of one kind. Integers and fractions are different kinds.

use std::cmp::Ordering;

use serde_json::Value;

use crate::{PathError, Reading};

/// What can be compared.
enum Basic<'v> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'v str),
}

/// A value that was found, or a literal of the template: of the latter integers stay integers.
#[derive(Clone, Copy)]
pub(super) struct Side<'v> {
    pub(super) value: &'v Value,
    pub(super) is_literal: bool,
}

/// Does a comparison hold?
pub(super) fn holds(
    left: Side<'_>,
    operator: &str,
    right: Side<'_>,
    reading: Reading,
) -> Result<bool, PathError> {
    let (one, other) = (basic(left, reading)?, basic(right, reading)?);
    let order = match (&one, &other) {
        (Basic::Bool(one), Basic::Bool(other)) if matches!(operator, "==" | "!=") => {
            Some(one.cmp(other))
        }
        (Basic::Bool(_), Basic::Bool(_)) => {
            return Err(PathError::NotFound("invalid type for comparison".to_owned()));
        }
        (Basic::Int(one), Basic::Int(other)) => Some(one.cmp(other)),
        (Basic::Float(one), Basic::Float(other)) => one.partial_cmp(other),
        (Basic::Text(one), Basic::Text(other)) => Some(one.cmp(other)),
        _ => {
            return Err(PathError::NotFound("incompatible types for comparison".to_owned()));
        }
    };
    let is = |wanted: Ordering| order == Some(wanted);
    match operator {
        "==" => Ok(is(Ordering::Equal)),
        "!=" => Ok(!is(Ordering::Equal)),
        "<" => Ok(is(Ordering::Less)),
        "<=" => Ok(is(Ordering::Less) || is(Ordering::Equal)),
        ">" => Ok(!(is(Ordering::Less) || is(Ordering::Equal))),
        ">=" => Ok(!is(Ordering::Less)),
        other => Err(PathError::NotFound(format!("unrecognized filter operator {other}"))),
    }
}

fn basic(side: Side<'_>, reading: Reading) -> Result<Basic<'_>, PathError> {
    match side.value {
        Value::Bool(truth) => Ok(Basic::Bool(*truth)),
        Value::String(text) => Ok(Basic::Text(text)),
        Value::Number(number) => {
            let keeps_integers = side.is_literal || reading == Reading::Object;
            match number.as_i64().filter(|_| keeps_integers) {
                Some(integer) => Ok(Basic::Int(integer)),
                None => Ok(Basic::Float(number.as_f64().unwrap_or(f64::NAN))),
            }
        }
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(PathError::NotFound("invalid type for comparison".to_owned()))
        }
    }
}
