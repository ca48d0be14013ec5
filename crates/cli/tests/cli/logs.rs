//! What does the controller log? One line per action and transition at info, its decisions at debug.

use gradus_simkube::ApiError;
use gradus_simkube::service::HookAction;
use serde_json::{Value, json};

use crate::cluster::{Cluster, sample};
use crate::controller::start;
use crate::docs::root;
use crate::program::folder;

/// What happens | a field of its line | the text in it | revision, step and weight beside it.
const LINES: &str = "
its pods are waited for | message | is held              | 1 4/4 100
a ReplicaSet is created | reason  | NewReplicaSetCreated | 1 4/4 100
a new one is created    | reason  | NewReplicaSetCreated | 2 0/4 0
it is scaled            | reason  | ScalingReplicaSet    | 2 0/4 0
it gets a weight        | reason  | TrafficWeightUpdated | 2 1/4 20
a step is done          | reason  | RolloutStepCompleted | 2 1/4 20
it is paused            | reason  | RolloutPaused        | 2 1/4 20
the pause holds it      | message | is held              | 2 1/4 20
a person promotes it    | detail  | step 2/4 completed (pause | 2 2/4 20
it is no longer held    | message | is free              | 1 4/4 100
a person aborts it      | reason  | RolloutAborted       | 2 0/4 0
its spec is wrong       | detail  | minReadySeconds      | 2 0/4 0
";

#[test]
fn each_action_and_transition_is_one_line_with_the_rollout_and_how_far_it_is() {
    let cluster = Cluster::start(0, &folder("log-lines"));
    let text = std::fs::read_to_string(root().join("examples/rollouts/canary-with-nginx.yaml"));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text.unwrap()).unwrap();
    objects.iter().for_each(|object| cluster.store(object));
    let (mut controller, ..) = start(&cluster.kubeconfig, &["--logformat=json"]);
    controller.until("RolloutCompleted");
    controller.until("is free");
    let image = "/spec/template/spec/containers/0/image";
    cluster.patch("shop", json!([{ "op": "replace", "path": image, "value": "nginx:1.28" }]));
    controller.until("RolloutPaused");
    cluster.patch_status("shop", json!({ "pauseConditions": null }));
    controller.until("step 2/4 completed (pause");
    controller.until("RolloutPaused");
    cluster.patch_status("shop", json!({ "abort": true }));
    controller.until("\"reason\":\"RolloutAborted\"");
    cluster.patch("shop", json!([{ "op": "add", "path": "/spec/minReadySeconds", "value": -1 }]));
    controller.until("minReadySeconds");
    let lines: Vec<Value> =
        controller.seen.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for row in LINES.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, field, text, standing] = cells[..] else { panic!("four: {row}") };
        let standing_of = |line: &Value| {
            let [revision, step] = ["revision", "step"].map(|field| line[field].as_str());
            format!("{} {} {}", revision.unwrap_or("?"), step.unwrap_or("?"), line["weight"])
        };
        let is_it = |line: &&Value| {
            line[field].as_str().is_some_and(|found| found.contains(text))
                && line["namespace"] == "default"
                && line["rollout"] == "shop"
                && standing_of(line) == standing
        };
        let all = controller.seen.join("\n");
        assert!(lines.iter().any(|line| is_it(&line)), "{what}: {field} {text:?} in\n{all}");
    }
}

#[test]
fn at_debug_decisions_are_logged_and_not_requests() {
    let cluster = Cluster::start(0, &folder("log-debug"));
    cluster.create(sample("rolling-update.yaml"));
    let (mut controller, ..) = start(&cluster.kubeconfig, &["--loglevel=debug"]);
    let line = controller.until("decided");
    assert!(line.contains("rollout=\"cart\""), "{line}");
    controller.until("RolloutCompleted");
    assert!(controller.count("create ReplicaSet default/cart-") > 0, "{:?}", controller.seen);
    for word in ["requesting", "hyper", "HTTP"] {
        assert_eq!(controller.count(word), 0, "{word}: {}", controller.seen.join("\n"));
    }
}

#[test]
fn a_denied_create_is_tried_a_few_times_in_the_first_seconds() {
    let cluster = Cluster::start(0, &folder("log-denied"));
    let tries = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = tries.clone();
    cluster.server.set_hook(move |request| {
        if request.method != "POST" || !request.path.ends_with("/replicasets") {
            return HookAction::Pass;
        }
        seen.lock().unwrap().push(std::time::Instant::now());
        let message = "admission webhook \"policy.example.com\" denied the request".to_owned();
        HookAction::Refuse(ApiError { code: 403, reason: "Forbidden", message, details: None })
    });
    cluster.create(sample("rolling-update.yaml"));
    let (mut controller, ..) = start(&cluster.kubeconfig, &[]);
    controller.until("write refused");
    while tries.lock().unwrap().len() < 4 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let tries = tries.lock().unwrap().clone();
    let gaps: Vec<u128> = tries.windows(2).map(|two| (two[1] - two[0]).as_millis()).collect();
    for (gap, least) in gaps.iter().zip([250, 500, 1000]) {
        assert!(*gap >= least, "{gaps:?} ms between the tries");
    }
}
