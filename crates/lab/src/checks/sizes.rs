//! I-1 and I-2, and I-4 and I-6 of blue-green rollouts: are there enough pods, and not too many?

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names;
use gradus_simkube::object::Object;
use gradus_simkube::{Change, Write};
use jiff::Timestamp;
use serde_json::Value;

use super::traffic::Traffic;

/// Sizes and available pods of a rollout's ReplicaSets: as they are, as the watch has shown them,
/// and as they were shown when the decision was made that is being carried out.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    sets: BTreeMap<Arc<str>, Set>,
    limits: Option<ResizeLimits>,
    shown_limits: Option<ResizeLimits>,
    decided_limits: Option<ResizeLimits>,
    /// Revisions of a blue-green rollout that are wanted beside the newest: stable, and active.
    wanted: [String; 2],
    /// The active Service of a blue-green rollout.
    active: String,
}

#[derive(Clone, Debug)]
struct Set {
    holder: Holder,
    hash: Arc<str>,
    created: Timestamp,
    revision: Option<i64>,
    size: i64,
    available: i64,
    shown: i64,
    decided: i64,
}

/// Whose a ReplicaSet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Rollout,
    /// It serves whom a weight sends there; how many pods it has is the Experiment's business.
    Experiment,
    /// One that was let go still serves whom a Service sends there, but nobody counts on it: it is
    /// neither resized nor restarted (contract 5.9).
    Nobody,
}

impl Holder {
    fn of(set: &Object) -> Self {
        match set.controller().map(|owner| &*owner.kind) {
            Some(names::kind::ROLLOUT) => Holder::Rollout,
            Some(names::kind::EXPERIMENT) => Holder::Experiment,
            _ => Holder::Nobody,
        }
    }
}

impl Set {
    /// Pods available by the server or, as it was decided, by what the controller could know: a pod
    /// that fails between decision and write is not the write's fault.
    fn available_of(&self, size: i64) -> i64 {
        self.available.max(self.decided).min(size)
    }

    /// Pods that are available and were known to be when it was decided: one that came in between
    /// nobody could count on.
    fn known(&self) -> i64 {
        self.available.min(self.decided).min(self.size)
    }
}

/// Within which limits a rollout's ReplicaSets may be resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResizeLimits {
    /// A canary without traffic routing: fewest available pods, and most pods, of all together.
    Canary {
        /// replicas − maxUnavailable.
        floor: i64,
        /// replicas + maxSurge.
        ceiling: i64,
    },
    /// Blue-green: most pods of each. One that is neither the newest nor stable nor active never
    /// grows, unless it only waits for the end of its delay.
    BlueGreen {
        /// replicas.
        each: i64,
    },
}

impl ResizeLimits {
    /// The limits of a Rollout's spec; `None` where other invariants rule.
    pub(super) fn of(spec: &Value) -> Option<Self> {
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        let strategy = &spec["strategy"];
        if strategy["blueGreen"].is_object() {
            return Some(ResizeLimits::BlueGreen { each: replicas });
        }
        let canary = strategy.get("canary")?;
        if canary.get("trafficRouting").is_some_and(|routing| !routing.is_null()) {
            return None;
        }
        let surge = resolve(canary.get("maxSurge"), replicas, 99);
        let unavailable = resolve(canary.get("maxUnavailable"), replicas, 0);
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        let floor = replicas - unavailable.min(replicas);
        Some(ResizeLimits::Canary { floor, ceiling: replicas + surge })
    }

    /// The wider of both: a user may change the spec between decision and write.
    fn or(self, other: ResizeLimits) -> ResizeLimits {
        match (self, other) {
            (
                ResizeLimits::Canary { floor, ceiling },
                ResizeLimits::Canary { floor: low, ceiling: high },
            ) => ResizeLimits::Canary { floor: floor.min(low), ceiling: ceiling.max(high) },
            (ResizeLimits::BlueGreen { each }, ResizeLimits::BlueGreen { each: high }) => {
                ResizeLimits::BlueGreen { each: each.max(high) }
            }
            _ => other,
        }
    }
}

