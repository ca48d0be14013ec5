//! Can the plugins be called that a manifest names, and are those usable that a ConfigMap lists?

use gradus_api::names::{self, is_plugin_name, kind};
use gradus_controller::plugins::conformance::Interface;
use gradus_controller::plugins::{listed, refused};
use gradus_engine::traffic;
use gradus_manifest::Document;
use serde_json::Value;

use super::beside::{Beside, is, is_template};
use super::finding::Finding;
use crate::near;

/// The plugin of Argo Rollouts whose work is done here without it.
const GATEWAY_API: &str = "argoproj-labs/gatewayAPI";

/// What is wrong or doubtful with the plugins of a document.
pub fn check(beside: Beside<'_>) -> Vec<Finding> {
    let document = beside.document;
    if is_list(document) {
        // The controller refuses that plugin alone and goes on, and Argo Rollouts takes some of them.
        let wrong = refused(&document.json()["data"]).into_iter();
        let found = wrong.map(|why| {
            let (list, message) = why.split_once(": ").unwrap_or(("", &why));
            Finding::warning(document, &format!("data.{list}"), message.to_owned())
        });
        return found.map(|finding| finding.about("plugin")).collect();
    }
    let used = used(document).into_iter();
    let found = used.filter_map(|used| used.finding(beside)).chain(counts(document));
    found.map(|found| found.about("plugin")).collect()
}

/// Metrics whose provider is no plugin, or more than one.
fn counts(document: &Document) -> Vec<Finding> {
    let object = document.json();
    let metrics = metrics(document, &object).iter().enumerate();
    let plugins = metrics.filter_map(|(at, metric)| {
        Some((at, metric["provider"]["plugin"].as_object().filter(|plugins| plugins.len() != 1)?))
    });
    let finding = |(at, plugins): (usize, &serde_json::Map<String, Value>)| {
        let names: Vec<&str> = plugins.keys().map(String::as_str).collect();
        let found = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let message = format!("a metric is measured by one plugin, and this one names {found}");
        Finding::error(document, &format!("spec.metrics[{at}].provider.plugin"), message)
    };
    plugins.map(finding).collect()
}

/// The metrics of a template or a run.
fn metrics<'o>(document: &Document, object: &'o Value) -> &'o [Value] {
    let measures = is_template(document) || is(document, names::GROUP, kind::ANALYSIS_RUN);
    let metrics = object["spec"]["metrics"].as_array().filter(|_| measures);
    metrics.map_or(&[][..], Vec::as_slice)
}

/// A plugin that a document uses.
struct Used {
    interface: Interface,
    name: String,
    path: String,
}

impl Used {
    fn finding(&self, beside: Beside<'_>) -> Option<Finding> {
        let Used { interface, name, path } = self;
        if !is_plugin_name(name) {
            let message = format!(
                "Invalid value: {name:?}: no plugin can have this name: expected namespace/name"
            );
            return Some(Finding::error(beside.document, path, message));
        }
        // Nearly the name of what needs no plugin here.
        let built_in = [GATEWAY_API.to_owned()];
        if let (Interface::Router, Some(near)) =
            (*interface, near::offered(name, &built_in).first())
        {
            let message = format!("no plugin {name:?} is known; did you mean {near}?");
            return Some(Finding::warning(beside.document, path, message));
        }
        // Files without the ConfigMap are silent: it belongs to the controller.
        let lists: Vec<Value> =
            beside.all.iter().filter(|one| is_list(one)).map(Document::json).collect();
        let known: Vec<String> =
            lists.iter().flat_map(|list| listed(&list["data"], *interface)).collect();
        if lists.is_empty() || known.contains(name) {
            return None;
        }
        let hint = match near::offered(name, &known).as_slice() {
            [] => String::new(),
            near => format!("; did you mean {}?", near.join(" or ")),
        };
        let message = format!("{} lists no plugin {name:?} for this{hint}", names::CONFIG_MAP);
        Some(Finding::warning(beside.document, path, message))
    }
}

/// The ConfigMap of the controller.
fn is_list(document: &Document) -> bool {
    is(document, "", "ConfigMap") && document.text(&["metadata", "name"]) == Some(names::CONFIG_MAP)
}

/// The plugins that a document uses, each with its place.
fn used(document: &Document) -> Vec<Used> {
    let object = document.json();
    let spec = &object["spec"];
    if is(document, names::GROUP, kind::ROLLOUT) {
        let canary = &spec["strategy"]["canary"];
        let steps = canary["steps"].as_array().into_iter().flatten().enumerate();
        let steps = steps.filter_map(|(at, step)| {
            let name = step["plugin"]["name"].as_str()?.to_owned();
            let path = format!("spec.strategy.canary.steps[{at}].plugin.name");
            Some(Used { interface: Interface::Step, name, path })
        });
        let routers = keys(&canary["trafficRouting"]["plugins"], Interface::Router, |name| {
            format!("spec.strategy.canary.trafficRouting.plugins.{name}")
        });
        let routers = routers.filter(|used| !traffic::is_served(&used.name));
        return steps.chain(routers).collect();
    }
    let of_metric = |(at, metric): (usize, &Value)| {
        keys(&metric["provider"]["plugin"], Interface::Metric, move |name| {
            format!("spec.metrics[{at}].provider.plugin.{name}")
        })
        .collect::<Vec<_>>()
    };
    metrics(document, &object).iter().enumerate().flat_map(of_metric).collect()
}

/// Plugins that are named by the keys of a map. One whose name an argument fills in is known later.
fn keys(
    map: &Value,
    interface: Interface,
    path: impl Fn(&str) -> String,
) -> impl Iterator<Item = Used> {
    let names = map.as_object().into_iter().flatten().map(|(name, _)| name);
    let names: Vec<&String> = names.filter(|name| !name.contains("{{")).collect();
    let used =
        names.into_iter().map(|name| Used { interface, name: name.clone(), path: path(name) });
    used.collect::<Vec<_>>().into_iter()
}
