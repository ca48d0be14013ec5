//! Spans of time as text: `1h30m`, `1.5s`.

const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// The nanoseconds of a text.
pub(crate) fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let is_negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut sum = 0_i128;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(invalid());
        }
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let unknown = || format!("time: unknown unit {unit:?} in duration {text:?}");
        let (_, size) = known.ok_or_else(unknown)?;
        let digits = if whole.is_empty() { "0" } else { whole };
        let whole: i128 = digits.parse::<i64>().map_err(|_| invalid())?.into();
        let part = if fraction.is_empty() {
            0.0
        } else {
            format!("0.{fraction}").parse::<f64>().map_err(|_| invalid())? * size
        };
        sum += whole * *size as i128 + part as i128;
        if sum > i128::from(i64::MAX) + i128::from(is_negative) {
            return Err(invalid());
        }
        rest = behind;
    }
    i64::try_from(if is_negative { -sum } else { sum }).map_err(|_| invalid())
}

/// The text of so many nanoseconds, as Go prints it.
pub fn text(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let size = nanoseconds.unsigned_abs();
    if size == 0 {
        return "0s".to_owned();
    }
    let below_second =
        [(1_000, "ns", 1), (1_000_000, "µs", 1_000), (1_000_000_000, "ms", 1_000_000)];
    if let Some((_, unit, one)) = below_second.iter().find(|(most, ..)| size < *most) {
        return format!("{sign}{}{unit}", decimal(size, *one));
    }
    let seconds = decimal(size % 60_000_000_000, 1_000_000_000);
    let minutes = size / 60_000_000_000;
    match minutes {
        0 => format!("{sign}{seconds}s"),
        1..60 => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{}h{}m{seconds}s", minutes / 60, minutes % 60),
    }
}

/// So many parts as a number of wholes, without zeros at the end.
fn decimal(parts: u64, one: u64) -> String {
    let (whole, rest) = (parts / one, parts % one);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = (one + rest).to_string();
    format!("{whole}.{}", digits[1..].trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written_as_go_does() {
        let cases = [
            ("1h30m", "1h30m0s"),
            ("90m", "1h30m0s"),
            ("1.5s", "1.5s"),
            ("-2m", "-2m0s"),
            ("150ms", "150ms"),
            ("1500us", "1.5ms"),
            (".5s", "500ms"),
            ("0", "0s"),
            ("1ns", "1ns"),
            ("1.s", "1s"),
        ];
        for (from, expected) in cases {
            assert_eq!(parse(from).map(text).as_deref(), Ok(expected), "{from}");
        }
        for wrong in ["", "1", "h", "1x", "1h-2m", ".s", "1e3s", "9999999h", "1..5s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
