//! Is there a kind of this name in this version, of ours or of Kubernetes?

use gradus_api::names;

use super::finding::{Finding, Severity};
use crate::near;
use gradus_manifest::Document;

/// Groups of Kubernetes itself, none of which has a kind of ours.
const KUBERNETES: [&str; 7] =
    ["", "apps", "batch", "autoscaling", "extensions", "networking.k8s.io", "policy"];

/// Kinds of Kubernetes that are written beside Rollouts, or instead of them, and their versions.
const NOT_OURS: [(&str, &str); 14] = [
    ("ConfigMap", "v1"),
    ("CronJob", "batch/v1"),
    ("DaemonSet", "apps/v1"),
    ("Deployment", "apps/v1"),
    ("HorizontalPodAutoscaler", "autoscaling/v2"),
    ("Ingress", "networking.k8s.io/v1"),
    ("Job", "batch/v1"),
    ("Pod", "v1"),
    ("PodDisruptionBudget", "policy/v1"),
    ("ReplicaSet", "apps/v1"),
    ("Secret", "v1"),
    ("Service", "v1"),
    ("ServiceAccount", "v1"),
    ("StatefulSet", "apps/v1"),
];

/// All kinds that people write, by the version that has them.
const OF_VERSION: [(&str, &[&str]); 7] = [
    (
        "v1",
        &[
            "Binding",
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    ("apps/v1", &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
    ("batch/v1", &["CronJob", "Job"]),
    ("autoscaling/v1", &["HorizontalPodAutoscaler", "Scale"]),
    ("autoscaling/v2", &["HorizontalPodAutoscaler"]),
    (
        "networking.k8s.io/v1",
        &["IPAddress", "Ingress", "IngressClass", "NetworkPolicy", "ServiceCIDR"],
    ),
    ("policy/v1", &["Eviction", "PodDisruptionBudget"]),
];

/// Versions of Ingress that are gone, which `kubectl argo rollouts lint` still reads.
const OLD_INGRESS: [&str; 2] = ["extensions/v1beta1", "networking.k8s.io/v1beta1"];

/// A kind or a group that is nearly one of ours or of Kubernetes. Others belong to other programs.
pub fn slip(document: &Document, version: &str, kind: &str, ours: &[String]) -> Option<Finding> {
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let is_ours = ours.iter().any(|known| known == kind);
    let is_near = !near::offered(group, &[names::GROUP.to_owned()]).is_empty()
        || group.ends_with(names::GROUP);
    if is_ours && (KUBERNETES.contains(&group) || is_near) {
        return Some(wrong(document, names::API_VERSION, kind));
    }
    if group != names::GROUP {
        return of_kubernetes(document, version, kind);
    }
    if let Some((_, right)) = NOT_OURS.iter().find(|(known, _)| *known == kind) {
        return Some(wrong(document, right, kind));
    }
    let near = near::offered(kind, ours);
    let message = format!("{group} has no kind {kind:?}; did you mean {}?", near.join(" or "));
    (!near.is_empty()).then(|| Finding::error(document, "kind", message).about("kind"))
}

/// A kind of Kubernetes in a version that does not have it.
pub fn of_kubernetes(document: &Document, version: &str, kind: &str) -> Option<Finding> {
    let group = version.split_once('/').map_or("", |(group, _)| group);
    if kind.ends_with("List") || kind == "Ingress" && OLD_INGRESS.contains(&version) {
        return None;
    }
    let right = NOT_OURS.iter().find(|(known, _)| *known == kind).map(|(_, right)| *right);
    let there = OF_VERSION.iter().find(|(known, _)| *known == version).map(|(_, kinds)| *kinds);
    match (there, right) {
        (Some(kinds), _) if kinds.contains(&kind) => None,
        // Groups with a dot belong to others, who may have a kind of the same name.
        (_, Some(right)) if KUBERNETES.contains(&group) || !group.contains('.') => {
            let mut finding = wrong(document, right, kind);
            // Exports of old clusters have versions that are gone: a new server has none of them.
            if version.contains("beta") {
                finding.severity = Severity::Warning;
            }
            Some(finding)
        }
        (Some(kinds), None) => {
            let kinds: Vec<String> = kinds.iter().map(|&kind| kind.to_owned()).collect();
            let near = near::offered(kind, &kinds);
            let message =
                format!("{version} has no kind {kind:?}; did you mean {}?", near.first()?);
            Some(Finding::error(document, "kind", message).about("kind"))
        }
        _ => None,
    }
}

/// A kind in a version that does not have it.
pub fn wrong(document: &Document, right: &str, kind: &str) -> Finding {
    let message = match document.text(&["apiVersion"]) {
        None | Some("") => format!("a {kind} needs the apiVersion {right}"),
        Some(found) => format!("there is no {kind} in {found:?}: its apiVersion is {right}"),
    };
    Finding::error(document, "apiVersion", message).about("kind")
}
