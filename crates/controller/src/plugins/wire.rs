//! What a plugin speaks: Argo Rollouts' go-plugin or lines of JSON. Behind this both are the same:
//! calls with JSON, answers in JSON.

use gradus_goplugin::{CallError, Event, PluginKind, Printed, Session, Value as Gob};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::lines::LinesSession;
use super::process::{CallFailure, PING};

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WireEvent {
    /// Calls are heard from now on.
    Ready,
    /// A call has come to its end.
    Answered { call: u64, outcome: Result<Value, CallFailure> },
    /// The plugin has printed something.
    Printed(Printed, Vec<u8>),
    /// Nobody is there any more.
    Closed,
}

/// One connection.
pub(super) enum Wire {
    Go { session: Box<Session>, kind: PluginKind, methods: Vec<(u64, String)> },
    Lines(LinesSession),
}

impl Wire {
    pub fn go(kind: PluginKind) -> Self {
        Wire::Go { session: Box::new(Session::new(kind)), kind, methods: Vec::new() }
    }

    pub fn lines() -> Self {
        Wire::Lines(LinesSession::new())
    }

    /// Calls a method.
    pub fn call(&mut self, method: &str, argument: &Value) -> Result<u64, String> {
        match self {
            Wire::Go { session, methods, .. } => {
                let call = session.call(method, argument).map_err(|error| error.to_string())?;
                methods.push((call, method.to_owned()));
                Ok(call)
            }
            Wire::Lines(session) => Ok(session.call(method, argument)),
        }
    }

    /// Asks whether the plugin is there.
    pub fn ping(&mut self) -> u64 {
        match self {
            Wire::Go { session, .. } => session.ping(),
            Wire::Lines(session) => session.call(PING, &Value::Null),
        }
    }

    /// Asks the plugin to end.
    pub fn quit(&mut self) -> u64 {
        match self {
            Wire::Go { session, .. } => session.quit(),
            Wire::Lines(session) => session.call("Quit", &Value::Null),
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Wire::Go { session, .. } => session.feed(bytes).map_err(|error| error.to_string()),
            Wire::Lines(session) => session.feed(bytes),
        }
    }

    pub fn take_output(&mut self) -> Vec<u8> {
        match self {
            Wire::Go { session, .. } => session.take_output(),
            Wire::Lines(session) => session.take_output(),
        }
    }

    pub fn take_events(&mut self) -> Vec<WireEvent> {
        match self {
            Wire::Go { session, kind, methods } => {
                let events = session.take_events().into_iter();
                events.filter_map(|event| from_go(event, *kind, methods)).collect()
            }
            Wire::Lines(session) => session.take_events(),
        }
    }

    /// Bytes that are kept: of what came, and of what the plugin does not take yet.
    pub fn held(&self) -> usize {
        match self {
            Wire::Go { session, .. } => session.held(),
            Wire::Lines(session) => session.held(),
        }
    }

    /// The connection is gone.
    pub fn end(&mut self) {
        match self {
            Wire::Go { session, .. } => session.end(),
            Wire::Lines(session) => session.end(),
        }
    }
}

fn from_go(event: Event, kind: PluginKind, methods: &mut Vec<(u64, String)>) -> Option<WireEvent> {
    Some(match event {
        Event::Ready => WireEvent::Ready,
        Event::Printed(place, bytes) => WireEvent::Printed(place, bytes),
        // Nobody has asked for it.
        Event::Pong(_) => return None,
        Event::Closed => WireEvent::Closed,
        Event::Answered { call, outcome } => {
            let at = methods.iter().position(|(known, _)| *known == call);
            let method = at.map(|at| methods.swap_remove(at).1).unwrap_or_default();
            let outcome = match outcome {
                Ok(reply) => answer(kind, &method, &reply),
                Err(error @ (CallError::Refused(_) | CallError::Gone)) => {
                    Err(CallFailure::Transport(error.to_string()))
                }
            };
            WireEvent::Answered { call, outcome }
        }
    })
}

/// A reply of Go as JSON, or the error it carries.
fn answer(kind: PluginKind, method: &str, reply: &Gob) -> Result<Value, CallFailure> {
    let failure = |error: Option<&Gob>| match error.map(|error| error.text("ErrorString")) {
        Some("") | None => Ok(()),
        Some(text) => Err(CallFailure::Said(text.to_owned())),
    };
    match (kind, method, reply) {
        (_, "Type", Gob::Text(text)) => Ok(json!(text)),
        (PluginKind::Step, "Run" | "Terminate" | "Abort", reply) => {
            failure(reply.field("Error"))?;
            step_result(reply)
        }
        (PluginKind::Metric, "Run" | "Resume" | "Terminate", reply) => Ok(measurement(reply)),
        (PluginKind::Metric, "GetMetadata", reply) => Ok(texts(reply)),
        (PluginKind::Router, "VerifyWeight", reply) => {
            failure(reply.field("Err"))?;
            let verified = match reply.int("Verified") {
                1 => json!(true),
                2 => Value::Null,
                _ => json!(false),
            };
            Ok(json!({ "verified": verified }))
        }
        (_, _, reply) => failure(Some(reply)).map(|()| Value::Null),
    }
}

fn step_result(reply: &Gob) -> Result<Value, CallFailure> {
    let empty = Gob::Struct(Vec::new());
    let result = reply.field("Result").unwrap_or(&empty);
    let status = match result.bytes("Status") {
        [] => Value::Null,
        bytes => serde_json::from_slice(bytes)
            .map_err(|_| CallFailure::Said("the plugin's status is not JSON".to_owned()))?,
    };
    Ok(json!({
        "phase": result.text("Phase"),
        "message": result.text("Message"),
        "requeueAfterSeconds": result.int("RequeueAfter") as f64 / 1e9,
        "status": status,
    }))
}

/// A measurement under its names in the API.
fn measurement(reply: &Gob) -> Value {
    let mut fields = Map::new();
    for (name, field) in [("phase", "Phase"), ("message", "Message"), ("value", "Value")] {
        fields.insert(name.to_owned(), json!(reply.text(field)));
    }
    let times =
        [("startedAt", "StartedAt"), ("finishedAt", "FinishedAt"), ("resumeAt", "ResumeAt")];
    for (name, field) in times {
        if let Some(time) = time(reply.bytes(field)) {
            fields.insert(name.to_owned(), json!(time.to_string()));
        }
    }
    if let Some(metadata) = reply.field("Metadata") {
        fields.insert("metadata".to_owned(), texts(metadata));
    }
    Value::Object(fields)
}

fn texts(map: &Gob) -> Value {
    let Gob::Map(entries) = map else { return json!({}) };
    let pair = |(key, value): &(Gob, Gob)| match (key, value) {
        (Gob::Text(key), Gob::Text(value)) => Some((key.clone(), json!(value))),
        _ => None,
    };
    Value::Object(entries.iter().filter_map(pair).collect())
}

/// A time as Go's `time.Time` encodes itself; the zero time is none.
fn time(bytes: &[u8]) -> Option<Timestamp> {
    const YEAR_1: i64 = 62_135_596_800;
    let seconds = i64::from_be_bytes(bytes.get(1..9)?.try_into().ok()?);
    let nanoseconds = i32::from_be_bytes(bytes.get(9..13)?.try_into().ok()?);
    let found = Timestamp::new(seconds.checked_sub(YEAR_1)?, nanoseconds).ok()?;
    (seconds != 0).then_some(found)
}
