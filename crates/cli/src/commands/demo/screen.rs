//! Where is the demo shown? Redrawn in place on a terminal, else one line per transition.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};

use gradus_simkube::SimCluster;
use jiff::Timestamp;

use super::picture::{Style, draw, step_text};
use super::scene::{RolloutState, Scene, look, rollouts, standing};

/// Width and height where a terminal does not say.
const USUAL_SIZE: (usize, usize) = (80, 24);

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// What the demo shows itself on.
pub enum Screen {
    /// A terminal.
    Terminal(Terminal),
    /// A file, a pipe, a terminal that can do nothing.
    Lines(Lines),
}

impl Screen {
    /// The screen that fits standard output.
    pub fn of_stdout(start: Timestamp) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if io::stdout().is_terminal() && !is_dumb {
            let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            return Screen::Terminal(Terminal { start, colour, drawn: 0, last: String::new() });
        }
        Screen::Lines(Lines { start, version: 0, told: BTreeMap::new() })
    }

    /// Shows how things stand now.
    pub fn show(&mut self, cluster: &SimCluster, now: Timestamp) -> io::Result<()> {
        match self {
            Screen::Terminal(terminal) => terminal.show(&look(cluster), now),
            Screen::Lines(lines) => lines.show(cluster, now),
        }
    }

    /// Tells of something that a person did.
    pub fn tell(&mut self, rollout: &str, deed: &str, now: Timestamp) -> io::Result<()> {
        match self {
            Screen::Terminal(terminal) => {
                terminal.last = line_of(rollout, deed, terminal.start, now);
                Ok(())
            }
            Screen::Lines(lines) => lines.say(rollout, deed, now),
        }
    }
}

/// A picture that is drawn again over itself.
pub struct Terminal {
    start: Timestamp,
    colour: bool,
    /// Lines of the picture that is on the screen.
    drawn: usize,
    /// The last thing a person did.
    last: String,
}

impl Terminal {
    fn show(&mut self, scenes: &[Scene], now: Timestamp) -> io::Result<()> {
        let size = terminal_size::terminal_size();
        let size = size.map_or(USUAL_SIZE, |(width, height)| (width.0.into(), height.0.into()));
        let frame = self.frame(scenes, size, now);
        let mut out = io::stdout().lock();
        out.write_all(frame.as_bytes())?;
        out.flush()
    }

    /// The text that draws the picture over the one before it.
    fn frame(&mut self, scenes: &[Scene], size: (usize, usize), now: Timestamp) -> String {
        let (width, height) = size;
        // The last line stays free for the cursor, the one before it for what people do.
        let room = height.saturating_sub(2);
        let mut lines = draw(scenes, Style { width, height: room, colour: self.colour });
        lines.truncate(room);
        let last = if self.last.is_empty() { seconds(self.start, now) } else { self.last.clone() };
        lines.push(last.chars().take(width).collect());
        let start = match self.drawn {
            0 => HIDE_CURSOR.to_owned(),
            drawn => format!("\x1b[{drawn}A\r"),
        };
        self.drawn = lines.len();
        let text: String = lines.iter().map(|line| format!("{line}{CLEAR_LINE}\n")).collect();
        format!("{start}{text}{CLEAR_BELOW}")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.drawn > 0 {
            // A terminal that is gone has no cursor either.
            write!(io::stdout(), "{SHOW_CURSOR}").ok();
        }
    }
}

/// One line per transition.
pub struct Lines {
    start: Timestamp,
    /// The last version of the cluster that was told.
    version: u64,
    /// What was last told of each rollout.
    told: BTreeMap<String, String>,
}

impl Lines {
    /// Tells every state that a rollout was in since the last time, none twice in a row.
    fn show(&mut self, cluster: &SimCluster, now: Timestamp) -> io::Result<()> {
        for (name, standing) in self.states(cluster) {
            let line = transition(&standing);
            if !standing.is_observed || self.told.get(&name) == Some(&line) {
                continue;
            }
            self.say(&name, &line, now)?;
            self.told.insert(name, line);
        }
        self.version = cluster.version();
        let left: Vec<String> = look(cluster).into_iter().map(|scene| scene.name).collect();
        let gone: Vec<String> =
            self.told.keys().filter(|name| !left.contains(name)).cloned().collect();
        for name in gone {
            self.say(&name, "is deleted", now)?;
            self.told.remove(&name);
        }
        Ok(())
    }

    /// The states that rollouts were in since the last time.
    fn states(&self, cluster: &SimCluster) -> Vec<(String, RolloutState)> {
        let Some(kind) = rollouts(cluster) else { return Vec::new() };
        match cluster.events_after(kind, self.version) {
            Ok(events) => events
                .map(|event| (event.object.meta.name.to_string(), standing(&event.object)))
                .collect(),
            // The log is bounded; who comes too late sees how things stand.
            Err(_) => look(cluster).into_iter().map(|scene| (scene.name, scene.standing)).collect(),
        }
    }

    fn say(&self, rollout: &str, text: &str, now: Timestamp) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", line_of(rollout, text, self.start, now))?;
        out.flush()
    }
}

fn transition(standing: &RolloutState) -> String {
    let RolloutState { phase, revision, updated, available, desired, .. } = standing;
    let counts = format!("{updated}/{desired} updated, {available} available");
    format!("{phase:<12} revision {revision}, {}, {counts}", step_text(standing))
}

/// What a rollout does or has done to it, and when.
pub fn line_of(rollout: &str, text: &str, start: Timestamp, now: Timestamp) -> String {
    format!("{} {rollout:<9} {text}", seconds(start, now))
}

fn seconds(start: Timestamp, now: Timestamp) -> String {
    format!("{:6.1} s", now.duration_since(start).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_drawn_over_the_one_before_and_fits_the_terminal() {
        let scene = |name: &str| Scene {
            name: name.to_owned(),
            standing: RolloutState::default(),
            sets: Vec::new(),
        };
        let start = Timestamp::UNIX_EPOCH;
        let mut terminal = Terminal { start, colour: false, drawn: 0, last: String::new() };
        let first = terminal.frame(&[scene("cart"), scene("web")], (80, 24), start);
        assert!(first.starts_with(HIDE_CURSOR), "{first:?}");
        assert_eq!(first.matches('\n').count(), 7, "two rollouts of three lines, and the time");
        let second = terminal.frame(&[scene("cart")], (80, 24), start);
        assert!(second.starts_with("\x1b[7A\r"), "{second:?}");
        assert!(second.ends_with(CLEAR_BELOW), "what the longer picture left is cleared");
        let low = terminal.frame(&[scene("cart"), scene("web")], (80, 5), start);
        assert_eq!(low.matches('\n').count(), 4, "the cursor keeps a line of its own");
        terminal.drawn = 0; // No test has a cursor to give back.
    }
}
