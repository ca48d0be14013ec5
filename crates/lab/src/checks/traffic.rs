//! I-3, I-4, I-5, I-6, I-9 and I-21 for routed canaries: is traffic ever sent where the pods for it
//! are not, taken back without a reason, or are pods taken away under it?

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names::label::POD_TEMPLATE_HASH;
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::traffic::{
    self, Backends, Receiver, RouteView, RoutingObjects, Sides, WeightPart, WeightSplit,
};
use gradus_engine::world::RolloutView;
use gradus_simkube::kinds::{KindId, Kinds};
use gradus_simkube::object::Object;
use gradus_simkube::{Change, Write};
use serde_json::Value;

use super::is_same;
use super::runs::Runs;
use super::sizes::Sizes;
use crate::door::frame;

/// Who gets how much of the traffic, by revision.
type Shares = BTreeMap<String, i64>;
/// An invariant, and what was found.
type Found = (&'static str, String);

/// Where the traffic of a rollout goes: as it is, and as it was when the decision was made that is
/// being carried out.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    /// The kinds that routers work on.
    kinds: BTreeMap<KindId, Kind>,
    plan: Option<Plan>,
    shown: Option<Plan>,
    decided: Option<Plan>,
    /// The revision each Service selects.
    services: BTreeMap<String, String>,
    /// The routing objects that are there.
    seen: RoutingObjects,
    /// What each of them makes of the traffic, as its router reads it.
    splits: BTreeMap<ObjectRef, Vec<WeightSplit>>,
    /// Has the current update been given up before, and not come a step further since?
    is_retried: bool,
    /// The last spec in which no router was named.
    unrouted: Option<Arc<Value>>,
}

/// What a Rollout says about its traffic.
#[derive(Clone, Debug)]
struct Plan {
    replicas: i64,
    max: i64,
    /// The Rollout as routers read it, and the spec that was read.
    view: Arc<RolloutView>,
    spec: Arc<Value>,
    /// Of two Services that take turns, is `ping` the stable one?
    is_ping: bool,
    stable: String,
    /// The revision that is rolled out.
    current: String,
    is_aborted: bool,
    /// The weight that the steps ask for now; all where none is left, or a person skips them.
    asked: i64,
    /// Pods that a setCanaryScale asks for.
    scale: Option<i64>,
    /// Per cent of the pods that count as all, or a number of them.
    threshold: Option<(bool, i64)>,
}

impl Plan {
    /// The plan of a Rollout; `None` where no router splits its traffic.
    fn of(rollout: &Object, earlier: Option<&Plan>) -> Option<Self> {
        let (spec, status) = (&rollout.spec, &rollout.status);
        let canary = spec["strategy"].get("canary")?;
        let routing = canary.get("trafficRouting").filter(|routing| routing.is_object())?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        let max = routing["maxTrafficWeight"].as_i64().unwrap_or(100);
        // What plugins make of the traffic stands in the status.
        let is_static = |earlier: &&Plan| !traffic::names_plugins(&earlier.view);
        let same = earlier.filter(|earlier| Arc::ptr_eq(&earlier.spec, spec)).filter(is_static);
        let view = match same {
            Some(earlier) => Arc::clone(&earlier.view),
            None => Arc::new(RolloutView::read(&frame(rollout), None)),
        };
        let threshold = canary.get("replicaProgressThreshold").and_then(|threshold| {
            let value = threshold["value"].as_i64().filter(|value| *value >= 0)?;
            Some((threshold["type"] == "Percent", value))
        });
        let is_promoted = status["stableRS"] == status["currentPodHash"];
        // A full promote that comes after an abort was answered takes it back (contract 3.1);
        // beside one that was not, nobody can tell which came first, and the abort wins.
        let is_overruled = status["promoteFull"] == true && !status["abortedAt"].is_null();
        Some(Plan {
            replicas,
            max,
            view,
            spec: Arc::clone(spec),
            is_ping: status["canary"]["stablePingPong"] == "ping",
            stable: text(&status["stableRS"]),
            current: text(&status["currentPodHash"]),
            asked: asked(canary, status, max),
            is_aborted: status["abort"] == true && !is_promoted && !is_overruled,
            scale: canary_scale(canary, status, replicas, max),
            threshold,
        })
    }

