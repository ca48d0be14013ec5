//! What `lint` finds, and where.

use super::*;

fn findings(text: &str) -> Vec<Finding> {
    let source = Source { name: "web.yaml".to_owned(), text: text.to_owned() };
    check(&[Arc::new(source)])
}

/// A sound Rollout with these lines in its canary strategy and its spec.
fn rollout(canary: &str, spec: &str) -> String {
    let indented: String = canary.lines().map(|line| format!("      {line}\n")).collect();
    let more: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
         spec: {{containers: [{{name: c, image: 'i:1'}}]}}\n{more}  strategy:\n    canary:\n{indented}"
    )
}

#[test]
fn a_sound_rollout_gives_no_finding() {
    assert!(findings(&rollout("steps: [{setWeight: 20}, {pause: {}}]", "")).is_empty());
}

#[test]
fn each_fault_is_shown_with_its_place_underlined() {
    let text = rollout("maxSurge: 0\nmaxUnavailable: 0\nsteps:\n- setWeight: 101", "replicas: -1");
    let shown: Vec<String> = findings(&text).iter().map(ToString::to_string).collect();
    let places: Vec<&str> = shown
        .iter()
        .map(|shown| shown.lines().nth(1).unwrap().trim_start_matches([' ', '-', '>']))
        .collect();
    assert_eq!(places, ["web.yaml:9:13", "web.yaml:12:17", "web.yaml:15:20"], "{shown:#?}");
    let weight = "error: spec.strategy.canary.steps[0].setWeight: Invalid value: 101: SetWeight needs to \
                  be between 0 and 100\n  --> web.yaml:15:20\n   |\n15 |       - setWeight: 101\n   \
                  |                    ^^^";
    assert_eq!(shown[2], weight);
}

#[test]
fn an_unknown_field_is_refused_as_kubectl_argo_rollouts_words_it() {
    let found = findings(&rollout("stepps: []", ""));
    let expected = r#"error unmarshaling JSON: while decoding JSON: json: unknown field "stepps""#;
    assert_eq!(found[0].in_one_line(), expected);
    assert_eq!(found[0].stage, Stage::Decoding);
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {prots: []}\n";
    assert_eq!(findings(service).len(), 1);
    let other = "apiVersion: apps/v1\nkind: Deployment\nspec: {anything: 1}\n";
    assert!(findings(other).is_empty(), "other kinds are taken as they are");
}

#[test]
fn a_service_beside_the_rollout_must_select_its_pods() {
    let text = rollout("stableService: web", "");
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n\
                   spec: {selector: {app: other}}\n";
    let found = findings(&format!("{text}{service}"));
    let expected = "spec.strategy.canary.stableService: Invalid value: \"web\": Service \"web\" \
                    has unmatch label \"app\" in rollout";
    assert_eq!(found.iter().map(Finding::in_one_line).collect::<Vec<_>>(), [expected]);
}

const TEMPLATE: &str = "apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\n\
    metadata: {name: smoke}\nspec:\n  args: [{name: host}, {name: limit, value: '1'}]\n  \
    metrics: [{name: m, successCondition: 'result < {{args.limit}}', provider: {web: {url: 'http://x'}}}]";
const ENDLESS: &str = "apiVersion: argoproj.io/v1alpha1\nkind: ClusterAnalysisTemplate\n\
    metadata: {name: endless}\nspec:\n  metrics: [{name: m, interval: 1m, provider: {web: {url: 'http://x'}}}]";
const PLACEHOLDER: &str = "apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\n\
    metadata: {name: open}\nspec:\n  metrics: [{name: m, provider: {web: {url: '{{args.x}}'}}}]";
const EXPERIMENT: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Experiment\n\
    metadata: {name: e}\nspec:\n  templates: []\n  analyses: [{name: a, templateName: smoke}]";
const SERVICE: &str =
    "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}}";
const INGRESS: &str = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\n\
    spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: other}}}]}}]}";
const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n\
    spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},\n  \
    spec: {containers: [{name: c}]}}}";

