//! Can the manifests be applied as they are? Asked of a real API server, which also judges the pod by
//! the restricted standard.

use std::process::{Command, Output};

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use thiserror::Error;

use super::deeds::create_namespace;
use crate::{Failure, plane::User, repository, stage::Stage};

const NAMESPACE: &str = "installation";

/// Kinds and fields whose documentation is read.
const DOCUMENTED: [&str; 14] = [
    "rollout",
    "rollout.spec",
    "rollout.spec --recursive",
    "rollout.spec.strategy.blueGreen",
    "rollout.spec.strategy.canary",
    "rollout.spec.strategy.canary.steps",
    "rollout.spec.strategy.canary.trafficRouting",
    "rollout.spec.strategy.canary.trafficRouting.istio",
    "rollout.status",
    "analysistemplate.spec",
    "analysistemplate.spec.metrics.provider",
    "clusteranalysistemplate",
    "analysisrun.status",
    "experiment.spec.templates",
];

#[derive(Debug, Error)]
enum InstallationError {
    #[error("kubectl {0}: {1}")]
    Kubectl(&'static str, String),
    #[error("namespace-install.yaml has no Deployment")]
    NoDeployment,
    #[error("kubectl explain {0}: expected a description of everything, found:\n{1}")]
    Undocumented(String, String),
}

/// Both ways to install, and the kustomization.
pub async fn can_be_applied(stage: &Stage) -> Result<(), Failure> {
    let client = stage.plane.client(User::Person).await?;
    create_namespace(&client, NAMESPACE).await?;
    let folder = repository().join("manifests");
    let server_side = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f"];
    stage.plane.kubectl_does(&server_side, &folder.join("install.yaml"))?;
    let namespaced = ["apply", "--dry-run=server", "--namespace", NAMESPACE, "-f"];
    stage.plane.kubectl_does(&namespaced, &folder.join("namespace-install.yaml"))?;
    said(stage.plane.kubectl().arg("kustomize").arg(&folder), "kustomize")?;
    is_documented(stage)?;
    is_restricted(stage, &client).await
}

/// What `kubectl explain` says of the kinds and of fields at every depth; it prints `<no description>` for one
/// without.
fn is_documented(stage: &Stage) -> Result<(), Failure> {
    for what in DOCUMENTED {
        let mut kubectl = stage.plane.kubectl();
        let output = said(kubectl.arg("explain").args(what.split(' ')), "explain")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_whole = text.contains("DESCRIPTION:") && !text.contains("<no description>");
        if !is_whole {
            return Err(InstallationError::Undocumented(what.to_owned(), text).into());
        }
    }
    Ok(())
}

/// The pod of the Deployment in a namespace that admits nothing else.
async fn is_restricted(stage: &Stage, client: &kube::Client) -> Result<(), Failure> {
    let labels = json!({ "metadata": { "labels": {
        "pod-security.kubernetes.io/enforce": "restricted" } } });
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.patch(NAMESPACE, &PatchParams::default(), &Patch::Merge(labels)).await?;
    let path = repository().join("manifests/namespace-install.yaml");
    let mut kubectl = stage.plane.kubectl();
    let kubectl = kubectl.args(["create", "--dry-run=client", "-o", "json", "-f"]).arg(path);
    let output = said(kubectl, "create --dry-run=client")?;
    let objects = serde_json::Deserializer::from_slice(&output.stdout);
    let mut objects = objects.into_iter::<serde_json::Value>().collect::<Result<Vec<_>, _>>()?;
    let lists = objects.iter().filter_map(|one| one["items"].as_array().cloned());
    let listed: Vec<_> = lists.flatten().collect();
    objects.extend(listed);
    let deployment = objects.into_iter().find(|one| one["kind"] == "Deployment");
    let deployment = deployment.ok_or(InstallationError::NoDeployment)?;
    let pod: Pod = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "gradus" },
        "spec": deployment["spec"]["template"]["spec"],
    }))?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    pods.create(&PostParams { dry_run: true, ..PostParams::default() }, &pod).await?;
    Ok(())
}

fn said(command: &mut Command, what: &'static str) -> Result<Output, Failure> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(output);
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(InstallationError::Kubectl(what, message).into())
}
