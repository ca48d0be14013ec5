//! What can a person do about a guard? Commands to copy, and which object to create or to patch. For
//! `explain` alone.

use gradus_api::names::annotation;
use serde_json::{Value, json};

use crate::decision::{Frees, Guard, Why};
use crate::explain;
use crate::world::World;

/// What is told of a guard, and what can be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy {
    /// The guard, and what would free it, in one sentence.
    pub sentence: String,
    /// Commands, the nearest first.
    pub commands: Vec<String>,
}

/// What is told of a guard of this rollout.
pub fn remedy(world: &World, why: &Why) -> Remedy {
    let (name, namespace) = (&world.rollout.name, &world.rollout.namespace);
    let plugin = |command: &str| format!("kubectl argo rollouts {command} {name} -n {namespace}");
    let usual = |commands: Vec<String>| Remedy { sentence: explain::sentence(why), commands };
    if let Guard::InvalidSpec { message } | Guard::Router { message } = &why.guard {
        let held = explain::held(why);
        if let Some((words, commands)) = of_object(world, message) {
            return Remedy { sentence: format!("{held}; {words}"), commands };
        }
    }
    let mut commands = match &why.frees {
        Frees::Command(command) => vec![plugin(command)],
        Frees::Edit => vec![format!("kubectl edit rollout {name} -n {namespace}")],
        Frees::At(_) | Frees::Cluster => Vec::new(),
    };
    match &why.guard {
        Guard::Aborted { .. } => commands.push(plugin("undo")),
        Guard::Undecided => commands.push(plugin("abort")),
        Guard::Delay => {}
        Guard::Unreadable { .. } => {
            commands.push(format!("kubectl auth can-i --list -n {namespace}"));
        }
        _ => {}
    }
    usual(commands)
}

/// Commands that end an update which does not come up: nothing where there is no other revision to go
/// back to.
pub fn ways_back(world: &World) -> Vec<String> {
    let (status, name) = (&world.rollout.status, &world.rollout.name);
    let is_update = !status.stable_rs.is_empty() && status.current_pod_hash != status.stable_rs;
    let commands = ["abort", "undo"].into_iter().skip(usize::from(status.abort));
    let namespace = &world.rollout.namespace;
    let commands =
        commands.map(|command| format!("kubectl argo rollouts {command} {name} -n {namespace}"));
    if is_update { commands.collect() } else { Vec::new() }
}

/// What to do about another object that the spec names.
fn of_object(world: &World, message: &str) -> Option<(String, Vec<String>)> {
    let namespace = &world.rollout.namespace;
    if let Some((kind, name)) = missing(message) {
        let resource = kind.to_lowercase();
        let mut commands = vec![format!("kubectl get {resource} -n {namespace}")];
        if kind == "Service" {
            commands =
                vec![format!("kubectl create service clusterip {name} --tcp=80 -n {namespace}")];
            commands.push(select(world, &name, None));
        }
        let words =
            format!("create the {kind} {name} in namespace {namespace}, or name another one");
        return Some((words, commands));
    }
    if let Some((before, _)) = message.split_once("` has no rules using service ") {
        let name = before.rsplit('`').next()?;
        let words = format!("let a rule of Ingress {name} lead to it, or name another Ingress");
        return Some((words, vec![format!("kubectl edit ingress {name} -n {namespace}")]));
    }
    let (_, rest) = message.split_once("Service \"")?;
    let (service, rest) = rest.split_once('"')?;
    if let Some((_, rest)) = rest.split_once("has unmatch label \"") {
        let key = rest.split('"').next()?;
        let words = format!("patch the selector of Service {service}, or name another Service");
        return Some((words, vec![select(world, service, Some(key))]));
    }
    rest.contains("managed by another Rollout").then(|| {
        let mark = annotation::MANAGED_BY;
        let words = format!(
            "name another Service, or remove its annotation {mark} if that Rollout is gone"
        );
        let commands = vec![
            format!("kubectl describe service {service} -n {namespace}"),
            format!("kubectl annotate service {service} {mark}- -n {namespace}"),
        ];
        (words, commands)
    })
}

/// Makes a Service select the pods of the rollout; `wrong` is a label that they do not have so.
fn select(world: &World, service: &str, wrong: Option<&str>) -> String {
    let spec = &world.rollout.spec;
    let template: Value = serde_json::from_str(&spec.template).unwrap_or_default();
    let labels = &template["metadata"]["labels"];
    let mut selector = json!({});
    match wrong {
        Some(key) => selector[key] = labels[key].clone(),
        None => {
            let wanted = spec.fields.selector.as_ref().map(|selector| &selector.match_labels);
            selector = wanted.map_or_else(|| labels.clone(), |wanted| json!(wanted));
        }
    }
    let patch = json!({ "spec": { "selector": selector } });
    let namespace = &world.rollout.namespace;
    format!("kubectl patch service {service} -n {namespace} --type merge -p '{patch}'")
}

/// The object that a message says is not there: its kind and its name.
fn missing(message: &str) -> Option<(String, String)> {
    let (before, _) = message.split_once(" not found")?;
    let mut words = before.split_whitespace().rev();
    let name = words.next()?.trim_matches(['"', '\'', '`']).to_owned();
    let kind = words.next()?;
    let kind = match kind.split('.').next()? {
        "service" | "services" => "Service",
        "ingresses" | "ingress" => "Ingress",
        "deployments" => "Deployment",
        "replicasets" => "ReplicaSet",
        "statefulsets" => "StatefulSet",
        "podtemplates" => "PodTemplate",
        other => other,
    };
    let is_kind = kind.chars().all(char::is_alphanumeric) && !name.is_empty();
    is_kind.then(|| (kind.to_owned(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_missing_is_named_by_its_kind() {
        let cases = [
            ("x: Invalid value: \"web\": service \"web\" not found", Some("Service web")),
            ("x: AnalysisTemplate 'smoke' not found", Some("AnalysisTemplate smoke")),
            ("ingresses.networking.k8s.io \"web\" not found", Some("Ingress web")),
            ("deployments.apps \"web\" not found", Some("Deployment web")),
            ("VirtualService `web` not found", Some("VirtualService web")),
            ("spec.replicas: Invalid value: -1", None),
        ];
        for (message, expected) in cases {
            let found = missing(message).map(|(kind, name)| format!("{kind} {name}"));
            assert_eq!(found.as_deref(), expected, "{message}");
        }
    }
}
