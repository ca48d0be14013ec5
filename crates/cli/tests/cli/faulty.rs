//! Does `lint` find the mistakes that people make? Each file of `tests/faulty` has one, and says in
//! its first lines on which line it must be found and what must be said.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::docs::root;
use crate::program::{Finished, folder, gradus};

/// Fewer would be another list.
const AT_LEAST: usize = 275;

fn faulty() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faulty");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// What a line of the header says.
fn header(text: &str, name: &str) -> String {
    let start = format!("# {name}: ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no {name} in:\n{text}")).to_owned()
}

fn as_json(done: &Finished) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}{}", done.stdout, done.stderr))
}

#[test]
fn each_mistake_is_one_finding_with_its_line_and_plain_words() {
    let files = faulty();
    assert!(files.len() >= AT_LEAST, "only {} files", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let done = gradus(&["lint", "-o", "json", "-f", path.to_str().unwrap()]);
        let report = as_json(&done);
        let found = report["findings"].as_array().unwrap();
        let line: u64 = header(&text, "line").parse().unwrap();
        let words = header(&text, "says");
        let is_said = |one: &Value| {
            one["line"] == line
                && one["severity"] == "error"
                && one["message"].as_str().unwrap().contains(&words)
        };
        if done.code != Some(1) || found.len() != 1 || !is_said(&found[0]) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let found: Vec<String> = found
                .iter()
                .map(|one| format!("  {} {}: {}", one["line"], one["path"], one["message"]))
                .collect();
            wrong.push(format!("{name}: expected {line} {words:?}, found\n{}", found.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn paths_are_whole_and_scripts_read_what_they_know() {
    let file = root().join("crates/cli/tests/faulty/duration-in-words.yaml");
    let done = gradus(&["lint", "-f", file.to_str().unwrap()]);
    assert_eq!(done.code, Some(1));
    let whole = "error: spec.strategy.canary.steps[1].pause.duration: \"5minutes\" is no duration";
    assert!(done.stderr.starts_with(whole), "{}", done.stderr);
    let known = "Invalid value: -1: Duration needs to be greater than 0";
    assert_eq!(done.stdout, format!("{known}\n"));
    let last = format!("Error: spec.strategy.steps[1].pause.duration: {known}\n");
    assert!(done.stderr.ends_with(&last), "{}", done.stderr);
}

/// A manifest that is accepted with one warning.
fn doubtful(name: &str) -> String {
    let sample = root().join("examples/rollouts/rolling-update.yaml");
    let text = std::fs::read_to_string(sample).unwrap();
    let path = folder(name).join("web.yaml");
    let doubtful = text.replacen("spec:\n", "spec:\n  replicas: 3\n", 1);
    assert_eq!(doubtful.matches("replicas:").count(), 2, "a key stands twice");
    std::fs::write(&path, doubtful).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn strict_lets_no_warning_pass() {
    let file = doubtful("lint-strict");
    let usual = gradus(&["lint", "-f", &file]);
    assert_eq!(usual.code, Some(0), "{}", usual.stderr);
    assert!(usual.stderr.starts_with("warning: spec.replicas"), "{}", usual.stderr);
    let strict = gradus(&["lint", "--strict", "-f", &file]);
    assert_eq!(strict.code, Some(1));
    assert!(strict.stderr.ends_with("Error: 1 warning, and --strict lets none pass\n"));
}

#[test]
fn tools_read_json_sarif_and_annotations() {
    let file = doubtful("lint-formats");
    let json = as_json(&gradus(&["lint", "-o", "json", "-f", &file]));
    assert_eq!((&json["errors"], &json["warnings"]), (&0.into(), &1.into()));
    let finding = &json["findings"][0];
    assert_eq!(finding["rule"], "repeated-key");
    assert_eq!(finding["file"], file.as_str());
    assert_eq!(finding["path"], "spec.replicas");
    let sarif = as_json(&gradus(&["lint", "-o", "sarif", "-f", &file]));
    assert_eq!(sarif["version"], "2.1.0");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"repeated-key".into(), &"warning".into()));
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], file.as_str());
    assert_eq!(place["region"]["startLine"], finding["line"]);
    let annotations = gradus(&["lint", "-o", "github", "-f", &file]).stdout;
    let expected = format!("::warning file={file},line={},", finding["line"]);
    assert!(annotations.starts_with(&expected), "{annotations}");
    let sound = root().join("examples/rollouts");
    let none = gradus(&["lint", "-o", "github", "-f", sound.to_str().unwrap()]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
}

#[test]
fn a_surge_is_mentioned_only_where_one_is_set_and_exceeded() {
    let sample = root().join("examples/rollouts");
    let said = gradus(&["lint", "-o", "json", "-f", sample.to_str().unwrap()]);
    assert_eq!(as_json(&said)["findings"], serde_json::json!([]), "{}", said.stdout);
}

/// What stands behind a Rollout in the same file | the warning.
const NEIGHBOURS: &str = r#"
{kind: HorizontalPodAutoscaler, apiVersion: autoscaling/v2, metadata: {name: cart}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}}} | there is no Deployment "cart" of apps/v1 in these files, but a Rollout
{kind: HorizontalPodAutoscaler, apiVersion: autoscaling/v2, metadata: {name: cart}, spec: {scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: cart}}} |
{kind: HorizontalPodAutoscaler, apiVersion: autoscaling/v2, metadata: {name: cart}, spec: {scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: crat}}} | there is no Rollout "crat" in these files; did you mean "cart"?
{kind: HorizontalPodAutoscaler, apiVersion: autoscaling/v2beta2, metadata: {name: cart}} | its apiVersion is autoscaling/v2
{kind: ScaledObject, apiVersion: keda.sh/v1alpha1, metadata: {name: cart}, spec: {scaleTargetRef: {name: cart}}} | there is no Deployment "cart" of apps/v1 in these files, but a Rollout
{kind: PodDisruptionBudget, apiVersion: policy/v1, metadata: {name: cart}, spec: {minAvailable: 1, selector: {matchLabels: {app: crat}}}} | no pod of Rollout cart is selected: they have no label app=crat
{kind: PodDisruptionBudget, apiVersion: policy/v1, metadata: {name: cart}, spec: {minAvailable: 1, selector: {matchLabels: {app: cart}}}} |
{kind: Ingress, apiVersion: extensions/v1beta1, metadata: {name: cart}} | its apiVersion is networking.k8s.io/v1
{kind: Rollout, apiVersion: argoproj.io/v1alpha1, metadata: {name: cart}, spec: SPEC} | Rollout "cart" stands twice in this file
{kind: Rollout, apiVersion: argoproj.io/v1alpha1, metadata: {name: cart, namespace: other}, spec: SPEC} |
{kind: Rollout, apiVersion: argoproj.io/v1alpha1, metadata: {name: other}, spec: SPEC} | Rollout "cart" names Service "cart", too
"#;

