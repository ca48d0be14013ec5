//! Time zones: those of the world from data within the program, and fixed distances to UTC. Nothing is
//! read from the system.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::DAY;

/// A time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    name: Arc<str>,
    rule: Rule,
}

/// How far a zone is from UTC.
#[derive(Clone, Debug, PartialEq)]
enum Rule {
    /// Always so many seconds east of it.
    Fixed(i64),
    /// It changes in the course of a year and of history.
    Region(TimeZone),
}

impl Default for Zone {
    fn default() -> Self {
        Zone::utc()
    }
}

impl Zone {
    pub(crate) fn utc() -> Self {
        Zone::fixed("UTC", 0)
    }

    /// A controller runs in UTC, but calls its zone so.
    pub(crate) fn local() -> Self {
        Zone::fixed("Local", 0)
    }

    /// The zone of this name, as `Europe/Berlin`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "" | "UTC" => return Some(Zone::utc()),
            "Local" => return Some(Zone::local()),
            _ => {}
        }
        let zone = TimeZoneDatabase::bundled().get(name).ok()?;
        // Go finds a name as it is written, and in no other case.
        let is_same = zone.iana_name() == Some(name);
        is_same.then(|| Zone { name: Arc::from(name), rule: Rule::Region(zone) })
    }

    pub(super) fn fixed(name: &str, offset: i64) -> Self {
        Zone { name: Arc::from(name), rule: Rule::Fixed(offset) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The distance to UTC at a moment, in seconds to the east.
    pub(super) fn offset_at(&self, seconds: i64) -> i64 {
        match &self.rule {
            Rule::Fixed(offset) => *offset,
            Rule::Region(zone) => zone.to_offset(timestamp(seconds)).seconds().into(),
        }
    }

    /// The moment when clocks of the zone show this time, in seconds since 1970. As Go decides where
    /// there are two such moments or none.
    pub(super) fn moment_of(&self, local: i64) -> i64 {
        match self.offset_at(local) {
            0 => local,
            guess => local - self.offset_at(local - guess),
        }
    }

    /// The moment when clocks of the zone show this time together with a distance, or with a name such
    /// as `CEST`; nothing if they never do.
    pub(super) fn moment_written(&self, local: i64, written: &Zone) -> Option<i64> {
        let around = [local, local.saturating_sub(DAY), local.saturating_add(DAY)];
        let offsets = around.map(|seconds| self.offset_at(seconds));
        offsets.into_iter().map(|offset| local - offset).find(|seconds| match written.name() {
            "UTC" => false,
            "" => {
                self.offset_at(*seconds) == written.offset_at(local)
                    && local - *seconds == written.offset_at(local)
            }
            name => self.shown_at(*seconds) == name,
        })
    }

    /// Are the clocks of the zone put forward for the summer at a moment?
    pub(super) fn is_summer_at(&self, seconds: i64) -> bool {
        match &self.rule {
            Rule::Fixed(_) => false,
            Rule::Region(zone) => zone.to_offset_info(timestamp(seconds)).dst().is_dst(),
        }
    }

    /// As a clock shows it: the distance where the zone has no name.
    pub(super) fn shown_at(&self, seconds: i64) -> String {
        match (&self.rule, &*self.name) {
            (Rule::Region(zone), _) => {
                zone.to_offset_info(timestamp(seconds)).abbreviation().to_owned()
            }
            (Rule::Fixed(offset), "") => distance(*offset, ""),
            (Rule::Fixed(_), "Local") => "UTC".to_owned(),
            (Rule::Fixed(_), name) => name.to_owned(),
        }
    }
}

/// `+0200`, with this between hours and minutes.
pub(super) fn distance(offset: i64, between: &str) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.abs() / 60;
    format!("{sign}{:02}{between}{:02}", minutes / 60, minutes % 60)
}

/// What lies beyond the calendar is its first or its last moment: zones do not change there.
fn timestamp(seconds: i64) -> Timestamp {
    let nearest = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_second(seconds).unwrap_or(nearest)
}

#[cfg(test)]
mod tests {
    use super::super::{Moment, parse_moment};
    use super::*;

    #[test]
    fn clocks_show_what_those_of_the_zone_show() {
        let cases = [
            ("Europe/Berlin", "2024-01-02 12:00:00", "2024-01-02 12:00:00 +0100 CET"),
            ("Europe/Berlin", "2024-07-02 12:00:00", "2024-07-02 12:00:00 +0200 CEST"),
            ("Europe/Berlin", "2024-03-31 02:30:00", "2024-03-31 03:30:00 +0200 CEST"),
            ("Europe/Berlin", "2024-10-27 02:30:00", "2024-10-27 02:30:00 +0100 CET"),
            ("America/New_York", "2024-07-02 12:00:00", "2024-07-02 12:00:00 -0400 EDT"),
            ("Asia/Kolkata", "2024-07-02 12:00:00", "2024-07-02 12:00:00 +0530 IST"),
            ("America/Sao_Paulo", "2024-07-02 12:00:00", "2024-07-02 12:00:00 -0300 -03"),
            ("Europe/London", "2024-01-02 12:00:00", "2024-01-02 12:00:00 +0000 GMT"),
            ("UTC", "2024-07-02 12:00:00", "2024-07-02 12:00:00 +0000 UTC"),
        ];
        for (name, text, expected) in cases {
            let zone = Zone::named(name).unwrap();
            let moment = parse_moment("2006-01-02 15:04:05", text, &zone).unwrap();
            assert_eq!(moment.to_string(), expected, "{name} {text}");
        }
    }

    #[test]
    fn a_zone_in_the_text_is_the_given_one_where_that_would_write_it_so() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        let (name, distance) = ("2006-01-02 15:04 MST", "2006-01-02 15:04 -0700");
        let cases = [
            (name, "2024-10-27 02:30 CEST", "2024-10-27 02:30:00 +0200 CEST"),
            (name, "2024-10-27 02:30 CET", "2024-10-27 02:30:00 +0100 CET"),
            (name, "2024-07-02 12:00 EDT", "2024-07-02 12:00:00 +0000 EDT"),
            (name, "2024-07-02 12:00 UTC", "2024-07-02 12:00:00 +0000 UTC"),
            (distance, "2024-07-02 12:00 +0200", "2024-07-02 12:00:00 +0200 CEST"),
            (distance, "2024-07-02 12:00 +0100", "2024-07-02 12:00:00 +0100 +0100"),
            (distance, "2024-07-02 12:00 +0000", "2024-07-02 12:00:00 +0000 +0000"),
        ];
        for (layout, text, expected) in cases {
            let moment = parse_moment(layout, text, &berlin).unwrap();
            assert_eq!(moment.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn a_zone_is_found_by_its_name_alone() {
        for unknown in ["europe/berlin", "Berlin", "../etc/passwd", "Europe/Berlin ", "utc"] {
            assert_eq!(Zone::named(unknown), None, "{unknown}");
        }
        for known in ["EST", "CET", "US/Pacific", "Etc/GMT+5", "Asia/Calcutta"] {
            assert_eq!(Zone::named(known).unwrap().name(), known);
        }
    }

    #[test]
    fn the_ends_of_time_have_a_zone_too() {
        let zone = Zone::named("Europe/Berlin").unwrap();
        for seconds in [i64::MIN, i64::MAX] {
            let shown = Moment { seconds, nanoseconds: 0, zone: zone.clone() }.to_string();
            assert!(shown.ends_with('T') || shown.contains("CE"), "{shown}");
        }
    }
}
