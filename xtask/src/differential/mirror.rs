//! What one namespace holds at the moment, from watches: objects by case, the Events in the order
//! in which they came, and when each case last changed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt};
use gradus_api::names;
use kube::{
    Api, Client,
    api::DynamicObject,
    runtime::{WatchStreamExt, watcher},
};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::real::resource;

/// What is watched.
const KINDS: [(&str, &str); 9] = [
    (names::API_VERSION, names::kind::ROLLOUT),
    (names::API_VERSION, names::kind::ANALYSIS_RUN),
    (names::API_VERSION, names::kind::EXPERIMENT),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "Deployment"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("networking.k8s.io/v1", INGRESS),
    ("v1", EVENT),
];

const EVENT: &str = "Event";
const INGRESS: &str = "Ingress";

/// How the names of annotations end or begin that split traffic: nginx has a weight, and an AWS load
/// balancer an action with the weights of its target groups.
const NGINX_WEIGHT: &str = "/canary-weight";
const ALB_ACTION: &str = "alb.ingress.kubernetes.io/actions.";

/// A watch that failed is tried again by itself; this is for one that ended.
const AFTER_AN_END: Duration = Duration::from_millis(200);

/// Kept up to date by watches until dropped.
#[derive(Debug)]
pub struct Mirror {
    cases: Arc<Mutex<BTreeMap<String, Held>>>,
    _watches: JoinSet<()>,
}

/// What is known of one case.
#[derive(Clone, Debug)]
pub struct Held {
    /// By kind and name.
    pub objects: BTreeMap<(String, String), Value>,
    /// Events about the Rollout, in the order in which they came. One that was counted up is here as
    /// often as it was counted.
    pub events: Vec<Value>,
    /// How each Ingress split the traffic, one text after the other, by its name.
    pub splits: BTreeMap<String, Vec<String>>,
    /// How often each Event was seen, by name.
    counted: BTreeMap<String, u64>,
    changed: Instant,
}

impl Mirror {
    /// Begins to watch a namespace.
    pub fn of(client: &Client, namespace: &str) -> Self {
        let cases = Arc::new(Mutex::new(BTreeMap::new()));
        let mut watches = JoinSet::new();
        for (api_version, kind) in KINDS {
            let resource = resource(api_version, kind);
            let objects: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), namespace, &resource);
            watches.spawn(watch(objects, kind, Arc::clone(&cases)));
        }
        Self { cases, _watches: watches }
    }

    /// A case as it is now.
    pub fn case(&self, name: &str) -> Held {
        self.lock().get(name).cloned().unwrap_or_else(Held::empty)
    }

    /// How long nothing of a case has changed.
    pub fn quiet_for(&self, name: &str) -> Duration {
        self.lock().get(name).map_or(Duration::ZERO, |held| held.changed.elapsed())
    }

    /// The Rollout of a case; a null where there is none.
    pub fn rollout(&self, name: &str) -> Value {
        let key = (names::kind::ROLLOUT.to_owned(), name.to_owned());
        self.lock().get(name).and_then(|held| held.objects.get(&key).cloned()).unwrap_or_default()
    }

    /// Forgets a case that is over.
    pub fn forget(&self, name: &str) {
        self.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.cases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    pub fn empty() -> Self {
        Self {
            objects: BTreeMap::new(),
            events: Vec::new(),
            splits: BTreeMap::new(),
            counted: BTreeMap::new(),
            changed: Instant::now(),
        }
    }

    pub fn put(&mut self, kind: &str, object: Value) {
        self.changed = Instant::now();
        let name = text(&object["metadata"]["name"]);
        if kind == EVENT {
            return self.put_event(name, object);
        }
        if let Some(split) = split_of(&object).filter(|_| kind == INGRESS) {
            let splits = self.splits.entry(name.clone()).or_default();
            if splits.last() != Some(&split) {
                splits.push(split);
            }
        }
        self.objects.insert((kind.to_owned(), name), object);
    }

    fn put_event(&mut self, name: String, event: Value) {
        if event["involvedObject"]["kind"] != "Rollout" {
            return;
        }
        let count = event["count"].as_u64().unwrap_or(1).max(1);
        let before = self.counted.insert(name, count).unwrap_or(0);
        for _ in before..count {
            self.events.push(event.clone());
        }
    }

    fn remove(&mut self, kind: &str, object: &Value) {
        self.changed = Instant::now();
        self.objects.remove(&(kind.to_owned(), text(&object["metadata"]["name"])));
    }
}

