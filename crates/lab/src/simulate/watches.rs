//! What has each watch shown to the controller so far, and what does chance do to it?

use std::sync::Arc;

use gradus_controller::engines::Engines;
use gradus_controller::shell::{InterlockMode, Seen};
use gradus_controller::watched::{Scope, Selection};
use gradus_engine::decision::ObjectRef;
use gradus_engine::frame::Frame;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use gradus_simkube::selector::LabelSelector;
use gradus_simkube::{Change, Event, SimCluster};
use jiff::{SignedDuration, Timestamp};

use super::Run;
use super::replica::Replica;
use crate::door::{Bench, frame};
use crate::faults::{Chance, Faults};
use crate::trace::Record;

/// One watch: what it shows goes to every engine that wants it.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    selection: Selection,
    id: KindId,
    /// It shows objects with these labels alone.
    labels: Option<Arc<LabelSelector>>,
    /// The engines that want it, by their place in the list.
    engines: Vec<usize>,
    /// The version it has come to.
    version: u64,
    /// A list is due at this moment.
    list_at: Option<Timestamp>,
    /// It says nothing before this moment.
    silent_until: Option<Timestamp>,
    /// Lists at once: the watch has just begun.
    is_new: bool,
}

/// The place of the engine that the checks go by: the one the scenario is about.
pub(super) const JUDGED: usize = 0;

/// The watches of a program that has just started.
pub(super) fn feeds(engines: &Engines, cluster: &SimCluster) -> Vec<Feed> {
    let mut feeds = Vec::new();
    let reconcilers = engines.start(&Scope::default(), InterlockMode::default());
    for (engine, reconciler) in reconcilers.iter().enumerate() {
        for selection in reconciler.selections() {
            want(&mut feeds, selection, engine, cluster);
        }
    }
    feeds
}

/// An engine wants a watch. One that has begun already lists again, for all who want it.
pub(super) fn want(
    feeds: &mut Vec<Feed>,
    selection: Selection,
    engine: usize,
    cluster: &SimCluster,
) {
    match feeds.iter_mut().find(|feed| feed.selection == selection) {
        Some(feed) => {
            feed.engines.push(engine);
            feed.is_new = true;
        }
        None => feeds.push(Feed::new(selection, engine, cluster)),
    }
}

impl Feed {
    /// A watch that has just begun.
    fn new(selection: Selection, engine: usize, cluster: &SimCluster) -> Self {
        let kind = &selection.kind;
        let id = cluster.kinds().by_plural(&kind.group, &kind.version, &kind.plural);
        let id = id.expect("the controller watches only kinds that every cluster here has");
        let labels = selection.labels.as_ref().map(|text| {
            let selector = LabelSelector::parse(text);
            Arc::new(selector.expect("the selectors of a controller are constants"))
        });
        Feed {
            selection,
            id,
            labels,
            engines: vec![engine],
            version: 0,
            list_at: None,
            silent_until: None,
            is_new: true,
        }
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
        if self.selection.metadata_alone {
            Frame { meta: whole.meta, ..Frame::default() }
        } else {
            whole
        }
    }

    /// It lists again.
    pub(super) fn begin_anew(&mut self) {
        self.is_new = true;
    }

