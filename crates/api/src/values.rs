//! Small values a user writes as text or number: kept as written, read by one rule each.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A moment as the API stores it: UTC, whole seconds, so that a status equals itself
/// after a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(Timestamp);

impl Time {
    /// Cuts the moment to whole seconds.
    pub fn new(moment: Timestamp) -> Self {
        let cut = Timestamp::from_second(moment.as_second());
        Self(cut.expect("the second of a timestamp is itself in range"))
    }

    /// The moment, for arithmetic.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl Default for Time {
    fn default() -> Self {
        Self(Timestamp::UNIX_EPOCH)
    }
}

impl From<Timestamp> for Time {
    fn from(moment: Timestamp) -> Self {
        Self::new(moment)
    }
}

impl From<Time> for Timestamp {
    fn from(time: Time) -> Self {
        time.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a timestamp string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
        text.parse().map(Time::new).map_err(E::custom)
    }
}

/// A number or a text, as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntOrString {
    /// A whole number.
    Int(i32),
    /// Any text; what it means depends on the field.
    Text(String),
}

impl Default for IntOrString {
    fn default() -> Self {
        Self::Int(0)
    }
}

impl IntOrString {
    /// The number, or the text read as a decimal number; any other text counts as 0.
    pub fn int_value(&self) -> i32 {
        match self {
            Self::Int(number) => *number,
            Self::Text(text) => text.parse().unwrap_or(0),
        }
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(formatter),
            Self::Text(text) => formatter.write_str(text),
        }
    }
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(number) => serializer.serialize_i32(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntOrStringVisitor)
    }
}

struct IntOrStringVisitor;

impl Visitor<'_> for IntOrStringVisitor {
    type Value = IntOrString;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a 32-bit integer or a string")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<IntOrString, E> {
        let fits = i32::try_from(number);
        fits.map(IntOrString::Int)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<IntOrString, E> {
        let fits = i32::try_from(number);
        fits.map(IntOrString::Int)
            .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<IntOrString, E> {
        Ok(IntOrString::Text(text.to_owned()))
    }
}

/// Which way a share of a whole is rounded to a number of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To the next higher number, as for `maxSurge`.
    Up,
    /// To the next lower number, as for `maxUnavailable`.
    Down,
}

/// A number of pods, or a share of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IntOrPercent(pub IntOrString);

impl IntOrPercent {
    /// The share a missing `maxSurge` or `maxUnavailable` stands for.
    pub fn percent(share: u32) -> Self {
        Self(IntOrString::Text(format!("{share}%")))
    }

    /// The number of pods this means out of `total`. A number is taken as it is; a text is
    /// a percentage with or without its sign, and 0 where it is no number.
    pub fn resolve(&self, total: i32, round: Round) -> i32 {
        let share = match &self.0 {
            IntOrString::Int(number) => return *number,
            IntOrString::Text(text) => text.replace('%', "").parse::<i32>().unwrap_or(0),
        };
        let hundredths = i64::from(share) * i64::from(total);
        let whole = match round {
            Round::Up => -(-hundredths).div_euclid(100),
            Round::Down => hundredths.div_euclid(100),
        };
        whole.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
    }

    /// Whether validation takes this for zero: 0, `0`, `0%`, or a text that is neither a
    /// whole percentage nor a number.
    pub fn is_zero(&self) -> bool {
        match &self.0 {
            IntOrString::Int(number) => *number == 0,
            IntOrString::Text(text) => {
                let digits = text.strip_suffix('%').filter(|rest| is_digits(rest));
                digits.unwrap_or(text).parse::<i32>().unwrap_or(0) == 0
            }
        }
    }
}

impl From<i32> for IntOrPercent {
    fn from(number: i32) -> Self {
        Self(IntOrString::Int(number))
    }
}

impl From<&str> for IntOrPercent {
    fn from(text: &str) -> Self {
        Self(IntOrString::Text(text.to_owned()))
    }
}

impl fmt::Display for IntOrPercent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// How long a pause step lasts, as written: seconds as number or text, or `1h30m`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationText(pub IntOrString);

impl DurationText {
    /// Whole seconds, fractions cut off; `None` where the text is no duration.
    pub fn seconds(&self) -> Option<i32> {
        let text = match &self.0 {
            IntOrString::Int(number) => return Some(*number),
            IntOrString::Text(text) => text,
        };
        if let Ok(seconds) = text.parse() {
            return Some(seconds);
        }
        let duration = parse_go_duration(text).ok()?;
        i32::try_from(duration.as_secs()).ok()
    }
}

impl From<i32> for DurationText {
    fn from(seconds: i32) -> Self {
        Self(IntOrString::Int(seconds))
    }
}

impl From<&str> for DurationText {
    fn from(text: &str) -> Self {
        Self(IntOrString::Text(text.to_owned()))
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Why a text is no duration, in the words users know from Go.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DurationError {
    /// Not a sequence of numbers and units, or longer than 292 years.
    #[error("time: invalid duration {text:?}")]
    Invalid {
        /// What was written.
        text: String,
    },
    /// A number without its unit.
    #[error("time: missing unit in duration {text:?}")]
    MissingUnit {
        /// What was written.
        text: String,
    },
    /// A unit other than ns, us, ms, s, m, h.
    #[error("time: unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit {
        /// The unit found.
        unit: String,
        /// What was written.
        text: String,
    },
}

/// Reads a duration of Go's syntax: `1h30m`, `-1.5s`, `500ms`, `0`.
pub fn parse_go_duration(text: &str) -> Result<SignedDuration, DurationError> {
    let invalid = || DurationError::Invalid { text: text.to_owned() };
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut nanoseconds: i128 = 0;
    while !rest.is_empty() {
        let (part, after) = duration_part(rest, text)?;
        nanoseconds += part;
        rest = after;
        if nanoseconds > i128::from(i64::MAX) + i128::from(negative) {
            return Err(invalid());
        }
    }
    let signed = if negative { -nanoseconds } else { nanoseconds };
    i64::try_from(signed).map(SignedDuration::from_nanos).map_err(|_| invalid())
}

/// One number with its unit in nanoseconds, and what follows it.
fn duration_part<'a>(rest: &'a str, text: &str) -> Result<(i128, &'a str), DurationError> {
    let invalid = || DurationError::Invalid { text: text.to_owned() };
    let (whole, rest) = leading_digits(rest);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => leading_digits(after),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let unit_end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let scale: i128 = match unit {
        "" => return Err(DurationError::MissingUnit { text: text.to_owned() }),
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => {
            let (unit, text) = (unit.to_owned(), text.to_owned());
            return Err(DurationError::UnknownUnit { unit, text });
        }
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
    Ok((i128::from(whole) * scale + fraction_of(fraction, scale), rest))
}

/// `.digits` of a unit in nanoseconds. More digits than fit into a nanosecond do not count.
fn fraction_of(digits: &str, scale: i128) -> i128 {
    let counted = &digits[..digits.len().min(18)];
    let value: i128 = counted.parse().unwrap_or(0);
    value * scale / 10_i128.pow(counted.len() as u32)
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
