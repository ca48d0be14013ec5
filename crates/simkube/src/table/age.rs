//! How long ago, in the few letters kubectl uses.

use jiff::Timestamp;
use serde_json::Value;

/// The age of a moment, such as `3m20s`.
pub fn since(moment: Timestamp, now: Timestamp) -> String {
    duration(now.as_second() - moment.as_second())
}

/// The age of a stored time; `<unknown>` if there is none.
pub fn of(time: &Value, now: Timestamp) -> String {
    match time.as_str().and_then(|text| text.parse().ok()) {
        Some(moment) => since(moment, now),
        None => "<unknown>".into(),
    }
}

/// A number of seconds, the more coarsely the longer it is.
pub fn duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let both = |large: i64, large_sign: &str, small: i64, small_sign: &str| {
        let rest = seconds % large / small;
        match rest {
            0 => format!("{}{large_sign}", seconds / large),
            rest => format!("{}{large_sign}{rest}{small_sign}", seconds / large),
        }
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1 => "0s".into(),
        0..120 => format!("{seconds}s"),
        120..600 => both(MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => both(HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => both(DAY, "d", HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => both(YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let cases = [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (601, "10m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (9 * 3600 + 60, "9h"),
            (49 * 3600, "2d1h"),
            (9 * 86_400, "9d"),
            (3 * 365 * 86_400 + 86_400, "3y1d"),
            (9 * 365 * 86_400, "9y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
    }
}
