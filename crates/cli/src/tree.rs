//! How is a Rollout or an Experiment printed: its summary, and the tree of its objects?

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use gradus_api::names::plugin_operation;
use gradus_engine::view::{
    ExperimentSummary, Fact, Image, ImageTag, Node, NodeKind, Outcome, PluginSummary,
    RolloutSummary, StrategyName, Tag,
};
use gradus_simkube::age;
use jiff::Timestamp;

use crate::paint::{Colour, Paint};
use crate::table::{Cell, align};

/// Width of the labels of a summary.
const LABEL: usize = 17;

/// Names are not cut shorter than this, however narrow the terminal.
const SHORTEST_NAME: usize = 24;

/// How something is printed.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// In which colours.
    pub paint: Paint,
    /// Columns there are; none where lines may have any length.
    pub width: Option<usize>,
    /// Ages count up to this moment.
    pub now: Timestamp,
}

/// A Rollout as `get rollout` shows it.
pub fn rollout(summary: &RolloutSummary, look: Look) -> String {
    let mut text = head(&summary.name, &summary.namespace, &summary.message, &|| {
        status(NodeKind::Rollout, &summary.phase, look.paint).printed
    });
    let strategy = match summary.strategy {
        Some(StrategyName::Canary) => "Canary",
        Some(StrategyName::BlueGreen) => "BlueGreen",
        None => "",
    };
    line(&mut text, "Strategy:", strategy);
    if let Some(canary) = &summary.canary {
        line(&mut text, "  Step:", &canary.step);
        line(&mut text, "  SetWeight:", &canary.set_weight.to_string());
        line(&mut text, "  ActualWeight:", &canary.actual_weight.to_string());
        for (at, plugin) in canary.plugins.iter().enumerate() {
            line(
                &mut text,
                if at == 0 { "  Plugins:" } else { "" },
                &plugin_line(plugin, look.now),
            );
        }
    }
    images(&mut text, &summary.images, look.paint);
    text.push_str("Replicas:\n");
    let counts = [
        ("  Desired:", summary.desired),
        ("  Current:", summary.current),
        ("  Updated:", summary.updated),
        ("  Ready:", summary.ready),
        ("  Available:", summary.available),
    ];
    for (label, count) in counts {
        line(&mut text, label, &count.to_string());
    }
    text.push('\n');
    text + &tree(&summary.tree, look)
}

/// What a plugin said, since when, and when it is called next.
fn plugin_line(plugin: &PluginSummary, now: Timestamp) -> String {
    let mut text = format!("{} (step {})", plugin.name, plugin.step);
    if plugin.operation != plugin_operation::RUN {
        text.push_str(&format!(" {}", plugin.operation));
    }
    let phase = if plugin.phase.is_empty() { "not called yet" } else { &plugin.phase };
    text.push_str(&format!(" {phase}"));
    if !plugin.message.is_empty() {
        text.push_str(&format!(": {}", plugin.message.replace('\n', " ")));
    }
    let since = plugin.since.map(|since| format!("for {}", age::since(since, now)));
    let next = plugin.next.filter(|next| now < *next);
    let next = next.map(|next| format!("called again in {}", age::since(now, next)));
    let times: Vec<String> = since.into_iter().chain(next).collect();
    if !times.is_empty() {
        text.push_str(&format!(" ({})", times.join(", ")));
    }
    text
}

/// An Experiment as `get experiment` shows it.
pub fn experiment(summary: &ExperimentSummary, look: Look) -> String {
    let mut text = head(&summary.name, &summary.namespace, &summary.message, &|| {
        status(NodeKind::Experiment, &summary.phase, look.paint).printed
    });
    images(&mut text, &summary.images, look.paint);
    text.push('\n');
    text + &tree(&summary.tree, look)
}

fn head(name: &str, namespace: &str, message: &str, status: &dyn Fn() -> String) -> String {
    let mut text = String::new();
    line(&mut text, "Name:", name);
    line(&mut text, "Namespace:", namespace);
    line(&mut text, "Status:", &status());
    if !message.is_empty() {
        line(&mut text, "Message:", message);
    }
    text
}

fn line(text: &mut String, label: &str, value: &str) {
    writeln!(text, "{label:<LABEL$}{value}").expect("a String takes all text");
}

