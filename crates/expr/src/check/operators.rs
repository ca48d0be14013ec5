//! What operators take and give.

use crate::ast::{Binary, Unary};
use crate::types::Type;
use crate::value::Value;

type Fits = fn(&Type) -> bool;

/// `written` is the text before the operand.
pub(super) fn unary(operator: Unary, written: &str, of: &Type) -> Result<Type, String> {
    match operator {
        Unary::Not if *of == Type::Bool || of.is_unknown() => Ok(Type::Bool),
        Unary::Minus | Unary::Plus if of.is_number() => Ok(of.clone()),
        Unary::Minus | Unary::Plus if of.is_unknown() => Ok(Type::Unknown),
        _ => {
            let name = if written.starts_with("not") { "not" } else { operator.name() };
            Err(format!("invalid operation: {name} (mismatched type {of})"))
        }
    }
}

/// `written` is the text between the operands, and `pattern` the right one where it is a literal.
pub(super) fn binary(
    (operator, written): (Binary, &str),
    left: &Type,
    right: &Type,
    pattern: Option<&Value>,
) -> Result<Type, String> {
    let found = match operator {
        Binary::Equal | Binary::Unequal => left.is_comparable_to(right).then_some(Type::Bool),
        Binary::Or | Binary::And => both(left, right, &[is_bool]).map(|_| Type::Bool),
        Binary::Less | Binary::More | Binary::AtLeast | Binary::AtMost => {
            both(left, right, &[Type::is_number, is_text, is_time, is_duration]).map(|_| Type::Bool)
        }
        Binary::In => return within(left, right),
        Binary::Matches => {
            if let Some(Value::Text(pattern)) = pattern {
                crate::pattern::compile(pattern)?;
            }
            let bytes = Type::List(crate::types::ListKind::Byte, None);
            if *left == bytes && *right == Type::Text {
                return Ok(Type::Bool);
            }
            both(left, right, &[is_text]).map(|_| Type::Bool)
        }
        Binary::Contains | Binary::StartsWith | Binary::EndsWith => {
            both(left, right, &[is_text]).map(|_| Type::Bool)
        }
        Binary::Range => both(left, right, &[Type::is_integer]).map(|_| Type::list_of(Type::Int)),
        Binary::Divide | Binary::Power => {
            both(left, right, &[Type::is_number]).map(|_| Type::Float)
        }
        Binary::Modulo => both(left, right, &[Type::is_integer]).map(|_| Type::Int),
        Binary::Add | Binary::Subtract | Binary::Multiply => arithmetic(operator, left, right),
        Binary::Coalesce => Some(match (left, right) {
            (Type::Nil, other) | (other, Type::Nil) => other.clone(),
            (one, other) if other.is_assignable_to(one) => one.clone(),
            _ => Type::Unknown,
        }),
    };
    found.ok_or_else(|| {
        let other_name = [(Binary::And, "and"), (Binary::Or, "or"), (Binary::Power, "^")]
            .into_iter()
            .find(|(of, name)| *of == operator && written.contains(name));
        let name = other_name.map_or(operator.name(), |(_, name)| name);
        format!("invalid operation: {name} (mismatched types {left} and {right})")
    })
}

/// Both fit one of these, or one of them is unknown and the other fits any. Says which kind it is,
/// or nothing is known.
fn both(left: &Type, right: &Type, kinds: &[Fits]) -> Option<Option<usize>> {
    let of_one_kind = kinds.iter().position(|fits| fits(left) && fits(right));
    let may_fit = |of: &Type| of.is_unknown() || kinds.iter().any(|fits| fits(of));
    let is_open = left.is_unknown() || right.is_unknown();
    match of_one_kind {
        Some(kind) => Some(Some(kind)),
        None if is_open && may_fit(left) && may_fit(right) => Some(None),
        None => None,
    }
}

fn arithmetic(operator: Binary, left: &Type, right: &Type) -> Option<Type> {
    if left.is_number() && right.is_number() {
        let is_float = *left == Type::Float || *right == Type::Float;
        return Some(if is_float { Type::Float } else { Type::Int });
    }
    match (operator, left, right) {
        (Binary::Add, Type::Text, Type::Text) => Some(Type::Text),
        (Binary::Add | Binary::Subtract, Type::Time, Type::Duration)
        | (Binary::Add, Type::Duration, Type::Time) => Some(Type::Time),
        (Binary::Subtract, Type::Time, Type::Time) | (_, Type::Duration, Type::Duration) => {
            Some(Type::Duration)
        }
        (Binary::Multiply, number, Type::Duration) | (Binary::Multiply, Type::Duration, number)
            if number.is_number() =>
        {
            Some(Type::Duration)
        }
        _ => {
            let kinds: &[Fits] = match operator {
                Binary::Add => &[Type::is_number, is_text, is_time, is_duration],
                Binary::Subtract => &[Type::is_number, is_time, is_duration],
                _ => &[Type::is_number, is_duration],
            };
            both(left, right, kinds).and_then(|kind| kind.is_none().then_some(Type::Unknown))
        }
    }
}

fn within(left: &Type, right: &Type) -> Result<Type, String> {
    let is_struct = *right == Type::Time;
    if is_struct && (*left == Type::Text || left.is_unknown()) || right.is_unknown() {
        return Ok(Type::Bool);
    }
    match right {
        Type::Map(_) => {
            let key = right.key();
            if left.is_unknown() || left.is_assignable_to(&key) {
                return Ok(Type::Bool);
            }
            Err(format!("cannot use {left} as type {key} in map key"))
        }
        Type::List(..) => {
            let element = right.element();
            if left.is_comparable_to(&element) {
                return Ok(Type::Bool);
            }
            Err(format!("cannot use {left} as type {element} in array"))
        }
        Type::Text if left.is_unknown() => Ok(Type::Bool),
        _ => Err(format!("invalid operation: in (mismatched types {left} and {right})")),
    }
}

fn is_bool(of: &Type) -> bool {
    *of == Type::Bool
}

fn is_text(of: &Type) -> bool {
    *of == Type::Text
}

fn is_time(of: &Type) -> bool {
    *of == Type::Time
}

fn is_duration(of: &Type) -> bool {
    *of == Type::Duration
}
