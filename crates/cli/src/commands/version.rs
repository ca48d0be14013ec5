//! Which build is this?

use clap::Args;

use super::{Caller, PLUGIN};

/// Print the version
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only the number
    #[arg(long)]
    short: bool,
    /// Further arguments are ignored
    #[arg(hide = true)]
    rest: Vec<String>,
}

/// Prints the version, and the commit where the build knows it. The plugin answers in the form
/// that scripts know from Argo Rollouts'.
pub fn run(arguments: &Arguments, caller: Caller) {
    let version = env!("CARGO_PKG_VERSION");
    let commit = option_env!("GRADUS_COMMIT");
    match (caller, commit) {
        (Caller::Gradus, _) if arguments.short => println!("{version}"),
        (Caller::Gradus, Some(commit)) => println!("gradus {version} ({commit})"),
        (Caller::Gradus, None) => println!("gradus {version}"),
        (Caller::Kubectl, commit) => {
            let short = commit.map_or("unknown", |commit| commit.get(..7).unwrap_or(commit));
            println!("{PLUGIN}: v{version}+{short}");
            if !arguments.short {
                println!("  BuildDate: unknown");
                println!("  GitCommit: {}", commit.unwrap_or("unknown"));
                println!("  GitTreeState: unknown");
                println!("  GoVersion: none, this is Gradus");
                println!("  Compiler: rustc");
                println!("  Platform: {}/{}", std::env::consts::OS, architecture());
            }
        }
    }
}

/// The architecture by the name that Go gives it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
