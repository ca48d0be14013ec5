//! `create`: objects from files, and AnalysisRuns from templates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use gradus_api::names::{GROUP, kind};
use gradus_engine::command::analysis_run::{Wish, analysis_run};
use gradus_engine::decision::Kind;
use gradus_engine::kinds;
use serde_json::Value;

use super::get::{Showing, watch};
use crate::cluster::Cluster;
use crate::source::read_text;
use crate::{near, output};
use gradus_manifest::{self as manifest, Document, Place, Source};

/// Create a rollout, experiment, analysis template or analysis run
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    /// File with objects, YAML or JSON, each of which is made; may be given several times
    #[arg(long = "filename", short = 'f', value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Show the object as it changes
    #[arg(long, short)]
    watch: bool,
    /// With --watch: without colours
    #[arg(long)]
    no_color: bool,
    /// Further arguments are ignored
    #[arg(hide = true)]
    rest: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Create an analysis run from a template
    #[command(name = "analysisrun", visible_aliases = ["ar", "analysisruns"])]
    AnalysisRun(Box<Run>),
}

#[derive(Debug, Args)]
struct Run {
    /// Its name
    #[arg(long)]
    name: Option<String>,
    /// A prefix to which the server adds letters; without it the template's name
    #[arg(long, value_name = "PREFIX")]
    generate_name: Option<String>,
    /// The controller instance that serves it
    #[arg(long, value_name = "ID")]
    instance_id: Option<String>,
    /// Value of an argument of the template; may be given several times
    #[arg(long = "argument", short, value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// Template in the cluster
    #[arg(long, value_name = "TEMPLATE")]
    from: Option<String>,
    /// Template in a file
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// --from names a ClusterAnalysisTemplate
    #[arg(long)]
    global: bool,
    /// Further arguments are ignored
    #[arg(hide = true)]
    rest: Vec<String>,
}

/// Creates the objects, in order; the first refusal ends it.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    if let Some(What::AnalysisRun(run)) = &arguments.what {
        return start_run(run, cluster).await;
    }
    // Everything is read first: a file that cannot be made as a whole makes nothing.
    let mut wanted = Vec::new();
    for path in &arguments.files {
        for object in read_objects(path)? {
            wanted.push((path, kind_of(&object)?, object));
        }
    }
    if arguments.watch && wanted.len() > 1 {
        bail!("Cannot watch multiple resources");
    }
    let mut created = None;
    for (path, kind, object) in wanted {
        let namespace = match object["metadata"]["namespace"].as_str() {
            _ if kind == kinds::CLUSTER_ANALYSIS_TEMPLATE => "",
            Some(namespace) => namespace,
            None => cluster.namespace.as_str(),
        };
        let stored = cluster.create(&kind, namespace, &object).await;
        let stored = stored.with_context(|| path.display().to_string())?;
        say_created(&kind, &stored)?;
        created = Some((kind, stored));
    }
    let Some((kind, stored)) = created.filter(|_| arguments.watch) else { return Ok(()) };
    if kind != kinds::ROLLOUT && kind != kinds::EXPERIMENT {
        bail!("Can only watch resources of type Rollout or Experiment");
    }
    let mut there = cluster.clone();
    let text = |field: &str| stored["metadata"][field].as_str().unwrap_or_default().to_owned();
    there.namespace = text("namespace");
    let showing = Showing { watch: true, no_color: arguments.no_color, timeout_seconds: 0 };
    watch(&there, &kind, &text("name"), &showing).await
}

async fn start_run(wish: &Run, cluster: &Cluster) -> anyhow::Result<()> {
    let pair = |text: &String| -> anyhow::Result<(String, String)> {
        let pair = text.split_once('=').context("arguments must be in the form NAME=VALUE")?;
        Ok((pair.0.to_owned(), pair.1.to_owned()))
    };
    let from = wish.from.as_ref().filter(|name| !name.is_empty());
    let from_file = wish.from_file.as_ref().filter(|path| !path.as_os_str().is_empty());
    if from.is_some() == from_file.is_some() {
        bail!("one of --from or --from-file must be specified");
    }
    let given = wish.arguments.iter().map(pair).collect::<anyhow::Result<Vec<_>>>()?;
    let template = match (from, from_file) {
        (Some(name), _) => {
            let kind = if wish.global {
                &kinds::CLUSTER_ANALYSIS_TEMPLATE
            } else {
                &kinds::ANALYSIS_TEMPLATE
            };
            let mut place = cluster.clone();
            if wish.global {
                place.namespace = String::new();
            }
            near::get(&place, kind, name).await?
        }
        (None, path) => read_object(path.context("one of the two is there")?)?,
    };
    let run = analysis_run(
        &template,
        &Wish {
            name: wish.name.clone().filter(|name| !name.is_empty()),
            generate_name: wish.generate_name.clone().filter(|prefix| !prefix.is_empty()),
            namespace: cluster.namespace.clone(),
            instance_id: wish.instance_id.clone().filter(|id| !id.is_empty()),
            arguments: given,
        },
    )?;
    let stored = cluster.create(&kinds::ANALYSIS_RUN, &cluster.namespace, &run).await?;
    Ok(say_created(&kinds::ANALYSIS_RUN, &stored)?)
}

/// The first object of a file.
fn read_object(path: &Path) -> anyhow::Result<Value> {
    let first = read_objects(path)?.into_iter().next();
    first.with_context(|| format!("{}: no object", path.display()))
}

/// All objects of a file; a key that stands twice is refused.
fn read_objects(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = read_text(path)?;
    let source = Arc::new(Source { name: path.display().to_string(), text });
    let documents = manifest::read(&source).map_err(|malformed| {
        let Place { line, column, .. } = malformed.place;
        anyhow::anyhow!("{}:{line}:{column}: {}", source.name, malformed.message)
    })?;
    if documents.is_empty() {
        bail!("{}: no object", source.name);
    }
    for document in &documents {
        if let Some((key, Place { line, column, .. })) = document.root.repeated_key() {
            bail!("{}:{line}:{column}: key {key:?} already set in map", source.name);
        }
    }
    Ok(documents.iter().map(Document::json).collect())
}

fn kind_of(object: &Value) -> anyhow::Result<Kind> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, _) = text("apiVersion").split_once('/').unwrap_or_default();
    let name = text("kind");
    let known = match name {
        kind::ROLLOUT => Some(kinds::ROLLOUT),
        kind::EXPERIMENT => Some(kinds::EXPERIMENT),
        kind::ANALYSIS_TEMPLATE => Some(kinds::ANALYSIS_TEMPLATE),
        kind::CLUSTER_ANALYSIS_TEMPLATE => Some(kinds::CLUSTER_ANALYSIS_TEMPLATE),
        kind::ANALYSIS_RUN => Some(kinds::ANALYSIS_RUN),
        _ => None,
    };
    // Of another version the server says that it does not match.
    let known = known.filter(|_| group == GROUP);
    // What stands in one file with a Rollout: its Services and its Ingress.
    let beside = [kinds::SERVICE, kinds::INGRESS, kinds::DEPLOYMENT];
    let beside = beside.into_iter().find(|kind| *kind.group == *group && *kind.name == *name);
    known.or(beside).with_context(|| format!("creates of {group}/{name} unsupported"))
}

fn say_created(kind: &Kind, stored: &Value) -> std::io::Result<()> {
    let name = stored["metadata"]["name"].as_str().unwrap_or_default();
    let dot = if kind.group.is_empty() { "" } else { "." };
    output::say(&format!("{}{dot}{}/{name} created", kind.name.to_lowercase(), kind.group))
}
