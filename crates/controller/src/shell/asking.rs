//! What decisions ask, which questions may be under way, and what becomes of the answers. Also reads
//! that a key waits for before it is decided.

mod waiting;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use gradus_engine::ask::{Answer, Ask, AskId, Effect, Failure, Question, Reply};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use jiff::{SignedDuration, Timestamp};

use super::notes::Shown;
use super::{Alarm, Shell, Work};
use crate::ask::Answerer;
use crate::cluster::WriteError;
use crate::watched::{Key, Watched};
use waiting::WaitingQuestions;

/// A question on its way to the executor.
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    /// For an object of this kind.
    pub kind: Kind,
    /// For whom.
    pub key: Key,
    /// What is asked.
    pub question: Question,
    /// Does asking change anything outside?
    pub effect: Effect,
    id: AskId,
    asked_at: Timestamp,
    /// Changes of the key that were tried when it was asked.
    number: u64,
}

impl Inquiry {
    /// The object for which it is asked.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::new(self.kind.clone(), &self.key.namespace, &self.key.name)
    }

    /// Which question of its object it is.
    pub fn id(&self) -> &AskId {
        &self.id
    }
}

#[cfg(test)]
impl Inquiry {
    /// A question of an object of the namespace `shop`.
    pub(crate) fn of(question: Question, effect: Effect) -> Self {
        Inquiry {
            kind: gradus_engine::kinds::ROLLOUT,
            key: Key { namespace: "shop".into(), name: "web".into() },
            question,
            effect,
            id: AskId("question".into()),
            asked_at: Timestamp::UNIX_EPOCH,
            number: 0,
        }
    }
}

/// An object that is read before its key is decided: to see a write of ours, or whether it was done.
#[derive(Clone, Debug, PartialEq)]
pub struct SettlingRead {
    /// For whom.
    pub key: Key,
    /// The object.
    pub object: ObjectRef,
}

/// A question of a key that is under way.
#[derive(Clone, Debug)]
pub(super) struct Open {
    effect: Effect,
    /// The plugin that is told something: it hears nothing else of this key meanwhile.
    tells: Option<String>,
}

/// When a key whose question could not be asked is decided again: the lead may come back soon.
const AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// Questions that wait for their turn, and how many are under way.
#[derive(Default)]
pub(super) struct Asking {
    settling: VecDeque<SettlingRead>,
    waiting: BTreeMap<Answerer, WaitingQuestions>,
    under_way: BTreeMap<Answerer, usize>,
    /// The same by namespace.
    under_way_here: BTreeMap<(Answerer, Arc<str>), usize>,
    /// Questions for plugins that are under way, by plugin.
    with_plugin: BTreeMap<String, usize>,
}

impl Asking {
    /// The next question that may be asked now. Reads that keys wait for go first.
    fn next(&mut self) -> Option<Work> {
        if self.has_room(Answerer::Api)
            && let Some(read) = self.settling.pop_front()
        {
            self.begin(Answerer::Api, &read.key.namespace, None);
            return Some(Work::Settle(read));
        }
        let classes: Vec<Answerer> = self.waiting.keys().copied().collect();
        let inquiry = classes.into_iter().find_map(|class| self.next_of(class))?;
        Some(Work::Ask(Box::new(inquiry)))
    }

    /// The next question of a class whose namespace and plugin have room.
    fn next_of(&mut self, class: Answerer) -> Option<Inquiry> {
        if !self.has_room(class) {
            return None;
        }
        let Asking { waiting, under_way_here, with_plugin, .. } = self;
        let limit = class.limit_per_namespace();
        let has_room = |namespace: &Arc<str>| {
            let here = under_way_here.get(&(class, Arc::clone(namespace)));
            here.is_none_or(|count| *count < limit)
        };
        let is_free = |plugin: &str| {
            with_plugin.get(plugin).is_none_or(|count| *count < Answerer::LIMIT_PER_PLUGIN)
        };
        let questions = waiting.get_mut(&class)?;
        let inquiry = questions.pop(is_free, has_room)?;
        if questions.is_empty() {
            waiting.remove(&class);
        }
        self.begin(class, &inquiry.key.namespace, inquiry.question.plugin());
        Some(inquiry)
    }

