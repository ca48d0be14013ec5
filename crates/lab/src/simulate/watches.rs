//! What has each watch shown to the controller so far, and what does chance do to it?

use std::sync::Arc;

use gradus_controller::shell::Seen;
use gradus_controller::watched::{Watch, Watched};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use gradus_simkube::selector::LabelSelector;
use gradus_simkube::{Change, Event, SimCluster};
use jiff::{SignedDuration, Timestamp};

use super::mind::Thinking;
use crate::door::{Bench, frame};
use crate::faults::{Chance, Faults};
use crate::trace::Record;

/// The watch of one kind.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    kind: Kind,
    id: KindId,
    /// It shows objects with these labels alone,
    labels: Option<Arc<LabelSelector>>,
    /// and perhaps of each only the metadata.
    metadata_alone: bool,
    /// The version it has come to.
    version: u64,
    /// A list is due at this moment.
    list_at: Option<Timestamp>,
    /// It says nothing before this moment.
    silent_until: Option<Timestamp>,
    /// Lists at once: the watch has just begun.
    is_new: bool,
}

/// Do the checks go by what this engine is shown and decides?
pub(super) fn is_judged<W: Watched>() -> bool {
    W::KIND != kinds::SERVICE && W::KIND != kinds::INGRESS
}

/// The watches of an engine that has just started.
pub(super) fn feeds<W: Watched>(cluster: &SimCluster) -> Vec<Feed> {
    W::watches("").into_iter().map(|watch| Feed::new::<W>(watch, cluster)).collect()
}

impl Feed {
    /// A watch that has just begun.
    pub(super) fn new<W: Watched>(watch: Watch, cluster: &SimCluster) -> Self {
        let Watch { kind, labels } = watch;
        let id = cluster.kinds().by_plural(&kind.group, &kind.version, &kind.plural);
        let id =
            id.expect("the controller watches only kinds that every cluster of a scenario has");
        let labels = labels.map(|text| {
            let selector = LabelSelector::parse(&text);
            Arc::new(selector.expect("the selectors of a controller are constants"))
        });
        Feed {
            metadata_alone: W::needs_metadata_alone(&kind),
            kind,
            id,
            labels,
            version: 0,
            list_at: None,
            silent_until: None,
            is_new: true,
        }
    }

    /// The same watch of a controller that has just started.
    pub(super) fn anew(&self) -> Self {
        Feed { version: 0, list_at: None, silent_until: None, is_new: true, ..self.clone() }
    }

    /// When it can speak again although nothing happens.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        [self.list_at, self.silent_until].into_iter().flatten().filter(|due| now < *due).min()
    }

    fn accepts(&self, object: &Object) -> bool {
        self.labels.as_ref().is_none_or(|labels| labels.matches(&object.meta.labels))
    }

    /// An object as this watch shows it.
    fn frame(&self, object: &Object) -> Frame {
        let whole = frame(object);
        if self.metadata_alone { Frame { meta: whole.meta, ..Frame::default() } } else { whole }
    }

    /// Is it shown nothing but what happens in the cluster?
    pub(super) fn is_steady(&self) -> bool {
        !self.is_new && self.list_at.is_none() && self.silent_until.is_none()
    }

    /// Has it something to show now?
    pub(super) fn is_ready(&self, bench: &Bench, now: Timestamp) -> bool {
        if self.is_new || self.list_at.is_some_and(|at| at <= now) {
            return true;
        }
        if self.silent_until.is_some_and(|until| now < until) {
            return false;
        }
        bench.cluster.has_events_after(self.id, self.version)
    }
}

