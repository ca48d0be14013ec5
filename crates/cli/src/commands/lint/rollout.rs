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
use super::finding::Finding;
use super::{analyses, pods};
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
    findings.extend(
        refused.iter().filter(|one| !follows(one)).map(|one| Finding::refused(document, one)),
    );
    // A frame is tolerant of everything but its metadata, whose faults the schema has told.
    let Ok(frame) = serde_json::from_value::<Frame>(object) else { return (findings, spec) };
    let view = RolloutView::read(&frame, None);
    let (view, wrong) = with_workload(beside, view);
    findings.extend(wrong);
    // Without a template nobody knows which pods a Service must select.
    if view.spec.origin != Origin::Referred {
        findings.extend(of_services(beside, &view));
    }
    // A route to no Service leads nowhere.
    if !is_unserved {
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
    for services::Reference { field, name } in services::references(&view.spec.fields) {
        let Some(service) = beside.find(&kinds::SERVICE, name) else {
            findings.extend(beside.missing(&kinds::SERVICE, name, field));
            continue;
        };
        let Ok(frame) = serde_json::from_value::<Frame>(service) else { continue };
        if let Some(detail) = services::mismatch(view, &ServiceView::read(&frame)) {
            let message = format!("Invalid value: {name:?}: {detail}");
            findings.push(Finding::error(beside.document, field, message).about("service"));
        } else if let Some(document) = beside.document_of(&kinds::SERVICE, name) {
            findings.extend(target_ports(document, view));
        }
    }
    findings
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
            FaultCause::Unfit(_) => Some(Finding::warning(beside.document, &path, message)),
        }
    };
    routers.iter().filter_map(|router| found(&**router)).collect()
}
