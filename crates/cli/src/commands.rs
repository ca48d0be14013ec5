//! The table of commands; help and completion come from it.

mod abort;
mod completion;
mod controller;
mod create;
mod demo;
mod examples;
mod explain;
mod get;
mod later;
mod lint;
mod list;
mod pause;
mod plugin;
mod promote;
mod refused;
mod restart;
mod retry;
mod set;
mod simulate;
mod status;
mod terminate;
mod truths;
mod undo;
mod version;
mod wait;
mod wish;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::{Resettable, StyledStr};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::connection::Connection;

/// The name under which kubectl calls the binary as `kubectl argo rollouts`.
pub const PLUGIN: &str = "kubectl-argo-rollouts";

/// The name it is called by, which decides how it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// `gradus`.
    Gradus,
    /// kubectl, or somebody who calls the plugin by its own name.
    Kubectl,
}

impl Caller {
    /// What stands before an error.
    pub fn error_prefix(self) -> &'static str {
        match self {
            Caller::Gradus => "error:",
            Caller::Kubectl => "Error:",
        }
    }
}

/// Progressive delivery for Kubernetes, with the API of Argo Rollouts
#[derive(Debug, Parser)]
#[command(name = "gradus", version, propagate_version = true, arg_required_else_help = true)]
struct Gradus {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Controller(Box<controller::Arguments>),
    Demo(demo::Arguments),
    #[command(name = "plugin")]
    CheckPlugin(plugin::Arguments),
    #[command(flatten)]
    Plugin(PluginCommand),
}

/// Looks after rollouts
#[derive(Debug, Parser)]
#[command(name = "kubectl-argo-rollouts", bin_name = "kubectl argo rollouts")]
#[command(arg_required_else_help = true)]
struct Plugin {
    #[command(subcommand)]
    command: PluginCommand,
}

/// The commands of the plugin; `gradus` has them too.
#[derive(Debug, Subcommand)]
enum PluginCommand {
    Abort(abort::Arguments),
    Completion(completion::Arguments),
    Create(create::Arguments),
    #[command(hide = true)]
    Dashboard(later::Arguments),
    Explain(explain::Arguments),
    Get(get::Arguments),
    Lint(lint::Arguments),
    List(list::Arguments),
    #[command(hide = true)]
    Notifications(later::Arguments),
    Pause(pause::Arguments),
    Promote(promote::Arguments),
    Restart(restart::Arguments),
    Retry(retry::Arguments),
    Set(set::Arguments),
    Simulate(simulate::Arguments),
    Status(status::Arguments),
    Terminate(terminate::Arguments),
    Undo(undo::Arguments),
    Version(version::Arguments),
    Wait(wait::Arguments),
}

/// Runs the command that the arguments name.
pub fn run(arguments: &[OsString], caller: Caller) -> anyhow::Result<ExitCode> {
    if let Some(words) = completion::asked(arguments) {
        return completion::answer(table(caller), words);
    }
    let arguments = &truths::spelled_out(&table(caller), arguments);
    let matches = match table(caller).try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return refused::say(error, arguments, caller),
    };
    let parsed = match caller {
        Caller::Gradus => Gradus::from_arg_matches(&matches).map(|parsed| parsed.command),
        Caller::Kubectl => {
            Plugin::from_arg_matches(&matches).map(|parsed| Command::Plugin(parsed.command))
        }
    };
    match parsed {
        Ok(Command::Controller(arguments)) => controller::run(*arguments),
        Ok(Command::Demo(arguments)) => demo::run(&arguments),
        Ok(Command::CheckPlugin(arguments)) => plugin::run(&arguments),
        Ok(Command::Plugin(command)) => command.run(&connection(&matches)?, caller),
        Err(error) => refused::say(error, arguments, caller),
    }
}

