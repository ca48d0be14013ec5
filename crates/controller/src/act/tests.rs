//! What is written, in which order and on what does it rest; and when is an Event told?

use std::cell::RefCell;

use gradus_engine::ask::Class;
use gradus_engine::decision::EventKind;
use gradus_engine::frame::Frame;
use gradus_engine::kinds::{ROLLOUT, SERVICE};
use gradus_engine::uid::Uid;
use serde_json::json;

use super::*;
use crate::cluster::{Listing, PostedEvent, WriteError, Written};

/// A server that refuses certain writes, and a list of all that happens.
#[derive(Default)]
struct Server<'a> {
    refuses: &'a str,
    seen: RefCell<Vec<String>>,
    /// What each write rested on.
    expected: RefCell<Vec<Expect>>,
}

/// The version that every object has once it is written.
const WRITTEN: u64 = 42;

impl Cluster for Server<'_> {
    async fn write(&self, write: Write) -> Result<Written, WriteError> {
        let name = if write.part == ResourcePart::Status { "status" } else { &write.target.name };
        let is_refused = self.refuses.split(' ').any(|refused| refused == name);
        let mark = if is_refused { "!" } else { "" };
        self.seen.borrow_mut().push(format!("{name}{mark}"));
        self.expected.borrow_mut().push(write.expect);
        if is_refused {
            let message = "no".to_owned();
            return Err(WriteError { class: Class::Denied, message, retry_after_secs: None });
        }
        Ok(Written { version: WRITTEN, status: Arc::default() })
    }

    async fn read(&self, _: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        unreachable!("acting reads nothing")
    }

    async fn read_whole(&self, _: &ObjectRef) -> Result<Option<Value>, WriteError> {
        unreachable!("nobody reads here")
    }

    async fn permit(&self) -> Result<(), WriteError> {
        Ok(())
    }

    async fn list(&self, _: &Listing) -> Result<Vec<Frame>, WriteError> {
        unreachable!("acting lists nothing")
    }

    async fn post(&self, _: &PostedEvent) -> Result<(), WriteError> {
        unreachable!("the poster posts")
    }
}

fn service(name: &str) -> Change {
    let target = ObjectRef::new(SERVICE, &"shop".into(), &name.into());
    let on_refusal = if name == "extra" { OnRefusal::Skip } else { OnRefusal::Stop };
    Change { on_refusal, ..Change::create(target, json!({})) }
}

/// An Event after each of these writes; Events are named in capitals.
fn event(after: &str) -> Event {
    let about = web();
    let reason = after.to_uppercase().into();
    let after = if after == "status" { After::Status } else { After::Change(service(after).id) };
    Event { about, uid: None, kind: EventKind::Normal, reason, message: String::new(), after }
}

#[tokio::test]
async fn an_event_is_told_as_soon_as_its_write_is_done_and_never_before() {
    let cases = [
        ("each after its own", "a b", "a b status", "", "a A b B status STATUS"),
        ("in the order of the list", "a b", "b a status", "", "a b B A status STATUS"),
        ("none before an earlier one", "a b", "a status b", "", "a A b status STATUS B"),
        ("a status that is refused", "a b", "a status b", "status", "a A b status! B"),
        ("a change that is refused ends the pass", "a b", "a b status", "b", "a A b!"),
        ("nothing after it is told", "a b c", "b a status", "b", "a b!"),
        ("one that may be skipped", "a extra", "a extra status", "extra", "a A extra! status"),
    ];
    for (what, changes, events, refuses, expected) in cases {
        let server = Server { refuses, ..Server::default() };
        let changes = changes.split(' ').map(service).collect();
        let events = events.split(' ').map(event).collect();
        let tell = |event: Event| server.seen.borrow_mut().push(event.reason.into_owned());
        act(&server, job(changes, events), tell).await;
        assert_eq!(server.seen.borrow().join(" "), expected, "{what}");
    }
}

#[tokio::test]
async fn a_status_rests_on_what_was_decided_on_or_on_our_own_last_write() {
    let itself = Change::patch(web(), json!({}), 7);
    let cases = [
        ("nothing else is written", vec![], vec![Expect::Version(7)]),
        ("another object", vec![service("a")], vec![Expect::Nothing, Expect::Version(7)]),
        ("itself", vec![itself], vec![Expect::Version(7), Expect::Version(WRITTEN)]),
    ];
    for (what, changes, expected) in cases {
        let server = Server::default();
        act(&server, job(changes, Vec::new()), drop).await;
        assert_eq!(*server.expected.borrow(), expected, "{what}");
    }
}

fn web() -> ObjectRef {
    ObjectRef::new(ROLLOUT, &"shop".into(), &"web".into())
}

/// These changes and a status, decided on version 7.
fn job(changes: Vec<Change>, events: Vec<Event>) -> Box<Job> {
    Box::new(Job {
        key: Key::new(&"shop".into(), &"web".into()),
        head: Head { object: web(), uid: Uid::default(), version: 7 },
        changes,
        status: Some(StatusWrite { patch: Arc::default(), place: StatusPlace::Subresource }),
        events,
        wake_at: None,
        standing: Standing::default(),
        decided_at: Timestamp::UNIX_EPOCH,
        lane: Lane::default(),
    })
}
