//! I-3, I-4, I-5, I-6 and I-9 for routed canaries: is traffic ever sent where the pods for it are not,
//! or are pods taken away under it?

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names::label::POD_TEMPLATE_HASH;
use gradus_simkube::Write;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use serde_json::Value;

use super::is_same;
use super::runs::Runs;
use super::sizes::Sizes;

/// Who gets how much of the traffic, by Service.
type Split = BTreeMap<String, i64>;
/// Who gets how much of the traffic, by revision.
type Shares = BTreeMap<String, i64>;
/// An invariant, and what was found.
type Found = (&'static str, String);

/// Where the traffic of a rollout goes: as it is, and as it was when the decision was made that is
/// being carried out.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    plan: Option<Plan>,
    shown: Option<Plan>,
    decided: Option<Plan>,
    /// The revision each Service selects.
    services: BTreeMap<String, String>,
    /// What each Ingress makes of the traffic.
    splits: BTreeMap<String, Split>,
    /// The last spec in which no router was named.
    unrouted: Option<Arc<Value>>,
}

/// What a Rollout says about its traffic.
#[derive(Clone, Debug)]
struct Plan {
    replicas: i64,
    max: i64,
    stable_service: String,
    canary_service: String,
    /// The Service whose action an ALB splits.
    action: String,
    stable: String,
    is_aborted: bool,
    /// Pods that a setCanaryScale asks for.
    scale: Option<i64>,
    /// Per cent of the pods that count as all, or a number of them.
    threshold: Option<(bool, i64)>,
}

