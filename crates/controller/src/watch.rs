//! What happens to the objects of one kind? A stream of changes that never ends and never lies.

mod counted;
mod outage;
mod pace;
mod problem;

use std::borrow::Cow;
use std::time::Duration;

use futures::TryStreamExt;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use gradus_engine::decision::Kind;
use gradus_engine::frame::Frame;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::Api;
use kube::core::DynamicResourceScope;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};
use serde::{Deserialize, Deserializer};

use crate::shell::Seen;
use crate::tolerant::Tolerant;
use crate::version;
use crate::watched::Selection;
pub use counted::counted;
pub use outage::Outage;
use pace::Beginning;
use problem::{Extent, Problem, Step};

#[cfg(test)]
mod tests;

/// Why a watch sees nothing at the moment. It goes on trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What the caller makes of it.
    pub cause: FailedCause,
    /// For people: which kind, what is wrong, and what helps.
    pub message: String,
}

/// Why a watch sees nothing, sorted by what the caller makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedCause {
    /// The server does not have the kind: there is no such object.
    NoSuchKind,
    /// We may not read it: unknown until somebody permits it.
    Forbidden,
    /// The server is away, or does not know us: unknown until it answers.
    Away,
}

/// Objects per page of a list. What a page takes of memory as one text, the allocator keeps at hand from then on.
const PAGE: u32 = 100;

/// A list that does not move for so long is given up and begun anew.
const LIST_LIMIT: Duration = Duration::from_secs(60);

/// How long to wait after a failure, at first and at most.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// Watches the objects of a selection. A failure is logged once, and its end once; one that
/// concerns the whole server once for all watches that share the outage.
pub fn watch(
    client: Client,
    selection: Selection,
    outage: &Outage,
) -> impl Stream<Item = Result<Seen, Failed>> + Send + 'static {
    let watch = Watch {
        source: Source { client, selection, beginning: Beginning::default() },
        events: None,
        listing: true,
        wait: TRY_AGAIN.0,
        pause: None,
        has_failed: false,
        is_patient: false,
        said: None,
        outage: outage.clone(),
    };
    stream::unfold(watch, |mut watch| async move { Some((watch.next().await, watch)) })
}

struct Source {
    client: Client,
    selection: Selection,
    beginning: Beginning,
}

impl Source {
    fn start(&self) -> BoxStream<'static, watcher::Result<Seen>> {
        if self.selection.metadata_alone { self.ask::<true>() } else { self.ask::<false>() }
    }

    fn ask<const METADATA_ALONE: bool>(&self) -> BoxStream<'static, watcher::Result<Seen>> {
        let Selection { kind, namespace, labels, .. } = &self.selection;
        let client = pace::paced(self.client.clone(), self.beginning.clone());
        let api: Api<WatchedObject<METADATA_ALONE>> = match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, kind),
            None => Api::all_with(client, kind),
        };
        let mut config = watcher::Config::default().page_size(PAGE);
        config.label_selector.clone_from(labels);
        let seen = |event: Event<WatchedObject<METADATA_ALONE>>| match event {
            Event::Init => Seen::Init,
            Event::InitApply(object) => Seen::InitApply(object.frame),
            Event::InitDone => Seen::InitDone,
            Event::Apply(object) => Seen::Apply(object.frame),
            Event::Delete(object) => Seen::Delete(object.frame),
        };
        watcher::watcher(api, config).map_ok(seen).boxed()
    }
}

/// A running watch.
struct Watch {
    source: Source,
    events: Option<BoxStream<'static, watcher::Result<Seen>>>,
    /// Between the beginning and the end of a list.
    listing: bool,
    /// How long to wait after the next failure.
    wait: Duration,
    /// Wait so long before the next try.
    pause: Option<Duration>,
    /// Since something was seen last.
    has_failed: bool,
    /// The last failure was one that should pass.
    is_patient: bool,
    /// The problem of this kind that was logged last.
    said: Option<String>,
    outage: Outage,
}

