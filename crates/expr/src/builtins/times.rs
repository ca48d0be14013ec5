//! Functions that make moments, spans of time and time zones.

use super::{Builtin, Call, Check};
use crate::error::Fault;
use crate::time::{Zone, parse_duration, parse_moment};
use crate::types::Type;
use crate::value::Value;

/// The forms that `date` tries without being told one.
const LAYOUTS: [&str; 7] = [
    "2006-01-02",
    "15:04:05",
    "2006-01-02 15:04:05",
    "2006-01-02T15:04:05Z07:00",
    "02 Jan 06 15:04 MST",
    "Monday, 02-Jan-06 15:04:05 MST",
    "Mon, 02 Jan 2006 15:04:05 MST",
];

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin { name: "now", check: Check::Types(check_now), call: now },
    Builtin {
        name: "duration",
        check: Check::Overloads(&[&[Type::Text]], Type::Duration),
        call: |call| parse_duration(call.text(0)?).map(Value::Duration).map_err(Fault::run),
    },
    Builtin { name: "date", check: Check::Types(check_date), call: date },
    Builtin {
        name: "timezone",
        check: Check::Overloads(&[&[Type::Text]], Type::Zone),
        call: |call| zone(call.text(0)?).map(Value::Zone),
    },
];

fn check_now(types: &[Type]) -> Result<Type, String> {
    match types {
        [] | [Type::Zone] => Ok(Type::Time),
        all => Err(format!("invalid number of arguments (expected 0, got {})", all.len())),
    }
}

fn check_date(types: &[Type]) -> Result<Type, String> {
    let rest = types.strip_prefix(&[Type::Zone]).unwrap_or(types);
    match rest.len() {
        0 if types.is_empty() => {
            Err("invalid number of arguments (expected at least 1, got 0)".to_owned())
        }
        0..=3 => Ok(Type::Time),
        count => Err(format!("invalid number of arguments (expected at most 3, got {count})")),
    }
}

fn now(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::Time(match call.value(0) {
        Value::Zone(zone) => call.now.in_zone(zone),
        _ => call.now.clone(),
    }))
}

fn date(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (given, first) = match call.value(0) {
        Value::Zone(zone) => (zone.clone(), 1),
        _ => (Zone::utc(), 0),
    };
    let text = call.text(first)?;
    let rest = call.arguments.len() - first;
    if rest == 1 {
        let found = LAYOUTS.iter().find_map(|layout| parse_moment(layout, text, &given).ok());
        return found.map(Value::Time).ok_or_else(|| Fault::run(format!("invalid date {text}")));
    }
    let given = if rest > 2 { zone(call.text(first + 2)?)? } else { given };
    parse_moment(call.text(first + 1)?, text, &given).map(Value::Time).map_err(Fault::run)
}

fn zone(name: &str) -> Result<Zone, Fault> {
    Zone::named(name).ok_or_else(|| Fault::run(format!("unknown time zone {name}")))
}
