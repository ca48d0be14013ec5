//! The table of commands; help comes from it.

mod controller;
mod demo;
mod explain;
mod lint;
mod simulate;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

/// The name under which kubectl calls the binary as `kubectl argo rollouts`.
pub const PLUGIN: &str = "kubectl-argo-rollouts";

/// Progressive delivery for Kubernetes, with the API of Argo Rollouts
#[derive(Debug, Parser)]
#[command(name = "gradus", version, propagate_version = true, arg_required_else_help = true)]
struct Gradus {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Controller(controller::Arguments),
    Demo(demo::Arguments),
    Explain(explain::Arguments),
    Lint(lint::Arguments),
    Simulate(simulate::Arguments),
    Version(version::Arguments),
}

/// Looks after rollouts
#[derive(Debug, Parser)]
#[command(name = "kubectl-argo-rollouts", bin_name = "kubectl argo rollouts", version)]
#[command(arg_required_else_help = true)]
struct Plugin {
    #[command(subcommand)]
    command: PluginCommand,
}

/// What exists so far of the plugin's commands.
#[derive(Debug, Subcommand)]
enum PluginCommand {
    Explain(explain::Arguments),
    Lint(lint::Arguments),
    Simulate(simulate::Arguments),
    Version(version::Arguments),
}

/// Runs the command that the arguments name.
pub fn run(arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let parsed = Gradus::try_parse_from(&arguments);
    match parsed.map_err(|error| in_other_words(error, &arguments)) {
        Ok(Gradus { command: Command::Controller(arguments) }) => controller::run(arguments),
        Ok(Gradus { command: Command::Demo(arguments) }) => demo::run(&arguments),
        Ok(Gradus { command: Command::Explain(arguments) }) => explain::run(&arguments),
        Ok(Gradus { command: Command::Lint(arguments) }) => lint::run(&arguments),
        Ok(Gradus { command: Command::Simulate(arguments) }) => simulate::run(&arguments),
        Ok(Gradus { command: Command::Version(arguments) }) => version::run(&arguments),
        Err(refused) => refused.say(),
    }
}

/// Runs a command of the kubectl plugin.
pub fn run_plugin(arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    match Plugin::try_parse_from(&arguments) {
        Ok(Plugin { command: PluginCommand::Explain(arguments) }) => explain::run(&arguments),
        Ok(Plugin { command: PluginCommand::Lint(arguments) }) => lint::run(&arguments),
        Ok(Plugin { command: PluginCommand::Simulate(arguments) }) => simulate::run(&arguments),
        Ok(Plugin { command: PluginCommand::Version(arguments) }) => version::run(&arguments),
        Err(error) => Refused::AsClapSays(error).say(),
    }
}

/// Arguments that are no command, or ask for help.
enum Refused {
    AsClapSays(clap::Error),
    /// A flag that Argo Rollouts has and this version has not.
    NotYet(&'static str),
}

fn in_other_words(error: clap::Error, arguments: &[OsString]) -> Refused {
    let is_controller = arguments.get(1).is_some_and(|name| name == "controller");
    if error.kind() != ErrorKind::UnknownArgument || !is_controller {
        return Refused::AsClapSays(error);
    }
    let given = arguments.iter().filter_map(|argument| argument.to_str());
    match given.into_iter().find_map(controller::missing_flag) {
        Some(flag) => Refused::NotYet(flag),
        None => Refused::AsClapSays(error),
    }
}

impl Refused {
    fn say(self) -> anyhow::Result<ExitCode> {
        match self {
            Refused::AsClapSays(error) => {
                error.print()?;
                Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)))
            }
            Refused::NotYet(flag) => {
                eprintln!(
                    "error: {flag} is a flag of Argo Rollouts that this version of Gradus does \
                     not have; leave it out"
                );
                Ok(ExitCode::from(2))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_tables_are_well_formed() {
        Gradus::command().debug_assert();
        Plugin::command().debug_assert();
    }
}
