//! The protocol for any language: one JSON object a line, requests on standard input, answers on
//! standard output. The plugin's first line says which version it speaks.

use std::collections::BTreeMap;

use gradus_goplugin::{PluginKind, VALUE_LIMIT};
use serde_json::{Value, json};

use super::process::CallFailure;
use super::wire::WireEvent;

/// What the first line names.
pub const PROTOCOL: &str = "gradus-plugin";
/// The version that is spoken.
pub const VERSION: u64 = 1;
/// The longest line of a plugin: a status that is larger cannot be stored anyway.
const LINE_LIMIT: usize = 4 << 20;

/// Does a first line begin this protocol? Then whether its version and kind are the wanted ones.
pub(super) fn greeting(line: &str, kind: PluginKind) -> Option<Result<(), String>> {
    let line: Value = serde_json::from_str(line).ok()?;
    if line["protocol"] != PROTOCOL {
        return None;
    }
    let wanted = name_of(kind);
    Some(match (line["version"].as_u64(), line["kind"].as_str()) {
        (Some(VERSION), Some(kind)) if kind == wanted => Ok(()),
        (Some(VERSION), kind) => {
            Err(format!("the plugin is of kind {}: expected {wanted}", kind.unwrap_or("unknown")))
        }
        (version, _) => {
            let version = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
            Err(format!("the plugin speaks version {version} of {PROTOCOL}: expected {VERSION}"))
        }
    })
}

/// What a plugin of a kind calls itself.
pub(super) fn name_of(kind: PluginKind) -> &'static str {
    match kind {
        PluginKind::Step => "step",
        PluginKind::Metric => "metric",
        PluginKind::Router => "router",
    }
}

/// One connection.
#[derive(Debug, Default)]
pub(super) struct LinesSession {
    input: Vec<u8>,
    /// How much of the input is known to hold no end of a line.
    searched: usize,
    output: Vec<u8>,
    calls: u64,
    pending: BTreeMap<u64, ()>,
    events: Vec<WireEvent>,
}

impl LinesSession {
    pub fn new() -> Self {
        LinesSession { events: vec![WireEvent::Ready], ..LinesSession::default() }
    }

    pub fn call(&mut self, method: &str, argument: &Value) -> u64 {
        self.calls += 1;
        let request = json!({ "id": self.calls, "method": method, "params": argument });
        self.output.extend_from_slice(request.to_string().as_bytes());
        self.output.push(b'\n');
        self.pending.insert(self.calls, ());
        self.calls
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.input.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(found) = self.input[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + found;
            let line = self.input[start..end].to_vec();
            start = end + 1;
            self.searched = start;
            self.heard(&line)?;
        }
        self.input.drain(..start);
        self.searched = self.input.len();
        if self.input.len() > LINE_LIMIT {
            return Err(format!("a line is longer than the limit of {LINE_LIMIT} bytes"));
        }
        Ok(())
    }

    fn heard(&mut self, line: &[u8]) -> Result<(), String> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let odd = || {
            let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
            format!("expected {{\"id\": …, \"result\" or \"error\": …}} in a line, found {shown}")
        };
        if values(line) > VALUE_LIMIT {
            return Err(format!("a line holds more than the limit of {VALUE_LIMIT} values"));
        }
        let answer: Value = serde_json::from_slice(line).map_err(|_| odd())?;
        let call = answer["id"].as_u64().ok_or_else(odd)?;
        let outcome = match (&answer["error"], &answer["result"]) {
            (Value::String(error), _) => Err(CallFailure::Said(error.clone())),
            (Value::Null, result) => Ok(result.clone()),
            _ => return Err(odd()),
        };
        if self.pending.remove(&call).is_none() {
            return Err(format!("it answers call {call}, which nobody has made"));
        }
        self.events.push(WireEvent::Answered { call, outcome });
        Ok(())
    }

    /// Bytes that are kept of what the plugin has sent.
    pub fn held(&self) -> usize {
        self.input.len()
    }

    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    pub fn take_events(&mut self) -> Vec<WireEvent> {
        std::mem::take(&mut self.events)
    }

    pub fn end(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let gone = pending.into_keys().map(|call| {
            let outcome = Err(CallFailure::Transport("unexpected EOF".to_owned()));
            WireEvent::Answered { call, outcome }
        });
        self.events.extend(gone);
        self.events.push(WireEvent::Closed);
    }
}

