//! Is a text of the named `format`? Formats the API server does not check are always right.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

/// True if the text has this format, or the format is not one that is checked.
pub fn is_valid(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => text.parse::<Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<Date>().is_ok(),
        "duration" => text.parse::<SignedDuration>().is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "ip" => text.parse::<IpAddr>().is_ok(),
        "cidr" => is_cidr(text),
        "byte" => is_base64(text),
        "uuid" => is_uuid(text),
        _ => true,
    }
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
