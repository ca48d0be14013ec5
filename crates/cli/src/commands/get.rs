//! `get rollout` and `get experiment`: the summary and the tree, once or live.

use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand};
use gradus_engine::decision::Kind;
use gradus_engine::kinds;
use gradus_engine::view::{self, NamespaceObjects};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::connection::Connection;
use crate::live::Live;
use crate::near;
use crate::output::{self, Output};
use crate::paint::{Paint, height, width};
use crate::source::{Source, SourceArguments};
use crate::tree::{self, Look};
use gradus_controller::stop::Stop;

/// Moves the cursor home and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[0;0H";

/// Ages grow even when nothing happens.
const REDRAW: Duration = Duration::from_secs(1);

/// A burst of changes is drawn once.
const QUIET: Duration = Duration::from_millis(200);

/// Show a rollout or an experiment and all that belongs to it
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show a rollout
    #[command(visible_aliases = ["ro", "rollouts"])]
    Rollout(One),
    /// Show an experiment
    #[command(visible_aliases = ["exp", "experiments"])]
    Experiment(One),
}

#[derive(Debug, Args)]
struct One {
    /// Its name; a saved World needs none
    #[arg(required_unless_present = "world")]
    name: Option<String>,
    #[command(flatten)]
    showing: Showing,
    /// json, yaml, name, wide or jsonpath=TEMPLATE
    #[arg(long, short, value_name = "FORMAT", conflicts_with = "watch")]
    output: Option<Output>,
    #[command(flatten)]
    source: SourceArguments,
}

/// How something is shown.
#[derive(Clone, Debug, Default, Args)]
pub struct Showing {
    /// Redraw it as it changes
    #[arg(long, short)]
    pub watch: bool,
    /// Without colours
    #[arg(long)]
    pub no_color: bool,
    /// With --watch: end after so many seconds
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    pub timeout_seconds: u64,
}

/// Prints the object, or keeps showing it.
pub async fn run(arguments: &Arguments, connection: &Connection) -> anyhow::Result<()> {
    let (kind, one) = match &arguments.what {
        What::Rollout(one) => (kinds::ROLLOUT, one),
        What::Experiment(one) => (kinds::EXPERIMENT, one),
    };
    if one.showing.watch && one.source.is_offline() {
        bail!("--watch needs a cluster: files and saved Worlds do not change");
    }
    let name = one.name.as_deref().unwrap_or_default();
    let source = one.source.open(connection).await?;
    if let (Source::Live(cluster), true) = (&source, one.showing.watch) {
        return watch(cluster, &kind, name, &one.showing).await;
    }
    let (head, objects) = source.read(&kind, name).await?;
    let text = match &one.output {
        Some(output) => output.of(&head)?,
        None => None,
    };
    let look = look(&one.showing, source.now());
    let text = text.unwrap_or_else(|| draw(&kind, &head, &objects, look));
    Ok(output::print(&text)?)
}

fn look(showing: &Showing, now: Timestamp) -> Look {
    Look { paint: Paint::unless(showing.no_color), width: width(), now }
}

fn draw(kind: &Kind, head: &Value, objects: &NamespaceObjects, look: Look) -> String {
    if *kind == kinds::EXPERIMENT {
        return tree::experiment(&view::experiment(head, objects), look);
    }
    tree::rollout(&view::rollout(head, objects), look)
}

/// Shows an object live until somebody ends it, or the time given for it.
pub async fn watch(
    cluster: &Cluster,
    kind: &Kind,
    name: &str,
    showing: &Showing,
) -> anyhow::Result<()> {
    // As people know it: a watched Rollout ends well, a watched Experiment dies of the signal.
    let mut stop = if *kind == kinds::ROLLOUT { Some(Stop::listen()?) } else { None };
    let mut live = Live::start(cluster, kind, name);
    tokio::select! {
        synced = live.sync() => synced?,
        () = asked(stop.as_mut()) => return Ok(()),
    }
    if live.head().is_none() {
        return Err(near::absent(cluster, kind, name).await);
    }
    let end = match showing.timeout_seconds {
        0 => None,
        seconds => Some(Instant::now() + Duration::from_secs(seconds)),
    };
    let mut is_gone = false;
    loop {
        match live.head() {
            Some(head) => {
                is_gone = false;
                let text = draw(kind, head, &live.objects(), look(showing, Timestamp::now()));
                output::print(&format!("{CLEAR}{}", in_view(&text, height())))?;
                if let Some(refusal) = live.trouble() {
                    // Below the picture, or it would be cleared before it is read.
                    output::warn(&format!("warning: not up to date: {refusal}; trying again"));
                }
            }
            None if !is_gone => {
                is_gone = true;
                output::warn(&format!("warning: {}", near::said(kind, name)));
            }
            None => {}
        }
        tokio::select! {
            () = pass(&mut live) => {}
            () = asked(stop.as_mut()) => return Ok(()),
            () = until(end) => return Ok(()),
        }
    }
}

/// As much of a text as fits into so many rows: status and weight stand at its head.
fn in_view(text: &str, rows: Option<usize>) -> String {
    let count = text.lines().count();
    // One row is the cursor's, one tells what is left out.
    let Some(rows) = rows.filter(|rows| *rows > 2 && count >= *rows) else {
        return text.to_owned();
    };
    let shown = rows - 2;
    let kept: Vec<&str> = text.lines().take(shown).collect();
    format!("{}\n… {} more lines\n", kept.join("\n"), count - shown)
}

/// Until the next picture is due: something has changed and a moment of quiet has passed, or a
/// second has.
async fn pass(live: &mut Live) {
    let next = Instant::now() + REDRAW;
    let earliest = Instant::now() + QUIET;
    if tokio::time::timeout_at(next, live.changed()).await.is_ok() {
        while tokio::time::timeout_at(earliest, live.changed()).await.is_ok() {}
    }
}

async fn asked(stop: Option<&mut Stop>) {
    match stop {
        Some(stop) => stop.asked().await,
        None => std::future::pending().await,
    }
}

/// The moment, or never.
pub async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