/// What an Ingress says about weights, if it does.
fn split_of(ingress: &Value) -> Option<String> {
    let annotations = ingress["metadata"]["annotations"].as_object()?;
    let splits = |name: &str| name.ends_with(NGINX_WEIGHT) || name.starts_with(ALB_ACTION);
    let (_, value) = annotations.iter().find(|(name, _)| splits(name))?;
    Some(text(value))
}

/// The name of the case that an object belongs to: all its names begin with it.
fn case_of(kind: &str, object: &Value) -> String {
    let name = match kind {
        EVENT => &object["involvedObject"]["name"],
        _ => &object["metadata"]["name"],
    };
    text(name).split('-').next().unwrap_or_default().to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

async fn watch(
    objects: Api<DynamicObject>,
    kind: &'static str,
    cases: Arc<Mutex<BTreeMap<String, Held>>>,
) {
    loop {
        let changes = watcher(objects.clone(), watcher::Config::default()).default_backoff();
        let mut changes = changes.boxed();
        loop {
            let (object, is_gone) = match changes.try_next().await {
                Ok(Some(watcher::Event::Apply(object) | watcher::Event::InitApply(object))) => {
                    (object, false)
                }
                Ok(Some(watcher::Event::Delete(object))) => (object, true),
                Ok(Some(watcher::Event::Init | watcher::Event::InitDone)) => continue,
                Ok(None) => break,
                Err(error) => {
                    eprintln!("watching {kind}: {error}");
                    continue;
                }
            };
            let object = serde_json::to_value(&object).expect("what was JSON is JSON again");
            let case = case_of(kind, &object);
            let mut cases = cases.lock().unwrap_or_else(PoisonError::into_inner);
            if is_gone {
                if let Some(held) = cases.get_mut(&case) {
                    held.remove(kind, &object);
                }
            } else {
                cases.entry(case).or_insert_with(Held::empty).put(kind, object);
            }
        }
        tokio::time::sleep(AFTER_AN_END).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_there_as_often_as_it_was_counted() {
        let event = |name: &str, count: u64| {
            json!({
                "metadata": { "name": name }, "count": count,
                "involvedObject": { "kind": "Rollout", "name": "case1" },
            })
        };
        let mut held = Held::empty();
        for (name, count) in [("a", 1), ("b", 1), ("a", 3), ("b", 1)] {
            held.put(EVENT, event(name, count));
        }
        let names = held.events.iter().map(|event| text(&event["metadata"]["name"]));
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "a", "a"]);
    }

    #[test]
    fn each_split_of_the_traffic_is_kept_in_order() {
        let ingress = |weight: u64| {
            let annotation = format!("nginx.ingress.kubernetes.io{NGINX_WEIGHT}");
            json!({ "metadata": {
                "name": "case1-web", "annotations": { annotation: weight.to_string() },
            } })
        };
        let mut held = Held::empty();
        held.put(INGRESS, json!({ "metadata": { "name": "case1-web" } }));
        for weight in [20, 60, 60, 20] {
            held.put(INGRESS, ingress(weight));
        }
        assert_eq!(held.splits["case1-web"], ["20", "60", "20"]);
    }

    #[test]
    fn every_object_belongs_to_the_case_whose_name_it_begins_with() {
        let named = |name: &str| json!({ "metadata": { "name": name } });
        assert_eq!(case_of("ReplicaSet", &named("case12-5d8f")), "case12");
        assert_eq!(case_of("Rollout", &named("case12")), "case12");
        let event = json!({
            "metadata": { "name": "x" }, "involvedObject": { "name": "case3" },
        });
        assert_eq!(case_of(EVENT, &event), "case3");
    }
}
