//! The CRDs against the files in the repository, the server's limits, the contract, the types.

mod described;
mod misread;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::*;

/// `kubectl apply` stores the whole object in an annotation; all of them together may have 256 KiB,
/// and half of that is left to others.
const MAX_COMPACT_BYTES: usize = 128 * 1024;

#[test]
fn the_files_in_the_repository_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/crds");
    for (name, text) in files() {
        let stored = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(stored == text, "manifests/crds/{name} is old: run `cargo xtask crds`");
    }
}

#[test]
fn each_fits_into_the_annotation_of_kubectl_apply() {
    for (name, crd) in crds() {
        let size = crd.to_string().len();
        assert!(size < MAX_COMPACT_BYTES, "{name} has {size} bytes");
    }
}

#[test]
fn each_kind_has_its_names_scope_columns_and_subresources() {
    let found: Vec<Value> = crds().into_iter().map(|(_, crd)| identity(&crd["spec"])).collect();
    let scale = json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath":
        ".status.HPAReplicas", "labelSelectorPath": ".status.selector" });
    let rollout_columns = ["Desired", "Current", "Up-to-date", "Available", "Age"];
    let expected = [
        json!(["Rollout", "RolloutList", "rollouts", "rollout", ["ro"], "Namespaced",
            rollout_columns, { "status": {}, "scale": scale }]),
        json!([
            "AnalysisRun",
            "AnalysisRunList",
            "analysisruns",
            "analysisrun",
            ["ar"],
            "Namespaced",
            ["Status", "Age"],
            null
        ]),
        json!([
            "AnalysisTemplate",
            "AnalysisTemplateList",
            "analysistemplates",
            "analysistemplate",
            ["at"],
            "Namespaced",
            ["Age"],
            null
        ]),
        json!([
            "ClusterAnalysisTemplate",
            "ClusterAnalysisTemplateList",
            "clusteranalysistemplates",
            "clusteranalysistemplate",
            ["cat"],
            "Cluster",
            ["Age"],
            null
        ]),
        json!([
            "Experiment",
            "ExperimentList",
            "experiments",
            "experiment",
            ["exp"],
            "Namespaced",
            ["Status", "Age"],
            null
        ]),
    ];
    assert_eq!(found, expected);
}

fn identity(spec: &Value) -> Value {
    let (names, version) = (&spec["names"], &spec["versions"][0]);
    let columns = version["additionalPrinterColumns"].as_array().unwrap();
    let columns: Vec<&Value> = columns.iter().map(|column| &column["name"]).collect();
    json!([
        names["kind"],
        names["listKind"],
        names["plural"],
        names["singular"],
        names["shortNames"],
        spec["scope"],
        columns,
        version["subresources"],
    ])
}

#[test]
fn a_pod_template_has_exactly_the_defaults_that_are_hashed() {
    let crd = &crds()[0].1;
    let template = &schema_of(crd)["properties"]["spec"]["properties"]["template"];
    let mut found = BTreeSet::new();
    visit(template, "", &mut |path, schema| {
        if let Some(default) = schema.get("default") {
            found.insert(format!("{path}={default}"));
        }
    });
    let mut expected = BTreeSet::from([".spec.imagePullSecrets[].name=\"\"".to_owned()]);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let at = |rest: &str| format!(".spec.{list}[].{rest}");
        expected.insert(at("ports[].protocol=\"TCP\""));
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            expected.insert(at(&format!("{probe}.grpc.service=\"\"")));
        }
        expected.insert(at("env[].valueFrom.fileKeyRef.optional=false"));
        expected.insert(at("env[].valueFrom.configMapKeyRef.name=\"\""));
        expected.insert(at("env[].valueFrom.secretKeyRef.name=\"\""));
        expected.insert(at("envFrom[].configMapRef.name=\"\""));
        expected.insert(at("envFrom[].secretRef.name=\"\""));
    }
    assert_eq!(found, expected);
}

#[test]
fn beside_pod_templates_only_datadog_has_defaults() {
    let mut found = BTreeSet::new();
    for (_, crd) in crds() {
        visit(schema_of(&crd), "", &mut |path, schema| {
            if let Some(default) =
                schema.get("default").filter(|_| !path.contains("template.spec."))
            {
                found.insert(format!("{path}={default}"));
            }
        });
    }
    let datadog = |rest: &str| format!(".spec.metrics[].provider.datadog.{rest}");
    let expected = ["interval=\"5m\"", "apiVersion=\"v1\"", "requestTimeout=\"10s\""];
    assert_eq!(found, expected.map(datadog).into());
}

