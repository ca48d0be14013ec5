//! What does `explain` say at 3 a.m.? Situations in which a rollout is stuck, each played on the
//! embedded cluster by the real controller: the cause that must be named, the command that must be
//! offered, and nothing said twice.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use gradus_api::names::annotation;
use gradus_api::values::Time;
use gradus_simkube::kinds::KindId;
use gradus_simkube::request::{Subresource, Verb};
use gradus_simkube::service::HookAction;
use gradus_simkube::{ApiError, Denial};
use gradus_simkube::{PatchKind, Request};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::controller::start;
use crate::plugin::Plugin;
use crate::program::folder;

const PATIENCE: Duration = Duration::from_secs(60);

/// Images, and how they behave.
const IMAGES: &str = r#"[
    {"image": "bad:pull", "pullError": true},
    {"image": "bad:crash", "crash": {"afterSeconds": 0.1}},
    {"image": "bad:never", "neverReady": true},
    {"image": "bad:memory", "crash": {"afterSeconds": 0.1, "exitCode": 137, "reason": "OOMKilled"}},
    {"image": "bad:words", "crash": {"afterSeconds": 0.1, "exitCode": 3,
        "message": "\npanic: no database\nmain.go:7"}},
    {"image": "bad:large", "unschedulable": "0/3 nodes are available: 3 Insufficient cpu."},
    {"image": "bad:mount", "neverStarts": true},
    {"image": "*", "startUpSeconds": 0.0}
]"#;

