//! Moments as text in a form that an example describes: `2006-01-02 15:04:05`.

use super::zone::{Zone, distance};
use super::{Civil, DAY, MONTHS, Moment, WEEKDAYS, days_of};

/// A part of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'l> {
    Text(&'l str),
    Year,
    ShortYear,
    Month,
    ShortMonth,
    /// With how many digits at least, and what fills them.
    MonthNumber(usize),
    Day(usize, char),
    DayOfYear,
    Weekday,
    ShortWeekday,
    Hour,
    ShortHour(usize),
    Minute(usize),
    Second(usize),
    /// So many digits; are zeros at the end left out?
    Fraction(usize, bool),
    HalfOfDay(bool),
    ZoneName,
    /// Is UTC written as Z, and what stands between hours and minutes?
    Distance(bool, &'l str),
    HoursOfDistance(bool),
}

/// The words of forms, longer ones before those they begin with.
const WORDS: [(&str, Piece<'static>); 30] = [
    ("January", Piece::Month),
    ("Jan", Piece::ShortMonth),
    ("Monday", Piece::Weekday),
    ("Mon", Piece::ShortWeekday),
    ("MST", Piece::ZoneName),
    ("2006", Piece::Year),
    ("002", Piece::DayOfYear),
    ("01", Piece::MonthNumber(2)),
    ("02", Piece::Day(2, '0')),
    ("03", Piece::ShortHour(2)),
    ("04", Piece::Minute(2)),
    ("05", Piece::Second(2)),
    ("06", Piece::ShortYear),
    ("15", Piece::Hour),
    ("PM", Piece::HalfOfDay(true)),
    ("pm", Piece::HalfOfDay(false)),
    ("-07:00", Piece::Distance(false, ":")),
    ("-0700", Piece::Distance(false, "")),
    ("-07", Piece::HoursOfDistance(false)),
    ("Z07:00", Piece::Distance(true, ":")),
    ("Z0700", Piece::Distance(true, "")),
    ("Z07", Piece::HoursOfDistance(true)),
    ("_2006", Piece::Text("_")),
    ("_2", Piece::Day(2, ' ')),
    ("1", Piece::MonthNumber(1)),
    ("2", Piece::Day(1, '0')),
    ("3", Piece::ShortHour(1)),
    ("4", Piece::Minute(1)),
    ("5", Piece::Second(1)),
    ("µ", Piece::Text("µ")),
];

/// A moment in a form.
pub(crate) fn format(moment: &Moment, layout: &str) -> String {
    let civil = moment.civil();
    let mut text = String::new();
    for piece in pieces(layout) {
        text.push_str(&written(piece, moment, &civil));
    }
    text
}

fn written(piece: Piece<'_>, moment: &Moment, civil: &Civil) -> String {
    let short_hour = if civil.hour.is_multiple_of(12) { 12 } else { civil.hour % 12 };
    match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Year => format!("{:04}", civil.year),
        Piece::ShortYear => format!("{:02}", civil.year.rem_euclid(100)),
        Piece::Month => name(&MONTHS, civil.month - 1).to_owned(),
        Piece::ShortMonth => name(&MONTHS, civil.month - 1)[..3].to_owned(),
        Piece::MonthNumber(width) => format!("{:0width$}", civil.month),
        Piece::Day(width, ' ') => format!("{:width$}", civil.day),
        Piece::Day(width, _) => format!("{:0width$}", civil.day),
        Piece::DayOfYear => format!("{:03}", moment.day_of_year()),
        Piece::Weekday => name(&WEEKDAYS, moment.weekday()).to_owned(),
        Piece::ShortWeekday => name(&WEEKDAYS, moment.weekday())[..3].to_owned(),
        Piece::Hour => format!("{:02}", civil.hour),
        Piece::ShortHour(width) => format!("{short_hour:0width$}"),
        Piece::Minute(width) => format!("{:0width$}", civil.minute),
        Piece::Second(width) => format!("{:0width$}", civil.second),
        Piece::Fraction(digits, is_short) => fraction(moment.nanoseconds, digits, is_short),
        Piece::HalfOfDay(true) => if civil.hour < 12 { "AM" } else { "PM" }.to_owned(),
        Piece::HalfOfDay(false) => if civil.hour < 12 { "am" } else { "pm" }.to_owned(),
        Piece::ZoneName => moment.zone.shown_at(moment.seconds),
        Piece::Distance(true, _) | Piece::HoursOfDistance(true) if moment.offset() == 0 => {
            "Z".to_owned()
        }
        Piece::Distance(_, between) => distance(moment.offset(), between),
        Piece::HoursOfDistance(_) => distance(moment.offset(), "")[..3].to_owned(),
    }
}

fn name<'n>(names: &[&'n str], at: u8) -> &'n str {
    names.get(usize::from(at)).copied().unwrap_or("???")
}