/// What | the canary strategy, or the workload it refers to | documents beside it | what is found,
/// or nothing at all.
const REFERENCES: &str = r#"
templates elsewhere        | steps: [{analysis: {templates: [{templateName: smoke}]}}] | |
all it needs               | steps: [{analysis: {templates: [{templateName: smoke}], args: [{name: host}]}}] | TEMPLATE |
no value                   | steps: [{analysis: {templates: [{templateName: smoke}]}}] | TEMPLATE | error: spec.strategy.canary.steps[0].analysis.templates: Invalid value: "templateNames: [smoke]": args.host was not resolved
an unknown argument        | steps: [{analysis: {templates: [{templateName: smoke}], args: [{name: host}, {name: hots}]}}] | TEMPLATE | warning: spec.strategy.canary.steps[0].analysis.args[1].name: the template has no argument "hots", so it is dropped; it takes host, limit
a slip                     | steps: [{analysis: {templates: [{templateName: smok}]}}] | TEMPLATE | warning: spec.strategy.canary.steps[0].analysis.templates: there is no AnalysisTemplate "smok" in these files; did you mean "smoke"?
a step that never ends     | steps: [{analysis: {templates: [{templateName: endless, clusterScope: true}]}}] | ENDLESS | error: spec.strategy.canary.steps[0].analysis.templates: Invalid value: "endless": AnalysisTemplate endless has metric m which runs indefinitely
it may in the background   | analysis: {templates: [{templateName: endless, clusterScope: true}]} | ENDLESS |
an unknown placeholder     | steps: [] | PLACEHOLDER | error: spec.metrics[0].provider.web.url: failed to resolve {{args.x}}: it is none of spec.args
an Experiment              | steps: [] | TEMPLATE EXPERIMENT | error: spec.analyses[0]: args.host was not resolved
an experiment step         | steps: [{experiment: {duration: 1m, templates: [], analyses: [{name: a, templateName: smok}]}}] | TEMPLATE | warning: spec.strategy.canary.steps[0].experiment.analyses[0].templateName: there is no AnalysisTemplate "smok"
another Service            | stableService: wbe | SERVICE | warning: spec.strategy.canary.stableService: there is no Service "wbe" in these files; did you mean "web"?
another Ingress            | ROUTED wbe | INGRESS | warning: spec.strategy.canary.trafficRouting.nginx.stableIngress: there is no Ingress "wbe"
an Ingress past the Service | ROUTED web | INGRESS | warning: spec.strategy.canary.trafficRouting.nginx.stableIngress: Invalid value: "web": ingress `web` has no rules using service web backend
a workload elsewhere       | workload {apiVersion: apps/v1, kind: Deployment, name: web} | SERVICE |
a workload that is refused | workload {apiVersion: apps/v1, kind: Deployment, name: web} | SERVICE DEPLOYMENT | error: spec.workloadRef.name: Deployment web: spec.template.spec.containers[0].image: Required value
another workload           | workload {apiVersion: apps/v1, kind: Deployment, name: wbe} | DEPLOYMENT | warning: spec.workloadRef.name: there is no Deployment "wbe" in these files; did you mean "web"?
no workload                | workload {apiVersion: batch/v1, kind: Job, name: web} | | error: spec.workloadRef: workload of type batch/Job is not supported
"#;

fn named(name: &str) -> &'static str {
    match name {
        "TEMPLATE" => TEMPLATE,
        "ENDLESS" => ENDLESS,
        "PLACEHOLDER" => PLACEHOLDER,
        "EXPERIMENT" => EXPERIMENT,
        "SERVICE" => SERVICE,
        "INGRESS" => INGRESS,
        "DEPLOYMENT" => DEPLOYMENT,
        other => panic!("no document {other}"),
    }
}

/// A Rollout as a row of the table says it.
fn rollout_of(cell: &str) -> String {
    if let Some(workload) = cell.strip_prefix("workload ") {
        return format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  \
             workloadRef: {workload}\n  strategy: {{canary: {{stableService: web}}}}\n"
        );
    }
    match cell.strip_prefix("ROUTED ") {
        None => rollout(cell, ""),
        Some(ingress) => {
            let services = "canaryService: c\nstableService: web";
            let routing = format!("trafficRouting: {{nginx: {{stableIngress: {ingress}}}}}");
            rollout(&format!("{services}\n{routing}"), "replicas: 0")
        }
    }
}

#[test]
fn what_a_rollout_names_must_fit_where_it_is_in_the_files() {
    for row in REFERENCES.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, rollout, documents, expected] = cells[..] else { panic!("four cells: {row}") };
        let beside = documents.split_whitespace().map(|name| format!("---\n{}\n", named(name)));
        let text = rollout_of(rollout) + &beside.collect::<String>();
        let found: Vec<String> = findings(&text).iter().map(ToString::to_string).collect();
        let is_said = found.iter().any(|text| text.starts_with(expected));
        assert_eq!(found.is_empty(), expected.is_empty(), "{what}: {found:#?}");
        assert!(is_said || expected.is_empty(), "{what}: {found:#?}");
    }
}

