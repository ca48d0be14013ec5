//! Does a real kubectl work with the embedded cluster? Where there is none, this says so.

mod found;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::{env, fs, io::Write};

use gradus_simkube::SimCluster;
use gradus_simkube::behave::Behaviours;
use gradus_simkube::server::{Listening, Server};
use jiff::{SignedDuration, Timestamp};

struct Cluster {
    kubectl: PathBuf,
    folder: PathBuf,
    // Both end when dropped.
    _listening: Listening,
    _runtime: tokio::runtime::Runtime,
}

impl Cluster {
    fn start(kubectl: PathBuf) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let began = tokio::time::Instant::now();
        let clock = move || start + SignedDuration::try_from(began.elapsed()).expect("not long");
        let server = Server::new(SimCluster::new(Behaviours::default(), start), Arc::new(clock));
        let listening = runtime.block_on(server.listen(([127, 0, 0, 1], 0).into()));
        let listening = listening.expect("a loopback port is free");
        runtime.spawn(async move { server.run_workers().await });
        let folder = env::temp_dir().join(format!("simkube-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be written");
        listening.write_kubeconfig(&folder.join("kubeconfig")).expect("so can a file in it");
        Self { kubectl, folder, _listening: listening, _runtime: runtime }
    }

    fn run(&self, arguments: &str, input: &str) -> Output {
        let mut child = Command::new(&self.kubectl)
            .args(arguments.split(' '))
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("KUBECACHEDIR", self.folder.join("cache"))
            .env("HOME", &self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        // A command that does not read its input may have ended already.
        stdin.write_all(input.as_bytes()).ok();
        drop(stdin);
        child.wait_with_output().expect("kubectl ends")
    }

    /// What a command prints, if it succeeds.
    fn prints(&self, arguments: &str, input: &str) -> String {
        let output = self.run(arguments, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments}: {errors}");
        String::from_utf8(output.stdout).expect("kubectl prints text")
    }

    /// What a command complains about, if it fails.
    fn complains(&self, arguments: &str, input: &str) -> String {
        let output = self.run(arguments, input);
        assert!(!output.status.success(), "kubectl {arguments} should fail");
        String::from_utf8(output.stderr).expect("kubectl prints text")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

const OBJECTS: &str = r#"
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: conformance.gradus.dev/v1
kind: Widget
metadata: {name: one}
spec: {name: abc, replicas: 1}
"#;

#[test]
fn kubectl_works() {
    let Some(kubectl) = found::kubectl() else { return };
    let cluster = Cluster::start(kubectl);
    definitions(&cluster);
    apply_and_get(&cluster);
    describe_patch_and_scale(&cluster);
    refusals(&cluster);
    typed_creates(&cluster);
    wait_and_delete(&cluster);
}

fn definitions(cluster: &Cluster) {
    let kinds = include_str!("../conformance/kinds.yaml");
    let kinds: serde_json::Value = serde_saphyr::from_str(kinds).expect("the kinds are YAML");
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": kinds});
    cluster.prints("apply -f -", &list.to_string());
    cluster.prints("wait --for=condition=Established crd/widgets.conformance.gradus.dev", "");
    let resources = cluster.prints("api-resources", "");
    assert!(resources.contains("widgets") && resources.contains("rs"), "{resources}");
    let explained = cluster.prints("explain widgets.spec", "");
    assert!(explained.contains("replicas") && explained.contains("<integer>"), "{explained}");
}

fn apply_and_get(cluster: &Cluster) {
    let created = cluster.prints("apply -f -", OBJECTS);
    assert_eq!(created.matches(" created").count(), 3, "{created}");
    let again = cluster.prints("apply -f -", OBJECTS);
    assert_eq!(again.matches(" unchanged").count(), 3, "{again}");
    let changed = cluster.prints("apply -f -", &OBJECTS.replace("web:1", "web:2"));
    assert_eq!(changed.matches(" configured").count(), 1, "{changed}");
    cluster.prints("wait --for=jsonpath={.status.readyReplicas}=2 rs/web --timeout=30s", "");
    let sets = cluster.prints("get rs -o wide", "");
    assert!(sets.contains("DESIRED") && sets.contains("web:2"), "{sets}");
    let pods = cluster.prints("get pods -l app=web", "");
    assert_eq!(pods.matches("1/1     Running").count(), 2, "{pods}");
    let widgets = cluster.prints("get wg", "");
    assert!(widgets.contains("REPLICAS") && widgets.contains("one"), "{widgets}");
    let all = cluster.prints("get all", "");
    assert!(all.contains("replicaset.apps/web") && all.contains("service/web"), "{all}");
    let name = cluster.prints("get widget one -o jsonpath={.spec.name}", "");
    assert_eq!(name, "abc");
}

fn describe_patch_and_scale(cluster: &Cluster) {
    let described = cluster.prints("describe rs web", "");
    assert!(described.contains("Pods Status:  2 Running"), "{described}");
    cluster.prints("describe pods", "");
    cluster.prints("describe widget one", "");
    cluster.prints("describe svc web", "");
    cluster.prints(r#"patch widget one --type=merge -p {"spec":{"replicas":3}}"#, "");
    cluster.prints(r#"patch rs web -p {"metadata":{"annotations":{"a":"b"}}}"#, "");
    cluster.prints(
        r#"patch rs web --type=json -p [{"op":"remove","path":"/metadata/annotations/a"}]"#,
        "",
    );
    cluster.prints("label rs web color=blue", "");
    cluster.prints("annotate widget one note=x", "");
    cluster.prints("scale rs web --replicas=1", "");
    cluster.prints("wait --for=jsonpath={.status.replicas}=1 rs/web --timeout=30s", "");
    cluster.prints("scale widget one --replicas=2", "");
    let replicas = cluster.prints("get widget one -o jsonpath={.spec.replicas}", "");
    assert_eq!(replicas, "2");
}

fn refusals(cluster: &Cluster) {
    let typo = OBJECTS.replace("replicas: 2", "replica: 2");
    let complaint = cluster.complains("apply -f -", &typo);
    assert!(complaint.contains(r#"unknown field "spec.replica""#), "{complaint}");
    let wrong = OBJECTS.replace("name: abc", "name: ABC");
    let complaint = cluster.complains("apply -f -", &wrong);
    assert!(complaint.contains("should match"), "{complaint}");
    let complaint = cluster.complains("get widget two", "");
    assert!(complaint.contains(r#"widgets.conformance.gradus.dev "two" not found"#), "{complaint}");
}

fn typed_creates(cluster: &Cluster) {
    cluster.prints("create namespace demo", "");
    cluster.prints("create configmap settings --from-literal=a=b", "");
    let value = cluster.prints("get configmap settings -o jsonpath={.data.a}", "");
    assert_eq!(value, "b");
    cluster.prints("create secret generic hidden --from-literal=a=b", "");
    cluster.prints("create serviceaccount robot", "");
    cluster.prints("create deployment app --image=app:1 --replicas=2", "");
    let image = "get deployment app -o jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(cluster.prints(image, ""), "app:1");
    let answer = cluster.prints("auth can-i create pods", "");
    assert_eq!(answer.trim(), "yes");
}

fn wait_and_delete(cluster: &Cluster) {
    cluster.prints("delete widget one", "");
    cluster.prints("delete rs web", "");
    cluster.prints("wait --for=delete pods -l app=web --timeout=30s", "");
    cluster.prints("delete namespace demo --timeout=30s", "");
    let complaint = cluster.complains("get namespace demo", "");
    assert!(complaint.contains("not found"), "{complaint}");
}