/// A number or a percentage (25 % if left out) of the replicas; `up` is 99 to round up, 0 down.
pub(super) fn resolve(limit: Option<&Value>, replicas: i64, up: i64) -> i64 {
    let percent = match limit {
        None | Some(Value::Null) => 25,
        Some(Value::Number(number)) => return number.as_i64().unwrap_or(0),
        Some(other) => {
            let text = other.as_str().unwrap_or_default();
            match text.strip_suffix('%') {
                Some(percent) => percent.parse().unwrap_or(0),
                None => return text.parse().unwrap_or(0),
            }
        }
    };
    (replicas * percent + up) / 100
}

impl Sizes {
    /// Takes in a write of a ReplicaSet; of ours, says what is wrong with it.
    pub(super) fn replica_set(
        &mut self,
        write: &Write,
        is_ours: bool,
        traffic: &Traffic,
    ) -> Vec<(&'static str, String)> {
        let (uid, holder) = (&write.after.meta.uid, Holder::of(&write.after));
        let known = self.sets.get(uid);
        if holder == Holder::Nobody && known.is_none() {
            return Vec::new();
        }
        // Who takes in a ReplicaSet of somebody else does not resize it.
        let had = || write.before.as_ref().map_or(0, |set| size_in(set));
        let before = known.map_or_else(had, |set| set.size);
        let size = match write.change {
            Change::Deleted => 0,
            _ => size_in(&write.after),
        };
        let found = if is_ours && size != before && holder != Holder::Experiment {
            let hash = known.map_or_else(|| hash_in(&write.after), |set| &set.hash);
            let under_traffic = traffic.judge_size(hash, before, size);
            let under_traffic = under_traffic.or_else(|| self.starves(traffic, hash, before, size));
            self.judge(&write.after, before, size).into_iter().chain(under_traffic).collect()
        } else {
            Vec::new()
        };
        if write.change == Change::Deleted {
            self.sets.remove(uid);
            return found;
        }
        let (available, revision) = (available_in(&write.after), revision_in(&write.after));
        if let Some(set) = self.sets.get_mut(uid) {
            (set.holder, set.size, set.available) = (holder, size, available);
            set.revision = revision;
        } else {
            let (hash, created) = (hash_in(&write.after).into(), write.after.meta.created);
            let (shown, decided) = (0, 0);
            let set = Set { holder, hash, created, revision, size, available, shown, decided };
            self.sets.insert(Arc::clone(uid), set);
        }
        found
    }

    /// Takes in the spec of the Rollout.
    pub(super) fn rollout(&mut self, spec: &Value) {
        self.limits = ResizeLimits::of(spec);
        let active = &spec["strategy"]["blueGreen"]["activeService"];
        self.active = active.as_str().unwrap_or_default().to_owned();
    }

    /// Takes in the status of the Rollout.
    pub(super) fn rollout_status(&mut self, status: &Value) {
        if matches!(self.limits, Some(ResizeLimits::BlueGreen { .. })) {
            let hashes = [&status["stableRS"], &status["blueGreen"]["activeSelector"]];
            self.wanted = hashes.map(|hash| hash.as_str().unwrap_or_default().to_owned());
        }
    }

    /// The watch has shown this ReplicaSet to the controller.
    pub(super) fn shown(&mut self, object: &Object) {
        if let Some(set) = self.sets.get_mut(&object.meta.uid) {
            set.shown = available_in(object);
        }
    }

    /// The watch has shown this spec of the Rollout to the controller.
    pub(super) fn shown_rollout(&mut self, spec: &Value) {
        self.shown_limits = ResizeLimits::of(spec);
    }

    pub(super) fn decided(&mut self) {
        self.decided_limits = self.shown_limits;
        self.sets.values_mut().for_each(|set| set.decided = set.shown);
    }

    pub(super) fn restarted(&mut self) {
        self.shown_limits = None;
        self.sets.values_mut().for_each(|set| set.shown = 0);
        self.decided();
    }

    fn judge(&self, set: &Object, size: i64, next: i64) -> Vec<(&'static str, String)> {
        let Some(limits) = self.limits else { return Vec::new() };
        let uid = &set.meta.uid;
        match limits.or(self.decided_limits.unwrap_or(limits)) {
            ResizeLimits::BlueGreen { each } => {
                let text = if size.max(each) < next {
                    format!("{size} → {next}, each at most {each}")
                } else if size < next && self.is_passed_over(set) {
                    format!("{size} → {next}, although nobody waits for this revision any more")
                } else {
                    return Vec::new();
                };
                vec![("I-2", text)]
            }
            ResizeLimits::Canary { floor, ceiling } => {
                let below = self.below(floor, uid, size, next);
                below.into_iter().chain(self.above(ceiling, uid, size, next)).collect()
            }
        }
    }

