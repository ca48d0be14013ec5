//! The Deployment controller: one ReplicaSet per template, rolled over within surge and
//! unavailability. Proportional scaling, collisions, history and conditions are left out.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::SimCluster;
use crate::error::ApiError;
use crate::kinds::KindId;
use crate::object::{Key, Object};
use crate::request::{Request, Verb};

/// The label that tells the ReplicaSets of a Deployment apart.
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
/// The wait after a refused write.
const RETRY: SignedDuration = SignedDuration::from_secs(1);

impl SimCluster {
    /// Brings one Deployment a step closer to what it wants: ReplicaSets first, then its status.
    pub(super) fn sync_deployment(&mut self, key: &Key, now: Timestamp) {
        let Some(deployment) = self.store.get(KindId::DEPLOYMENT, key).cloned() else {
            self.work.deployments.forget(key);
            return;
        };
        if deployment.meta.deleting.is_some() {
            return;
        }
        let done = self.roll(&deployment, now);
        self.write_deployment_status(&deployment);
        self.work.deployments.wake_at(key, done.err().map(|_| now + RETRY));
    }

    /// Makes the ReplicaSet of a new template, and moves the sizes towards it.
    fn roll(&mut self, deployment: &Object, now: Timestamp) -> Result<(), ApiError> {
        let sets = self.sets_of(deployment);
        let Some(new) = sets.iter().position(|set| has_template_of(set, deployment)) else {
            let revision = sets.iter().filter_map(|set| revision_of(set)).max().unwrap_or(0) + 1;
            let body = manifest(deployment, revision);
            return self
                .send(Request::create(KindId::REPLICA_SET, namespace(deployment), body), now);
        };
        for (set, size) in sets.iter().zip(Goal::of(&deployment.spec).sizes(&sets, new)) {
            if size != wanted(set) {
                let patch = json!({ "spec": { "replicas": size } });
                let (kind, name) = (KindId::REPLICA_SET, &set.meta.name);
                self.send(Request::merge(kind, namespace(deployment), name, patch), now)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, request: Request, now: Timestamp) -> Result<(), ApiError> {
        let mut request = request;
        request.options.user = self.work.users.deployments.clone();
        self.call(&request, now).map(drop)
    }

    /// The ReplicaSets a Deployment controls, oldest first.
    fn sets_of(&self, deployment: &Object) -> Vec<Arc<Object>> {
        let uid = &deployment.meta.uid;
        let owned = self.store.owned_by(uid).filter(|place| place.kind == KindId::REPLICA_SET);
        let found = owned.filter_map(|place| self.store.get(place.kind, &place.key));
        let is_ours = |set: &&Arc<Object>| set.controller().is_some_and(|owner| owner.uid == *uid);
        let mut sets: Vec<Arc<Object>> = found.filter(is_ours).cloned().collect();
        sets.sort_by_key(|set| (revision_of(set), set.meta.name.clone()));
        sets
    }

    fn write_deployment_status(&mut self, deployment: &Arc<Object>) {
        let sets = self.sets_of(deployment);
        let sum = |field: &str| -> i64 { sets.iter().map(|set| count(&set.status, field)).sum() };
        let new = sets.iter().find(|set| has_template_of(set, deployment));
        let available = sum("availableReplicas");
        let size = count(&deployment.spec, "replicas");
        let counts = [
            ("replicas", sum("replicas")),
            ("updatedReplicas", new.map_or(0, |set| count(&set.status, "replicas"))),
            ("readyReplicas", sum("readyReplicas")),
            ("availableReplicas", available),
            ("unavailableReplicas", (size - available).max(0)),
        ];
        let seen = counts.into_iter().filter(|(_, number)| *number > 0);
        let mut status: Map<String, Value> =
            seen.map(|(field, number)| (field.to_owned(), json!(number))).collect();
        status.insert("observedGeneration".to_owned(), json!(deployment.meta.generation));
        let status = Value::Object(status);
        if status == *deployment.status {
            return;
        }
        let after = Object { status: Arc::new(status), ..Object::clone(deployment) };
        let user = self.work.users.deployments.clone();
        self.put(after, Verb::Update, &user);
        // It knows what it wrote.
        self.work.deployments.unmark(&deployment.key());
    }
}

/// Between which sizes a Deployment moves.
struct Goal {
    replicas: i64,
    surge: i64,
    unavailable: i64,
    /// Old pods go before new ones come.
    recreates: bool,
    /// A person has halted it: only its size is followed.
    is_paused: bool,
}

impl Goal {
    fn of(spec: &Value) -> Self {
        let replicas = count(spec, "replicas");
        let limits = &spec["strategy"]["rollingUpdate"];
        let surge = share(&limits["maxSurge"], replicas, 99);
        let unavailable = share(&limits["maxUnavailable"], replicas, 0);
        Goal {
            replicas,
            surge,
            unavailable: if surge == 0 { unavailable.max(1) } else { unavailable },
            recreates: spec["strategy"]["type"] == "Recreate",
            is_paused: spec["paused"] == true,
        }
    }

    /// The next size of each ReplicaSet.
    fn sizes(&self, sets: &[Arc<Object>], new: usize) -> Vec<i64> {
        let mut sizes: Vec<i64> = sets.iter().map(|set| wanted(set)).collect();
        let old: i64 = sizes.iter().sum::<i64>() - sizes[new];
        if self.is_paused {
            if let Some(last) = sizes.iter().rposition(|size| *size > 0).or(Some(new)) {
                sizes[last] = self.replicas;
            }
            return sizes;
        }
        let pods = |at: usize| count(&sets[at].status, "replicas");
        let has_old_pods = (0..sets.len()).any(|at| at != new && pods(at) > 0);
        let room = match self.recreates {
            true if has_old_pods || old > 0 => 0,
            true => self.replicas,
            false => (self.replicas + self.surge - old).max(0),
        };
        sizes[new] = sizes[new].max(room.min(self.replicas)).min(self.replicas);
        let unready = sizes[new] - count(&sets[new].status, "availableReplicas").min(sizes[new]);
        let fewest = if self.recreates { 0 } else { self.replicas - self.unavailable };
        let mut spare = if self.recreates { old } else { old + sizes[new] - fewest - unready };
        for (_, size) in sizes.iter_mut().enumerate().filter(|(at, _)| *at != new) {
            let given = spare.clamp(0, *size);
            *size -= given;
            spare -= given;
        }
        sizes
    }
}

fn namespace(object: &Object) -> &str {
    &object.meta.namespace
}

fn count(part: &Value, field: &str) -> i64 {
    part[field].as_i64().unwrap_or(0)
}

fn wanted(set: &Object) -> i64 {
    count(&set.spec, "replicas")
}

fn revision_of(set: &Object) -> Option<i64> {
    set.meta.annotations.get(REVISION)?.parse().ok()
}

/// A number or a percentage; `up` is 99 to round up, 0 down.
fn share(limit: &Value, replicas: i64, up: i64) -> i64 {
    let percent = limit.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    percent.map_or_else(|| limit.as_i64().unwrap_or(0), |percent| (replicas * percent + up) / 100)
}

fn has_template_of(set: &Object, deployment: &Object) -> bool {
    let mut template = set.template().clone();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(HASH);
    }
    template == *deployment.template()
}

fn manifest(deployment: &Object, revision: i64) -> Value {
    let spec = &deployment.spec;
    let hash = hash(deployment.template());
    let mut template = deployment.template().clone();
    template["metadata"]["labels"][HASH] = json!(hash);
    let mut selector = spec["selector"].clone();
    selector["matchLabels"][HASH] = json!(hash);
    let meta = &deployment.meta;
    json!({
        "metadata": {
            "name": format!("{}-{hash}", meta.name),
            "labels": template["metadata"]["labels"],
            "annotations": { REVISION: revision.to_string() },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": meta.name, "uid": meta.uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": 0, "selector": selector, "template": template,
            "minReadySeconds": spec["minReadySeconds"],
        },
    })
}

/// A short text that differs between templates.
fn hash(template: &Value) -> String {
    const LETTERS: &[u8; 10] = b"456789bcdf";
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let number = template.to_string().bytes().fold(0x811c_9dc5, mix);
    let letter = |digit: u8| char::from(LETTERS[usize::from(digit - b'0')]);
    number.to_string().bytes().map(letter).collect()
}
