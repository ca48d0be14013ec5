//! The methods that Go has for moments, spans of time, months and days of the week.

use std::sync::Arc;

use super::{Moment, SECOND, Zone, days_of, layout};
use crate::error::Fault;
use crate::types::{Signature, Type};
use crate::value::{IntKind, Value};

/// A method: of what, its name, what it takes, what it gives.
type Row = (Type, &'static str, &'static [Type], Type);

const METHODS: &[Row] = &[
    (Type::Time, "Year", &[], Type::Int),
    (Type::Time, "Month", &[], Type::Month),
    (Type::Time, "Day", &[], Type::Int),
    (Type::Time, "Hour", &[], Type::Int),
    (Type::Time, "Minute", &[], Type::Int),
    (Type::Time, "Second", &[], Type::Int),
    (Type::Time, "Nanosecond", &[], Type::Int),
    (Type::Time, "Weekday", &[], Type::Weekday),
    (Type::Time, "YearDay", &[], Type::Int),
    (Type::Time, "ISOWeek", &[], Type::Int),
    (Type::Time, "Zone", &[], Type::Text),
    (Type::Time, "IsDST", &[], Type::Bool),
    (Type::Time, "Unix", &[], Type::Int64),
    (Type::Time, "UnixMilli", &[], Type::Int64),
    (Type::Time, "UnixMicro", &[], Type::Int64),
    (Type::Time, "UnixNano", &[], Type::Int64),
    (Type::Time, "Add", &[Type::Duration], Type::Time),
    (Type::Time, "Sub", &[Type::Time], Type::Duration),
    (Type::Time, "AddDate", &[Type::Int, Type::Int, Type::Int], Type::Time),
    (Type::Time, "After", &[Type::Time], Type::Bool),
    (Type::Time, "Before", &[Type::Time], Type::Bool),
    (Type::Time, "Equal", &[Type::Time], Type::Bool),
    (Type::Time, "Compare", &[Type::Time], Type::Int),
    (Type::Time, "IsZero", &[], Type::Bool),
    (Type::Time, "Format", &[Type::Text], Type::Text),
    (Type::Time, "String", &[], Type::Text),
    (Type::Time, "UTC", &[], Type::Time),
    (Type::Time, "Local", &[], Type::Time),
    (Type::Time, "In", &[Type::Zone], Type::Time),
    (Type::Time, "Location", &[], Type::Zone),
    (Type::Time, "Truncate", &[Type::Duration], Type::Time),
    (Type::Time, "Round", &[Type::Duration], Type::Time),
    (Type::Duration, "Hours", &[], Type::Float),
    (Type::Duration, "Minutes", &[], Type::Float),
    (Type::Duration, "Seconds", &[], Type::Float),
    (Type::Duration, "Milliseconds", &[], Type::Int64),
    (Type::Duration, "Microseconds", &[], Type::Int64),
    (Type::Duration, "Nanoseconds", &[], Type::Int64),
    (Type::Duration, "String", &[], Type::Text),
    (Type::Duration, "Abs", &[], Type::Duration),
    (Type::Duration, "Truncate", &[Type::Duration], Type::Duration),
    (Type::Duration, "Round", &[Type::Duration], Type::Duration),
    (Type::Month, "String", &[], Type::Text),
    (Type::Weekday, "String", &[], Type::Text),
    (Type::Zone, "String", &[], Type::Text),
];

/// From the first year of the calendar to 1970: Go counts from there when it rounds.
const SINCE_YEAR_ONE: i64 = 62_135_596_800;

/// What a method of this type takes and gives.
pub(crate) fn signature(of: &Type, name: &str) -> Option<Arc<Signature>> {
    let (_, _, parameters, result) =
        METHODS.iter().find(|(base, known, ..)| base == of && *known == name)?;
    let signature =
        Signature { parameters: parameters.to_vec(), is_variadic: false, result: result.clone() };
    Some(Arc::new(signature))
}

/// The answer of a method; nothing if there is none of this name.
pub(crate) fn call(base: &Value, name: &str, arguments: &[Value]) -> Option<Result<Value, Fault>> {
    let signature = signature(&base.type_of(), name)?;
    let wanted = signature.parameters.len();
    if wanted != arguments.len() {
        let count = arguments.len();
        let message = format!("invalid number of arguments: expected {wanted}, got {count}");
        return Some(Err(Fault::run(message)));
    }
    for (value, of) in arguments.iter().zip(&signature.parameters) {
        if value.type_of() != *of {
            let found = value.type_name();
            let message = format!("reflect: Call using {found} as type {of}");
            return Some(Err(Fault::run(message)));
        }
    }
    Some(Ok(match base {
        Value::Time(moment) => of_moment(moment, name, arguments),
        Value::Duration(span) => of_span(*span, name, arguments),
        other => Value::text(&other.to_string()),
    }))
}

