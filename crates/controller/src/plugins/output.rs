//! What plugins print goes to our log, with the plugin's name: line by line, no line longer and no
//! second fuller than the limits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::hidden::Hidden;

/// The longest line; the rest is cut off.
const LINE_LIMIT: usize = 4096;
/// The most lines of one plugin in a second; what is more is counted and dropped.
const LINES_PER_SECOND: u32 = 100;

/// What a plugin was given and must not be in our log, whatever it prints. Kept as long as its process.
#[derive(Clone, Debug, Default)]
pub(super) struct Unprinted(Arc<Mutex<Hidden>>);

impl Unprinted {
    /// From now on these are hidden, too.
    pub fn add(&self, more: &Hidden) {
        let mut hidden = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if hidden.len() > FORMS_LIMIT {
            *hidden = Hidden::default();
        }
        hidden.join(more.clone());
    }

    fn clean(&self, line: &str) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clean(line)
    }
}

/// When a plugin has been given more forms of values than that, all but the latest are forgotten:
/// secrets rotate, and nothing may grow for ever.
const FORMS_LIMIT: usize = 4096;

/// Lines of one stream of a plugin.
pub(super) struct Lines {
    plugin: String,
    unprinted: Unprinted,
    line: Vec<u8>,
    since: Instant,
    logged: u32,
    dropped: u64,
}

impl Lines {
    pub fn of(plugin: &str, unprinted: Unprinted) -> Self {
        let plugin = plugin.to_owned();
        Lines { plugin, unprinted, line: Vec::new(), since: Instant::now(), logged: 0, dropped: 0 }
    }

    /// Takes in bytes, and logs the lines that are complete.
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                _ if self.line.len() < LINE_LIMIT => self.line.push(*byte),
                _ => {}
            }
        }
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.report();
    }

    /// Lines that were dropped and not reported yet.
    #[cfg(test)]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.since.elapsed() >= Duration::from_secs(1) {
            self.report();
            self.since = Instant::now();
            self.logged = 0;
        }
        if self.logged >= LINES_PER_SECOND {
            self.dropped += 1;
            return;
        }
        self.logged += 1;
        let line = String::from_utf8_lossy(&line);
        log(&self.plugin, &self.unprinted.clean(line.trim_end()));
    }

    fn report(&mut self) {
        if self.dropped > 0 {
            let lines = std::mem::take(&mut self.dropped);
            tracing::warn!(plugin = self.plugin, lines, "plugin prints too much: lines dropped");
        }
    }
}

/// One line; hclog's JSON says by itself how serious it is.
fn log(plugin: &str, line: &str) {
    if line.is_empty() {
        return;
    }
    let parsed: Option<Value> =
        line.starts_with('{').then(|| serde_json::from_str(line).ok()).flatten();
    let level = parsed.as_ref().and_then(|line| line["@level"].as_str()).unwrap_or("info");
    let said = parsed.as_ref().and_then(|line| line["@message"].as_str()).unwrap_or(line);
    match level {
        "error" => tracing::error!(plugin, said, "plugin printed"),
        "warn" => tracing::warn!(plugin, said, "plugin printed"),
        "debug" | "trace" => tracing::debug!(plugin, said, "plugin printed"),
        _ => tracing::info!(plugin, said, "plugin printed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let mut lines = Lines::of("a/b", Unprinted::default());
        lines.feed(&vec![b'x'; 1 << 20]);
        assert!(lines.line.len() <= LINE_LIMIT);
        lines.feed(&b"\n".repeat(1000));
        assert_eq!(lines.dropped(), 1000 - u64::from(LINES_PER_SECOND));
        lines.end();
        assert_eq!(lines.dropped(), 0, "reported");
    }
}
