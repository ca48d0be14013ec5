//! What becomes of a controller that is given bad objects, and of one whose cluster is not as it
//! should be? One clear message each, and it goes on by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gradus_simkube::ApiError;
use gradus_simkube::service::HookAction;
use serde_json::{Value, json};

use crate::cluster::{Cluster, sample};
use crate::controller::{ask_until, start};
use crate::program::{folder, free_port, kubeconfig};

/// Waits until a Rollout stands as wanted, and returns it.
fn until(cluster: &Cluster, name: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let rollout = cluster.rollout(name);
        if is_wanted(&rollout) {
            return rollout;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{rollout:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_healthy(rollout: &Value) -> bool {
    rollout["status"]["phase"] == "Healthy"
}

fn invalid_spec(rollout: &Value) -> Option<&str> {
    let conditions = rollout["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == "InvalidSpec")?;
    found["message"].as_str()
}

#[test]
fn what_is_wrong_with_a_spec_is_said_on_that_rollout_alone() {
    let folder = folder("bad-specs");
    let cluster = Cluster::start(0, &folder);
    let spoil = |name: &str, path: &str, value: Value| {
        let mut rollout = sample("canary-with-pauses.yaml");
        rollout["metadata"]["name"] = name.into();
        *rollout.pointer_mut(path).unwrap() = value;
        cluster.create(rollout);
    };
    spoil("unknown-step", "/spec/strategy/canary/steps/0", json!({"fly": 20}));
    spoil("heavy", "/spec/strategy/canary/steps/0/setWeight", json!(120));
    spoil("stuck", "/spec/strategy/canary", json!({"maxSurge": 0, "maxUnavailable": 0}));
    cluster.create(sample("rolling-update.yaml"));
    let (_controller, ..) = start(&cluster.kubeconfig, &[]);
    let cases = [
        ("unknown-step", "steps[0]: Invalid value"),
        ("heavy", "steps[0].setWeight: Invalid value: 120"),
        ("stuck", "maxSurge: Invalid value"),
    ];
    for (name, words) in cases {
        let rollout = until(&cluster, name, |rollout| invalid_spec(rollout).is_some());
        let message = invalid_spec(&rollout).unwrap();
        assert!(message.contains(words), "{name}: {message}");
        assert_eq!(rollout["status"]["phase"], "Degraded", "{name}");
    }
    until(&cluster, "cart", is_healthy);
}

#[test]
fn what_the_server_refuses_is_said_in_its_words() {
    let folder = folder("refuses");
    let cluster = Cluster::start(0, &folder);
    let is_full = Arc::new(AtomicBool::new(true));
    let tries = Arc::new(Mutex::new(Vec::new()));
    let (full, counted) = (Arc::clone(&is_full), Arc::clone(&tries));
    cluster.server.set_hook(move |seen| {
        let is_create = seen.method == "POST" && seen.path.ends_with("/replicasets");
        if !is_create || !full.load(Ordering::Relaxed) {
            return HookAction::Pass;
        }
        counted.lock().unwrap().push(Instant::now());
        let message = "exceeded quota: none".into();
        HookAction::Refuse(ApiError { code: 403, reason: "Forbidden", message, details: None })
    });
    cluster.create(sample("rolling-update.yaml"));
    let (_controller, ..) = start(&cluster.kubeconfig, &[]);
    let progressing = |rollout: &Value| {
        let conditions = rollout["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == "Progressing")
    };
    let rollout = until(&cluster, "cart", |rollout| progressing(rollout).is_some());
    let told = progressing(&rollout).unwrap();
    assert_eq!(told["reason"], "ReplicaSetCreateError");
    assert!(told["message"].as_str().unwrap().ends_with("exceeded quota: none"), "{told}");
    until(&cluster, "cart", |_| tries.lock().unwrap().len() >= 11);
    let tries: Vec<Instant> = tries.lock().unwrap().clone();
    let took = tries[10].duration_since(tries[0]);
    assert!(took >= Duration::from_millis(1023), "the delay doubles each time: ten took {took:?}");
    is_full.store(false, Ordering::Relaxed);
    until(&cluster, "cart", is_healthy);
}

#[test]
fn a_missing_crd_is_said_once_and_waited_for() {
    let folder = folder("no-crd");
    let cluster = Cluster::bare(0, &folder);
    let (mut controller, health, _) = start(&cluster.kubeconfig, &[]);
    let said = "the cluster has no rollouts.argoproj.io: install the CRD";
    controller.until(said);
    cluster.install_crds();
    cluster.create(sample("rolling-update.yaml"));
    ask_until(health, "/readyz", |status, _| status == 200);
    until(&cluster, "cart", is_healthy);
    controller.signal("TERM");
    assert!(controller.end().success());
    assert_eq!(controller.count(said), 1, "{:?}", controller.seen);
}

#[test]
fn a_server_that_goes_away_is_found_again() {
    let folder = folder("goes-away");
    let port = free_port();
    let mut cluster = Cluster::start(port, &folder);
    cluster.create(sample("rolling-update.yaml"));
    let (mut controller, ..) = start(&cluster.kubeconfig, &[]);
    until(&cluster, "cart", is_healthy);
    cluster.go_away();
    controller.until("WARN");
    cluster.create(sample("canary-with-timed-pauses.yaml"));
    cluster.listen(port);
    until(&cluster, "search", is_healthy);
}

#[test]
fn a_token_that_expires_is_read_again() {
    let folder = folder("token");
    let cluster = Cluster::start(0, &folder);
    let text = std::fs::read_to_string(&cluster.kubeconfig).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    let server = written["clusters"][0]["cluster"]["server"].as_str().unwrap();
    let port = server.rsplit(':').next().unwrap().parse().unwrap();
    let token = folder.join("token");
    std::fs::write(&token, "old").unwrap();
    let user = format!("user: {{tokenFile: {:?}}}", token.display().to_string());
    let with_token = kubeconfig(port).replace("user: {}", &user);
    std::fs::write(&cluster.kubeconfig, with_token).unwrap();

    let has_expired = Arc::new(AtomicBool::new(false));
    let expired = Arc::clone(&has_expired);
    cluster.server.set_hook(move |seen| {
        let good = if expired.load(Ordering::Relaxed) { "Bearer new" } else { "Bearer old" };
        if seen.authorization == good {
            return HookAction::Pass;
        }
        let message = "Unauthorized".into();
        HookAction::Refuse(ApiError { code: 401, reason: "Unauthorized", message, details: None })
    });
    cluster.create(sample("rolling-update.yaml"));
    let (_controller, ..) = start(&cluster.kubeconfig, &[]);
    until(&cluster, "cart", is_healthy);
    std::fs::write(&token, "new").unwrap();
    has_expired.store(true, Ordering::Relaxed);
    let image = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image",
        "value": "nginx:1.28"}]);
    cluster.patch("cart", image);
    until(&cluster, "cart", |rollout| {
        is_healthy(rollout) && rollout["status"]["observedGeneration"] == "2"
    });
}
