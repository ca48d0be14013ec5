//! `list rollouts` and `list experiments`: many at a glance.

mod rows;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, Subcommand};
use futures::StreamExt;
use gradus_engine::kinds;
use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::{Cluster, Scope, WatchEvent};
use crate::output::{self, Output};
use crate::table::{Cell, align};

/// What is said instead of an empty table.
const NOTHING_FOUND: &str = "No resources found.";

/// Rows that change together are printed together.
const FLUSH: Duration = Duration::from_millis(500);

/// Rows that are printed at once.
const AT_ONCE: usize = 64;

/// A server that is away longer than this many attempts stays away.
const MOST_FAILURES: usize = 6;

/// List rollouts or experiments
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List rollouts
    #[command(visible_aliases = ["ro", "rollout"])]
    Rollouts(Rollouts),
    /// List experiments
    #[command(visible_aliases = ["exp", "experiment"])]
    Experiments(Experiments),
}

#[derive(Debug, Args)]
struct Rollouts {
    /// Only the rollout of this name
    #[arg(long)]
    name: Option<String>,
    /// Print a row whenever it changes
    #[arg(long, short, conflicts_with = "output")]
    watch: bool,
    /// With the time at which each row was printed
    #[arg(long)]
    timestamps: bool,
    #[command(flatten)]
    scope: Wide,
}

#[derive(Debug, Args)]
struct Experiments {
    #[command(flatten)]
    scope: Wide,
}

#[derive(Debug, Args)]
struct Wide {
    /// Those of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// json, yaml, name, wide or jsonpath=TEMPLATE
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Output>,
    /// Further arguments are ignored
    #[arg(hide = true)]
    rest: Vec<String>,
}

/// Prints the list, or keeps printing what changes.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    match &arguments.what {
        What::Rollouts(wish) => rollouts(wish, cluster).await,
        What::Experiments(wish) => {
            let listed = cluster.list_scope(&kinds::EXPERIMENT, wish.scope.scope(None)).await?;
            if let Some(text) = in_form(&wish.scope, &listed)? {
                return Ok(output::print(&text)?);
            }
            if listed.is_empty() {
                output::warn(NOTHING_FOUND);
                return Ok(());
            }
            let now = Timestamp::now();
            let namespaced = wish.scope.all_namespaces;
            let mut rows = vec![rows::experiment_header(namespaced)];
            rows.extend(listed.iter().map(|object| rows::experiment(object, namespaced, now)));
            print_rows(&rows, &rows::experiment_widths(namespaced))
        }
    }
}

async fn rollouts(wish: &Rollouts, cluster: &Cluster) -> anyhow::Result<()> {
    let scope = wish.scope.scope(wish.name.as_deref());
    let listed = cluster.list_scope(&kinds::ROLLOUT, scope).await?;
    if let Some(text) = in_form(&wish.scope, &listed)? {
        return Ok(output::print(&text)?);
    }
    let columns = rows::Columns {
        timestamps: wish.timestamps,
        namespaces: wish.scope.all_namespaces,
        wide: matches!(wish.scope.output, Some(Output::Wide)),
    };
    let mut rows = vec![columns.header()];
    if listed.is_empty() && !wish.watch {
        output::warn(NOTHING_FOUND);
        return Ok(());
    }
    let now = Timestamp::now();
    rows.extend(listed.iter().map(|object| columns.row(object, now)));
    print_rows(&rows, &columns.widths())?;
    if wish.watch {
        return watch(cluster, scope, columns, &listed).await;
    }
    Ok(())
}

/// Prints rows whose values have changed, until somebody ends it or the server stays away.
async fn watch(
    cluster: &Cluster,
    scope: Scope<'_>,
    columns: rows::Columns,
    listed: &[Value],
) -> anyhow::Result<()> {
    let mut told: BTreeMap<String, Vec<String>> =
        listed.iter().map(|object| (rows::key(object), rows::values(object))).collect();
    let mut events = cluster.watch(&kinds::ROLLOUT, scope).ready_chunks(AT_ONCE);
    let mut failures = 0;
    while let Some(chunk) = events.next().await {
        let mut rows = Vec::new();
        for event in chunk {
            match event {
                Ok(WatchEvent::Applied(object)) => {
                    failures = 0;
                    let values = rows::values(&object);
                    if told.insert(rows::key(&object), values.clone()) != Some(values) {
                        rows.push(columns.row(&object, Timestamp::now()));
                    }
                }
                Ok(WatchEvent::Deleted(_) | WatchEvent::Synced(_)) => failures = 0,
                Err(refusal) if failures == MOST_FAILURES => return Err(refusal.into()),
                Err(refusal) => {
                    failures += 1;
                    output::warn(&format!("warning: {refusal}; trying again"));
                }
            }
        }
        print_rows(&rows, &columns.widths())?;
        tokio::time::sleep(FLUSH).await;
    }
    Ok(())
}

impl Wide {
    fn scope<'n>(&self, name: Option<&'n str>) -> Scope<'n> {
        Scope { name, everywhere: self.all_namespaces }
    }
}

fn in_form(scope: &Wide, listed: &[Value]) -> anyhow::Result<Option<String>> {
    match &scope.output {
        Some(output) => output.of(&output::list(listed.to_vec())),
        None => Ok(None),
    }
}

fn print_rows(rows: &[Vec<Cell>], widths: &[usize]) -> anyhow::Result<()> {
    Ok(output::print(&align(rows, widths))?)
}
