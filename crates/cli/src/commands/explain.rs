//! `explain`: why is a rollout where it is? Decides on the live World, or on one from files, and
//! says what came of it.

mod account;
mod gather;
mod measured;

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use gradus_controller::engines::{Entry, GRADUS};
use gradus_controller::judged::Judged;
use gradus_engine::diagnose::{Evidence, causes};
use gradus_engine::kinds;
use gradus_engine::world::World;
use serde_json::Value;

use crate::connection::Connection;
use crate::output;
use crate::source::{Source, SourceArguments};
use account::{About, Account, BesideWorld};
use gather::Gathered;

/// The exit code that says: this version decides otherwise than the one that saved the World.
const DIFFERENT: u8 = 2;

/// Say why a rollout is where it is, and what would move it
///
/// Decides as the controller would, on the cluster as it is now, on a folder of exported YAML, or
/// on a World that the controller's health port shows at /debug/world/rollout/NAMESPACE/NAME. Analysis
/// runs and experiments are explained alike: `explain analysisrun NAME`, `explain experiment NAME`. With a
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
    /// The engine of the kind, which goes before the name, and the name; a rollout's may stand alone.
    fn object(&self) -> anyhow::Result<(&'static Entry, &str)> {
        let what: Vec<&str> = self.what.iter().map(String::as_str).collect();
        let main = &GRADUS.list[0];
        match what[..] {
            [kind, name] => Ok((engine(kind)?, name)),
            // `rollout/NAME`, as kubectl takes it.
            [name] => match name.split_once('/') {
                Some((kind, name)) => Ok((engine(kind)?, name)),
                None => Ok((main, name)),
            },
            [] if self.source.is_world() => Ok((main, "")),
            _ => bail!("expected the name of a rollout"),
        }
    }
}

/// The engine that decides about a kind.
fn engine(kind: &str) -> anyhow::Result<&'static Entry> {
    let whole = match kind {
        "ro" => "rollout",
        "ar" => "analysisrun",
        "exp" => "experiment",
        whole => whole,
    };
    GRADUS.of(whole).with_context(|| {
        let names = GRADUS.list.iter().map(|entry| entry.kind.name.to_lowercase());
        let names = names.collect::<Vec<_>>().join(", ");
        format!("{kind} cannot be explained: expected one of {names}")
    })
}

/// Decides and prints what came of it.
pub async fn run(arguments: &Arguments, connection: &Connection) -> anyhow::Result<ExitCode> {
    let (entry, name) = arguments.object()?;
    match arguments.source.open(connection).await? {
        Source::World(saved) => {
            let judged = engine(&saved.kind)?
                .judge(&saved.world, saved.now)
                .with_context(|| format!("expected the World of a {}", saved.kind))?;
            let mut account = match rollout(&saved.world) {
                Some(world) => account::of(&world, saved.now, &judged, &BesideWorld::default()),
                None => {
                    account::of_object(&Value::Null, saved.now, &judged, &BesideWorld::default())
                }
            };
            account.add(About::Comparison, compared(saved.decision.as_ref(), &judged));
            print(&account, arguments.output)?;
            let is_equal = saved.decision.is_none_or(|before| before == judged.decision);
            Ok(if is_equal { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
        }
        source => {
            let now = source.now();
            let gathered = gather::world(&source, entry, name, now).await?;
            let judged = entry.judge(&gathered.world, now)?;
            let world = rollout(&gathered.world).filter(|_| entry.kind == kinds::ROLLOUT);
            let mut account = if let Some(world) = &world {
                let Gathered { pods, events, budgets, .. } = &gathered;
                let causes = causes(world, Evidence { pods, events, budgets });
                let measured = measured::of_rollout(&source, world).await;
                account::of(world, now, &judged, &BesideWorld { causes, measured })
            } else {
                let (object, _) = source.read(&entry.kind, name).await?;
                let measured = measured::of_object(&source, &entry.kind, &object).await;
                let beside = BesideWorld { measured, ..BesideWorld::default() };
                account::of_object(&object["status"], now, &judged, &beside)
            };
            for question in &gathered.unanswered {
                let text = format!("it asks, and is not answered here: {question}");
                account.add(About::Question, text);
            }
            let is_idle = judged.changes.is_empty() && judged.status.is_none();
            let is_unseen = world.is_some_and(|world| !is_observed(&world));
            if matches!(source, Source::Live(_)) && !is_idle && is_unseen {
                let text = "if this does not happen within seconds: is the controller running?";
                account.add(About::Controller, text.to_owned());
            }
            print(&account, arguments.output)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The World of a Rollout, if it is one.
fn rollout(world: &Value) -> Option<World> {
    serde_json::from_value(world.clone()).ok()
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

fn compared(before: Option<&Value>, judged: &Judged) -> String {
    match before {
        None => "there is no saved decision to compare with".to_owned(),
        Some(before) if *before == judged.decision => "the saved decision is the same".to_owned(),
        Some(before) => {
            format!("the saved decision differs in {}", differing(before, &judged.decision))
        }
    }
}

/// The fields of a decision that are not as they were saved.
fn differing(before: &Value, decision: &Value) -> String {
    let fields = decision.as_object().into_iter().flatten();
    let names = fields.filter(|(name, value)| before.get(name) != Some(value));
    names.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}
