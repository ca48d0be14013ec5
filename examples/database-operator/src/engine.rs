//! What should happen next to one Database? Read, compare, create, update, report.

use gradus_engine::ask::{Ask, Class};
use gradus_engine::decision::{
    After, Change, Decision, Event, EventKind, Frees, Guard, Kind, Op, Why,
};
use gradus_engine::{Engine, Head, StatusPlace};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::accept::{self, Refusal};
use crate::api::{
    CLAIM, Condition, DATABASE, FINALIZER, LABEL, SECRET, SERVICE, STATEFUL_SET, Spec, Status,
};
use crate::children;
use crate::world::World;

#[cfg(test)]
mod tests;

/// The length of a password before it is written as hex.
const RANDOM_BYTES: usize = 24;
/// How long to wait after an error that passes.
const TRY_AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// The engine of Databases.
#[derive(Debug)]
pub struct Databases;

impl Engine for Databases {
    type World = World;
    type Status = Status;
    type Memo = ();

    const KIND: Kind = DATABASE;
    const STATUS: StatusPlace = StatusPlace::Subresource;

    fn head(world: &World) -> Head {
        let database = &world.database;
        Head { object: database.object.clone(), uid: database.uid, version: database.version }
    }

    fn decide(world: &World, now: Timestamp) -> Decision<Status> {
        if world.database.is_deleting {
            return let_go(world);
        }
        match plan(world) {
            Ok(plan) => carry_out(world, plan, now),
            Err(standing) => report(world, &standing, now),
        }
    }

    fn stored_status(world: &World) -> &Status {
        &world.database.status
    }

