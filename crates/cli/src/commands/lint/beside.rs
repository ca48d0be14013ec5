//! Which objects of the same files does a manifest name, and which are missing there?

use std::sync::Arc;

use gradus_api::names::{self, kind};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::traffic::{Need, RouteView, Router, RoutingObjects};
use gradus_engine::world::{Known, RolloutView, TemplateView, Templates};
use serde_json::Value;

use super::finding::Finding;
use crate::near;
use gradus_manifest::Document;

/// A manifest among others.
#[derive(Clone, Copy)]
pub struct Beside<'d> {
    /// The manifest.
    pub document: &'d Document,
    /// All manifests of the files.
    pub all: &'d [Document],
}

/// Is it of this kind, in any version?
pub fn is(document: &Document, group: &str, kind: &str) -> bool {
    let version = document.text(&["apiVersion"]).unwrap_or_default();
    let found = version.split_once('/').map_or("", |(group, _)| group);
    found == group && document.text(&["kind"]) == Some(kind)
}

impl<'d> Beside<'d> {
    /// The objects of a kind in the namespace of the manifest, or of the cluster.
    pub fn of(self, wanted: &Kind) -> impl Iterator<Item = Value> + use<'d> {
        let Kind { group, name, .. } = wanted.clone();
        let here = self.document.text(&["metadata", "namespace"]);
        let is_everywhere = *wanted == kinds::CLUSTER_ANALYSIS_TEMPLATE;
        let found = self.all.iter().filter(move |other| {
            is(other, &group, &name)
                && (is_everywhere || other.text(&["metadata", "namespace"]) == here)
        });
        found.map(Document::json)
    }

    /// The object of this name.
    pub fn find(self, wanted: &Kind, name: &str) -> Option<Value> {
        self.of(wanted).find(|object| object["metadata"]["name"] == name)
    }

    /// The document of the object of this name.
    pub fn document_of(self, wanted: &Kind, name: &str) -> Option<&'d Document> {
        let here = self.document.text(&["metadata", "namespace"]);
        self.all.iter().find(|other| {
            is(other, &wanted.group, &wanted.name)
                && other.text(&["metadata", "name"]) == Some(name)
                && other.text(&["metadata", "namespace"]) == here
        })
    }

    /// A word about a name that is not there. Files without any object of the kind are silent: it
    /// may be anywhere.
    pub fn missing(self, wanted: &Kind, name: &str, path: &str) -> Option<Finding> {
        let there = near::names(&self.of(wanted).collect::<Vec<_>>());
        if there.is_empty() {
            return None;
        }
        // One of that name in another group, or of a kind that is nearly this one, is said there.
        let is_meant = |other: &&Document| {
            let kind = other.text(&["kind"]).unwrap_or_default();
            other.text(&["metadata", "name"]) == Some(name)
                && !is(other, &wanted.group, &wanted.name)
                && !near::offered(kind, &[wanted.name.to_string()]).is_empty()
        };
        if self.all.iter().any(|other| is_meant(&other)) {
            return None;
        }
        // A name that no object can have is said where it stands.
        let is_odd = |name: &String| {
            let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            name.len() > 253
                || !name.chars().all(|c| is_inner(c) || c == '-' || c == '.')
                || !name.starts_with(is_inner)
                || !name.ends_with(is_inner)
        };
        if there.iter().any(is_odd) {
            return None;
        }
        let near = near::offered(name, &there);
        let hint = match near.as_slice() {
            [] => format!("they hold {}", there.join(", ")),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        let message = format!("there is no {} {name:?} in these files; {hint}", wanted.name);
        Some(Finding::warning(self.document, path, message))
    }

    /// The analysis templates that the manifest can name.
    pub fn templates(self) -> Templates {
        let of = |wanted: &Kind| {
            let frames = self.of(wanted).filter_map(|object| serde_json::from_value(object).ok());
            let views = frames.map(|frame: Frame| Arc::new(TemplateView::read(&frame)));
            views.map(|view| (Arc::clone(&view.name), Known::Present(view))).collect()
        };
        Templates {
            namespaced: of(&kinds::ANALYSIS_TEMPLATE),
            cluster: of(&kinds::CLUSTER_ANALYSIS_TEMPLATE),
        }
    }

    /// The objects that a router of this Rollout needs, as far as they are in these files. One in
    /// another namespace is found by the namespace it says.
    pub fn routes(self, rollout: &RolloutView, router: &dyn Router) -> RoutingObjects {
        let found = |need: Need| {
            let ObjectRef { kind, namespace, name } = &need.object;
            let is_here = *namespace == rollout.namespace;
            let there = self.all.iter().filter(|other| is(other, &kind.group, &kind.name));
            let mut there = there.map(Document::json);
            let is_named = |object: &Value| object["metadata"]["name"] == **name;
            let elsewhere = |object: &Value| object["metadata"]["namespace"] == **namespace;
            let object = match is_here {
                true => self.find(kind, name),
                false => there.find(|object| is_named(object) && elsewhere(object)),
            };
            Some((need.object.clone(), RouteView(Arc::new(object?))))
        };
        let mut seen: RoutingObjects = router.needs().into_iter().filter_map(found).collect();
        for selection in router.selections() {
            let there =
                self.all.iter().filter(|one| is(one, &selection.kind.group, &selection.kind.name));
            for object in there.map(Document::json) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let place = object["metadata"]["namespace"].as_str();
                let place = place.map_or_else(|| Arc::clone(&rollout.namespace), Into::into);
                let reference = ObjectRef::new(selection.kind.clone(), &place, &name.into());
                seen.insert(reference, RouteView(Arc::new(object)));
            }
        }
        let further = router.leads_to(&seen);
        seen.extend(further.into_iter().filter_map(found));
        seen
    }
}

/// Is it a template of an analysis?
pub fn is_template(document: &Document) -> bool {
    let kinds = [kind::ANALYSIS_TEMPLATE, kind::CLUSTER_ANALYSIS_TEMPLATE];
    kinds.iter().any(|kind| is(document, names::GROUP, kind))
}