    /// One more waits for its turn.
    fn add(&mut self, inquiry: Inquiry) {
        self.waiting.entry(Answerer::of(&inquiry.question)).or_default().push(inquiry);
    }

    fn has_room(&self, class: Answerer) -> bool {
        self.under_way.get(&class).copied().unwrap_or(0) < class.limit()
    }

    fn begin(&mut self, class: Answerer, namespace: &Arc<str>, plugin: Option<&str>) {
        if let Some(plugin) = plugin {
            *self.with_plugin.entry(plugin.to_owned()).or_default() += 1;
        }
        *self.under_way.entry(class).or_default() += 1;
        *self.under_way_here.entry((class, Arc::clone(namespace))).or_default() += 1;
    }

    fn end(&mut self, class: Answerer, namespace: &Arc<str>, plugin: Option<&str>) {
        if let Some((plugin, count)) =
            plugin.and_then(|plugin| self.with_plugin.get_key_value(plugin))
        {
            let (plugin, left) = (plugin.clone(), count.saturating_sub(1));
            match left {
                0 => drop(self.with_plugin.remove(&plugin)),
                _ => drop(self.with_plugin.insert(plugin, left)),
            }
        }
        if let Some(count) = self.under_way.get_mut(&class) {
            *count = count.saturating_sub(1);
        }
        let at = (class, Arc::clone(namespace));
        if let Some(count) = self.under_way_here.get_mut(&at) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.under_way_here.remove(&at);
            }
        }
    }
}

/// Which questions of a decision may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Askable {
    /// Those that change nothing: what justifies the others is not stored yet, or was cut.
    Reads,
    /// All.
    All,
}

impl<W: Watched> Shell<W> {
    /// The next question to ask, or object to read.
    pub(super) fn next_asked(&mut self) -> Option<Work> {
        self.asking.next()
    }

    /// Starts what is asked and not known; drops answers nobody wants any more. A question that
    /// changes something outside stays under way until it is answered, wanted or not.
    pub(super) fn start_asks(&mut self, key: &Key, asks: &[Ask], askable: Askable, now: Timestamp) {
        let state = self.keys.entry(key.clone()).or_default();
        let is_wanted = |id: &AskId| asks.iter().any(|ask| ask.id == *id);
        state.answers.retain(|id, _| is_wanted(id));
        state.asking.retain(|id, open| open.effect == Effect::Acts || is_wanted(id));
        for ask in asks {
            let known = state.answers.get(&ask.id);
            let is_fresh = known.is_some_and(|answer| {
                ask.after.is_none_or(|after| after <= answer.asked_at)
                    && answer.reply.as_ref().err().is_none_or(|failed| now < failed.retry_at)
            });
            let is_held_back = ask.effect == Effect::Acts && askable == Askable::Reads;
            if is_fresh || is_held_back || state.asking.contains_key(&ask.id) {
                continue;
            }
            let tells = ask.question.tells();
            if tells.is_some() && state.asking.values().any(|open| open.tells.as_deref() == tells) {
                continue; // The answer to what it is told now wakes the key.
            }
            let open = Open { effect: ask.effect, tells: tells.map(str::to_owned) };
            state.asking.insert(ask.id.clone(), open);
            let inquiry = Inquiry {
                kind: W::KIND,
                key: key.clone(),
                question: ask.question.clone(),
                effect: ask.effect,
                id: ask.id.clone(),
                asked_at: now,
                number: state.tried,
            };
            self.asking.add(inquiry);
        }
    }

    /// Has an object that a source shows read before its key is decided.
    pub(super) fn settle_first(&mut self, key: &Key, shown: Shown<W::Source>) {
        let read = SettlingRead { key: key.clone(), object: shown.1.clone() };
        self.keys.entry(key.clone()).or_default().settling = Some(shown);
        self.asking.settling.push_back(read);
    }

