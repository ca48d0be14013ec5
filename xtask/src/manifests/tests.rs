//! Are the manifests what they are made from, and may the controller do no more than it must?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_manifest::Source;
use serde_json::{Value, json};

use super::*;

fn on_disk() -> BTreeMap<&'static str, Vec<Value>> {
    let generated = files(&repository().join("manifests")).unwrap();
    generated.into_iter().map(|(name, text)| (name, documents(name, text))).collect()
}

fn documents(name: &str, text: String) -> Vec<Value> {
    let source = Arc::new(Source { name: name.to_owned(), text });
    let read = gradus_manifest::read(&source).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    read.iter().map(gradus_manifest::Document::json).collect()
}

fn of_kind<'d>(documents: &'d [Value], kind: &str) -> Vec<&'d Value> {
    documents.iter().filter(|one| one["kind"] == kind).collect()
}

#[test]
fn the_files_are_what_the_parts_make() {
    let folder = repository().join("manifests");
    for (name, text) in files(&folder).unwrap() {
        let written = fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(written == text, "manifests/{name} is older than its parts: cargo xtask manifests");
    }
}

#[test]
fn every_rule_says_which_call_needs_each_of_its_verbs() {
    for fragment in fragments(&repository().join("manifests/rbac")).unwrap() {
        let Fragment { name, about, .. } = &fragment;
        assert!(!about.is_empty() && !about.starts_with('-'), "{name}: expected what it is for");
        let mut comment = String::new();
        for line in fragment.rules.lines() {
            match line.strip_prefix('#') {
                Some(words) => comment.push_str(words),
                None if line.starts_with("- ") => {
                    assert!(!comment.is_empty(), "{name}: a rule without a reason: {line}");
                    comment.clear();
                }
                None => {}
            }
        }
    }
}

#[test]
fn nobody_lists_secrets_and_nothing_is_granted_by_wildcard() {
    let all = fragments(&repository().join("manifests/rbac")).unwrap();
    for rule in all.iter().flat_map(|fragment| fragment.parsed().unwrap()) {
        let words = rule.api_groups.iter().chain(&rule.resources).chain(&rule.verbs);
        assert!(words.into_iter().all(|word| !word.contains('*')), "{rule:?}");
        if rule.resources.iter().any(|resource| resource == "secrets") {
            assert_eq!(rule.verbs, BTreeSet::from(["get".to_owned()]));
        }
        if rule.resources.iter().any(|resource| resource == "configmaps") {
            assert_eq!(rule.resource_names, ["argo-rollouts-config"], "no other");
        }
    }
}

#[test]
fn a_namespaced_installation_has_nothing_of_the_cluster() {
    let files = on_disk();
    let of_namespaces = [
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ];
    for document in &files["namespace-install.yaml"] {
        let kind = document["kind"].as_str().unwrap();
        assert!(of_namespaces.contains(&kind), "{kind}");
        assert!(
            document["metadata"]["namespace"].is_null(),
            "{kind}: whoever applies it says where"
        );
    }
    let roles = of_kind(&files["namespace-install.yaml"], "Role");
    let rules = roles.iter().flat_map(|role| role["rules"].as_array().unwrap());
    let resources: Vec<&Value> = rules.map(|rule| &rule["resources"]).collect();
    assert!(!resources.contains(&&json!(["clusteranalysistemplates"])));
    let arguments = &of_kind(&files["namespace-install.yaml"], "Deployment")[0]["spec"]["template"]
        ["spec"]["containers"][0]["args"];
    assert_eq!(arguments, &json!(["controller", "--namespaced"]));
}

#[test]
fn the_list_of_plugins_is_read_in_the_controllers_own_namespace_alone() {
    let reads = |role: &Value| role["rules"].to_string().contains("argo-rollouts-config");
    for (file, namespace) in
        [("install.yaml", json!(NAMESPACE)), ("namespace-install.yaml", Value::Null)]
    {
        let files = on_disk();
        let kinds = ["Role", "ClusterRole"].iter();
        let roles: Vec<&Value> = kinds.flat_map(|kind| of_kind(&files[file], kind)).collect();
        let reading: Vec<&&Value> = roles.iter().filter(|role| reads(role)).collect();
        let found: Vec<_> = reading
            .iter()
            .map(|role| (&role["kind"], &role["metadata"]["name"], &role["metadata"]["namespace"]))
            .collect();
        assert_eq!(found, [(&json!("Role"), &json!("gradus-home"), &namespace)], "{file}");
    }
}

#[test]
fn one_controller_alone_holds_no_drain_up() {
    let files = on_disk();
    let budget = &of_kind(&files["install.yaml"], "PodDisruptionBudget")[0]["spec"];
    assert_eq!((&budget["maxUnavailable"], &budget["minAvailable"]), (&json!(1), &Value::Null));
}

#[test]
fn names_of_the_cluster_are_our_own() {
    for document in &on_disk()["install.yaml"] {
        let (kind, name) = (&document["kind"], document["metadata"]["name"].as_str().unwrap());
        let is_shared = kind == "CustomResourceDefinition" || kind == "Namespace";
        assert!(is_shared || name.starts_with("gradus"), "{kind} {name}");
    }
}

#[test]
fn the_pod_meets_the_restricted_standard() {
    for file in ["install.yaml", "namespace-install.yaml"] {
        let files = on_disk();
        let pod = &of_kind(&files[file], "Deployment")[0]["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        let is_empty = |volume: &Value| volume["emptyDir"].is_object();
        assert!(pod["volumes"].as_array().unwrap().iter().all(is_empty));
        for host in ["hostNetwork", "hostPID", "hostIPC"] {
            assert_eq!(pod[host], Value::Null);
        }
        let container = &pod["containers"][0];
        let security = &container["securityContext"];
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(security["capabilities"], json!({ "drop": ["ALL"] }));
        assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
        // A read-only root has no other place for programs of plugins, and for the folder of each.
        let mounts: Vec<&Value> = container["volumeMounts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["mountPath"])
            .collect();
        assert_eq!(mounts, ["/plugin-bin", "/tmp"]);
        assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/healthz");
    }
}
