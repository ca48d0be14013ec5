//! Whatever a plugin sends, the session neither panics nor takes more memory than its limits.

use gradus_goplugin::{Event, MESSAGE_LIMIT, PluginKind, Session, Value, parse_handshake};
use proptest::prelude::*;
use serde_json::json;

const WINDOW: usize = 256 << 10;
const HEAD: usize = 12;

fn frame(kind: u8, flags: u16, stream: u32, length: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, kind];
    bytes.extend_from_slice(&flags.to_be_bytes());
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn data(stream: u32, data: &[u8]) -> Vec<u8> {
    frame(0, 0, stream, data.len() as u32, data)
}

/// A session whose interface can be called, as Go's answers make it.
fn ready() -> Session {
    let mut session = Session::new(PluginKind::Step);
    let response =
        b"\x3a\xff\x81\x03\x01\x01\x08Response\x01\xff\x82\x00\x01\x03\x01\x0dServiceMethod\
        \x01\x0c\x00\x01\x03Seq\x01\x06\x00\x01\x05Error\x01\x0c\x00\x00\x00";
    let dispensed = b"\x17\xff\x82\x01\x12Dispenser.Dispense\x00\x03\x06\x00\x01";
    session
        .feed(&data(1, &[response.as_slice(), dispensed].concat()))
        .expect("valid bytes are read");
    session.feed(&data(7, &1u32.to_le_bytes())).expect("valid bytes are read");
    assert_eq!(session.take_events(), [Event::Ready]);
    session
        .call("Run", &json!({ "rollout": { "metadata": { "name": "web" } } }))
        .expect("valid bytes are read");
    session.take_output();
    session
}

/// How much a value takes: its texts, and a place for each of its parts.
fn weight(value: &Value) -> usize {
    let inner = match value {
        Value::Bytes(bytes) => bytes.len(),
        Value::Text(text) => text.len(),
        Value::List(items) => items.iter().map(weight).sum(),
        Value::Map(entries) => entries.iter().map(|(key, one)| weight(key) + weight(one)).sum(),
        Value::Struct(fields) => fields.iter().map(|(_, one)| weight(one)).sum(),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Float(_) => 0,
    };
    64 + inner
}

fn within_limits(session: &mut Session) {
    assert!(session.held() <= 2 * MESSAGE_LIMIT + 4 * WINDOW, "{} bytes are held", session.held());
    for event in session.take_events() {
        if let Event::Answered { outcome: Ok(value), .. } = event {
            assert!(weight(&value) <= 4 * MESSAGE_LIMIT + 64 * gradus_goplugin::VALUE_LIMIT);
        }
    }
    session.take_output();
}

/// Frames with contents that are nearly right.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let messages = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..64),
        // A definition with any content.
        proptest::collection::vec(any::<u8>(), 0..32).prop_map(|rest| {
            let mut bytes = vec![(rest.len() + 3) as u8, 0xff, 0x85, 0x03];
            bytes.extend_from_slice(&rest);
            bytes
        }),
        // The head of an answer, then any value of a known type.
        (0u8..7, proptest::collection::vec(any::<u8>(), 0..24)).prop_map(|(id, rest)| {
            let mut bytes = vec![3, 0xff, 0x82, 0, (rest.len() + 1) as u8, id * 2];
            bytes.extend_from_slice(&rest);
            bytes
        }),
    ];
    let stream = prop_oneof![Just(1u32), Just(3), Just(5), Just(7), any::<u32>()];
    let one = prop_oneof![
        (stream, messages).prop_map(|(stream, message)| data(stream, &message)),
        (0u8..5, any::<u16>(), 0u32..9, any::<u32>())
            .prop_map(|(kind, flags, stream, length)| frame(kind, flags, stream, length, b"")),
        proptest::collection::vec(any::<u8>(), 0..40),
    ];
    proptest::collection::vec(one, 0..12).prop_map(|frames| frames.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_bytes_panic_or_take_more_than_the_limits(bytes in frames(), cut in 1usize..50) {
        let mut session = ready();
        for part in bytes.chunks(cut) {
            if session.feed(part).is_err() {
                break;
            }
            within_limits(&mut session);
        }
        session.end();
        within_limits(&mut session);
    }

    #[test]
    fn no_line_of_a_handshake_panics(line in "\\PC{0,60}|[0-9|]{0,12}|1\\|1\\|.{0,30}") {
        parse_handshake(&line).ok();
    }
}

#[test]
fn claims_of_gigabytes_are_refused_before_memory_is_taken() {
    let ten_gigabytes = [0xfb, 0x02, 0x54, 0x0b, 0xe4, 0x00];
    let mut of_text = vec![3, 0xff, 0x82, 0, 8, 12, 0];
    of_text.extend_from_slice(&ten_gigabytes);
    let cases = [
        ("a message", ten_gigabytes.to_vec()),
        ("a text in a message", of_text),
        ("a frame", frame(0, 0, 7, u32::MAX, b"")),
    ];
    for (what, bytes) in cases {
        let mut session = ready();
        let bytes = if what == "a frame" { bytes } else { data(7, &bytes) };
        assert!(session.feed(&bytes).is_err(), "{what} of 10 GB");
        assert!(session.held() < WINDOW + HEAD, "{what} of 10 GB");
    }
}

#[test]
fn a_plugin_that_never_ends_a_message_is_cut_off() {
    let mut session = ready();
    let mut fed = 0;
    let part = vec![0x7f; 100 << 10];
    // 4 GiB are announced; only then is the message known to be too long.
    session.feed(&data(7, &[0xfd, 0x3f, 0xff, 0xff])).expect("valid bytes are read");
    while session.feed(&data(7, &part)).is_ok() {
        fed += part.len();
        session.take_output();
        assert!(session.held() <= MESSAGE_LIMIT + WINDOW);
        if fed > 2 * MESSAGE_LIMIT {
            return; // The message was complete, and refused or read.
        }
    }
}

#[test]
fn calls_without_a_plugin_are_answered() {
    let mut session = Session::new(PluginKind::Metric);
    let call = session.call("Type", &json!(null)).expect("valid bytes are read");
    let gone = Err(gradus_goplugin::CallError::Gone);
    assert_eq!(session.take_events(), [Event::Answered { call, outcome: gone.clone() }]);
    let mut session = ready();
    let call = session.call("Run", &json!({})).expect("valid bytes are read");
    session.end();
    let events = session.take_events();
    assert!(events.contains(&Event::Answered { call, outcome: gone }), "{events:?}");
    assert_eq!(events.last(), Some(&Event::Closed));
}

#[test]
fn a_method_that_there_is_not_is_called_with_what_go_can_skip() {
    for (method, last) in [("Type", [3, 16, 0, 0]), ("NoSuchMethod", [3, 2, 0, 1])] {
        let mut session = ready();
        session.call(method, &json!(null)).expect("it can be encoded");
        assert!(session.take_output().ends_with(&last), "{method}");
    }
}