    /// Takes in an object that was read before its key is decided; `None` where it is not there.
    pub fn learn_settling(
        &mut self,
        read: SettlingRead,
        reply: Result<Option<Frame>, WriteError>,
        now: Timestamp,
    ) {
        let SettlingRead { key, object } = read;
        self.asking.end(Answerer::Api, &key.namespace, None);
        let settling = self.keys.get_mut(&key).and_then(|state| state.settling.take());
        match reply {
            Ok(found) => {
                if let Some(shown) = settling {
                    match found {
                        Some(frame) => self.take_in(&shown.0, &frame, now),
                        None => self.forget(&shown, now),
                    }
                    self.notes.settle(&key, &shown);
                }
                if let Some(state) = self.keys.get_mut(&key) {
                    state.read_refused = 0;
                }
                self.queue.finish(&key, now);
                self.queue.add(key, now);
            }
            Err(error) => {
                let state = self.keys.entry(key.clone()).or_default();
                state.read_refused = state.read_refused.saturating_add(1);
                let due = self.queue.failed(key.clone(), now);
                if let Some(asked) = error.asked_until(now) {
                    self.queue.hold(key.clone(), asked.max(due));
                }
                self.alarms.push(Alarm::Refused {
                    key: key.clone(),
                    change: format!("read {object}"),
                    class: error.class,
                    message: error.message,
                    times: state.read_refused,
                });
                self.queue.finish(&key, now);
            }
        }
    }

    /// Takes back a question that could not be asked because nothing may be written now. It is no
    /// answer: whoever may write again decides anew.
    pub fn take_back(&mut self, inquiry: Inquiry, now: Timestamp) {
        let Inquiry { key, question, id, .. } = inquiry;
        self.asking.end(Answerer::of(&question), &key.namespace, question.plugin());
        if let Some(state) = self.keys.get_mut(&key) {
            state.asking.remove(&id);
            self.queue.add(key, now + AGAIN);
        }
    }

    /// Takes in the answer to a question.
    pub fn learn_answer(
        &mut self,
        inquiry: Inquiry,
        reply: Result<Reply, WriteError>,
        now: Timestamp,
    ) {
        let Inquiry { key, question, id, asked_at, number, .. } = inquiry;
        let class = Answerer::of(&question);
        self.asking.end(class, &key.namespace, question.plugin());
        let Some(state) = self.keys.get_mut(&key) else { return };
        // An answer older than our own last change says nothing of the world after it. What a
        // provider or a plugin has said, and what was drawn, does not grow old so.
        let is_overtaken =
            matches!(class, Answerer::Api | Answerer::Cloud) && state.tried != number;
        if is_overtaken {
            state.asking.remove(&id);
        }
        if is_overtaken || state.asking.remove(&id).is_none() {
            self.queue.add(key, now); // It may have come to rest on this answer: it must ask again.
            return;
        }
        let times = match state.answers.get(&id).map(|answer| &answer.reply) {
            Some(Err(failed)) => failed.times + 1,
            _ => 1,
        };
        let back_off = now + SignedDuration::from_millis(1 << times.min(13));
        let reply = reply.map_err(|error| Failure {
            retry_at: error.asked_until(now).map_or(back_off, |asked| asked.max(back_off)),
            class: error.class,
            message: error.message,
            times,
        });
        state.answers.insert(id, Answer { asked_at, answered_at: now, reply });
        self.queue.add(key, now);
    }
}

#[cfg(test)]
mod tests {
    use gradus_engine::ask::PluginCall;
    use gradus_engine::kinds;

    use super::*;

    fn question(class: Answerer, name: &str) -> Question {
        match class {
            Answerer::Api => {
                Question::Read(ObjectRef::new(kinds::POD, &"shop".into(), &name.into()))
            }
            Answerer::Process => Question::Plugin(PluginCall {
                name: name.to_owned(),
                operation: "Run".to_owned(),
                index: 0,
                config: None,
                status: None,
            }),
            other => panic!("{other:?} is not asked here"),
        }
    }

    fn inquiry(class: Answerer, namespace: &str, name: &str) -> Inquiry {
        let key = Key { namespace: namespace.into(), name: name.into() };
        Inquiry { key, ..Inquiry::of(question(class, name), Effect::Reads) }
    }

    /// The namespaces of all that may be asked now.
    fn started(asking: &mut Asking) -> Vec<Arc<str>> {
        let started = std::iter::from_fn(|| asking.next()).map(|work| match work {
            Work::Ask(inquiry) => inquiry.key.namespace,
            Work::Settle(read) => read.key.namespace,
            Work::Act(job) => job.key.namespace,
            Work::Survey(listing) => listing.namespace,
        });
        started.collect()
    }

