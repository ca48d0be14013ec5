//! Is a Rollout's spec one the controller can work with? The first stage: everything that can
//! be said without looking at other objects.
//!
//! Errors come in the order in which Argo Rollouts finds them, because users are shown the
//! first one, and read as Kubernetes' own do.

use serde_json::Value;

use crate::decode::FieldError;
use crate::rollout::RolloutSpec;

mod canary;
mod field;
mod labels;
mod pod_template;
mod steps;
mod strategy;

pub use labels::{dns_label_errors, value_errors as label_value_errors};

/// Where the pod template and the selector of a spec come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecSource {
    /// They are as the user wrote them.
    Written,
    /// They were filled in from the workload that `workloadRef` names.
    Resolved,
}

/// Everything that is wrong with the spec, the error that is shown to users first.
pub fn validate(spec: &RolloutSpec, source: SpecSource) -> Vec<FieldError> {
    [
        non_negative("spec.replicas", spec.replicas_or_default()),
        selector(spec),
        template(spec, source),
        non_negative("spec.minReadySeconds", spec.min_ready_seconds),
        non_negative("spec.revisionHistoryLimit", spec.revision_history_limit_or_default()),
        progress_deadline(spec),
        strategy::validate(spec),
    ]
    .concat()
}

/// Whether a template says nothing, as it must beside a `workloadRef`.
pub fn is_empty_template(template: &Value) -> bool {
    pod_template::is_empty(template)
}

fn non_negative(path: &str, number: i32) -> Vec<FieldError> {
    let detail = "must be greater than or equal to 0";
    if number < 0 { vec![field::invalid(path, &number, detail)] } else { Vec::new() }
}

fn selector(spec: &RolloutSpec) -> Vec<FieldError> {
    let path = "spec.selector";
    match &spec.selector {
        _ if spec.workload_ref.is_some() => Vec::new(),
        None => vec![field::required(path, &missing(".spec.selector"))],
        Some(selector) => {
            let mut errors = labels::selector_errors(selector, format_args!("{path}"));
            if selector.match_labels.is_empty() && selector.match_expressions.is_empty() {
                let detail = "empty selector is invalid for deployment";
                errors.push(field::invalid(path, selector, detail));
            }
            errors
        }
    }
}

fn template(spec: &RolloutSpec, source: SpecSource) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_referred = spec.workload_ref.is_some() && source == SpecSource::Written;
    if is_referred && !pod_template::is_empty(&spec.template) {
        let detail = "template must be empty for workload reference rollout";
        errors.push(field::internal("spec.template", detail));
    }
    let broken = spec.selector.as_ref().filter(|selector| !labels::is_usable(selector));
    if let Some(selector) = broken {
        errors.push(field::invalid("spec.selector", selector, "invalid label selector"));
    } else if !is_referred {
        let selector = spec.selector.as_ref();
        errors.extend(pod_template::validate(
            &spec.template,
            selector,
            format_args!("spec.template"),
        ));
    }
    errors
}

fn progress_deadline(spec: &RolloutSpec) -> Vec<FieldError> {
    let path = "spec.progressDeadlineSeconds";
    let deadline = spec.progress_deadline_seconds_or_default();
    let mut errors = non_negative(path, deadline);
    if deadline <= spec.min_ready_seconds {
        errors.push(field::invalid(path, &deadline, "must be greater than minReadySeconds"));
    }
    errors
}

fn missing(what: &str) -> String {
    format!("Rollout has missing field '{what}'")
}

#[cfg(test)]
mod tests;