    /// The Services of both sides.
    fn sides(&self) -> Sides<'_> {
        let strategy = self.view.spec.fields.strategy.canary.as_ref();
        let strategy = strategy.expect("only canaries have a plan");
        let ping_pong = strategy.ping_pong.as_ref().map(|pair| {
            let (ping, pong) = (pair.ping_service.as_str(), pair.pong_service.as_str());
            let (stable, canary) = if self.is_ping { (ping, pong) } else { (pong, ping) };
            Backends { stable, canary }
        });
        let fixed = Backends { stable: &strategy.stable_service, canary: &strategy.canary_service };
        Sides { fixed, ping_pong }
    }

    /// The Service of the stable side.
    fn stable_service(&self) -> &str {
        let sides = self.sides();
        sides.ping_pong.unwrap_or(sides.fixed).stable
    }

    /// Pods that a revision needs for this weight.
    fn pods(&self, hash: &str, weight: i64) -> i64 {
        let is_stable = hash == self.stable;
        let round_up = if is_stable { 0 } else { self.max - 1 };
        let whole = (weight * self.replicas + round_up) / self.max;
        let asked = match self.scale.filter(|_| !is_stable) {
            Some(scale) => whole.min(scale.max(1)),
            None => whole,
        };
        match self.threshold {
            Some((true, percent)) => (asked * percent + 99) / 100,
            Some((false, pods)) => asked.min(pods),
            None => asked,
        }
    }
}

