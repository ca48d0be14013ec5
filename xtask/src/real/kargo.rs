//! AnalysisRuns as Kargo makes them: finished, with a name that has dots, owned by something that is not
//! ours, without a Rollout. They are run, ended when Kargo says so, and otherwise left alone.

use std::time::{Duration, Instant};

use gradus_api::names;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use thiserror::Error;

use super::deeds::{create_namespace, resource};
use crate::{Failure, plane::User, stage::Stage};

const NAMESPACE: &str = "kargo";
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// A run that ends by itself, and one that would not.
const RUNS: [(&str, &str); 2] = [
    ("test.01arz3ndektsv4rrffq69g5fav.abcdef1", "sleep 1; exit 0"),
    ("prod.01arz3ndektsv4rrffq69g5faw.abcdef2", "sleep 3600; exit 0"),
];

#[derive(Debug, Error)]
enum KargoError {
    #[error("{name}: expected {expected} within {} s, found {found}", ENDS_WITHIN.as_secs())]
    NotReached { name: String, expected: &'static str, found: Value },
    #[error("{0}: expected {1} to stay as Kargo wrote it")]
    Changed(String, &'static str),
}

/// Both runs, by what Kargo reads of them.
pub async fn runs_are_carried_out(stage: &Stage) -> Result<(), Failure> {
    let client = stage.plane.client(User::Person).await?;
    create_namespace(&client, NAMESPACE).await?;
    let freights: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let mut freight = ConfigMap::default();
    freight.metadata.name = Some("freight".to_owned());
    let freight = freights.create(&PostParams::default(), &freight).await?;
    let uid = freight.metadata.uid.unwrap_or_default();
    let api_version = format!("{}/{}", names::GROUP, names::VERSION);
    let kind = resource(&api_version, names::kind::ANALYSIS_RUN);
    let runs: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &kind);
    for (name, script) in RUNS {
        let made = run(&api_version, name, &uid, script);
        runs.create(&PostParams::default(), &serde_json::from_value(made)?).await?;
    }
    let [(ends, script), (endless, _)] = RUNS;
    let ended =
        reached(&runs, ends, "Successful", |status| status["phase"] == "Successful").await?;
    let result = &ended["status"]["metricResults"][0];
    let job = &result["measurements"][0]["metadata"]["job-name"];
    if !ended["status"]["completedAt"].is_string() || result["name"] != "smoke" || !job.is_string()
    {
        let (name, found) = (ends.to_owned(), ended["status"].clone());
        let expected = "completedAt, the metric's name and the Job of its measurement";
        return Err(KargoError::NotReached { name, expected, found }.into());
    }
    reached(&runs, endless, "Running", |status| status["phase"] == "Running").await?;
    let stop = json!({ "spec": { "terminate": true } });
    runs.patch(endless, &PatchParams::default(), &Patch::Merge(stop)).await?;
    let is_over =
        |status: &Value| !["Pending", "Running"].iter().any(|one| status["phase"] == *one);
    reached(&runs, endless, "an end", is_over).await?;
    let wanted = run(&api_version, ends, &uid, script);
    for field in ["labels", "ownerReferences"] {
        if ended["metadata"][field] != wanted["metadata"][field] {
            return Err(KargoError::Changed(ends.to_owned(), field).into());
        }
    }
    Ok(())
}

/// The run once its status is so.
async fn reached(
    runs: &Api<DynamicObject>,
    name: &str,
    expected: &'static str,
    is_so: impl Fn(&Value) -> bool,
) -> Result<Value, Failure> {
    let began = Instant::now();
    loop {
        let found = serde_json::to_value(runs.get(name).await?)?;
        if found["status"]["phase"].is_string() && is_so(&found["status"]) {
            return Ok(found);
        }
        if began.elapsed() > ENDS_WITHIN {
            let (name, found) = (name.to_owned(), found["status"].clone());
            return Err(KargoError::NotReached { name, expected, found }.into());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn run(api_version: &str, name: &str, owner: &str, script: &str) -> Value {
    let container =
        json!({ "name": "smoke", "image": "example.com/smoke:1", "command": ["sh", "-c", script] });
    let pod = json!({ "restartPolicy": "Never", "containers": [container] });
    let job = json!({ "spec": { "backoffLimit": 0, "template": { "spec": pod } } });
    json!({
        "apiVersion": api_version, "kind": names::kind::ANALYSIS_RUN,
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": { "kargo.akuity.io/stage": "test", "kargo.akuity.io/freight-collection": "c" },
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "freight", "uid": owner,
                "blockOwnerDeletion": false,
            }],
        },
        "spec": {
            "args": [{ "name": "unused", "value": "x" }],
            "metrics": [{ "name": "smoke", "count": 1, "provider": { "job": job } }],
        },
    })
}