/// Namespace | merged into the spec | update to this image | what else is done | the cause | the
/// command, with NS for the namespace.
const SITUATIONS: &str = r#"
image-pull       | {} | bad:pull | | image bad:pull of container web cannot be pulled | kubectl describe pod web-
image-pull-abort | {} | bad:pull | | cannot be pulled | kubectl argo rollouts abort web -n NS
crash-loop       | {} | bad:crash | | container web crashes; its last exit code was 1 | kubectl logs web-
probe-failing    | {} | bad:never | | runs but is not ready: its readinessProbe (GET /ready on port 8080) does not succeed; the pod's condition Ready is False (since | kubectl argo rollouts undo web -n NS
deadline         | {"progressDeadlineSeconds": 1} | bad:never | | condition Progressing says ProgressDeadlineExceeded | kubectl argo rollouts undo web -n NS
deadline-pods    | {"progressDeadlineSeconds": 1} | bad:never | | runs but is not ready | kubectl describe pod web-
out-of-memory    | {} | bad:memory | | container web crashes; it used more memory than its limit | kubectl describe pod web-
crash-words      | {} | bad:words | | its last exit code was 3; it said: panic: no database | kubectl logs web-
unschedulable    | {} | bad:large | | no node takes it (0/3 nodes are available: 3 Insufficient cpu.) | kubectl describe pod web-
pending          | {} | bad:mount | | it is Pending: its containers have not started yet | kubectl describe pod web-
readiness-gate   | {"template": {"spec": {"readinessGates": [{"conditionType": "example.com/lb"}]}}} | | | its containers are ready, but its readiness gate example.com/lb is not true | kubectl describe pod web-
quota            | {} | | quota | its pods are refused (pods "web- | raise the ResourceQuota, or ask for less
limit-range      | {} | bad:limits | | maximum cpu usage per Container is 1, but limit is 2 | change resources of the containers, or the LimitRange
webhook          | {} | | webhook | admission webhook "policy.example.com" denied the request | change the pod template so that admission accepts it
rights           | {} | | rights | cannot create resource "replicasets" | grant the controller's ServiceAccount this right
budget           | {} | | budget | PodDisruptionBudget web allows no eviction now | kubectl describe pdb web -n NS
service-missing  | {"strategy": {"canary": {"stableService": "front"}}} | | | create the Service front in namespace NS | kubectl create service clusterip front --tcp=80 -n NS
service-wrong    | {"strategy": {"canary": {"stableService": "other"}}} | | services | patch the selector of Service other | kubectl patch service other -n NS --type merge -p '{"spec":{"selector":{"app":"web"}}}'
service-foreign  | {"strategy": {"canary": {"stableService": "foreign"}}} | | services | Service "foreign" is managed by another Rollout | kubectl annotate service foreign argo-rollouts.argoproj.io/managed-by-rollouts- -n NS
template-missing | {"strategy": {"canary": {"steps": [{"analysis": {"templates": [{"templateName": "smoke"}]}}]}}} | | | create the AnalysisTemplate smoke in namespace NS | kubectl get analysistemplate -n NS
bad-args         | {"strategy": {"canary": {"steps": [{"analysis": {"templates": [{"templateName": "asks"}]}}]}}} | | templates | args.host was not resolved | kubectl edit rollout web -n NS
ingress-missing  | {"strategy": {"canary": {"stableService": "web", "canaryService": "web-new", "trafficRouting": {"nginx": {"stableIngress": "front"}}}}} | | services | create the Ingress front in namespace NS | kubectl get ingress -n NS
ingress-wrong    | {"strategy": {"canary": {"stableService": "web", "canaryService": "web-new", "trafficRouting": {"nginx": {"stableIngress": "past"}}}}} | | services | let a rule of Ingress past lead to it, or name another Ingress | kubectl edit ingress past -n NS
pause-step       | {"strategy": {"canary": {"steps": [{"setWeight": 50}, {"pause": {}}]}}} | good:2 | | step 1/2 is a pause of Rollout NS/web | kubectl argo rollouts promote web -n NS
pause-user       | {"paused": true} | | | is paused by hand (spec.paused) | kubectl argo rollouts promote web -n NS
pause-inconclusive | {"strategy": {"canary": {"steps": [{"setWeight": 50}, {"pause": {}}]}}} | good:2 | inconclusive | InconclusiveAnalysisRun | kubectl argo rollouts promote web -n NS
aborted          | {"strategy": {"canary": {"steps": [{"setWeight": 50}, {"pause": {}}]}}} | good:2 | abort | was aborted | kubectl argo rollouts retry rollout web -n NS
traffic-switch   | {"strategy": {"canary": null, "blueGreen": {"activeService": "web", "autoPromotionEnabled": false}}} | good:2 | services | waits before the active Service is switched | kubectl argo rollouts promote web -n NS
traffic-pods     | {"strategy": {"canary": null, "blueGreen": {"activeService": "web"}}} | bad:never | services | runs but is not ready | kubectl argo rollouts abort web -n NS
scale-down-delay | {"strategy": {"canary": null, "blueGreen": {"activeService": "web", "scaleDownDelaySeconds": 600}}} | good:2 | services | has lost its traffic and keeps its pods for a while |
workload-missing | {"template": null, "selector": null, "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}} | | | create the Deployment web in namespace NS | kubectl get deployment -n NS
wrong-spec       | {"minReadySeconds": -1} | | | spec.minReadySeconds: Invalid value: -1 | kubectl edit rollout web -n NS
"#;

/// One situation.
struct Situation {
    namespace: &'static str,
    spec: Value,
    image: &'static str,
    more: &'static str,
    cause: String,
    command: String,
}

fn situations() -> Vec<Situation> {
    let rows = SITUATIONS.trim().lines();
    let read = |row: &'static str| {
        let cells: Vec<&'static str> = row.split('|').map(str::trim).collect();
        let cell = |at: usize| cells.get(at).copied().unwrap_or_default();
        let namespace = cell(0);
        let named = |text: &str| text.replace("NS", namespace);
        let spec = serde_json::from_str(cell(1)).unwrap_or_else(|_| panic!("{row}"));
        let (cause, command) = (named(cell(4)), named(cell(5)));
        Situation { namespace, spec, image: cell(2), more: cell(3), cause, command }
    };
    rows.map(read).collect()
}

/// The rollout `web` of a situation.
fn rollout(situation: &Situation) -> Value {
    let mut spec = json!({
        "replicas": 2,
        "selector": { "matchLabels": { "app": "web" } },
        "template": {
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "web", "image": "good:1",
                "ports": [{ "containerPort": 8080 }],
                "readinessProbe": { "httpGet": { "path": "/ready", "port": 8080 } } }] },
        },
        "strategy": { "canary": { "steps": [{ "setWeight": 50 }] } },
    });
    merge(&mut spec, &situation.spec);
    json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": { "name": "web", "namespace": situation.namespace }, "spec": spec })
}

