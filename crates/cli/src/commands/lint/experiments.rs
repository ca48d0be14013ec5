//! Can an Experiment be carried out, as an object of its own or as a step of a canary?

use std::collections::BTreeSet;

use serde_json::Value;

use super::finding::Finding;
use super::metrics::no_duration;
use crate::near;
use gradus_manifest::Document;
use gradus_simkube::review;

/// What is wrong with the spec of an Experiment.
pub fn check(document: &Document) -> Vec<Finding> {
    let spec = &document.json()["spec"];
    let mut found = parts(spec);
    if let Some(message) = no_duration(&spec["duration"]) {
        found.push(("duration".to_owned(), message));
    }
    let deadline = spec["progressDeadlineSeconds"].as_i64();
    if let Some(number) = deadline.filter(|number| *number < 0) {
        found.push(("progressDeadlineSeconds".to_owned(), not_negative(number)));
    }
    for (at, template) in list(&spec["templates"]).iter().enumerate() {
        let ready = template["minReadySeconds"].as_i64().unwrap_or_default();
        if ready > deadline.unwrap_or(600) && deadline.is_none_or(|deadline| deadline >= 0) {
            let message = "a pod is ready for longer than progressDeadlineSeconds allows";
            found.push((format!("templates[{at}].minReadySeconds"), message.to_owned()));
        }
        found
            .extend(labels(template).map(|message| (format!("templates[{at}].selector"), message)));
    }
    found
        .into_iter()
        .map(|(field, message)| Finding::error(document, &format!("spec.{field}"), message))
        .collect()
}

/// What holds for an Experiment and for the step that makes one: the field, and what is wrong.
pub fn parts(spec: &Value) -> Vec<(String, String)> {
    let mut found = hashes(spec);
    if spec["templates"].as_array().is_some_and(Vec::is_empty) {
        let message = "Required value: at least one template, as there are no pods otherwise";
        found.push(("templates".to_owned(), message.to_owned()));
    }
    for field in ["templates", "analyses"] {
        let mut names = BTreeSet::new();
        for (at, one) in list(&spec[field]).iter().enumerate() {
            let name = one["name"].as_str().unwrap_or_default();
            if one["name"] == "" {
                found.push((format!("{field}[{at}].name"), "Required value".to_owned()));
            } else if !name.is_empty() && !names.insert(name) {
                let message = format!("Duplicate value: {name:?}");
                found.push((format!("{field}[{at}].name"), message));
            } else if let Some(why) =
                review::label_faults(name).first().filter(|_| !name.is_empty())
            {
                // It becomes part of the names of what is made of it.
                let message = format!("Invalid value: {name:?}: {why}");
                found.push((format!("{field}[{at}].name"), message));
            }
            for number in ["replicas", "minReadySeconds"] {
                if let Some(value) = one[number].as_i64().filter(|value| *value < 0) {
                    found.push((format!("{field}[{at}].{number}"), not_negative(value)));
                }
            }
        }
    }
    found
}

/// Arguments that take the hash of a template there is not.
fn hashes(spec: &Value) -> Vec<(String, String)> {
    let templates = list(&spec["templates"]).iter();
    let names: Vec<String> =
        templates.filter_map(|one| one["name"].as_str()).map(str::to_owned).collect();
    let mut found = Vec::new();
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        return found; // Which of them is meant is known once each has a name of its own.
    }
    for (at, analysis) in list(&spec["analyses"]).iter().enumerate() {
        for (of, argument) in list(&analysis["args"]).iter().enumerate() {
            let text = argument["value"].as_str().unwrap_or_default();
            let Some((_, rest)) = text.split_once("{{templates.") else { continue };
            let Some((name, _)) = rest.split_once('.') else { continue };
            if names.iter().any(|known| known == name) {
                continue;
            }
            let near = near::offered(name, &names);
            let hint = match near.first() {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there are {}", names.join(", ")),
            };
            let message = format!("no template is called {name:?}; {hint}");
            found.push((format!("analyses[{at}].args[{of}].value"), message));
        }
    }
    found
}

fn not_negative(number: i64) -> String {
    format!("Invalid value: {number}: must be 0 or more")
}

/// Pods that their own selector does not select.
fn labels(template: &Value) -> Option<String> {
    let wanted = template["selector"]["matchLabels"].as_object()?;
    let labels = &template["template"].as_object()?.get("metadata")?["labels"];
    let (key, value) = wanted.iter().find(|(key, value)| labels[*key] != **value)?;
    let value = value.as_str().unwrap_or_default();
    Some(format!("the pods are not selected: their template has no label {key}={value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
