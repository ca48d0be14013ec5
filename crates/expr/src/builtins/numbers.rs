//! Functions on numbers, and those that say what a value is.

use super::{Builtin, Call, Check, only, shown};
use crate::error::Fault;
use crate::eval::{Order, compare};
use crate::number::{as_float, parse_float, parse_int, truncated};
use crate::types::{Shape, Type};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin { name: "len", check: Check::Types(check_len), call: |call| length(call.value(0)) },
    Builtin {
        name: "type",
        check: Check::Overloads(&[&[Type::Any]], Type::Text),
        call: |call| Ok(Value::text(kind_name(call.value(0)))),
    },
    Builtin { name: "abs", check: Check::Types(check_abs), call: absolute },
    Builtin {
        name: "ceil",
        check: Check::Types(|types| check_rounding("ceil", types)),
        call: |call| round(call, "ceil", f64::ceil),
    },
    Builtin {
        name: "floor",
        check: Check::Types(|types| check_rounding("floor", types)),
        call: |call| round(call, "floor", f64::floor),
    },
    Builtin {
        name: "round",
        check: Check::Types(|types| check_rounding("round", types)),
        call: |call| round(call, "round", f64::round),
    },
    Builtin {
        name: "int",
        check: Check::Types(|types| check_conversion("int", types, Type::Int)),
        call: to_integer,
    },
    Builtin {
        name: "float",
        check: Check::Types(|types| check_conversion("float", types, Type::Float)),
        call: to_float,
    },
    Builtin {
        name: "string",
        check: Check::Overloads(&[&[Type::Any]], Type::Text),
        call: |call| {
            let text = call.value(0).to_string();
            call.budget.text(text.len())?;
            Ok(Value::text(&text))
        },
    },
    Builtin {
        name: "max",
        check: Check::Types(|types| check_aggregate("max", types)),
        call: |call| extreme(call, "max", Order::Less),
    },
    Builtin {
        name: "min",
        check: Check::Types(|types| check_aggregate("min", types)),
        call: |call| extreme(call, "min", Order::More),
    },
    Builtin {
        name: "mean",
        check: Check::Types(|types| check_aggregate("mean", types)),
        call: mean,
    },
    Builtin {
        name: "median",
        check: Check::Types(|types| check_aggregate("median", types)),
        call: median,
    },
];

fn check_len(types: &[Type]) -> Result<Type, String> {
    let of = only(types)?;
    match of.shape() {
        Shape::List | Shape::Array | Shape::Map | Shape::Text | Shape::Interface => Ok(Type::Int),
        _ => Err(format!("invalid argument for len (type {})", shown(of))),
    }
}

fn check_abs(types: &[Type]) -> Result<Type, String> {
    let of = only(types)?;
    let fits = of.is_number() || of.shape() == Shape::Interface || is_named_number(of);
    if fits { Ok(of.clone()) } else { Err(invalid("abs", of)) }
}

fn check_rounding(name: &str, types: &[Type]) -> Result<Type, String> {
    let of = only(types)?;
    let fits = of.is_number() || of.shape() == Shape::Interface || is_named_number(of);
    if fits { Ok(Type::Float) } else { Err(invalid(name, of)) }
}

fn check_conversion(name: &str, types: &[Type], result: Type) -> Result<Type, String> {
    let of = only(types)?;
    let fits = of.is_number() || *of == Type::Text || of.shape() == Shape::Interface;
    if fits || is_named_number(of) { Ok(result) } else { Err(invalid(name, of)) }
}

fn check_aggregate(name: &str, types: &[Type]) -> Result<Type, String> {
    let Some(first) = types.first() else {
        return Err(format!("not enough arguments to call {name}"));
    };
    for of in types {
        match of.shape() {
            Shape::Interface | Shape::List | Shape::Array => return Ok(Type::Any),
            _ if of.is_number() || is_named_number(of) => {}
            _ => return Err(invalid(name, of)),
        }
    }
    Ok(first.clone())
}

/// A type with a name of its own that is a number underneath.
fn is_named_number(of: &Type) -> bool {
    matches!(of, Type::Duration | Type::Month | Type::Weekday)
}

fn invalid(name: &str, of: &Type) -> String {
    format!("invalid argument for {name} (type {})", shown(of))
}

fn invalid_value(name: &str, value: &Value) -> Fault {
    Fault::run(format!("invalid argument for {name} (type {})", value.type_name()))
}