/// Everything that can be written on the command line.
fn table(caller: Caller) -> clap::Command {
    let table = match caller {
        Caller::Kubectl => with_connection(Plugin::command()),
        // Its own commands have connection flags of their own.
        Caller::Gradus => {
            let plugin = PluginCommand::augment_subcommands(clap::Command::new(PLUGIN));
            let names: Vec<String> =
                plugin.get_subcommands().map(|command| command.get_name().to_owned()).collect();
            names
                .iter()
                .fold(Gradus::command(), |table, name| table.mut_subcommand(name, with_connection))
        }
    };
    let table = LOCAL.iter().fold(table, |table, name| table.mut_subcommand(name, without_cluster));
    as_kubectl_reads(examples::add(table, caller))
}

/// Commands that speak to no cluster.
const LOCAL: [&str; 4] = ["completion", "lint", "simulate", "version"];

/// A command that takes the connection flags, as scripts give them to every command, and does not
/// offer them.
fn without_cluster(command: clap::Command) -> clap::Command {
    let connection = Connection::augment_args(clap::Command::new("connection"));
    let flags = connection.get_arguments().cloned();
    flags.fold(command, |command, flag| {
        let is_there = command.get_arguments().any(|known| known.get_id() == flag.get_id());
        match is_there {
            true => command.mut_arg(flag.get_id().clone(), |known| known.hide(true)),
            false => command.arg(flag.hide(true)),
        }
    })
}

/// A command that takes the connection flags too, and keeps its own description.
fn with_connection(command: clap::Command) -> clap::Command {
    let kept = |text: Option<StyledStr>| text.map_or(Resettable::Reset, Resettable::Value);
    let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
    Connection::augment_args(command).about(kept(about)).long_about(kept(long))
}

/// Of a flag that is given twice the last one counts, as scripts with a default of their own expect.
fn as_kubectl_reads(command: clap::Command) -> clap::Command {
    command.args_override_self(true).mut_subcommands(as_kubectl_reads)
}

/// The connection flags, wherever they stood.
fn connection(matches: &ArgMatches) -> Result<Connection, clap::Error> {
    let mut leaf = matches;
    while let Some((_, below)) = leaf.subcommand() {
        leaf = below;
    }
    Connection::from_arg_matches(leaf)
}

impl PluginCommand {
    fn run(self, connection: &Connection, caller: Caller) -> anyhow::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.carry_out(connection, caller))
    }

    async fn carry_out(self, connection: &Connection, caller: Caller) -> anyhow::Result<ExitCode> {
        use PluginCommand as C;
        let cluster = async || connection.open().await;
        match self {
            C::Abort(arguments) => abort::run(&arguments, &cluster().await?).await?,
            C::Completion(arguments) => completion::run(&arguments, caller)?,
            C::Create(arguments) => create::run(&arguments, &cluster().await?).await?,
            C::Dashboard(_) => later::refuse("dashboard")?,
            C::Explain(arguments) => return explain::run(&arguments, connection).await,
            C::Get(arguments) => get::run(&arguments, connection).await?,
            C::Lint(arguments) => return lint::run(&arguments),
            C::List(arguments) => list::run(&arguments, &cluster().await?).await?,
            C::Notifications(_) => later::refuse("notifications")?,
            C::Pause(arguments) => pause::run(&arguments, &cluster().await?).await?,
            C::Promote(arguments) => promote::run(&arguments, &cluster().await?).await?,
            C::Restart(arguments) => restart::run(&arguments, &cluster().await?).await?,
            C::Retry(arguments) => retry::run(&arguments, &cluster().await?).await?,
            C::Set(arguments) => set::run(&arguments, &cluster().await?).await?,
            C::Simulate(arguments) => return simulate::run(&arguments),
            C::Status(arguments) => status::run(&arguments, &cluster().await?).await?,
            C::Terminate(arguments) => terminate::run(&arguments, &cluster().await?).await?,
            C::Undo(arguments) => undo::run(&arguments, &cluster().await?).await?,
            C::Version(arguments) => version::run(&arguments, caller)?,
            C::Wait(arguments) => wait::run(&arguments, &cluster().await?).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_well_formed() {
        table(Caller::Gradus).debug_assert();
        table(Caller::Kubectl).debug_assert();
    }
}
