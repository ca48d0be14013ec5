//! Many alike Rollouts of one namespace: made, updated, and watched until they are done.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt, stream};
use gradus_api::names;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{RealError, side::Running};
use crate::{Failure, real::resource};

/// So many requests of ours are under way at once.
const AT_ONCE: usize = 16;
const DONE_WITHIN: Duration = Duration::from_secs(900);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What the Rollouts of a crowd look like.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Two pods, and one step at half of them.
    OneStep,
    /// The same, with one old ReplicaSet at most: what is there stays as much.
    OneStepShortHistory,
    /// One pod, no steps.
    Small,
}

/// Kept up to date by a watch until dropped.
pub(super) struct Crowd {
    api: Api<DynamicObject>,
    seen: Arc<Mutex<BTreeMap<String, Seen>>>,
    wanted: Mutex<Wanted>,
    _watch: JoinSet<()>,
}

/// What must be reached.
#[derive(Debug, Default)]
struct Wanted {
    /// The generation of each Rollout.
    generations: BTreeMap<String, i64>,
    /// The number in the newest image.
    image: u32,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    /// What the controller has observed.
    observed: i64,
    is_healthy: bool,
}

impl Crowd {
    pub fn of(client: &Client, namespace: &str) -> Self {
        let kind = resource(names::API_VERSION, names::kind::ROLLOUT);
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
        let seen = Arc::new(Mutex::new(BTreeMap::new()));
        let mut watch = JoinSet::new();
        watch.spawn(keep(api.clone(), Arc::clone(&seen)));
        Self { api, seen, wanted: Mutex::default(), _watch: watch }
    }

    pub fn names(&self) -> Vec<String> {
        lock(&self.wanted).generations.keys().cloned().collect()
    }

    pub async fn create(&self, count: usize, shape: Shape) -> Result<(), Failure> {
        let image = self.next_image();
        let creates = (0..count).map(|number| {
            let object = rollout(&format!("web-{number:05}"), shape, &image);
            async move {
                let object: DynamicObject = serde_json::from_value(object)?;
                Ok::<_, Failure>(self.api.create(&PostParams::default(), &object).await?)
            }
        });
        self.all_are_written(stream::iter(creates)).await
    }

    /// Gives these a new image.
    pub async fn update(&self, names: &[String]) -> Result<(), Failure> {
        let containers = json!([{ "name": "web", "image": self.next_image() }]);
        let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
        let patches = names.iter().map(|name| {
            let patch = Patch::Merge(patch.clone());
            async move { Ok(self.api.patch(name, &PatchParams::default(), &patch).await?) }
        });
        self.all_are_written(stream::iter(patches)).await
    }

    /// Changes `spec.replicas` as an autoscaler does.
    pub async fn scale(&self, name: &str, replicas: u32) -> Result<(), Failure> {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.api.patch_scale(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Makes one that is not part of the crowd.
    pub async fn comes(&self, name: &str) -> Result<(), Failure> {
        let object = serde_json::from_value(rollout(name, Shape::Small, "example.com/web:1"))?;
        self.api.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Removes one that is not part of the crowd.
    pub async fn goes(&self, name: &str) -> Result<(), Failure> {
        self.api.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    async fn all_are_written<W>(
        &self,
        writes: impl futures::Stream<Item = W>,
    ) -> Result<(), Failure>
    where
        W: Future<Output = Result<DynamicObject, Failure>>,
    {
        let mut written = writes.buffer_unordered(AT_ONCE).boxed_local();
        while let Some(object) = written.try_next().await? {
            let generation = object.metadata.generation.unwrap_or_default();
            lock(&self.wanted).generations.insert(object.name_any(), generation);
        }
        Ok(())
    }

    /// Returns when all are healthy as they are wanted.
    pub async fn is_done(&self, running: &mut Running, what: &'static str) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            let (done, all) = self.done();
            if done == all {
                return Ok(());
            }
            running.is_alive()?;
            if began.elapsed() > DONE_WITHIN {
                let within = DONE_WITHIN;
                return Err(RealError::NotReached { what, within, done, all }.into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn done(&self) -> (usize, usize) {
        let (seen, wanted) = (lock(&self.seen), lock(&self.wanted));
        let is_done = |(name, generation): &(&String, &i64)| {
            seen.get(*name).is_some_and(|one| one.is_healthy && one.observed >= **generation)
        };
        (wanted.generations.iter().filter(is_done).count(), wanted.generations.len())
    }

    fn next_image(&self) -> String {
        let mut wanted = lock(&self.wanted);
        wanted.image += 1;
        format!("example.com/web:{}", wanted.image)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn keep(api: Api<DynamicObject>, seen: Arc<Mutex<BTreeMap<String, Seen>>>) {
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        if let Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) = event {
            let name = object.name_any();
            lock(&seen).insert(name, Seen::of(&object.data["status"]));
        }
    }
}

impl Seen {
    fn of(status: &Value) -> Self {
        let observed = status["observedGeneration"].as_str().and_then(|text| text.parse().ok());
        let is_stable = status["stableRS"] == status["currentPodHash"];
        let is_healthy = status["phase"] == "Healthy" && is_stable;
        Self { observed: observed.unwrap_or(0), is_healthy }
    }
}

fn rollout(name: &str, shape: Shape, image: &str) -> Value {
    let labels = json!({ "app": name });
    let (replicas, steps, history) = match shape {
        Shape::OneStep => (2, json!([{ "setWeight": 50 }]), 10),
        Shape::OneStepShortHistory => (2, json!([{ "setWeight": 50 }]), 1),
        Shape::Small => (1, json!([]), 1),
    };
    let canary = json!({ "maxSurge": 1, "maxUnavailable": 0, "steps": steps });
    json!({
        "apiVersion": names::API_VERSION, "kind": names::kind::ROLLOUT, "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "revisionHistoryLimit": history,
            "selector": { "matchLabels": labels }, "strategy": { "canary": canary },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "web", "image": image }] },
            },
        },
    })
}
