//! Who would serve a request now? Services and their ready pods, and how routers split requests
//! between them: canary Ingresses of nginx, actions of an AWS load balancer, HTTPRoutes of the
//! Gateway API, VirtualServices of Istio.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::SimCluster;
use crate::kinds::KindId;
use crate::object::Object;

/// A part of all requests, and the pods that serve it.
#[derive(Clone, Debug)]
pub(super) struct Stream<'c> {
    pub(super) namespace: &'c str,
    pub(super) service: String,
    /// The router that sends it, if one does.
    pub(super) router: Option<Router<'c>>,
    /// So much of what reaches the cluster at this point, from 0 to 1.
    pub(super) share: f64,
    pub(super) pods: Vec<&'c Arc<Object>>,
}

/// A router object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Router<'c> {
    pub(super) kind: RouterKind,
    pub(super) object: &'c Arc<Object>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouterKind {
    Ingress,
    Gateway,
    Istio,
}

/// Where a router sends a part of its requests.
struct Sent {
    service: String,
    weight: f64,
    /// Only pods with these labels.
    labels: BTreeMap<String, String>,
}

impl Sent {
    fn new(service: &str, weight: f64) -> Self {
        Sent { service: service.to_owned(), weight, labels: BTreeMap::new() }
    }
}

/// All streams of requests. Each entry point gets as many requests as any other: every rule of a
/// router, and every Service that no router sends to.
pub(super) fn streams(cluster: &SimCluster) -> Vec<Stream<'_>> {
    let pods: Vec<&Arc<Object>> = cluster.list(KindId::POD, "").filter(|pod| serves(pod)).collect();
    let mut found = Vec::new();
    let mut routed: BTreeSet<(&str, String)> = BTreeSet::new();
    for router in routers(cluster) {
        let namespace = &*router.object.meta.namespace;
        for rule in rules(cluster, router) {
            let all: f64 = rule.iter().map(|sent| sent.weight).sum();
            for sent in rule {
                routed.insert((namespace, sent.service.clone()));
                let share = if all > 0.0 { sent.weight / all } else { 0.0 };
                let selector = selector(cluster, namespace, &sent.service);
                let is_meant = |pod: &&&Arc<Object>| {
                    &*pod.meta.namespace == namespace
                        && selector.as_ref().is_some_and(|wanted| has(pod, wanted))
                        && has(pod, &sent.labels)
                };
                let pods = pods.iter().filter(is_meant).copied().collect();
                let (service, router) = (sent.service.clone(), Some(router));
                found.push(Stream { namespace, service, router, share, pods });
            }
        }
    }
    for object in cluster.list(KindId::SERVICE, "") {
        let (namespace, name) = (&*object.meta.namespace, object.meta.name.to_string());
        let Some(wanted) = selector(cluster, namespace, &name) else { continue };
        if routed.contains(&(namespace, name.clone())) {
            continue;
        }
        let is_meant = |pod: &&&Arc<Object>| &*pod.meta.namespace == namespace && has(pod, &wanted);
        let pods = pods.iter().filter(is_meant).copied().collect();
        found.push(Stream { namespace, service: name, router: None, share: 1.0, pods });
    }
    found
}

/// How a namespace's routers split requests between pods, by the value of a label of these: parts that
/// add up to 1 where every destination has pods.
pub fn answering(cluster: &SimCluster, namespace: &str, label: &str) -> BTreeMap<String, f64> {
    let mut found: BTreeMap<String, f64> = BTreeMap::new();
    let all = streams(cluster);
    let routed = || all.iter().filter(|one| one.namespace == namespace && one.router.is_some());
    let whole: f64 = routed().map(|stream| stream.share).sum();
    for stream in routed() {
        for pod in &stream.pods {
            let value = pod.meta.labels.get(label).map_or("", |value| &**value);
            #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 pods")]
            let part = stream.share / whole / stream.pods.len() as f64;
            *found.entry(value.to_owned()).or_default() += part;
        }
    }
    found
}

fn serves(pod: &Object) -> bool {
    pod.meta.deleting.is_none() && pod.pod.as_ref().is_some_and(|status| status.ready)
}

fn has(object: &Object, wanted: &BTreeMap<String, String>) -> bool {
    let labels = &object.meta.labels;
    wanted.iter().all(|(name, value)| labels.get(name.as_str()).is_some_and(|is| **is == **value))
}

/// The labels that a Service selects by; none where it selects nothing.
fn selector(
    cluster: &SimCluster,
    namespace: &str,
    service: &str,
) -> Option<BTreeMap<String, String>> {
    let selector = &cluster.get(KindId::SERVICE, namespace, service)?.spec["selector"];
    texts(selector).filter(|labels| !labels.is_empty())
}

fn texts(value: &Value) -> Option<BTreeMap<String, String>> {
    let pairs = value.as_object()?.iter();
    Some(pairs.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect())
}

fn routers(cluster: &SimCluster) -> Vec<Router<'_>> {
    let named = |group: &str, name: &str| cluster.kinds().by_group(group, name);
    let kinds = [
        (Some(KindId::INGRESS), RouterKind::Ingress),
        (named("gateway.networking.k8s.io", "HTTPRoute"), RouterKind::Gateway),
        (named("networking.istio.io", "VirtualService"), RouterKind::Istio),
    ];
    let each = kinds.into_iter().filter_map(|(id, kind)| Some((id?, kind)));
    each.flat_map(|(id, kind)| {
        cluster.list(id, "").map(move |object| Router { kind, object }).collect::<Vec<_>>()
    })
    .collect()
}

