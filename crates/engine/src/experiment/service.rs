//! The Service of one set of pods of an Experiment: there while its pods are, gone after them.

use std::sync::Arc;

use gradus_api::names::label;
use serde_json::{Value, json};

use super::pods::{self, Holder, TemplateGoal, TemplatePart};
use super::view::ExperimentService;
use super::{Pass, Plan, Tried, is_completed};
use crate::ask::{Class, Failure};
use crate::decision::{Change, Frees, Guard, ObjectRef};
use crate::kinds;

/// Name of the Service and hash of its pods, as the status has them; empty for none.
type Address = (String, String);

/// What is to be done about the Service of a set of pods, and how it is found from now on.
pub(super) fn next(pass: &Pass<'_>, goal: TemplateGoal<'_>) -> (TemplatePart, Address) {
    let found: Vec<&Arc<ExperimentService>> =
        pass.owned.services.iter().filter(|service| is_of(pass, goal, service)).collect();
    let before = goal.before;
    let stored = (before.service_name.clone(), before.pod_template_hash.clone());
    match (&found[..], goal.set) {
        ([], Some(set)) if goal.template.service.is_some() && goal.desired > 0 => {
            create(pass, goal, &set.name, &set.hash, stored)
        }
        ([], _) if goal.desired == 0 => (TemplatePart::default(), Address::default()),
        ([], _) => (TemplatePart::default(), stored),
        ([service], set) => {
            let has_pods = set.is_some_and(|set| set.size > 0 || set.reported_available > 0);
            if goal.desired > 0 || has_pods {
                let hash = set.map_or(stored.1, |set| set.hash.to_string());
                return (TemplatePart::default(), (service.name.to_string(), hash));
            }
            delete(pass, goal, service, stored)
        }
        _ => {
            let name = &goal.template.name;
            let message = format!("multiple Services match single experiment template: {name}");
            let guard = Guard::InvalidSpec { message };
            let why = pass.experiment.why(guard, "metadata.ownerReferences", Frees::Edit);
            (TemplatePart::of(Plan::waits(why)), stored)
        }
    }
}

fn is_of(pass: &Pass<'_>, goal: TemplateGoal<'_>, service: &ExperimentService) -> bool {
    *service.experiment == *pass.experiment.name && *service.template == *goal.template.name
}

fn reference(pass: &Pass<'_>, name: &Arc<str>) -> ObjectRef {
    ObjectRef::new(kinds::SERVICE, &pass.experiment.namespace, name)
}

fn create(
    pass: &Pass<'_>,
    goal: TemplateGoal<'_>,
    set: &Arc<str>,
    hash: &Arc<str>,
    stored: Address,
) -> (TemplatePart, Address) {
    let ports = ports(&goal.template.template);
    if ports.is_empty() {
        return (TemplatePart::default(), Address::default());
    }
    let given = goal.template.service.as_ref().map_or("", |service| service.name.as_str());
    let name: Arc<str> = if given.is_empty() { Arc::clone(set) } else { given.into() };
    let target = reference(pass, &name);
    let change = Change::create(target.clone(), manifest(pass, goal, &name, hash, ports));
    let made = (name.to_string(), hash.to_string());
    let template = &goal.template.name;
    let broken = |cause: String| {
        TemplatePart::broken(format!(
            "Failed to create Service {name} for template '{template}': {cause}"
        ))
    };
    match pass.tried(&change) {
        Tried::Never => (TemplatePart::of(Plan::change(change)), made),
        Tried::Denied(failure) => {
            (broken(format!("cannot create service: {}", failure.message)), stored)
        }
        Tried::Due(Failure { class: Class::Exists, .. })
        | Tried::Held(Failure { class: Class::Exists, .. }) => {
            match pods::owner_of(pass, &target, goal) {
                Holder::Nobody => (TemplatePart::of(Plan::change(change)), made),
                Holder::Unknown | Holder::Ours => {
                    (TemplatePart::of(Plan::read(pass.experiment, target)), stored)
                }
                Holder::Another => {
                    let cause = format!(
                        "service {name} already exists and is not owned by experiment template \
                         {template}"
                    );
                    (broken(cause), stored)
                }
            }
        }
        Tried::Held(failure) => (TemplatePart::of(Plan::held(&change, failure)), stored),
        Tried::Due(_) => (TemplatePart::of(Plan::change(change)), made),
    }
}

fn delete(
    pass: &Pass<'_>,
    goal: TemplateGoal<'_>,
    service: &ExperimentService,
    stored: Address,
) -> (TemplatePart, Address) {
    if service.is_deleting {
        return (TemplatePart::default(), Address::default());
    }
    let change = Change::delete(reference(pass, &service.name), service.uid);
    match pass.tried(&change) {
        Tried::Denied(failure) if !is_completed(&goal.before.status) => {
            let (name, message) = (&goal.template.name, &failure.message);
            let error = format!("Failed to delete Service for template '{name}': {message}");
            (TemplatePart::broken(error), stored)
        }
        Tried::Denied(failure) | Tried::Held(failure) if pass.now < failure.retry_at => {
            (TemplatePart::of(Plan::held(&change, failure)), stored)
        }
        _ => (TemplatePart::of(Plan::change(change)), Address::default()),
    }
}

/// Every port of every container.
fn ports(template: &Value) -> Vec<Value> {
    let containers = template["spec"]["containers"].as_array().into_iter().flatten();
    let ports = containers.flat_map(|one| one["ports"].as_array().into_iter().flatten());
    let port = |port: &Value| {
        let number = &port["containerPort"];
        let mut made = json!({ "port": number, "targetPort": number });
        for field in ["name", "protocol"] {
            if port[field].as_str().is_some_and(|text| !text.is_empty()) {
                made[field] = port[field].clone();
            }
        }
        made
    };
    ports.map(port).collect()
}

fn manifest(
    pass: &Pass<'_>,
    goal: TemplateGoal<'_>,
    name: &str,
    hash: &str,
    ports: Vec<Value>,
) -> Value {
    let mut selector = pods::pod_template(goal.template)["metadata"]["labels"].take();
    if !selector.is_object() {
        selector = json!({});
    }
    selector[label::POD_TEMPLATE_HASH] = json!(hash);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": &*pass.experiment.namespace,
            "annotations": pods::annotations(pass, goal.template),
            "ownerReferences": [pass.experiment.owner_reference()],
        },
        "spec": { "selector": selector, "ports": ports },
    })
}