#[test]
fn unknown_fields_are_kept_only_where_they_belong_to_somebody_else() {
    let mut found = BTreeSet::new();
    for (_, crd) in crds() {
        visit(schema_of(&crd), "", &mut |path, schema| {
            if schema.get("x-kubernetes-preserve-unknown-fields").is_some() {
                let inside_pod =
                    path.split_once(".template.spec.").or(path.split_once("template.spec."));
                found.insert(inside_pod.map_or(path.to_owned(), |(_, rest)| format!("pod {rest}")));
            }
        });
    }
    let metrics = ".spec.metrics[].provider";
    let mut expected: BTreeSet<String> = [
        ".spec.strategy.canary.steps[].plugin.config".to_owned(),
        ".spec.strategy.canary.trafficRouting.plugins".to_owned(),
        ".status.canary.stepPluginStatuses[].status".to_owned(),
        format!("{metrics}.plugin"),
        format!("{metrics}.web.jsonBody"),
        "pod volumes".to_owned(),
    ]
    .into();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        expected.insert(format!("pod {list}[].resources.limits"));
        expected.insert(format!("pod {list}[].resources.requests"));
    }
    assert_eq!(found, expected);
}

#[test]
fn the_selector_alone_is_immutable() {
    for (name, crd) in crds() {
        let mut rules = Vec::new();
        visit(schema_of(&crd), "", &mut |path, schema| {
            rules.extend(
                schema.get("x-kubernetes-validations").map(|rule| (path.to_owned(), rule.clone())),
            );
        });
        let rule = json!([{ "rule": "self == oldSelf", "message": ".spec.selector is immutable" }]);
        let expected =
            if name == "rollout-crd.yaml" { vec![(".spec.selector".into(), rule)] } else { vec![] };
        assert_eq!(rules, expected, "{name}");
    }
}

#[test]
fn only_datadog_and_our_own_field_have_enumerations_and_only_quantities_have_patterns() {
    for (name, crd) in crds() {
        visit(schema_of(&crd), "", &mut |path, schema| {
            let is_enumeration = path.contains(".datadog.") || path.ends_with(".onNoData");
            assert!(schema.get("enum").is_none() || is_enumeration, "{name} {path}");
            let is_quantity = path.ends_with(".divisor") || path.ends_with("{}");
            assert!(schema.get("pattern").is_none() || is_quantity, "{name} {path}");
            for keyword in ["minimum", "maximum", "maxLength", "nullable", "$ref"] {
                assert!(schema.get(keyword).is_none(), "{name} {path}: {keyword}");
            }
        });
    }
}

#[test]
fn lists_that_are_maps_have_keys_that_are_always_there() {
    for (name, crd) in crds() {
        visit(schema_of(&crd), "", &mut |path, schema| {
            for key in schema
                .get("x-kubernetes-list-map-keys")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let items = &schema["items"];
                let required = items["required"].as_array().is_some_and(|all| all.contains(key));
                let default = items["properties"][key.as_str().unwrap()].get("default");
                assert!(required || default.is_some(), "{name} {path}: {key}");
            }
        });
    }
}

