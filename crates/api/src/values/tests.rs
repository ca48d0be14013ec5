//! Each rule of reading a value, as a table.

use jiff::{SignedDuration, Timestamp};
use serde_json::{from_value, json, to_value};

use super::*;

#[test]
fn a_time_is_cut_to_seconds_and_survives_a_round_trip() {
    let moment: Timestamp = "2026-08-17T10:11:12.987Z".parse().unwrap();
    let stored = to_value(Time::new(moment)).unwrap();
    assert_eq!(stored, json!("2026-08-17T10:11:12Z"));
    assert_eq!(from_value::<Time>(stored).unwrap(), Time::new(moment));
    let elsewhere: Time = from_value(json!("2026-08-17T12:11:12+02:00")).unwrap();
    assert_eq!(elsewhere, Time::new(moment));
}

#[test]
fn a_time_is_stored_as_it_is_shown() {
    let moments = [
        "1970-01-01T00:00:00Z",
        "2024-02-29T23:59:59Z",
        "0001-01-01T00:00:00Z",
        "9999-12-30T09:08:07Z",
    ];
    for text in moments {
        let time = Time::new(text.parse().unwrap());
        assert_eq!((to_value(time).unwrap(), time.to_string()), (json!(text), text.to_owned()));
    }
    let before_year_0 = Time::new(Timestamp::from_second(-70_000_000_000).unwrap());
    assert_eq!(to_value(before_year_0).unwrap(), json!(before_year_0.to_string()));
}

#[test]
fn a_text_that_names_no_moment_is_no_time() {
    let cases = [
        ("2026-02-28T00:00:00Z", true),
        ("2024-02-29T00:00:00Z", true),
        ("2026-02-29T00:00:00Z", false),
        ("2100-02-29T00:00:00Z", false),
        ("2026-13-01T00:00:00Z", false),
        ("2026-00-10T00:00:00Z", false),
        ("2026-04-31T00:00:00Z", false),
        ("2026-04-00T00:00:00Z", false),
        ("2026-04-30T23:60:00Z", false),
        ("2026-04-30t23:59:59z", true),
        ("2026-04-30T2x:59:59Z", false),
    ];
    for (text, is_time) in cases {
        assert_eq!(from_value::<Time>(json!(text)).is_ok(), is_time, "{text}");
    }
}

#[test]
fn pods_are_counted_from_numbers_and_shares() {
    let cases = [
        // what, written, of how many, up, down
        ("a number is absolute", json!(3), 10, 3, 3),
        ("a share rounds both ways", json!("25%"), 10, 3, 2),
        ("a text without a sign is a share too", json!("25"), 10, 3, 2),
        ("nothing of nothing", json!("25%"), 0, 0, 0),
        ("more than all", json!("150%"), 4, 6, 6),
        ("no number is no pod", json!("abc"), 4, 0, 0),
        ("a broken share is no pod", json!("12.5%"), 8, 0, 0),
    ];
    for (what, written, total, up, down) in cases {
        let value: IntOrPercent = from_value(written.clone()).unwrap();
        assert_eq!(value.resolve(total, Round::Up), up, "{what}");
        assert_eq!(value.resolve(total, Round::Down), down, "{what}");
        assert_eq!(to_value(&value).unwrap(), written, "{what}: kept as written");
    }
}

#[test]
fn zero_has_many_spellings() {
    for zero in [json!(0), json!("0"), json!("0%"), json!("abc"), json!("12.5%"), json!("")] {
        assert!(from_value::<IntOrPercent>(zero.clone()).unwrap().is_zero(), "{zero}");
    }
    for not_zero in [json!(1), json!("1"), json!("1%"), json!("25%"), json!(-1)] {
        assert!(!from_value::<IntOrPercent>(not_zero.clone()).unwrap().is_zero(), "{not_zero}");
    }
}

#[test]
fn a_pause_is_read_as_seconds() {
    let cases = [
        ("a number", json!(10), Some(10)),
        ("a number as text", json!("10"), Some(10)),
        ("a duration", json!("1h30m"), Some(5400)),
        ("fractions are cut", json!("1.9s"), Some(1)),
        ("less than a second", json!("900ms"), Some(0)),
        ("negative", json!("-5s"), Some(-5)),
        ("zero", json!(0), Some(0)),
        ("no unit known", json!("5d"), None),
        ("no duration", json!("soon"), None),
        ("empty", json!(""), None),
    ];
    for (what, written, seconds) in cases {
        let value: DurationText = from_value(written.clone()).unwrap();
        assert_eq!(value.seconds(), seconds, "{what}");
        assert_eq!(to_value(&value).unwrap(), written, "{what}: kept as written");
    }
}

#[test]
fn only_whole_numbers_and_texts_are_read() {
    for bad in [json!(1.5), json!(true), json!([]), json!({}), json!(3_000_000_000_u64)] {
        assert!(from_value::<IntOrString>(bad.clone()).is_err(), "{bad}");
    }
    assert_eq!(IntOrString::Text("7".into()).int_value(), 7);
    assert_eq!(IntOrString::Text("many".into()).int_value(), 0);
}

#[test]
fn durations_are_read_as_go_reads_them() {
    let nanoseconds = |text: &str| parse_go_duration(text).map(|d| d.as_nanos());
    let good = [
        ("0", 0),
        ("-0", 0),
        ("1h30m", 5_400_000_000_000),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("5.s", 5_000_000_000),
        ("-1m", -60_000_000_000),
        ("+2us", 2_000),
        ("3\u{b5}s", 3_000),
        ("9223372036854775807ns", i128::from(i64::MAX)),
        ("-9223372036854775808ns", i128::from(i64::MIN)),
    ];
    for (text, expected) in good {
        assert_eq!(nanoseconds(text), Ok(expected), "{text}");
    }
    let bad = [
        ("", r#"time: invalid duration """#),
        ("abc", r#"time: invalid duration "abc""#),
        ("-", r#"time: invalid duration "-""#),
        (".s", r#"time: invalid duration ".s""#),
        ("10", r#"time: missing unit in duration "10""#),
        ("5d", r#"time: unknown unit "d" in duration "5d""#),
        ("9223372036854775808ns", r#"time: invalid duration "9223372036854775808ns""#),
        ("3000000h", r#"time: invalid duration "3000000h""#),
    ];
    for (text, message) in bad {
        assert_eq!(parse_go_duration(text).unwrap_err().to_string(), message);
    }
    assert_eq!(parse_go_duration("2s"), Ok(SignedDuration::from_secs(2)));
}
