//! What a person does to the cluster, and what the controller did to it.

use std::collections::BTreeMap;

use gradus_lab::person::{Deed, PersonalWrite};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    },
};
use serde_json::{Value, json};

use crate::{
    Failure,
    audit::{Audit, AuditError},
    plane::User,
};

/// Creates a namespace.
pub async fn create_namespace(client: &Client, name: &str) -> Result<(), kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    namespaces.create(&PostParams::default(), &namespace).await.map(drop)
}

/// Begins the removal of a namespace with everything in it.
pub async fn remove_namespace(client: &Client, name: &str) -> Result<(), kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.delete(name, &DeleteParams::default()).await.map(drop)
}

/// Creates an object, or lays it over the one that is there; returns its version.
pub async fn apply(client: &Client, namespace: &str, object: &Value) -> Result<u64, Failure> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let write = PersonalWrite {
        api_version: text(&object["apiVersion"]),
        kind: text(&object["kind"]),
        name: text(&object["metadata"]["name"]),
        deed: Deed::Apply(object.clone()),
    };
    perform(client, namespace, &write).await
}

/// Does what a person does; returns the version that came of it, 0 for none.
pub async fn perform(
    client: &Client,
    namespace: &str,
    write: &PersonalWrite,
) -> Result<u64, Failure> {
    let resource = resource(&write.api_version, &write.kind);
    // The one kind of the scenarios that has no namespaces; all that share its name have its spec.
    let is_of_cluster = write.kind == gradus_api::names::kind::CLUSTER_ANALYSIS_TEMPLATE;
    let api: Api<DynamicObject> = if is_of_cluster {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    };
    let (name, parameters) = (write.name.as_str(), PatchParams::default());
    let written = match &write.deed {
        Deed::Apply(object) => {
            let mut object = object.clone();
            if !is_of_cluster {
                object["metadata"]["namespace"] = json!(namespace);
            }
            let created: DynamicObject = serde_json::from_value(object.clone())?;
            match api.create(&PostParams::default(), &created).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => {
                    api.patch(name, &parameters, &Patch::Merge(&object)).await?
                }
                created => created?,
            }
        }
        Deed::Merge(patch) => api.patch(name, &parameters, &Patch::Merge(patch)).await?,
        Deed::MergeStatus(patch) => {
            api.patch_status(name, &parameters, &Patch::Merge(patch)).await?
        }
        Deed::Delete => {
            api.delete(name, &DeleteParams::default()).await?;
            return Ok(0);
        }
    };
    Ok(written.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0))
}

/// How often a controller created or deleted what, in one namespace. Events are not counted: a
/// crash may lose them.
pub fn of_controller(
    audit: &Audit,
    user: User,
    namespace: &str,
) -> Result<BTreeMap<String, usize>, AuditError> {
    let mut counts = BTreeMap::new();
    for request in audit.requests_in(namespace)? {
        let counts_here = request.is_by(user)
            && ["create", "delete"].contains(&request.verb.as_str())
            && request.resource != "events"
            && request.code < 300;
        if counts_here {
            *counts.entry(format!("{} {}", request.verb, request.resource)).or_default() += 1;
        }
    }
    Ok(counts)
}

/// The object that another one names; a null where there is none.
pub async fn find(client: &Client, namespace: &str, named: &Value) -> Result<Value, Failure> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resource = resource(&text(&named["apiVersion"]), &text(&named["kind"]));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    Ok(serde_json::to_value(api.get_opt(&text(&named["metadata"]["name"])).await?)?)
}

/// A kind, for a client.
pub fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}