fn fraction(nanoseconds: u32, digits: usize, is_short: bool) -> String {
    let all = format!("{nanoseconds:09}");
    let digits = &all[..digits.min(9)];
    let digits = if is_short { digits.trim_end_matches('0') } else { digits };
    if digits.is_empty() { String::new() } else { format!(".{digits}") }
}

fn pieces(layout: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = layout;
    while let Some(letter) = rest.chars().next() {
        let (piece, length) = next_piece(rest, letter);
        rest = &rest[length..];
        found.push(piece);
    }
    found
}

fn next_piece(rest: &str, letter: char) -> (Piece<'_>, usize) {
    if let Some(behind) = rest.strip_prefix(['.', ',']) {
        let digit = behind.chars().next().unwrap_or(' ');
        let digits = behind.len() - behind.trim_start_matches(digit).len();
        let ends = !behind[digits..].starts_with(|c: char| c.is_ascii_digit());
        if (digit == '0' || digit == '9') && ends {
            return (Piece::Fraction(digits, digit == '9'), digits + 1);
        }
    }
    let fits = |(word, _): &&(&str, Piece<'static>)| {
        // "Month" is no "Mon", "January2" is.
        let behind = rest.strip_prefix(*word);
        let is_cut = ["Jan", "Mon"].contains(word)
            && behind.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
        behind.is_some() && !is_cut
    };
    match WORDS.iter().find(fits) {
        Some(("_2006", piece)) => (*piece, 1),
        Some((word, piece)) => (*piece, word.len()),
        None => (Piece::Text(&rest[..letter.len_utf8()]), letter.len_utf8()),
    }
}

/// What was read so far.
struct Reading<'t> {
    rest: &'t str,
    year: i64,
    month: i64,
    day: i64,
    day_of_year: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanoseconds: u32,
    is_afternoon: Option<bool>,
    zone: Option<Zone>,
}

/// The moment of a text in a form; without a zone in the text it is one of the given zone.
pub(crate) fn parse(layout: &str, text: &str, zone: &Zone) -> Result<Moment, String> {
    let wrong = || format!("parsing time {text:?} as {layout:?}: cannot parse {text:?}");
    let mut reading = Reading {
        rest: text,
        year: 0,
        month: 1,
        day: 1,
        day_of_year: None,
        hour: 0,
        minute: 0,
        second: 0,
        nanoseconds: 0,
        is_afternoon: None,
        zone: None,
    };
    let pieces = pieces(layout);
    for (at, piece) in pieces.iter().enumerate() {
        reading.take(*piece).ok_or_else(wrong)?;
        let has_fraction = matches!(pieces.get(at + 1), Some(Piece::Fraction(..)));
        // Seconds may have a fraction, even where the form has none.
        if matches!(piece, Piece::Second(_)) && !has_fraction {
            reading.take_fraction();
        }
    }
    if !reading.rest.is_empty() {
        return Err(format!("parsing time {text:?}: extra text: {:?}", reading.rest));
    }
    reading.moment(zone).ok_or_else(|| format!("parsing time {text:?}: day out of range"))
}

