//! `explain`: why is a rollout where it is? Decides on the live World, or on one from files, and
//! says what came of it.

mod gather;

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use gradus_api::names::{condition, condition_status, reason};
use gradus_api::patch::Difference;
use gradus_api::rollout::RolloutStatus;
use gradus_api::rollout::status::Condition;
use gradus_api::values::Time;
use gradus_engine::decision::{Decision, Frees};
use gradus_engine::diagnose::{Cause, Evidence, causes};
use gradus_engine::explain::sentence;
use gradus_engine::rollout::{Memo, Rollouts};
use gradus_engine::world::World;
use gradus_engine::{Engine, view};
use gradus_simkube::age;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::output;
use crate::source::{Source, SourceArguments};

/// The exit code that says: this version decides otherwise than the one that saved the World.
const DIFFERENT: u8 = 2;

/// Say why a rollout is where it is, and what would move it
///
/// Decides as the controller would, on the cluster as it is now, on a folder of exported YAML, or
/// on a World that the controller's health port shows at /debug/world/rollout/NAMESPACE/NAME. With a
/// saved World the exit code is 0 if this version decides the same as the saved decision, 2 if not.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The rollout; a saved World needs none
    #[arg(value_name = "rollout NAME", num_args = 0..=2, required_unless_present = "world")]
    what: Vec<String>,
    #[command(flatten)]
    source: SourceArguments,
}

impl Arguments {
    /// The name: after the word `rollout`, or alone.
    fn name(&self) -> anyhow::Result<&str> {
        let what: Vec<&str> = self.what.iter().map(String::as_str).collect();
        match what[..] {
            ["rollout" | "rollouts" | "ro", name] => Ok(name),
            // `rollout/NAME`, as kubectl takes it.
            [name] => match name.split_once('/') {
                Some(("rollout" | "rollouts" | "ro", name)) => Ok(name),
                Some((kind, _)) => bail!("only rollouts can be explained, not {kind}"),
                None => Ok(name),
            },
            [] if self.source.is_world() => Ok(""),
            [kind, ..] => bail!("only rollouts can be explained, not {kind}"),
            [] => bail!("expected the name of a rollout"),
        }
    }
}

/// Decides and prints what came of it.
pub async fn run(arguments: &Arguments, connection: &Connection) -> anyhow::Result<ExitCode> {
    let name = arguments.name()?;
    match arguments.source.open(connection).await? {
        Source::World(saved) => {
            let decision = Rollouts::decide(&saved.world, saved.now);
            let allowed = allowed(&saved.world, &decision, saved.now);
            let mut said = account(&saved.world, saved.now, &allowed);
            line(&mut said, &compared(saved.decision.as_ref(), &decision));
            output::print(&said)?;
            let is_equal = saved.decision.is_none_or(|before| before == json!(decision));
            Ok(if is_equal { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
        }
        source => {
            let now = source.now();
            let gathered = gather::world(&source, name, now).await?;
            let decision = Rollouts::decide(&gathered.world, now);
            let decision = allowed(&gathered.world, &decision, now);
            let evidence = Evidence {
                pods: &gathered.pods,
                events: &gathered.events,
                budgets: &gathered.budgets,
            };
            let mut said = account(&gathered.world, now, &decision);
            for question in &gathered.unanswered {
                line(&mut said, &format!("it asks, and is not answered here: {question}"));
            }
            tell_causes(&mut said, &causes(&gathered.world, evidence));
            let is_idle =
                decision.changes.is_empty() && difference(&gathered.world, &decision).is_none();
            if matches!(source, Source::Live(_)) && !is_idle {
                line(
                    &mut said,
                    "if this does not happen within seconds: is the controller running?",
                );
            }
            output::print(&said)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What the controller would act on: a decision without what the interlock holds.
fn allowed(
    world: &World,
    decision: &Decision<RolloutStatus, Memo>,
    now: Timestamp,
) -> Decision<RolloutStatus, Memo> {
    let harm = Rollouts::check(world, decision, now);
    harm.map_or_else(|| decision.clone(), |harm| harm.cut)
}

fn line(said: &mut String, line: &str) {
    writeln!(said, "  {line}").expect("a String takes all text");
}

fn account(world: &World, now: Timestamp, decision: &Decision<RolloutStatus, Memo>) -> String {
    let rollout = &world.rollout;
    let moment = Time::new(now);
    let mut said = format!("{} at {moment}\n", rollout.reference());
    let (phase, message) = view::phase(rollout.generation, &rollout.spec.fields, &rollout.status);
    let because = if message.is_empty() { String::new() } else { format!(": {message}") };
    line(&mut said, &format!("it is {phase}{because}"));
    for known in rollout.status.conditions.iter().filter(|known| is_trouble(known)) {
        let since = age::since(known.last_transition_time.timestamp(), now);
        let Condition { r#type, reason, message, .. } = known;
        line(&mut said, &format!("condition {type} says {reason}: {message} (since {since})"));
    }
    if decision.why.is_empty() {
        line(&mut said, "nothing holds it");
    }
    for why in &decision.why {
        let since = why.since.map(|since| format!(" (since {}, {since})", age::since(since, now)));
        line(&mut said, &format!("{}{}", sentence(why), since.unwrap_or_default()));
        if let Frees::Command(command) = &why.frees {
            let (name, namespace) = (&rollout.name, &rollout.namespace);
            line(&mut said, &format!("  → kubectl argo rollouts {command} {name} -n {namespace}"));
        }
    }
    for change in &decision.changes {
        line(&mut said, &format!("it would {}", change.id.0));
    }
    if let Some(Value::Object(patch)) = difference(world, decision) {
        let fields: Vec<&str> = patch.keys().map(String::as_str).collect();
        line(&mut said, &format!("it would change {} of its status", fields.join(", ")));
    }
    let next = match decision.wake_at {
        Some(moment) => format!("it looks again at {moment}"),
        None => "it looks again when something changes".to_owned(),
    };
    line(&mut said, &next);
    said
}

/// Does a condition tell of something that the controller ran into? Pauses, aborts and refused
/// specs are guards, and told as such.
fn is_trouble(known: &Condition) -> bool {
    let is_guard =
        [reason::ROLLOUT_PAUSED, reason::ROLLOUT_ABORTED].contains(&known.reason.as_str());
    match known.r#type.as_str() {
        condition::HELD | condition::REPLICA_FAILURE => known.status == condition_status::TRUE,
        condition::PROGRESSING => known.status == condition_status::FALSE && !is_guard,
        _ => false,
    }
}

/// How the status would change.
fn difference(world: &World, decision: &Decision<RolloutStatus, Memo>) -> Option<Value> {
    Rollouts::stored_status(world).difference(decision.status.as_ref()?)
}

fn tell_causes(said: &mut String, causes: &[Cause]) {
    for cause in causes {
        line(said, &cause.what);
        line(said, &format!("  → {}", cause.advice));
    }
}

fn compared(before: Option<&Value>, decision: &Decision<RolloutStatus, Memo>) -> String {
    match before {
        None => "there is no saved decision to compare with".to_owned(),
        Some(before) if *before == json!(decision) => "the saved decision is the same".to_owned(),
        Some(before) => format!("the saved decision differs in {}", differing(before, decision)),
    }
}

/// The fields of a decision that are not as they were saved.
fn differing(before: &Value, decision: &Decision<RolloutStatus, Memo>) -> String {
    let now = json!(decision);
    let fields = now.as_object().into_iter().flatten();
    let names = fields.filter(|(name, value)| before.get(name) != Some(value));
    names.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}