fn merge(value: &mut Value, change: &Value) {
    match (value, change) {
        (Value::Object(fields), Value::Object(change)) => {
            for (key, change) in change {
                match change.is_null() {
                    true => drop(fields.remove(key)),
                    false => merge(fields.entry(key.clone()).or_insert(Value::Null), change),
                }
            }
        }
        (value, change) => *value = change.clone(),
    }
}

/// What stands beside the rollout before it is made.
fn beside(situation: &Situation) -> Vec<Value> {
    let metadata = |name: &str| json!({ "name": name, "namespace": situation.namespace });
    let service = |name: &str, app: &str| {
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata(name),
            "spec": { "selector": { "app": app }, "ports": [{ "port": 80 }] } })
    };
    match situation.more {
        "quota" => vec![json!({ "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": metadata("small"), "spec": { "hard": { "pods": "1" } } })],
        "budget" => vec![json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": metadata("web"), "spec": { "minAvailable": 2,
                "selector": { "matchLabels": { "app": "web" } } },
            "status": { "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2,
                "expectedPods": 2 } })],
        "templates" => vec![json!({ "apiVersion": "argoproj.io/v1alpha1",
            "kind": "AnalysisTemplate", "metadata": metadata("asks"), "spec": {
                "args": [{ "name": "host" }],
                "metrics": [{ "name": "m", "provider": { "web": { "url": "{{args.host}}" } } }] } })],
        "services" => {
            let mut foreign = service("foreign", "web");
            foreign["metadata"]["annotations"] = json!({ annotation::MANAGED_BY: "shop" });
            let backend = json!({ "service": { "name": "other", "port": { "number": 80 } } });
            let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
            let ingress = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
                "metadata": metadata("past"),
                "spec": { "rules": [{ "http": { "paths": [path] } }] } });
            let labels = json!({ "app": "web", "of": "shop" });
            let shop = json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
                "metadata": metadata("shop"), "spec": { "replicas": 0,
                    "selector": { "matchLabels": labels },
                    "template": { "metadata": { "labels": labels },
                        "spec": { "containers": [{ "name": "c", "image": "good:1" }] } },
                    "strategy": { "canary": { "stableService": "foreign" } } } });
            let foreign = [service("other", "shop"), foreign, shop];
            let sound = [service("web", "web"), service("web-new", "web")];
            sound.into_iter().chain(foreign).chain([ingress]).collect()
        }
        _ => Vec::new(),
    }
}

fn patch_rollout(cluster: &Cluster, namespace: &str, part: Subresource, body: Value) {
    cluster.server.with(|cluster, now| {
        let kind = cluster.kinds().by_name("argoproj.io/v1alpha1", "Rollout").unwrap();
        let mut request = Request::new(Verb::Patch(PatchKind::Merge), kind, namespace, "web");
        request.subresource = part;
        cluster.call(&request.with_body(body), now).unwrap();
    });
}

fn phase(cluster: &Cluster, namespace: &str) -> String {
    let found = cluster.server.with(|cluster, _| {
        let kind = cluster.kinds().by_name("argoproj.io/v1alpha1", "Rollout").unwrap();
        cluster.get(kind, namespace, "web").unwrap().to_json(cluster.kinds())
    });
    found["status"]["phase"].as_str().unwrap_or_default().to_owned()
}

