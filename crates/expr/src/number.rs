//! Numbers as Go has them: how they read, how they are parsed, and how one kind becomes another.

use crate::error::Fault;
use crate::value::Value;

/// A number as a fraction; `None` for what is no number.
pub(crate) fn as_float(value: &Value) -> Option<f64> {
    match value {
        // Above 2^53 the nearest fraction is taken, as Go does.
        Value::Int(_, number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

/// A number as an integer: a fraction loses what is behind the point.
pub(crate) fn to_int(value: &Value) -> Result<i64, Fault> {
    match value {
        Value::Int(_, number) => Ok(*number),
        Value::Float(number) => Ok(truncated(*number)),
        other => Err(Fault::run(format!("invalid operation: int({})", other.type_name()))),
    }
}

/// What a processor makes of a fraction that fits no integer is the lowest integer.
pub fn truncated(number: f64) -> i64 {
    let whole = number.trunc();
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole) {
        whole as i64
    } else {
        i64::MIN
    }
}

/// A fraction as `%v` prints it: the shortest text that reads back, with an exponent where it is
/// below -4 or above 5.
pub(crate) fn float_text(number: f64) -> String {
    shortest(number, |exponent| !(-4..6).contains(&exponent))
}

/// A fraction as Go's JSON has it.
pub(crate) fn json_float(number: f64) -> String {
    let size = number.abs();
    let text = shortest(number, |_| size != 0.0 && !(1e-6..1e21).contains(&size));
    // e-09 becomes e-9.
    match text.split_once("e-0") {
        Some((digits, exponent)) => format!("{digits}e-{exponent}"),
        None => text,
    }
}

fn shortest(number: f64, has_exponent: impl Fn(i32) -> bool) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !has_exponent(exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// `base` to the power of `exponent`. Whole exponents are done by squaring, which rounds as the
/// original does; a table of logarithms would round otherwise in the last digit.
pub(crate) fn power(base: f64, exponent: f64) -> f64 {
    let is_plain = base.is_normal() && exponent.is_finite() && exponent.abs() < 1e9;
    if !is_plain || base < 0.0 && exponent.fract() != 0.0 {
        return base.powf(exponent);
    }
    if exponent.abs() == 0.5 {
        return if exponent > 0.0 { base.sqrt() } else { 1.0 / base.sqrt() };
    }
    let mut whole = exponent.abs().trunc();
    let mut fraction = exponent.abs().fract();
    let mut result = 1.0_f64;
    if fraction > 0.5 {
        fraction -= 1.0;
        whole += 1.0;
    }
    if fraction != 0.0 {
        result = (fraction * base.ln()).exp();
    }
    // The exponents of two are counted apart, so that nothing overflows on the way.
    let (mut square, mut square_exponent) = halves(base);
    let mut result_exponent = 0_i64;
    let mut rest = whole as u64;
    while rest != 0 {
        if square_exponent.abs() > 1 << 12 {
            return base.powf(exponent);
        }
        if rest % 2 == 1 {
            result *= square;
            result_exponent += square_exponent;
        }
        square *= square;
        square_exponent *= 2;
        if square.abs() < 0.5 {
            square += square;
            square_exponent -= 1;
        }
        rest /= 2;
    }
    if exponent < 0.0 {
        result = 1.0 / result;
        result_exponent = -result_exponent;
    }
    let (result, own) = halves(result);
    let exponent = own + result_exponent;
    if (-1000..1000).contains(&exponent) {
        result * 2.0_f64.powi(i32::try_from(exponent).unwrap_or(0))
    } else {
        // Near the ends of the range in two steps.
        let half = i32::try_from((exponent / 2).clamp(-1100, 1100)).unwrap_or(0);
        let other = i32::try_from((exponent - exponent / 2).clamp(-1100, 1100)).unwrap_or(0);
        result * 2.0_f64.powi(half) * 2.0_f64.powi(other)
    }
}

/// A number between a half and one (or their negatives), and the exponent of two that belongs to it.
fn halves(number: f64) -> (f64, i64) {
    const EXPONENT: u64 = 0x7ff << 52;
    let bits = number.to_bits();
    if !number.is_normal() {
        return (number, 0);
    }
    let exponent = i64::try_from(bits >> 52 & 0x7ff).unwrap_or(0) - 1022;
    (f64::from_bits(bits & !EXPONENT | 1022 << 52), exponent)
}

/// A decimal integer with an optional sign, as `strconv.ParseInt` reads it.
pub fn parse_int(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// A number as `strconv.ParseFloat` reads it: decimal or hexadecimal, with underscores between
/// digits, or a word for infinity or "not a number". One that is too large is none.
pub fn parse_float(text: &str) -> Option<f64> {
    let (sign, size) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    match size.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => return Some(sign * f64::INFINITY),
        "nan" if size.len() == text.len() => return Some(f64::NAN),
        _ => {}
    }
    let clean = without_underscores(size)?;
    let lower = clean.to_ascii_lowercase();
    let number = match lower.strip_prefix("0x") {
        Some(digits) => parse_hex_float(digits)?,
        None => {
            let is_plain = |byte: u8| byte.is_ascii_digit() || b".e+-".contains(&byte);
            let has_digit = lower.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            if !has_digit || !lower.bytes().all(is_plain) {
                return None;
            }
            lower.parse::<f64>().ok()?
        }
    };
    number.is_finite().then_some(sign * number)
}

/// Underscores may only stand between digits, or behind the sign of a base.
fn without_underscores(text: &str) -> Option<String> {
    let is_hex = text.len() > 1 && text.as_bytes()[..2].eq_ignore_ascii_case(b"0x");
    let bytes = text.as_bytes();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_') {
        let is_digit = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_digit() || is_hex && byte.is_ascii_hexdigit())
        };
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let is_behind_base = is_hex && at == 2;
        if !(is_digit(before) || is_behind_base) || !is_digit(bytes.get(at + 1)) {
            return None;
        }
    }
    Some(text.replace('_', ""))
}

