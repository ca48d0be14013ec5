//! Is a text of the named `format`? Formats the API server does not check are always right.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

/// What tells whether a text has a format.
pub type Test = fn(&str) -> bool;

/// The test for a format; `None` if it is not one that is checked.
pub fn test(format: &str) -> Option<Test> {
    Some(match format {
        "date-time" | "datetime" => is_time,
        "date" => |text| text.len() == 10 && text.parse::<Date>().is_ok(),
        "duration" => |text| text.parse::<SignedDuration>().is_ok(),
        "ipv4" => |text| text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => |text| text.parse::<Ipv6Addr>().is_ok(),
        "ip" => |text| text.parse::<IpAddr>().is_ok(),
        "cidr" => is_cidr,
        "byte" => is_base64,
        "uuid" => is_uuid,
        _ => return None,
    })
}

fn is_time(text: &str) -> bool {
    is_usual_time(text) || text.parse::<Timestamp>().is_ok()
}

/// Is this a time as servers and controllers write it? Those are most times, and quickly seen; all
/// others, and the last days of a month, are parsed.
fn is_usual_time(text: &str) -> bool {
    const LEAST: &[u8; 20] = b"0000-00-00T00:00:00Z";
    const MOST: &[u8; 20] = b"9999-19-29T29:59:59Z";
    let Ok(bytes) = <&[u8; 20]>::try_from(text.as_bytes()) else { return false };
    // All at once, rather than up to the first that is wrong.
    let mut is_within = true;
    for at in 0..20 {
        is_within &= LEAST[at] <= bytes[at] && bytes[at] <= MOST[at];
    }
    let pair = |at: usize| (bytes[at] - b'0') * 10 + (bytes[at + 1] - b'0');
    is_within && (1..=12).contains(&pair(5)) && (1..=28).contains(&pair(8)) && pair(11) < 24
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn is_uuid(text: &str) -> bool {
    let digits: Vec<char> = text.chars().filter(|character| *character != '-').collect();
    digits.len() == 32 && digits.iter().all(char::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_times_are_times_and_all_others_are_parsed() {
        let cases = [
            ("as servers write it", "2026-01-01T00:00:00Z", true, true),
            ("the last second of a day", "2026-12-28T23:59:59Z", true, true),
            ("the last day of a month", "2026-01-31T00:00:00Z", false, true),
            ("no day at all", "2026-02-30T00:00:00Z", false, false),
            ("no month", "2026-13-01T00:00:00Z", false, false),
            ("no hour", "2026-01-01T24:00:00Z", false, false),
            ("no minute", "2026-01-01T00:60:00Z", false, false),
            ("a letter", "2026-01-01T00:00:0xZ", false, false),
            ("with a fraction", "2026-01-01T00:00:00.5Z", false, true),
            ("another zone", "2026-01-01T00:00:00+01:00", false, true),
        ];
        for (what, text, is_usual, is_time) in cases {
            assert_eq!(is_usual_time(text), is_usual, "{what}");
            let test = test("date-time").unwrap();
            assert_eq!(test(text), is_time, "{what}");
        }
    }
}
