//! Is the pod template one that a ReplicaSet accepts? The rules whose breach is common; the API
//! server finds the others when the ReplicaSet or its pods are made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Arguments;

use serde_json::Value;

use crate::decode::FieldError;
use crate::rollout::LabelSelector;
use crate::validate::{field, labels};

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/// Whether the template says nothing, as it must beside a `workloadRef`.
pub(super) fn is_empty(template: &Value) -> bool {
    let metadata = &template["metadata"];
    ["labels", "annotations"].iter().all(|kind| texts(&metadata[*kind]).next().is_none())
}

pub(super) fn validate(
    template: &Value,
    selector: Option<&LabelSelector>,
    path: Arguments<'_>,
) -> Vec<FieldError> {
    let spec = &template["spec"];
    [
        metadata(&template["metadata"], selector, path),
        volumes(spec, format_args!("{path}.spec.volumes")),
        containers(spec, format_args!("{path}.spec")),
        policies(spec, format_args!("{path}.spec")),
    ]
    .concat()
}

fn metadata(
    metadata: &Value,
    selector: Option<&LabelSelector>,
    path: Arguments<'_>,
) -> Vec<FieldError> {
    let labels: BTreeMap<&str, &str> = texts(&metadata["labels"]).collect();
    let mut errors = Vec::new();
    if !selector.is_some_and(|selector| labels::matches(selector, &labels)) {
        let detail = "`selector` does not match template `labels`";
        let found = (!labels.is_empty()).then_some(&labels);
        errors.push(field::invalid(format_args!("{path}.metadata.labels"), &found, detail));
    }
    errors.extend(labels::labels_errors(texts(&metadata["labels"]), format_args!("{path}.labels")));
    for (key, _) in texts(&metadata["annotations"]) {
        let wrong = labels::key_errors(&key.to_lowercase());
        let path = format_args!("{path}.annotations");
        errors.extend(wrong.iter().map(|detail| field::invalid(path, &key, detail)));
    }
    errors
}

fn volumes(spec: &Value, path: Arguments<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for (index, volume) in list(&spec["volumes"]).iter().enumerate() {
        let path = format_args!("{path}[{index}].name");
        let name = text(&volume["name"]);
        errors.extend(name_errors(name, path));
        if !names.insert(name) {
            errors.push(field::duplicate(path, name));
        }
    }
    errors
}

