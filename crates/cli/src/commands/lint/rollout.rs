//! Would the controller accept a Rollout, together with the objects that stand beside it?

use gradus_api::decode::decode;
use gradus_api::names;
use gradus_api::rollout::RolloutSpec;
use gradus_api::validate::{Source, validate};
use gradus_engine::frame::Frame;
use gradus_engine::rollout::services;
use gradus_engine::world::{RolloutView, ServiceView};

use super::finding::Finding;
use crate::manifest::Document;

/// Is it a Rollout of ours?
pub fn is_rollout(document: &Document) -> bool {
    is(document, names::GROUP, names::kind::ROLLOUT)
}

fn is(document: &Document, group: &str, kind: &str) -> bool {
    let version = document.text(&["apiVersion"]).unwrap_or_default();
    let found = version.split_once('/').map_or("", |(group, _)| group);
    found == group && document.text(&["kind"]) == Some(kind)
}

/// What the controller refuses of it, and its spec.
pub fn check(document: &Document, all: &[Document]) -> (Vec<Finding>, RolloutSpec) {
    let object = document.json();
    let (spec, unreadable) = decode::<RolloutSpec>(&object["spec"]);
    let mut findings: Vec<Finding> = Vec::new();
    for error in unreadable {
        findings.push(Finding::error(document, &format!("spec.{}", error.path), error.message));
    }
    for error in validate(&spec, Source::Written) {
        findings.push(Finding::refused(document, &error));
    }
    // A frame is tolerant of everything but its metadata, whose faults the schema has told.
    if let Ok(frame) = serde_json::from_value::<Frame>(object) {
        findings.extend(unfit_services(document, &RolloutView::read(&frame, None), all));
    }
    (findings, spec)
}

/// Services of the same files that select other pods, or belong to another Rollout.
fn unfit_services(document: &Document, view: &RolloutView, all: &[Document]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for services::Reference { field, name } in services::references(&view.spec.fields) {
        let named = all.iter().filter(|other| {
            is(other, "", "Service") && other.text(&["metadata", "name"]) == Some(name)
        });
        let here = named.filter(|other| namespace(other) == namespace(document));
        for frame in here.filter_map(|other| serde_json::from_value::<Frame>(other.json()).ok()) {
            if let Some(detail) = services::mismatch(view, &ServiceView::read(&frame)) {
                let message = format!("Invalid value: {name:?}: {detail}");
                findings.push(Finding::error(document, field, message));
            }
        }
    }
    findings
}

fn namespace(document: &Document) -> &str {
    document.text(&["metadata", "namespace"]).unwrap_or_default()
}
