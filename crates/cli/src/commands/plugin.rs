//! Does a plugin do what the controller expects of it?

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use gradus_controller::plugins::conformance::{Interface, check};

use crate::output;

/// Check a plugin for steps, metrics or traffic
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play every call and every fault at a plugin
    Check(Check),
}

#[derive(Debug, Args)]
struct Check {
    /// The program of the plugin
    program: PathBuf,
    /// Its arguments
    #[arg(last = true)]
    args: Vec<String>,
    /// What it is for
    #[arg(long, value_enum, default_value = "step")]
    kind: InterfaceName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum InterfaceName {
    Step,
    Metric,
    Router,
}

/// Prints what is expected and how the plugin does; fails if something is wrong.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Command::Check(Check { program, args, kind }) = &arguments.command;
    let kind = match kind {
        InterfaceName::Step => Interface::Step,
        InterfaceName::Metric => Interface::Metric,
        InterfaceName::Router => Interface::Router,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let findings = runtime.context("the runtime")?.block_on(check(program, args, kind));
    let mut text = String::new();
    for finding in &findings {
        match &finding.wrong {
            None => text.push_str(&format!("ok     {}\n", finding.expected)),
            Some(wrong) => text.push_str(&format!("WRONG  {}: {wrong}\n", finding.expected)),
        }
    }
    let wrong = findings.iter().filter(|finding| finding.wrong.is_some()).count();
    text.push_str(&format!("{} expectations, {wrong} wrong\n", findings.len()));
    output::print(&text)?;
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