/// What each rule of a router sends where.
fn rules(cluster: &SimCluster, router: Router<'_>) -> Vec<Vec<Sent>> {
    match router.kind {
        RouterKind::Ingress => ingress(cluster, router.object),
        RouterKind::Gateway => {
            let rules = list(&router.object.spec["rules"]).iter();
            rules
                .map(|rule| list(&rule["backendRefs"]).iter().filter_map(backend).collect())
                .collect()
        }
        RouterKind::Istio => {
            let rules = list(&router.object.spec["http"]).iter();
            rules
                .map(|rule| {
                    let routes = list(&rule["route"]);
                    let is_only = routes.len() == 1;
                    let sent = |route: &Value| destination(cluster, router.object, route, is_only);
                    routes.iter().filter_map(sent).collect()
                })
                .collect()
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn backend(backend: &Value) -> Option<Sent> {
    Some(Sent::new(backend["name"].as_str()?, backend["weight"].as_f64().unwrap_or(1.0)))
}

/// A destination of Istio; its subset selects among the pods of the host.
fn destination(
    cluster: &SimCluster,
    object: &Object,
    route: &Value,
    is_only: bool,
) -> Option<Sent> {
    let host = route["destination"]["host"].as_str()?;
    let service = host.split('.').next().unwrap_or(host);
    let weight = route["weight"].as_f64().unwrap_or(if is_only { 100.0 } else { 0.0 });
    let mut sent = Sent::new(service, weight);
    if let Some(subset) = route["destination"]["subset"].as_str() {
        let kind = cluster.kinds().by_group("networking.istio.io", "DestinationRule");
        let rules = kind.into_iter().flat_map(|kind| cluster.list(kind, &object.meta.namespace));
        let mut subsets = rules
            .filter(|rule| {
                rule.spec["host"].as_str().and_then(|h| h.split('.').next()) == Some(service)
            })
            .flat_map(|rule| list(&rule.spec["subsets"]));
        let found = subsets.find(|one| one["name"] == subset)?;
        sent.labels = texts(&found["labels"]).unwrap_or_default();
    }
    Some(sent)
}

/// The rules of an Ingress. A canary Ingress of nginx has none of its own: it takes its weight of the
/// rules of the Ingress with the same host and path.
fn ingress(cluster: &SimCluster, object: &Arc<Object>) -> Vec<Vec<Sent>> {
    if is_canary(object) {
        return Vec::new();
    }
    let canaries = cluster.list(KindId::INGRESS, &object.meta.namespace).filter(|o| is_canary(o));
    let canaries: Vec<&Arc<Object>> = canaries.collect();
    let mut rules: Vec<Vec<Sent>> = Vec::new();
    for (place, name) in paths(object) {
        if let Some(action) = annotation(object, &format!("actions.{name}")) {
            rules.extend(forward(action));
            continue;
        }
        let mut rule = vec![Sent::new(name, 100.0)];
        for canary in &canaries {
            let weight = annotation(canary, "canary-weight").and_then(|text| text.parse().ok());
            let weight: f64 = weight.unwrap_or(0.0);
            if let Some((_, name)) = paths(canary).into_iter().find(|(other, _)| *other == place) {
                rule[0].weight -= weight;
                rule.push(Sent::new(name, weight));
            }
        }
        rules.push(rule);
    }
    rules
}

fn is_canary(ingress: &Object) -> bool {
    annotation(ingress, "canary") == Some("true")
}

/// An annotation, whatever prefix the ingress controller was given.
fn annotation<'o>(object: &'o Object, name: &str) -> Option<&'o str> {
    let mut all = object.meta.annotations.iter();
    all.find(|(key, _)| key.split_once('/').is_some_and(|(_, rest)| rest == name))
        .map(|(_, value)| &**value)
}

/// Host and path of each backend Service, and its name.
fn paths(ingress: &Object) -> Vec<((&str, &str), &str)> {
    let default = ingress.spec["defaultBackend"]["service"]["name"].as_str();
    let rules = list(&ingress.spec["rules"]).iter().flat_map(|rule| {
        let host = rule["host"].as_str().unwrap_or_default();
        list(&rule["http"]["paths"]).iter().filter_map(move |path| {
            let place = (host, path["path"].as_str().unwrap_or_default());
            Some((place, path["backend"]["service"]["name"].as_str()?))
        })
    });
    rules.chain(default.map(|name| (("", ""), name))).collect()
}

/// The target groups of an action of an AWS load balancer.
fn forward(action: &str) -> Option<Vec<Sent>> {
    let action: Value = serde_json::from_str(action).ok()?;
    let groups = |name: &str, field: &str| {
        let of = |config: &Value| config[field].as_array().cloned();
        action
            .as_object()?
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .and_then(|(_, config)| of(config))
    };
    let groups = groups("forwardConfig", "targetGroups")
        .or_else(|| groups("forwardConfig", "TargetGroups"))?;
    let text = |group: &Value, names: [&str; 2]| {
        names.iter().find_map(|name| group[*name].as_str().map(str::to_owned))
    };
    let sent = |group: &Value| {
        let name = text(group, ["serviceName", "ServiceName"])?;
        let weight = ["weight", "Weight"].iter().find_map(|name| group[*name].as_f64());
        Some(Sent::new(&name, weight.unwrap_or(1.0)))
    };
    Some(groups.iter().filter_map(sent).collect())
}
