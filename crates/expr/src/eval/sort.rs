//! Sorting values that may not be comparable: the first two that are not are an error.

use super::{Budget, Order, compare};
use crate::error::Fault;
use crate::value::Value;

/// The second of each pair, in the order of the first; equal ones keep their order.
pub(crate) fn sort(
    pairs: Vec<(Value, Value)>,
    order: Order,
    budget: &mut Budget,
) -> Result<Vec<Value>, Fault> {
    let sorted = merge_sort(pairs, order, budget)?;
    Ok(sorted.into_iter().map(|(_, item)| item).collect())
}

fn merge_sort(
    mut pairs: Vec<(Value, Value)>,
    order: Order,
    budget: &mut Budget,
) -> Result<Vec<(Value, Value)>, Fault> {
    if pairs.len() < 2 {
        return Ok(pairs);
    }
    budget.steps(pairs.len())?;
    let right = pairs.split_off(pairs.len() / 2);
    let left = merge_sort(pairs, order, budget)?;
    let right = merge_sort(right, order, budget)?;
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some((one, _)), Some((other, _))) = (left.peek(), right.peek()) {
        let is_right = match order {
            Order::More => compare(one, other, Order::Less)?,
            _ => compare(other, one, Order::Less)?,
        };
        merged.extend(if is_right { right.next() } else { left.next() });
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}
