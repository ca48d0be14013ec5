//! What is said to arguments that are no command, or that ask for help?

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Caller, PLUGIN, controller, table};

/// Says it; the exit code tells what kind of answer it was.
pub fn say(error: clap::Error, arguments: &[OsString], caller: Caller) -> anyhow::Result<ExitCode> {
    match caller {
        Caller::Gradus => as_clap_says(error, arguments),
        Caller::Kubectl => as_cobra_says(&error, arguments),
    }
}

fn as_clap_says(error: clap::Error, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let is_controller = arguments.get(1).is_some_and(|name| name == "controller");
    if error.kind() == ErrorKind::UnknownArgument && is_controller {
        let mut given = arguments.iter().filter_map(|argument| argument.to_str());
        if let Some(flag) = given.find_map(controller::missing_flag) {
            eprintln!(
                "error: {flag} is a flag of Argo Rollouts that this version of Gradus does not \
                 have; leave it out"
            );
            return Ok(ExitCode::from(2));
        }
    }
    error.print()?;
    Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)))
}

/// The plugin answers as Argo Rollouts' does: exit code 1, and a wrong number of arguments is
/// answered with how the command is used.
fn as_cobra_says(error: &clap::Error, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(" "),
        _ => String::new(),
    };
    let is_root = arguments.len() < 2;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            error.print()?;
            return Ok(ExitCode::SUCCESS);
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if is_root => {
            print!("{error}");
            return Ok(ExitCode::SUCCESS);
        }
        ErrorKind::InvalidSubcommand if arguments.len() < 3 || !is_group(arguments) => {
            let command = text(ContextKind::InvalidSubcommand);
            eprintln!("Error: unknown command \"{command}\" for \"{PLUGIN}\"");
            eprintln!("Run '{PLUGIN} --help' for usage.");
        }
        ErrorKind::UnknownArgument if text(ContextKind::InvalidArg).starts_with('-') => {
            let flag = text(ContextKind::InvalidArg);
            eprintln!("Error: unknown flag: {flag}");
            eprintln!("See '{} --help' for usage.", used(arguments).1);
        }
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::InvalidSubcommand
        | ErrorKind::UnknownArgument
        | ErrorKind::TooManyValues
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => eprint!("{}", used(arguments).0),
        // Not exactly one `=` in what `set image` takes.
        ErrorKind::ValueValidation if text(ContextKind::InvalidArg).contains("CONTAINER") => {
            eprint!("{}", used(arguments).0);
        }
        _ => {
            let said = error.to_string();
            let first = said.lines().next().unwrap_or_default();
            eprintln!("Error: {}", first.trim_start_matches("error: "));
        }
    }
    Ok(ExitCode::FAILURE)
}

/// Do the arguments begin with a command that has commands of its own?
fn is_group(arguments: &[OsString]) -> bool {
    let name = arguments.get(1).and_then(|name| name.to_str()).unwrap_or_default();
    let table = table(Caller::Kubectl);
    table.find_subcommand(name).is_some_and(|command| command.has_subcommands())
}

/// How the command that the arguments name is used, and its full name.
fn used(arguments: &[OsString]) -> (String, String) {
    let mut table = table(Caller::Kubectl);
    table.build();
    let mut command = &mut table;
    for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
        if command.find_subcommand(word).is_none() {
            continue;
        }
        command = command.find_subcommand_mut(word).expect("it was found just now");
    }
    let name = command.get_bin_name().unwrap_or(PLUGIN).to_owned();
    (command.render_help().to_string(), name)
}
