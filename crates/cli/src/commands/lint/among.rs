//! What do objects of the same files mean for each other: two of one name, one Service of two Rollouts, a
//! version that no server has any more?

use std::sync::Arc;

use gradus_api::decode::decode;
use gradus_api::names::{self, kind};
use gradus_api::rollout::RolloutSpec;
use gradus_engine::rollout::services;
use serde_json::Value;

use super::beside::{Beside, is};
use super::finding::Finding;
use gradus_manifest::Document;

/// Everything that surprises whoever applies all of them.
pub fn check(beside: Beside<'_>) -> Vec<Finding> {
    let found = twice(beside).into_iter().chain(shared(beside));
    found.chain(outdated(beside.document)).collect()
}

/// The documents of the same file that stand above this one.
fn above(beside: Beside<'_>) -> impl Iterator<Item = &Document> {
    let Beside { document, all } = beside;
    let above = all.iter().take_while(move |other| !std::ptr::eq(*other, document));
    above.filter(|other| Arc::ptr_eq(&other.source, &document.source))
}

fn is_beside(one: &Document, other: &Document) -> bool {
    let namespace = ["metadata", "namespace"];
    one.text(&namespace) == other.text(&namespace)
}

/// An object that stands above already: what is applied last is what stays.
fn twice(beside: Beside<'_>) -> Option<Finding> {
    let document = beside.document;
    let (kind, name) = (document.text(&["kind"])?, document.text(&["metadata", "name"])?);
    let is_same = |other: &Document| {
        let fields: [&[&str]; 3] = [&["apiVersion"], &["kind"], &["metadata", "name"]];
        fields.iter().all(|field| other.text(field) == document.text(field))
            && is_beside(other, document)
    };
    above(beside).find(|other| is_same(other))?;
    let message = format!("{kind} {name:?} stands twice in this file; only the last one counts");
    Some(Finding::warning(document, "metadata.name", message).about("repeated-object"))
}

/// Services that a Rollout above names, too.
fn shared(beside: Beside<'_>) -> Vec<Finding> {
    let document = beside.document;
    let is_rollout = |document: &Document| is(document, names::GROUP, kind::ROLLOUT);
    if !is_rollout(document) {
        return Vec::new();
    }
    let own_name = document.text(&["metadata", "name"]);
    let others = above(beside).filter(|other| {
        is_rollout(other)
            && is_beside(other, document)
            && other.text(&["metadata", "name"]) != own_name
    });
    let others: Vec<Value> = others.map(Document::json).collect();
    let (spec, _) = decode::<RolloutSpec>(&document.json()["spec"]);
    let taken = services::references(&spec).filter_map(|services::Reference { field, name }| {
        let other =
            others.iter().find(|other| services::names_in(&other["spec"]).contains(&name))?;
        let message = format!(
            "Rollout {} names Service {name:?}, too: a Service belongs to one Rollout",
            other["metadata"]["name"]
        );
        Some(Finding::warning(document, field, message).about("service"))
    });
    taken.collect()
}

/// An Ingress in a version that Kubernetes 1.22 has taken away.
fn outdated(document: &Document) -> Option<Finding> {
    let version = document.text(&["apiVersion"])?;
    let is_old = ["extensions/v1beta1", "networking.k8s.io/v1beta1"].contains(&version);
    let message = format!(
        "no Kubernetes since 1.22 has an Ingress in {version:?}: its apiVersion is \
         networking.k8s.io/v1"
    );
    let is_found = is_old && document.text(&["kind"]) == Some("Ingress");
    is_found.then(|| Finding::warning(document, "apiVersion", message).about("kind"))
}
