//! What does each command write? Every request is compared with the contract, byte for byte.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use gradus_simkube::ApiError;
use gradus_simkube::service::HookAction;
use serde_json::{Value, json};

use crate::cluster::{Cluster, sample};
use crate::plugin::Plugin;
use crate::program::folder;

/// What, spec and status of the Rollout `web`, command, what it says, what it writes: `S` to the
/// status, `M` to the main resource, in order.
const CASES: &str = r#"
a pause ends             | {} | {"pauseConditions":P,"controllerPause":true,"currentStepIndex":1} | promote web | rollout 'web' promoted | S {"status":{"pauseConditions":null}}
a step is skipped        | {} | {"currentStepIndex":0} | promote web | rollout 'web' promoted | S {"status":{"currentStepIndex":1,"pauseConditions":null}}
halted: the step and the halt | {"paused":true} | {"currentStepIndex":1} | promote web | rollout 'web' promoted | S {"status":{"currentStepIndex":2,"pauseConditions":null}} ; M {"spec":{"paused":false}}
past an inconclusive run | {} | {"pauseConditions":P,"controllerPause":true,"currentStepIndex":0,"canary":{"currentStepAnalysisRunStatus":{"name":"r","status":"Inconclusive"}}} | promote web | rollout 'web' promoted | S {"status":{"controllerPause":false,"currentStepIndex":1,"pauseConditions":null}}
all that is left         | {} | {"currentPodHash":"b","stableRS":"a"} | promote web --full | rollout 'web' fully promoted | S {"status":{"promoteFull":true}}
nothing is left          | {} | {"currentPodHash":"a","stableRS":"a"} | promote web --full | rollout 'web' fully promoted |
all, and the halt        | {"paused":true} | {"currentPodHash":"b","stableRS":"a"} | promote --full web | rollout 'web' fully promoted | S {"status":{"promoteFull":true}} ; M {"spec":{"paused":false}}
one step, deprecated     | {} | {"pauseConditions":P,"currentStepIndex":1} | promote web -c | rollout 'web' promoted | S {"status":{"currentStepIndex":2}}
all steps, deprecated    | {} | {"currentStepIndex":1} | promote web --skip-all-steps | rollout 'web' promoted | S {"status":{"currentStepIndex":4}}
a skip beats full        | {} | {"currentPodHash":"b","stableRS":"a"} | promote web -a --full | rollout 'web' fully promoted | S {"status":{"currentStepIndex":4}}
abort                    | {} | {} | abort web | rollout 'web' aborted | S {"status":{"abort":true}}
retry                    | {} | {"abort":true} | retry rollout web | rollout 'web' retried | S {"status":{"abort":false}}
retry by an alias        | {} | {"abort":true} | retry ro web | rollout 'web' retried | S {"status":{"abort":false}}
pause                    | {} | {} | pause web | rollout 'web' paused | M {"spec":{"paused":true}}
"#;

type Writes = Arc<Mutex<Vec<String>>>;

/// A cluster that notes every write: `S` or `M` for part, or the method, and the body.
fn noting(name: &str) -> (Cluster, Plugin, Writes) {
    let folder = folder(name);
    let cluster = Cluster::start(0, &folder);
    let writes = Writes::default();
    let noted = Arc::clone(&writes);
    cluster.server.set_hook(move |seen| {
        if seen.method != "GET" {
            let method = match (seen.method.as_str(), seen.path.ends_with("/status")) {
                ("PATCH", true) => "S",
                ("PATCH", false) => "M",
                (method, _) => method,
            };
            let body = String::from_utf8(seen.body.to_vec()).unwrap();
            noted.lock().unwrap().push(format!("{method} {body}"));
        }
        HookAction::Pass
    });
    let plugin = Plugin::install(name, &cluster.kubeconfig);
    (cluster, plugin, writes)
}

fn taken(writes: &Writes) -> String {
    std::mem::take(&mut *writes.lock().unwrap()).join(" ; ")
}

