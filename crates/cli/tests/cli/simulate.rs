//! `gradus simulate` and `gradus lint` as programs: what they print, and how they end.

use serde_json::{Value, json};

use crate::docs::root;
use crate::program::{folder, gradus};

fn example(name: &str) -> String {
    root().join("examples/rollouts").join(name).display().to_string()
}

#[test]
fn the_exit_code_says_how_the_update_ends() {
    let canary = example("canary-with-pauses.yaml");
    let timed = example("canary-with-timed-pauses.yaml");
    let none = folder("no-manifests").display().to_string();
    let table: [(&str, &[&str], i32, &str); 7] = [
        ("a timed canary", &["-f", &timed], 0, "promoted after"),
        ("a person who promotes", &["-f", &canary, "--behaviour", "promote"], 0, "promoted after"),
        ("nobody who promotes", &["-f", &canary], 3, "waits for a person since"),
        ("a person who aborts", &["-f", &canary, "--behaviour", "abort@5m"], 2, "back on stable"),
        ("pods that never start", &["-f", &timed, "--behaviour", "new:pull-error"], 2, "degraded"),
        ("a first deploy that fails", &["-f", &timed, "--behaviour", "never-ready"], 3, "stuck"),
        ("no manifests", &["-f", &none], 1, "no Rollout in the manifests"),
    ];
    for (what, arguments, code, words) in table {
        let done = gradus(&[&["simulate"], arguments].concat());
        assert_eq!(done.code, Some(code), "{what}: {}{}", done.stdout, done.stderr);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(said.contains(words), "{what}: {said}");
    }
    for wrong in [&["simulate"][..], &["simulate", "-f", &timed, "--seed", "many"]] {
        assert_eq!(gradus(wrong).code, Some(1), "{wrong:?}: 2 would say that it was aborted");
    }
    let unknown = gradus(&["simulate", "-f", &timed, "--behaviour", "dance"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("expected one of start=10s"), "{}", unknown.stderr);
}

#[test]
fn machines_get_one_object_and_reviewers_a_picture() {
    let picture = folder("simulate-plot").join("out.svg");
    let (file, path) = (example("canary-with-timed-pauses.yaml"), picture.to_str().unwrap());
    let done = gradus(&["simulate", "-f", &file, "-o", "json", "--plot", path, "--seed", "7"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(report["result"], "promoted");
    assert_eq!(report["violations"], Value::Array(Vec::new()));
    assert!(report["duration_seconds"].as_f64().unwrap() > 9.0, "three pauses of 3 s");
    let steps = report["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["left"].is_number()), "{steps:?}");
    assert!(report["timeline"].as_array().unwrap().len() > 10);
    assert!(report["peak_pods"].as_i64().unwrap() > 4);
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("<polygon"));
}

#[test]
fn analyses_come_to_what_the_versions_do_and_are_told() {
    let file = example("canary-with-analysis.yaml");
    let picture = folder("simulate-analysis").join("out.svg");
    let table: [(&str, &[&str], i32, &str); 6] = [
        ("nobody fails", &[], 0, "-2-1 Successful"),
        ("few fail", &["new:error-rate=2%"], 0, "Successful: Run Terminated"),
        (
            "many fail",
            &["new:error-rate=8%@5m"],
            2,
            "Failed: Metric \"error-rate\" assessed Failed",
        ),
        ("it is said how it ends", &["new:analysis=error@60s"], 2, "-2 Error"),
        ("the old one fails", &["old:error-rate=8%"], 0, "errors: 8.0% of all requests at most"),
        ("an autoscaler", &["scale=10@1m", "new:error-rate=1%"], 0, "for 5 replicas"),
    ];
    for (what, behaviours, code, words) in table {
        let mut arguments = vec!["simulate", "-f", &file];
        arguments.extend(behaviours.iter().flat_map(|behaviour| ["--behaviour", *behaviour]));
        let done = gradus(&arguments);
        assert_eq!(done.code, Some(code), "{what}: {}{}", done.stdout, done.stderr);
        assert!(done.stdout.contains(words), "{what}: {}", done.stdout);
    }
    let failing = ["--behaviour", "new:error-rate=8%@5m", "-o", "json", "--plot"];
    let plot = picture.to_str().unwrap();
    let done = gradus(&[&["simulate", "-f", &file], &failing[..], &[plot]].concat());
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    let last = report["analyses"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["phase"], report["result"].as_str()), (&"Failed".into(), Some("aborted")));
    let rates = report["timeline"].as_array().unwrap().iter().map(|s| s["error_rate"].as_f64());
    let most = rates.flatten().fold(0.0, f64::max);
    assert!((0.02..0.08).contains(&most), "some of the users meet the new version: {most}");
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(svg.contains("class=\"errors\"") && svg.contains("-2 Failed"), "{svg}");
    let measured = report["measurements"].as_array().unwrap();
    let decided = measured.last().unwrap();
    assert_eq!((&decided["metric"], &decided["phase"]), (&"error-rate".into(), &"Failed".into()));
    let conditions = decided["conditions"].as_str().unwrap();
    assert!(conditions.starts_with("successCondition "), "{conditions}");
    assert_eq!(svg.matches("class=\"measurement\"").count(), measured.len(), "{svg}");
    assert!(svg.contains("<title>error-rate, "), "{svg}");

    for (wrong, expected) in [
        ("new:error-rate=400%", "expected percents from 0 to 100"),
        ("new:analysis=maybe", "expected one of Successful, Failed, Error, Inconclusive"),
    ] {
        let refused = gradus(&["simulate", "-f", &file, "--behaviour", wrong]);
        assert_eq!(refused.code, Some(1), "{wrong}");
        assert!(refused.stderr.contains(expected), "{wrong}: {}", refused.stderr);
    }
}

#[test]
fn what_a_cluster_would_refuse_is_shown_in_its_place_and_not_simulated() {
    let path = folder("simulate-refused").join("web.yaml");
    let text = std::fs::read_to_string(example("canary-with-pauses.yaml")).unwrap();
    std::fs::write(&path, text.replacen("setWeight: 20", "setWieght: 20", 1)).unwrap();
    let done = gradus(&["simulate", "-f", path.to_str().unwrap()]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{}", done.stderr);
    assert!(done.stderr.contains("setWieght: 20\n"), "{}", done.stderr);
    let (line, mark) = done.stderr.split_once("setWieght: 20\n").unwrap();
    let before = line.lines().last().unwrap().len();
    let mark = mark.lines().next().unwrap();
    assert_eq!(mark.find("^^^^^^^^^"), Some(before), "the key is underlined: {}", done.stderr);
    assert!(done.stderr.ends_with("so there is nothing to simulate\n"), "{}", done.stderr);
    let files = root().join("examples/rollouts").display().to_string();
    let near = gradus(&["simulate", "-f", &files, "chekout"]);
    assert!(near.stderr.contains("did you mean \"checkout\""), "{}", near.stderr);
}

/// `kubectl get rollouts,services -o yaml`: a list, with everything a cluster adds.
#[test]
fn what_was_exported_from_a_cluster_is_simulated_and_linted_too() {
    let text = std::fs::read_to_string(example("blue-green.yaml")).unwrap();
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    for object in &mut objects {
        object["metadata"]["resourceVersion"] = "7".into();
        object["metadata"]["uid"] = "u".into();
        object["metadata"]["creationTimestamp"] = "2030-01-01T00:00:00Z".into();
        object["metadata"]["generation"] = 4.into();
        object["metadata"]["annotations"]["rollout.argoproj.io/revision"] = "5".into();
        object["metadata"]["annotations"]["argo-rollouts.argoproj.io/managed-by-rollouts"] =
            "colors".into();
        if object["kind"] == "Service" {
            object["spec"]["selector"]["rollouts-pod-template-hash"] = "abc".into();
        } else {
            object["spec"]["restartAt"] = "2030-01-01T00:00:00Z".into();
            object["status"] = json!({ "phase": "Degraded", "abort": true });
        }
    }
    let mut list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    let path = folder("simulate-exported").join("all.json");
    let file = path.to_str().unwrap();
    std::fs::write(&path, list.to_string()).unwrap();
    let done = gradus(&["simulate", "-f", file, "--behaviour", "promote"]);
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    assert_eq!(gradus(&["lint", "-f", file]).code, Some(0));
    let items = list["items"].as_array_mut().unwrap();
    let rollout = items.iter_mut().find(|object| object["kind"] == "Rollout").unwrap();
    rollout["spec"]["replicas"] = (-1).into();
    std::fs::write(&path, list.to_string()).unwrap();
    let wrong = gradus(&["lint", "-f", file]);
    assert_eq!(wrong.code, Some(1), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("error: spec.replicas: Invalid value"), "{}", wrong.stderr);
}

#[test]
fn a_users_own_manifest_survives_every_fault() {
    let file = example("canary-with-timed-pauses.yaml");
    let done = gradus(&["simulate", "-f", &file, "--faults"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.contains(": 0 ended otherwise"), "{}", done.stderr);
}

#[test]
fn lint_prints_the_plugins_lines_and_shows_the_place() {
    let path = folder("lint").join("web.yaml");
    let text = std::fs::read_to_string(example("canary-with-pauses.yaml")).unwrap();
    let bad = text.replacen("setWeight: 20", "setWeight: 120", 1);
    assert_ne!(bad, text, "the example has a weight of 20");
    std::fs::write(&path, bad).unwrap();
    let done = gradus(&["lint", "-f", path.to_str().unwrap()]);
    let message = "Invalid value: 120: SetWeight needs to be between 0 and 100";
    assert_eq!((done.code, done.stdout), (Some(1), format!("{message}\n")));
    let first = format!("\nError: spec.strategy.steps[0].setWeight: {message}\n");
    assert!(done.stderr.ends_with(&first), "{}", done.stderr);
    assert!(done.stderr.contains("web.yaml:"), "{}", done.stderr);

    let folder = root().join("examples/rollouts");
    let sound = gradus(&["lint", "-f", folder.to_str().unwrap()]);
    assert_eq!((sound.code, sound.stdout.as_str()), (Some(0), ""), "{}", sound.stderr);
    assert_eq!(gradus(&["lint"]).code, Some(1));
    let empty = gradus(&["lint", "-f", crate::program::folder("lint-empty").to_str().unwrap()]);
    assert_eq!(empty.code, Some(1), "nothing found must not read like nothing wrong");
    let extra = gradus(&["lint", "-f", &example("rolling-update.yaml"), "more"]);
    assert_eq!(extra.code, Some(0), "{}", extra.stderr);
}

/// As docs/analysis.md says: errors of stable and of the canary, and when the update ends how.
#[test]
fn a_canary_that_fails_more_often_than_its_baseline_is_given_up_the_sooner_the_worse_it_is() {
    let file = root().join("examples/analysis/canary-against-baseline.yaml");
    let file = file.to_str().unwrap();
    let table = [
        ("nothing more", "1%", 0, "promoted after 10m"),
        ("1 point more", "2%", 2, "aborted and back on stable after 2m"),
        ("2 points more", "3%", 2, "aborted and back on stable after 1m"),
        ("5 points more", "6%", 2, "aborted and back on stable after 32s"),
    ];
    for (what, rate, code, words) in table {
        let canary = format!("new:error-rate={rate}");
        let behaviours = ["--behaviour", "old:error-rate=1%", "--behaviour", &canary];
        let done = gradus(&[&["simulate", "-f", file], &behaviours[..]].concat());
        assert_eq!(done.code, Some(code), "{what}: {}{}", done.stdout, done.stderr);
        assert!(done.stdout.contains(words), "{what}: {}", done.stdout);
    }
}

/// A Rollout with these fields of its canary.
fn with_canary(canary: Value) -> Value {
    let labels = json!({ "app": "web" });
    json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": { "name": "web" },
        "spec": { "replicas": 2, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] } },
            "strategy": { "canary": canary } } })
}

