//! Operators on literals are computed, and what decides `and` and `or` decides at once.

use crate::ast::{Binary, Expr, Loop, LoopKind, Node, Unary};
use crate::error::Error;
use crate::eval::arithmetic;
use crate::value::Value;

/// Folds one part of the tree; did it change?
pub(super) fn fold(node: &mut Node) -> Result<bool, Error> {
    let folded = match &node.expr {
        Expr::Unary(operator, operand) => operand.literal().and_then(|one| unary(*operator, one)),
        Expr::Binary(operator, left, right) => match operator {
            Binary::And | Binary::Or => return Ok(decided(node)),
            Binary::Modulo => match (left.literal(), right.literal()) {
                (Some(one @ Value::Int(..)), Some(other @ Value::Int(..))) => {
                    let rest = arithmetic(Binary::Modulo, one, other);
                    Some(rest.map_err(|fault| Error::compile(node.span, fault.message))?)
                }
                _ => None,
            },
            _ => match (left.literal(), right.literal()) {
                (Some(one), Some(other)) => binary(*operator, one, other),
                _ => None,
            },
        },
        Expr::List(_) => return Ok(constant(node)),
        Expr::Loop(_) => return Ok(filter_of_filter(node)),
        _ => None,
    };
    let Some(value) = folded else { return Ok(false) };
    let of = value.type_of();
    *node = Node { of, ..Node::new(Expr::Literal(value), node.span) };
    Ok(true)
}

fn unary(operator: Unary, value: &Value) -> Option<Value> {
    match (operator, value) {
        (Unary::Not, Value::Bool(truth)) => Some(Value::Bool(!truth)),
        (Unary::Minus, Value::Int(kind, number)) => Some(Value::Int(*kind, number.wrapping_neg())),
        (Unary::Minus, Value::Float(number)) => Some(Value::Float(-number)),
        (Unary::Plus, Value::Int(..) | Value::Float(_)) => Some(value.clone()),
        _ => None,
    }
}

fn binary(operator: Binary, one: &Value, other: &Value) -> Option<Value> {
    let are_numbers = [one, other].iter().all(|v| matches!(v, Value::Int(..) | Value::Float(_)));
    match (operator, one, other) {
        (Binary::Add, Value::Text(_), Value::Text(_)) => arithmetic(operator, one, other).ok(),
        (Binary::Equal, Value::Int(..), Value::Int(..))
        | (Binary::Equal, Value::Text(_), Value::Text(_))
        | (Binary::Equal, Value::Bool(_), Value::Bool(_)) => Some(Value::Bool(one == other)),
        (
            Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Power,
            ..,
        ) if are_numbers => arithmetic(operator, one, other).ok(),
        _ => None,
    }
}

/// `and` and `or` with a literal on one side.
fn decided(node: &mut Node) -> bool {
    let Expr::Binary(operator, left, right) = &node.expr else { return false };
    // What does not matter for this operator.
    let neutral = *operator == Binary::And;
    let truth = |node: &Node| match node.literal() {
        Some(Value::Bool(truth)) => Some(*truth),
        _ => None,
    };
    let kept = match (truth(left), truth(right)) {
        (Some(one), _) if one == neutral => right.expr.clone(),
        (_, Some(other)) if other == neutral => left.expr.clone(),
        (Some(_), _) | (_, Some(_)) => Expr::Literal(Value::Bool(!neutral)),
        (None, None) => return false,
    };
    *node = node.becomes(kept);
    true
}

/// A list of numbers, texts and truths is made once.
fn constant(node: &mut Node) -> bool {
    let Expr::List(items) = &node.expr else { return false };
    let values: Option<Vec<Value>> = items
        .iter()
        .map(|item| item.literal().filter(|value| **value != Value::Nil).cloned())
        .collect();
    let is_plain = |value: &Value| !matches!(value, Value::List(_));
    let values = values.filter(|values| !values.is_empty() && values.iter().all(is_plain));
    let Some(list) = values.and_then(|values| Value::list(values).ok()) else { return false };
    *node = node.becomes(Expr::Constant(list));
    true
}

/// `filter(filter(x, a), b)` is `filter(x, a && b)`.
fn filter_of_filter(node: &mut Node) -> bool {
    let Expr::Loop(outer) = &node.expr else { return false };
    let Expr::Loop(inner) = &outer.list.expr else { return false };
    let both = outer.kind == LoopKind::Filter && inner.kind == LoopKind::Filter;
    let (Some(first), Some(second), true) = (&inner.body, &outer.body, both) else { return false };
    let body = Expr::Binary(Binary::And, Box::new(first.clone()), Box::new(second.clone()));
    let body = Some(Node::new(body, first.span.to(second.span)));
    let merged = Loop { body, ..(**inner).clone() };
    *node = node.becomes(Expr::Loop(Box::new(merged)));
    true
}
