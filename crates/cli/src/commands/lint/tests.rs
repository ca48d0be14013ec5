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
    let weight = "error: spec.strategy.steps[0].setWeight: Invalid value: 101: SetWeight needs to \
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

#[test]
fn what_will_surprise_is_a_warning() {
    let routed =
        "canaryService: c\nstableService: s\ntrafficRouting: {nginx: {stableIngress: i}}\n";
    let slow = "minReadySeconds: 5\nprogressDeadlineSeconds: 20";
    let table = [
        (rollout("steps: [{analysis: {templates: []}}, {setWeight: 50}]", ""), "never ends"),
        (rollout("steps: [{experiment: {templates: []}}]", ""), "without duration"),
        (rollout(routed, "replicas: 10"), "up to 20 pods at once for 10 replicas"),
        (
            rollout(
                &format!("{routed}steps: [{{setCanaryScale: {{weight: 200}}}}]"),
                "replicas: 4",
            ),
            "up to 12 pods",
        ),
        (rollout("maxSurge: 1\nmaxUnavailable: 0", &format!("replicas: 10\n{slow}")), "10 waves"),
        (rollout("{}", "minReadySeconds: 600\nprogressDeadlineSeconds: 601"), ""),
        ("apiVersion: v1\nkind: ConfigMap\ndata: {a: '1', a: '2'}\n".to_owned(), "stands twice"),
    ];
    for (text, expected) in table {
        let found = findings(&text);
        assert!(found.iter().all(|finding| finding.severity == Severity::Warning), "{found:?}");
        let is_said = found.iter().any(|finding| finding.message.contains(expected));
        assert!(is_said || expected.is_empty(), "{expected}: {found:?}");
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
