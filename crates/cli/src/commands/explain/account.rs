//! What is said about a rollout, or another object, each thing once: how it stands, what holds it, why, what can be done,
//! what would be written, and when it is looked at again.

use std::fmt;

use gradus_api::names::{condition, condition_status, kind, reason};
use gradus_api::rollout::RolloutStatus;
use gradus_api::rollout::status::Condition;
use gradus_api::values::Time;
use gradus_controller::judged::Judged;
use gradus_engine::decision::{Guard, Why};
use gradus_engine::diagnose::Cause;
use gradus_engine::remedy::{Remedy, remedy, ways_back};
use gradus_engine::world::World;
use gradus_engine::{explain, kinds, view};
use gradus_simkube::age;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Shorter texts can be the same by chance.
const WORTH_COMPARING: usize = 12;

/// Everything that is told.
pub struct Account {
    kind: String,
    name: String,
    namespace: String,
    now: Timestamp,
    phase: String,
    because: String,
    items: Vec<Item>,
}

/// One thing that is told.
struct Item {
    about: About,
    text: String,
    since: Option<Timestamp>,
    advice: Option<String>,
    commands: Vec<String>,
}

/// What something that is told is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A condition of its status.
    Condition,
    /// What holds it.
    Guard,
    /// Why its pods do not come up.
    Cause,
    /// What an analysis has measured.
    Measured,
    /// What would be written.
    Change,
    /// When it is looked at again.
    Next,
    /// What cannot be answered from here.
    Question,
    /// Whether a controller is at work.
    Controller,
    /// Whether another version decides the same.
    Comparison,
}

impl About {
    fn name(self) -> &'static str {
        match self {
            About::Condition => "condition",
            About::Guard => "guard",
            About::Cause => "cause",
            About::Measured => "measured",
            About::Change => "change",
            About::Next => "next",
            About::Question => "question",
            About::Controller => "controller",
            About::Comparison => "comparison",
        }
    }
}

/// What is known besides the World of an object.
#[derive(Debug, Default)]
pub struct BesideWorld {
    /// Why its pods do not come up.
    pub causes: Vec<Cause>,
    /// What analyses have measured.
    pub measured: Vec<String>,
}

/// The account of a rollout, of what would be decided about it now, and of what its pods say.
pub fn of(world: &World, now: Timestamp, judged: &Judged, beside: &BesideWorld) -> Account {
    let rollout = &world.rollout;
    let (phase, because) = view::phase(rollout.generation, &rollout.spec.fields, &rollout.status);
    let mut account = Account {
        kind: kind::ROLLOUT.to_owned(),
        name: rollout.name.to_string(),
        namespace: rollout.namespace.to_string(),
        now,
        phase: phase.to_string(),
        because: because.to_string(),
        items: Vec::new(),
    };
    let is_refused = is_create_refused(&rollout.status);
    let held = judged.why.iter().filter(|why| !(is_refused && is_of_no_set(world, why)));
    let guards: Vec<Item> = held.map(|why| of_guard(world, why)).collect();
    let causes = of_causes(world, &beside.causes);
    let told: Vec<&str> = guards.iter().chain(&causes).map(|item| item.text.as_str()).collect();
    let conditions: Vec<Item> = of_conditions(&rollout.status, &told);
    if guards.is_empty() && causes.is_empty() {
        account.add(About::Guard, "nothing holds it".to_owned());
    }
    account.items.splice(0..0, conditions);
    account.items.extend(guards);
    account.items.extend(causes);
    account.shorten();
    account.add_measured(&beside.measured);
    let changes = if is_refused { &[] } else { judged.changes.as_slice() };
    account.add_outlook(changes, judged);
    account
}

/// The account of an object of any other kind, of its status and of what would be decided about it now.
pub fn of_object(status: &Value, now: Timestamp, judged: &Judged, beside: &BesideWorld) -> Account {
    let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    let object = &judged.object;
    let mut account = Account {
        kind: object.kind.name.to_string(),
        name: object.name.to_string(),
        namespace: object.namespace.to_string(),
        now,
        phase: text("phase"),
        because: text("message"),
        items: Vec::new(),
    };
    if judged.why.is_empty() {
        account.add(About::Guard, "nothing holds it".to_owned());
    }
    account.items.extend(judged.why.iter().map(|why| Item {
        about: About::Guard,
        text: explain::sentence(why),
        since: why.since,
        advice: None,
        commands: Vec::new(),
    }));
    account.shorten();
    account.add_measured(&beside.measured);
    account.add_outlook(&judged.changes, judged);
    account
}

/// Has the server refused the ReplicaSet of this revision?
fn is_create_refused(status: &RolloutStatus) -> bool {
    status.conditions.iter().any(|condition| condition.reason == reason::REPLICA_SET_CREATE_ERROR)
}

/// Is it about a ReplicaSet that is not there?
fn is_of_no_set(world: &World, why: &Why) -> bool {
    let sets = world.replica_sets.present();
    let is_there = sets.is_some_and(|sets| sets.iter().any(|set| set.name == why.object.name));
    let is_wait = matches!(why.guard, Guard::NotAvailable { .. } | Guard::NotScaled { .. });
    why.object.kind == kinds::REPLICA_SET && is_wait && !is_there
}

