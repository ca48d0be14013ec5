//! `gradus controller` against clusters that are there, away or in the way.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::{Cluster, sample};
use crate::program::{
    Running, command, debug_world, finish, folder, free_port, get, gradus, kubeconfig,
};

/// How often a port is asked for what shall come.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Starts a controller for a kubeconfig on free ports; returns it with health and metrics port.
pub fn start(kubeconfig: &Path, more: &[&str]) -> (Running, u16, u16) {
    let mut command = command(&["controller", "--healthzPort=0", "--metricsPort=0"]);
    command.arg("--kubeconfig").arg(kubeconfig).args(debug_world()).args(more);
    let mut controller = Running::start(command);
    let line = controller.until("health on port");
    let port = |after: &str| -> u16 {
        let rest = line.split(after).nth(1).unwrap();
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    let ports = (port("health on port "), port("metrics on port "));
    (controller, ports.0, ports.1)
}

/// Asks until the answer is as wanted; gives up after a minute.
pub fn ask_until(port: u16, path: &str, is_wanted: impl Fn(u16, &str) -> bool) -> String {
    let began = Instant::now();
    loop {
        match get(port, path) {
            Ok((status, body)) if is_wanted(status, &body) => return body,
            last if began.elapsed() > Duration::from_secs(60) => panic!("{path}: {last:?}"),
            _ => std::thread::sleep(ASK_EVERY), // A port cannot be waited on.
        }
    }
}

#[test]
fn a_server_that_is_away_is_said_once_and_waited_for() {
    let folder = folder("away");
    let port = free_port();
    let path = folder.join("away.kubeconfig");
    std::fs::write(&path, kubeconfig(port)).unwrap();
    let (mut controller, health, _) = start(&path, &[]);
    controller.until("cannot reach the API server");
    assert_eq!(get(health, "/healthz").unwrap(), (200, "ok".to_owned()), "it is alive");
    assert_eq!(get(health, "/readyz").unwrap().0, 503, "but not ready");
    let cluster = Cluster::start(port, &folder);
    controller.until("answers");
    ask_until(health, "/readyz", |status, _| status == 200);
    controller.signal("TERM");
    assert!(controller.end().success());
    assert_eq!(controller.count("cannot reach"), 1, "{:?}", controller.seen);
    drop(cluster);
}

#[test]
fn it_ends_cleanly_while_it_still_waits_for_the_server() {
    let port = free_port();
    let path = folder("waiting").join("away.kubeconfig");
    std::fs::write(&path, kubeconfig(port)).unwrap();
    let (mut controller, ..) = start(&path, &[]);
    controller.until("cannot reach the API server");
    controller.signal("INT");
    assert_eq!(controller.end().code(), Some(0));
}

#[test]
fn a_taken_port_is_one_clear_error() {
    let taken = TcpListener::bind(("0.0.0.0", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let finished = gradus(&["controller", &format!("--healthzPort={port}")]);
    assert_eq!(finished.code, Some(1));
    let expected = format!("error: cannot listen on port {port} (--healthzPort chooses another): ");
    assert!(finished.stderr.starts_with(&expected), "{}", finished.stderr);
    assert_eq!(finished.stderr.lines().count(), 1);
}

#[test]
fn a_pod_without_its_account_is_one_clear_error() {
    let mut command = command(&["controller", "--healthzPort=0", "--metricsPort=0"]);
    command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env_remove("KUBERNETES_SERVICE_PORT");
    let finished = finish(command);
    assert_eq!(finished.code, Some(1));
    let said = &finished.stderr;
    assert!(said.starts_with("error: in-cluster configuration: "), "{said}");
    assert!(said.contains("expected KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT"), "{said}");
    assert_eq!(said.matches("not found").count(), 1, "{said}");
}

#[test]
fn a_list_of_kubeconfigs_may_name_one_that_is_not_there() {
    let folder = folder("list");
    let port = free_port();
    let path = folder.join("away.kubeconfig");
    std::fs::write(&path, kubeconfig(port)).unwrap();
    let mut command = command(&["controller", "--healthzPort=0", "--metricsPort=0"]);
    let list = std::env::join_paths([folder.join("missing"), path]).unwrap();
    command.env("KUBECONFIG", list);
    let mut controller = Running::start(command);
    controller.until(&format!("manages rollouts of http://127.0.0.1:{port}"));
}

#[test]
fn of_two_controllers_one_acts_and_the_other_takes_over_when_it_stops() {
    let folder = folder("leader");
    let cluster = Cluster::start(0, &folder);
    let begin = || {
        let mut command = command(&["controller", "--healthzPort=0", "--metricsPort=0"]);
        command.arg("--kubeconfig").arg(&cluster.kubeconfig);
        Running::start(command)
    };
    let mut first = begin();
    first.until("became the leader");
    let mut second = begin();
    second.until("standing by: another controller leads");
    cluster.create(sample("rolling-update.yaml"));
    status_until(&cluster, |status| status["phase"] == "Healthy");
    first.signal("TERM");
    first.until("released the leader election lease");
    assert!(first.end().success());
    let stopped = Instant::now();
    second.until("became the leader");
    assert!(stopped.elapsed() < Duration::from_secs(5), "a released lease is taken at once");
    cluster.patch("cart", json!([{ "op": "replace", "path": "/spec/replicas", "value": 2 }]));
    status_until(&cluster, |status| status["replicas"] == 2);
}

/// Looks at the status of the sample until it is as wanted; gives up after a minute.
fn status_until(cluster: &Cluster, is_wanted: impl Fn(&Value) -> bool) {
    let began = Instant::now();
    while !is_wanted(&cluster.rollout("cart")["status"]) {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", cluster.rollout("cart"));
        std::thread::sleep(ASK_EVERY);
    }
}

#[test]
fn durations_with_which_two_could_act_are_refused() {
    let mut command = command(&["controller"]);
    command.arg("--leader-election-renew-deadline=14s");
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("--leader-election-lease-duration 15s must be at least 4s"), "{words}");
}

#[test]
fn it_carries_a_rollout_and_its_ports_tell_of_it() {
    let folder = folder("carries");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("rolling-update.yaml"));
    let (mut controller, _, metrics) = start(&cluster.kubeconfig, &["--logformat=json"]);
    let healthy = r#"rollout_info{name="cart",namespace="default",phase="Completed""#;
    let text = ask_until(metrics, "/metrics", |_, text| text.contains(healthy));
    assert!(text.contains(r#"rollout_info_replicas_available{name="cart",namespace="default"} 4"#));
    controller.signal("TERM");
    assert!(controller.end().success());
    let events = cluster.server.with(|cluster, _| {
        let events = cluster.list(gradus_simkube::kinds::KindId::EVENT, "default");
        events
            .filter_map(|event| event.rest["reason"].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    });
    assert!(events.iter().any(|reason| reason == "RolloutCompleted"), "{events:?}");
}

#[test]
fn a_dry_run_says_what_it_would_do_and_writes_nothing() {
    let folder = folder("dry");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("rolling-update.yaml"));
    let before = cluster.server.with(|cluster, _| cluster.version());
    let (mut controller, ..) = start(&cluster.kubeconfig, &["--dry-run"]);
    controller.until("dry run: would write create ReplicaSet default/cart-");
    assert_eq!(
        controller.count("dry run: would emit event"),
        0,
        "an Event follows what it reports"
    );
    controller.until("dry run: would emit event RolloutUpdated");
    // Nobody else does it.
    let differs = controller.until("dry run: differs");
    assert!(differs.contains("would=\"create ReplicaSet default/cart-"), "{differs}");
    assert_eq!(cluster.server.with(|cluster, _| cluster.version()), before);
    cluster.delete_rollout("cart");
    controller.until("dry run: would emit event RolloutDeleted: Rollout cart/default is deleted.");
    controller.signal("TERM");
    assert!(controller.end().success());
    let events = cluster
        .server
        .with(|cluster, _| cluster.list(gradus_simkube::kinds::KindId::EVENT, "default").count());
    assert_eq!(events, 0);
}

#[test]
fn one_namespace_alone_is_looked_after() {
    let folder = folder("namespaced");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("rolling-update.yaml"));
    let flags = ["--namespaced", "--namespace=kube-system"];
    let (_controller, health, _) = start(&cluster.kubeconfig, &flags);
    ask_until(health, "/readyz", |status, _| status == 200);
    assert_eq!(get(health, "/debug/world/rollout/default/cart").unwrap().0, 404);
    assert!(cluster.rollout("cart")["status"].is_null());
}

#[test]
fn several_namespaces_are_looked_after_and_no_other() {
    let folder = folder("namespaces");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("rolling-update.yaml"));
    let flags = ["--namespaces=kube-system,default"];
    let (mut controller, ..) = start(&cluster.kubeconfig, &flags);
    controller.until(
        "clusteranalysistemplates are not read: only objects of namespaces default, kube-system are",
    );
    status_until(&cluster, |status| status["phase"] == "Healthy");
    let finished = gradus(&["controller", "--namespaces=Shop"]);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("\"Shop\" is no namespace"), "{}", finished.stderr);
}