fn of_moment(moment: &Moment, name: &str, arguments: &[Value]) -> Value {
    match arguments {
        [Value::Time(other)] => return beside(moment, name, other),
        [Value::Duration(span)] => return Value::Time(moved(moment, name, *span)),
        [Value::Text(layout)] => return Value::text(&layout::format(moment, layout)),
        [Value::Zone(zone)] => return Value::Time(moment.in_zone(zone)),
        [Value::Int(_, years), Value::Int(_, months), Value::Int(_, days)] => {
            return Value::Time(on_another_day(moment, *years, *months, *days));
        }
        _ => {}
    }
    let civil = moment.civil();
    let below = i64::from(moment.nanoseconds);
    let since = |per_second: i64, unit: i64| {
        Value::Int(IntKind::Int64, moment.seconds.wrapping_mul(per_second) + below / unit)
    };
    match name {
        "Year" => Value::int(civil.year),
        "Month" => Value::Month(civil.month),
        "Day" => Value::int(civil.day.into()),
        "Hour" => Value::int(civil.hour.into()),
        "Minute" => Value::int(civil.minute.into()),
        "Second" => Value::int(civil.second.into()),
        "Nanosecond" => Value::int(below),
        "Weekday" => Value::Weekday(moment.weekday()),
        "YearDay" => Value::int(moment.day_of_year()),
        // Of several answers the first counts: the year of the week, the name of the zone.
        "ISOWeek" => Value::int(year_of_week(moment)),
        "Zone" => Value::text(&moment.zone.shown_at(moment.seconds)),
        "IsDST" => Value::Bool(moment.zone.is_summer_at(moment.seconds)),
        "Unix" => Value::Int(IntKind::Int64, moment.seconds),
        "UnixMilli" => since(1_000, 1_000_000),
        "UnixMicro" => since(1_000_000, 1_000),
        "UnixNano" => since(SECOND, 1),
        "IsZero" => Value::Bool(moment.order() == (-SINCE_YEAR_ONE, 0)),
        "UTC" => Value::Time(moment.in_zone(&Zone::utc())),
        "Local" => Value::Time(moment.in_zone(&Zone::local())),
        "Location" => Value::Zone(moment.zone.clone()),
        _ => Value::text(&moment.to_string()),
    }
}

/// The year in which the Thursday of the week is.
fn year_of_week(moment: &Moment) -> i64 {
    let since_monday = (i64::from(moment.weekday()) + 6) % 7;
    moment.plus((3 - since_monday) * super::DAY * SECOND).civil().year
}

fn beside(moment: &Moment, name: &str, other: &Moment) -> Value {
    let order = moment.order().cmp(&other.order());
    match name {
        "Sub" => Value::Duration(moment.minus(other)),
        "After" => Value::Bool(order.is_gt()),
        "Before" => Value::Bool(order.is_lt()),
        "Equal" => Value::Bool(order.is_eq()),
        _ => Value::int(order as i64),
    }
}

fn moved(moment: &Moment, name: &str, span: i64) -> Moment {
    if name == "Add" {
        return moment.plus(span);
    }
    if span <= 0 {
        return moment.clone();
    }
    let since = i128::from(moment.seconds) + i128::from(SINCE_YEAR_ONE);
    let all = since * i128::from(SECOND) + i128::from(moment.nanoseconds);
    let over = i64::try_from(all.rem_euclid(i128::from(span))).unwrap_or(0);
    let is_up = name == "Round" && i128::from(over) * 2 >= i128::from(span);
    moment.plus(if is_up { span - over } else { -over })
}

fn on_another_day(moment: &Moment, years: i64, months: i64, days: i64) -> Moment {
    let civil = moment.civil();
    let most = |number: i64| number.clamp(-1_000_000, 1_000_000);
    let day = days_of(
        civil.year + most(years),
        i64::from(civil.month) + most(months),
        i64::from(civil.day) + most(days),
    );
    let before = days_of(civil.year, civil.month.into(), civil.day.into());
    let local = moment.local_seconds().saturating_add((day - before) * super::DAY);
    Moment { seconds: moment.zone.moment_of(local), ..moment.clone() }
}

fn of_span(span: i64, name: &str, arguments: &[Value]) -> Value {
    if let [Value::Duration(unit)] = arguments {
        return Value::Duration(rounded(span, name, *unit));
    }
    let int64 = |number| Value::Int(IntKind::Int64, number);
    let float = |unit: i64| Value::Float((span / unit) as f64 + (span % unit) as f64 / unit as f64);
    match name {
        "Hours" => float(3600 * SECOND),
        "Minutes" => float(60 * SECOND),
        "Seconds" => float(SECOND),
        "Milliseconds" => int64(span / 1_000_000),
        "Microseconds" => int64(span / 1_000),
        "Nanoseconds" => int64(span),
        "Abs" => Value::Duration(span.saturating_abs()),
        _ => Value::text(&super::duration_text(span)),
    }
}

fn rounded(span: i64, name: &str, unit: i64) -> i64 {
    if unit <= 0 {
        return span;
    }
    let rest = span % unit;
    let below = span - rest;
    if name == "Truncate" || rest.abs() < unit - rest.abs() {
        return below;
    }
    below.saturating_add(unit * rest.signum())
}
