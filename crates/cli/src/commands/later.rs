//! Commands of Argo Rollouts that this version does not have.

use clap::Args;

/// Whatever is given to a command that is not there.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// One clear line.
pub fn refuse(command: &str) -> anyhow::Result<()> {
    anyhow::bail!("{command} is a command of Argo Rollouts that this version does not have")
}
