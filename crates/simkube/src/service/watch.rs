//! A watch: what has happened since a version, then what happens, until time is up.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Body;
use super::options::{invalid_options, number, version};
use super::query::Query;
use super::render::Shape;
use super::route::RouteTarget;
use crate::SimCluster;
use crate::error::{ApiError, Cause};
use crate::kinds::KindId;
use crate::object::Object;
use crate::request::Options;
use crate::server::Shared;
use crate::store::{Change, Event};
use crate::verbs::Filter;

/// How long a watch lives whose client names no time.
const DEFAULT_SECONDS: u64 = 1_800;
/// How often a client that wants bookmarks is told the version, if nothing else happens.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// One running watch.
pub struct Watch {
    shared: Arc<Shared>,
    kind: KindId,
    namespace: Arc<str>,
    filter: Filter,
    shape: Shape,
    wants_bookmarks: bool,
    phase: Phase,
    /// Everything up to this version has been sent.
    position: u64,
    is_first: bool,
    ends: Instant,
    next_bookmark: Instant,
    written: tokio::sync::watch::Receiver<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The state of the moment is to be sent first; then perhaps a mark that it was.
    Initial { marked: bool },
    /// What happens is sent as it happens.
    Following,
    /// Nothing more is sent.
    Over,
}

impl Watch {
    /// Checks what the client asks for.
    pub fn new(
        shared: Arc<Shared>,
        target: &RouteTarget,
        query: &Query,
        shape: Shape,
    ) -> Result<Self, ApiError> {
        let current = shared.with(|cluster, _| cluster.version());
        let (position, phase) = beginning(query, current)?;
        let options = selectors(query);
        let filter =
            shared.with(|cluster, _| Filter::of(&options, cluster.kinds().get(target.kind)))?;
        let seconds = number(query, "timeoutSeconds")?;
        let now = Instant::now();
        Ok(Self {
            kind: target.kind,
            namespace: target.namespace.clone(),
            filter,
            shape,
            wants_bookmarks: query.flag("allowWatchBookmarks"),
            phase,
            position,
            is_first: true,
            ends: now + Duration::from_secs(seconds.unwrap_or(DEFAULT_SECONDS)),
            next_bookmark: now + BOOKMARK_EVERY,
            written: shared.subscribe(),
            shared,
        })
    }

    /// The answer's body: one JSON document per line.
    pub fn into_body(self) -> Body {
        let frames = stream::unfold(self, |mut watch| async move {
            let lines = watch.next().await?;
            Some((Ok::<_, Infallible>(Frame::data(lines)), watch))
        });
        StreamBody::new(frames).boxed_unsync()
    }

