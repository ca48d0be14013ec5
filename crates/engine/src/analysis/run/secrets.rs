//! Are the Secrets there that arguments name? Looked for once before a run begins, and before each Job:
//! what a Job uses of them is filled in by the kubelet, which waits for ever for one that is missing.

use std::sync::Arc;

use gradus_api::analysis::{Metric, SecretKeyRef};

use super::RunDraft;
use crate::ask::secret::SecretError;
use crate::ask::{Ask, Class, Reply};
use crate::decision::{Frees, Guard, ObjectRef};
use crate::kinds;

/// What is known of the Secrets that the arguments of a run name.
pub enum SecretsSeen {
    /// They are there, as far as they may be read.
    There,
    /// They are not read yet.
    Awaited,
    /// One of them, or its key, is not there.
    Missing(SecretError),
}

/// The Secrets of the arguments, before this metric is measured.
pub fn look(draft: &mut RunDraft<'_>, metric: &Metric) -> SecretsSeen {
    let run = draft.run();
    let is_first = run.status.phase.is_empty();
    if !is_first && metric.provider.job.is_none() {
        return SecretsSeen::There;
    }
    let sources = run.spec.args.iter().filter_map(|argument| argument.value_from.as_ref());
    let mut seen = SecretsSeen::There;
    for secret in sources.filter_map(|source| source.secret_key_ref.as_ref()) {
        match one(draft, secret) {
            SecretsSeen::There => {}
            SecretsSeen::Awaited => seen = SecretsSeen::Awaited,
            missing @ SecretsSeen::Missing(_) => return missing,
        }
    }
    seen
}

fn one(draft: &mut RunDraft<'_>, secret: &SecretKeyRef) -> SecretsSeen {
    let name: Arc<str> = secret.name.as_str().into();
    let target = ObjectRef::new(kinds::SECRET, &draft.run().namespace, &name);
    let ask = Ask::read(target.clone());
    let answer = draft.world.answers.get(&ask.id).map(|answer| &answer.reply);
    draft.ask(ask);
    match answer {
        Some(Ok(Reply::Object(None))) => {
            SecretsSeen::Missing(SecretError::NoSecret(secret.name.clone()))
        }
        Some(Ok(Reply::Object(Some(found)))) if found["data"].get(&secret.key).is_none() => {
            let (name, key) = (secret.name.clone(), secret.key.clone());
            SecretsSeen::Missing(SecretError::NoKey { name, key })
        }
        Some(Ok(_)) => SecretsSeen::There,
        // Who may not read it cannot say that it is missing; the kubelet may read it.
        Some(Err(failure)) if failure.class == Class::Denied => SecretsSeen::There,
        Some(Err(failure)) => {
            draft.is_reading = true;
            let guard = Guard::Unreadable { message: failure.message.clone() };
            draft.waits(guard, Frees::At(failure.retry_at));
            draft.wake(failure.retry_at);
            SecretsSeen::Awaited
        }
        None => {
            draft.is_reading = true;
            draft.waits(Guard::Unanswered { question: format!("read {target}") }, Frees::Cluster);
            SecretsSeen::Awaited
        }
    }
}