#[test]
fn plugins_are_named_as_they_can_be_listed() {
    let list = |kind: &str, entry: &str| {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: argo-rollouts-config}}\n\
             data:\n  {kind}: |\n    - {{{entry}}}\n"
        )
    };
    let sha = "ab".repeat(32);
    let good = format!("name: a/b, location: 'file://x', sha256: {sha}");
    let step = |name: &str| rollout(&format!("steps: [{{plugin: {{name: {name}}}}}]"), "");
    let router = |name: &str| {
        let services = "canaryService: c\nstableService: s";
        rollout(
            &format!("{services}\ntrafficRouting: {{plugins: {{{name}: {{}}}}}}"),
            "replicas: 0",
        )
    };
    let metric = |name: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {{name: t}}\n\
             spec: {{metrics: [{{name: m, provider: {{plugin: {{{name}: {{}}}}}}}}]}}\n"
        )
    };
    let table = [
        ("a name", step("a/b"), ""),
        ("no name", step("check"), "plugin.name: Invalid value: \"check\": no plugin can have"),
        ("of a metric", metric("check"), "provider.plugin.check: Invalid value: \"check\""),
        ("of a router", router("check"), "plugins.check: Invalid value: \"check\""),
        ("served without a plugin", router("argoproj-labs/gatewayAPI"), "No routes configured"),
        (
            "two of a metric",
            metric("c/d: {}, a/b"),
            "is measured by one plugin, and this one names",
        ),
        ("listed", step("a/b") + &list("stepPlugins", &good), ""),
        ("listed for traffic", step("a/b") + &list("trafficRouterPlugins", &good), "no plugin"),
        ("nearly listed", step("a/c") + &list("stepPlugins", &good), "did you mean \"a/b\"?"),
        ("a metric's", metric("a/b") + &list("metricProviderPlugins", &good), ""),
        (
            "a list that is refused",
            list("stepPlugins", "name: a/b, location: 'file://x'"),
            "data.stepPlugins: plugin a/b: sha256: expected the 64 hexadecimal digits",
        ),
    ];
    for (what, text, expected) in table {
        let found: Vec<String> = findings(&text).iter().map(ToString::to_string).collect();
        assert_eq!(found.is_empty(), expected.is_empty(), "{what}: {found:#?}");
        assert!(found.iter().all(|text| text.contains(expected)), "{what}: {found:#?}");
    }
}

#[test]
fn what_will_surprise_is_a_warning() {
    let routed =
        "canaryService: c\nstableService: s\ntrafficRouting: {nginx: {stableIngress: i}}\n";
    let with_steps = |steps: &str| format!("{routed}maxSurge: 1\nsteps: [{steps}]");
    let plugin = "canaryService: c\nstableService: s\ntrafficRouting: {plugins: {a/b: {}}}";
    let experiment =
        "{experiment: {duration: 1m, templates: [{name: a, specRef: stable, replicas: 3}]}}";
    let slow = "minReadySeconds: 5\nprogressDeadlineSeconds: 20";
    let delayed = |field: &str| {
        rollout("{}", "progressDeadlineSeconds: 20")
            .replace("image: 'i:1'", &format!("image: 'i:1', {field}"))
    };
    let table = [
        (
            rollout("steps: [{analysis: {templates: []}}, {setWeight: 50}]", ""),
            "never ends: the step behind it is never reached",
        ),
        (
            rollout("steps: [{experiment: {templates: [{name: a, specRef: stable}]}}]", ""),
            "without duration",
        ),
        (rollout("steps: [{plugin: {name: a/b}}]", ""), ""),
        (rollout("steps: []", ""), "there are no steps"),
        (rollout("maxUnavailable: 150%", ""), "more than all pods"),
        (rollout(plugin, "replicas: 0"), ""),
        (
            rollout(&format!("{routed}maxSurge: 2"), "replicas: 10"),
            "up to 20 pods at once for 10 replicas",
        ),
        (rollout(routed, "replicas: 10"), ""),
        (rollout(&with_steps("{setCanaryScale: {weight: 200}}"), "replicas: 4"), "up to 12 pods"),
        (
            rollout(&with_steps(&format!("{{setWeight: 50}}, {experiment}")), "replicas: 4"),
            "up to 9 pods",
        ),
        (
            rollout(&format!("maxSurge: 1\nsteps: [{experiment}]"), "replicas: 4"),
            "up to 7 pods at once for 4 replicas",
        ),
        (rollout("maxSurge: 1\nmaxUnavailable: 0", &format!("replicas: 10\n{slow}")), "10 waves"),
        (rollout("{}", "minReadySeconds: 600\nprogressDeadlineSeconds: 601"), ""),
        (
            delayed("readinessProbe: {initialDelaySeconds: 20, httpGet: {port: 80}}"),
            "it needs 20 s",
        ),
        (delayed("startupProbe: {initialDelaySeconds: 25, httpGet: {port: 80}}"), "it needs 25 s"),
        (delayed("lifecycle: {postStart: {sleep: {seconds: 30}}}"), "it needs 30 s"),
        ("apiVersion: v1\nkind: ConfigMap\ndata: {a: '1', a: '2'}\n".to_owned(), "stands twice"),
    ];
    for (text, expected) in table {
        let found = findings(&text);
        assert!(found.iter().all(|finding| finding.severity == Severity::Warning), "{found:?}");
        let is_said = found.iter().any(|finding| finding.message.contains(expected));
        assert!(is_said || (expected.is_empty() && found.is_empty()), "{expected}: {found:?}");
    }
}