fn of_guard(world: &World, why: &Why) -> Item {
    let Remedy { sentence, commands } = remedy(world, why);
    Item { about: About::Guard, text: sentence, since: why.since, advice: None, commands }
}

/// The causes; behind the last one about pods, how to go back.
fn of_causes(world: &World, causes: &[Cause]) -> Vec<Item> {
    let mut items: Vec<Item> = causes
        .iter()
        .map(|cause| Item {
            about: About::Cause,
            text: cause.what.clone(),
            since: cause.since.as_ref().and_then(|since| since.parse().ok()),
            advice: Some(cause.advice.clone()),
            commands: cause.commands.clone(),
        })
        .collect();
    if let Some(last) = items.last_mut() {
        last.commands.extend(ways_back(world));
    }
    items
}

/// Conditions that tell of something the controller ran into; without their words where `told` has
/// them. Pauses, aborts and refused specs are guards, and told as such.
fn of_conditions(status: &RolloutStatus, told: &[&str]) -> Vec<Item> {
    let trouble = status.conditions.iter().filter(|known| is_trouble(known));
    let each = trouble.map(|known| {
        let Condition { r#type, reason, message, .. } = known;
        let is_told = told.iter().any(|told| told.contains(message.as_str()));
        let said = if is_told { String::new() } else { format!(": {message}") };
        Item {
            about: About::Condition,
            text: format!("condition {type} says {reason}{said}"),
            since: Some(known.last_transition_time.timestamp()),
            advice: None,
            commands: Vec::new(),
        }
    });
    each.collect()
}

fn is_trouble(known: &Condition) -> bool {
    let is_guard =
        [reason::ROLLOUT_PAUSED, reason::ROLLOUT_ABORTED].contains(&known.reason.as_str());
    match known.r#type.as_str() {
        condition::HELD | condition::REPLICA_FAILURE => known.status == condition_status::TRUE,
        condition::PROGRESSING => known.status == condition_status::FALSE && !is_guard,
        _ => false,
    }
}

impl Account {
    /// Tells one more thing.
    pub fn add(&mut self, about: About, text: String) {
        self.items.push(Item { about, text, since: None, advice: None, commands: Vec::new() });
    }

    fn add_measured(&mut self, measured: &[String]) {
        measured.iter().for_each(|text| self.add(About::Measured, text.clone()));
    }

    /// Adds what would be written now, and when the object is looked at again.
    fn add_outlook(&mut self, changes: &[String], judged: &Judged) {
        for change in changes {
            self.add(About::Change, format!("it would {change}"));
        }
        if let Some(Value::Object(patch)) = &judged.status {
            let fields: Vec<&str> = patch.keys().map(String::as_str).collect();
            let text = format!("it would change {} of its status", fields.join(", "));
            self.add(About::Change, text);
        }
        let next = match judged.wake_at {
            Some(moment) => format!("it looks again at {moment}"),
            None => "it looks again when something changes".to_owned(),
        };
        self.add(About::Next, next);
    }

    /// What is told below is not told above, and no command stands twice.
    fn shorten(&mut self) {
        let detail = self.because.split_once(": ").map(|(_, detail)| detail.to_owned());
        let is_told = |text: &str| {
            text.len() >= WORTH_COMPARING && self.items.iter().any(|item| item.text.contains(text))
        };
        if is_told(&self.because) {
            self.because.clear();
        } else if detail.as_deref().is_some_and(is_told) {
            let reason = self.because.split_once(": ").map(|(reason, _)| reason.to_owned());
            self.because = reason.unwrap_or_default();
        }
        let mut known: Vec<String> = Vec::new();
        for item in &mut self.items {
            item.commands.retain(|command| !known.contains(command));
            known.extend(item.commands.iter().cloned());
        }
    }

    /// The same as one object.
    pub fn json(&self) -> Value {
        let items = self.items.iter().map(|item| {
            json!({
                "about": item.about.name(),
                "text": item.text,
                "since": item.since.map(|since| Time::new(since).to_string()),
                "advice": item.advice,
                "commands": item.commands,
            })
        });
        json!({
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "at": Time::new(self.now).to_string(),
            "phase": self.phase,
            "message": self.because,
            "items": items.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = Time::new(self.now);
        writeln!(f, "{} {}/{} at {moment}", self.kind, self.namespace, self.name)?;
        let because =
            if self.because.is_empty() { String::new() } else { format!(": {}", self.because) };
        if !self.phase.is_empty() {
            writeln!(f, "  it is {}{because}", self.phase)?;
        }
        for Item { about, text, since, advice, commands } in &self.items {
            let since = since.map(|since| {
                let age = age::since(since, self.now);
                match about {
                    About::Condition => format!(" (since {age})"),
                    _ => format!(" (since {age}, {since})"),
                }
            });
            writeln!(f, "  {text}{}", since.unwrap_or_default())?;
            for line in advice.iter().chain(commands) {
                writeln!(f, "    → {line}")?;
            }
        }
        Ok(())
    }
}