#[test]
fn plugins_of_steps_metrics_and_traffic_are_played_by_behaviour() {
    let place = folder("simulate-plugins");
    let write = |name: &str, objects: &[Value]| {
        let path = place.join(name).with_extension("yaml");
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        std::fs::write(&path, documents.join("\n---\n")).unwrap();
        path.display().to_string()
    };
    let step = json!({ "plugin": { "name": "example/check" } });
    let step = write("step", &[with_canary(json!({ "steps": [{ "setWeight": 50 }, step] }))]);
    let metric = json!({ "name": "m", "provider": { "plugin": { "example/check": {} } } });
    let template = json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate",
        "metadata": { "name": "t" }, "spec": { "metrics": [metric] } });
    let analysis = json!({ "analysis": { "templates": [{ "templateName": "t" }] } });
    let metric = write("metric", &[template, with_canary(json!({ "steps": [analysis] }))]);
    let service = |name: &str| {
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
            "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] } })
    };
    let canary = json!({ "stableService": "stable", "canaryService": "canary",
        "trafficRouting": { "plugins": { "example/check": {} } }, "steps": [{ "setWeight": 50 }] });
    let traffic = write("traffic", &[service("stable"), service("canary"), with_canary(canary)]);
    let table = [
        ("a step that takes its time", &step, "running@40s,successful", 0, "promoted after"),
        (
            "a step that fails",
            &step,
            "running@20s,failed",
            2,
            "(example/check) failed: plays failed",
        ),
        ("a step after an error", &step, "error@20s,successful", 0, "promoted after"),
        ("no plugin for a step", &step, "", 2, "plugin \"example/check\" cannot be called in a"),
        ("a metric", &metric, "running@40s,successful", 0, "promoted after"),
        ("a metric that fails", &metric, "running@20s,failed", 2, "assessed Failed"),
        ("a split", &traffic, "running@20s,successful", 0, "promoted after"),
        ("a split that never is", &traffic, "running", 2, "timed out progressing"),
        ("a wrong word", &step, "walking", 1, "expected plugin=NAME:running, successful, failed"),
    ];
    for (what, file, script, code, words) in table {
        let behaviour = format!("plugin=example/check:{script}");
        let mut arguments = vec!["simulate", "-f", file, "--image", "web:2"];
        if !script.is_empty() {
            arguments.extend(["--behaviour", &behaviour]);
        }
        let done = gradus(&arguments);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(done.code, Some(code), "{what}: {said}");
        assert!(said.contains(words), "{what}: {said}");
    }
}
