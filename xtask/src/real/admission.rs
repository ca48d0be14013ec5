//! Does the admission policy refuse what lint refuses, admit what is sound, and lock nobody out? Asked
//! of a real API server, with the very rows that the validation itself is tested with.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use gradus_api::{
    decode::decode,
    names,
    rollout::RolloutSpec,
    validate::{SpecSource, validate},
};
use gradus_manifest::{Document, Source};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use thiserror::Error;

use super::deeds::create_namespace;
use crate::{Failure, plane::User, repository, stage::Stage};

/// Rows of: what it is about, what is merged into a sound spec (null removes), the first error.
const CASES: &str = include_str!("../../../crates/api/src/validate/cases.json");

/// What quantities may be, beside those rows: the schema keeps them as they are written.
const QUANTITIES: &str = r#"[
["a quantity", {"template": {"spec": {"containers": [{"name": "web", "image": "i", "resources": {"limits": {"memory": "1Gi", "cpu": 2}}}]}}}, ""],
["a fraction, and nothing", {"template": {"spec": {"containers": [{"name": "web", "image": "i", "resources": {"limits": {"memory": null, "cpu": 0.5}}}], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]}}}, ""],
["no quantity", {"template": {"spec": {"containers": [{"name": "web", "image": "i", "resources": {"limits": {"memory": "invalid"}}}]}}}, "is no quantity"],
["a truth", {"template": {"spec": {"containers": [{"name": "web", "image": "i", "resources": {"requests": {"memory": true}}}]}}}, "is no quantity"],
["an object", {"template": {"spec": {"initContainers": [{"name": "first", "image": "i", "resources": {"requests": {"memory": {}}}}]}}}, "is no quantity"],
["less than nothing", {"template": {"spec": {"containers": [{"name": "web", "image": "i", "resources": {"requests": {"cpu": "-100m"}}}]}}}, "must be greater than or equal to 0"],
["no size", {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "lots"}}]}}}, "is no quantity"],
["no size of a claim", {"template": {"spec": {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "lots"}}}}}}]}}}, "is no quantity"],
["no divisor", {"template": {"spec": {"volumes": [{"name": "v", "downwardAPI": {"items": [{"path": "p", "resourceFieldRef": {"resource": "limits.cpu", "divisor": "lots"}}]}}]}}}, "is no quantity"]
]"#;

const NAMESPACE: &str = "admission";