    /// The next lines, or nothing when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.written.borrow_and_update();
            let lines = match self.phase {
                Phase::Initial { marked } => self.initial(marked),
                Phase::Following => self.news(),
                Phase::Over => return None,
            };
            if !lines.is_empty() {
                return Some(Bytes::from(lines));
            }
            let lines = self.wait().await;
            if !lines.is_empty() {
                return Some(Bytes::from(lines));
            }
        }
    }

    /// Waits for a write, a due bookmark or the end.
    async fn wait(&mut self) -> String {
        let (ends, bookmark) = (self.ends, self.next_bookmark);
        tokio::select! {
            changed = self.written.changed() => {
                if changed.is_err() {
                    self.phase = Phase::Over;
                }
                String::new()
            }
            () = tokio::time::sleep_until(bookmark), if self.wants_bookmarks && bookmark < ends => {
                self.next_bookmark = bookmark + BOOKMARK_EVERY;
                self.bookmark(false)
            }
            () = tokio::time::sleep_until(ends) => {
                self.phase = Phase::Over;
                if self.wants_bookmarks { self.bookmark(false) } else { String::new() }
            }
        }
    }

    fn initial(&mut self, marked: bool) -> String {
        let shared = self.shared.clone();
        let mut lines = shared.with(|cluster, now| {
            let namespace = self.namespace.clone();
            let mut lines = String::new();
            for object in cluster.list(self.kind, &namespace) {
                if self.filter.accepts(object) {
                    self.line(&mut lines, "ADDED", object, cluster, now);
                }
            }
            self.position = cluster.version();
            lines
        });
        if marked && self.wants_bookmarks {
            lines.push_str(&self.bookmark(true));
        }
        self.phase = Phase::Following;
        lines
    }

    fn news(&mut self) -> String {
        let shared = self.shared.clone();
        shared.with(|cluster, now| {
            let mut lines = String::new();
            match cluster.events_after(self.kind, self.position) {
                Err(gone) => {
                    self.phase = Phase::Over;
                    let status = ApiError::gone(gone.to_string()).to_json();
                    write_line(&mut lines, "ERROR", &status);
                }
                Ok(events) => {
                    for event in events {
                        if let Some((name, object)) = self.seen_as(event) {
                            self.line(&mut lines, name, &object, cluster, now);
                        }
                    }
                    self.position = self.position.max(cluster.version());
                }
            }
            lines
        })
    }

    /// What an event is to this watch: an object that comes to match its selectors is added, one
    /// that ceases to is deleted, and shown as it was when it last matched.
    fn seen_as(&self, event: &Event) -> Option<(&'static str, Arc<Object>)> {
        let object = &event.object;
        if !self.namespace.is_empty() && object.meta.namespace != self.namespace {
            return None;
        }
        let matched = event.before.as_ref().is_some_and(|before| self.filter.accepts(before));
        match (event.change, matched, self.filter.accepts(object)) {
            (Change::Added, _, true) | (Change::Modified, false, true) => {
                Some(("ADDED", object.clone()))
            }
            (Change::Modified, true, true) => Some(("MODIFIED", object.clone())),
            (Change::Modified, true, false) | (Change::Deleted, true, _) => {
                let before = event.before.as_ref()?;
                let last = Object { version: object.version, ..Object::clone(before) };
                Some(("DELETED", Arc::new(last)))
            }
            _ => None,
        }
    }

    fn line(
        &mut self,
        lines: &mut String,
        name: &str,
        object: &Arc<Object>,
        cluster: &SimCluster,
        now: Timestamp,
    ) {
        let object = object.as_kind(self.kind);
        let document = self.shape.render_event(&object, cluster.kinds(), now, self.is_first);
        self.is_first = false;
        write_line(lines, name, &document);
    }

    fn bookmark(&self, is_initial_end: bool) -> String {
        let mut metadata = json!({
            "resourceVersion": self.position.to_string(),
            "creationTimestamp": null,
        });
        if is_initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let document = self.shared.with(|cluster, _| {
            let kind = cluster.kinds().get(self.kind);
            let (api_version, name) = match self.shape {
                Shape::Plain | Shape::Table(_) => (kind.api_version(), &*kind.kind),
                Shape::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata"),
            };
            json!({"kind": name, "apiVersion": api_version, "metadata": metadata})
        });
        let mut lines = String::new();
        write_line(&mut lines, "BOOKMARK", &document);
        lines
    }
}

fn write_line(lines: &mut String, name: &str, object: &Value) {
    lines.push_str(&json!({"type": name, "object": object}).to_string());
    lines.push('\n');
}

/// Where a watch starts: at a version, or with the state of the moment.
fn beginning(query: &Query, current: u64) -> Result<(u64, Phase), ApiError> {
    let asked = version(query).map_err(|_| {
        // A watch trips over it later than a list does, and says so otherwise.
        let text = query.get("resourceVersion").unwrap_or_default();
        ApiError::internal(format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: \
             invalid syntax"
        ))
    })?;
    let asked = asked.filter(|version| *version > 0);
    let wants_initial = query.get("sendInitialEvents");
    let is_not_older = query.get("resourceVersionMatch") == Some("NotOlderThan");
    match (wants_initial, is_not_older) {
        (Some(_), false) => Err(invalid_options(
            "ListOptions",
            Cause::forbidden(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ),
        )),
        (None, _) if query.get("resourceVersionMatch").is_some() => Err(invalid_options(
            "ListOptions",
            Cause::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ),
        )),
        (Some("true" | "1"), true) => Ok((0, Phase::Initial { marked: true })),
        (declined, _) => match asked {
            Some(version) => Ok((version, Phase::Following)),
            None if declined.is_some() => Ok((current, Phase::Following)),
            None => Ok((0, Phase::Initial { marked: false })),
        },
    }
}

fn selectors(query: &Query) -> Options {
    Options {
        label_selector: query.get("labelSelector").map(Into::into),
        field_selector: query.get("fieldSelector").map(Into::into),
        ..Options::default()
    }
}