impl<W: Watched> Thinking<W> {
    /// Shows one event of a watch, or a whole list.
    pub(super) fn show_one(
        &mut self,
        at: usize,
        now: Timestamp,
        chance: &mut Option<Chance>,
        faults: &Faults,
    ) {
        let feed = &self.feeds[at];
        if feed.is_new || feed.list_at.is_some_and(|list_at| list_at <= now) {
            self.list(at, now);
            return;
        }
        let Some(event) = self.news(at, 0) else { return };
        let (name, version) = (Arc::clone(&event.object.meta.name), event.object.version);
        let fate = chance.as_mut().map_or(Fate::Plain, |chance| Fate::draw(chance, faults));
        let feed = &mut self.feeds[at];
        let record = match fate {
            Fate::Late(silence) if feed.silent_until.is_none_or(|until| until < now) => {
                feed.silent_until = Some(now + silence);
                Some(Record::Late(name, version))
            }
            Fate::Lost(until) => {
                feed.version = version;
                feed.list_at = feed.list_at.or(Some(now + until));
                Some(Record::Lost(name, version))
            }
            Fate::Twice => {
                self.observe(at, &event, now);
                self.observe(at, &event, now);
                Some(Record::Twice(name, version))
            }
            Fate::Overtaken => self.news(at, 1).filter(|next| !is_same(next, &event)).map(|next| {
                self.observe(at, &next, now);
                self.observe(at, &event, now);
                self.feeds[at].version = next.object.version;
                Record::Overtaken(name, version)
            }),
            Fate::Plain | Fate::Late(_) => None,
        };
        match record {
            Some(record) => self.bench.borrow_mut().trace.note(now, record),
            None => self.observe(at, &event, now),
        }
    }

    /// One of the events that this watch has not shown yet.
    fn news(&self, at: usize, skipped: usize) -> Option<Event> {
        let (feed, bench) = (&self.feeds[at], self.bench.borrow());
        let mut news = bench.cluster.events_after(feed.id, feed.version).ok()?;
        news.nth(skipped).cloned()
    }

    /// Shows one event.
    fn observe(&mut self, at: usize, event: &Event, now: Timestamp) {
        let feed = &mut self.feeds[at];
        feed.version = event.object.version;
        let mut bench = self.bench.borrow_mut();
        let name = Arc::clone(&event.object.meta.name);
        bench.trace.note(now, Record::Shown(name, feed.version));
        if is_judged::<W>() {
            bench.checker.shown(&event.object);
        }
        drop(bench);
        let stays = event.change != Change::Deleted && feed.accepts(&event.object);
        if !stays {
            let meta = &event.object.meta;
            let object = ObjectRef::new(feed.kind.clone(), &meta.namespace, &meta.name);
            if W::version(self.shell.index(), &object).is_none() {
                return; // What was never shown does not go.
            }
        }
        let frame = feed.frame(&event.object);
        let seen = if stays { Seen::Apply(frame) } else { Seen::Delete(frame) };
        self.shell.observe(&feed.kind, seen, now);
        self.is_stirred = true;
    }

    fn list(&mut self, at: usize, now: Timestamp) {
        let mut bench = self.bench.borrow_mut();
        let feed = &mut self.feeds[at];
        let all = bench.cluster.list(feed.id, "");
        let objects: Vec<_> = all.filter(|object| feed.accepts(object)).cloned().collect();
        feed.version = bench.cluster.version();
        (feed.list_at, feed.is_new) = (None, false);
        bench.trace.note(now, Record::Listed(feed.kind.plural.clone()));
        self.shell.observe(&feed.kind, Seen::Init, now);
        for object in objects {
            if is_judged::<W>() {
                bench.checker.shown(&object);
            }
            self.shell.observe(&feed.kind, Seen::InitApply(feed.frame(&object)), now);
        }
        self.shell.observe(&feed.kind, Seen::InitDone, now);
        self.is_stirred = true;
    }
}

/// What becomes of one event.
enum Fate {
    Plain,
    Late(SignedDuration),
    Lost(SignedDuration),
    Twice,
    /// The next event comes first, if there is one already. Of one object the order stays: that
    /// much a watch promises.
    Overtaken,
}

impl Fate {
    fn draw(chance: &mut Chance, faults: &Faults) -> Self {
        if chance.percent(faults.late_percent) {
            Fate::Late(SignedDuration::from_millis(1 << chance.below(15)))
        } else if chance.percent(faults.lost_percent) {
            Fate::Lost(SignedDuration::from_secs(1 + chance.below(60).cast_signed()))
        } else if chance.percent(faults.twice_percent) {
            Fate::Twice
        } else if chance.percent(faults.overtaken_percent) {
            Fate::Overtaken
        } else {
            Fate::Plain
        }
    }
}

/// Are both events about one object?
fn is_same(one: &Event, other: &Event) -> bool {
    let (one, other) = (&one.object.meta, &other.object.meta);
    one.name == other.name && one.namespace == other.namespace
}