impl Plan {
    /// The plan of a Rollout; `None` where no router splits its traffic.
    fn of(rollout: &Object) -> Option<Self> {
        let (spec, status) = (&rollout.spec, &rollout.status);
        let canary = spec["strategy"].get("canary")?;
        let routing = canary.get("trafficRouting").filter(|routing| routing.is_object())?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        let max = routing["maxTrafficWeight"].as_i64().unwrap_or(100);
        let (stable_service, canary_service) = match canary.get("pingPong") {
            None => (text(&canary["stableService"]), text(&canary["canaryService"])),
            Some(pair) => {
                let (ping, pong) = (text(&pair["pingService"]), text(&pair["pongService"]));
                let is_ping = status["canary"]["stablePingPong"] == "ping";
                if is_ping { (ping, pong) } else { (pong, ping) }
            }
        };
        let threshold = canary.get("replicaProgressThreshold").and_then(|threshold| {
            let value = threshold["value"].as_i64().filter(|value| *value >= 0)?;
            Some((threshold["type"] == "Percent", value))
        });
        let root = text(&routing["alb"]["rootService"]);
        let is_promoted = status["stableRS"] == status["currentPodHash"];
        // A full promote that comes after an abort was answered takes it back (contract 3.1);
        // beside one that was not, nobody can tell which came first, and the abort wins.
        let is_overruled = status["promoteFull"] == true && !status["abortedAt"].is_null();
        Some(Plan {
            replicas,
            max,
            action: if root.is_empty() { stable_service.clone() } else { root },
            stable_service,
            canary_service,
            stable: text(&status["stableRS"]),
            is_aborted: status["abort"] == true && !is_promoted && !is_overruled,
            scale: canary_scale(canary, status, replicas, max),
            threshold,
        })
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
    /// Takes in a write, whoever made it; of ours, says what is wrong with it.
    pub(super) fn judge(
        &mut self,
        write: &Write,
        is_ours: bool,
        sizes: &Sizes,
        runs: &Runs,
    ) -> Vec<Found> {
        let before = self.shares();
        self.take_in(&write.after);
        let Some(plan) = self.plan.as_ref().filter(|_| is_ours) else { return Vec::new() };
        let decided = self.decided.as_ref().unwrap_or(plan);
        let mut found = Vec::new();
        if write.after.kind == KindId::INGRESS {
            found.extend(self.malformed(plan, &write.after));
        }
        let (none, after) = (self.unsplit(plan), self.shares());
        for (name, is) in &after {
            let was = before.get(name).unwrap_or(&none);
            found.extend(raised(&[plan, decided], was, is, sizes));
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
        self.plan = self.plan_of(rollout);
    }

    pub(super) fn shown(&mut self, rollout: &Object) {
        self.shown = self.plan_of(rollout);
    }

    /// The plan of a Rollout. A spec that names no router need not be searched for one again.
    fn plan_of(&mut self, rollout: &Object) -> Option<Plan> {
        if is_same(self.unrouted.as_ref(), &rollout.spec) {
            return None;
        }
        let plan = Plan::of(rollout);
        self.unrouted = plan.is_none().then(|| Arc::clone(&rollout.spec));
        plan
    }

    pub(super) fn decided(&mut self) {
        self.decided.clone_from(&self.shown);
    }

    fn take_in(&mut self, object: &Object) {
        let name = object.meta.name.to_string();
        if object.kind == KindId::SERVICE {
            let hash = object.spec["selector"][POD_TEMPLATE_HASH].as_str().unwrap_or_default();
            self.services.insert(name, hash.to_owned());
        } else if let Some(plan) = &self.plan
            && let Some(split) = split(object, plan)
        {
            self.splits.insert(name, split);
        }
    }

    /// Who gets how much, by the Ingress through which the traffic comes in.
    fn shares(&self) -> BTreeMap<String, Shares> {
        let Some(plan) = &self.plan else { return BTreeMap::new() };
        if self.splits.is_empty() {
            return BTreeMap::from([(String::new(), self.unsplit(plan))]);
        }
        self.splits.iter().map(|(name, split)| (name.clone(), self.by_hash(split))).collect()
    }

    /// Who gets how much while no router has been told anything.
    fn unsplit(&self, plan: &Plan) -> Shares {
        self.by_hash(&Split::from([(plan.stable_service.clone(), plan.max)]))
    }

    fn by_hash(&self, split: &Split) -> Shares {
        let mut shares = Shares::new();
        for (service, weight) in split {
            let hash = self.services.get(service).cloned().unwrap_or_default();
            *shares.entry(hash).or_default() += weight;
        }
        shares
    }

    /// I-5: do the weights of an Ingress make sense?
    fn malformed(&self, plan: &Plan, object: &Object) -> Option<Found> {
        let split = self.splits.get(&*object.meta.name)?;
        let sum: i64 = split.values().sum();
        let is_well = sum == plan.max && split.values().all(|one| (0..=plan.max).contains(one));
        (!is_well).then(|| ("I-5", format!("{split:?} is no split of {}", plan.max)))
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
        if available < needed && carried > earlier {
            found.push(("I-4", text(format!("{available} available, {needed} needed"))));
        }
        if is_aborted && !is_stable {
            found.push(("I-9", text("although the update was given up".to_owned())));
        }
    }
    found
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

/// What an Ingress makes of the traffic: the weight of nginx's canary, or an ALB's target groups.
fn split(object: &Object, plan: &Plan) -> Option<Split> {
    let notes = &object.meta.annotations;
    let with = |ending: &str| notes.iter().find(|(key, _)| key.ends_with(ending));
    if let Some((_, weight)) = with("/canary-weight") {
        let weight = weight.parse().unwrap_or(-1);
        return Some(Split::from([
            (plan.canary_service.clone(), weight),
            (plan.stable_service.clone(), plan.max - weight),
        ]));
    }
    let (_, action) = with(&format!("/actions.{}", plan.action))?;
    let action: Value = serde_json::from_str(action).ok()?;
    let groups = action["ForwardConfig"]["TargetGroups"].as_array()?;
    let pairs = groups.iter().map(|group| {
        let service = group["ServiceName"].as_str().unwrap_or_default().to_owned();
        (service, group["Weight"].as_i64().unwrap_or(-1))
    });
    Some(pairs.collect())
}