fn containers(spec: &Value, path: Arguments<'_>) -> Vec<FieldError> {
    let volumes: BTreeSet<&str> =
        list(&spec["volumes"]).iter().map(|volume| text(&volume["name"])).collect();
    let regular = list(&spec["containers"]);
    let mut errors = Vec::new();
    if regular.is_empty() {
        errors.push(field::required(format_args!("{path}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for kind in ["containers", "initContainers"] {
        for (index, container) in list(&spec[kind]).iter().enumerate() {
            let path = format_args!("{path}.{kind}[{index}]");
            errors.extend(validate_container(container, &volumes, path));
            let name = text(&container["name"]);
            if !names.insert(name) {
                errors.push(field::duplicate(format_args!("{path}.name"), name));
            }
            if kind == "initContainers" {
                errors.extend(init_container(container, path));
            }
        }
    }
    errors
}

fn validate_container(
    container: &Value,
    volumes: &BTreeSet<&str>,
    path: Arguments<'_>,
) -> Vec<FieldError> {
    let mut errors = name_errors(text(&container["name"]), format_args!("{path}.name"));
    if text(&container["image"]).is_empty() {
        errors.push(field::required(format_args!("{path}.image"), ""));
    }
    errors.extend(ports(container, format_args!("{path}.ports")));
    for (index, variable) in list(&container["env"]).iter().enumerate() {
        if text(&variable["name"]).is_empty() {
            errors.push(field::required(format_args!("{path}.env[{index}].name"), ""));
        }
    }
    errors.extend(mounts(container, volumes, format_args!("{path}.volumeMounts")));
    errors.extend(one_of(
        &container["imagePullPolicy"],
        &PULL_POLICIES,
        format_args!("{path}.imagePullPolicy"),
    ));
    let security = &container["securityContext"];
    if security["privileged"] == true && security["allowPrivilegeEscalation"] == false {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(field::invalid(format_args!("{path}.securityContext"), security, detail));
    }
    errors
}

fn ports(container: &Value, path: Arguments<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for (index, port) in list(&container["ports"]).iter().enumerate() {
        let path = format_args!("{path}[{index}]");
        let name = text(&port["name"]);
        let wrong = if name.is_empty() { Vec::new() } else { port_name_errors(name) };
        let name_path = format_args!("{path}.name");
        errors.extend(wrong.iter().map(|detail| field::invalid(name_path, &name, detail)));
        if wrong.is_empty() && !name.is_empty() && !names.insert(name) {
            errors.push(field::duplicate(name_path, name));
        }
        for (field, is_required) in [("containerPort", true), ("hostPort", false)] {
            let number = port[field].as_i64().unwrap_or(0);
            let path = format_args!("{path}.{field}");
            if number == 0 && is_required {
                errors.push(field::required(path, ""));
            } else if number != 0 && !(1..=65535).contains(&number) {
                let detail = "must be between 1 and 65535, inclusive";
                errors.push(field::invalid(path, &number, detail));
            }
        }
        errors.extend(one_of(
            &port["protocol"],
            &["SCTP", "TCP", "UDP"],
            format_args!("{path}.protocol"),
        ));
    }
    errors
}

fn mounts(container: &Value, volumes: &BTreeSet<&str>, path: Arguments<'_>) -> Vec<FieldError> {
    let is_privileged = container["securityContext"]["privileged"] == true;
    let mut errors = Vec::new();
    let mut points = BTreeSet::new();
    for (index, mount) in list(&container["volumeMounts"]).iter().enumerate() {
        let (name, point) = (text(&mount["name"]), text(&mount["mountPath"]));
        if name.is_empty() {
            errors.push(field::required(format_args!("{path}[{index}].name"), ""));
        }
        if !volumes.contains(name) {
            errors.push(field::not_found(format_args!("{path}[{index}].name"), name));
        }
        let point_path = format_args!("{path}[{index}].mountPath");
        if point.is_empty() {
            errors.push(field::required(point_path, ""));
        }
        if !points.insert(point) {
            errors.push(field::invalid(point_path, &point, "must be unique"));
        }
        let propagation = &mount["mountPropagation"];
        let path = format_args!("{path}.mountPropagation");
        errors.extend(one_of(propagation, &PROPAGATIONS, path));
        if propagation == "Bidirectional" && !is_privileged {
            let detail = "Bidirectional mount propagation is available only to privileged \
                          containers";
            errors.push(field::forbidden(path, detail));
        }
    }
    errors
}

fn init_container(container: &Value, path: Arguments<'_>) -> Vec<FieldError> {
    if container["restartPolicy"] == "Always" {
        return Vec::new();
    }
    let detail = "may not be set for init containers without restartPolicy=Always";
    let regular_only = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];
    let found = regular_only.iter().filter(|field| !container[**field].is_null());
    found.map(|field| field::forbidden(format_args!("{path}.{field}"), detail)).collect()
}

fn policies(spec: &Value, path: Arguments<'_>) -> Vec<FieldError> {
    let restart = &spec["restartPolicy"];
    let restart_path = format_args!("{path}.restartPolicy");
    let deadline = spec["activeDeadlineSeconds"].as_i64();
    let deadline_path = format_args!("{path}.activeDeadlineSeconds");
    let mut errors = one_of(restart, &["Always", "OnFailure", "Never"], restart_path);
    errors.extend(one_of(&spec["dnsPolicy"], &DNS_POLICIES, format_args!("{path}.dnsPolicy")));
    let node_selector = texts(&spec["nodeSelector"]);
    errors.extend(labels::labels_errors(node_selector, format_args!("{path}.nodeSelector")));
    errors.extend(deadline.filter(|it| !(1..=i64::from(i32::MAX)).contains(it)).map(|seconds| {
        let detail = "must be between 1 and 2147483647, inclusive";
        field::invalid(deadline_path, &seconds, detail)
    }));
    if !list(&spec["ephemeralContainers"]).is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(field::forbidden(format_args!("{path}.ephemeralContainers"), detail));
    }
    errors.extend(one_of(restart, &["Always"], restart_path));
    errors.extend(deadline.map(|_| {
        let detail = "activeDeadlineSeconds in ReplicaSet is not Supported";
        field::forbidden(deadline_path, detail)
    }));
    errors
}

/// A missing value has a default, which is a known one.
fn one_of(value: &Value, known: &[&str], path: Arguments<'_>) -> Vec<FieldError> {
    let found = text(value);
    if found.is_empty() || known.contains(&found) {
        return Vec::new();
    }
    vec![field::not_supported(path, found, known)]
}

fn name_errors(name: &str, path: Arguments<'_>) -> Vec<FieldError> {
    if name.is_empty() {
        return vec![field::required(path, "")];
    }
    let wrong = labels::dns_label_errors(name);
    wrong.iter().map(|detail| field::invalid(path, &name, detail)).collect()
}

fn port_name_errors(name: &str) -> Vec<&'static str> {
    let is_letter = |c: char| c.is_ascii_lowercase();
    let rules = [
        (name.len() <= 15, "must be no more than 15 characters"),
        (
            name.chars().all(|c| is_letter(c) || c.is_ascii_digit() || c == '-'),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (name.contains(is_letter), "must contain at least one letter (a-z)"),
        (!name.contains("--"), "must not contain consecutive hyphens"),
        (!name.starts_with('-') && !name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, detail)| detail).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> impl Iterator<Item = (&str, &str)> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(key, value)| (key.as_str(), text(value)))
}
