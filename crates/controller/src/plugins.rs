//! Runs plugins: one process for each that is configured and used, started when it is first called,
//! restarted after it ended. A plugin that crashes, hangs or talks nonsense costs those who call it
//! their answers, and nobody else anything.

mod config;
mod confine;
pub mod conformance;
mod fetch;
mod folder;
mod lines;
mod metric;
mod output;
mod pace;
mod process;
mod router;
mod step;
mod subject;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gradus_api::names::CONFIG_MAP;
use gradus_engine::ask::{
    MetricCall, MetricReply, PluginCall, PluginReply, Question, Reply, RouterCall, RouterReply,
};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_goplugin::PluginKind;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::{Cluster, WriteError};
use crate::hidden::Hidden;
use config::{Config, PluginEntry};
use process::{CallFailure, Running};

pub use lines::{PROTOCOL as LINES_PROTOCOL, VERSION as LINES_VERSION};

/// How long what it says is taken as known.
const CONFIG_AGE: Duration = Duration::from_secs(10);
/// The first pause after a plugin could not be started, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The most words of a plugin that a status stores, in bytes.
const WORDS_LIMIT: usize = 1024;

/// The host of all plugins. Clones share them.
#[derive(Clone)]
pub struct Plugins {
    /// Where the ConfigMap is.
    namespace: Arc<str>,
    /// Where programs are kept.
    folder: Arc<PathBuf>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    config: Mutex<Option<(Instant, Arc<Config>)>>,
    slots: Mutex<BTreeMap<(PluginKind, String), SharedSlot>>,
}

type SharedSlot = Arc<tokio::sync::Mutex<Slot>>;

/// One plugin: its process, and what became of the last attempts to start it.
#[derive(Default)]
struct Slot {
    running: Option<(Arc<PluginEntry>, Running)>,
    failures: u32,
    not_before: Option<Instant>,
    error: String,
}

/// Why a plugin did not do what it should.
#[derive(Debug)]
enum PluginError {
    /// The configuration could not be read: nothing was called.
    Unread(WriteError),
    /// It is switched off.
    Disabled,
    /// It is not configured or does not start; what is wrong, in Argo Rollouts' words.
    Unusable(String),
    /// It was called.
    Call(CallFailure),
}

impl Plugins {
    /// Plugins that the ConfigMap of this namespace lists; programs are kept below this folder.
    pub fn new(namespace: &str, folder: PathBuf) -> Self {
        let folder = Arc::new(folder);
        Plugins { namespace: namespace.into(), folder, shared: Arc::default() }
    }

    /// As Argo Rollouts finds them: in the namespace of the pod, below the working folder.
    pub fn of_this_pod() -> Self {
        const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
        let named = std::env::var("POD_NAMESPACE").ok();
        let account = || std::fs::read_to_string(ACCOUNT).ok();
        let found = named.or_else(account).map(|name| name.trim().to_owned());
        let found = found.filter(|name| !name.is_empty());
        let namespace = found.unwrap_or_else(|| "argo-rollouts".to_owned());
        Plugins::new(&namespace, PathBuf::from("plugin-bin"))
    }

    /// Calls a step plugin for a Rollout.
    pub async fn step<C: Cluster>(
        &self,
        cluster: &C,
        rollout: &ObjectRef,
        call: &PluginCall,
    ) -> Result<PluginReply, WriteError> {
        step::call(self, cluster, rollout, call).await
    }

    /// Calls a metric plugin for an AnalysisRun, about this metric with its secrets, which are these.
    pub(crate) async fn metric<C: Cluster>(
        &self,
        cluster: &C,
        run: &ObjectRef,
        call: &MetricCall,
        metric: (&Value, &Hidden),
    ) -> Result<MetricReply, WriteError> {
        metric::call(self, cluster, run, call, metric).await
    }