/// The Rollout `web`, with these fields.
fn web(spec: &str, status: &str) -> Value {
    let mut rollout = sample("canary-with-pauses.yaml");
    rollout["metadata"]["name"] = "web".into();
    for (field, value) in serde_json::from_str::<Value>(spec).unwrap().as_object().unwrap() {
        rollout["spec"][field] = value.clone();
    }
    rollout["status"] = serde_json::from_str(status).unwrap();
    rollout
}

#[test]
fn a_command_writes_what_the_contract_says() {
    let paused = r#"[{"reason":"CanaryPauseStep","startTime":"2024-01-01T00:00:00Z"}]"#;
    let (cluster, plugin, writes) = noting("effects");
    for row in CASES.trim().lines() {
        let row = row.replace(":P", &format!(":{paused}"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, spec, status, command, said, written] = cells[..] else {
            panic!("six cells: {row}");
        };
        cluster.store(&web(spec, status));
        assert_eq!(plugin.says(command).trim_end(), said, "{what}");
        assert_eq!(taken(&writes), written, "{what}");
        cluster.delete_rollout("web");
    }
}

#[test]
fn without_a_status_subresource_the_main_resource_is_written() {
    let (cluster, plugin, writes) = noting("no-subresource");
    let noted = Arc::clone(&writes);
    cluster.server.set_hook(move |seen| {
        if seen.path.ends_with("/status") {
            let message = "the server could not find the requested resource".into();
            return HookAction::Refuse(ApiError {
                code: 404,
                reason: "NotFound",
                message,
                details: None,
            });
        }
        if seen.method == "PATCH" {
            noted.lock().unwrap().push(String::from_utf8(seen.body.to_vec()).unwrap());
        }
        HookAction::Pass
    });
    cluster.store(&web("{}", r#"{"currentPodHash":"b","stableRS":"a","currentStepIndex":1}"#));
    let cases = [
        ("abort web", r#"{"status":{"abort":true}}"#),
        (
            "promote web",
            r#"{"spec":{"paused":false},"status":{"currentStepIndex":2,"pauseConditions":null}}"#,
        ),
        ("promote web --full", r#"{"spec":{"paused":false},"status":{"promoteFull":true}}"#),
    ];
    for (command, expected) in cases {
        plugin.says(command);
        assert_eq!(taken(&writes), expected, "{command}");
    }
}

#[test]
fn a_restart_is_a_moment_cut_to_seconds() {
    let (cluster, plugin, writes) = noting("restart");
    cluster.store(&web("{}", "{}"));
    assert_eq!(plugin.says("restart web"), "rollout 'web' restarts in 0s\n");
    assert_eq!(plugin.says("restart web --in 1h30m"), "rollout 'web' restarts in 1h30m\n");
    let written = taken(&writes);
    let moments: Vec<jiff::Timestamp> = written
        .split(" ; ")
        .map(|write| {
            let body: Value = serde_json::from_str(write.strip_prefix("M ").unwrap()).unwrap();
            body["spec"]["restartAt"].as_str().unwrap().parse().unwrap()
        })
        .collect();
    let apart = moments[1].as_second() - moments[0].as_second();
    assert!((5_400..5_460).contains(&apart), "{written}");
    let refused = plugin.run("restart web --in 10");
    assert_eq!(refused.code, Some(1), "a unit is mandatory");
    assert!(refused.stderr.contains("missing unit"), "{}", refused.stderr);
}

#[test]
fn an_image_is_set_in_the_rollout_or_in_the_deployment_it_names() {
    let (cluster, plugin, writes) = noting("image");
    cluster.store(&web("{}", "{}"));
    let said = plugin.says("set image web checkout=nginx:1.28@sha256:00");
    assert_eq!(said, "rollout \"web\" image updated\n");
    assert!(taken(&writes).starts_with("PUT "), "the object is put whole");
    let image =
        cluster.rollout("web")["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    assert_eq!(image, "nginx:1.28@sha256:00");
    let refused = plugin.run("set image web db=x");
    let expected = "Error: unable to find container named \"db\"\n  its containers are checkout\n";
    assert_eq!(refused.stderr, expected);
    let refused = plugin.run("set image web chekout=x");
    assert!(refused.stderr.contains("did you mean \"checkout\"?"), "{}", refused.stderr);
    let usage = plugin.run("set image web db");
    assert_eq!((usage.code, usage.stderr.contains("Usage:")), (Some(1), true), "{}", usage.stderr);

    let labels = json!({ "app": "web" });
    let template = json!({ "metadata": { "labels": labels },
        "spec": { "containers": [{ "name": "main", "image": "a" }] } });
    cluster.store(&json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "base" }, "status": {},
        "spec": { "selector": { "matchLabels": labels }, "template": template } }));
    let mut refers =
        web(r#"{"workloadRef":{"kind":"Deployment","apiVersion":"apps/v1","name":"base"}}"#, "{}");
    refers["metadata"]["name"] = "refers".into();
    refers["spec"].as_object_mut().unwrap().remove("template");
    cluster.store(&refers);
    assert_eq!(plugin.says("set image refers *=b"), "deployment \"base\" image updated\n");
}

#[test]
fn an_image_is_tried_again_while_others_write_too() {
    let (cluster, plugin, _) = noting("conflicts");
    cluster.store(&web("{}", "{}"));
    for (conflicts, code) in [(4, 0), (5, 1)] {
        let left = Arc::new(Mutex::new(conflicts));
        let counted = Arc::clone(&left);
        cluster.server.set_hook(move |seen| {
            let mut left = counted.lock().unwrap();
            if seen.method != "PUT" || *left == 0 {
                return HookAction::Pass;
            }
            *left -= 1;
            let message = "the object has been modified".into();
            HookAction::Refuse(ApiError { code: 409, reason: "Conflict", message, details: None })
        });
        let done = plugin.run("set image web *=nginx:1.30");
        assert_eq!(done.code, Some(code), "{conflicts} conflicts: {}", done.stderr);
        assert_eq!(*left.lock().unwrap(), 0, "each conflict is met once");
    }
}

/// A ReplicaSet of the Rollout, as the controller makes it.
fn replica_set(rollout: &Value, revision: i32, image: &str) -> Value {
    let labels = json!({ "app": "checkout", "rollouts-pod-template-hash": image });
    let metadata = &rollout["metadata"];
    json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "status": {},
        "metadata": { "name": format!("web-{revision}"), "labels": labels,
            "annotations": { "rollout.argoproj.io/revision": revision.to_string() },
            "ownerReferences": [{ "apiVersion": gradus_api::names::API_VERSION, "kind": "Rollout",
                "name": metadata["name"], "uid": metadata["uid"], "controller": true }] },
        "spec": { "replicas": 0, "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "checkout", "image": image }] } } } })
}

#[test]
fn an_undo_puts_the_template_of_an_earlier_revision_back() {
    let (cluster, plugin, writes) = noting("undo");
    cluster.store(&web("{}", "{}"));
    for (revision, image) in [(1, "old"), (2, "older"), (3, "newest")] {
        cluster.store(&replica_set(&cluster.rollout("web"), revision, image));
    }
    let restored = || {
        let write = taken(&writes);
        let patch: Value = serde_json::from_str(write.strip_prefix("M ").unwrap()).unwrap();
        assert_eq!(
            (&patch[0]["op"], &patch[0]["path"]),
            (&"replace".into(), &"/spec/template".into())
        );
        assert_eq!(patch[1], Value::Null, "it is one operation: {patch}");
        let template = &patch[0]["value"];
        assert_eq!(
            template["metadata"]["labels"],
            json!({ "app": "checkout" }),
            "without the hash"
        );
        template["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!(plugin.says("undo web --to-revision 1"), "rollout 'web' undo\n");
    assert_eq!(restored(), "old");
    let same = "skipped rollback (current template already matches revision 1)";
    assert_eq!(plugin.says("undo web --to-revision=1"), same);
    assert_eq!(taken(&writes), "", "nothing is written");
    plugin.says("undo web");
    assert_eq!(restored(), "older", "the second highest revision");
}

#[test]
fn an_undo_reaches_the_workload_that_a_rollout_refers_to() {
    let (cluster, plugin, _) = noting("undo-workload");
    let mut template = replica_set(&Value::Null, 1, "first")["spec"].clone();
    template["selector"]["matchLabels"] = json!({ "app": "checkout" });
    for kind in ["Deployment", "ReplicaSet"] {
        cluster.store(&json!({ "apiVersion": "apps/v1", "kind": kind, "status": {},
            "metadata": { "name": "base" }, "spec": template }));
    }
    let expected = [
        ("Deployment", Ok("deployments/base")),
        ("ReplicaSet", Ok("replicasets/base")),
        ("PodTemplate", Err("failed restoring revision 1: workload of type PodTemplate is not")),
        ("Job", Err("failed restoring revision 1: workload of type Job is not supported")),
    ];
    for (kind, expected) in expected {
        let name = format!("of-{}", kind.to_lowercase());
        let mut refers = web("{}", "{}");
        refers["metadata"]["name"] = name.as_str().into();
        refers["spec"]["workloadRef"] =
            json!({ "apiVersion": "apps/v1", "kind": kind, "name": "base" });
        refers["spec"].as_object_mut().unwrap().remove("template");
        cluster.store(&refers);
        let mut set = replica_set(&cluster.rollout(&name), 1, "first");
        set["metadata"]["name"] = format!("{name}-1").into();
        cluster.store(&set);
        let patched = Arc::new(Mutex::new(String::new()));
        let noted = Arc::clone(&patched);
        cluster.server.set_hook(move |seen| {
            if seen.method == "PATCH" {
                *noted.lock().unwrap() = seen.path.to_owned();
            }
            HookAction::Pass
        });
        let done = plugin.run(&format!("undo {name} --to-revision 1"));
        match expected {
            Ok(path) => {
                assert_eq!(done.code, Some(0), "{kind}, never skipped: {}", done.stderr);
                assert!(patched.lock().unwrap().ends_with(path), "{kind}: {patched:?}");
            }
            Err(said) => assert!(done.stderr.contains(said), "{kind}: {}", done.stderr),
        }
    }
}

#[test]
fn runs_and_experiments_are_ended_and_retried() {
    let (cluster, plugin, writes) = noting("runs");
    let api_version = gradus_api::names::API_VERSION;
    let metric = json!({ "name": "m", "provider": { "job": { "spec": { "template": {} } } } });
    cluster.store(&json!({ "apiVersion": api_version, "kind": "AnalysisRun",
        "metadata": { "name": "run" }, "spec": { "metrics": [metric] } }));
    cluster.store(&json!({ "apiVersion": api_version, "kind": "Experiment",
        "metadata": { "name": "study" }, "spec": { "templates": [] } }));
    let cases = [
        ("terminate analysisrun run", "analysisRun 'run' terminated"),
        ("terminate ar run", "analysisRun 'run' terminated"),
        ("terminate experiment study", "experiment 'study' terminated"),
    ];
    for (command, said) in cases {
        assert_eq!(plugin.says(command).trim_end(), said);
        assert_eq!(taken(&writes), r#"M {"spec":{"terminate":true}}"#, "{command}");
    }
    assert_eq!(plugin.says("retry exp study"), "experiment 'study' retried\n");
    assert_eq!(taken(&writes), r#"M {"status":null}"#);
}

#[test]
fn several_names_stop_at_the_first_failure() {
    let (cluster, plugin, _) = noting("several");
    cluster.store(&web("{}", "{}"));
    let finished = plugin.run("abort web nobody web");
    assert_eq!(finished.code, Some(1));
    assert_eq!(finished.stdout, "rollout 'web' aborted\n");
    let expected = "Error: rollouts.argoproj.io \"nobody\" not found";
    assert!(finished.stderr.starts_with(expected), "{}", finished.stderr);
}

/// `abort a b | head -1`: a reader who has seen enough is no reason to leave work undone.
#[test]
fn a_reader_who_has_gone_changes_nothing() {
    let (cluster, plugin, writes) = noting("closed");
    cluster.store(&web("{}", "{}"));
    let path = plugin.folder().join("bad.yaml");
    std::fs::write(&path, web(r#"{"replicas":-1}"#, "{}").to_string()).unwrap();
    let lint = format!("lint -f {}", path.display());
    for (words, code) in [("abort web web", 0), (lint.as_str(), 1), ("promote nobody", 1)] {
        let mut command = plugin.command(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().unwrap().code(), Some(code), "{words}");
    }
    let twice = r#"S {"status":{"abort":true}} ; S {"status":{"abort":true}}"#;
    assert_eq!(taken(&writes), twice, "both were aborted");
}

/// An analysis template of either kind.
const TEMPLATE: &str = r#"{"apiVersion":"argoproj.io/v1alpha1","kind":"KIND","metadata":{"name":"smoke"},
    "spec":{"args":[{"name":"host"}],"metrics":[{"name":"m","provider":{"web":{"url":"http://x"}}}]}}"#;

#[test]
fn objects_are_created_from_files() {
    let (cluster, plugin, _) = noting("create");
    let file = |name: &str, text: &str| {
        let path = plugin.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let good = file("good.yaml", &web("{}", "{}").to_string());
    assert_eq!(plugin.says(&format!("create -f {good}")), "rollout.argoproj.io/web created\n");
    assert_eq!(cluster.rollout("web")["spec"]["replicas"], 5);
    for kind in ["AnalysisTemplate", "ClusterAnalysisTemplate"] {
        let path = file(kind, &TEMPLATE.replace("KIND", kind));
        let said = format!("{}.argoproj.io/smoke created\n", kind.to_lowercase());
        assert_eq!(plugin.says(&format!("create -f {path}")), said);
    }
    for (from, name) in [("--from smoke", "one"), ("--from smoke --global", "two")] {
        let said = plugin.says(&format!("create ar {from} --name {name} -a host=a=b"));
        assert_eq!(said, format!("analysisrun.argoproj.io/{name} created\n"));
    }
    let said = plugin.says("create analysisrun --from smoke -a host=x");
    assert!(said.starts_with("analysisrun.argoproj.io/smoke-"), "{said}");
}

#[test]
fn what_cannot_be_created_is_said() {
    let (_cluster, plugin, _) = noting("create-refused");
    let file = |name: &str, text: &str| {
        let path = plugin.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let good = file("good.yaml", &web("{}", "{}").to_string());
    let smoke = file("smoke", &TEMPLATE.replace("KIND", "AnalysisTemplate"));
    plugin.says(&format!("create -f {good} -f {smoke}"));
    let unknown = web("{}", "{}").to_string().replace("replicas", "replica");
    let twice = "kind: Rollout\nkind: Rollout\n";
    let cases = [
        ("an unknown field", format!("create -f {}", file("unknown", &unknown)), "unknown field"),
        (
            "a key twice",
            format!("create -f {}", file("twice", twice)),
            "2:1: key \"kind\" already set in map",
        ),
        (
            "another kind",
            format!("create -f {}", file("pod", r#"{"apiVersion":"v1","kind":"Pod"}"#)),
            "creates of /Pod unsupported",
        ),
        (
            "two files to watch",
            format!("create -w -f {good} -f {good}"),
            "Cannot watch multiple resources",
        ),
        (
            "a value that is missing",
            "create ar --from smoke".to_owned(),
            "args.host was not resolved",
        ),
        (
            "no value",
            "create ar --from smoke -a host".to_owned(),
            "arguments must be in the form NAME=VALUE",
        ),
        (
            "no template",
            "create ar --name x".to_owned(),
            "one of --from or --from-file must be specified",
        ),
        (
            "neither, and no value",
            "create ar -a host more".to_owned(),
            "one of --from or --from-file must be specified",
        ),
        (
            "both",
            format!("create ar --from smoke --from-file {good}"),
            "one of --from or --from-file must be specified",
        ),
        ("no such template", "create ar --from smoky".to_owned(), "did you mean \"smoke\"?"),
        ("it is there", format!("create -f {good}"), "already exists"),
    ];
    for (what, words, expected) in cases {
        let refused = plugin.run(&words);
        assert_eq!(refused.code, Some(1), "{what}");
        assert!(refused.stderr.contains(expected), "{what}: {}", refused.stderr);
    }
}
