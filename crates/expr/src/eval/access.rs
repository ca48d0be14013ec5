//! Elements, slices, and calls of functions that are values.

use crate::builtins::wrong_type;
use crate::error::Fault;
use crate::number::to_int;
use crate::types::{ListKind, MapKind, Type};
use crate::value::{IntKind, List, Value};

/// A field of a map, or an element of a list or a text.
pub(crate) fn element(base: &Value, key: &Value) -> Result<Value, Fault> {
    match base {
        Value::List(list) => {
            let at = place(key, list.items().len())?;
            Ok(list.items().get(at).cloned().unwrap_or_default())
        }
        Value::Text(text) => {
            let byte = text.as_bytes()[place(key, text.len())?];
            Ok(Value::Int(IntKind::Byte, byte.into()))
        }
        Value::Map(map) => Ok(match (map.look_up(key)?, map.kind()) {
            (Some(value), _) => value.clone(),
            (None, MapKind::Groups) => Value::List(List::nil_of(ListKind::Any)),
            (None, _) => Value::Nil,
        }),
        other => {
            let from = other.type_name();
            Err(Fault::run(format!("cannot fetch {key} from {from}")))
        }
    }
}

/// An index, from the end where it is negative.
fn place(key: &Value, length: usize) -> Result<usize, Fault> {
    let index = to_int(key)?;
    let index = if index < 0 { index.saturating_add_unsigned(length as u64) } else { index };
    usize::try_from(index).ok().filter(|index| *index < length).ok_or_else(|| {
        Fault::run(format!("index out of range: {index} (array length is {length})"))
    })
}

/// A part of a list, or of a text by its bytes; ends beyond it are those of the whole.
pub(super) fn slice(
    base: &Value,
    from: Option<&Value>,
    to: Option<&Value>,
) -> Result<Value, Fault> {
    let length = match base {
        Value::List(list) => list.items().len(),
        Value::Text(text) => text.len(),
        other => return Err(Fault::run(format!("cannot slice {}", other.type_name()))),
    };
    let end = |value: Option<&Value>, otherwise: usize| -> Result<usize, Fault> {
        let Some(value) = value else { return Ok(otherwise) };
        let index = to_int(value)?;
        let index = if index < 0 { index.saturating_add_unsigned(length as u64) } else { index };
        Ok(usize::try_from(index).unwrap_or(0).min(length))
    };
    let to = end(to, length)?;
    let from = end(from, 0)?.min(to);
    Ok(match base {
        Value::List(list) => Value::List(list.part(from, to)),
        Value::Text(text) => {
            let bytes = text.as_bytes().get(from..to).unwrap_or_default();
            Value::text(&String::from_utf8_lossy(bytes))
        }
        other => other.clone(),
    })
}

/// Calls a value that is a function.
pub(super) fn invoke(called: &Value, arguments: &[Value]) -> Result<Value, Fault> {
    let function = match called {
        Value::Function(function) => function,
        Value::Nil => return Err(Fault::run("invalid operation: cannot call nil")),
        other => {
            let name = other.type_name();
            let message = format!("invalid operation: cannot call non-function of type {name}");
            return Err(Fault::run(message));
        }
    };
    let signature = function.signature();
    let wanted = signature.parameters.len();
    let count = arguments.len();
    let least = if signature.is_variadic { wanted - 1 } else { wanted };
    if count < least || count > wanted && !signature.is_variadic {
        let at_least = if signature.is_variadic { "at least " } else { "" };
        let message =
            format!("invalid number of arguments: expected {at_least}{least}, got {count}");
        return Err(Fault::run(message));
    }
    for (at, argument) in arguments.iter().enumerate() {
        let parameter = &signature.parameters[at.min(wanted - 1)];
        let fits = *parameter == Type::Any || argument.type_of().is_assignable_to(parameter);
        if !fits {
            return Err(wrong_type(argument, &parameter.to_string()));
        }
    }
    function.call(arguments).map_err(Fault::run)
}
