//! `cargo xtask chart`: does the Helm chart install what the manifests do? Rendered by Helm itself,
//! which is built once from its Go module into the cache folder.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use gradus_manifest::Source;
use serde_json::Value;
use thiserror::Error;

use crate::{Failure, manifests, repository, servers, summary::Summary};

/// The package of the program in Helm's module; its version is the one in `xtask/helm/go.mod`.
const PACKAGE: &str = "helm.sh/helm/v4/cmd/helm";

#[derive(Debug, Error)]
enum ChartError {
    #[error("helm {what}: {message}")]
    Helm { what: String, message: String },
    #[error("{0}: {1}")]
    Malformed(String, String),
    #[error(
        "{what}: the chart and manifests/{file} differ in {object}:\n  chart:     {chart}\n  manifests: {manifest}"
    )]
    Differs {
        what: &'static str,
        file: &'static str,
        object: String,
        chart: String,
        manifest: String,
    },
}

/// One way to install, and the file that says the same.
struct Case {
    what: &'static str,
    namespace: &'static str,
    values: &'static str,
    file: &'static str,
}

const CASES: [Case; 2] = [
    Case {
        what: "the whole cluster",
        namespace: manifests::NAMESPACE,
        values: "replicas=2",
        file: "install.yaml",
    },
    Case {
        what: "one namespace",
        namespace: "shop",
        values: "namespaced=true,crds=false",
        file: "namespace-install.yaml",
    },
];

/// Renders each case and compares; then renders every value once.
pub fn run(_arguments: &[String]) -> Result<Summary, Failure> {
    let helm = helm()?;
    let mut summary = Summary::default();
    let checks = CASES.iter().map(|case| (case.what, is_same(&helm, case)));
    for (what, result) in checks.chain([("several namespaces", is_spread(&helm))]) {
        if let Err(error) = &result {
            println!("  chart, {what}: FAILED: {error}");
        }
        summary += Summary::of(result.is_ok());
    }
    Ok(summary)
}

/// The program, built where it is missing.
fn helm() -> Result<PathBuf, Failure> {
    let sources = repository().join("xtask/helm");
    Ok(servers::built("helm", &sources, PACKAGE)?)
}

fn is_same(helm: &Path, case: &Case) -> Result<(), Failure> {
    let chart = by_name(rendered(helm, case.namespace, &["--set", case.values])?);
    let path = repository().join("manifests").join(case.file);
    let written = documents(case.file, fs::read_to_string(path)?)?;
    let is_cluster_wide = case.file == "install.yaml";
    let mut written: Vec<Value> =
        written.into_iter().filter(|one| one["kind"] != "Namespace").collect();
    if !is_cluster_wide {
        written.iter_mut().for_each(|one| place(one, case.namespace));
    }
    let written = by_name(written);
    let mut objects: Vec<&String> = chart.keys().chain(written.keys()).collect();
    objects.sort();
    objects.dedup();
    for object in objects {
        let (ours, theirs) = (chart.get(object), written.get(object));
        if ours != theirs {
            let shown = |one: Option<&Value>| one.map_or("nothing".to_owned(), ToString::to_string);
            let (what, file, object) = (case.what, case.file, object.clone());
            let (chart, manifest) = (shown(ours), shown(theirs));
            return Err(ChartError::Differs { what, file, object, chart, manifest }.into());
        }
    }
    Ok(())
}

/// With several namespaces there is a Role in each, nothing in the cluster, and an argument.
fn is_spread(helm: &Path) -> Result<(), Failure> {
    let values = "namespaces={shop,bank},crds=false,instanceId=blue,\
                  features.secrets=true,features.istio=false,\
                  extraEnv[0].name=SSL_CERT_FILE,extraEnv[0].value=/ca/ca.crt,\
                  extraVolumes[0].name=ca,extraVolumes[0].configMap.name=ca,\
                  extraVolumeMounts[0].name=ca,extraVolumeMounts[0].mountPath=/ca,\
                  extraEgress[0].to[0].ipBlock.cidr=169.254.170.23/32";
    let found = rendered(helm, "argo-rollouts", &["--set", values])?;
    let refused =
        |why: &str| ChartError::Malformed("several namespaces".to_owned(), why.to_owned());
    let is_of_cluster =
        |one: &&Value| one["kind"].as_str().is_some_and(|k| k.starts_with("Cluster"));
    if found.iter().any(|one| is_of_cluster(&one)) {
        return Err(refused("expected nothing in the cluster").into());
    }
    let text: String = found.iter().map(Value::to_string).collect();
    let home = found.iter().filter(|one| one["metadata"]["name"] == "gradus-home");
    if home.clone().count() != 2
        || home.clone().any(|one| one["metadata"]["namespace"] != "argo-rollouts")
    {
        let why = "expected a Role and its binding in the controller's own namespace";
        return Err(refused(why).into());
    }
    for expected in [
        "--namespaces=shop,bank",
        "--instance-id=blue",
        "argo-rollouts-controller-lock-blue",
        r#"{"name":"SSL_CERT_FILE","value":"/ca/ca.crt"}"#,
        r#"{"mountPath":"/ca","name":"ca"}"#,
        r#"{"to":[{"ipBlock":{"cidr":"169.254.170.23/32"}}]}"#,
        "secrets",
    ] {
        if !text.contains(expected) {
            return Err(refused(&format!("expected {expected} in what is rendered")).into());
        }
    }
    if text.contains("networking.istio.io") {
        return Err(refused("expected no right of a feature that is off").into());
    }
    let roles =
        found.iter().filter(|one| one["kind"] == "Role" && one["metadata"]["name"] == "gradus");
    if roles.count() != 2 {
        return Err(refused("expected a Role in each namespace").into());
    }
    Ok(())
}

/// The manifest that whoever applies it puts into a namespace.
fn place(object: &mut Value, namespace: &str) {
    object["metadata"]["namespace"] = namespace.into();
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        subject["namespace"] = namespace.into();
    }
}

fn rendered(helm: &Path, namespace: &str, more: &[&str]) -> Result<Vec<Value>, Failure> {
    let chart = repository().join("charts/gradus");
    let output = Command::new(helm)
        .args(["template", "gradus"])
        .arg(&chart)
        .args(["--namespace", namespace, "--kube-version", "1.35.0"])
        .args(more)
        .output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(ChartError::Helm { what: "template".to_owned(), message }.into());
    }
    Ok(documents("helm template", String::from_utf8(output.stdout)?)?)
}

fn documents(name: &str, text: String) -> Result<Vec<Value>, ChartError> {
    let source = Arc::new(Source { name: name.to_owned(), text });
    let malformed = |error: gradus_manifest::Malformed| {
        ChartError::Malformed(
            name.to_owned(),
            format!("line {}: {}", error.place.line, error.message),
        )
    };
    let read = gradus_manifest::read(&source).map_err(malformed)?;
    Ok(read.iter().map(gradus_manifest::Document::json).collect())
}

/// Objects by kind, namespace and name; the order of rules means nothing.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let name = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let meta = &object["metadata"];
        [text(&object["kind"]), text(&meta["namespace"]), text(&meta["name"])].join(" ")
    };
    let sorted = |mut object: Value| {
        if let Some(rules) = object.get_mut("rules").and_then(Value::as_array_mut) {
            rules.sort_by_key(Value::to_string);
        }
        (name(&object), object)
    };
    objects.into_iter().map(sorted).collect()
}
