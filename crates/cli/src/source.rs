//! Where do objects come from: a cluster, a folder of exported YAML, or a saved World?

mod world;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use gradus_api::names::kind;
use gradus_engine::decision::Kind;
use gradus_engine::kinds;
use gradus_engine::view::NamespaceObjects;
use gradus_engine::world::World;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::cluster::{Cluster, Refusal};
use crate::connection::Connection;
use crate::{live, near};
use gradus_manifest as manifest;

/// Files instead of a cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct SourceArguments {
    /// A folder of exported YAML or JSON, or one file, instead of a cluster
    #[arg(long, value_name = "FOLDER", conflicts_with = "world")]
    from_files: Option<PathBuf>,
    /// A saved World instead of a cluster; - reads standard input
    #[arg(long, value_name = "FILE")]
    world: Option<PathBuf>,
    /// The moment at which the files were true; without it, when the newest was written
    #[arg(long, value_name = "TIME", requires = "from_files")]
    at: Option<Timestamp>,
}

/// Where objects come from.
pub enum Source {
    /// A cluster, now.
    Live(Box<Cluster>),
    /// Exported objects, at the moment of the export.
    Files(Exported),
    /// What the controller's health port showed.
    World(Box<Saved>),
}

/// Objects of any kind, exported with `kubectl get -o yaml`.
pub struct Exported {
    objects: Vec<Value>,
    /// The namespace that is meant, if one was named.
    namespace: Option<String>,
    /// When they were true.
    pub at: Timestamp,
}

/// What /debug/world shows.
#[derive(Deserialize)]
pub struct Saved {
    /// When it was true.
    pub now: Timestamp,
    /// The kind of its object.
    #[serde(default = "rollout")]
    pub kind: String,
    /// What the decision looked at.
    pub world: Value,
    /// What was decided, as it was printed.
    pub decision: Option<Value>,
}

/// What a World without a kind is about.
fn rollout() -> String {
    kind::ROLLOUT.to_owned()
}

impl SourceArguments {
    /// The source that the flags name.
    pub async fn open(&self, connection: &Connection) -> anyhow::Result<Source> {
        if let Some(path) = &self.world {
            return Ok(Source::World(Box::new(read_world(path)?)));
        }
        if let Some(folder) = &self.from_files {
            let namespace = connection.namespace().map(str::to_owned);
            return Ok(Source::Files(Exported::read(folder, namespace, self.at)?));
        }
        Ok(Source::Live(Box::new(connection.open().await?)))
    }

    /// Whether there is no cluster to watch.
    pub fn is_offline(&self) -> bool {
        self.world.is_some() || self.from_files.is_some()
    }

    /// Whether the World itself names the object.
    pub fn is_world(&self) -> bool {
        self.world.is_some()
    }
}

impl Source {
    /// One object, and everything that may belong to it.
    pub async fn read(&self, kind: &Kind, name: &str) -> anyhow::Result<(Value, NamespaceObjects)> {
        match self {
            Source::Live(cluster) => {
                let head = match cluster.get(kind, name).await {
                    Ok(head) => head,
                    Err(Refusal::NotFound(_)) => {
                        return Err(near::absent(cluster, kind, name).await);
                    }
                    Err(refusal) => return Err(refusal.into()),
                };
                Ok((head, live::below(cluster).await))
            }
            Source::Files(exported) => {
                let head = exported.find(kind, name)?;
                Ok((head, exported.below()))
            }
            Source::World(saved) => {
                if *kind != kinds::ROLLOUT || !kind.is_called(&saved.kind) {
                    bail!("a saved World holds one {} and no {}", saved.kind, kind.name);
                }
                let world: World = serde_json::from_value(saved.world.clone())
                    .context("expected the World of a Rollout")?;
                world::objects(&world, name)
            }
        }
    }

    /// The moment that ages are counted to.
    pub fn now(&self) -> Timestamp {
        match self {
            Source::Live(_) => Timestamp::now(),
            Source::Files(exported) => exported.at,
            Source::World(saved) => saved.now,
        }
    }
}

