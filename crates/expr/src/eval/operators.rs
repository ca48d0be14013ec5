//! Operators on values.

use regex::bytes::Regex;

use super::Budget;
use crate::ast::Binary;
use crate::builtins::wrong_type;
use crate::error::Fault;
use crate::number::{as_float, power, to_int};
use crate::pattern;
use crate::types::ListKind;
use crate::value::{List, Value, equal};

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Less,
    More,
    AtMost,
    AtLeast,
}

/// An operator whose operands are both needed.
pub(super) fn binary(
    operator: Binary,
    left: &Value,
    right: &Value,
    budget: &mut Budget,
) -> Result<Value, Fault> {
    let truth = |found: Result<bool, Fault>| found.map(Value::Bool);
    match operator {
        Binary::Equal | Binary::Unequal => {
            budget.steps(size(left).min(size(right)))?;
            Ok(Value::Bool(equal(left, right) == (operator == Binary::Equal)))
        }
        Binary::Less => truth(compare(left, right, Order::Less)),
        Binary::More => truth(compare(left, right, Order::More)),
        Binary::AtMost => truth(compare(left, right, Order::AtMost)),
        Binary::AtLeast => truth(compare(left, right, Order::AtLeast)),
        Binary::In => truth(is_in(left, right, budget)),
        Binary::Range => range(to_int(left)?, to_int(right)?, budget),
        Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith => {
            truth(on_texts(operator, left, right, budget))
        }
        _ => {
            let value = arithmetic(operator, left, right)?;
            if let Value::Text(text) = &value {
                budget.text(text.len())?;
            }
            Ok(value)
        }
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::List(list) => list.items().len(),
        Value::Map(map) => map.entries().len(),
        _ => 0,
    }
}

/// Is the one before or behind the other?
pub(crate) fn compare(one: &Value, other: &Value, order: Order) -> Result<bool, Fault> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let found = match (one, other) {
        (Value::Int(_, one), Value::Int(_, other)) => Some(one.cmp(other)),
        (Value::Int(..) | Value::Float(_), Value::Int(..) | Value::Float(_)) => {
            as_float(one).partial_cmp(&as_float(other))
        }
        (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
        (Value::Time(one), Value::Time(other)) => Some(one.order().cmp(&other.order())),
        (Value::Duration(one), Value::Duration(other)) => Some(one.cmp(other)),
        _ => {
            let sign = match order {
                Order::Less => "<",
                Order::More => ">",
                Order::AtMost => "<=",
                Order::AtLeast => ">=",
            };
            return Err(undefined(one, sign, other));
        }
    };
    // What is no number is neither before nor behind anything.
    Ok(matches!(
        (order, found),
        (Order::Less | Order::AtMost, Some(Less))
            | (Order::More | Order::AtLeast, Some(Greater))
            | (Order::AtMost | Order::AtLeast, Some(Equal))
    ))
}

fn undefined(one: &Value, sign: &str, other: &Value) -> Fault {
    Fault::run(format!("invalid operation: {} {sign} {}", one.type_name(), other.type_name()))
}

/// `+`, `-`, `*`, `/`, `%` and the power.
pub(crate) fn arithmetic(operator: Binary, left: &Value, right: &Value) -> Result<Value, Fault> {
    match (left, right) {
        (Value::Int(_, one), Value::Int(_, other)) => return integers(operator, *one, *other),
        (Value::Int(..) | Value::Float(_), Value::Int(..) | Value::Float(_)) => {
            let (one, other) = (as_float(left).unwrap_or(0.0), as_float(right).unwrap_or(0.0));
            return match operator {
                Binary::Add => Ok(Value::Float(one + other)),
                Binary::Subtract => Ok(Value::Float(one - other)),
                Binary::Multiply => Ok(Value::Float(one * other)),
                Binary::Divide => Ok(Value::Float(one / other)),
                Binary::Power => Ok(Value::Float(power(one, other))),
                _ => Err(undefined(left, operator.name(), right)),
            };
        }
        _ => {}
    }
    match (operator, left, right) {
        (Binary::Add, Value::Text(one), Value::Text(other)) => {
            Ok(Value::Text([&**one, &**other].concat().into()))
        }
        (Binary::Add, Value::Time(moment), Value::Duration(span))
        | (Binary::Add, Value::Duration(span), Value::Time(moment)) => {
            Ok(Value::Time(moment.plus(*span)))
        }
        (Binary::Subtract, Value::Time(moment), Value::Duration(span)) => {
            Ok(Value::Time(moment.plus(span.wrapping_neg())))
        }
        (Binary::Subtract, Value::Time(one), Value::Time(other)) => {
            Ok(Value::Duration(one.minus(other)))
        }
        (Binary::Add, Value::Duration(one), Value::Duration(other)) => {
            Ok(Value::Duration(one.wrapping_add(*other)))
        }
        (Binary::Subtract, Value::Duration(one), Value::Duration(other)) => {
            Ok(Value::Duration(one.wrapping_sub(*other)))
        }
        (Binary::Multiply, Value::Duration(one), Value::Duration(other) | Value::Int(_, other))
        | (Binary::Multiply, Value::Int(_, one), Value::Duration(other)) => {
            Ok(Value::Duration(one.wrapping_mul(*other)))
        }
        (Binary::Multiply, Value::Duration(span), Value::Float(number))
        | (Binary::Multiply, Value::Float(number), Value::Duration(span)) => {
            Ok(Value::Float(*span as f64 * number))
        }
        (Binary::Power, one, other) => {
            let wrong = if as_float(one).is_none() { one } else { other };
            Err(Fault::run(format!("invalid operation: float({})", wrong.type_name())))
        }
        _ => Err(undefined(left, operator.name(), right)),
    }
}

