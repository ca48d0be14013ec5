//! Would the controller accept a Rollout, together with the objects that stand beside it?

use std::sync::Arc;

use gradus_api::decode::{FieldError, decode};
use gradus_api::names;
use gradus_api::rollout::RolloutSpec;
use gradus_api::validate::{SpecSource, validate};
use gradus_engine::decision::ObjectRef;
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::rollout::{services, workload};
use gradus_engine::traffic::{self, FaultCause, RouteFault, Router};
use gradus_engine::world::{Origin, RolloutView, ServiceView};
use serde_json::{Value, json};

use super::beside::{Beside, is};
use super::finding::{Finding, UNKNOWN_FIELD};
use super::{analyses, pods, schema};
use gradus_manifest::Document;

/// Is it a Rollout of ours?
pub fn is_rollout(document: &Document) -> bool {
    is(document, names::GROUP, names::kind::ROLLOUT)
}

/// What is wrong or doubtful with it and what it names, and its spec.
pub fn check(beside: Beside<'_>) -> (Vec<Finding>, RolloutSpec) {
    let document = beside.document;
    let object = document.json();
    let (spec, unreadable) = decode::<RolloutSpec>(&object["spec"]);
    let mut findings: Vec<Finding> = Vec::new();
    for error in unreadable.into_iter().map(|error| error.within("spec")) {
        findings.push(Finding::error(document, &error.path, error.message));
    }
    let refused = validate(&spec, SpecSource::Written);
    let has = |field: &str| refused.iter().any(|error| error.path == field);
    let (is_open, is_unserved) =
        (has("spec.selector"), refused.iter().any(|error| error.path.ends_with("Service")));
    let follows = |error: &FieldError| {
        // Without a selector no label matches it; a limit that is wrong holds no weight; a router
        // that cannot do a step needs no name of a route.
        is_open && error.message.contains("`selector` does not match")
            || error.message.contains("needs to be between 0 and -")
            || error.path.ends_with("managedRoutes")
                && refused
                    .iter()
                    .any(|one| one.message.contains("requires TrafficRouting, supports"))
    };
    let mut refused: Vec<Finding> = refused
        .iter()
        .filter(|one| !follows(one))
        .map(|one| Finding::refused(document, one))
        .collect();
    let has_template = !object["spec"]["template"].is_null() || spec.workload_ref.is_some();
    if !has_template && object["spec"]["strategy"].is_object() {
        let message = "Required value: the template of the pods, or a workloadRef";
        refused.retain(|one| !one.path.starts_with("spec.template"));
        findings.push(Finding::error(document, "spec.template", message.to_owned()));
    }
    findings.extend(refused);
    // A frame is tolerant of everything but its metadata, whose faults the schema has told.
    let Ok(frame) = serde_json::from_value::<Frame>(object) else { return (findings, spec) };
    let view = RolloutView::read(&frame, None);
    let (view, wrong) = with_workload(beside, view);
    findings.extend(wrong);
    // Without a template nobody knows which pods a Service must select.
    let mut has_services = true;
    if view.spec.origin != Origin::Referred && has_template {
        let found = of_services(beside, &view);
        has_services = found.is_empty();
        findings.extend(found);
    }
    // A route to no Service leads nowhere.
    if !is_unserved && has_services {
        findings.extend(of_routes(beside, &view));
    }
    findings.extend(analyses::of_rollout(beside, &view));
    // A view keeps the template beside the other fields.
    let template = serde_json::from_str(&view.spec.template).unwrap_or_default();
    (findings, RolloutSpec { template: Arc::new(template), ..view.spec.fields.clone() })
}

/// The Rollout with the template of the workload it refers to, where that is in the files.
fn with_workload(beside: Beside<'_>, view: RolloutView) -> (RolloutView, Vec<Finding>) {
    let document = beside.document;
    let Some(named) = view.spec.fields.workload_ref.clone() else { return (view, Vec::new()) };
    if let Err(error) = workload::kind_of(&named) {
        return (view, vec![Finding::error(document, "spec.workloadRef", error)]);
    }
    let Some(ObjectRef { kind, name, .. }) = workload::reference(&view) else {
        return (view, Vec::new());
    };
    let path = "spec.workloadRef.name";
    let Some(mut found) = beside.find(&kind, &name) else {
        return (view, beside.missing(&kind, &name, path).into_iter().collect());
    };
    if kind == kinds::POD_TEMPLATE {
        found["spec"] = json!({ "template": found["template"].take() });
    }
    let resolved = view.resolved(&found, None);
    let of_template = resolved.spec.errors.iter().filter(|error| {
        ["spec.template", "spec.selector"].iter().any(|field| error.starts_with(field))
    });
    let told = of_template
        .map(|error| Finding::error(document, path, format!("{} {name}: {error}", kind.name)));
    let mut told: Vec<Finding> = told.collect();
    if told.is_empty() {
        let template = if kind == kinds::POD_TEMPLATE { "template" } else { "spec.template" };
        let lender = beside.document_of(&kind, &name);
        told.extend(lender.into_iter().flat_map(|lender| pods::of_template(lender, template)));
    }
    (resolved, told)
}