#[test]
fn a_kind_that_is_nearly_ours_is_an_error() {
    let of = |version: &str, kind: &str| format!("apiVersion: {version}\nkind: {kind}\n");
    let table = [
        (
            of("argoproj.io/v1alpha1", "rollout"),
            "has no kind \"rollout\"; did you mean \"Rollout\"?",
        ),
        (of("v1", "Rollout"), "its apiVersion is argoproj.io/v1alpha1"),
        (of("apps/v1", "Rollout"), "its apiVersion is argoproj.io/v1alpha1"),
        (of("argoproj.io/v1alpha1", "Application"), ""),
        (of("argoproj.io/v1alpha1", "Workflow"), ""),
        (of("rollouts.kruise.io/v1beta1", "Rollout"), ""),
    ];
    for (text, expected) in table {
        let found = findings(&text);
        assert_eq!(found.is_empty(), expected.is_empty(), "{text}: {found:?}");
        assert!(found.iter().all(|one| one.severity == Severity::Error), "{found:?}");
        assert!(found.iter().all(|one| one.message.contains(expected)), "{found:?}");
    }
    let newer = rollout("{}", "").replace("v1alpha1", "v1");
    assert!(findings(&newer)[0].message.contains("its apiVersion is argoproj.io/v1alpha1"));
}

/// What a router cannot do is refused in the words of the contract.
#[test]
fn steps_that_the_router_cannot_do_are_errors() {
    let nginx = "canaryService: c\nstableService: s\ntrafficRouting: {nginx: {stableIngress: i}}";
    let header = "{setHeaderRoute: {name: h, match: [{headerName: x, headerValue: {exact: y}}]}}";
    let mirror = "{setMirrorRoute: {name: m, percentage: 5}}";
    let table = [
        (
            rollout(&format!("{nginx}\nsteps: [{header}]"), ""),
            "SetHeaderRoute requires TrafficRouting, supports Istio",
        ),
        (
            rollout(&format!("{nginx}\nsteps: [{mirror}]"), ""),
            "SetMirrorRoute requires TrafficRouting, supports Istio",
        ),
        (
            rollout("steps: [{setCanaryScale: {weight: 50}}]", ""),
            "SetCanaryScale requires TrafficRouting to be set",
        ),
    ];
    for (text, expected) in table {
        let found = findings(&text);
        let is_said = found
            .iter()
            .any(|one| one.severity == Severity::Error && one.message.contains(expected));
        assert!(is_said, "{expected}: {found:?}");
    }
}

#[test]
fn a_document_without_kind_and_broken_yaml_are_refused() {
    for (text, expected) in [("a: 1\n", "needs a kind"), ("a: [1\n", "yaml: line")] {
        let found = findings(text);
        assert!(found[0].message.contains(expected), "{found:?}");
        assert_eq!(found[0].stage, Stage::Decoding);
    }
}