    /// Has it yet to list?
    pub(super) fn is_unlisted(&self) -> bool {
        self.is_new
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

impl Replica {
    /// The watches that have something to show now.
    pub(super) fn ready_watches(&self, bench: &Bench, now: Timestamp) -> Vec<usize> {
        let feeds = self.feeds.iter().enumerate();
        feeds.filter(|(_, feed)| feed.is_ready(bench, now)).map(|(at, _)| at).collect()
    }

    /// The first of them.
    pub(super) fn first_ready_watch(&mut self, bench: &Bench, now: Timestamp) -> Option<usize> {
        let version = Some(bench.cluster.version());
        if self.quiet_at == version {
            return None;
        }
        let first = self.feeds.iter().position(|feed| feed.is_ready(bench, now));
        if first.is_none() && self.feeds.iter().all(Feed::is_steady) {
            self.quiet_at = version;
        }
        first
    }
}

impl Run<'_> {
    /// Shows one event of a watch of this controller, or a whole list.
    pub(super) fn show(&mut self, who: usize, at: usize) {
        let now = self.now;
        let feed = &self.replicas[who].feeds[at];
        if feed.is_new || feed.list_at.is_some_and(|list_at| list_at <= now) {
            self.list(who, at, now);
            return;
        }
        let Some(event) = self.news(who, at, 0) else { return };
        let (name, version) = (Arc::clone(&event.object.meta.name), event.object.version);
        let faults = &self.faults;
        let chance = self.chance.as_mut();
        let fate = chance.map_or(Fate::Plain, |chance| Fate::draw(chance, faults));
        let feed = &mut self.replicas[who].feeds[at];
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
                self.observe(who, at, &event, now);
                self.observe(who, at, &event, now);
                Some(Record::Twice(name, version))
            }
            Fate::Overtaken => {
                let next = self.news(who, at, 1).filter(|next| !is_same(next, &event));
                next.map(|next| {
                    self.observe(who, at, &next, now);
                    self.observe(who, at, &event, now);
                    self.replicas[who].feeds[at].version = next.object.version;
                    Record::Overtaken(name, version)
                })
            }
            Fate::Plain | Fate::Late(_) => None,
        };
        match record {
            Some(record) => self.bench.borrow_mut().trace.note(now, record),
            None => self.observe(who, at, &event, now),
        }
    }

    /// One of the events that this watch has not shown yet.
    fn news(&self, who: usize, at: usize, skipped: usize) -> Option<Event> {
        let (feed, bench) = (&self.replicas[who].feeds[at], self.bench.borrow());
        let mut news = bench.cluster.events_after(feed.id, feed.version).ok()?;
        news.nth(skipped).cloned()
    }

    /// Shows one event to every engine that wants it.
    fn observe(&mut self, who: usize, at: usize, event: &Event, now: Timestamp) {
        let clock = self.replicas[who].clock(now);
        let Replica { feeds, minds, .. } = &mut self.replicas[who];
        let feed = &mut feeds[at];
        feed.version = event.object.version;
        let mut bench = self.bench.borrow_mut();
        let name = Arc::clone(&event.object.meta.name);
        bench.trace.note(now, Record::Shown(name, feed.version));
        if feed.engines.contains(&JUDGED) {
            bench.checkers[who].shown(&event.object);
        }
        drop(bench);
        let stays = event.change != Change::Deleted && feed.accepts(&event.object);
        let meta = &event.object.meta;
        let object = ObjectRef::new(feed.selection.kind.clone(), &meta.namespace, &meta.name);
        let frame = feed.frame(&event.object);
        let seen = if stays { Seen::Apply(frame) } else { Seen::Delete(frame) };
        for engine in &feed.engines {
            minds[*engine].observe(&feed.selection, &object, &seen, clock);
        }
    }

    /// Shows a whole list to every engine that wants it.
    fn list(&mut self, who: usize, at: usize, now: Timestamp) {
        let clock = self.replicas[who].clock(now);
        let mut bench = self.bench.borrow_mut();
        let Replica { feeds, minds, .. } = &mut self.replicas[who];
        let feed = &mut feeds[at];
        let all = bench.cluster.list(feed.id, "");
        let objects: Vec<_> = all.filter(|object| feed.accepts(object)).cloned().collect();
        feed.version = bench.cluster.version();
        (feed.list_at, feed.is_new) = (None, false);
        bench.trace.note(now, Record::Listed(feed.selection.kind.plural.clone()));
        if feed.engines.contains(&JUDGED) {
            objects.iter().for_each(|object| bench.checkers[who].shown(object));
        }
        let items = objects.iter().map(|object| Seen::InitApply(feed.frame(object)));
        let list: Vec<Seen> =
            [Seen::Init].into_iter().chain(items).chain([Seen::InitDone]).collect();
        for engine in &feed.engines {
            minds[*engine].observe_list(&feed.selection, &list, clock);
        }
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
