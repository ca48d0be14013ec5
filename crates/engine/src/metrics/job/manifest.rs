//! The Job of one measurement, as it is created.

use gradus_api::metrics::JobMetric;
use gradus_api::names::{self, annotation, label};
use serde_json::{Map, Value, json};

use super::super::Of;
use crate::ask::secret::{SecretRef, SecretText, TextPart, has_marker};

/// Prefix of the variables that carry secret arguments into a container.
const VARIABLE: &str = "ANALYSIS_ARG_";

/// The Job, or why it cannot be made.
pub fn of(spec: &JobMetric, metric: &str, name: &str, run: &Of) -> Result<Value, String> {
    let mut labels: Map<String, Value> =
        spec.metadata.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    labels.insert(label::ANALYSIS_RUN_UID.to_owned(), json!(run.uid.to_string()));
    let mut annotations: Map<String, Value> =
        spec.metadata.annotations.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    annotations.insert(annotation::ANALYSIS_RUN_NAME.to_owned(), json!(&*run.name));
    annotations.insert(annotation::ANALYSIS_RUN_NAMESPACE.to_owned(), json!(&*run.namespace));
    annotations.insert(annotation::ANALYSIS_RUN_METRIC.to_owned(), json!(metric));
    let mut job_spec = Value::clone(&spec.spec);
    let pod_labels = &mut job_spec["template"]["metadata"]["labels"];
    pod_labels[label::ANALYSIS_RUN_UID] = json!(run.uid.to_string());
    let is_elsewhere = run.job_namespace != run.namespace;
    if is_elsewhere && has_marker(&job_spec.to_string()) {
        return Err(
            "a secret argument cannot be used by a Job in another namespace than its run's"
                .to_owned(),
        );
    }
    hand_over_secrets(&mut job_spec["template"]["spec"]);
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": &*run.job_namespace,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": job_spec,
    });
    // An owner must be in the same namespace.
    if !is_elsewhere {
        job["metadata"]["ownerReferences"] = json!([{
            "apiVersion": names::API_VERSION,
            "kind": names::kind::ANALYSIS_RUN,
            "name": &*run.name,
            "uid": run.uid.to_string(),
            "controller": true,
            "blockOwnerDeletion": true,
        }]);
    }
    if has_marker(&job.to_string()) {
        return Err("a secret argument of a Job can only be used in the command, args and env of \
                    its containers"
            .to_owned());
    }
    Ok(job)
}

/// Replaces secrets in the command, arguments and variables of containers by variables that the
/// kubelet fills in from the Secret: the value never passes through the controller, nor is it part
/// of the Job that others may read.
fn hand_over_secrets(pod: &mut Value) {
    for list in ["containers", "initContainers"] {
        for container in pod[list].as_array_mut().into_iter().flatten() {
            let mut found: Vec<SecretRef> = Vec::new();
            for field in ["command", "args"] {
                for text in container[field].as_array_mut().into_iter().flatten() {
                    replace(text, &mut found);
                }
            }
            for variable in container["env"].as_array_mut().into_iter().flatten() {
                if variable["value"].is_string() {
                    replace(&mut variable["value"], &mut found);
                }
            }
            if found.is_empty() {
                continue;
            }
            let own = container["env"].as_array().cloned().unwrap_or_default();
            // A variable can only use those before it.
            let variables = found.iter().enumerate().map(|(index, reference)| {
                json!({ "name": format!("{VARIABLE}{index}"), "valueFrom": { "secretKeyRef":
                    { "name": reference.name, "key": reference.key } } })
            });
            container["env"] = variables.chain(own).collect();
        }
    }
}

fn replace(text: &mut Value, found: &mut Vec<SecretRef>) {
    let Some(marked) = text.as_str().filter(|text| has_marker(text)) else { return };
    let mut replaced = String::new();
    for part in SecretText::from_marked(marked).parts() {
        match part {
            TextPart::Plain(plain) => replaced.push_str(plain),
            TextPart::Secret(reference) => {
                let known = found.iter().position(|known| known == reference);
                let index = known.unwrap_or(found.len());
                if known.is_none() {
                    found.push(reference.clone());
                }
                replaced.push_str(&format!("$({VARIABLE}{index})"));
            }
        }
    }
    *text = Value::String(replaced);
}