    fn fingerprint(world: &World) -> u64 {
        let World { database, secret, service, stateful_set, claim, .. } = world;
        let children = [secret, service, stateful_set, claim];
        let versions = children.map(|child| child.as_ref().map_or(0, |child| child.version));
        let failures = world.recall.failed.values().map(|failure| u64::from(failure.times));
        let counts = [world.answers.len() as u64, world.unreadable.len() as u64];
        let numbers = [database.version].into_iter().chain(counts);
        let mix = |hash: u64, number: u64| (hash ^ number).wrapping_mul(0x0000_0100_0000_01b3);
        numbers.chain(versions).chain(failures).fold(0xcbf2_9ce4_8422_2325, mix)
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
enum Standing {
    /// Its spec is not carried out until somebody changes it.
    Refused(Refusal),
    /// Something cannot be read: what is not seen may be there all the same.
    Unreadable(String),
    /// There are data and no credentials.
    CredentialsLost,
    /// An object of its name belongs to somebody else.
    Occupied(Kind),
    /// A write failed; it is tried again.
    Failed(String),
    /// Something is being written.
    Changing(Spec),
    /// Everything is written.
    Written(Spec),
}

/// What is to be written, in order, and what must be known for it.
struct Plan {
    spec: Spec,
    changes: Vec<Change>,
    asks: Vec<Ask>,
}

/// What is missing or differs. Nothing is planned that the running database could suffer from.
fn plan(world: &World) -> Result<Plan, Standing> {
    let World { database, secret, service, stateful_set, claim, .. } = world;
    let spec = accept::spec(world).map_err(Standing::Refused)?;
    if let Some((kind, why)) = world.unreadable.first_key_value() {
        return Err(Standing::Unreadable(format!("{} cannot be read: {why}", kind.plural)));
    }
    for (kind, child) in [(SECRET, secret), (SERVICE, service), (STATEFUL_SET, stateful_set)] {
        let owners = child.as_ref().map_or(&[][..], |child| &child.owners);
        if !owners.is_empty() && !owners.contains(&database.uid) {
            return Err(Standing::Occupied(kind));
        }
    }
    // New credentials would not open the old data.
    if secret.is_none() && (stateful_set.is_some() || claim.is_some()) {
        return Err(Standing::CredentialsLost);
    }
    let mut changes: Vec<Change> = finalizer(world, spec.keep_data).into_iter().collect();
    let mut asks = Vec::new();
    if secret.is_none() || service.is_none() || stateful_set.is_none() {
        // They may be gone because the Database is, and its watch is late: nothing is made for it
        // before a read has shown it.
        let ask = Ask::read(database.object.clone());
        let is_confirmed = world.is_confirmed(&ask.id);
        asks.push(ask);
        if !is_confirmed {
            return Ok(Plan { spec, changes: Vec::new(), asks });
        }
    }
    match secret {
        Some(found) => changes.extend(children::secret(database, &spec, found)),
        None => {
            let ask = Ask::random("password", RANDOM_BYTES);
            let drawn = world.drawn(&ask.id);
            asks.push(ask);
            let Some(drawn) = drawn else { return Ok(Plan { spec, changes, asks }) };
            changes.push(children::new_secret(database, &spec, drawn));
        }
    }
    changes.extend(children::service(database, service.as_deref()));
    changes.extend(children::stateful_set(database, &spec, stateful_set.as_deref()));
    let claim = claim.as_deref();
    changes.extend(claim.and_then(|found| children::claim(database, &spec, found)));
    Ok(Plan { spec, changes, asks })
}

/// The finalizer is there exactly while data are to be kept.
fn finalizer(world: &World, is_wanted: bool) -> Option<Change> {
    let database = &world.database;
    if database.finalizers.iter().any(|name| name == FINALIZER) == is_wanted {
        return None;
    }
    let mut finalizers = database.finalizers.clone();
    finalizers.retain(|name| name != FINALIZER);
    finalizers.extend(is_wanted.then(|| FINALIZER.to_owned()));
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    Some(Change::patch(database.object.clone(), patch, database.version))
}

/// A Database that goes takes everything along, by owner references, unless data are to be kept:
/// then Secret and claim are let go first, and the finalizer after them.
fn let_go(world: &World) -> Decision<Status> {
    let World { database, secret, claim, .. } = world;
    let mut changes = Vec::new();
    if database.spec["keepData"] == true {
        for (kind, child) in [(SECRET, secret), (CLAIM, claim)] {
            let child = child.as_deref();
            changes.extend(child.and_then(|found| children::let_go(database, kind, found)));
        }
    }
    changes.extend(finalizer(world, false));
    Decision { changes, ..Decision::default() }
}

/// The plan as a Decision. What failed is waited for, with everything after it.
fn carry_out(world: &World, plan: Plan, now: Timestamp) -> Decision<Status> {
    let Plan { spec, mut changes, asks } = plan;
    let failed = |change: &Change| Some((change.id.clone(), world.recall.failed.get(&change.id)?));
    let first = changes.iter().enumerate().find_map(|(at, change)| Some((at, failed(change)?)));
    let (standing, wake_at) = match first {
        None if changes.is_empty() && asks.is_empty() => (Standing::Written(spec), None),
        None => (Standing::Changing(spec), None),
        Some((at, (id, failure))) => {
            let is_waiting = now < failure.retry_at;
            if is_waiting {
                changes.truncate(at);
            }
            let text = format!("{}: {}", id.0, failure.message);
            (Standing::Failed(text), is_waiting.then_some(failure.retry_at))
        }
    };
    let mut decision = report(world, &standing, now);
    let told = changes.iter().filter(|change| change.target != world.database.object);
    decision.events.splice(0..0, told.map(|change| told_of(world, change)));
    Decision { changes, asks, wake_at, ..decision }
}

fn told_of(world: &World, change: &Change) -> Event {
    let (reason, verb) = match change.op {
        Op::Create(_) => ("Created", "created"),
        Op::Merge(_) | Op::Delete => ("Updated", "updated"),
    };
    Event {
        about: world.database.object.clone(),
        kind: EventKind::Normal,
        reason: reason.into(),
        message: format!("{verb} {}", change.target),
        after: After::Change(change.id.clone()),
    }
}

/// The status, and a word about it where the phase is another one.
fn report(world: &World, standing: &Standing, now: Timestamp) -> Decision<Status> {
    let status = status(world, standing, now);
    let database = &world.database;
    let message = status.conditions.last().map_or("", |last| &last.message).to_owned();
    let trouble = match standing {
        Standing::Changing(_) | Standing::Written(_) => None,
        Standing::Refused(refusal) => Some((refusal.field, Frees::Edit)),
        Standing::CredentialsLost => Some(("status.conditions", Frees::Edit)),
        Standing::Unreadable(_) | Standing::Occupied(_) | Standing::Failed(_) => {
            Some(("status.conditions", Frees::Cluster))
        }
    };
    let events = (status.phase != database.status.phase).then(|| Event {
        about: database.object.clone(),
        kind: if trouble.is_some() { EventKind::Warning } else { EventKind::Normal },
        reason: status.phase.clone().into(),
        message: message.clone(),
        after: After::Status,
    });
    let why = trouble.map(|(field, frees)| Why {
        guard: Guard::InvalidSpec { message },
        object: database.object.clone(),
        field: field.into(),
        since: None,
        frees,
    });
    Decision {
        status: Some(status),
        events: events.into_iter().collect(),
        why: why.into_iter().collect(),
        ..Decision::default()
    }
}

/// What the user is told: is the spec accepted, does the database serve, and what is in the way?
/// The last condition is the one worth reading.
fn status(world: &World, standing: &Standing, now: Timestamp) -> Status {
    let (serving, text) = serving(world, standing);
    let is_ready = serving == "Ready";
    let ready = ("Ready", is_ready, serving, text.to_owned());
    let accepted = ("Accepted", true, "Valid", "the spec is carried out".to_owned());
    let (phase, told) = match standing {
        Standing::Changing(_) | Standing::Written(_) => (serving, vec![accepted, ready]),
        Standing::Refused(refusal) => {
            let refused = ("Accepted", false, refusal.reason, refusal.message.clone());
            ("Refused", vec![ready, refused])
        }
        Standing::Unreadable(text) => {
            ("Waiting", vec![accepted, ready, ("Unreadable", true, "NoAnswer", text.clone())])
        }
        Standing::CredentialsLost => {
            let lost = ("CredentialsLost", true, "SecretMissing", how_to_restore(world));
            ("CredentialsLost", vec![accepted, ready, lost])
        }
        Standing::Occupied(kind) => {
            let place = children::place(&world.database, kind.clone());
            let text = format!("{place} belongs to somebody else; waiting until it is gone");
            ("Waiting", vec![accepted, ready, ("Occupied", true, "NotOurs", text)])
        }
        Standing::Failed(text) => {
            let failed = ("WriteFailed", true, "TriedAgain", text.clone());
            ("Waiting", vec![accepted, ready, failed])
        }
    };
    let known = |name: &str| world.database.status.conditions.iter().find(|one| one.r#type == name);
    let condition = |(name, is_true, reason, message): (&str, bool, &str, String)| {
        let status = if is_true { "True" } else { "False" };
        let same = known(name).filter(|known| known.status == status);
        let (r#type, reason) = (name.to_owned(), reason.to_owned());
        let since = same.map_or(whole_seconds(now), |known| known.last_transition_time);
        Condition {
            r#type,
            status: status.to_owned(),
            reason,
            message,
            last_transition_time: since,
        }
    };
    Status {
        phase: phase.to_owned(),
        observed_generation: world.database.generation,
        conditions: told.into_iter().map(condition).collect(),
    }
}

/// What the StatefulSet says, in a word and a sentence.
fn serving(world: &World, standing: &Standing) -> (&'static str, &'static str) {
    let Some(set) = &world.stateful_set else {
        return ("Starting", "there is no StatefulSet yet");
    };
    let is_written = !matches!(standing, Standing::Changing(_));
    let count = |field: &str| set.status[field].as_u64().unwrap_or(0);
    let is_current = is_written && set.status["observedGeneration"] == set.generation;
    let wanted = match standing {
        Standing::Changing(spec) | Standing::Written(spec) => u64::from(spec.replicas),
        _ => set.content["spec"]["replicas"].as_u64().unwrap_or(0),
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

fn how_to_restore(world: &World) -> String {
    let database = &world.database;
    let [secret, set, claim] =
        [SECRET, STATEFUL_SET, CLAIM].map(|kind| children::place(database, kind));
    format!(
        "{secret} is missing, but data that it opens are there; the database is left alone. \
         Restore the Secret from a backup, with its keys and with label {LABEL}={}; or, to give \
         the data up, delete {set} and {claim}",
        database.object.name
    )
}

/// Times that are stored are cut to seconds, or a status would never equal itself.
fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).expect("a time of today")
}