    /// I-6: does the active Service select it, and are fewer left than all, as the controller knew it?
    fn starves(
        &self,
        traffic: &Traffic,
        hash: &str,
        size: i64,
        next: i64,
    ) -> Option<(&'static str, String)> {
        let Some(ResizeLimits::BlueGreen { each }) = self.limits else { return None };
        let ResizeLimits::BlueGreen { each: told } = self.decided_limits? else { return None };
        let is_short = next < size && next < each.min(told);
        let text = || format!("{size} → {next} while the active Service sends it all traffic");
        (is_short && traffic.selects(&self.active, hash)).then(|| ("I-6", text()))
    }

    /// I-4: does the active Service come to lead to fewer available pods than all? It may where the
    /// revision that it leaves has none, and back to stable as soon as that has more.
    pub(super) fn judge_active(
        &self,
        name: &str,
        from: &str,
        to: &str,
    ) -> Option<(&'static str, String)> {
        let Some(ResizeLimits::BlueGreen { each }) = self.limits else { return None };
        let ResizeLimits::BlueGreen { each: told } = self.decided_limits? else { return None };
        let (available, needed) = (self.available(to).0, each.min(told));
        let is_switch = name == self.active && from != to && !to.is_empty();
        let is_short = available < needed && self.known(from) > 0 && *to != self.wanted[0];
        let text = || format!("now selects {to:?} with {available} available, {needed} needed");
        (is_switch && is_short).then(|| ("I-4", text()))
    }

    /// Is a ReplicaSet neither wanted nor kept for a while?
    fn is_passed_over(&self, set: &Object) -> bool {
        let revision = revision_in(set);
        // One without a number is about to get the next one.
        let is_newest =
            revision.is_none() || self.own_sets().all(|(_, other)| other.revision <= revision);
        let is_delayed = set.meta.annotations.contains_key(names::annotation::SCALE_DOWN_DEADLINE);
        !is_newest && !is_delayed && !self.wanted.iter().any(|wanted| wanted == hash_in(set))
    }

    /// Is the revision with this hash older than the stable one, with fewer than so many between
    /// them?
    pub(super) fn is_way_back(&self, hash: &str, stable: &str, window: i64) -> bool {
        let sets = || self.own_sets().map(|(_, set)| set);
        let created = |hash: &str| sets().find(|set| &*set.hash == hash).map(|set| set.created);
        let (Some(from), Some(to)) = (created(hash), created(stable)) else { return false };
        let between = sets().filter(|set| from < set.created && set.created < to).count();
        from < to && i64::try_from(between).is_ok_and(|between| between < window)
    }

    fn below(
        &self,
        floor: i64,
        uid: &Arc<str>,
        size: i64,
        next: i64,
    ) -> Option<(&'static str, String)> {
        let resized =
            |id: &Arc<str>, set: &Set| if id == uid { set.size.min(next) } else { set.size };
        let available: i64 = self.own_sets().map(|(_, set)| set.available_of(set.size)).sum();
        let left: i64 = self.own_sets().map(|(id, set)| set.available_of(resized(id, set))).sum();
        let text =
            || format!("{size} → {next} leaves {left} available of {available}, floor {floor}");
        (left < available.min(floor)).then(|| ("I-1", text()))
    }

    fn above(
        &self,
        ceiling: i64,
        uid: &Arc<str>,
        size: i64,
        next: i64,
    ) -> Option<(&'static str, String)> {
        let others = self.own_sets().filter(|(id, _)| *id != uid);
        let others: i64 = others.map(|(_, set)| set.size).sum();
        let text = || format!("{size} → {next} makes {} pods, ceiling {ceiling}", others + next);
        (others + next > (others + size).max(ceiling)).then(|| ("I-2", text()))
    }

    /// How many pods were available by what the controller had been shown when it decided.
    pub(super) fn decided_available(&self) -> i64 {
        self.own_sets().map(|(_, set)| set.decided.min(set.size)).sum()
    }

    /// How many pods all ReplicaSets of the Rollout together are to have.
    pub(super) fn wanted(&self) -> i64 {
        self.own_sets().map(|(_, set)| set.size).sum()
    }