fn until_phase(cluster: &Cluster, namespace: &str, wanted: &str) {
    let began = Instant::now();
    while phase(cluster, namespace) != wanted {
        assert!(began.elapsed() < PATIENCE, "{namespace} never gets {wanted}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What people and the cluster do once the update is under way.
fn disturb(cluster: &Cluster, situation: &Situation) {
    let namespace = situation.namespace;
    let status = |body: Value| {
        patch_rollout(cluster, namespace, Subresource::Status, json!({ "status": body }));
    };
    match situation.more {
        "abort" => {
            until_phase(cluster, namespace, "Paused");
            status(json!({ "abort": true }));
        }
        "inconclusive" => {
            until_phase(cluster, namespace, "Paused");
            let condition = json!({ "reason": "InconclusiveAnalysisRun",
                "startTime": "2026-01-01T00:00:00Z" });
            status(json!({ "pauseConditions": [condition], "controllerPause": true }));
        }
        "budget" => {
            until_phase(cluster, namespace, "Healthy");
            std::thread::sleep(Duration::from_secs(1)); // Pods of this very second are no older ones.
            let body = json!({ "spec": { "restartAt": Time::new(Timestamp::now()) } });
            patch_rollout(cluster, namespace, Subresource::None, body);
        }
        _ => {}
    }
}

/// The server refuses ReplicaSets in some namespaces, and pods that ask for too much in one.
fn refuse(cluster: &Cluster) {
    let denial = Denial {
        kind: KindId::POD,
        namespace: "limit-range".to_owned(),
        image: "bad:limits".to_owned(),
        message: "maximum cpu usage per Container is 1, but limit is 2".to_owned(),
    };
    cluster.server.with(|cluster, _| cluster.deny(denial));
    cluster.server.set_hook(|seen| {
        if seen.method != "POST" || !seen.path.ends_with("/replicasets") {
            return HookAction::Pass;
        }
        let message = if seen.path.contains("/webhook/") {
            "admission webhook \"policy.example.com\" denied the request: no owner label"
        } else if seen.path.contains("/rights/") {
            "replicasets.apps is forbidden: User \"system:serviceaccount:gradus:gradus\" cannot \
             create resource \"replicasets\" in API group \"apps\""
        } else {
            return HookAction::Pass;
        };
        let message = message.to_owned();
        HookAction::Refuse(ApiError { code: 403, reason: "Forbidden", message, details: None })
    });
}

/// Explains until all words are there.
fn explained(plugin: &Plugin, situation: &Situation) -> Result<String, String> {
    let began = Instant::now();
    let namespace = situation.namespace;
    loop {
        let said = plugin.says(&format!("explain rollout web -n {namespace}"));
        if said.contains(&situation.cause) && said.contains(&situation.command) {
            return Ok(said);
        }
        if began.elapsed() > PATIENCE / 3 {
            let (cause, command) = (&situation.cause, &situation.command);
            return Err(format!("{namespace}: expected {cause:?} and {command:?} in\n{said}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A text that is said twice: a whole line, or the words behind a colon.
fn said_twice(said: &str) -> Option<String> {
    let mut seen = BTreeSet::new();
    for line in said.lines() {
        let line = line.trim();
        let words = line.split_once(": ").map_or(line, |(_, words)| words);
        let words = words.split(" (since").next().unwrap_or(words);
        if words.len() > 25 && !seen.insert(words.to_owned()) {
            return Some(words.to_owned());
        }
    }
    None
}

#[test]
fn each_stuck_rollout_is_explained_with_its_cause_and_a_command() {
    let folder = folder("stuck");
    let cluster = Cluster::start(0, &folder);
    let images = serde_json::from_str(IMAGES).unwrap();
    cluster.server.with(|cluster, _| cluster.set_behaviours(images));
    refuse(&cluster);
    let (_controller, ..) = start(&cluster.kubeconfig, &[]);
    let plugin = Plugin::install("stuck", &cluster.kubeconfig);
    let situations = situations();
    assert!(situations.len() >= 25, "only {}", situations.len());
    for situation in &situations {
        cluster.store(&json!({ "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": situation.namespace } }));
        beside(situation).iter().for_each(|object| cluster.store(object));
        cluster.store(&rollout(situation));
    }
    for situation in situations.iter().filter(|one| !one.image.is_empty()) {
        until_phase(&cluster, situation.namespace, "Healthy");
        let mut spec = rollout(situation)["spec"]["template"].clone();
        spec["spec"]["containers"][0]["image"] = situation.image.into();
        let body = json!({ "spec": { "template": spec } });
        patch_rollout(&cluster, situation.namespace, Subresource::None, body);
    }
    situations.iter().for_each(|situation| disturb(&cluster, situation));
    let mut wrong = Vec::new();
    for situation in &situations {
        match explained(&plugin, situation) {
            Err(error) => wrong.push(error),
            Ok(said) => {
                wrong.extend(said_twice(&said).map(|twice| format!("said twice: {twice}\n{said}")));
                let is_asked = said.contains("is the controller running?");
                wrong.extend(is_asked.then(|| format!("a controller is running:\n{said}")));
            }
        }
    }
    let json = plugin.says("explain rollout web -n pause-step -o json");
    let account: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(account["phase"], "Paused");
    assert_eq!(
        account["items"][0]["commands"][0],
        "kubectl argo rollouts promote web -n pause-step"
    );
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
