//! Does a plugin do what the controller expects of it?

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use gradus_controller::plugins::conformance::{CheckedPlugin, Interface, check};
use serde_json::Value;

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
    /// The name under which it looks for its configuration
    #[arg(long, default_value = "check/plugin")]
    name: String,
    /// Its configuration in a Rollout or a metric, as JSON
    #[arg(long, default_value = "{}", value_name = "JSON")]
    config: String,
    /// A variable of its environment, which is empty otherwise; without a value it is yours
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum InterfaceName {
    Step,
    Metric,
    Router,
}

/// Prints what is expected and how the plugin does; fails if something is wrong.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Command::Check(named) = &arguments.command;
    let subject = subject(named)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let findings = runtime.context("the runtime")?.block_on(check(&subject));
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

fn subject(named: &Check) -> anyhow::Result<CheckedPlugin> {
    let Check { program, args, kind, name, config, env } = named;
    let config: Value = serde_json::from_str(config).context("--config: expected JSON")?;
    anyhow::ensure!(config.is_object(), "--config: expected an object");
    let variable = |text: &String| match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (text.clone(), None),
    };
    Ok(CheckedPlugin {
        program: program.clone(),
        args: args.clone(),
        interface: match kind {
            InterfaceName::Step => Interface::Step,
            InterfaceName::Metric => Interface::Metric,
            InterfaceName::Router => Interface::Router,
        },
        name: name.clone(),
        config,
        env: env.iter().map(variable).collect(),
    })
}