#[test]
fn what_the_contract_requires_is_required() {
    let crds = crds();
    let required = |index: usize, path: &str| -> Vec<String> {
        let mut found = None;
        visit(schema_of(&crds[index].1), "", &mut |at, schema| {
            if at == path {
                found = Some(schema["required"].as_array().cloned().unwrap_or_default());
            }
        });
        let found = found.unwrap_or_else(|| panic!("no {path}"));
        found.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    for (index, path, expected) in REQUIRED {
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(required(index, path), expected, "{path}");
    }
}

/// Index of the CRD, path, required fields. Where nothing is listed nothing is required.
const REQUIRED: [(usize, &str, &str); 49] = [
    (0, "", "spec"),
    (0, ".spec", ""),
    (0, ".spec.template.spec", "containers"),
    (0, ".spec.strategy.blueGreen", "activeService"),
    (0, ".spec.strategy.canary", ""),
    (0, ".spec.strategy.canary.pingPong", "pingService pongService"),
    (0, ".spec.strategy.canary.replicaProgressThreshold", "type value"),
    (0, ".spec.strategy.canary.steps[].plugin", "name"),
    (0, ".spec.strategy.canary.steps[].experiment", "templates"),
    (0, ".spec.strategy.canary.steps[].experiment.templates[]", "name specRef"),
    (0, ".spec.strategy.canary.steps[].experiment.analyses[]", "name templateName"),
    (0, ".spec.strategy.canary.steps[].setMirrorRoute", "name"),
    (0, ".spec.strategy.canary.steps[].setHeaderRoute", ""),
    (0, ".spec.strategy.canary.steps[].setHeaderRoute.match[]", "headerName headerValue"),
    (0, ".spec.strategy.canary.analysis.args[]", "name"),
    (0, ".spec.strategy.canary.analysis.templates[]", ""),
    (0, ".spec.strategy.canary.analysis.args[].valueFrom.fieldRef", "fieldPath"),
    (0, ".spec.strategy.canary.analysis.dryRun[]", "metricName"),
    (0, ".spec.strategy.canary.analysis.measurementRetention[]", "limit metricName"),
    (0, ".spec.strategy.canary.trafficRouting.alb", "servicePort"),
    (0, ".spec.strategy.canary.trafficRouting.alb.stickinessConfig", "durationSeconds enabled"),
    (0, ".spec.strategy.canary.trafficRouting.ambassador", "mappings"),
    (0, ".spec.strategy.canary.trafficRouting.apisix.route", "name"),
    (0, ".spec.strategy.canary.trafficRouting.appMesh.virtualService", "name"),
    (
        0,
        ".spec.strategy.canary.trafficRouting.appMesh.virtualNodeGroup",
        "canaryVirtualNodeRef stableVirtualNodeRef",
    ),
    (0, ".spec.strategy.canary.trafficRouting.istio.virtualService", "name"),
    (0, ".spec.strategy.canary.trafficRouting.istio.virtualServices[]", "name"),
    (
        0,
        ".spec.strategy.canary.trafficRouting.istio.destinationRule",
        "canarySubsetName name stableSubsetName",
    ),
    (0, ".spec.strategy.canary.trafficRouting.managedRoutes[]", "name"),
    (0, ".spec.strategy.canary.trafficRouting.traefik", "weightedTraefikServiceName"),
    (0, ".status.conditions[]", "lastTransitionTime lastUpdateTime message reason status type"),
    (0, ".status.pauseConditions[]", "reason startTime"),
    (0, ".status.canary.weights", "canary stable"),
    (0, ".status.canary.weights.additional[]", "weight"),
    (0, ".status.canary.currentStepAnalysisRunStatus", "name status"),
    (0, ".status.canary.stepPluginStatuses[]", "index name operation"),
    (0, ".status.albs[].loadBalancer", "arn name"),
    (1, ".spec", "metrics"),
    (1, ".spec.metrics[]", "name provider"),
    (1, ".spec.metrics[].provider.web", "url"),
    (1, ".spec.metrics[].provider.job.spec", "template"),
    (1, ".spec.metrics[].provider.kayenta.scopes[]", "controlScope experimentScope name"),
    (1, ".spec.metrics[].provider.kayenta.scopes[].controlScope", "region scope step"),
    (1, ".status", "phase"),
    (1, ".status.metricResults[].measurements[]", "phase"),
    (2, ".spec", ""),
    (4, ".spec.templates[]", "name selector template"),
    (
        4,
        ".status.templateStatuses[]",
        "availableReplicas name readyReplicas replicas updatedReplicas",
    ),
    (4, ".status.analysisRuns[]", "analysisRun name phase"),
];

fn schema_of(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Shows every schema with its path: `.name` of a property, `[]` of an item, `{}` of a value.
fn visit(schema: &Value, path: &str, see: &mut dyn FnMut(&str, &Value)) {
    see(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        visit(property, &format!("{path}.{name}"), see);
    }
    if let Some(items) = schema.get("items") {
        visit(items, &format!("{path}[]"), see);
    }
    if let Some(values) = schema.get("additionalProperties") {
        visit(values, &format!("{path}{{}}"), see);
    }
}

/// A sample with every field the schema knows is read and written back unchanged: the types
/// know each of them, under the same name.
#[test]
fn the_types_know_every_field_of_the_schemas() {
    let crds = crds();
    let part = |index: usize, part: &str| sample(&schema_of(&crds[index].1)["properties"][part]);
    same_after::<RolloutSpec>(part(0, "spec"));
    same_after::<RolloutStatus>(part(0, "status"));
    same_after::<AnalysisRunSpec>(part(1, "spec"));
    same_after::<AnalysisRunStatus>(part(1, "status"));
    same_after::<AnalysisTemplateSpec>(part(2, "spec"));
    same_after::<ExperimentSpec>(part(4, "spec"));
    same_after::<ExperimentStatus>(part(4, "status"));
}

fn same_after<T: serde::Serialize + serde::de::DeserializeOwned>(sample: Value) {
    let known: T = serde_json::from_value(sample.clone()).unwrap();
    assert_eq!(serde_json::to_value(&known).unwrap(), sample);
}

fn sample(schema: &Value) -> Value {
    if let Some(items) = schema.get("items") {
        return json!([sample(items)]);
    }
    if let Some(values) = schema.get("additionalProperties") {
        return json!({ "key": sample(values) });
    }
    if let Some(properties) = schema["properties"].as_object() {
        return properties.iter().map(|(name, schema)| (name.clone(), sample(schema))).collect();
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("date-time")) => json!("2026-08-17T10:11:12Z"),
        (Some("string"), _) => json!("text"),
        (Some("boolean"), _) => json!(true),
        (Some("object"), _) if schema.get("x-kubernetes-preserve-unknown-fields").is_none() => {
            json!({})
        }
        (Some("object"), _) => json!({ "anything": { "at": ["all"] } }),
        _ => json!(7),
    }
}
