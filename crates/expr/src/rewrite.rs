//! What is known before the run is computed once, and parts that need not be evaluated go. The
//! original does the same, and users can see it: `x || true` is true even where `x` fails, and
//! `filter(…)[0]` stops at the first element found. So each rule here is one of the original's, in
//! its order.

mod fold;
mod loops;

use crate::ast::{Binary, Expr, Node, Pattern};
use crate::error::Error;

use crate::pattern;
use crate::types::{MapKind, Type};
use crate::value::{IntKind, Key, Map, Value};

/// More rounds than any tree needs.
const MOST_ROUNDS: usize = 1_000;

/// Rewrites a tree that was checked.
pub(crate) fn rewrite(tree: &mut Node) -> Result<(), Error> {
    let mut result = Ok(());
    walk(tree, &mut in_set);
    for _ in 0..MOST_ROUNDS {
        let mut has_changed = false;
        walk(tree, &mut |node| match fold::fold(node) {
            Ok(changed) => has_changed |= changed,
            Err(error) if result.is_ok() => result = Err(error),
            Err(_) => {}
        });
        if !has_changed {
            break;
        }
    }
    result?;
    let rules: [fn(&mut Node); 9] = [
        in_range,
        loops::map_of_filter,
        loops::length_of_filter,
        loops::end_of_filter,
        loops::combined,
        loops::sum_of_range,
        loops::sum_of_literal,
        loops::count_is_any,
        loops::count_enough,
    ];
    for mut rule in rules {
        walk(tree, &mut rule);
    }
    let mut result = Ok(());
    walk(tree, &mut |node| {
        if let Err(error) = compiled_pattern(node)
            && result.is_ok()
        {
            result = Err(error);
        }
    });
    result
}

/// Visits every part of a tree, what is inside first.
fn walk(node: &mut Node, visit: &mut dyn FnMut(&mut Node)) {
    node.expr.each_part_mut(&mut |part| walk(part, visit));
    visit(node);
}

/// `x in ["a", "b"]` becomes a look-up, and so does one of integers where `x` is one.
fn in_set(node: &mut Node) {
    let Expr::Binary(Binary::In, left, right) = &mut node.expr else { return };
    let Expr::List(items) = &right.expr else { return };
    let literals: Option<Vec<&Value>> = items.iter().map(Node::literal).collect();
    let Some(literals) = literals.filter(|literals| !literals.is_empty()) else { return };
    let is_text = |value: &&Value| matches!(value, Value::Text(_));
    let is_integer = |value: &&Value| matches!(value, Value::Int(IntKind::Int, _));
    let kind = if literals.iter().all(is_text) {
        MapKind::TextSet
    } else if left.of == Type::Int && literals.iter().all(is_integer) {
        MapKind::IntSet
    } else {
        return;
    };
    let keys = literals.into_iter().filter_map(|value| Key::of(value).ok());
    let entries = keys.map(|key| (key, Value::Nil)).collect();
    if let Ok(set) = Map::new(kind, entries) {
        **right = right.becomes(Expr::Constant(Value::Map(set)));
    }
}

/// `x in 1..5` becomes two comparisons where `x` is an integer.
fn in_range(node: &mut Node) {
    let Expr::Binary(Binary::In, left, right) = &node.expr else { return };
    let Expr::Binary(Binary::Range, from, to) = &right.expr else { return };
    let is_integer = |node: &Node| matches!(node.literal(), Some(Value::Int(..)));
    if left.of != Type::Int || !is_integer(from) || !is_integer(to) {
        return;
    }
    let compare = |operator, limit: &Node| {
        Box::new(node.becomes(Expr::Binary(operator, left.clone(), Box::new(limit.clone()))))
    };
    let (least, most) = (compare(Binary::AtLeast, from), compare(Binary::AtMost, to));
    *node = node.becomes(Expr::Binary(Binary::And, least, most));
}

/// A pattern that is written in the expression is compiled once.
fn compiled_pattern(node: &mut Node) -> Result<(), Error> {
    let Expr::Binary(Binary::Matches, left, right) = &node.expr else { return Ok(()) };
    let Some(Value::Text(text)) = right.literal() else { return Ok(()) };
    let pattern = pattern::compile(text).map_err(|text| Error::compile(right.span, text))?;
    *node = node.becomes(Expr::Matches(left.clone(), Pattern(pattern)));
    Ok(())
}
