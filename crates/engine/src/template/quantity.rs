//! What is a Kubernetes quantity (`100m`, `1.5Gi`, `2e3`) worth, and how does Kubernetes print it?

use std::borrow::Cow;
use std::fmt;

/// A text that Kubernetes would not take for a quantity, or one beyond our arithmetic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not of the form sign, digits, suffix.
    #[error("{0:?} is not a quantity, expected a number with an optional suffix such as m, Gi, e3")]
    Malformed(String),
    /// More digits than any real resource has.
    #[error("quantity {0:?} has too many digits, expected at most 36")]
    TooLong(String),
}

/// A number with the kind of suffix it was written with.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    negative: bool,
    /// Without trailing zeros; zero is 0·10⁰.
    mantissa: u128,
    exponent: i64,
    format: Format,
}

/// The text Kubernetes prints for this one: the same where its parser takes it for canonical,
/// else the canonical form. What is no quantity stays as it is.
pub fn print(text: &str) -> Cow<'_, str> {
    let Some(parts) = Parts::of(text) else { return Cow::Borrowed(text) };
    if parts.is_canonical() {
        return Cow::Borrowed(text);
    }
    match Quantity::from_parts(&parts) {
        Some(quantity) => Cow::Owned(quantity.to_string()),
        None => Cow::Borrowed(text),
    }
}

impl Quantity {
    /// Reads a quantity; anything finer than nano is rounded away from zero.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let parts = Parts::of(text).ok_or_else(|| QuantityError::Malformed(text.into()))?;
        Self::from_parts(&parts).ok_or_else(|| QuantityError::TooLong(text.into()))
    }

    /// Sign, mantissa without trailing zeros and power of ten: the same for equal quantities.
    pub fn value(&self) -> (&'static str, u128, i64) {
        (if self.negative { "-" } else { "" }, self.mantissa, self.exponent)
    }

    /// Are both worth the same, however they are written?
    pub fn same_value(&self, other: &Self) -> bool {
        self.value() == other.value()
    }

    /// The next thousandth away from zero: the API server keeps no finer resources.
    #[must_use]
    pub fn rounded_up_to_milli(self) -> Self {
        self.rounded_up_to(MILLI)
    }

    fn from_parts(parts: &Parts) -> Option<Self> {
        let format = parts.suffix.format();
        if parts.is_beyond_binary() {
            let (negative, mantissa) = (parts.negative, LARGEST);
            return Some(Self { negative, mantissa, exponent: 0, format });
        }
        let digits = parts.whole.bytes().chain(parts.fraction.bytes());
        let mut mantissa = 0u128;
        for digit in digits {
            mantissa = mantissa.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
        }
        let mut exponent = -i64::try_from(parts.fraction.len()).ok()?;
        match parts.suffix {
            Suffix::Decimal(power) | Suffix::Exponent(power) => exponent += i64::from(power),
            Suffix::Binary(power) => mantissa = mantissa.checked_mul(1 << power)?,
        }
        let quantity = Self { negative: parts.negative, mantissa, exponent, format };
        let quantity = quantity.rounded_up_to(NANO).capped();
        // Room for the two zeros that a suffix may cost.
        (quantity.mantissa < MANTISSA_LIMIT).then_some(quantity)
    }

    fn rounded_up_to(mut self, least: i64) -> Self {
        if self.exponent < least && self.mantissa != 0 {
            let divisor = u32::try_from(least - self.exponent)
                .ok()
                .and_then(|digits| 10u128.checked_pow(digits));
            self.mantissa = divisor.map_or(1, |divisor| self.mantissa.div_ceil(divisor));
            self.exponent = least;
        }
        while self.mantissa != 0 && self.mantissa.is_multiple_of(10) {
            self.mantissa /= 10;
            self.exponent += 1;
        }
        if self.mantissa == 0 {
            self = Self { negative: false, exponent: 0, ..self };
        }
        self
    }

    /// Kubernetes caps binary quantities at the largest signed 64-bit number.
    fn capped(self) -> Self {
        let floor = match u32::try_from(-self.exponent) {
            Ok(digits @ 1..) => Some(self.mantissa / 10u128.pow(digits)),
            _ => self.whole(),
        };
        match (self.format, floor) {
            (Format::Binary, None | Some(LARGEST..)) => {
                Self { mantissa: LARGEST, exponent: 0, ..self }
            }
            _ => self,
        }
    }

    /// The value without its sign, if it is whole and can be counted.
    fn whole(&self) -> Option<u128> {
        let factor = 10u128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        self.mantissa.checked_mul(factor)
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: no fraction, the largest suffix that loses nothing.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, mantissa, exponent) = self.value();
        if mantissa == 0 {
            return out.write_str("0");
        }
        if let (Format::Binary, Some(mut whole @ 1024..)) = (self.format, self.whole()) {
            let mut suffix = "";
            for (larger, _) in BINARY_SUFFIXES {
                if !whole.is_multiple_of(1024) {
                    break;
                }
                suffix = larger;
                whole /= 1024;
            }
            return write!(out, "{sign}{whole}{suffix}");
        }
        let (factor, exponent) = match exponent.rem_euclid(3) {
            1 => (10, exponent - 1),
            2 => (100, exponent - 2),
            _ => (1, exponent),
        };
        write!(out, "{sign}{}", mantissa * factor)?;
        if self.format == Format::Exponent {
            return if exponent == 0 { Ok(()) } else { write!(out, "e{exponent}") };
        }
        // Kubernetes has no letter beyond E, and prints none: 1000E becomes 1.
        let mut suffixes = DECIMAL_SUFFIXES.iter();
        let suffix = suffixes.find(|(_, power)| i64::from(*power) == exponent);
        suffix.map_or(Ok(()), |(suffix, _)| out.write_str(suffix))
    }
}

