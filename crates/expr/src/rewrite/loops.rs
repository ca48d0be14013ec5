//! Functions over lists that need not go to the end, or need not make a list.

use crate::ast::{Binary, Expr, Loop, LoopKind, Member, Node};
use crate::types::Type;
use crate::value::Value;

fn filter(node: &Node) -> Option<&Loop> {
    match &node.expr {
        Expr::Loop(round) if round.kind == LoopKind::Filter => Some(round),
        _ => None,
    }
}

fn becomes(node: &mut Node, round: Loop) {
    *node = node.becomes(Expr::Loop(Box::new(round)));
}

/// `map(filter(x, a), b)` is one round.
pub(super) fn map_of_filter(node: &mut Node) {
    let Expr::Loop(outer) = &node.expr else { return };
    let (LoopKind::Map, Some(body)) = (outer.kind, &outer.body) else { return };
    let Some(inner) = filter(&outer.list).filter(|inner| inner.then.is_none()) else { return };
    if has_index(body) {
        return;
    }
    let merged = Loop { then: Some(body.clone()), ..inner.clone() };
    becomes(node, merged);
}

fn has_index(node: &Node) -> bool {
    if matches!(&node.expr, Expr::Pointer(name) if name == "index") {
        return true;
    }
    let mut found = false;
    node.expr.each_part(&mut |part| found |= has_index(part));
    found
}

/// `len(filter(x, a))` is `count(x, a)`.
pub(super) fn length_of_filter(node: &mut Node) {
    let Expr::Builtin { builtin, arguments } = &node.expr else { return };
    let ("len", [list]) = (builtin.name, arguments.as_slice()) else { return };
    if let Some(inner) = filter(list) {
        let counted = Loop { kind: LoopKind::Count, then: None, ..inner.clone() };
        becomes(node, counted);
    }
}

/// `filter(x, a)[0]` and `first(filter(x, a))` stop at the first element, `[-1]` and `last` at the
/// last.
pub(super) fn end_of_filter(node: &mut Node) {
    let (inner, kind, must_find) = match &node.expr {
        Expr::Member(Member { base, property, is_optional: false, .. }) => {
            let kind = match property.literal() {
                Some(Value::Int(_, 0)) => LoopKind::Find,
                Some(Value::Int(_, -1)) => LoopKind::FindLast,
                _ => return,
            };
            (filter(base), kind, true)
        }
        Expr::Builtin { builtin, arguments } => match (builtin.name, arguments.as_slice()) {
            ("first", [list]) => (filter(list), LoopKind::Find, false),
            ("last", [list]) => (filter(list), LoopKind::FindLast, false),
            _ => return,
        },
        _ => return,
    };
    if let Some(inner) = inner {
        let found = Loop { kind, must_find, ..inner.clone() };
        becomes(node, found);
    }
}

/// `all(x, a) && all(x, b)` is `all(x, a && b)`, and so for `any` with `||` and `none` with `&&`.
pub(super) fn combined(node: &mut Node) {
    let Expr::Binary(operator, left, right) = &node.expr else { return };
    let (Expr::Loop(one), Expr::Loop(other)) = (&left.expr, &right.expr) else { return };
    let inside = match (one.kind, operator) {
        (LoopKind::All, Binary::And) => Binary::And,
        (LoopKind::Any, Binary::Or) | (LoopKind::None, Binary::And) => Binary::Or,
        _ => return,
    };
    let is_same = one.kind == other.kind && one.list == other.list && one.list.of == other.list.of;
    let (Some(first), Some(second), true) = (&one.body, &other.body, is_same) else { return };
    let body = Expr::Binary(inside, Box::new(first.clone()), Box::new(second.clone()));
    let mut body = Node::new(body, first.span.to(second.span));
    combined(&mut body);
    let merged = Loop { body: Some(body), ..(**one).clone() };
    becomes(node, merged);
}

/// The sum of a range needs no list.
pub(super) fn sum_of_range(node: &mut Node) {
    let Expr::Loop(round) = &node.expr else { return };
    let Expr::Binary(Binary::Range, from, to) = &round.list.expr else { return };
    let (LoopKind::Sum, None) = (round.kind, &round.body) else { return };
    let (Some(Value::Int(_, from)), Some(Value::Int(_, to))) = (from.literal(), to.literal())
    else {
        return;
    };
    if to < from {
        return;
    }
    let count = to.wrapping_sub(*from).wrapping_add(1);
    let sum = count.wrapping_mul(from.wrapping_add(*to)) / 2;
    *node = Node { of: Type::Int, ..Node::new(Expr::Literal(Value::int(sum)), node.span) };
}

/// `sum([a, b, c])` is `a + (b + c)`.
pub(super) fn sum_of_literal(node: &mut Node) {
    let Expr::Loop(round) = &node.expr else { return };
    let (LoopKind::Sum, None) = (round.kind, &round.body) else { return };
    if let Expr::List(items) = &round.list.expr
        && items.len() > 1
    {
        *node = node.becomes(Expr::Sum(items.clone()));
    }
}

/// `count(x, a) > 0` and `count(x, a) >= 1` are `any(x, a)`.
pub(super) fn count_is_any(node: &mut Node) {
    let Some((round, operator, limit)) = counted(node) else { return };
    if matches!((operator, limit), (Binary::More, 0) | (Binary::AtLeast, 1)) {
        let any = Loop { kind: LoopKind::Any, ..round.clone() };
        becomes(node, any);
    }
}

/// A count that is compared with a number may stop when the answer is known.
pub(super) fn count_enough(node: &mut Node) {
    let Some((_, operator, limit)) = counted(node) else { return };
    let enough = match operator {
        Binary::More | Binary::AtMost => limit.saturating_add(1),
        Binary::AtLeast | Binary::Less => limit,
        _ => return,
    };
    if limit < 0 || enough <= 1 {
        return;
    }
    if let Expr::Binary(_, left, _) = &mut node.expr
        && let Expr::Loop(round) = &mut left.expr
    {
        round.enough = Some(enough);
    }
}

/// A count with an expression, compared with a literal.
fn counted(node: &Node) -> Option<(&Loop, Binary, i64)> {
    let Expr::Binary(operator, left, right) = &node.expr else { return None };
    match (&left.expr, right.literal()) {
        (Expr::Loop(round), Some(Value::Int(_, limit)))
            if round.kind == LoopKind::Count && round.body.is_some() =>
        {
            Some((round, *operator, *limit))
        }
        _ => None,
    }
}
