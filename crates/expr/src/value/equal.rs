//! When are two values equal? Numbers by their value, lists element by element, maps only with the
//! same types inside.

use super::{List, Map, Value};
use crate::number::as_float;
use crate::types::ListKind;

/// The `==` of expressions.
pub(crate) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Int(_, one), Value::Int(_, other)) => one == other,
        (Value::Int(..) | Value::Float(_), Value::Int(..) | Value::Float(_)) => {
            as_float(one) == as_float(other)
        }
        (Value::List(one), Value::List(other)) => equal_lists(one, other),
        (one, other) if one.is_nil() && other.is_nil() => true,
        (one, other) => identical(one, other),
    }
}

fn equal_lists(one: &List, other: &List) -> bool {
    let is_flat = |list: &List| !matches!(list.kind(), ListKind::Pair | ListKind::Pairs);
    let is_any = one.kind() == ListKind::Any || other.kind() == ListKind::Any;
    if is_flat(one) && is_flat(other) && (is_any || one.kind() == other.kind()) {
        return one.items().len() == other.items().len()
            && one.items().iter().zip(other.items()).all(|(one, other)| equal(one, other));
    }
    identical_lists(one, other)
}

/// Equal in types and values, through and through.
fn identical(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::List(one), Value::List(other)) => identical_lists(one, other),
        (Value::Map(one), Value::Map(other)) => identical_maps(one, other),
        (Value::Time(one), Value::Time(other)) => one.is_same_moment(other),
        (Value::Function(_), _) => false,
        (one, other) => one == other,
    }
}

fn identical_lists(one: &List, other: &List) -> bool {
    one.kind() == other.kind()
        && one.is_nil == other.is_nil
        && one.items().len() == other.items().len()
        && one.items().iter().zip(other.items()).all(|(one, other)| identical(one, other))
}

fn identical_maps(one: &Map, other: &Map) -> bool {
    one.kind() == other.kind()
        && one.entries().len() == other.entries().len()
        && one
            .entries()
            .iter()
            .zip(other.entries())
            .all(|((key, value), (other_key, other))| key == other_key && identical(value, other))
}