#[test]
fn flags_of_argo_rollouts_without_effect_are_said_once_at_start() {
    let folder = folder("argo-flags");
    let cluster = Cluster::start(0, &folder);
    let flags = ["--rollout-threads=4", "--alb-ingress-classes=x", "--request-timeout=30s"];
    let (mut controller, health, _) = start(&cluster.kubeconfig, &flags);
    ask_until(health, "/readyz", |status, _| status == 200);
    for flag in ["--rollout-threads", "--alb-ingress-classes", "--request-timeout"] {
        assert_eq!(controller.count(&format!("{flag} has no effect")), 1, "{flag}");
    }
    controller.signal("TERM");
    assert!(controller.end().success());
}

#[test]
fn a_controller_of_analyses_alone_leaves_rollouts_alone() {
    let folder = folder("analysis-alone");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("rolling-update.yaml"));
    let (mut controller, health, _) = start(&cluster.kubeconfig, &["--controllers=analysis"]);
    ask_until(health, "/readyz", |status, _| status == 200);
    assert_eq!(controller.count("manages AnalysisRuns alone"), 1);
    assert!(cluster.rollout("cart")["status"].is_null());
    let refused = gradus(&["controller", "--controllers=rollouts"]);
    assert!(refused.stderr.contains("unsupported controller: rollouts"), "{}", refused.stderr);
    controller.signal("TERM");
    assert!(controller.end().success());
}

#[test]
fn a_namespace_without_a_name_is_the_one_of_the_kubeconfig() {
    let folder = folder("unnamed");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("rolling-update.yaml"));
    let (_controller, health, _) = start(&cluster.kubeconfig, &["--namespaced", "--namespace="]);
    ask_until(health, "/debug/world/rollout/default/cart", |status, _| status == 200);
}
