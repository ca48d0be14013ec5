//! Has somebody asked the program to end?

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a program cleanly: SIGTERM of Kubernetes, SIGINT of a keyboard.
pub struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    /// Listens from now on; without this, the signals kill.
    pub fn listen() -> std::io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Stop { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Returns when one of them has come.
    pub async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