fn length(value: &Value) -> Result<Value, Fault> {
    let length = match value {
        Value::List(list) => list.items().len(),
        Value::Map(map) => map.entries().len(),
        Value::Text(text) => text.chars().count(),
        other => return Err(invalid_value("len", other)),
    };
    Ok(Value::int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Bool(_) => "bool",
        Value::Int(crate::IntKind::Byte, _) => "uint",
        Value::Int(..) => "int",
        Value::Float(_) => "float",
        Value::Text(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "map",
        Value::Time(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::Zone(_) => "time.Location",
        Value::Month(_) => "time.Month",
        Value::Weekday(_) => "time.Weekday",
        Value::Function(_) => "func",
    }
}

fn absolute(call: &mut Call<'_>) -> Result<Value, Fault> {
    match call.value(0) {
        Value::Int(kind, number) => Ok(Value::Int(*kind, number.wrapping_abs())),
        Value::Float(number) if *number < 0.0 => Ok(Value::Float(-number)),
        Value::Float(number) => Ok(Value::Float(*number)),
        other => Err(invalid_value("abs", other)),
    }
}

fn round(call: &mut Call<'_>, name: &str, round: fn(f64) -> f64) -> Result<Value, Fault> {
    let value = call.value(0);
    let number = as_float(value).ok_or_else(|| invalid_value(name, value))?;
    Ok(Value::Float(if matches!(value, Value::Float(_)) { round(number) } else { number }))
}

fn to_integer(call: &mut Call<'_>) -> Result<Value, Fault> {
    let invalid = |what: &str| Fault::run(format!("invalid operation: int({what})"));
    let number = match call.value(0) {
        Value::Int(_, number) | Value::Duration(number) => *number,
        Value::Float(number) => truncated(*number),
        Value::Month(number) | Value::Weekday(number) => i64::from(*number),
        Value::Text(text) => parse_int(text).ok_or_else(|| invalid(text))?,
        other => return Err(invalid(&other.type_name())),
    };
    Ok(Value::int(number))
}

fn to_float(call: &mut Call<'_>) -> Result<Value, Fault> {
    let invalid = |what: &str| Fault::run(format!("invalid operation: float({what})"));
    match call.value(0) {
        Value::Text(text) => parse_float(text).map(Value::Float).ok_or_else(|| invalid(text)),
        other => {
            let number = as_float(other).ok_or_else(|| invalid(&other.type_name()))?;
            Ok(Value::Float(number))
        }
    }
}

/// The greatest or the least: the one that `replaces` every other.
fn extreme(call: &mut Call<'_>, name: &str, replaces: Order) -> Result<Value, Fault> {
    if let [only] = call.arguments
        && !matches!(only, Value::List(_) | Value::Int(..) | Value::Float(_))
    {
        return Ok(only.clone());
    }
    let mut best = Value::Nil;
    let mut take = |number: &Value| {
        if best == Value::Nil || compare(&best, number, replaces)? {
            best = number.clone();
        }
        Ok(())
    };
    for argument in call.arguments {
        match argument {
            // As an element of a list it is none.
            Value::Duration(_) | Value::Month(_) | Value::Weekday(_) => take(argument)?,
            other => each_number(std::slice::from_ref(other), name, &mut |number| match number {
                Value::Int(..) | Value::Float(_) => take(number),
                other => Err(invalid_value(name, other)),
            })?,
        }
    }
    Ok(best)
}

fn mean(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (mut count, mut sum) = (0.0, 0.0);
    each_number(call.arguments, "mean", &mut |number| {
        count += 1.0;
        sum += plain(number);
        Ok(())
    })?;
    Ok(Value::Float(if count == 0.0 { 0.0 } else { sum / count }))
}

fn median(call: &mut Call<'_>) -> Result<Value, Fault> {
    let mut numbers = Vec::new();
    each_number(call.arguments, "median", &mut |number| {
        numbers.push(plain(number));
        Ok(())
    })?;
    // What is no number comes first.
    numbers.sort_by(|one, other| other.is_nan().cmp(&one.is_nan()).then(one.total_cmp(other)));
    let middle = numbers.len() / 2;
    let at = |at: usize| numbers.get(at).copied().unwrap_or(0.0);
    Ok(Value::Float(match numbers.len() {
        0 => 0.0,
        length if length % 2 == 1 => at(middle),
        _ => (at(middle - 1) + at(middle)) / 2.0,
    }))
}

/// What Go has as a number underneath.
fn plain(number: &Value) -> f64 {
    match number {
        Value::Duration(number) => *number as f64,
        Value::Month(number) | Value::Weekday(number) => f64::from(*number),
        other => as_float(other).unwrap_or(0.0),
    }
}

/// Every number of the arguments and of the lists among them, however nested.
fn each_number(
    values: &[Value],
    name: &str,
    visit: &mut dyn FnMut(&Value) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for value in values {
        match value {
            Value::Int(..) | Value::Float(_) => visit(value)?,
            Value::Duration(_) | Value::Month(_) | Value::Weekday(_) => visit(value)?,
            Value::List(list) => each_number(list.items(), name, visit)?,
            other => return Err(invalid_value(name, other)),
        }
    }
    Ok(())
}