    /// Calls a traffic plugin for a Rollout.
    pub async fn router<C: Cluster>(
        &self,
        cluster: &C,
        rollout: &ObjectRef,
        call: &RouterCall,
    ) -> Result<RouterReply, WriteError> {
        router::call(self, cluster, rollout, call).await
    }

    /// Ends all plugins: each is asked first, and killed if it does not end soon.
    pub async fn stop(&self) {
        let slots: Vec<_> = {
            let slots = self.shared.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.values().cloned().collect()
        };
        let ends = slots.into_iter().map(|slot| async move {
            let stopped = std::mem::take(&mut *slot.lock().await);
            if let Some((_, running)) = stopped.running {
                running.stop().await;
            }
        });
        futures::future::join_all(ends).await;
    }

    /// Calls a method of a plugin; what it answers is JSON whatever the plugin speaks.
    async fn call<C: Cluster>(
        &self,
        cluster: &C,
        kind: PluginKind,
        name: &str,
        method: &str,
        argument: Value,
    ) -> Result<Value, PluginError> {
        let hidden = Hidden::default();
        self.call_hiding(cluster, (kind, name), (method, argument), &hidden).await
    }

    /// The same with secrets in the argument: they are in no line of our log that the plugin prints.
    async fn call_hiding<C: Cluster>(
        &self,
        cluster: &C,
        (kind, name): (PluginKind, &str),
        (method, argument): (&str, Value),
        hidden: &Hidden,
    ) -> Result<Value, PluginError> {
        let config = self.config(cluster).await.map_err(PluginError::Unread)?;
        let entry = config.entry(kind, name).map_err(|why| {
            PluginError::Unusable(format!("unable to find plugin ({name}): {why}"))
        })?;
        if entry.is_disabled {
            return Err(PluginError::Disabled);
        }
        let slot = {
            let mut slots = self.shared.slots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry((kind, name.to_owned())).or_default())
        };
        let running = {
            let mut slot = slot.lock().await;
            self.ready(cluster, kind, &entry, &mut slot).await?
        };
        running.unprinted.add(hidden);
        let answer = running.call(method, argument, entry.timeout).await;
        if answer.is_ok() {
            slot.lock().await.failures = 0;
        }
        answer.map_err(PluginError::Call)
    }

    /// The process of a plugin, started if there is none, or none of this configuration.
    async fn ready<C: Cluster>(
        &self,
        cluster: &C,
        kind: PluginKind,
        entry: &Arc<PluginEntry>,
        slot: &mut Slot,
    ) -> Result<Running, PluginError> {
        if let Some((known, running)) = &slot.running
            && known == entry
            && running.is_there()
        {
            return Ok(running.clone());
        }
        if let Some((_, old)) = slot.running.take() {
            tokio::spawn(old.stop());
        }
        let now = Instant::now();
        if slot.not_before.is_some_and(|moment| now < moment) {
            return Err(PluginError::Unusable(slot.error.clone()));
        }
        match self.start(cluster, kind, entry).await {
            Ok(running) => {
                tracing::info!(plugin = entry.name, "plugin started");
                // One that starts and dies at once must not be started without a pause, either.
                slot.not_before = Some(now + pause(slot.failures));
                slot.failures = slot.failures.saturating_add(1);
                let name = &entry.name;
                slot.error = format!(
                    "unable to get plugin client ({name}): plugin exited before we could connect"
                );
                slot.running = Some((Arc::clone(entry), running.clone()));
                Ok(running)
            }
            Err(why) => {
                tracing::error!(plugin = entry.name, error = why, "plugin does not start");
                slot.not_before = Some(Instant::now() + pause(slot.failures));
                slot.failures = slot.failures.saturating_add(1);
                slot.error.clone_from(&why);
                Err(PluginError::Unusable(why))
            }
        }
    }

    async fn start<C: Cluster>(
        &self,
        cluster: &C,
        kind: PluginKind,
        entry: &Arc<PluginEntry>,
    ) -> Result<Running, String> {
        let name = &entry.name;
        let unfit = |why: String| format!("unable to get plugin client ({name}): {why}");
        let headers = fetch::headers(cluster, &self.namespace, entry).await.map_err(unfit)?;
        let way = fetch::Way { headers, trust: crate::ask::system_trust };
        let program = fetch::program(&self.folder, kind, entry, way).await.map_err(unfit)?;
        process::start(kind, entry, &program).await
    }

    /// What the ConfigMap says; where it cannot be read, what it said before.
    async fn config<C: Cluster>(&self, cluster: &C) -> Result<Arc<Config>, WriteError> {
        let known = self.shared.config.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((read_at, config)) = &known
            && read_at.elapsed() < CONFIG_AGE
        {
            return Ok(Arc::clone(config));
        }
        const KIND: Kind = Kind::new("", "v1", "ConfigMap", "configmaps");
        let target = ObjectRef::new(KIND, &self.namespace, &CONFIG_MAP.into());
        let config = match (cluster.read_whole(&target).await, known) {
            (Ok(found), _) => Arc::new(Config::read(&found.unwrap_or_default()["data"])),
            (Err(error), Some((_, config))) => {
                tracing::warn!(error = error.message, "the list of plugins cannot be read again");
                config
            }
            (Err(error), None) => return Err(error),
        };
        let mut kept = self.shared.config.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = kept.as_ref().is_none_or(|(_, known)| *known != config);
        if is_news {
            config.report();
            self.retire(&config);
        }
        *kept = Some((Instant::now(), Arc::clone(&config)));
        Ok(config)
    }
}

