//! Which series are there? Those that applications, ingress-nginx and Istio are known for, with their
//! labels.

use std::sync::Arc;

use gradus_promql::{Labels, NAME};

use super::TargetKey;
use super::route::{RouterKind, Stream};
use crate::SimCluster;
use crate::object::Object;

/// Limits of the buckets of answer times, in seconds.
pub(super) const BUCKETS: [f64; 11] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Who counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    /// A pod itself.
    Application,
    /// ingress-nginx.
    Nginx,
    /// The proxies of Istio.
    Istio,
}

/// Which count a series has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Good,
    Bad,
    All,
    Seconds,
    Milliseconds,
    /// The bucket with this limit, or the last one, which has none.
    Within(usize),
    Up,
}

/// The names of all series.
const NAMES: [&str; 13] = [
    "up",
    "http_requests_total",
    "http_request_duration_seconds_bucket",
    "http_request_duration_seconds_sum",
    "http_request_duration_seconds_count",
    "nginx_ingress_controller_requests",
    "nginx_ingress_controller_request_duration_seconds_bucket",
    "nginx_ingress_controller_request_duration_seconds_sum",
    "nginx_ingress_controller_request_duration_seconds_count",
    "istio_requests_total",
    "istio_request_duration_milliseconds_bucket",
    "istio_request_duration_milliseconds_sum",
    "istio_request_duration_milliseconds_count",
];

/// Is there a series of this name wherever requests are served so?
pub fn knows(name: &str) -> bool {
    NAMES.contains(&name)
}

impl Family {
    /// The series of a target with these labels.
    pub(super) fn series(self, labels: &Labels) -> Vec<(Labels, Part)> {
        let (requests, codes, duration, unit) = match self {
            Family::Application => (
                "http_requests_total",
                &["code", "status"][..],
                "http_request_duration_seconds",
                1.0,
            ),
            Family::Nginx => (
                "nginx_ingress_controller_requests",
                &["status"][..],
                "nginx_ingress_controller_request_duration_seconds",
                1.0,
            ),
            Family::Istio => (
                "istio_requests_total",
                &["response_code"][..],
                "istio_request_duration_milliseconds",
                1000.0,
            ),
        };
        let with = |name: &str, more: &[(&str, &str)]| {
            let mut labels = labels.clone();
            labels.insert(NAME.to_owned(), name.to_owned());
            labels
                .extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
            labels
        };
        let coded = |code: &str| {
            with(requests, &codes.iter().map(|name| (*name, code)).collect::<Vec<_>>())
        };
        let sum = if unit > 1.0 { Part::Milliseconds } else { Part::Seconds };
        let mut all = vec![
            (coded("200"), Part::Good),
            (coded("500"), Part::Bad),
            (with(&format!("{duration}_count"), &[]), Part::All),
            (with(&format!("{duration}_sum"), &[]), sum),
        ];
        let bucket = format!("{duration}_bucket");
        for (index, limit) in BUCKETS.iter().enumerate() {
            let limit = (limit * unit).to_string();
            all.push((with(&bucket, &[("le", &limit)]), Part::Within(index)));
        }
        all.push((with(&bucket, &[("le", "+Inf")]), Part::Within(BUCKETS.len())));
        if self == Family::Application {
            all.push((with("up", &[]), Part::Up));
        }
        all
    }
}

/// What counts the requests of a stream to a pod.
pub(super) fn targets(
    cluster: &SimCluster,
    stream: &Stream<'_>,
    pod: &Arc<Object>,
) -> Vec<TargetKey> {
    let mut found = vec![application(cluster, stream, pod)];
    match stream.router.map(|router| router.kind) {
        Some(RouterKind::Ingress) => found.extend(nginx(stream)),
        Some(RouterKind::Istio) => found.push(istio(cluster, stream, pod)),
        Some(RouterKind::Gateway) | None => {}
    }
    found
}

/// As Prometheus labels what it finds by a Service: the labels of the pod among them.
fn application(cluster: &SimCluster, stream: &Stream<'_>, pod: &Arc<Object>) -> TargetKey {
    let mut labels = pod_labels(pod);
    let name = &*pod.meta.name;
    let fixed = [
        ("namespace", stream.namespace),
        ("service", &stream.service),
        ("job", &stream.service),
        ("pod", name),
        ("instance", name),
        ("method", "GET"),
    ];
    labels.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let container = pod.spec["containers"][0]["name"].as_str().unwrap_or_default();
    labels.insert("container".to_owned(), container.to_owned());
    labels.insert("workload".to_owned(), workload(cluster, pod));
    TargetKey { family: Family::Application, labels }
}

fn pod_labels(pod: &Object) -> Labels {
    let sound = |name: &str| name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_");
    pod.meta.labels.iter().map(|(name, value)| (sound(name), value.to_string())).collect()
}

fn nginx(stream: &Stream<'_>) -> Option<TargetKey> {
    let ingress = stream.router?.object;
    let host = ingress.spec["rules"][0]["host"].as_str().unwrap_or_default();
    let (namespace, service) = (stream.namespace, &*stream.service);
    let labels = [
        ("namespace", namespace),
        ("exported_namespace", namespace),
        ("ingress", &*ingress.meta.name),
        ("service", service),
        ("exported_service", service),
        ("host", host),
        ("method", "GET"),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Some(TargetKey { family: Family::Nginx, labels: labels.into() })
}

fn istio(cluster: &SimCluster, stream: &Stream<'_>, pod: &Arc<Object>) -> TargetKey {
    let (namespace, service) = (stream.namespace, &*stream.service);
    let mut labels = pod_labels(pod);
    let host = format!("{service}.{namespace}.svc.cluster.local");
    let version = pod.meta.labels.get("version").map(ToString::to_string).unwrap_or_default();
    let workload = workload(cluster, pod);
    let fixed = [
        ("namespace", namespace),
        ("pod", &*pod.meta.name),
        ("reporter", "destination"),
        ("destination_service", &host),
        ("destination_service_name", service),
        ("destination_service_namespace", namespace),
        ("destination_workload", &workload),
        ("destination_workload_namespace", namespace),
        ("destination_version", &version),
        ("request_protocol", "http"),
    ];
    labels.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
    TargetKey { family: Family::Istio, labels }
}

/// The name of what the pod belongs to in the end.
fn workload(cluster: &SimCluster, pod: &Arc<Object>) -> String {
    let owner = |object: &Object| {
        object.meta.owners.iter().find(|owner| owner.controller == Some(true)).cloned()
    };
    let Some(mut last) = owner(pod) else { return pod.meta.name.to_string() };
    while let Some(next) = cluster.by_uid(&last.uid).and_then(|object| owner(object)) {
        last = next;
    }
    last.name.to_string()
}
