//! Who makes the pods of a real API server run, when there are no machines?
//!
//! A kubelet without containers: it binds every pod to one node and reports what its containers
//! would do, by the same behaviours as the embedded cluster's.

mod node;
mod pod;
pub use pod::local::Image;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use gradus_simkube::behave::Behaviours;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    runtime::watcher,
};
use serde_json::Value;
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// How long to wait after an error of the API server before asking again.
const AFTER_AN_ERROR: Duration = Duration::from_millis(200);

/// A running kubelet; dropping it stops it and leaves the pods as they are.
#[derive(Debug)]
pub struct Kubelet {
    behaviours: Arc<BehavioursByNamespace>,
    images: Arc<ImagesByNamespace>,
    task: JoinHandle<()>,
}

/// Scenarios run beside each other, each with its own images in its own namespace.
#[derive(Debug, Default)]
struct BehavioursByNamespace(Mutex<BTreeMap<String, Behaviours>>);

/// Images that are run as processes of this machine.
#[derive(Debug, Default)]
struct ImagesByNamespace(Mutex<BTreeMap<String, Arc<Image>>>);

impl Kubelet {
    /// Registers the node, and takes every pod from then on.
    pub async fn start(client: Client) -> Result<Self, kube::Error> {
        node::register(&client).await?;
        let behaviours = Arc::new(BehavioursByNamespace::default());
        let images = Arc::new(ImagesByNamespace::default());
        let task = tokio::spawn(run(client, Arc::clone(&behaviours), Arc::clone(&images)));
        Ok(Self { behaviours, images, task })
    }

    /// Sets how images behave in pods of this namespace that are created from now on.
    pub fn behave(&self, namespace: &str, behaviours: Behaviours) {
        let mut all = self.behaviours.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(namespace.to_owned(), behaviours);
    }

    /// Runs an image in pods of this namespace as a process, from now on.
    pub fn run_locally(&self, namespace: &str, image: Image) {
        let mut all = self.images.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(namespace.to_owned(), Arc::new(image));
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl BehavioursByNamespace {
    fn of(&self, namespace: &str) -> Behaviours {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(namespace).cloned().unwrap_or_default()
    }
}

impl ImagesByNamespace {
    fn of(&self, namespace: &str) -> Option<Arc<Image>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(namespace).cloned()
    }
}

/// Pods as JSON: behaviours read the spec as it was written.
fn pods(client: &Client) -> (Api<DynamicObject>, ApiResource) {
    let resource = ApiResource::erase::<Pod>(&());
    (Api::all_with(client.clone(), &resource), resource)
}

/// One task for each pod, which always sees the newest version of it. They end with this one.
async fn run(
    client: Client,
    behaviours: Arc<BehavioursByNamespace>,
    images: Arc<ImagesByNamespace>,
) {
    let mut tasks = JoinSet::new();
    tasks.spawn(node::keep_alive(client.clone()));
    let mut known: BTreeMap<String, watch::Sender<Value>> = BTreeMap::new();
    let mut address = 0;
    let mut complaint = String::new();
    let mut events = watcher(pods(&client).0, watcher::Config::default()).boxed();
    loop {
        match events.try_next().await {
            Ok(Some(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) => {
                let uid = pod.uid().unwrap_or_default();
                let namespace = pod.namespace().unwrap_or_default();
                let seen = serde_json::to_value(&pod).expect("what was JSON is JSON again");
                if let Some(sender) = known.get(&uid) {
                    sender.send_replace(seen);
                    continue;
                }
                address += 1;
                let (sender, receiver) = watch::channel(seen);
                known.insert(uid, sender);
                let behaviours = behaviours.of(&namespace);
                let image = images.of(&namespace);
                tasks.spawn(pod::live(client.clone(), receiver, behaviours, image, address));
            }
            Ok(Some(watcher::Event::Delete(pod))) => {
                known.remove(&pod.uid().unwrap_or_default());
            }
            Ok(Some(watcher::Event::Init | watcher::Event::InitDone)) => {}
            Ok(None) => return,
            Err(error) => {
                // Once: a server that is away for a while is away at every try.
                let error = error.to_string();
                if error != complaint {
                    eprintln!("kubelet: watching pods: {error}");
                    complaint = error;
                }
                tokio::time::sleep(AFTER_AN_ERROR).await;
            }
        }
        // Pods that have ended need not be kept.
        while tasks.try_join_next().is_some() {}
    }
}