const NANO: i64 = -9;
const MILLI: i64 = -3;
const MANTISSA_LIMIT: u128 = 10u128.pow(36);
/// No binary quantity is larger.
const LARGEST: u128 = i64::MAX as u128;

const DECIMAL_SUFFIXES: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY_SUFFIXES: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

/// A quantity's text taken apart.
struct Parts<'a> {
    negative: bool,
    /// Without leading zeros, but `0` if nothing is left.
    whole: &'a str,
    fraction: &'a str,
    suffix: Suffix,
}

#[derive(Clone, Copy)]
enum Suffix {
    /// Power of ten by letter.
    Decimal(i32),
    /// Power of ten by number.
    Exponent(i32),
    /// Power of two.
    Binary(u32),
}

impl<'a> Parts<'a> {
    /// Kubernetes asks for some text, but for no digit: `m` is 0.
    fn of(text: &'a str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        let suffix = Suffix::of(suffix)?;
        Some(Self { negative: text.starts_with('-'), whole, fraction, suffix })
    }

    /// Is it certain that this is more than any binary quantity can be, whatever its fraction?
    fn is_beyond_binary(&self) -> bool {
        let Suffix::Binary(power) = self.suffix else { return false };
        let whole = self.whole.parse::<u128>().ok();
        whole.and_then(|whole| whole.checked_mul(1 << power)).is_none_or(|whole| whole > LARGEST)
    }

    /// Does Kubernetes keep this text? It asks less than its canonical form does: `1.500` stays.
    fn is_canonical(&self) -> bool {
        let digits = self.whole.len() + self.fraction.len();
        match self.suffix {
            Suffix::Decimal(power) | Suffix::Exponent(power) => {
                let from_the_end = self.fraction.bytes().rev().chain(self.whole.bytes().rev());
                let ends_in_thousand = from_the_end.take(3).eq(*b"000");
                let exponent = i64::from(power) - self.fraction.len() as i64;
                digits <= 18
                    && exponent >= NANO
                    && exponent % 3 == 0
                    && !self.whole.starts_with('0')
                    && !ends_in_thousand
            }
            Suffix::Binary(power) => {
                let fits = digits + power as usize * 3 / 10 <= 14;
                let is_multiple_of_8 =
                    self.whole.parse::<u64>().is_ok_and(|number| number.is_multiple_of(8));
                fits && self.fraction.is_empty() && !is_multiple_of_8
            }
        }
    }
}

impl Suffix {
    fn of(text: &str) -> Option<Self> {
        if let Some((_, power)) = DECIMAL_SUFFIXES.iter().find(|(suffix, _)| *suffix == text) {
            return Some(Self::Decimal(*power));
        }
        if let Some((_, power)) = BINARY_SUFFIXES.iter().find(|(suffix, _)| *suffix == text) {
            return Some(Self::Binary(*power));
        }
        text.strip_prefix(['e', 'E'])?.parse().ok().map(Self::Exponent)
    }

    fn format(self) -> Format {
        match self {
            Self::Decimal(_) => Format::Decimal,
            Self::Exponent(_) => Format::Exponent,
            Self::Binary(_) => Format::Binary,
        }
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests;
