//! The life of one pod, from binding to removal.

pub mod local;

use std::{sync::Arc, time::Duration};

use gradus_simkube::{
    behave::{Behaviours, ContainerState, Phase, PodState, Timeline},
    pod_status::PodStatus,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{AFTER_AN_ERROR, node::NODE};
use local::Image;

/// What a container that is killed ends with: 128 + SIGKILL.
const KILLED: i32 = 137;

/// What a kubelet writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Binding,
    Status,
    Deletion,
}

/// Ends when the pod is gone, which the end of `seen` says too.
pub async fn live(
    client: Client,
    mut seen: watch::Receiver<Value>,
    behaviours: Behaviours,
    image: Option<Arc<Image>>,
    address: u32,
) {
    let pod = seen.borrow_and_update().clone();
    let life = Life::begin(&client, &pod, &behaviours, address);
    if pod["spec"]["nodeName"].is_null() {
        life.bind().await;
    }
    if let Some(image) = image.filter(|image| image.fits(&pod["spec"])) {
        return local::live(&client, &life, &mut seen, &image).await;
    }
    let mut told = None;
    loop {
        let pod = seen.borrow_and_update().clone();
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            return life.leave(&pod, told).await;
        }
        let (status, next) = life.at(&pod, Timestamp::now(), told.as_ref());
        if told.as_ref() != Some(&status) {
            if !life.tell(&status).await {
                return;
            }
            told = Some(status);
        }
        tokio::select! {
            changed = seen.changed() => if changed.is_err() { return },
            () = until(next) => {}
        }
    }
}

/// What stays the same over the life of a pod.
struct Life {
    pods: Api<Pod>,
    name: String,
    uid: String,
    spec: Value,
    timeline: Timeline,
    started: Timestamp,
    address: u32,
}

impl Life {
    fn begin(client: &Client, pod: &Value, behaviours: &Behaviours, address: u32) -> Self {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        let spec = pod["spec"].clone();
        // A pod that another kubelet of ours began keeps its clock.
        let started = pod["status"]["startTime"].as_str().and_then(|time| time.parse().ok());
        Self {
            pods: Api::namespaced(client.clone(), &text("namespace")),
            name: text("name"),
            uid: text("uid"),
            timeline: Timeline::of(&spec, behaviours.of_pod(&spec)),
            started: started.unwrap_or_else(Timestamp::now),
            spec,
            address,
        }
    }

    /// The status at `now`, and when it changes next by itself.
    fn at(
        &self,
        pod: &Value,
        now: Timestamp,
        told: Option<&PodStatus>,
    ) -> (PodStatus, Option<Timestamp>) {
        let plan = self.timeline.at(self.started, now);
        let mut status = self.status(plan.state, now);
        status.foreign = Arc::new(PodStatus::foreign_conditions(&pod["status"]));
        status.ready = plan.state.ready && status.gates_open(self.timeline.gates());
        // They are others' to write: our patch must not carry an old copy of them.
        status.foreign = Arc::default();
        if let Some(told) = told.filter(|told| told.ready == status.ready) {
            status.ready_since = told.ready_since;
        }
        (status, plan.next)
    }

    fn status(&self, state: PodState, ready_since: Timestamp) -> PodStatus {
        PodStatus {
            node: NODE.into(),
            address: self.address,
            started: self.started,
            state,
            ready: false,
            ready_since,
            foreign: Arc::default(),
            crash: self.timeline.ends_in().cloned(),
            unschedulable: Arc::clone(self.timeline.unschedulable()),
        }
    }

    async fn bind(&self) {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": { "name": self.name, "uid": self.uid },
            "target": { "apiVersion": "v1", "kind": "Node", "name": NODE },
        });
        let parameters = PostParams::default();
        self.insist(Deed::Binding, || {
            self.pods.create_subresource::<_, Value>("binding", &self.name, &parameters, &binding)
        })
        .await;
    }

    /// Stops the containers, then removes the pod.
    async fn leave(&self, pod: &Value, told: Option<PodStatus>) {
        // Nobody started what has no status yet, so nothing needs time to stop.
        if told.is_some() {
            let stops_within = Duration::try_from(self.timeline.stops_within());
            tokio::time::sleep(stops_within.unwrap_or_default()).await;
        }
        let now = Timestamp::now();
        let plan = self.timeline.at(self.started, now);
        // A Job counts a deleted pod only once its kubelet has reported the end.
        let is_meant_to_end = pod["spec"]["restartPolicy"] != "Always";
        if is_meant_to_end && !plan.state.phase.has_ended() {
            let container = ContainerState::Terminated {
                exit_code: KILLED,
                started: self.started,
                finished: now,
            };
            let state =
                PodState { phase: Phase::Failed, ready: false, since: now, container, restarts: 0 };
            self.tell(&self.status(state, now)).await;
        }
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: Some(self.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        self.insist(Deed::Deletion, || self.pods.delete(&self.name, &parameters)).await;
    }

    /// Writes the status; false if the pod is no longer there.
    async fn tell(&self, status: &PodStatus) -> bool {
        self.write_status(status.to_json(&self.spec)).await
    }

    async fn write_status(&self, status: Value) -> bool {
        let patch = status_patch(&self.uid, status);
        let (patch, parameters) = (Patch::Strategic(patch), PatchParams::default());
        self.insist(Deed::Status, || self.pods.patch_status(&self.name, &parameters, &patch)).await
    }

    /// Repeats a write until the server takes it; false if it never will, because the pod is gone
    /// or another one has its name.
    async fn insist<T, F, W>(&self, deed: Deed, write: F) -> bool
    where
        F: Fn() -> W,
        W: Future<Output = Result<T, kube::Error>>,
    {
        loop {
            match write().await {
                Ok(_) => return true,
                Err(kube::Error::Api(status)) if status.is_not_found() => return false,
                // Bound already, or another pod. A status names no version: the server only found
                // too many others writing at once.
                Err(kube::Error::Api(status)) if status.is_conflict() && deed != Deed::Status => {
                    return false;
                }
                Err(kube::Error::Api(status)) if status.is_invalid() => {
                    eprintln!("kubelet: {deed:?} of pod {}: {}", self.name, status.message);
                    return false;
                }
                Err(_) => tokio::time::sleep(AFTER_AN_ERROR).await,
            }
        }
    }
}

/// A strategic merge patch: conditions are merged by type, so those of others stay.
fn status_patch(uid: &str, mut status: Value) -> Value {
    if let Some(fields) = status.as_object_mut() {
        // The API server has computed it from the spec and refuses another value.
        fields.remove("qosClass");
    }
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        for field in ["reason", "message"] {
            // Left out, the words of an earlier state would stay. Reading makes it null.
            condition[field] = condition[field].take();
        }
    }
    json!({ "metadata": { "uid": uid }, "status": status })
}

async fn until(moment: Option<Timestamp>) {
    match moment {
        Some(moment) => {
            let wait = moment.duration_since(Timestamp::now());
            tokio::time::sleep(Duration::try_from(wait).unwrap_or_default()).await;
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_an_earlier_state_do_not_stay() {
        let status = json!({ "qosClass": "BestEffort", "conditions": [
            { "type": "Ready", "status": "True" },
            { "type": "Other", "status": "False", "reason": "Why" },
        ] });
        let expected = json!({ "conditions": [
            { "type": "Ready", "status": "True", "reason": null, "message": null },
            { "type": "Other", "status": "False", "reason": "Why", "message": null },
        ] });
        let patch = status_patch("1", status);
        assert_eq!(patch, json!({ "metadata": { "uid": "1" }, "status": expected }));
    }
}
