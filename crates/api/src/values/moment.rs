//! Which second does the usual text of a time name, and how is that text written? By plain
//! arithmetic: a status has a dozen times, and a general calendar is slow.

/// Days from the first of March of the year 0 to the first of January 1970.
const DAYS_BEFORE_1970: u32 = 719_468;
const SECONDS_OF_DAY: u32 = 86_400;

/// The second since 1970 that `2026-08-17T10:11:12Z` names. `None` for every other text; it may be
/// a time all the same.
pub(super) fn read(text: &str) -> Option<i64> {
    let bytes: &[u8; 20] = text.as_bytes().try_into().ok()?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')];
    if marks.iter().any(|(at, mark)| bytes[*at] != *mark) {
        return None;
    }
    // Six more than a digit fits into four bits; six more than anything else does not.
    let mut seen = 0;
    let mut digit = |at: usize| {
        let digit = u32::from(bytes[at].wrapping_sub(b'0'));
        seen |= digit + 6;
        digit
    };
    let mut pair = |at: usize| digit(at) * 10 + digit(at + 1);
    let (year, month, day) = (pair(0) * 100 + pair(2), pair(5), pair(8));
    let (hour, minute, second) = (pair(11), pair(14), pair(17));
    let is_date = year > 0 && (1..=12).contains(&month) && day > 0;
    let is_date = is_date && (day <= 28 || day <= days_of_month(year, month));
    if seen > 0xf || !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = i64::from(days_before(year, month, day)) - i64::from(DAYS_BEFORE_1970);
    Some(days * i64::from(SECONDS_OF_DAY) + i64::from(hour * 3600 + minute * 60 + second))
}

/// The text of a second since 1970, if its year has four digits.
pub(super) fn write(second: i64) -> Option<[u8; 20]> {
    let since_year_0 = second + i64::from(DAYS_BEFORE_1970) * i64::from(SECONDS_OF_DAY);
    let since_year_0 = u64::try_from(since_year_0).ok()?;
    let days = u32::try_from(since_year_0 / u64::from(SECONDS_OF_DAY)).ok()?;
    let second_of_day = (since_year_0 % u64::from(SECONDS_OF_DAY)) as u32;
    let (year, month, day) = date_after(days)?;
    let mut text = *b"0000-00-00T00:00:00Z";
    let mut put = |place: usize, number: u32| {
        text[place] += (number / 10) as u8;
        text[place + 1] += (number % 10) as u8;
    };
    put(0, year / 100);
    put(2, year % 100);
    put(5, month);
    put(8, day);
    put(11, second_of_day / 3600);
    put(14, second_of_day / 60 % 60);
    put(17, second_of_day % 60);
    Some(text)
}

fn days_of_month(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the first of March of the year 0. Years are taken to begin in March: a leap day is
/// then the last of its year, and five months on end have 153 days.
fn days_before(year: u32, month: u32, day: u32) -> u32 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1
}

/// The way back, up to the year 9999. A century has 146,097 quarters of a day on average and a year
/// in it 1,461; what is left over is the day within.
fn date_after(days: u32) -> Option<(u32, u32, u32)> {
    let quarters = days.checked_mul(4)? + 3;
    let (century, quarters) = (quarters / 146_097, (quarters % 146_097) | 3);
    let (year, day_of_year) = (100 * century + quarters / 1_461, quarters % 1_461 / 4);
    let fifths = 5 * day_of_year + 2;
    let (month, day) = (fifths / 153, fifths % 153 / 5 + 1);
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (year <= 9999).then_some((year, month, day))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn every_day_is_read_and_written_as_the_calendar_has_it() {
        // Four centuries, after which all repeats, and both ends of what four digits can say.
        let days = |from: i64, count: i64| (from..from + count).map(|day| day * 86_400 + 45_296);
        let moments = days(-90_000, 146_097).chain(days(-719_162, 800)).chain(days(2_932_000, 896));
        for second in moments {
            let text = Timestamp::from_second(second).unwrap().to_string();
            assert_eq!(write(second).as_ref().map(|text| &text[..]), Some(text.as_bytes()));
            assert_eq!(read(&text), Some(second), "{text}");
        }
    }

    #[test]
    fn every_second_of_a_day_is_read_and_written() {
        for second in -86_400..0 {
            let text = Timestamp::from_second(second).unwrap().to_string();
            assert_eq!(write(second).as_ref().map(|text| &text[..]), Some(text.as_bytes()));
            assert_eq!(read(&text), Some(second), "{text}");
        }
    }

    #[test]
    fn other_years_are_left_to_others() {
        for second in [i64::MIN / 2, -70_000_000_000, 253_402_300_800, 400_000_000_000_000] {
            assert_eq!(write(second), None, "{second}");
        }
        assert_eq!(read("0000-06-01T00:00:00Z"), None);
    }
}
