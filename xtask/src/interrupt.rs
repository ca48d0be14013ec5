//! How does a task end at Ctrl-C without leaving anything behind?

use std::io;

use thiserror::Error;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

use crate::Failure;

/// Why a task was not run to its end.
#[derive(Debug, Error)]
pub enum Ended {
    /// Nobody wants the rest of it either.
    #[error("interrupted; everything it had started is stopped")]
    Interrupted,
    #[error("no signal handler: {0}")]
    NoHandler(#[from] io::Error),
}

/// Runs the future to its end, or drops it when the user or the system asks us to stop. Whatever it
/// started must stop when dropped.
pub fn or_interrupted<T>(task: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    Runtime::new()?.block_on(async {
        tokio::select! {
            done = task => done,
            ended = interruption() => Err(ended.into()),
        }
    })
}

async fn interruption() -> Ended {
    let handlers = || -> io::Result<_> {
        Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    };
    match handlers() {
        Ok((mut interrupt, mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => Ended::Interrupted,
                _ = terminate.recv() => Ended::Interrupted,
            }
        }
        Err(error) => error.into(),
    }
}