    /// The ReplicaSets that are the Rollout's.
    fn own_sets(&self) -> impl Iterator<Item = (&Arc<str>, &Set)> {
        self.sets.iter().filter(|(_, set)| set.holder == Holder::Rollout)
    }

    /// Available pods of the Rollout's ReplicaSet with this hash, if there is one.
    pub(super) fn own(&self, hash: &str) -> Option<i64> {
        let mut named = self.own_sets().filter(|(_, set)| &*set.hash == hash);
        named.next().map(|(_, set)| set.available_of(set.size))
    }

    /// Available pods of the ReplicaSet with this hash, and of all that are no Experiment's.
    pub(super) fn available(&self, hash: &str) -> (i64, i64) {
        let of = |set: &Set| set.available_of(set.size);
        let named = self.sets.values().filter(|set| &*set.hash == hash).map(of).sum();
        (named, self.revisions().map(of).sum())
    }

    /// Is this the hash of an Experiment's ReplicaSet?
    pub(super) fn is_of_experiment(&self, hash: &str) -> bool {
        let mut named = self.sets.values().filter(|set| &*set.hash == hash);
        named.any(|set| set.holder == Holder::Experiment)
    }

    /// The ReplicaSets that are, or were, the Rollout's.
    fn revisions(&self) -> impl Iterator<Item = &Set> {
        self.sets.values().filter(|set| set.holder != Holder::Experiment)
    }

    /// Available pods of the ReplicaSet with this hash that the controller could know of when it
    /// decided.
    pub(super) fn known(&self, hash: &str) -> i64 {
        self.sets.values().filter(|set| &*set.hash == hash).map(Set::known).sum()
    }

    /// The same of all.
    pub(super) fn known_available(&self) -> i64 {
        self.revisions().map(Set::known).sum()
    }

    /// Has every ReplicaSet of the Rollout all its pods and none that is still to go, as the controller
    /// knew when it decided?
    pub(super) fn are_all_there(&self) -> bool {
        self.own_sets().all(|(_, set)| set.known() >= set.size && set.decided <= set.size)
    }

    /// Has no other ReplicaSet of the Rollout a higher revision than the one with this hash?
    pub(super) fn is_newest(&self, hash: &str) -> bool {
        let named = self.own_sets().find(|(_, set)| &*set.hash == hash);
        named
            .is_none_or(|(_, named)| self.own_sets().all(|(_, set)| set.revision <= named.revision))
    }

    /// How many pods the ReplicaSet with this hash is to have.
    pub(super) fn size_of(&self, hash: &str) -> i64 {
        self.sets.values().filter(|set| &*set.hash == hash).map(|set| set.size).sum()
    }
}

/// The pod template hash among labels or selectors, empty if there is none.
pub(super) fn hash_of(labels: &BTreeMap<String, String>) -> &str {
    labels.get(names::label::POD_TEMPLATE_HASH).map_or("", String::as_str)
}

fn hash_in(set: &Object) -> &str {
    hash_of(&set.meta.labels)
}

fn size_in(set: &Object) -> i64 {
    set.spec["replicas"].as_i64().unwrap_or(1)
}

fn revision_in(set: &Object) -> Option<i64> {
    set.meta.annotations.get(names::annotation::REVISION)?.parse().ok()
}

fn available_in(set: &Object) -> i64 {
    set.status["availableReplicas"].as_i64().unwrap_or(0)
}

#[test]
fn a_pod_that_is_not_known_to_be_gone_is_missing_as_well() {
    // What, then: size, available pods by the server, and as the controller knew; all there?
    let cases = [
        ("as many as wanted", (3, 3, 3), true),
        ("none of none", (0, 0, 0), true),
        ("one has failed", (3, 2, 3), false),
        ("one is new", (3, 3, 2), false),
        ("one goes", (0, 1, 1), false),
        ("one has gone unseen", (0, 0, 1), false),
    ];
    for (what, (size, available, decided), expected) in cases {
        let set = Set {
            holder: Holder::Rollout,
            hash: "a".into(),
            created: Timestamp::UNIX_EPOCH,
            revision: Some(1),
            size,
            available,
            shown: decided,
            decided,
        };
        let sizes = Sizes { sets: BTreeMap::from([("a".into(), set)]), ..Sizes::default() };
        assert_eq!(sizes.are_all_there(), expected, "{what}");
    }
}