impl Exported {
    fn read(
        folder: &Path,
        namespace: Option<String>,
        at: Option<Timestamp>,
    ) -> anyhow::Result<Self> {
        let mut files = files(folder)?;
        files.sort();
        let mut objects = Vec::new();
        let mut newest = Timestamp::UNIX_EPOCH;
        for path in files {
            let written = std::fs::metadata(&path)?.modified()?;
            newest = newest.max(Timestamp::try_from(written)?);
            objects.extend(read_objects(&path)?);
        }
        if objects.is_empty() {
            bail!("{}: no object in any .yaml, .yml or .json file", folder.display());
        }
        Ok(Exported { objects, namespace, at: at.unwrap_or(newest) })
    }

    /// Everything of a kind, in the namespace that is meant.
    pub fn list(&self, kind: &Kind) -> Vec<Value> {
        let api_version = kind.api_version();
        let is_meant = |object: &&Value| {
            object["apiVersion"] == *api_version
                && object["kind"] == *kind.name
                && self
                    .namespace
                    .as_ref()
                    .is_none_or(|name| object["metadata"]["namespace"] == **name)
        };
        self.objects.iter().filter(is_meant).cloned().collect()
    }

    /// The one object of that kind and name.
    pub fn find(&self, kind: &Kind, name: &str) -> anyhow::Result<Value> {
        let listed = self.list(kind);
        let mut found = listed.iter().filter(|object| object["metadata"]["name"] == name);
        match (found.next(), found.next()) {
            (Some(object), None) => Ok(object.clone()),
            (Some(_), Some(_)) => bail!("several {}s are called {name}: choose with -n", kind.name),
            (None, _) => {
                bail!("{}\n  {}", near::said(kind, name), self.hint(kind, name, &listed))
            }
        }
    }

    /// What helps somebody whose object is not in the files, or not in that namespace.
    fn hint(&self, kind: &Kind, name: &str, listed: &[Value]) -> String {
        let names = near::names(listed);
        let near = near::offered(name, &names);
        if !near.is_empty() {
            return format!("did you mean {}?", near.join(" or "));
        }
        let is_same =
            |object: &&Value| object["metadata"]["name"] == name && object["kind"] == *kind.name;
        let elsewhere = self.objects.iter().find(is_same);
        match elsewhere.and_then(|object| object["metadata"]["namespace"].as_str()) {
            Some(place) => format!("the files hold one of namespace {place}: add -n {place}"),
            None if names.is_empty() => format!("the files hold no {}s", kind.name),
            None => format!("the files hold {}", names.join(", ")),
        }
    }

    fn below(&self) -> NamespaceObjects {
        NamespaceObjects {
            replica_sets: self.list(&kinds::REPLICA_SET),
            pods: self.list(&kinds::POD),
            experiments: self.list(&kinds::EXPERIMENT),
            analysis_runs: self.list(&kinds::ANALYSIS_RUN),
        }
    }
}

/// The files of a folder and of the folders in it; a file is its own.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if folder.is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = std::fs::read_dir(folder);
    let entries = entries.with_context(|| format!("cannot read folder {}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if ["yaml", "yml", "json"].contains(&ending) {
            found.push(path);
        }
    }
    Ok(found)
}

/// The objects of one file; those of a list one by one. An export may be large, so JSON, of which
/// everything is known, is not taken for YAML.
fn read_objects(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let documents = match serde_json::from_str::<Value>(&text) {
        Ok(document) => vec![document],
        Err(_) => read_yaml(path, text)?,
    };
    let mut objects = Vec::new();
    for mut document in documents {
        match document.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => objects.extend(items),
            _ if document["kind"].is_string() => objects.push(document),
            _ => {}
        }
    }
    Ok(objects)
}

fn read_yaml(path: &Path, text: String) -> anyhow::Result<Vec<Value>> {
    let source = Arc::new(manifest::Source { name: path.display().to_string(), text });
    match manifest::read(&source) {
        Ok(documents) => Ok(documents.iter().map(manifest::Document::json).collect()),
        Err(manifest::Malformed { place, message }) => {
            bail!("{}:{}:{}: {message}", source.name, place.line, place.column)
        }
    }
}

fn read_world(path: &Path) -> anyhow::Result<Saved> {
    let text = read_text(path)?;
    serde_json::from_str(&text).with_context(|| {
        format!("{} is no saved World: expected the JSON of /debug/world", path.display())
    })
}

/// The text of a file, or of standard input for `-`.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    text.with_context(|| format!("cannot read {}", path.display()))
}
