//! Where is the demo shown? On a terminal that it has to itself, else one line per transition.

use std::collections::BTreeMap;
use std::io::{self, Write};

use gradus_api::names;
use gradus_engine::view::{self, NamespaceObjects};
use gradus_simkube::kinds::KindId;
use gradus_simkube::{Change, SimCluster};
use jiff::Timestamp;
use serde_json::Value;

use super::board::{Board, Key, Wish};
use super::picture::step_text;
use super::scene::{RolloutState, look, rollouts, standing};
use super::terminal::Terminal;
use crate::paint::Paint;
use crate::tree::{self, Look};

/// What the demo shows itself on.
pub enum Screen {
    /// A terminal.
    Terminal(Box<LiveScreen>),
    /// A file, a pipe, a terminal that can do nothing.
    Lines(Lines),
}

impl Screen {
    /// The screen that fits standard output.
    pub fn of_stdout(start: Timestamp, kubeconfig: &str) -> io::Result<Self> {
        if Terminal::is_there() {
            let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            let board = Board::new(start, kubeconfig, colour);
            let terminal = Terminal::open()?;
            return Ok(Screen::Terminal(Box::new(LiveScreen { terminal, board, version: 0 })));
        }
        Ok(Screen::Lines(Lines { start, version: 0, last: BTreeMap::new() }))
    }

    /// Shows how things stand now.
    pub fn show(&mut self, cluster: &SimCluster, now: Timestamp) -> io::Result<()> {
        match self {
            Screen::Terminal(live) => live.show(cluster, now),
            Screen::Lines(lines) => lines.show(cluster, now),
        }
    }

    /// Reports something that a person did.
    pub fn report(&mut self, rollout: &str, deed: &str, now: Timestamp) -> io::Result<()> {
        match self {
            Screen::Terminal(live) => {
                live.board.note(rollout, deed, false, now);
                Ok(())
            }
            Screen::Lines(lines) => lines.say(rollout, deed, now),
        }
    }

    /// Says something about the demo itself.
    pub fn announce(&mut self, text: &str, now: Timestamp) -> io::Result<()> {
        match self {
            Screen::Terminal(live) => {
                live.board.note("", text, false, now);
                Ok(())
            }
            Screen::Lines(_) => writeln!(io::stdout(), "{text}"),
        }
    }

    /// What the user has asked for since the last time.
    pub fn wishes(&mut self, now: Timestamp) -> io::Result<Vec<Wish>> {
        let Screen::Terminal(live) = self else { return Ok(Vec::new()) };
        let keys = live.terminal.keys()?;
        Ok(keys.into_iter().filter_map(|key| live.board.press(key, now)).collect())
    }

    /// Do the scripted people act?
    pub fn are_people_active(&self) -> bool {
        match self {
            Screen::Terminal(live) => live.board.are_people_active,
            Screen::Lines(_) => true,
        }
    }
}

/// A terminal and what is on it.
pub struct LiveScreen {
    terminal: Terminal,
    board: Board,
    /// The last version of the cluster whose Events are in the log.
    version: u64,
}

impl LiveScreen {
    fn show(&mut self, cluster: &SimCluster, now: Timestamp) -> io::Result<()> {
        self.board.see(look(cluster));
        self.log_events(cluster, now);
        let board = &mut self.board;
        self.terminal.draw(|frame| {
            let width = usize::from(frame.area().width);
            let tree = board.opened().and_then(|key| tree_of(cluster, &key, width, now));
            board.render(frame, tree.as_deref(), now);
        })
    }

    /// Adds the Events of Rollouts since the last time. The cluster keeps a bounded past; whoever
    /// comes too late misses some.
    fn log_events(&mut self, cluster: &SimCluster, now: Timestamp) {
        if let Ok(events) = cluster.events_after(KindId::EVENT, self.version) {
            for event in events.filter(|event| event.change != Change::Deleted) {
                let rest = &event.object.rest;
                let text =
                    |field: &str| rest.get(field).and_then(Value::as_str).unwrap_or_default();
                let about = |field: &str| rest.get("involvedObject").map(|object| &object[field]);
                let kind = about("kind").and_then(Value::as_str);
                if kind == Some(names::kind::ROLLOUT) {
                    let name = about("name").and_then(Value::as_str).unwrap_or_default();
                    self.board.note(name, text("message"), text("type") == "Warning", now);
                }
            }
        }
        self.version = cluster.version();
    }
}

/// A rollout as `gradus get rollout` shows it.
fn tree_of(cluster: &SimCluster, key: &Key, width: usize, now: Timestamp) -> Option<String> {
    let (namespace, name) = key;
    let kinds = cluster.kinds();
    let list = |kind: Option<KindId>| -> Vec<Value> {
        let kind = kind.into_iter();
        kind.flat_map(|kind| cluster.list(kind, namespace)).map(|one| one.to_json(kinds)).collect()
    };
    let ours = |kind: &str| kinds.by_name(names::API_VERSION, kind);
    let rollout = cluster.get(rollouts(cluster)?, namespace, name)?.to_json(kinds);
    let objects = NamespaceObjects {
        replica_sets: list(Some(KindId::REPLICA_SET)),
        pods: list(Some(KindId::POD)),
        experiments: list(ours(names::kind::EXPERIMENT)),
        analysis_runs: list(ours(names::kind::ANALYSIS_RUN)),
    };
    let look = Look { paint: Paint::PLAIN, width: Some(width), now };
    Some(tree::rollout(&view::rollout(&rollout, &objects), look))
}

/// One line per transition.
pub struct Lines {
    start: Timestamp,
    /// The last version of the cluster that was shown.
    version: u64,
    /// The last line about each rollout.
    last: BTreeMap<String, String>,
}

impl Lines {
    /// Prints every state that a rollout was in since the last time, none twice in a row.
    fn show(&mut self, cluster: &SimCluster, now: Timestamp) -> io::Result<()> {
        for (name, standing) in self.states(cluster) {
            let line = transition(&standing);
            if !standing.is_observed || self.last.get(&name) == Some(&line) {
                continue;
            }
            self.say(&name, &line, now)?;
            self.last.insert(name, line);
        }
        self.version = cluster.version();
        let left: Vec<String> = look(cluster).into_iter().map(|scene| scene.name).collect();
        let gone: Vec<String> =
            self.last.keys().filter(|name| !left.contains(name)).cloned().collect();
        for name in gone {
            self.say(&name, "is deleted", now)?;
            self.last.remove(&name);
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

/// How long the demo has run.
pub fn seconds(start: Timestamp, now: Timestamp) -> String {
    format!("{:6.1} s", now.duration_since(start).as_secs_f64())
}