fn integers(operator: Binary, one: i64, other: i64) -> Result<Value, Fault> {
    Ok(match operator {
        Binary::Add => Value::int(one.wrapping_add(other)),
        Binary::Subtract => Value::int(one.wrapping_sub(other)),
        Binary::Multiply => Value::int(one.wrapping_mul(other)),
        Binary::Divide => Value::Float(one as f64 / other as f64),
        Binary::Modulo if other == 0 => return Err(Fault::run("integer divide by zero")),
        Binary::Modulo => Value::int(one.wrapping_rem(other)),
        _ => Value::Float(power(one as f64, other as f64)),
    })
}

fn range(from: i64, to: i64, budget: &mut Budget) -> Result<Value, Fault> {
    // Go counts in 64 bits: what does not fit into them is nothing.
    let size = to.wrapping_sub(from).wrapping_add(1).max(0);
    budget.items(usize::try_from(size).unwrap_or(usize::MAX))?;
    let items = (0..size).map(|at| Value::int(from.wrapping_add(at))).collect();
    List::new(ListKind::Int, items).map(Value::List)
}

fn is_in(needle: &Value, within: &Value, budget: &mut Budget) -> Result<bool, Fault> {
    match within {
        Value::Nil => Ok(false),
        Value::List(list) => {
            budget.steps(list.items().len())?;
            Ok(list.items().iter().any(|item| equal(item, needle)))
        }
        Value::Map(map) => Ok(map.look_up(needle)?.is_some()),
        other => {
            let name = other.type_name();
            Err(Fault::run(format!("operator \"in\" not defined on {name}")))
        }
    }
}

fn on_texts(
    operator: Binary,
    left: &Value,
    right: &Value,
    budget: &mut Budget,
) -> Result<bool, Fault> {
    if left.is_nil() || right.is_nil() {
        return Ok(false);
    }
    let Value::Text(other) = right else { return Err(wrong_type(right, "string")) };
    if operator == Binary::Matches {
        budget.steps(other.len())?;
        return is_match(left, &pattern::compile(other).map_err(Fault::run)?, budget);
    }
    let Value::Text(text) = left else { return Err(wrong_type(left, "string")) };
    budget.steps(text.len() / 64)?;
    Ok(match operator {
        Binary::Contains => text.contains(&**other),
        Binary::StartsWith => text.starts_with(&**other),
        _ => text.ends_with(&**other),
    })
}

/// Does a text, or a list of bytes, match?
pub(super) fn is_match(value: &Value, regex: &Regex, budget: &mut Budget) -> Result<bool, Fault> {
    match value {
        value if value.is_nil() => Ok(false),
        Value::Text(text) => {
            budget.steps(text.len() / 8)?;
            Ok(regex.is_match(text.as_bytes()))
        }
        Value::List(list) if list.kind() == ListKind::Byte => {
            let bytes = list.items().iter().map(|item| match item {
                Value::Int(_, byte) => u8::try_from(*byte).unwrap_or(0),
                _ => 0,
            });
            let bytes: Vec<u8> = bytes.collect();
            Ok(regex.is_match(String::from_utf8_lossy(&bytes).as_bytes()))
        }
        other => Err(wrong_type(other, "[]uint8")),
    }
}