    #[test]
    fn each_class_and_each_namespace_has_its_limit() {
        for class in [Answerer::Api, Answerer::Process] {
            let mut asking = Asking::default();
            for (namespace, count) in [("busy", 200), ("calm", 3)] {
                for number in 0..count {
                    asking.add(inquiry(class, namespace, &number.to_string()));
                }
            }
            let first = started(&mut asking);
            assert!(first.len() <= class.limit(), "{class:?}");
            let busy = first.iter().filter(|namespace| &***namespace == "busy").count();
            let expected = class.limit_per_namespace().min(class.limit() - 3);
            assert_eq!(busy, expected, "{class:?}");
            assert_eq!(first.len() - busy, 3, "{class:?}: they take turns");
            asking.end(class, &"busy".into(), None);
            assert_eq!(started(&mut asking).len(), 1, "{class:?}: one has ended");
        }
    }

    #[test]
    fn a_plugin_that_hangs_leaves_room_for_all_others() {
        let mut asking = Asking::default();
        (0..100).for_each(|_| asking.add(inquiry(Answerer::Process, "shop", "a/hangs")));
        asking.add(inquiry(Answerer::Process, "shop", "a/good"));
        let asked: Vec<Work> = std::iter::from_fn(|| asking.next()).collect();
        let of = |name: &str| {
            let is_it = |work: &&Work| matches!(work, Work::Ask(one) if one.question.plugin() == Some(name));
            asked.iter().filter(is_it).count()
        };
        assert_eq!(of("a/hangs"), Answerer::LIMIT_PER_PLUGIN);
        assert_eq!(of("a/good"), 1, "behind a hundred of the other");
        asking.end(Answerer::Process, &"shop".into(), Some("a/hangs"));
        assert_eq!(started(&mut asking).len(), 1, "one has ended");
    }

    #[test]
    fn plugins_and_namespaces_take_turns_and_within_one_the_first_come_is_first() {
        let mut asking = Asking::default();
        for (plugin, namespace, count) in
            [("a/one", "a-crowd", 4), ("a/one", "z-shop", 2), ("b/two", "a-crowd", 2)]
        {
            (0..count).for_each(|number| {
                let one = inquiry(Answerer::Process, namespace, plugin);
                let id = AskId(format!("{number}").into());
                asking.add(Inquiry { id, ..one });
            });
        }
        let order: Vec<String> = std::iter::from_fn(|| asking.next())
            .map(|work| match work {
                Work::Ask(one) => {
                    let plugin = one.question.plugin().unwrap_or_default();
                    format!("{plugin} {} {}", one.key.namespace, one.id.0)
                }
                _ => panic!("questions alone wait"),
            })
            .collect();
        let expected = [
            "a/one a-crowd 0",
            "b/two a-crowd 0",
            "a/one z-shop 0",
            "b/two a-crowd 1",
            "a/one a-crowd 1",
            "a/one z-shop 1",
            "a/one a-crowd 2",
            "a/one a-crowd 3",
        ];
        assert_eq!(order, expected);
        assert!(asking.waiting.is_empty(), "nothing is left of them");
    }

    #[test]
    fn a_crowd_of_questions_costs_no_more_per_question() {
        // As each decided key asks: one more waits, and whoever may be asked is.
        const CROWD: usize = 100_000;
        let mut asking = Asking::default();
        let began = std::time::Instant::now();
        let mut asked = 0;
        for _ in 0..CROWD {
            asking.add(inquiry(Answerer::Process, "shop", "a/hangs"));
            asked += std::iter::from_fn(|| asking.next()).count();
        }
        assert_eq!(asked, Answerer::LIMIT_PER_PLUGIN);
        // Looked at one by one they would take half an hour.
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    }

    #[test]
    fn reads_that_keys_wait_for_count_as_reads_of_the_api_server() {
        let mut asking = Asking::default();
        for number in 0..100 {
            let one = inquiry(Answerer::Api, "shop", &number.to_string());
            let Question::Read(object) = one.question.clone() else { panic!("a read") };
            asking.settling.push_back(SettlingRead { key: one.key.clone(), object });
            asking.add(one);
        }
        assert_eq!(started(&mut asking).len(), Answerer::Api.limit(), "both together");
        assert_eq!(asking.settling.len(), 100 - Answerer::Api.limit(), "and they go first");
    }
}
