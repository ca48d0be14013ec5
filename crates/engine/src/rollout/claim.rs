//! Which ReplicaSets belong to a Rollout? Orphans that match its selector are adopted, its own that
//! no longer match are released.
//!
//! Both rest on a read past the index: only what is still the same object, in the same version, is
//! claimed or let go. Nothing else is decided before.

use std::sync::Arc;

use gradus_api::rollout::{LabelSelector, RolloutStatus};
use serde_json::{Value, json};

use super::draft::Draft;
use super::objects::{Edit, Objects};
use super::plan::Proposal;
use super::{Memo, refused};
use crate::ask::{Ask, AskId, Reply};
use crate::decision::{Decision, Frees, Guard, Why};
use crate::uid::Uid;
use crate::world::{ReplicaSetView, RolloutView};

/// Has a ReplicaSet the labels that a selector asks for? An empty selector asks for nothing, and is
/// taken for none.
pub fn matches(selector: &LabelSelector, set: &ReplicaSetView) -> bool {
    let is_empty = selector.match_labels.is_empty() && selector.match_expressions.is_empty();
    !is_empty
        && selector.match_labels.iter().all(|(key, value)| set.has_label(key, value))
        && selector.match_expressions.iter().all(|requirement| {
            let key = &requirement.key;
            let is_listed = || requirement.values.iter().any(|value| set.has_label(key, value));
            match requirement.operator.as_str() {
                "In" => is_listed(),
                "NotIn" => !is_listed(),
                "Exists" => set.has_label_key(key),
                "DoesNotExist" => !set.has_label_key(key),
                _ => false,
            }
        })
}

/// What is done to the owners of a ReplicaSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Adopt,
    Release,
}

/// The decision to adopt and release what must be; `None` where everything is in its place, or where
/// nobody can tell because there is no selector.
pub(super) fn decide(draft: &Draft<'_>) -> Option<Decision<RolloutStatus, Memo>> {
    let objects = &draft.objects;
    let due = due(objects);
    if due.is_empty() {
        return None;
    }
    let rollout = objects.rollout();
    let mut claimed = Proposal::default();
    let mut asks = Vec::new();
    let mut whys = Vec::new();
    for (claim, set) in due {
        let target = rollout.replica_set(&set.name);
        // A newer version is another question.
        let id = AskId(format!("read {target} at {}", set.version).into());
        let ask = Ask { id, ..Ask::read(target.clone()) };
        let waits = |guard: Guard| Why {
            guard,
            object: target.clone(),
            field: "metadata.ownerReferences".into(),
            since: None,
            frees: Frees::Cluster,
        };
        match objects.world.answers.get(&ask.id).map(|answer| &answer.reply) {
            None => {
                let question = format!("read {target}");
                whys.push(waits(Guard::Unanswered { question }));
            }
            Some(Err(failed)) => {
                whys.push(waits(Guard::Unreadable { message: failed.message.clone() }));
            }
            Some(Ok(Reply::Object(Some(found)))) if is_same(found, &set) => {
                let owners = json!({ "ownerReferences": owners(claim, found, rollout) });
                let body = json!({ "metadata": owners });
                claimed = claimed.patch(target.clone(), body, set.version, Edit::Unseen);
            }
            // It has changed or gone: the watch will say how.
            Some(Ok(_)) => whys.push(waits(Guard::NotObserved)),
        }
        asks.push(ask);
    }
    let mut decision = refused::hold(draft.clone().with(claimed).passed());
    decision.asks = asks;
    decision.why.splice(0..0, whys);
    Some(decision)
}

fn due(objects: &Objects<'_>) -> Vec<(Claim, Arc<ReplicaSetView>)> {
    let Some(selector) = &objects.spec().selector else { return Vec::new() };
    if selector.match_labels.is_empty() && selector.match_expressions.is_empty() {
        return Vec::new();
    }
    let is_alive = |set: &&Arc<ReplicaSetView>| !set.deleting;
    let orphans = objects.world.orphans.iter().filter(|set| matches(selector, set));
    let strangers = objects.sets.iter().filter(|set| !matches(selector, set));
    let adopted = orphans.filter(is_alive).map(|set| (Claim::Adopt, Arc::clone(set)));
    let released = strangers.filter(is_alive).map(|set| (Claim::Release, Arc::clone(set)));
    adopted.chain(released).collect()
}

fn is_same(found: &Value, set: &ReplicaSetView) -> bool {
    let meta = &found["metadata"];
    meta["uid"].as_str().map(Uid::parse) == Some(set.uid)
        && meta["resourceVersion"] == set.version.to_string().as_str()
        && meta["deletionTimestamp"].is_null()
}

/// The owners afterwards: others keep their place.
fn owners(claim: Claim, found: &Value, rollout: &RolloutView) -> Value {
    let ours = rollout.uid.to_string();
    let known = found["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let mut owners: Vec<Value> = known.filter(|owner| owner["uid"] != ours).cloned().collect();
    if claim == Claim::Adopt {
        owners.push(rollout.owner_reference());
    }
    if owners.is_empty() { Value::Null } else { Value::Array(owners) }
}
