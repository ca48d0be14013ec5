//! What is said to arguments that are no command, or that ask for help?

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::completion::Place;
use super::{Caller, PLUGIN, table};
use crate::output;

/// Says it; the exit code tells what kind of answer it was.
pub fn say(error: clap::Error, arguments: &[OsString], caller: Caller) -> anyhow::Result<ExitCode> {
    match caller {
        Caller::Gradus => as_clap_says(&error),
        Caller::Kubectl => as_cobra_says(&error, arguments),
    }
}

fn as_clap_says(error: &clap::Error) -> anyhow::Result<ExitCode> {
    error.print()?;
    // 2 says of a simulated update that it was aborted, of a saved World that it decides otherwise.
    Ok(if error.exit_code() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The plugin answers as Argo Rollouts' does: exit code 1, and a wrong number of arguments is
/// answered with how the command is used.
fn as_cobra_says(error: &clap::Error, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let Used { path, usage, name, commands } = used(arguments);
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            error.print()?;
            return Ok(ExitCode::SUCCESS);
        }
        ErrorKind::InvalidSubcommand if path.is_empty() => {
            let command = text(error, ContextKind::InvalidSubcommand);
            let near = text(error, ContextKind::SuggestedSubcommand);
            output::warn(&format!("Error: unknown command \"{command}\" for \"{PLUGIN}\""));
            if !near.is_empty() {
                // The nearest comes first, as with cobra.
                let near = near.split(", ").collect::<Vec<_>>();
                let near = near.into_iter().rev().collect::<Vec<_>>().join("\n\t");
                output::warn(&format!("\nDid you mean this?\n\t{near}\n"));
            }
            output::warn(&format!("Run '{PLUGIN} --help' for usage."));
        }
        ErrorKind::UnknownArgument if text(error, ContextKind::InvalidArg).starts_with('-') => {
            let flag = text(error, ContextKind::InvalidArg);
            let near = text(error, ContextKind::SuggestedArg);
            output::warn(&format!("Error: unknown flag: {flag}"));
            if !near.is_empty() {
                output::warn(&format!("  did you mean {near}?"));
            }
            output::warn(&format!("See '{name} --help' for usage."));
        }
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::InvalidSubcommand
        | ErrorKind::UnknownArgument
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            if let Some(wrong) = arity(error, &name, &commands).filter(|_| !path.is_empty()) {
                output::warn(&format!("{wrong}\n"));
            }
            output::warn(usage.trim_end());
        }
        // Not exactly one `=` in what `set image` takes.
        ErrorKind::ValueValidation
            if text(error, ContextKind::InvalidArg).contains("CONTAINER") =>
        {
            output::warn(&format!("{}\n", in_one_line(error)));
            output::warn(usage.trim_end());
        }
        _ => output::warn(&format!("Error: {}", in_one_line(error))),
    }
    Ok(ExitCode::FAILURE)
}

/// What is wrong with the number of arguments.
fn arity(error: &clap::Error, name: &str, commands: &[String]) -> Option<String> {
    let given = text(error, ContextKind::InvalidArg);
    let command = text(error, ContextKind::InvalidSubcommand);
    match error.kind() {
        ErrorKind::MissingRequiredArgument => Some(format!("{name} needs {given}")),
        ErrorKind::UnknownArgument => Some(format!("{name} takes no further argument {given:?}")),
        ErrorKind::InvalidSubcommand => Some(format!("{name} has no command {command:?}")),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A command that can do without another one says with what.
            let own = if name.ends_with(" create") { "-f FILE, or " } else { "" };
            Some(format!("{name} needs {own}one of its commands: {}", commands.join(", ")))
        }
        _ => None,
    }
}

/// The first line of an error, and what would have been right.
fn in_one_line(error: &clap::Error) -> String {
    let said = error.to_string();
    let first = said.lines().next().unwrap_or_default().trim_start_matches("error: ");
    match (error.kind(), text(error, ContextKind::ValidValue)) {
        (ErrorKind::InvalidValue, valid) if !valid.is_empty() => {
            format!("{first}: expected {valid}")
        }
        _ => first.to_owned(),
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    }
}

/// The command that arguments reach.
struct Used {
    /// The words that lead to it.
    path: Vec<String>,
    /// How it is used.
    usage: String,
    /// Its full name.
    name: String,
    /// The commands below it.
    commands: Vec<String>,
}

fn used(arguments: &[OsString]) -> Used {
    let mut table = table(Caller::Kubectl);
    table.build();
    let words = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    let place = Place::reach(&table, &words.collect::<Vec<_>>());
    let path = place.path.iter().map(|&name| name.to_owned()).collect();
    let command = place.command;
    let name = command.get_bin_name().unwrap_or(PLUGIN).to_owned();
    let usage = command.clone().render_help().to_string();
    let below = command.get_subcommands().filter(|one| !one.is_hide_set());
    let below = below.map(|one| one.get_name().to_owned()).filter(|name| name != "help");
    Used { path, usage, name, commands: below.collect() }
}