#[test]
fn objects_of_one_file_that_do_not_go_together_are_mentioned() {
    let place = folder("lint-neighbours");
    let spec = "{replicas: 2, selector: {matchLabels: {app: cart}}, strategy: {canary: {stableService: \
                cart, canaryService: cart-new}}, template: {metadata: {labels: {app: cart}}, spec: \
                {containers: [{name: cart, image: 'cart:1'}]}}}";
    let rollout = format!(
        "{{kind: Rollout, apiVersion: argoproj.io/v1alpha1, metadata: {{name: cart}}, spec: {spec}}}"
    );
    for (number, row) in NEIGHBOURS.trim().lines().enumerate() {
        let (neighbour, words) = row.rsplit_once('|').unwrap();
        let file = place.join(format!("{number}.yaml"));
        let text = format!("{rollout}\n---\n{}\n", neighbour.trim().replace("SPEC", spec));
        std::fs::write(&file, text).unwrap();
        let done = gradus(&["lint", "-f", file.to_str().unwrap()]);
        assert_eq!(done.code, Some(0), "{row}: {}", done.stderr);
        let said: Vec<&str> =
            done.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
        match words.trim() {
            "" => assert!(said.is_empty(), "{row}: {said:?}"),
            words => assert!(said.iter().any(|line| line.contains(words)), "{row}: {said:?}"),
        }
    }
}