impl Watch {
    async fn next(&mut self) -> Result<Seen, Failed> {
        loop {
            if let Some(pause) = self.pause.take() {
                tokio::time::sleep(pause).await;
            }
            let limit = self.listing.then_some(LIST_LIMIT);
            let events = self.events.get_or_insert_with(|| self.source.start());
            let event = tokio::select! {
                biased;
                event = next_within(limit, events) => event,
                () = self.source.beginning.lasts(), if self.has_failed => {
                    self.solved();
                    return Ok(Seen::Resumed);
                }
            };
            let problem = match event {
                Some(Ok(seen)) => {
                    self.note(&seen);
                    return Ok(seen);
                }
                Some(Err(error)) => problem::explain(&error, &self.source.selection),
                None => problem::stalled(LIST_LIMIT.as_secs()),
            };
            let is_worth_telling = problem.scope != Extent::Nobody;
            let failed = self.failed(problem);
            if is_worth_telling {
                return Err(failed);
            }
        }
    }

    fn note(&mut self, seen: &Seen) {
        // A list that begins has shown nothing yet.
        if self.has_failed && !matches!(seen, Seen::Init) {
            self.solved();
        }
        match seen {
            Seen::Init => self.listing = true,
            Seen::InitDone => self.listing = false,
            Seen::InitApply(_) | Seen::Apply(_) | Seen::Delete(_) | Seen::Resumed => {}
        }
    }

    fn solved(&mut self) {
        self.has_failed = false;
        self.is_patient = false;
        self.wait = TRY_AGAIN.0;
        let resource = problem::resource(&self.source.selection);
        if self.said.take().is_some_and(|problem| self.outage.is_solved(&problem)) {
            tracing::info!("watching {resource} again");
        }
        self.outage.solved(&resource);
    }

    fn failed(&mut self, problem: Problem) -> Failed {
        let Problem { step, scope, failed } = problem;
        if step == Step::Anew {
            self.events = None;
            self.listing = true;
        }
        self.source.beginning.forget();
        self.has_failed = true;
        self.pause = Some(self.wait);
        self.wait = (self.wait * 2).min(TRY_AGAIN.1);
        let was_patient = std::mem::replace(&mut self.is_patient, scope == Extent::Passing);
        let resource = problem::resource(&self.source.selection);
        match scope {
            Extent::Nobody => {}
            Extent::Server(trouble) => self.outage.note(resource, trouble, &failed.message),
            Extent::Kind | Extent::Passing if self.outage.is_returning(&resource) => {
                return Failed { cause: FailedCause::Away, ..failed };
            }
            Extent::Passing if !was_patient => {}
            Extent::Kind | Extent::Passing => {
                self.outage.solved(&resource); // The server is there; it is something else.
                self.say(&failed.message);
            }
        }
        failed
    }

    /// Tells of a problem of this kind, once.
    fn say(&mut self, problem: &str) {
        if self.said.as_deref() == Some(problem) {
            return;
        }
        if self.outage.is_news(problem) {
            tracing::warn!("{problem}; trying again");
        }
        self.said = Some(problem.to_owned());
    }
}

/// The next event; none where there is a limit and nothing happens within it.
async fn next_within(
    limit: Option<Duration>,
    events: &mut BoxStream<'static, watcher::Result<Seen>>,
) -> Option<watcher::Result<Seen>> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, events.next()).await.unwrap_or_default(),
        None => events.next().await,
    }
}

/// The type that kube's watcher decodes. It asks for the version alone.
#[derive(Clone, Debug)]
struct WatchedObject<const METADATA_ALONE: bool> {
    frame: Frame,
    meta: ObjectMeta,
}

impl<'de, const METADATA_ALONE: bool> Deserialize<'de> for WatchedObject<METADATA_ALONE> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Tolerant(frame) = Tolerant::deserialize(deserializer)?;
        let meta = ObjectMeta {
            resource_version: (frame.meta.version != 0).then(|| version::text(frame.meta.version)),
            ..ObjectMeta::default()
        };
        Ok(WatchedObject { frame, meta })
    }
}

impl<const METADATA_ALONE: bool> Resource for WatchedObject<METADATA_ALONE> {
    type DynamicType = Kind;
    type Scope = DynamicResourceScope;

    fn kind(kind: &Kind) -> Cow<'_, str> {
        Cow::Borrowed(&kind.name)
    }

    fn group(kind: &Kind) -> Cow<'_, str> {
        Cow::Borrowed(&kind.group)
    }

    fn version(kind: &Kind) -> Cow<'_, str> {
        Cow::Borrowed(&kind.version)
    }

    fn plural(kind: &Kind) -> Cow<'_, str> {
        Cow::Borrowed(&kind.plural)
    }

    fn metadata_api() -> bool {
        METADATA_ALONE
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