impl<'t> Reading<'t> {
    fn take(&mut self, piece: Piece<'_>) -> Option<()> {
        match piece {
            Piece::Text(text) => self.rest = self.rest.strip_prefix(text)?,
            Piece::Year => self.year = self.number(4, 4)?,
            Piece::ShortYear => {
                let year = self.number(2, 2)?;
                self.year = if year >= 69 { 1900 + year } else { 2000 + year };
            }
            Piece::Month => self.month = self.word(&MONTHS, usize::MAX)? + 1,
            Piece::ShortMonth => self.month = self.word(&MONTHS, 3)? + 1,
            Piece::MonthNumber(width) => self.month = self.within(width, 1, 12)?,
            Piece::Day(_, ' ') => {
                self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
                self.day = self.number(1, 2)?;
            }
            Piece::Day(width, _) => self.day = self.number(width, 2)?,
            Piece::DayOfYear => self.day_of_year = Some(self.number(3, 3)?),
            Piece::Weekday => drop(self.word(&WEEKDAYS, usize::MAX)?),
            Piece::ShortWeekday => drop(self.word(&WEEKDAYS, 3)?),
            Piece::Hour => self.hour = self.within(1, 0, 23)?,
            Piece::ShortHour(width) => self.hour = self.within(width, 0, 12)?,
            Piece::Minute(width) => self.minute = self.within(width, 0, 59)?,
            Piece::Second(width) => self.second = self.within(width, 0, 59)?,
            Piece::Fraction(_, true) => self.take_fraction(),
            Piece::Fraction(digits, false) => {
                let before = self.rest.len();
                self.take_fraction();
                return (before - self.rest.len() == digits + 1).then_some(());
            }
            Piece::HalfOfDay(is_upper) => {
                let (morning, afternoon) = if is_upper { ("AM", "PM") } else { ("am", "pm") };
                self.is_afternoon = Some(self.rest.starts_with(afternoon));
                let behind = self.rest.strip_prefix(morning);
                self.rest = behind.or_else(|| self.rest.strip_prefix(afternoon))?;
            }
            Piece::ZoneName => self.take_zone_name()?,
            Piece::Distance(is_z, _) | Piece::HoursOfDistance(is_z)
                if is_z && self.rest.starts_with('Z') =>
            {
                self.rest = &self.rest[1..];
                self.zone = Some(Zone::utc());
            }
            Piece::Distance(_, between) => self.take_distance(Some(between))?,
            Piece::HoursOfDistance(_) => self.take_distance(None)?,
        }
        Some(())
    }

    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if digits < least {
            return None;
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        number.parse().ok()
    }

    fn within(&mut self, width: usize, least: i64, most: i64) -> Option<i64> {
        self.number(width, 2).filter(|number| (least..=most).contains(number))
    }

    fn word(&mut self, names: &[&str], letters: usize) -> Option<i64> {
        let at = names.iter().position(|name| {
            let name = &name[..letters.min(name.len())];
            self.rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        })?;
        self.rest = &self.rest[letters.min(names[at].len())..];
        i64::try_from(at).ok()
    }

    fn take_fraction(&mut self) {
        let Some(behind) = self.rest.strip_prefix(['.', ',']) else { return };
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return;
        }
        let nine: String = behind[..digits].chars().chain("000000000".chars()).take(9).collect();
        self.nanoseconds = nine.parse().unwrap_or(0);
        self.rest = &behind[digits..];
    }

    fn take_distance(&mut self, between: Option<&str>) -> Option<()> {
        let sign = if self.rest.starts_with('-') { -1 } else { 1 };
        self.rest = self.rest.strip_prefix(['+', '-'])?;
        let hours = self.number(2, 2)?;
        let mut minutes = 0;
        if let Some(between) = between {
            self.rest = self.rest.strip_prefix(between)?;
            minutes = self.number(2, 2)?;
        }
        let offset = sign * (hours * 3600 + minutes * 60);
        self.zone = Some(Zone::fixed("", offset));
        (hours <= 24 && minutes < 60).then_some(())
    }

    /// Of a zone's name only that of UTC says how far away it is.
    fn take_zone_name(&mut self) -> Option<()> {
        let length = self.rest.bytes().take_while(u8::is_ascii_uppercase).count();
        let name: &'t str = &self.rest[..length];
        if name != "UTC" && !(3..=5).contains(&length) {
            return None;
        }
        self.rest = &self.rest[length..];
        self.zone = Some(if name == "UTC" { Zone::utc() } else { Zone::fixed(name, 0) });
        Some(())
    }

    fn moment(self, zone: &Zone) -> Option<Moment> {
        let first = days_of(self.year, self.month, 1);
        let next = days_of(self.year, self.month + 1, 1);
        if self.day < 1 || self.day > next - first {
            return None;
        }
        let hour = match self.is_afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let days = match self.day_of_year {
            Some(day) => days_of(self.year, 1, 1) + day - 1,
            None => first + self.day - 1,
        };
        let local = days * DAY + hour * 3600 + self.minute * 60 + self.second;
        let (seconds, zone) = match self.zone {
            None => (zone.moment_of(local), zone.clone()),
            // As in Go: what is written as the given zone would write it, is of that zone.
            Some(written) => match zone.moment_written(local, &written) {
                Some(seconds) => (seconds, zone.clone()),
                None => (local - written.offset_at(local), written),
            },
        };
        Some(Moment { seconds, nanoseconds: self.nanoseconds, zone })
    }
}