/// Runs a line of a shell with our binary in PATH.
fn shell(line: &str, files: &[&str]) -> Finished {
    let program = Path::new(env!("CARGO_BIN_EXE_gradus"));
    let path =
        format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new("sh");
    let words = files.iter().map(|file| format!(" '{file}'")).collect::<String>();
    command.args(["-c", &format!("{line}{words}")]).env("PATH", path);
    crate::program::finish(command)
}

#[test]
fn the_hook_and_the_workflow_of_the_documents_run() {
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(root().join("docs/ci").join(name)).unwrap();
        serde_saphyr::from_str(&text).unwrap()
    };
    let hook = read("pre-commit-hooks.yaml");
    let entry = hook["repos"][0]["hooks"][0]["entry"].as_str().unwrap().to_owned();
    let sound = root().join("examples/rollouts/rolling-update.yaml");
    let other = root().join("examples/rollouts/canary-with-pauses.yaml");
    let faulty = root().join("crates/cli/tests/faulty/weight-above-100.yaml");
    let [sound, other, faulty] = [&sound, &other, &faulty].map(|path| path.to_str().unwrap());
    let fine = shell(&entry, &[sound, other]);
    assert_eq!(fine.code, Some(0), "{}", fine.stderr);
    assert_eq!(shell(&entry, &[sound, faulty]).code, Some(1), "every file is looked at");
    let workflow = read("github-action.yaml");
    let line = workflow["jobs"]["lint"]["steps"][1]["run"].as_str().unwrap();
    let line = line.strip_suffix(" manifests").unwrap();
    assert_eq!(shell(line, &[sound]).code, Some(0));
    let said = shell(line, &[faulty]);
    assert_eq!(said.code, Some(1));
    assert!(said.stdout.starts_with("::error file="), "{}", said.stdout);
}

/// What the schema of SARIF 2.1.0 requires of the parts that are written.
#[test]
fn sarif_has_the_shape_that_its_schema_asks_for() {
    let folder = folder("sarif shape");
    let faulty = root().join("crates/cli/tests/faulty/weight-above-100.yaml");
    let file = folder.join("50% of ours: ü.yaml");
    std::fs::copy(faulty, &file).unwrap();
    let done = gradus(&["lint", "-o", "sarif", "-f", file.to_str().unwrap()]);
    let log: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().unwrap().ends_with("sarif-2.1.0.json"));
    let runs = log["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let driver = &runs[0]["tool"]["driver"];
    assert!(driver["name"].is_string() && driver["version"].is_string(), "{driver}");
    let rules: Vec<&str> = driver["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    assert_eq!(runs[0]["columnKind"], "unicodeCodePoints");
    let results = runs[0]["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        assert!(rules.contains(&result["ruleId"].as_str().unwrap()), "{result}");
        let level = result["level"].as_str().unwrap();
        assert!(["none", "note", "warning", "error"].contains(&level), "{result}");
        assert!(!result["message"]["text"].as_str().unwrap().is_empty(), "{result}");
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.ends_with("/sarif%20shape/50%25%20of%20ours%3A%20%C3%BC.yaml"), "{uri}");
        let number = |field: &str| place["region"][field].as_u64().unwrap();
        assert!(number("startLine") >= 1 && number("startColumn") >= 1, "{place}");
        assert!(number("endColumn") > number("startColumn"), "{place}");
    }
}
