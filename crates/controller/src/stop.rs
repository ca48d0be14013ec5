//! Has somebody asked the program to end?

use std::future::pending;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a program cleanly: SIGTERM of Kubernetes, SIGINT of a keyboard.
pub struct Stop {
    terminate: Signal,
    interrupt: Signal,
    hangup: Option<Signal>,
}

impl Stop {
    /// Listens from now on; without this, the signals kill.
    pub fn listen() -> std::io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Stop { terminate, interrupt: signal(SignalKind::interrupt())?, hangup: None })
    }

    /// Listens to SIGHUP of a terminal that is closed as well. Only for a program that shows
    /// itself there: one that was started with `nohup` is to go on.
    pub fn or_hangup(self) -> std::io::Result<Self> {
        Ok(Stop { hangup: Some(signal(SignalKind::hangup())?), ..self })
    }

    /// Returns when one of them has come.
    pub async fn asked(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = hangup => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_closed_terminal_ends_what_is_shown_there() {
        let mut stop = Stop::listen().unwrap().or_hangup().unwrap();
        let own = std::process::id().to_string();
        let sent = std::process::Command::new("kill").args(["-HUP", &own]).status().unwrap();
        assert!(sent.success());
        stop.asked().await;
    }
}
