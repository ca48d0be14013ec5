//! Which build is this?

use std::process::ExitCode;

use clap::Args;

/// Print the version
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only the number
    #[arg(long)]
    short: bool,
}

/// Prints the version, and the commit where the build knows it.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("GRADUS_COMMIT") {
        _ if arguments.short => println!("{version}"),
        Some(commit) => println!("gradus {version} ({commit})"),
        None => println!("gradus {version}"),
    }
    Ok(ExitCode::SUCCESS)
}