/// Services that select other pods, belong to another Rollout, or are missing among others.
fn of_services(beside: Beside<'_>, view: &RolloutView) -> Vec<Finding> {
    let mut findings = Vec::new();
    let template: Value = serde_json::from_str(&view.spec.template).unwrap_or_default();
    let labels = &template["metadata"]["labels"];
    // What is wrong with the ports or the labels of the pods is said there.
    let has_ports = !pods::check(beside.document)
        .iter()
        .any(|one| one.path.contains(".ports") || one.path.ends_with("ontainers"));
    for services::Reference { field, name } in services::references(&view.spec.fields) {
        let Some(service) = beside.find(&kinds::SERVICE, name) else {
            findings.extend(beside.missing(&kinds::SERVICE, name, field));
            continue;
        };
        let selector = service["spec"]["selector"].clone();
        let Ok(frame) = serde_json::from_value::<Frame>(service) else { continue };
        let detail = services::mismatch(view, &ServiceView::read(&frame));
        if let Some(detail) = detail.filter(|_| labels.is_object()) {
            let message = format!("Invalid value: {name:?}: {detail}");
            let finding = Finding::error(beside.document, field, message).about("service");
            findings.push(match unselected(&selector, labels) {
                Some(words) if detail.contains("unmatch label") => {
                    let said = format!("{}: {words}", finding.message);
                    finding.in_words(said)
                }
                _ => finding,
            });
        } else if let Some(document) =
            beside.document_of(&kinds::SERVICE, name).filter(|_| has_ports)
        {
            findings.extend(target_ports(document, view));
        }
    }
    findings
}

/// What a selector selects, and what the pods have instead.
fn unselected(selector: &Value, labels: &Value) -> Option<String> {
    let (key, value) = selector.as_object()?.iter().find(|(key, value)| labels[*key] != **value)?;
    let there = match labels[key].as_str() {
        Some(there) => format!("the pods have {key}={there}"),
        None => format!("the pods have no label {key}"),
    };
    Some(format!("it selects {key}={}, and {there}", value.as_str()?))
}

/// Ports of a Service that lead to a name which no container port of the Rollout has.
fn target_ports(service: &Document, view: &RolloutView) -> Vec<Finding> {
    let template: Value = serde_json::from_str(&view.spec.template).unwrap_or_default();
    let lists = ["containers", "initContainers"].map(|list| &template["spec"][list]);
    let containers = lists.into_iter().filter_map(Value::as_array).flatten();
    let names: Vec<String> = containers.flat_map(pods::port_names).collect();
    let object = service.json();
    let ports = object["spec"]["ports"].as_array().into_iter().flatten().enumerate();
    let wrong = ports.filter_map(|(at, port)| {
        if let Some(number) = port["targetPort"].as_i64().filter(|it| !(0..=65_535).contains(it)) {
            let message =
                format!("Invalid value: {number}: must be between 1 and 65535, inclusive");
            let path = format!("spec.ports[{at}].targetPort");
            return Some(Finding::error(service, &path, message).about("port"));
        }
        let wanted = port["targetPort"].as_str()?;
        let is_there = names.iter().any(|name| name == wanted) || wanted.parse::<u16>().is_ok();
        (!is_there).then(|| {
            let (rollout, offer) = (&view.name, pods::offer(wanted, &names));
            let message =
                format!("no container of Rollout {rollout} has a port named {wanted:?}; {offer}");
            let path = format!("spec.ports[{at}].targetPort");
            // Containers need not say their ports, and those that they do not say have no names.
            let found = match names.is_empty() {
                true => Finding::warning(service, &path, message),
                false => Finding::error(service, &path, message),
            };
            found.about("port")
        })
    });
    wrong.collect()
}

/// What keeps a router from its work. `kubectl argo rollouts lint` accepts routing objects that are
/// missing or do not lead to the Service whose traffic is split, so they are no errors here.
fn of_routes(beside: Beside<'_>, view: &RolloutView) -> Vec<Finding> {
    let routers = traffic::routers(view);
    let found = |router: &dyn Router| {
        let RouteFault { path, cause, message, .. } = router.fault(&beside.routes(view, router))?;
        match cause {
            FaultCause::Configuration => Some(Finding::error(beside.document, &path, message)),
            FaultCause::Missing(object) => beside.missing(&object.kind, &object.name, &path),
            FaultCause::Unfit(object) => {
                let there = beside.document_of(&object.kind, &object.name);
                // What is written of its rules cannot be read: that is said where it stands.
                let is_unread = |one: &Finding| {
                    one.rule == UNKNOWN_FIELD
                        || one.path == "spec"
                        || one.message.contains("must be of type")
                };
                let is_odd = there.is_some_and(|it| schema::check(it).iter().any(is_unread));
                (!is_odd).then(|| Finding::warning(beside.document, &path, message))
            }
        }
    };
    routers.iter().filter_map(|router| found(&**router)).collect()
}
