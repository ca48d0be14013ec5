//! `explain`: why is a rollout where it is? Decides on the live World, or on one from files, and
//! says what came of it.

mod account;
mod gather;

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum};
use gradus_api::rollout::RolloutStatus;
use gradus_engine::Engine;
use gradus_engine::decision::Decision;
use gradus_engine::diagnose::{Evidence, causes};
use gradus_engine::rollout::{Memo, Rollouts};
use gradus_engine::world::World;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::output;
use crate::source::{Source, SourceArguments};
use account::{About, Account};

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
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    source: SourceArguments,
}

/// How an account is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Text,
    /// One object, for tools.
    Json,
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
            let mut account = account::of(&saved.world, saved.now, &allowed, &[]);
            account.add(About::Comparison, compared(saved.decision.as_ref(), &decision));
            print(&account, arguments.output)?;
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
            let causes = causes(&gathered.world, evidence);
            let mut account = account::of(&gathered.world, now, &decision, &causes);
            for question in &gathered.unanswered {
                let text = format!("it asks, and is not answered here: {question}");
                account.add(About::Question, text);
            }
            let is_idle = decision.changes.is_empty()
                && account::difference(&gathered.world, &decision).is_none();
            let is_live = matches!(source, Source::Live(_));
            if is_live && !is_idle && !is_observed(&gathered.world) {
                let text = "if this does not happen within seconds: is the controller running?";
                account.add(About::Controller, text.to_owned());
            }
            print(&account, arguments.output)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn print(account: &Account, output: Output) -> std::io::Result<()> {
    match output {
        Output::Text => output::print(&account.to_string()),
        Output::Json => output::print(&format!("{:#}\n", account.json())),
    }
}

/// Has a controller seen the rollout as it is now?
fn is_observed(world: &World) -> bool {
    let status = &world.rollout.status;
    status.observed_generation == world.rollout.generation.to_string()
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