/// The weight of the nearest setWeight up to the current step.
fn asked(canary: &Value, status: &Value, max: i64) -> i64 {
    let steps = canary["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let index = status["currentStepIndex"].as_u64().and_then(|index| usize::try_from(index).ok());
    let Some(passed) = steps.get(..=index.unwrap_or(0)).filter(|_| status["promoteFull"] != true)
    else {
        return if steps.is_empty() { 0 } else { max };
    };
    passed.iter().rev().find_map(|step| step["setWeight"].as_i64()).unwrap_or(0)
}

fn canary_scale(canary: &Value, status: &Value, replicas: i64, max: i64) -> Option<i64> {
    let steps = canary["steps"].as_array()?;
    let index = usize::try_from(status["currentStepIndex"].as_u64()?).ok()?;
    let passed = steps.get(..=index)?.iter().rev();
    let scale = passed.into_iter().find_map(|step| step.get("setCanaryScale"))?;
    if scale["matchTrafficWeight"] == true {
        return None;
    }
    let by_weight = || Some((scale["weight"].as_i64()? * replicas + max - 1) / max);
    scale["replicas"].as_i64().or_else(by_weight)
}

impl Traffic {
    /// Nothing is known yet; these are the kinds of the cluster.
    pub(super) fn new(kinds: &Kinds) -> Self {
        let id = |kind: &Kind| kinds.by_plural(&kind.group, &kind.version, &kind.plural);
        let routes =
            traffic::accesses().filter_map(|access| Some((id(&access.kind)?, access.kind.clone())));
        Traffic {
            kinds: routes.collect(),
            plan: None,
            shown: None,
            decided: None,
            services: BTreeMap::new(),
            seen: RoutingObjects::new(),
            splits: BTreeMap::new(),
            is_retried: false,
            unrouted: None,
        }
    }

    /// Do routers work on objects of this kind?
    pub(super) fn is_route(&self, kind: KindId) -> bool {
        self.kinds.contains_key(&kind)
    }

    /// Takes in a write, whoever made it; of ours, says what is wrong with it.
    pub(super) fn judge(
        &mut self,
        write: &Write,
        is_ours: bool,
        sizes: &Sizes,
        runs: &Runs,
    ) -> Vec<Found> {
        let before = self.shares();
        self.take_in(write);
        let Some(plan) = self.plan.as_ref().filter(|_| is_ours) else { return Vec::new() };
        let decided = self.decided.as_ref().unwrap_or(plan);
        let mut found = Vec::new();
        found.extend(self.reference(&write.after).and_then(|route| self.malformed(plan, &route)));
        let (none, after) = (self.unsplit(plan), self.shares());
        for (name, is) in &after {
            let was = before.get(name).unwrap_or(&none);
            found.extend(raised(&[plan, decided], was, is, sizes));
            if self.is_route(write.after.kind) && !self.is_retried {
                found.extend(fallen(&[plan, decided], was, is, sizes));
            }
            found.extend(condemned(was, is, runs));
        }
        found
    }

    /// I-6: does a resize leave fewer pods than the traffic needs?
    pub(super) fn judge_size(&self, hash: &str, size: i64, next: i64) -> Option<Found> {
        let plan = self.plan.as_ref().filter(|_| next < size)?;
        let decided = self.decided.as_ref().unwrap_or(plan);
        // A rollout of no replicas sends nobody anywhere; a user may scale it between decision and
        // write.
        if plan.replicas == 0 || decided.replicas == 0 {
            return None;
        }
        let weight =
            self.shares().values().map(|shares| share(shares, hash)).max().unwrap_or_default();
        let needed = plan.pods(hash, weight).min(decided.pods(hash, weight)).max(weight.min(1));
        let text = || format!("{size} → {next} under weight {weight}, which needs {needed}");
        (next < needed).then(|| ("I-6", text()))
    }

    /// Does this Service select this revision?
    pub(super) fn selects(&self, service: &str, hash: &str) -> bool {
        self.services.get(service).is_some_and(|selected| selected == hash)
    }

    /// I-9: is an aborted rollout back on stable, which can carry it?
    pub(super) fn judge_end(&self, sizes: &Sizes) -> Option<Found> {
        let plan = self.plan.as_ref().filter(|plan| plan.is_aborted)?;
        let available = sizes.own(&plan.stable)?;
        let left =
            self.shares().values().map(|shares| plan.max - share(shares, &plan.stable)).max();
        let left = left.unwrap_or_default();
        // Services follow to pods alone: without replicas nobody is sent anywhere.
        let is_left = plan.replicas > 0 && available >= plan.replicas && left > 0;
        is_left.then(|| ("I-9", format!("ends with weight {left} off the stable revision")))
    }

    pub(super) fn rollout(&mut self, rollout: &Object) {
        let after = self.plan_of(rollout);
        if let Some(after) = &after {
            let is_other = |it: &Plan| it.current != after.current || it.asked < after.asked;
            let is_further = self.plan.as_ref().is_none_or(is_other);
            self.is_retried = after.is_aborted || self.is_retried && !is_further;
        }
        self.plan = after;
        self.read_splits();
    }

    pub(super) fn shown(&mut self, rollout: &Object) {
        self.shown = self.plan_of(rollout);
    }

    /// The plan of a Rollout. A spec that names no router need not be searched for one again.
    fn plan_of(&mut self, rollout: &Object) -> Option<Plan> {
        if is_same(self.unrouted.as_ref(), &rollout.spec) {
            return None;
        }
        let plan = Plan::of(rollout, self.plan.as_ref());
        self.unrouted = plan.is_none().then(|| Arc::clone(&rollout.spec));
        plan
    }

    pub(super) fn decided(&mut self) {
        self.decided.clone_from(&self.shown);
    }

    fn take_in(&mut self, write: &Write) {
        let object = &write.after;
        if object.kind == KindId::SERVICE {
            let hash = object.spec["selector"][POD_TEMPLATE_HASH].as_str().unwrap_or_default();
            self.services.insert(object.meta.name.to_string(), hash.to_owned());
        }
        let Some(route) = self.reference(object) else { return };
        // One that the Rollout has left is not read again: after a write nobody knows its split.
        self.splits.remove(&route);
        if write.change == Change::Deleted {
            self.seen.remove(&route);
        } else {
            self.seen.insert(route, RouteView(Arc::new(frame(object).object())));
        }
        self.read_splits();
    }

    /// Reads what the routing objects that the Rollout names make of the traffic. What one that it
    /// has left made of it stays known until that object is written or gone.
    fn read_splits(&mut self) {
        let Some(plan) = &self.plan else { return };
        let sides = plan.sides();
        for router in traffic::routers(&plan.view) {
            let mut read: BTreeMap<ObjectRef, Vec<WeightSplit>> = BTreeMap::new();
            for split in router.splits(&sides, &self.seen) {
                read.entry(split.object.clone()).or_default().push(split);
            }
            self.splits.extend(read);
        }
    }

    /// The routing object that this is, if it is one.
    fn reference(&self, object: &Object) -> Option<ObjectRef> {
        let kind = self.kinds.get(&object.kind)?.clone();
        Some(ObjectRef::new(kind, &object.meta.namespace, &object.meta.name))
    }

    /// Who gets how much, by the routing object through which the traffic comes in.
    fn shares(&self) -> BTreeMap<String, Shares> {
        let Some(plan) = &self.plan else { return BTreeMap::new() };
        if self.splits.is_empty() {
            return BTreeMap::from([(String::new(), self.unsplit(plan))]);
        }
        let shares = self.splits.iter().flat_map(|(route, splits)| {
            let each = splits.iter().enumerate();
            each.map(move |(at, split)| (format!("{route} {at}"), self.by_hash(&split.parts)))
        });
        shares.collect()
    }

    /// Who gets how much while no router has been told anything.
    fn unsplit(&self, plan: &Plan) -> Shares {
        let hash = self.services.get(plan.stable_service()).cloned().unwrap_or_default();
        Shares::from([(hash, plan.max)])
    }

    fn by_hash(&self, parts: &[WeightPart]) -> Shares {
        let mut shares = Shares::new();
        for WeightPart { receiver, weight, .. } in parts {
            let hash = match receiver {
                Receiver::Service(name) => self.services.get(name).cloned().unwrap_or_default(),
                Receiver::Revision(hash) => hash.clone(),
            };
            *shares.entry(hash).or_default() += i64::from(*weight);
        }
        shares
    }

    /// I-5: do the weights of a routing object make sense?
    fn malformed(&self, plan: &Plan, route: &ObjectRef) -> Option<Found> {
        let weights = |split: &WeightSplit| -> Vec<i64> {
            split.parts.iter().map(|part| i64::from(part.weight)).collect()
        };
        let is_well = |weights: &Vec<i64>| {
            weights.iter().sum::<i64>() == plan.max
                && weights.iter().all(|one| (0..=plan.max).contains(one))
        };
        let all = self.splits.get(route)?.iter().map(weights);
        let wrong = all.into_iter().find(|weights| !is_well(weights))?;
        Some(("I-5", format!("{wrong:?} is no split of {}", plan.max)))
    }
}

fn share(shares: &Shares, hash: &str) -> i64 {
    shares.get(hash).copied().unwrap_or_default()
}

/// I-3, I-4 and I-9: is traffic sent to a revision that cannot take it?
fn raised(plans: &[&Plan; 2], was: &Shares, is: &Shares, sizes: &Sizes) -> Vec<Found> {
    // What a revision without pods loses may go wherever there are some: too few are better than none.
    let empty = was.iter().filter(|(hash, _)| !hash.is_empty() && sizes.known(hash) == 0);
    let freed: i64 = empty.map(|(hash, weight)| (weight - share(is, hash)).max(0)).sum();
    let mut found = Vec::new();
    for (hash, weight) in is.iter().filter(|(hash, _)| !hash.is_empty()) {
        let earlier = share(was, hash);
        if *weight <= earlier {
            continue;
        }
        let (available, all) = sizes.available(hash);
        let is_stable = plans.iter().any(|plan| *hash == plan.stable);
        // Where the stable ReplicaSet is no longer the Rollout's there is nothing to return to:
        // whoever comes is sent to the pods that are left.
        let is_aborted =
            plans.iter().all(|plan| plan.is_aborted && sizes.own(&plan.stable).is_some());
        let text = |what: String| format!("weight of {hash} {earlier} → {weight}, {what}");
        // On an abort the canary Service follows to stable, whatever that has (contract 3.8); a
        // rollout of no replicas sends nobody anywhere.
        let is_empty = plans.iter().any(|plan| plan.replicas == 0);
        if available == 0 && all > 0 && !(is_aborted && is_stable) && !is_empty {
            found.push(("I-3", text(format!("which has none of {all} available pods"))));
        }
        let carried = (weight - freed).max(earlier);
        let needed = plans.iter().map(|plan| plan.pods(hash, carried)).min().unwrap_or_default();
        // A Service that selected every revision needs one that has all pods of its own size
        // (contract 11.2).
        let is_first = share(is, "") < share(was, "");
        let needed = if is_first { needed.min(sizes.size_of(hash)) } else { needed };
        // How many pods an Experiment tries, and with how much traffic, is the step's choice.
        let needed = if sizes.is_of_experiment(hash) { needed.min(1) } else { needed };
        if available < needed && carried > earlier {
            found.push(("I-4", text(format!("{available} available, {needed} needed"))));
        }
        if is_aborted && !is_stable {
            found.push(("I-9", text("although the update was given up".to_owned())));
        }
    }
    found
}

/// I-21: does the weight of the revision that is rolled out fall although it has the pods for it, and
/// nobody asks for less: no abort, no retry, no lower step, no other revision?
fn fallen(plans: &[&Plan; 2], was: &Shares, is: &Shares, sizes: &Sizes) -> Option<Found> {
    let is_wrong = |plan: &&Plan| {
        let hash = &plan.current;
        let kept = share(was, hash).min(plan.asked);
        let has_pods = sizes.known(hash) >= plan.pods(hash, kept).max(1);
        let is_moot = plan.is_aborted || plan.current == plan.stable || plan.scale == Some(0);
        share(is, hash) < kept && has_pods && !is_moot && plan.replicas > 0
    };
    let hash = &plans[0].current;
    let text = || format!("weight of {hash} {} → {}", share(was, hash), share(is, hash));
    let is_same = plans[0].current == plans[1].current;
    // Of an update that is overtaken the status says so only after its traffic has gone.
    (is_same && sizes.is_newest(hash) && plans.iter().all(is_wrong))
        .then(|| ("I-21", format!("{}, although it has the pods for it", text())))
}

/// I-8: is traffic sent to a revision against a verdict?
fn condemned(was: &Shares, is: &Shares, runs: &Runs) -> Vec<Found> {
    let rising = is.iter().filter(|(hash, weight)| share(was, hash) < **weight);
    let bad = rising.filter_map(|(hash, weight)| Some((hash, weight, runs.condemned(hash)?)));
    bad.map(|(hash, weight, run)| {
        ("I-8", format!("weight of {hash} rises to {weight} against {run}"))
    })
    .collect()
}