/// `1.8p3` without its `0x`: the exponent is required.
fn parse_hex_float(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once('p')?;
    let exponent = i32::try_from(parse_int(exponent)?.clamp(-5000, 5000)).ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut number = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let places = i32::try_from(fraction.len()).ok()?;
    Some(number * 2.0_f64.powi(exponent - 4 * places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_read_as_go_prints_them() {
        let cases = [
            (0.5, "0.5"),
            (1.0, "1"),
            (-0.0, "-0"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1.234e25, "1.234e+25"),
            (f64::INFINITY, "+Inf"),
            (f64::NAN, "NaN"),
        ];
        for (number, expected) in cases {
            assert_eq!(float_text(number), expected);
        }
    }

    #[test]
    fn texts_are_numbers_where_go_reads_them_so() {
        let cases = [
            ("1.5", Some(1.5)),
            ("-1e3", Some(-1000.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("1_000", Some(1000.0)),
            ("1__0", None),
            ("_1", None),
            ("0x1p-2", Some(0.25)),
            ("0x10", None),
            (" 1", None),
            ("", None),
            ("+Inf", Some(f64::INFINITY)),
            ("1e400", None),
            ("abc", None),
            ("e5", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_float(text), expected, "{text:?}");
        }
        assert_eq!(parse_int("+5"), Some(5));
        assert_eq!(parse_int("1_0"), None);
        assert_eq!(truncated(1e30), i64::MIN);
    }

    #[test]
    fn powers_are_those_of_repeated_multiplication() {
        for (base, exponent, expected) in [
            (2.0, 10.0, 1024.0),
            (-2.0, 3.0, -8.0),
            (2.0, -2.0, 0.25),
            (1.1, 2.0, 1.1 * 1.1),
            (0.0, 0.0, 1.0),
            (2.0, 1024.0, f64::INFINITY),
            (2.0, -1074.0, 5e-324),
            (2.0, 0.5, std::f64::consts::SQRT_2),
        ] {
            assert_eq!(power(base, exponent), expected, "{base} ** {exponent}");
        }
        assert!(power(-8.0, 0.5).is_nan());
    }
}
