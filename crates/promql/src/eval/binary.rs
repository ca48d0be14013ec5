//! Operators between numbers and vectors, and how the values of two vectors find each other.

use std::collections::{BTreeMap, BTreeSet};

use super::aggregate::group;
use super::{failed, unnamed};
use crate::plan::{Comparison, Grouping, Many, Matching, Op};
use crate::{Labels, NAME, Point, QueryError, Value};

/// The value of an operation.
pub fn operate(op: Op, how: &Matching, left: Value, right: Value) -> Result<Value, QueryError> {
    match (left, right) {
        (Value::Scalar(left), Value::Scalar(right)) => {
            let kept = f64::from(u8::from(compares(op, left, right)));
            let value = if let Op::Compare(_) = op { kept } else { calculated(op, left, right) };
            Ok(Value::Scalar(value))
        }
        (Value::Vector(points), Value::Scalar(right)) => {
            let each = points.into_iter();
            Ok(Value::Vector(
                each.filter_map(|one| {
                    let value = one.value;
                    with_scalar(op, how, one, (value, right))
                })
                .collect(),
            ))
        }
        (Value::Scalar(left), Value::Vector(points)) => {
            let each = points.into_iter();
            Ok(Value::Vector(
                each.filter_map(|one| {
                    let value = one.value;
                    with_scalar(op, how, one, (left, value))
                })
                .collect(),
            ))
        }
        (Value::Vector(left), Value::Vector(right)) => match op {
            Op::And | Op::Or | Op::Unless => Ok(Value::Vector(sets(op, how, left, right))),
            _ => Ok(Value::Vector(matched(op, how, left, right)?)),
        },
        _ => Err(failed("a range has no single value")),
    }
}

/// An operation of a value of a vector with a number. A comparison keeps the value of the vector.
fn with_scalar(op: Op, how: &Matching, point: Point, (left, right): (f64, f64)) -> Option<Point> {
    let Op::Compare(_) = op else {
        let value = calculated(op, left, right);
        return Some(Point { labels: unnamed(point.labels), value });
    };
    let holds = compares(op, left, right);
    if how.is_bool {
        let value = f64::from(u8::from(holds));
        return Some(Point { labels: unnamed(point.labels), value });
    }
    holds.then_some(point)
}

fn sets(op: Op, how: &Matching, left: Vec<Point>, right: Vec<Point>) -> Vec<Point> {
    let key = |point: &Point| group(&point.labels, &how.labels);
    let of = |points: &[Point]| points.iter().map(key).collect::<BTreeSet<Labels>>();
    match op {
        Op::And => {
            let right = of(&right);
            left.into_iter().filter(|one| right.contains(&key(one))).collect()
        }
        Op::Unless => {
            let right = of(&right);
            left.into_iter().filter(|one| !right.contains(&key(one))).collect()
        }
        _ => {
            let known = of(&left);
            let more = right.into_iter().filter(|one| !known.contains(&key(one)));
            left.into_iter().chain(more).collect()
        }
    }
}

fn matched(
    op: Op,
    how: &Matching,
    left: Vec<Point>,
    right: Vec<Point>,
) -> Result<Vec<Point>, QueryError> {
    // The side of which each value has at most one partner is looked up.
    let is_swapped = matches!(how.many, Many::Right(_));
    let (many, one) = if is_swapped { (right, left) } else { (left, right) };
    let mut partners: BTreeMap<Labels, Point> = BTreeMap::new();
    for point in one {
        let key = group(&point.labels, &how.labels);
        if partners.insert(key.clone(), point).is_some() {
            let side = if is_swapped { "left" } else { "right" };
            return Err(QueryError::Failed(format!(
                "found duplicate series for the match group {} on the {side} hand-side of the \
                 operation: many-to-many matching not allowed",
                shown(&key)
            )));
        }
    }
    let (mut found, mut taken) = (Vec::new(), BTreeSet::new());
    for point in many {
        let key = group(&point.labels, &how.labels);
        let Some(partner) = partners.get(&key) else { continue };
        let (left, right) = match is_swapped {
            true => (partner.value, point.value),
            false => (point.value, partner.value),
        };
        let value = match op {
            Op::Compare(_) if how.is_bool => f64::from(u8::from(compares(op, left, right))),
            Op::Compare(_) if compares(op, left, right) => left,
            Op::Compare(_) => continue,
            _ => calculated(op, left, right),
        };
        let labels = labels(op, how, point.labels, &partner.labels);
        if !taken.insert(labels.clone()) {
            let text = "multiple matches for labels: grouping labels must ensure unique matches";
            return Err(failed(text));
        }
        found.push(Point { labels, value });
    }
    Ok(found)
}

/// The labels of a result.
fn labels(op: Op, how: &Matching, mut own: Labels, partner: &Labels) -> Labels {
    let keeps_name = matches!(op, Op::Compare(_)) && !how.is_bool;
    if !keeps_name {
        own.remove(NAME);
    }
    match &how.many {
        Many::Neither => match &how.labels {
            Grouping::By(names) => own.retain(|name, _| names.contains(name)),
            Grouping::Without(names) => own.retain(|name, _| !names.contains(name)),
        },
        Many::Left(names) | Many::Right(names) => {
            for name in names {
                match partner.get(name) {
                    Some(value) => own.insert(name.clone(), value.clone()),
                    None => own.remove(name),
                };
            }
        }
    }
    own
}

fn shown(labels: &Labels) -> String {
    let all: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    format!("{{{}}}", all.join(", "))
}

fn calculated(op: Op, left: f64, right: f64) -> f64 {
    match op {
        Op::Add => left + right,
        Op::Sub => left - right,
        Op::Mul => left * right,
        Op::Div => left / right,
        Op::Mod => left % right,
        Op::Pow => left.powf(right),
        Op::Compare(_) | Op::And | Op::Or | Op::Unless => left,
    }
}

fn compares(op: Op, left: f64, right: f64) -> bool {
    let Op::Compare(comparison) = op else { return true };
    match comparison {
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
        Comparison::Greater => left > right,
        Comparison::Less => left < right,
        Comparison::GreaterOrEqual => left >= right,
        Comparison::LessOrEqual => left <= right,
    }
}
