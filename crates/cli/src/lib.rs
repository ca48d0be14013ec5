//! Which command do the arguments name, and how did it end?
//!
//! A library, so that it is compiled while those below it still are; the binary is next to nothing.

mod cluster;
mod commands;
mod connection;
mod live;
mod near;
mod output;
mod paint;
mod source;
mod table;
mod tree;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use commands::Caller;

/// Runs the command that the arguments of this process name.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let caller = if is_plugin(arguments.first()) { Caller::Kubectl } else { Caller::Gradus };
    match commands::run(&arguments, caller) {
        Ok(code) => code,
        // Who reads our output has seen enough: `gradus demo | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::warn(&format!("{} {error:#}", caller.error_prefix()));
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<std::io::Error>();
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Was the binary called as kubectl calls plugins? Then it answers as `kubectl argo rollouts`.
fn is_plugin(name: Option<&OsString>) -> bool {
    let stem = name.and_then(|name| Path::new(name).file_stem());
    stem.is_some_and(|stem| stem == commands::PLUGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_it_is_called_by_decides_what_it_is() {
        let cases = [
            ("gradus", false),
            ("/usr/bin/gradus", false),
            ("kubectl-argo-rollouts", true),
            ("/opt/bin/kubectl-argo-rollouts", true),
            ("./kubectl-argo-rollouts.exe", true),
            ("kubectl-argo-rollouts-2", false),
        ];
        for (name, expected) in cases {
            assert_eq!(is_plugin(Some(&OsString::from(name))), expected, "{name}");
        }
        assert!(!is_plugin(None));
    }
}
