//! How a value reads as text, as Go prints it with `%v`.

use std::fmt;

use super::{List, Map, Value};
use crate::number::float_text;
use crate::time::{MONTHS, WEEKDAYS, duration_text};

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Nil => f.write_str("<nil>"),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::Int(_, number) => write!(f, "{number}"),
            Value::Float(number) => f.write_str(&float_text(*number)),
            Value::Text(text) => f.write_str(text),
            Value::List(list) => list.fmt(f),
            Value::Map(map) => map.fmt(f),
            Value::Time(moment) => write!(f, "{moment}"),
            Value::Duration(nanoseconds) => f.write_str(&duration_text(*nanoseconds)),
            Value::Zone(zone) => f.write_str(zone.name()),
            Value::Month(number) => f.write_str(name(&MONTHS, number.saturating_sub(1))),
            Value::Weekday(number) => f.write_str(name(&WEEKDAYS, *number)),
            Value::Function(function) => write!(f, "func {}", function.name()),
        }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, item) in self.items().iter().enumerate() {
            write!(f, "{}{item}", if at == 0 { "" } else { " " })?;
        }
        f.write_str("]")
    }
}

impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("map[")?;
        for (at, (key, value)) in self.entries().iter().enumerate() {
            write!(f, "{}{}:{value}", if at == 0 { "" } else { " " }, key.value())?;
        }
        f.write_str("]")
    }
}

fn name<'n>(names: &[&'n str], number: u8) -> &'n str {
    names.get(usize::from(number)).copied().unwrap_or("%!unknown")
}
