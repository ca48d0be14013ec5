//! How does the server write a quantity? `1000m` of a processor is `1`, `1024Mi` of memory `1Gi`.

use serde_json::Value;

/// Everything is counted in billionths, the finest the server keeps.
const ONE: i128 = 1_000_000_000;
const DECIMAL: [(&str, u32); 10] = [
    ("E", 27),
    ("P", 24),
    ("T", 21),
    ("G", 18),
    ("M", 15),
    ("k", 12),
    ("", 9),
    ("m", 6),
    ("u", 3),
    ("n", 0),
];
const BINARY: [(&str, u32); 6] =
    [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];

/// Rewrites a quantity in the server's form. What is no quantity stays as it is.
pub(super) fn canonical(value: &mut Value) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    if let Some(written) = rewrite(&text) {
        *value = Value::String(written);
    }
}

/// How many billionths a quantity is, if it is one.
pub(super) fn billionths(text: &str) -> Option<i128> {
    parse(text).map(|(amount, _)| amount)
}

fn rewrite(text: &str) -> Option<String> {
    let (amount, form) = parse(text)?;
    Some(write(amount, form))
}

fn parse(text: &str) -> Option<(i128, Form)> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let places = u32::try_from(fraction.len()).ok()?;
    let unit = unit(suffix)?;
    let scaled = digits.checked_mul(unit.billionths)?;
    let shift = 10_i128.checked_pow(places)?;
    // What is finer than a billionth is rounded up.
    let amount = scaled.checked_add(shift - 1)?.div_euclid(shift);
    Some((sign * amount, unit.form))
}

/// How a quantity was written, which decides how it is written again.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

struct Unit {
    billionths: i128,
    form: Form,
}

fn unit(suffix: &str) -> Option<Unit> {
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some(Unit { billionths: 10_i128.pow(*power), form: Form::Decimal });
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some(Unit { billionths: ONE << *power, form: Form::Binary });
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = u32::try_from(exponent + 9).ok().filter(|power| *power <= 27)?;
    Some(Unit { billionths: 10_i128.pow(power), form: Form::Exponent })
}

fn write(amount: i128, form: Form) -> String {
    if amount == 0 {
        return "0".to_owned();
    }
    if form == Form::Binary && amount % ONE == 0 && amount.abs() >= 1_024 * ONE {
        let bytes = amount / ONE;
        let found = BINARY.iter().find(|(_, power)| bytes % (1 << power) == 0);
        return found.map_or_else(
            || bytes.to_string(),
            |(name, power)| format!("{}{name}", bytes >> power),
        );
    }
    let found = DECIMAL.iter().find(|(_, power)| amount % 10_i128.pow(*power) == 0);
    let (name, power) = found.copied().unwrap_or(("n", 0));
    let number = amount / 10_i128.pow(power);
    match form {
        Form::Exponent if power != 9 => format!("{number}e{}", i64::from(power) - 9),
        _ => format!("{number}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_written_as_the_server_writes_them() {
        let cases = [
            ("whole", json!("1"), "1"),
            ("a number", json!(2), "2"),
            ("a fraction", json!(0.5), "500m"),
            ("thousandths that make one", json!("1000m"), "1"),
            ("thousandths that do not", json!("1500m"), "1500m"),
            ("mebibytes that make a gibibyte", json!("1024Mi"), "1Gi"),
            ("kibibytes below one", json!("0.5Ki"), "512"),
            ("a fraction of a gibibyte", json!("1.5Gi"), "1536Mi"),
            ("bytes", json!("128974848"), "128974848"),
            ("a thousand", json!("1000"), "1k"),
            ("an exponent", json!("1e3"), "1e3"),
            ("nothing", json!("0"), "0"),
            ("no quantity", json!("many"), "many"),
        ];
        for (what, mut value, expected) in cases {
            canonical(&mut value);
            assert_eq!(value, expected, "{what}");
        }
    }
}
