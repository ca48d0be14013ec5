//! Does a controller of one namespace need nothing in the cluster? It runs with the very Roles of
//! `namespace-install.yaml`, updates a Rollout, and asks for nothing that they do not grant.

use std::{collections::BTreeMap, fs, sync::Arc, time::Duration};

use gradus_manifest::{Document, Source};
use kube::Client;
use serde_json::json;
use thiserror::Error;

use super::{deeds::create_namespace, quiet::list};
use crate::{
    Failure,
    audit::{Audit, Request, tally},
    controller::{Election, Settings},
    plane::User,
    real::apply,
    repository,
    stage::Stage,
    takeover::{reached, rollout, set_image},
};

/// The namespace of the account that [`User::Tenant`] is.
const NAMESPACE: &str = "tenant";
const FILE: &str = "namespace-install.yaml";
const UPDATED_WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug, Error)]
enum NamespacedError {
    #[error("{FILE}: {0}")]
    Malformed(String),
    #[error("expected {0}, found {found}", found = list(.1))]
    Unexpected(&'static str, BTreeMap<String, usize>),
}

/// An update from beginning to end.
pub async fn a_role_is_enough(stage: &Stage) -> Result<(), Failure> {
    let client = stage.plane.client(User::Person).await?;
    create_namespace(&client, NAMESPACE).await?;
    for right in rights()? {
        apply(&client, NAMESPACE, &right).await?;
    }
    let audit = Audit::from_now(stage.plane.audit_log())?;
    let mut controller = stage.mortal(&Settings {
        name: "tenant".to_owned(),
        kubeconfig: stage.plane.kubeconfig(User::Tenant),
        namespace: Some(NAMESPACE.to_owned()),
        variables: vec![("POD_NAMESPACE".to_owned(), NAMESPACE.to_owned())],
        election: Some(Election::On),
        ..Settings::default()
    })?;
    controller.is_ready().await?;
    let canary = json!({ "canary": { "steps": [{ "setWeight": 50 }] } });
    apply(&client, NAMESPACE, &rollout("web", &canary)).await?;
    is_healthy_at(&client, "1").await?;
    set_image(&client, NAMESPACE, "web", "example.com/web:2").await?;
    is_healthy_at(&client, "2").await?;
    let is_ours = |one: &&Request| one.is_by(User::Tenant);
    let requests = audit.requests()?;
    let refused = tally(requests.iter().filter(is_ours).filter(|one| one.code == 403));
    if !refused.is_empty() {
        let expected = "no request beyond the rights of a namespace";
        return Err(NamespacedError::Unexpected(expected, refused).into());
    }
    // What is no resource (the version, the kinds that are served) is there for everybody.
    let is_elsewhere =
        |one: &&Request| !one.resource.starts_with('/') && one.namespace != NAMESPACE;
    let elsewhere = tally(requests.iter().filter(is_ours).filter(is_elsewhere));
    if !elsewhere.is_empty() {
        let expected = "no request outside of the namespace";
        return Err(NamespacedError::Unexpected(expected, elsewhere).into());
    }
    Ok(())
}

/// The Rollout has all its pods of this generation.
async fn is_healthy_at(client: &Client, generation: &str) -> Result<(), Failure> {
    let wanted = ("Healthy with all pods of the image", UPDATED_WITHIN);
    reached(client, (NAMESPACE, "web"), wanted, |status| {
        status["phase"] == "Healthy"
            && status["stableRS"] == status["currentPodHash"]
            && status["observedGeneration"] == generation
    })
    .await
}

/// The account, its Roles and their bindings, as they are shipped.
fn rights() -> Result<Vec<serde_json::Value>, Failure> {
    let text = fs::read_to_string(repository().join("manifests").join(FILE))?;
    let source = Arc::new(Source { name: FILE.to_owned(), text });
    let documents = gradus_manifest::read(&source);
    let documents = documents.map_err(|error| NamespacedError::Malformed(error.message))?;
    let all = documents.iter().map(Document::json);
    let is_right = |one: &serde_json::Value| {
        ["ServiceAccount", "Role", "RoleBinding"].iter().any(|kind| one["kind"] == *kind)
    };
    Ok(all.filter(is_right).collect())
}
