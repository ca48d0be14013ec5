//! What is known of the pods of a ReplicaSet? They are not watched: they are asked for when a
//! restart is due or their metadata matters, once per state of the ReplicaSet.

use std::sync::Arc;

use jiff::Timestamp;

use super::objects::Objects;
use super::plan::Proposal;
use super::replica_sets::Roles;
use super::{metadata, restart};
use crate::ask::{Ask, PodsOf, Reply};
use crate::decision::{Frees, Guard, Why};
use crate::world::PodView;

/// The pods of a ReplicaSet as they were last listed; `None` while there is no answer.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    /// By name.
    pub pods: Arc<[PodView]>,
    /// When they were asked for.
    pub asked_at: Timestamp,
}

/// What was answered about the pods of a ReplicaSet in its present state.
pub(super) fn listed(objects: &Objects<'_>, roles: Roles, at: usize) -> Option<Listed> {
    let answer = objects.world.answers.get(&ask(objects, roles, at).id)?;
    match &answer.reply {
        Ok(Reply::Pods(pods)) => Some(Listed { pods: Arc::clone(pods), asked_at: answer.asked_at }),
        _ => None,
    }
}

/// Wants the pods of a ReplicaSet listed. An answer from before `after` does not count.
pub(super) fn want(
    objects: &Objects<'_>,
    roles: Roles,
    at: usize,
    after: Option<Timestamp>,
) -> Proposal {
    Proposal::default().ask(Ask { after, ..ask(objects, roles, at) })
}

/// Why the pods of a ReplicaSet are not known.
pub(super) fn unknown(objects: &Objects<'_>, roles: Roles, at: usize) -> Why {
    let ask = ask(objects, roles, at);
    let object = objects.rollout().replica_set(&objects.sets[at].name);
    let refused = objects.world.answers.get(&ask.id).and_then(|answer| answer.reply.as_ref().err());
    let (guard, frees) = match refused {
        Some(failure) => {
            let message = format!("its pods: {}", failure.message);
            (Guard::Unreadable { message }, Frees::At(failure.retry_at))
        }
        None => (Guard::Unanswered { question: format!("pods of {object}") }, Frees::Cluster),
    };
    Why { guard, object, field: "metadata.labels".into(), since: None, frees }
}

/// The question. Its id holds what another list may answer otherwise: the ReplicaSet's spec, how
/// many pods it has and what they should carry; in a restart, whatever happens to it.
fn ask(objects: &Objects<'_>, roles: Roles, at: usize) -> Ask {
    let set = &objects.sets[at];
    let wanted = metadata::digest(metadata::wanted(objects, roles, at));
    let mut state = format!("{} {} {wanted:016x}", set.generation, set.replicas);
    if restart::is_due(objects) {
        state = format!("{state} restart {}", set.version);
    }
    let pods = PodsOf {
        set: objects.rollout().replica_set(&set.name),
        uid: set.uid,
        hash: Arc::clone(&set.hash),
    };
    Ask::pods(pods, &state)
}
