//! What should happen next to one Database? Read, compare, create, update, report.

use gradus_controller::engines::{Engines, Entry, Reporter};
use gradus_controller::families::OfFamily;
use gradus_engine::ask::{Ask, Class};
use gradus_engine::decision::{After, Change, Decision, EventKind, Kind, Op};
use gradus_engine::family::{Family, Mind};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::accept::{self, Refusal};
use crate::api::{CLAIM, DATABASE, FINALIZER, LABEL, SECRET, SERVICE, STATEFUL_SET, Spec};
use crate::children::{self, child, place};

#[cfg(test)]
mod tests;

/// The length of a password before it is written as hex.
const RANDOM_BYTES: usize = 24;
/// How long to wait after an error that passes.
const TRY_AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// The engine of Databases.
pub struct Databases;

/// All engines of this program.
pub static ENGINES: Engines =
    Engines { reporter: Reporter::named("database-operator"), list: &[Entry::of::<Databases>()] };

/// What the loop watches: Databases, and everything with their label.
impl OfFamily for Databases {
    const LABEL: &'static str = LABEL;
    const MEMBERS: &'static [Kind] = &[SECRET, SERVICE, STATEFUL_SET, CLAIM];
    const METADATA_ALONE: &'static [Kind] = &[SECRET];
}

impl Mind for Databases {
    const KIND: Kind = DATABASE;

    fn decide(family: &Family, now: Timestamp) -> Decision<Value> {
        if family.head.meta.deleting.is_some() {
            return let_go(family);
        }
        match plan(family) {
            Ok(plan) => carry_out(family, plan, now),
            Err(standing) => report(family, &standing, now),
        }
    }

    /// Errors that pass are tried again after a fixed time; the others follow the loop's back-off.
    fn retry_after(class: Class) -> Option<SignedDuration> {
        match class {
            Class::Denied | Class::Throttled | Class::Unreachable => Some(TRY_AGAIN),
            Class::Stale | Class::Exists | Class::Gone | Class::Unknown => None,
        }
    }
}

/// How a Database stands.
enum DatabaseState {
    /// Its spec is not carried out until somebody changes it.
    Refused(Refusal),
    /// There are data and no credentials.
    CredentialsLost,
    /// What is in the way (a condition and its reason), which passes.
    Waiting(&'static str, &'static str, String),
    /// What runs the pod is being written.
    Changing(Spec),
    /// It is written.
    Written(Spec),
}

/// A spec that may be carried out, and what is to be asked and written for it.
type Plan = (Spec, Decision<Value>);

/// What is missing or differs, in the order in which it is written. Nothing is planned that the
/// running database could suffer from.
fn plan(family: &Family) -> Result<Plan, DatabaseState> {
    let spec = accept::spec(family).map_err(DatabaseState::Refused)?;
    let is_there = |kind: &Kind| child(family, kind).is_some();
    if let Some((kind, why)) = family.unreadable.first_key_value() {
        let text = format!("{kind} cannot be read: {why}");
        return Err(DatabaseState::Waiting("Unreadable", "NoAnswer", text));
    }
    for kind in [SECRET, SERVICE, STATEFUL_SET] {
        let found = child(family, &kind).filter(|found| !found.meta.owners.is_empty());
        if found.is_some_and(|found| !family.owns(found)) {
            let text = format!("{} belongs to somebody else", place(family, &kind));
            return Err(DatabaseState::Waiting("Occupied", "NotOurs", text));
        }
    }
    // New credentials would not open the old data.
    if !is_there(&SECRET) && (is_there(&STATEFUL_SET) || is_there(&CLAIM)) {
        return Err(DatabaseState::CredentialsLost);
    }
    let mut plan = Decision::default();
    if !(is_there(&SECRET) && is_there(&SERVICE) && is_there(&STATEFUL_SET)) {
        // They may be gone because the Database is, and its watch is late: nothing is made for it
        // before a read has shown it.
        plan.asks.push(Ask::read(family.head().object));
        if !family.is_confirmed(&plan.asks[0].id) {
            return Ok((spec, plan));
        }
    }
    plan.changes.extend(family.finalizer(FINALIZER, spec.keep_data));
    if is_there(&SECRET) {
        plan.changes.extend(children::secret(family, &spec));
    } else {
        let ask = Ask::random("password", RANDOM_BYTES);
        let drawn = family.drawn(&ask.id);
        plan.asks.push(ask);
        let Some(drawn) = drawn else { return Ok((spec, plan)) };
        plan.changes.push(children::new_secret(family, &spec, drawn));
    }
    plan.changes.extend(children::service(family));
    plan.changes.extend(children::stateful_set(family, &spec));
    plan.changes.extend(children::claim(family, &spec));
    Ok((spec, plan))
}

/// A Database that goes takes everything along, by owner references, unless data are to be kept:
/// then Secret and claim are let go first, and the finalizer after them.
fn let_go(family: &Family) -> Decision<Value> {
    let is_kept = family.head.spec["keepData"] == true;
    let kept = [SECRET, CLAIM].into_iter().filter(|_| is_kept);
    let changes = kept.filter_map(|kind| {
        family.repair(&kind, &children::name_of(family, &kind), &json!({}), false)
    });
    let changes = changes.chain(family.finalizer(FINALIZER, false)).collect();
    Decision { changes, ..Decision::default() }
}

