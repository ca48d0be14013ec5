//! How does a namespace look from one moment to the next?

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use gradus_engine::decision::Kind;
use gradus_engine::kinds;
use gradus_engine::view::NamespaceObjects;
use serde_json::Value;
use tokio::time::{Duration, Instant};

use crate::cluster::{Cluster, Refusal, Scope, WatchEvent};
use crate::output::warn;

/// Longer than a broken watch needs to fail once more.
const SILENCE: Duration = Duration::from_secs(5);

/// The kinds below a Rollout or an Experiment.
static BELOW: [Kind; 4] = [kinds::REPLICA_SET, kinds::POD, kinds::EXPERIMENT, kinds::ANALYSIS_RUN];

/// One object by name and everything of its namespace that may belong to it, kept up to date.
pub struct Live {
    told: SelectAll<BoxStream<'static, (usize, Result<WatchEvent, Refusal>)>>,
    /// By number of the watch, then by name; the first watch is that of the object itself.
    known: BTreeMap<usize, BTreeMap<String, Value>>,
    awaited: BTreeSet<usize>,
    complained: BTreeSet<usize>,
    /// When and why the server was last out of reach.
    trouble: Option<(Instant, Refusal)>,
}

impl Live {
    /// Watches from now on.
    pub fn start(cluster: &Cluster, kind: &Kind, name: &str) -> Self {
        let mut told = SelectAll::new();
        let head = (kind, Scope::named(name));
        let below = BELOW.iter().map(|kind| (kind, Scope::default()));
        let count = BELOW.len() + 1;
        for (number, (kind, scope)) in std::iter::once(head).chain(below).enumerate() {
            let events = cluster.watch(kind, scope);
            told.push(events.map(move |event| (number, event)).boxed());
        }
        let (known, complained) = (BTreeMap::new(), BTreeSet::new());
        Live { told, known, awaited: (0..count).collect(), complained, trouble: None }
    }

    /// Waits until everything is known once.
    pub async fn sync(&mut self) -> Result<(), Refusal> {
        while !self.awaited.is_empty() {
            self.next().await?;
        }
        Ok(())
    }

    /// Waits until something has changed.
    pub async fn changed(&mut self) -> Result<(), Refusal> {
        self.next().await
    }

    /// Why what is known is old, if it is. A broken watch is tried every second, so silence means
    /// that it was mended.
    pub fn trouble(&self) -> Option<&Refusal> {
        let (at, refusal) = self.trouble.as_ref()?;
        (at.elapsed() < SILENCE).then_some(refusal)
    }

    /// The object itself, if it is there.
    pub fn head(&self) -> Option<&Value> {
        self.known.get(&0)?.values().next()
    }

    /// Everything else.
    pub fn objects(&self) -> NamespaceObjects {
        let of = |number: usize| -> Vec<Value> {
            self.known
                .get(&number)
                .into_iter()
                .flatten()
                .map(|(_, object)| object.clone())
                .collect()
        };
        NamespaceObjects {
            replica_sets: of(1),
            pods: of(2),
            experiments: of(3),
            analysis_runs: of(4),
        }
    }

    async fn next(&mut self) -> Result<(), Refusal> {
        let Some((number, event)) = self.told.next().await else { return Ok(()) };
        let known = self.known.entry(number).or_default();
        match event {
            Ok(WatchEvent::Applied(object)) => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                known.insert(name, object);
            }
            Ok(WatchEvent::Deleted(name)) => drop(known.remove(&name)),
            Ok(WatchEvent::Synced(names)) => {
                known.retain(|name, _| names.contains(name));
                self.awaited.remove(&number);
            }
            // Without the object there is nothing to show.
            Err(refusal) if number == 0 && self.awaited.contains(&0) => return Err(refusal),
            Err(refusal @ Refusal::Unreachable { .. }) if !self.awaited.contains(&number) => {
                self.trouble = Some((Instant::now(), refusal));
            }
            Err(refusal) => {
                self.awaited.remove(&number);
                if self.complained.insert(number) {
                    complain(number.checked_sub(1).map(|below| &BELOW[below]), &refusal);
                }
            }
        }
        Ok(())
    }
}

/// Everything below, read once. What may not be read is said and left out.
pub async fn below(cluster: &Cluster) -> NamespaceObjects {
    let [sets, pods, experiments, runs] = &BELOW;
    let (replica_sets, pods, experiments, analysis_runs) = futures::join!(
        list(cluster, sets),
        list(cluster, pods),
        list(cluster, experiments),
        list(cluster, runs)
    );
    NamespaceObjects { replica_sets, pods, experiments, analysis_runs }
}

async fn list(cluster: &Cluster, kind: &Kind) -> Vec<Value> {
    cluster.list(kind, "").await.unwrap_or_else(|refusal| {
        complain(Some(kind), &refusal);
        Vec::new()
    })
}

fn complain(kind: Option<&Kind>, refusal: &Refusal) {
    match kind {
        Some(kind) => warn(&format!("warning: shown without {}s: {refusal}", kind.name)),
        None => warn(&format!("warning: {refusal}; trying again")),
    }
}