/// A new policy is not in force at once.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug, Error)]
enum AdmissionError {
    #[error("{0}: refused, although it is sound: {1}")]
    Refused(String, String),
    #[error("{0}: admitted, although lint says: {1}")]
    Admitted(String, String),
    #[error("the policy is not in force after {} s", IN_FORCE_WITHIN.as_secs())]
    NotInForce,
    #[error("{0} of a Rollout that was there before the policy: {1}")]
    LockedOut(&'static str, String),
}

/// The policy of the manifests, on all rows; it is gone afterwards.
pub async fn says_what_lint_says(stage: &Stage) -> Result<(), Failure> {
    let client = stage.plane.client(User::Person).await?;
    create_namespace(&client, NAMESPACE).await?;
    let rollouts = rollouts(&client);
    let faulty = json!({ "strategy": { "canary": { "steps": [{ "setWeight": 120 }] } } });
    rollouts.create(&PostParams::default(), &rollout("old", faulty.clone())?).await?;
    let policy = repository().join("manifests/admission/policy.yaml");
    stage.plane.kubectl_does(&["apply", "-f"], &policy)?;
    let result = judge(&rollouts, faulty).await;
    stage.plane.kubectl_does(&["delete", "-f"], &policy)?;
    rollouts.delete("old", &kube::api::DeleteParams::default()).await?;
    result
}

async fn judge(rollouts: &Api<DynamicObject>, faulty: Value) -> Result<(), Failure> {
    let began = Instant::now();
    while tried(rollouts, faulty.clone()).await?.is_none() {
        if began.elapsed() > IN_FORCE_WITHIN {
            return Err(AdmissionError::NotInForce.into());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let mut in_words = 0;
    let cases: Vec<(String, Value, String)> = serde_json::from_str(CASES)?;
    let more: Vec<(String, Value, String)> = serde_json::from_str(QUANTITIES)?;
    let all = cases.len() + more.len();
    for (what, change, expected) in cases.into_iter().chain(more) {
        match (tried(rollouts, change).await?, expected.is_empty()) {
            (None, true) => {}
            (Some(said), true) => return Err(AdmissionError::Refused(what, said).into()),
            (None, false) => return Err(AdmissionError::Admitted(what, expected).into()),
            (Some(said), false) => {
                let detail = expected.rsplit(": ").next().unwrap_or_default();
                in_words += usize::from(said.contains(detail));
            }
        }
    }
    println!("  admission: {all} rows, {in_words} refused in lint's words");
    refuses_faulty_manifests(rollouts).await?;
    is_open_for_what_was_there(rollouts).await
}

/// Of lint's faulty manifests those whose Rollout the validation refuses, or Go's clients could not read.
async fn refuses_faulty_manifests(rollouts: &Api<DynamicObject>) -> Result<(), Failure> {
    let (mut refused, mut in_words) = (0, 0);
    for entry in fs::read_dir(repository().join("crates/cli/tests/faulty"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path)?;
        let says = text.lines().find_map(|line| line.strip_prefix("# says: ")).unwrap_or_default();
        let says = says.to_owned();
        let source = Arc::new(Source { name: name.clone(), text });
        let Ok(documents) = gradus_manifest::read(&source) else { continue };
        for document in documents.iter().map(Document::json) {
            let spec: RolloutSpec = decode(&document["spec"]).0;
            let is_rollout = document["kind"] == names::kind::ROLLOUT;
            let first = validate(&spec, SpecSource::Written).first().map(ToString::to_string);
            let first = first.or_else(|| name.starts_with("quantity").then(|| says.clone()));
            let Some(first) = first.filter(|_| is_rollout) else { continue };
            let mut object: DynamicObject = serde_json::from_value(document)?;
            object.metadata.namespace = Some(NAMESPACE.to_owned());
            let dry_run = PostParams { dry_run: true, ..PostParams::default() };
            match rollouts.create(&dry_run, &object).await {
                Ok(_) => return Err(AdmissionError::Admitted(name, first).into()),
                Err(kube::Error::Api(refusal)) => {
                    let detail = first.rsplit(": ").next().unwrap_or_default();
                    in_words += usize::from(refusal.message.contains(detail));
                    refused += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    println!("  admission: {refused} of lint's faulty manifests refused, {in_words} in its words");
    Ok(())
}

/// What the server says of a Rollout with this change; nothing where it admits it.
async fn tried(rollouts: &Api<DynamicObject>, change: Value) -> Result<Option<String>, Failure> {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    match rollouts.create(&dry_run, &rollout("new", change)?).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(refusal)) => Ok(Some(refusal.message.clone())),
        Err(error) => Err(error.into()),
    }
}

/// A faulty Rollout that was there before can be operated, and repaired, but gets nothing new.
async fn is_open_for_what_was_there(rollouts: &Api<DynamicObject>) -> Result<(), Failure> {
    let image =
        json!({ "template": { "spec": { "containers": [{ "name": "web", "image": "2" }] } } });
    let sound = json!({ "strategy": { "canary": { "steps": [{ "setWeight": 20 }] } } });
    let cases = [
        ("scaling", json!({ "spec": { "replicas": 3 } }), true),
        ("labelling", json!({ "metadata": { "labels": { "a": "b" } } }), true),
        ("pausing", json!({ "spec": { "paused": true } }), true),
        ("scaling below nothing", json!({ "spec": { "replicas": -1 } }), false),
        ("updating", json!({ "spec": image }), false),
        ("repairing", json!({ "spec": sound }), true),
    ];
    for (what, patch, is_admitted) in cases {
        let answer = rollouts.patch("old", &PatchParams::default(), &Patch::Merge(patch)).await;
        match answer {
            Ok(_) if is_admitted => {}
            Err(kube::Error::Api(_)) if !is_admitted => {}
            Ok(_) => return Err(AdmissionError::LockedOut(what, "was admitted".to_owned()).into()),
            Err(error) => return Err(AdmissionError::LockedOut(what, error.to_string()).into()),
        }
    }
    Ok(())
}

fn rollouts(client: &Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: names::GROUP.to_owned(),
        version: names::VERSION.to_owned(),
        api_version: api_version(),
        kind: names::kind::ROLLOUT.to_owned(),
        plural: names::plural::ROLLOUTS.to_owned(),
    };
    Api::namespaced_with(client.clone(), NAMESPACE, &resource)
}

/// A Rollout without a mistake, with `change` merged into its spec.
fn rollout(name: &str, change: Value) -> Result<DynamicObject, serde_json::Error> {
    let mut spec = json!({
        "selector": { "matchLabels": { "app": "web" } },
        "template": {
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
        },
        "strategy": { "canary": {} },
    });
    merge(&mut spec, change);
    serde_json::from_value(json!({
        "apiVersion": api_version(), "kind": names::kind::ROLLOUT,
        // Nobody looks after it: it is about what the server stores.
        "metadata": { "name": name, "labels": { names::label::INSTANCE_ID: "nobody" } },
        "spec": spec,
    }))
}

fn api_version() -> String {
    format!("{}/{}", names::GROUP, names::VERSION)
}

fn merge(value: &mut Value, change: Value) {
    match (value, change) {
        (Value::Object(map), Value::Object(change)) => {
            for (key, change) in change {
                if change.is_null() {
                    map.remove(&key);
                } else {
                    merge(map.entry(key).or_insert(Value::Null), change);
                }
            }
        }
        (value, change) => *value = change,
    }
}