/// The values in a line of JSON, at most: each takes a hundred times the memory of its text.
fn values(line: &[u8]) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (0, false, false);
    for byte in line {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' | b',' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_first_line_names_protocol_version_and_kind() {
        let cases = [
            (r#"{"protocol":"gradus-plugin","version":1,"kind":"step"}"#, Some(Ok(()))),
            (r#"{"protocol":"gradus-plugin","version":2,"kind":"step"}"#, Some(Err("version 2"))),
            (r#"{"protocol":"gradus-plugin","kind":"step"}"#, Some(Err("version none"))),
            (r#"{"protocol":"gradus-plugin","version":1,"kind":"metric"}"#, Some(Err("metric"))),
            ("1|1|unix|/p|netrpc|", None),
            ("{}", None),
        ];
        for (line, expected) in cases {
            let found = greeting(line, PluginKind::Step);
            match (&found, expected) {
                (Some(Err(said)), Some(Err(part))) => assert!(said.contains(part), "{said}"),
                (Some(Ok(())), Some(Ok(()))) | (None, None) => {}
                _ => panic!("{line}: {found:?}"),
            }
        }
    }

    #[test]
    fn answers_are_matched_by_their_ids_and_anything_else_ends_the_connection() {
        let mut session = LinesSession::new();
        let first = session.call("Run", &json!({}));
        let second = session.call("Run", &json!({}));
        let said = session.take_output();
        assert_eq!(said.iter().filter(|byte| **byte == b'\n').count(), 2);
        session.take_events();
        let answers = "{\"id\":2,\"error\":\"no\"}\n\n{\"id\":1,\"result\":{\"phase\":\"x\"}}\n";
        for byte in answers.bytes() {
            session.feed(&[byte]).unwrap();
        }
        let no = Err(CallFailure::Said("no".to_owned()));
        let expected = [
            WireEvent::Answered { call: second, outcome: no },
            WireEvent::Answered { call: first, outcome: Ok(json!({ "phase": "x" })) },
        ];
        assert_eq!(session.take_events(), expected);
        let deep = format!("{{\"id\":1,\"result\":{}\n", "[".repeat(1 << 15));
        let many =
            format!("{{\"id\":1,\"result\":[{}{{\"\":0}}]}}\n", "{\"\":0},".repeat(VALUE_LIMIT));
        let odd = ["hello\n", "{}\n", "{\"id\":1,\"error\":5}\n", "{\"id\":9}\n", &deep, &many];
        for garbage in odd {
            let mut session = LinesSession::new();
            session.call("Run", &json!({}));
            assert!(session.feed(garbage.as_bytes()).is_err(), "{:.80}", garbage);
        }
        let flood = vec![b'x'; LINE_LIMIT + 1];
        assert!(LinesSession::new().feed(&flood).is_err());
    }

    /// Lines that are nearly right.
    fn nearly() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            "\\PC{0,40}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..60),
            ("[0-9]{1,3}", "[{}\\[\\]\",:0-9a-e\\\\.-]{0,30}")
                .prop_map(|(id, rest)| format!("{{\"id\":{id},\"result\":{rest}}}").into_bytes()),
        ];
        proptest::collection::vec(line, 0..8).prop_map(|lines| lines.join(&b'\n'))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_bytes_panic_or_are_kept_beyond_the_limit(bytes in nearly(), cut in 1usize..50) {
            let mut session = LinesSession::new();
            for _ in 0..3 {
                session.call("Run", &json!({}));
            }
            for part in bytes.chunks(cut) {
                if session.feed(part).is_err() {
                    break;
                }
                prop_assert!(session.held() <= LINE_LIMIT);
            }
            session.end();
            let answered = |event: &&WireEvent| matches!(event, WireEvent::Answered { .. });
            prop_assert_eq!(session.take_events().iter().filter(answered).count(), 3);
        }
    }
}
