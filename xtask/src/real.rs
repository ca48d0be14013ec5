//! `cargo xtask real`: do the scenarios hold on a real control plane?

use std::io;

use thiserror::Error;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

use crate::{Failure, plane::User, repository, servers::Servers, stage::Stage, summary::Summary};

/// What the command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Leave the control plane running until Ctrl-C.
    pub keep: bool,
    /// Crash, conflict and lose answers at every write, through the proxy.
    pub faults: bool,
    /// Scenarios by name; all when empty.
    pub names: Vec<String>,
}

#[derive(Debug, Error)]
enum RealError {
    #[error("unknown option {0}: expected --keep or --faults")]
    UnknownOption(String),
    #[error("interrupted; the control plane is stopped")]
    Interrupted,
    #[error("no signal handler: {0}")]
    Signal(io::Error),
}

/// Runs the task.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let wish = Wish::parse(arguments)?;
    let servers = Servers::ready(&repository())?;
    Runtime::new()?.block_on(async {
        tokio::select! {
            done = on_a_stage(&servers, &wish) => done,
            interrupted = interruption() => Err(interrupted.into()),
        }
    })
}

impl Wish {
    fn parse(arguments: &[String]) -> Result<Self, RealError> {
        let mut wish = Self::default();
        for argument in arguments {
            match argument.as_str() {
                "--keep" => wish.keep = true,
                "--faults" => wish.faults = true,
                option if option.starts_with('-') => {
                    return Err(RealError::UnknownOption(option.to_owned()));
                }
                name => wish.names.push(name.to_owned()),
            }
        }
        Ok(wish)
    }
}

/// Dropping this future at any point stops the servers.
async fn on_a_stage(servers: &Servers, wish: &Wish) -> Result<Summary, Failure> {
    let stage = Stage::set(servers).await?;
    let summary = scenarios(&stage, wish).await?;
    if wish.keep {
        let kubeconfig = stage.plane.kubeconfig(User::Person);
        println!("the control plane runs until Ctrl-C; its kubeconfig: {}", kubeconfig.display());
        println!("export KUBECONFIG={}", kubeconfig.display());
        std::future::pending::<()>().await;
    }
    Ok(summary)
}

/// Every scenario in a namespace of its own, all at once, with one controller.
async fn scenarios(_stage: &Stage, _wish: &Wish) -> Result<Summary, Failure> {
    Ok(Summary::default())
}

/// Ends with Ctrl-C or a request to terminate.
async fn interruption() -> RealError {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return RealError::Signal(io::Error::last_os_error());
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    RealError::Interrupted
}