/// The plan with its report. What failed is waited for, with everything after it.
fn carry_out(family: &Family, (spec, plan): Plan, now: Timestamp) -> Decision<Value> {
    let Decision { mut changes, asks, .. } = plan;
    let is_pod = |change: &Change| change.target.kind == STATEFUL_SET;
    let (standing, wake_at) = match family.first_failure(&changes) {
        None if changes.iter().any(is_pod) => (DatabaseState::Changing(spec), None),
        None => (DatabaseState::Written(spec), None),
        Some((at, failure)) => {
            let text = format!("{}: {}", changes[at].id.0, failure.message);
            let is_waiting = now < failure.retry_at;
            changes.truncate(if is_waiting { at } else { changes.len() });
            let standing = DatabaseState::Waiting("WriteFailed", "TriedAgain", text);
            (standing, is_waiting.then_some(failure.retry_at))
        }
    };
    let mut decision = report(family, &standing, now);
    let told = changes.iter().filter(|change| change.target.kind != DATABASE).map(|change| {
        let verb = if matches!(change.op, Op::Create(_)) { "Created" } else { "Updated" };
        let (text, after) = (change.target.to_string(), After::Change(change.id.clone()));
        family.event(EventKind::Normal, verb, text, after)
    });
    decision.events.splice(0..0, told);
    Decision { changes, asks, wake_at, ..decision }
}

/// The status, and a word about it where the phase is another one.
fn report(family: &Family, standing: &DatabaseState, now: Timestamp) -> Decision<Value> {
    let status = status(family, standing, now);
    let last = status["conditions"].as_array().and_then(|list| list.last());
    let message = last.and_then(|last| last["message"].as_str()).unwrap_or_default().to_owned();
    let is_trouble = !matches!(standing, DatabaseState::Changing(_) | DatabaseState::Written(_));
    let is_news = status["phase"] != family.head.status["phase"];
    let kind = if is_trouble { EventKind::Warning } else { EventKind::Normal };
    let phase = status["phase"].as_str().unwrap_or_default();
    let told = is_news.then(|| family.event(kind, phase, message.clone(), After::Status));
    let passes = matches!(standing, DatabaseState::Waiting(..));
    let why = Vec::from_iter(is_trouble.then(|| family.held(message, passes)));
    Decision { status: Some(status), events: Vec::from_iter(told), why, ..Decision::default() }
}

/// What the user is told: is the spec accepted, does the database serve, and what is in the way?
/// The last condition is the one worth reading.
fn status(family: &Family, standing: &DatabaseState, now: Timestamp) -> Value {
    let (serving, text) = serving(family, standing);
    let ready = ("Ready", serving == "Ready", serving, text.to_owned());
    let accepted = ("Accepted", true, "Valid", "the spec is carried out".to_owned());
    let (phase, told) = match standing {
        DatabaseState::Changing(_) | DatabaseState::Written(_) => (serving, vec![accepted, ready]),
        DatabaseState::Refused(Refusal { reason, message, .. }) => {
            ("Refused", vec![ready, ("Accepted", false, *reason, message.clone())])
        }
        DatabaseState::CredentialsLost => {
            let lost = ("CredentialsLost", true, "SecretMissing", how_to_restore(family));
            ("CredentialsLost", vec![accepted, ready, lost])
        }
        DatabaseState::Waiting(what, reason, text) => {
            ("Waiting", vec![accepted, ready, (*what, true, *reason, text.clone())])
        }
    };
    let told = family.conditions(told, now);
    json!({ "phase": phase, "observedGeneration": family.head.meta.generation, "conditions": told })
}

/// What the StatefulSet says, in a word and a sentence.
fn serving(family: &Family, standing: &DatabaseState) -> (&'static str, &'static str) {
    let Some(set) = child(family, &STATEFUL_SET) else {
        return ("Starting", "there is no StatefulSet yet");
    };
    let count = |field: &str| set.status[field].as_u64().unwrap_or(0);
    let is_observed = set.status["observedGeneration"] == set.meta.generation;
    let is_current = is_observed && !matches!(standing, DatabaseState::Changing(_));
    let wanted = match standing {
        DatabaseState::Changing(spec) | DatabaseState::Written(spec) => u64::from(spec.replicas),
        _ => set.spec["replicas"].as_u64().unwrap_or(0),
    };
    match (wanted, is_current) {
        (0, true) if count("replicas") == 0 => ("Stopped", "stopped, as replicas is 0"),
        (0, _) => ("Stopping", "the pod is stopping"),
        (_, true) if count("readyReplicas") > 0 && count("updatedReplicas") > 0 => {
            ("Ready", "PostgreSQL serves")
        }
        (_, _) => ("Starting", "the pod is not ready yet"),
    }
}

fn how_to_restore(family: &Family) -> String {
    let [secret, set, claim] = [SECRET, STATEFUL_SET, CLAIM].map(|kind| place(family, &kind));
    format!(
        "{secret} is missing, but data that it opens are there; the database is left alone. \
         Restore the Secret from a backup, with its keys and with label {LABEL}={}; or, to give \
         the data up, delete {set} and {claim}",
        family.head.meta.name
    )
}