fn images(text: &mut String, images: &[Image], paint: Paint) {
    for (at, image) in images.iter().enumerate() {
        let tags: Vec<String> = image.tags.iter().map(|tag| image_tag(tag, paint)).collect();
        let tags = if tags.is_empty() { String::new() } else { format!(" ({})", tags.join(", ")) };
        line(text, if at == 0 { "Images:" } else { "" }, &format!("{}{tags}", image.name));
    }
}

fn image_tag(tag: &ImageTag, paint: Paint) -> String {
    match tag {
        ImageTag::Role(tag) => paint.wrap(tag_colour(*tag), tag.name()),
        ImageTag::Template(name) => paint.wrap(Colour::None, &format!("Σ:{name}")),
    }
}

/// The tree as a table, its names cut in the middle where the terminal is too narrow.
fn tree(root: &Node, look: Look) -> String {
    let rows = rows(root, usize::MAX, look);
    let excess = excess(&rows, look.width);
    if excess == 0 {
        return align(&rows, &[]);
    }
    let widest = rows.iter().map(|row| row[0].seen.chars().count()).max().unwrap_or(0);
    let mut rows = self::rows(root, widest.saturating_sub(excess).max(SHORTEST_NAME), look);
    if self::excess(&rows, look.width) > 0 {
        // The sign before a name says of which kind it is; no column says what INFO does.
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    align(&rows, &[])
}

/// By how many columns the widest row exceeds the terminal.
fn excess(rows: &[Vec<Cell>], width: Option<usize>) -> usize {
    let Some(width) = width else { return 0 };
    let plain = |row: &Vec<Cell>| row.iter().map(|cell| Cell::plain(cell.seen.clone())).collect();
    let lines = align(&rows.iter().map(plain).collect::<Vec<_>>(), &[]);
    let widest = lines.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
    widest.saturating_sub(width)
}

/// Header and rows, the first cell of each at most so wide.
fn rows(root: &Node, room: usize, look: Look) -> Vec<Vec<Cell>> {
    let mut rows = vec![["NAME", "KIND", "STATUS", "AGE", "INFO"].map(Cell::plain).to_vec()];
    add_rows(root, ("", ""), room, look, &mut rows);
    rows
}

fn add_rows(
    node: &Node,
    (before, below): (&str, &str),
    room: usize,
    look: Look,
    rows: &mut Vec<Vec<Cell>>,
) {
    rows.push(row(node, before, room, look));
    let last = node.children.len().saturating_sub(1);
    for (at, child) in node.children.iter().enumerate() {
        let (branch, rest) = if at == last { ("└──", "   ") } else { ("├──", "│  ") };
        let (before, below) = (format!("{below}{branch}"), format!("{below}{rest}"));
        add_rows(child, (&before, &below), room, look, rows);
    }
}

fn row(node: &Node, before: &str, room: usize, look: Look) -> Vec<Cell> {
    let (icon, kind) = kind(node.kind);
    let name = shortened(&node.name, room.saturating_sub(before.chars().count() + 2));
    let name = Cell {
        printed: format!("{before}{icon} {}", painted_name(node, &name, look.paint)),
        seen: format!("{before}{icon} {name}"),
    };
    if node.kind == NodeKind::Revision {
        return vec![name, Cell::default(), Cell::plain(" "), Cell::default(), Cell::default()];
    }
    let age = node.created.map_or_else(String::new, |created| age::since(created, look.now));
    vec![
        name,
        Cell::plain(kind),
        status(node.kind, &node.status, look.paint),
        Cell::plain(age),
        info(node, look),
    ]
}

/// A name with its middle left out: its beginning and its end tell the most.
pub fn shortened(name: &str, room: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    let room = room.max(5);
    if letters.len() <= room {
        return name.to_owned();
    }
    let tail = room / 2;
    let head = room - tail - 1;
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

fn kind(kind: NodeKind) -> (char, &'static str) {
    match kind {
        NodeKind::Rollout => ('⟳', "Rollout"),
        NodeKind::Revision => ('#', ""),
        NodeKind::ReplicaSet => ('⧉', "ReplicaSet"),
        NodeKind::Pod => ('□', "Pod"),
        NodeKind::Job => ('⊞', "Job"),
        NodeKind::Experiment => ('Σ', "Experiment"),
        NodeKind::AnalysisRun => ('α', "AnalysisRun"),
    }
}

/// Names of ReplicaSets carry the colours of their parts, the first one innermost; names of runs
/// are coloured while they run.
fn painted_name(node: &Node, name: &str, paint: Paint) -> String {
    match node.kind {
        NodeKind::ReplicaSet => node.facts.iter().fold(name.to_owned(), |name, fact| match fact {
            Fact::Tag(tag) => paint.wrap(tag_colour(*tag), &name),
            _ => name,
        }),
        NodeKind::Experiment | NodeKind::AnalysisRun | NodeKind::Job => {
            let runs = matches!(node.status.as_str(), "Pending" | "Running");
            paint.wrap(if runs { Colour::Blue } else { Colour::None }, name)
        }
        NodeKind::Rollout | NodeKind::Revision | NodeKind::Pod => name.to_owned(),
    }
}

fn status(kind: NodeKind, status: &str, paint: Paint) -> Cell {
    let icon = status_icon(kind, status);
    let painted = paint.wrap(icon_colour(icon), &icon.to_string());
    Cell { seen: format!("{icon} {status}"), printed: format!("{painted} {status}") }
}

fn status_icon(kind: NodeKind, status: &str) -> char {
    match (kind, status) {
        (NodeKind::Pod, status) => pod_icon(status),
        (NodeKind::Rollout | NodeKind::ReplicaSet, "Progressing") => '◌',
        (NodeKind::Rollout | NodeKind::ReplicaSet, "Healthy") => '✔',
        (NodeKind::Rollout | NodeKind::ReplicaSet, "ScaledDown") => '•',
        (NodeKind::Rollout, "Paused") => '॥',
        (NodeKind::Rollout, "Degraded") | (NodeKind::ReplicaSet, "ReplicaFailure") => '✖',
        (NodeKind::Rollout, "Error" | "InvalidSpec") => '⚠',
        (NodeKind::Rollout, "Unknown") => '?',
        (NodeKind::Rollout | NodeKind::ReplicaSet, _) => ' ',
        (_, "Successful") => '✔',
        (_, "Running") => '◌',
        (_, "Pending") => '◷',
        (_, "Failed") => '✖',
        (_, "Error") => '⚠',
        (_, "Inconclusive") => '?',
        _ => ' ',
    }
}

fn pod_icon(status: &str) -> char {
    let starts = |text: &str| status.starts_with(text);
    match status {
        _ if starts("Init:") => '◌',
        _ if starts("Signal:") || starts("ExitCode:") => '✖',
        _ if status.ends_with("Error") || starts("Err") => '⚠',
        "Pending" | "Terminating" | "ContainerCreating" => '◌',
        "Running" | "Completed" => '✔',
        "Failed" | "InvalidImageName" | "CrashLoopBackOff" => '✖',
        "ImagePullBackOff" | "RegistryUnavailable" => '⚠',
        "Unknown" => '?',
        _ => ' ',
    }
}

fn icon_colour(icon: char) -> Colour {
    match icon {
        '◷' | '?' => Colour::Yellow,
        '◌' => Colour::Blue,
        '⚠' | '✖' => Colour::Red,
        '✔' => Colour::Green,
        _ => Colour::None,
    }
}

fn tag_colour(tag: Tag) -> Colour {
    match tag {
        Tag::Canary => Colour::Yellow,
        Tag::Stable | Tag::Active => Colour::Green,
        Tag::Preview | Tag::Ping | Tag::Pong => Colour::Blue,
    }
}

fn info(node: &Node, look: Look) -> Cell {
    let facts = node.facts.iter().map(|fact| told(fact, look));
    let (seen, printed): (Vec<_>, Vec<_>) = facts.unzip();
    Cell { seen: seen.join(","), printed: printed.join(",") }
}

/// A fact without and with its colours.
fn told(fact: &Fact, look: Look) -> (String, String) {
    let alike = |text: String| (text.clone(), text);
    match *fact {
        Fact::Tag(tag) => (tag.name().to_owned(), look.paint.wrap(tag_colour(tag), tag.name())),
        Fact::ScaleDownAt(moment) if moment <= look.now => alike("delay:passed".to_owned()),
        Fact::ScaleDownAt(moment) => alike(format!("delay:{}", age::since(look.now, moment))),
        Fact::Ready { ready, all } => alike(format!("ready:{ready}/{all}")),
        Fact::Restarts(count) => alike(format!("restarts:{count}")),
        Fact::Measured { outcome, count } => {
            let icon = match outcome {
                Outcome::Successful => '✔',
                Outcome::Failed => '✖',
                Outcome::Inconclusive => '?',
                Outcome::Error => '⚠',
            };
            let painted = look.paint.wrap(icon_colour(icon), &icon.to_string());
            (format!("{icon} {count}"), format!("{painted} {count}"))
        }
    }
}
