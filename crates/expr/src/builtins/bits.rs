//! Functions on the bits of integers.

use super::{Builtin, Call, Check};
use crate::error::Fault;
use crate::types::Type;
use crate::value::Value;

const TWO: Check = Check::Overloads(&[&[Type::Int, Type::Int]], Type::Int);

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin { name: "bitand", check: TWO, call: |call| two(call, |one, other| one & other) },
    Builtin { name: "bitor", check: TWO, call: |call| two(call, |one, other| one | other) },
    Builtin { name: "bitxor", check: TWO, call: |call| two(call, |one, other| one ^ other) },
    Builtin { name: "bitnand", check: TWO, call: |call| two(call, |one, other| one & !other) },
    Builtin { name: "bitshl", check: TWO, call: |call| shift(call, i64::checked_shl, 0) },
    Builtin {
        name: "bitshr",
        check: TWO,
        call: |call| {
            let rest = if integer(call, 0)? < 0 { -1 } else { 0 };
            shift(call, i64::checked_shr, rest)
        },
    },
    Builtin {
        name: "bitushr",
        check: TWO,
        call: |call| {
            let unsigned = |one: i64, by| one.cast_unsigned().checked_shr(by).map(u64::cast_signed);
            shift(call, unsigned, 0)
        },
    },
    Builtin {
        name: "bitnot",
        check: Check::Overloads(&[&[Type::Int]], Type::Int),
        call: |call| Ok(Value::int(!integer(call, 0)?)),
    },
];

fn integer(call: &Call<'_>, at: usize) -> Result<i64, Fault> {
    match call.value(at) {
        Value::Int(_, number) => Ok(*number),
        other => {
            let name = other.type_name();
            Err(Fault::run(format!("cannot use {name} as argument (type int)")))
        }
    }
}

fn two(call: &Call<'_>, compute: fn(i64, i64) -> i64) -> Result<Value, Fault> {
    Ok(Value::int(compute(integer(call, 0)?, integer(call, 1)?)))
}

/// A shift by more than there are bits leaves `rest`.
fn shift(call: &Call<'_>, compute: fn(i64, u32) -> Option<i64>, rest: i64) -> Result<Value, Fault> {
    let (number, by) = (integer(call, 0)?, integer(call, 1)?);
    if by < 0 {
        let message = format!("invalid operation: negative shift count {by} (type int)");
        return Err(Fault::run(message));
    }
    let shifted = u32::try_from(by).ok().and_then(|by| compute(number, by));
    Ok(Value::int(shifted.unwrap_or(rest)))
}
