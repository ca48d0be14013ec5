//! Moments and spans of time as Go has them.

mod layout;
mod methods;
mod span;
mod zone;

use std::fmt;

pub(crate) use layout::parse as parse_moment;
pub(crate) use methods::{call, signature};
pub(crate) use span::parse as parse_duration;
pub use span::text as duration_text;
pub use zone::Zone;

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(crate) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const DAY: i64 = 86_400;
const SECOND: i64 = 1_000_000_000;

/// A moment, and the zone in which it is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// Since the beginning of 1970 in UTC.
    seconds: i64,
    nanoseconds: u32,
    zone: Zone,
}

/// A moment as a calendar and a clock show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Civil {
    year: i64,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
}

impl Moment {
    /// Seconds since 1970, and nanoseconds of the next.
    pub fn unix(&self) -> (i64, u32) {
        (self.seconds, self.nanoseconds)
    }

    pub(crate) fn utc(seconds: i64, nanoseconds: u32) -> Self {
        Moment { seconds, nanoseconds, zone: Zone::utc() }
    }

    pub(crate) fn is_same_moment(&self, other: &Moment) -> bool {
        self.order() == other.order()
    }

    /// What decides which moment is earlier.
    pub(crate) fn order(&self) -> (i64, u32) {
        (self.seconds, self.nanoseconds)
    }

    pub(crate) fn in_zone(&self, zone: &Zone) -> Moment {
        Moment { zone: zone.clone(), ..self.clone() }
    }

    pub(crate) fn plus(&self, nanoseconds: i64) -> Moment {
        let sum = i64::from(self.nanoseconds) + nanoseconds.rem_euclid(SECOND);
        let seconds = nanoseconds.div_euclid(SECOND) + sum / SECOND;
        Moment {
            seconds: self.seconds.saturating_add(seconds),
            nanoseconds: u32::try_from(sum % SECOND).unwrap_or(0),
            zone: self.zone.clone(),
        }
    }

    /// The distance in nanoseconds; what is too far is as far as can be said.
    pub(crate) fn minus(&self, other: &Moment) -> i64 {
        let seconds = i128::from(self.seconds) - i128::from(other.seconds);
        let nanoseconds = i128::from(self.nanoseconds) - i128::from(other.nanoseconds);
        let distance = seconds * i128::from(SECOND) + nanoseconds;
        let most = if distance < 0 { i64::MIN } else { i64::MAX };
        i64::try_from(distance).unwrap_or(most)
    }

    pub(crate) fn rfc3339(&self) -> String {
        layout::format(self, "2006-01-02T15:04:05.999999999Z07:00")
    }

    /// The distance to UTC at this moment, in seconds.
    fn offset(&self) -> i64 {
        self.zone.offset_at(self.seconds)
    }

    fn local_seconds(&self) -> i64 {
        self.seconds.saturating_add(self.offset())
    }

    fn civil(&self) -> Civil {
        let (days, clock) = (self.local_seconds().div_euclid(DAY), self.local_seconds());
        let clock = clock.rem_euclid(DAY);
        let (year, month, day) = date_of(days);
        let small = |number: i64| u8::try_from(number).unwrap_or(0);
        Civil {
            year,
            month,
            day,
            hour: small(clock / 3600),
            minute: small(clock / 60 % 60),
            second: small(clock % 60),
        }
    }

    fn weekday(&self) -> u8 {
        // The first day of 1970 was a Thursday.
        let day = (self.local_seconds().div_euclid(DAY) + 4).rem_euclid(7);
        u8::try_from(day).unwrap_or(0)
    }

    fn day_of_year(&self) -> i64 {
        let days = self.local_seconds().div_euclid(DAY);
        days - days_of(self.civil().year, 1, 1) + 1
    }
}

/// As Go prints a moment.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&layout::format(self, "2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}

/// Days since the beginning of 1970; a month or a day beyond its range counts on. Eras of 400 years
/// that begin in March make leap days fall on the end of a year.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year.saturating_add((month - 1).div_euclid(12)).clamp(-1_000_000_000, 1_000_000_000);
    let month = (month - 1).rem_euclid(12) + 1;
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    days.saturating_add(day - 1)
}

/// Year, month and day of a day since the beginning of 1970.
fn date_of(days: i64) -> (i64, u8, u8) {
    let days = days.saturating_add(719_468);
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    (year, u8::try_from(month).unwrap_or(1), u8::try_from(day).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_each_others_inverse() {
        for days in (-800_000..800_000).step_by(97) {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, i64::from(month), i64::from(day)), days);
        }
        assert_eq!(date_of(0), (1970, 1, 1));
        assert_eq!(date_of(19_782), (2024, 2, 29));
        assert_eq!(days_of(2023, 14, 30), days_of(2024, 3, 1), "February counts on");
    }

    #[test]
    fn moments_read_as_go_prints_them() {
        let cases = [
            ("2024-01-02", "2024-01-02 00:00:00 +0000 UTC"),
            ("2024-02-29 23:59:58", "2024-02-29 23:59:58 +0000 UTC"),
            ("2024-01-02T03:04:05.5+02:00", "2024-01-02 03:04:05.5 +0200 +0200"),
        ];
        let layouts = ["2006-01-02", "2006-01-02 15:04:05", "2006-01-02T15:04:05Z07:00"];
        for ((text, expected), layout) in cases.into_iter().zip(layouts) {
            let moment = parse_moment(layout, text, &Zone::utc()).unwrap();
            assert_eq!(moment.to_string(), expected);
        }
    }
}
