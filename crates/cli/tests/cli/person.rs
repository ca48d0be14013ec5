//! A person at work: commands against a cluster with a controller, and what comes of them.

use gradus_simkube::ApiError;
use gradus_simkube::service::HookAction;
use serde_json::{Value, json};

use crate::cluster::{Cluster, sample};
use crate::controller::start;
use crate::plugin::Plugin;
use crate::program::{Running, folder, free_port};

/// A cluster with a controller and the rollout `checkout`, healthy.
fn at_work(name: &str) -> (Cluster, Running, Plugin) {
    let folder = folder(name);
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("canary-with-pauses.yaml"));
    let (controller, ..) = start(&cluster.kubeconfig, &[]);
    let plugin = Plugin::install(name, &cluster.kubeconfig);
    let said = plugin.says("status checkout --timeout 60s");
    assert!(said.ends_with("Healthy\n"), "{said}");
    (cluster, controller, plugin)
}

#[test]
fn an_update_is_followed_promoted_undone_aborted_and_retried() {
    let (cluster, _controller, plugin) = at_work("at-work");
    let wait = |state: &str| plugin.says(&format!("wait checkout --for={state} -t 60s"));
    let image = || {
        let rollout = cluster.rollout("checkout");
        rollout["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    };
    plugin.says("set image checkout checkout=nginx:1.28");
    assert_eq!(wait("paused"), "rollout 'checkout' paused\n");
    let said = plugin.says("status checkout --success-on-pause");
    assert_eq!(said, "Paused - CanaryPauseStep\n");
    assert_eq!(plugin.says("status checkout -w=false"), "Paused - CanaryPauseStep\n");
    let late = plugin.run("status checkout --timeout 1s");
    assert_eq!(late.code, Some(1));
    assert_eq!(late.stderr, "Error: Rollout status watch exceeded timeout\n");
    let late = plugin.run("wait checkout --for=healthy -t 1s");
    let expected =
        "Error: rollout 'checkout' is not healthy in time; it is Paused - CanaryPauseStep\n";
    assert_eq!((late.code, late.stderr.as_str()), (Some(1), expected));

    assert_eq!(plugin.says("promote checkout --full"), "rollout 'checkout' fully promoted\n");
    wait("promoted");
    wait("healthy");
    assert_eq!(plugin.says("undo checkout"), "rollout 'checkout' undo\n");
    assert_eq!(image(), "nginx:1.27", "the template is that of the revision before");
    wait("paused");
    let same = "skipped rollback (current template already matches revision 3)";
    assert_eq!(plugin.says("undo checkout --to-revision 3"), same);
    let gone = plugin.run("undo checkout --to-revision 9");
    let known = "Error: unable to find specified revision 9 in history\n  its revisions are 2, 3\n";
    assert_eq!(gone.stderr, known);

    assert_eq!(plugin.says("abort checkout"), "rollout 'checkout' aborted\n");
    wait("aborted");
    let degraded = plugin.run("status checkout -t 60s");
    assert_eq!(degraded.code, Some(1));
    let expected = "Error: The rollout is in a degraded state with message: RolloutAborted: ";
    assert!(degraded.stderr.starts_with(expected), "{}", degraded.stderr);
    let last = degraded.stdout.lines().last().unwrap();
    assert!(last.starts_with("Degraded - RolloutAborted: "), "{last}");
    assert_eq!(plugin.run("status checkout -w=false").stdout, "Degraded\n");
    plugin.says("retry rollout checkout");
    wait("paused");
    plugin.says("pause checkout");
    let said = plugin.says("explain rollout checkout");
    assert!(said.contains("is paused by hand (spec.paused)"), "{said}");
    plugin.says("promote checkout --full");
    wait("healthy");
}

#[test]
fn a_status_is_told_once_as_long_as_it_reads_the_same() {
    let folder = folder("told-once");
    let cluster = Cluster::start(0, &folder);
    let mut rollout = sample("canary-with-pauses.yaml");
    rollout["status"] = json!({ "phase": "Paused", "observedGeneration": "1",
        "currentPodHash": "b", "stableRS": "a" });
    cluster.store(&rollout);
    let plugin = Plugin::install("told-once", &cluster.kubeconfig);
    assert_eq!(plugin.says("status checkout -w=false"), "Paused - \n");
    let mut followed = plugin.start("status checkout");
    followed.until("Paused");
    cluster.patch_status("checkout", json!({ "stableRS": "b" }));
    cluster.patch_status("checkout", json!({ "abort": true }));
    cluster.patch_status("checkout", json!({ "phase": "Healthy" }));
    assert_eq!(followed.end().code(), Some(0));
    assert_eq!(followed.seen, ["Paused", "Healthy"]);
}

#[test]
fn a_rollout_is_shown_live_until_somebody_ends_it() {
    let (cluster, _controller, plugin) = at_work("live");
    let mut shown = plugin.start("get rollout checkout -w --no-color");
    let mut listed = plugin.start("list rollouts -w");
    shown.until("Healthy");
    listed.until("Healthy");
    plugin.says("set image checkout checkout=nginx:1.28");
    shown.until("CanaryPauseStep");
    shown.until("Rollout     ॥ Paused");
    let row = listed.until("Paused");
    assert!(row.starts_with("checkout    Canary     Paused        1/4   20"), "{row}");
    shown.signal("INT");
    assert_eq!(shown.end().code(), Some(0));
    assert!(shown.count("\x1b[H\x1b[2J\x1b[0;0HName:") > 1, "the screen is cleared each time");
    cluster.store(&json!({ "apiVersion": gradus_api::names::API_VERSION, "kind": "Experiment",
        "metadata": { "name": "study" }, "spec": { "templates": [] } }));
    let mut study = plugin.start("get experiment study -w --no-color");
    study.until("study");
    study.signal("INT");
    assert_eq!(study.end().code(), None, "it dies of the signal");
    let mut limited = plugin.start("get rollout checkout -w --timeout-seconds 1");
    assert_eq!(limited.end().code(), Some(0));
    let mut status = plugin.start("status checkout");
    status.until("Paused");
    status.signal("TERM");
    assert_eq!(status.end().code(), Some(1), "the rollout did not come to its end");
}

#[test]
fn what_is_shown_live_says_when_it_is_old_or_gone() {
    let folder = folder("old-picture");
    let port = free_port();
    let mut cluster = Cluster::start(port, &folder);
    cluster.create(sample("canary-with-pauses.yaml"));
    let plugin = Plugin::install("old-picture", &cluster.kubeconfig);
    let mut shown = plugin.start("get rollout checkout -w --no-color");
    let mut listed = plugin.start("list rollouts -w");
    shown.until("⟳ checkout");
    listed.until("checkout");
    cluster.go_away();
    shown.until("warning: not up to date: cannot reach the API server");
    assert_eq!(listed.end().code(), Some(1), "the seventh failure ends a list");
    assert_eq!(listed.count("; trying again"), 6, "{:?}", listed.seen);
    cluster.listen(port);
    cluster.patch_status("checkout", json!({ "phase": "Degraded", "message": "back again" }));
    shown.until("Message:         back again");
    cluster.delete_rollout("checkout");
    shown.until("warning: rollout.argoproj.io \"checkout\" not found");
    shown.signal("INT");
    assert_eq!(shown.end().code(), Some(0));
}

#[test]
fn a_created_rollout_is_watched_until_somebody_ends_it() {
    let (_cluster, _controller, plugin) = at_work("created");
    let path = plugin.folder().join("cart.json");
    std::fs::write(&path, sample("rolling-update.yaml").to_string()).unwrap();
    let mut shown = plugin.start(&format!("create -w --no-color -f {}", path.display()));
    shown.until("rollout.argoproj.io/cart created");
    shown.until("Status:          ✔ Healthy");
    shown.signal("INT");
    assert_eq!(shown.end().code(), Some(0));
}

#[test]
fn lists_and_forms_cover_one_namespace_or_all() {
    let (cluster, _controller, plugin) = at_work("lists");
    let mut other = sample("rolling-update.yaml");
    other["metadata"]["namespace"] = "kube-system".into();
    cluster.store(&other);
    plugin.says("wait cart -n kube-system --for=healthy -t 60s");
    let here = "NAME        STRATEGY   STATUS        STEP  SET-WEIGHT  READY  DESIRED  UP-TO-DATE  AVAILABLE\n\
        checkout    Canary     Healthy       4/4   100         5/5    5        5           5        \n";
    assert_eq!(plugin.says("list rollouts"), here);
    let all = plugin.says("list ro -A");
    assert!(all.starts_with("NAMESPACE    NAME        STRATEGY"), "{all}");
    assert!(all.contains("\nkube-system  cart        Canary     Healthy       -     100"), "{all}");
    assert_eq!(plugin.says("list rollouts --name checkout"), here);
    let stamped = plugin.says("list rollouts --timestamps");
    assert!(stamped.starts_with("TIMESTAMP             NAME"), "{stamped}");
    assert!(plugin.says("list rollouts -o wide").contains("nginx:1.27"));
    let names = "rollout.argoproj.io/checkout\nrollout.argoproj.io/cart\n";
    assert_eq!(plugin.says("list rollouts -A -o name"), names);
    let phases = "list rollouts -A -o jsonpath={.items[*].status.phase}";
    assert_eq!(plugin.says(phases), "Healthy Healthy");
    let json: Value = serde_json::from_str(&plugin.says("list rollouts -A -o json")).unwrap();
    assert_eq!(json["items"][1]["metadata"]["name"], "cart");
    let yaml: Value = serde_saphyr::from_str(&plugin.says("list rollouts -A -o yaml")).unwrap();
    assert_eq!(yaml["items"][1]["metadata"]["name"], "cart");
    // Of another instance: the controller leaves it as it is.
    let study = |namespace: &str| {
        let labels = json!({ "argo-rollouts.argoproj.io/controller-instance-id": "other" });
        let metadata = json!({ "name": "study", "namespace": namespace, "labels": labels });
        json!({ "apiVersion": gradus_api::names::API_VERSION, "kind": "Experiment",
            "metadata": metadata, "spec": { "templates": [], "duration": "1h" } })
    };
    cluster.store(&study("default"));
    cluster.store(&study("kube-system"));
    let name = "experiment.argoproj.io/study\n";
    let forms = [
        ("list experiments -o name", name.to_owned()),
        ("list exp -A -o name", format!("{name}{name}")),
        ("get experiment study -o name", name.to_owned()),
        ("list experiments -o jsonpath={.items[*].spec.duration}", "1h".to_owned()),
        ("get rollout checkout -o jsonpath={.status.phase}", "Healthy".to_owned()),
    ];
    for (words, expected) in forms {
        assert_eq!(plugin.says(words), expected, "{words}");
    }
    let everywhere = plugin.says("list experiments -A");
    assert!(everywhere.contains("\nkube-system  study "), "{everywhere}");
    let studies = plugin.says("list experiments");
    assert!(studies.starts_with("NAME        STATUS  DURATION  REMAINING  AGE\n"), "{studies}");
    assert!(studies.contains("study               60m       -          "), "{studies}");
}

#[test]
fn a_live_rollout_is_explained() {
    let (cluster, _controller, plugin) = at_work("explained");
    let mut bad = sample("canary-with-pauses.yaml");
    bad["metadata"]["name"] = "heavy".into();
    bad["spec"]["strategy"]["canary"]["steps"][0]["setWeight"] = json!(120);
    cluster.store(&bad);
    plugin.says("set image checkout checkout=nginx:1.28");
    plugin.says("wait checkout --for=paused -t 60s");
    let cases: [(&str, &[&str]); 2] = [
        (
            "checkout",
            &[
                "Rollout default/checkout at ",
                "it is Paused: CanaryPauseStep",
                "step 1/4 is a pause of Rollout default/checkout; a person can free it with \
                 `promote` (since ",
                "  → kubectl argo rollouts promote checkout -n default",
                "it looks again when something changes",
            ],
        ),
        ("heavy", &["steps[0].setWeight: Invalid value: 120", "an edit of that field frees it"]),
    ];
    for (name, expected) in cases {
        let said = plugin.says(&format!("explain rollout {name}"));
        for words in expected {
            assert!(said.contains(words), "{words:?} in:\n{said}");
        }
    }
    cluster.server.set_hook(|seen| {
        if !seen.path.contains("/replicasets") || seen.query.contains("watch") {
            return HookAction::Pass;
        }
        let message = "replicasets.apps is forbidden: User \"ann\" cannot list them".into();
        HookAction::Refuse(ApiError { code: 403, reason: "Forbidden", message, details: None })
    });
    let said = plugin.says("explain rollout checkout");
    assert!(said.contains("cannot be read: replicasets.apps is forbidden"), "{said}");
}

#[test]
fn a_question_that_cannot_be_answered_is_told() {
    let (cluster, _controller, plugin) = at_work("unanswered");
    cluster.server.set_hook(|seen| {
        if !seen.path.contains("/pods") {
            return HookAction::Pass;
        }
        let message = "pods is forbidden: User \"ann\" cannot list resource \"pods\"".into();
        HookAction::Refuse(ApiError { code: 403, reason: "Forbidden", message, details: None })
    });
    plugin.says("restart checkout");
    let explained = plugin.run("explain rollout checkout");
    let words = "it asks, and is not answered here: pods of ReplicaSet default/checkout-";
    assert!(explained.stdout.contains(words), "{}", explained.stdout);
    assert!(explained.stderr.contains("cannot list resource \"pods\""), "{}", explained.stderr);
}

#[test]
fn a_rollout_that_nobody_looks_after_is_found_out() {
    let folder = folder("nobody");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("canary-with-pauses.yaml"));
    let plugin = Plugin::install("nobody", &cluster.kubeconfig);
    let said = plugin.says("explain rollout checkout");
    assert!(said.contains("it would create ReplicaSet default/checkout-"), "{said}");
    assert!(said.contains("is the controller running?"), "{said}");
    let shown = plugin.says("get rollout checkout --no-color");
    assert!(shown.contains("Message:         more replicas need to be updated"), "{shown}");
}