impl Plugins {
    /// Ends plugins that are listed no more, or switched off.
    fn retire(&self, config: &Config) {
        let slots = self.shared.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let is_used = |kind, name: &str| config.entry(kind, name).is_ok_and(|one| !one.is_disabled);
        let gone = slots.iter().filter(|((kind, name), _)| !is_used(*kind, name));
        for slot in gone.map(|(_, slot)| Arc::clone(slot)) {
            tokio::spawn(async move {
                let stopped = slot.lock().await.running.take();
                if let Some((entry, running)) = stopped {
                    tracing::info!(plugin = entry.name, "plugin is listed no more");
                    running.stop().await;
                }
            });
        }
    }
}

/// Why plugins that the `data` of a ConfigMap lists would be refused; each begins with its list.
pub fn refused(data: &Value) -> Vec<String> {
    Config::read(data).refused().map(str::to_owned).collect()
}

/// The plugins that the `data` of a ConfigMap lists for one interface, usable or not.
pub fn listed(data: &Value, interface: PluginKind) -> Vec<String> {
    Config::read(data).names(interface).map(str::to_owned).collect()
}

/// The reply to a question for a plugin that is not configured; `None` for any other question.
pub fn unconfigured(question: &Question) -> Option<Reply> {
    Some(match question {
        Question::Plugin(PluginCall { name, .. }) => {
            Reply::Plugin(step::unusable(name, &missing(name)))
        }
        Question::MetricPlugin(call) => Reply::MetricPlugin(metric::unusable(&missing(&call.name))),
        Question::RouterPlugin(call) => {
            Reply::RouterPlugin(router::unusable(&call.name, &missing(&call.name)))
        }
        _ => return None,
    })
}

/// Words of a plugin as a status may store them: a plugin that talks much must not fill it.
fn shortened(mut text: String) -> String {
    if text.len() > WORDS_LIMIT {
        text.truncate(text.floor_char_boundary(WORDS_LIMIT - '…'.len_utf8()));
        text.push('…');
    }
    text
}

fn missing(name: &str) -> String {
    format!("unable to find plugin ({name}): {}", config::missing(name))
}

fn pause(failures: u32) -> Duration {
    let (first, longest) = PAUSES;
    first.saturating_mul(1 << failures.min(10)).min(longest)
}
