//! `cargo xtask plugins`: do Argo Rollouts' sample plugins run unmodified against our host, on a real
//! control plane? They are built from its Go module into the cache; nothing of them enters this
//! repository.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    time::{Duration, Instant},
};

use aws_lc_rs::digest::{SHA256, digest};
use gradus_api::names::{API_VERSION, CONFIG_MAP, kind};
use gradus_simkube::behave::Behaviours;
use kube::Client;
use serde_json::{Value, json};
use thiserror::Error;

use crate::{
    Failure, argo,
    controller::Settings,
    interrupt::or_interrupted,
    plane::User,
    real::{apply, create_namespace, find},
    repository,
    servers::{Servers, ServersError, go_is_present},
    stage::{ControllerKind, Stage},
    summary::Summary,
};

const NAMESPACE: &str = "plugins";

/// How long one of the plugins may take to get there.
const PATIENCE: Duration = Duration::from_secs(120);

/// A sample: its name in the configuration, the list it stands in, and the package of its program.
pub type Sample = (&'static str, &'static str, &'static str);

/// The sample that splits traffic by a second Ingress.
pub const NGINX: Sample =
    ("argoproj/sample-nginx", "trafficRouterPlugins", "trafficrouter-plugin-sample");

const SAMPLES: [Sample; 3] = [
    ("argoproj-labs/sample-step", "stepPlugins", "step-plugin-sample"),
    ("argoproj/sample-prometheus", "metricProviderPlugins", "metrics-plugin-sample"),
    NGINX,
];

#[derive(Debug, Error)]
enum SampleError {
    #[error("{what}: expected {pointer} {expected}, found {found}")]
    Late { what: String, pointer: &'static str, expected: Value, found: Value },
}

/// Runs the task.
pub fn run(_: &[String]) -> Result<Summary, Failure> {
    if !go_is_present() {
        return Err(ServersError::GoIsAbsent.into());
    }
    let servers = Servers::ready(&repository())?;
    let folder = argo::sample_plugins(&SAMPLES.map(|(_, _, package)| package))?;
    or_interrupted(async {
        let stage = Stage::set(&servers).await?;
        let result = play(&stage, &folder).await;
        if result.is_err() {
            println!("  the logs are in {}", stage.plane.keep_logs()?.display());
        }
        result
    })
}

async fn play(stage: &Stage, folder: &Path) -> Result<Summary, Failure> {
    let client = stage.plane.client(User::Person).await?;
    create_namespace(&client, NAMESPACE).await?;
    stage.kubelet.behave(NAMESPACE, Behaviours::default());
    let kubeconfig = stage.plane.kubeconfig(User::Controller);
    apply(&client, "argo-rollouts", &configuration(&SAMPLES, folder, &kubeconfig)?).await?;
    let controller = stage
        .controller_with(
            ControllerKind::Rollouts,
            Settings { name: "plugins".to_owned(), kubeconfig, ..Settings::default() },
        )
        .await?;
    let mut summary = Summary::default();
    let began = Instant::now();
    for (name, outcome) in [
        ("step", step(&client).await),
        ("metric", metric(&client).await),
        ("traffic", traffic(&client).await),
    ] {
        if let Err(error) = &outcome {
            println!("  FAILED the {name} plugin: {error}");
        }
        summary += Summary::of(outcome.is_ok());
    }
    println!("  the sample plugins took {} s", began.elapsed().as_secs());
    drop(controller);
    match summary.failed {
        0 => Ok(summary),
        _ => {
            println!("  the logs are in {}", stage.plane.keep_logs()?.display());
            Ok(summary)
        }
    }
}

/// The ConfigMap that lists samples.
pub fn configuration(
    samples: &[Sample],
    folder: &Path,
    kubeconfig: &Path,
) -> Result<Value, Failure> {
    let mut data = serde_json::Map::new();
    for &(name, list, package) in samples {
        let program = folder.join(package);
        let sha256 = digest(&SHA256, &fs::read(&program)?);
        let sha256: String = sha256.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let entry = json!([{
            "name": name,
            "location": format!("file://{}", program.display()),
            "sha256": sha256,
            "env": [{ "name": "KUBECONFIG", "value": kubeconfig }],
        }]);
        data.insert(list.to_owned(), json!(entry.to_string()));
    }
    let metadata = json!({ "name": CONFIG_MAP });
    Ok(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data }))
}

/// A step that is done at once, with what the plugin wants remembered in the status.
async fn step(client: &Client) -> Result<(), Failure> {
    let steps = json!([{ "plugin": { "name": SAMPLES[0].0, "config": { "async": false } } }]);
    let rollout = rollout("stepped", json!({ "steps": steps }));
    apply(client, NAMESPACE, &rollout).await?;
    seen(client, &rollout, "/status/phase", json!("Healthy")).await?;
    let next = with_image(&rollout, "web:2");
    apply(client, NAMESPACE, &next).await?;
    let phase = "/status/canary/stepPluginStatuses/0/phase";
    seen(client, &rollout, phase, json!("Successful")).await?;
    seen(client, &rollout, "/status/phase", json!("Healthy")).await
}

/// Two measurements of a Prometheus that answers 0.99, judged by the plugin itself.
async fn metric(client: &Client) -> Result<(), Failure> {
    let address = prometheus()?;
    let config = json!({ "address": address, "query": "up" });
    let run = json!({ "apiVersion": API_VERSION, "kind": kind::ANALYSIS_RUN,
        "metadata": { "name": "measured" },
        "spec": { "metrics": [{ "name": "m", "count": 2, "interval": "1s",
            "successCondition": "result[0] > 0.9",
            "provider": { "plugin": { SAMPLES[1].0: config } } }] } });
    apply(client, NAMESPACE, &run).await?;
    seen(client, &run, "/status/phase", json!("Successful")).await?;
    seen(client, &run, "/status/metricResults/0/measurements/1/value", json!("[0.99]")).await?;
    let query = "/status/metricResults/0/metadata/ResolvedPrometheusQuery";
    seen(client, &run, query, json!("up")).await
}

/// A canary whose weights the plugin writes into an Ingress of its own.
async fn traffic(client: &Client) -> Result<(), Failure> {
    for name in ["stable", "canary"] {
        let spec = json!({ "selector": { "app": "routed" }, "ports": [{ "port": 80 }] });
        let service = json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": name }, "spec": spec });
        apply(client, NAMESPACE, &service).await?;
    }
    let backend = json!({ "service": { "name": "stable", "port": { "number": 80 } } });
    let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
    let ingress = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": "web" },
        "spec": { "ingressClassName": "nginx",
            "rules": [{ "host": "web.example.com", "http": { "paths": [path] } }] } });
    apply(client, NAMESPACE, &ingress).await?;
    let rollout = rollout(
        "routed",
        json!({
            "stableService": "stable", "canaryService": "canary",
            "trafficRouting": { "plugins": { SAMPLES[2].0: { "stableIngress": "web" } } },
            "steps": [{ "setWeight": 30 }, { "pause": {} }, { "setWeight": 60 }, { "pause": {} }],
        }),
    );
    apply(client, NAMESPACE, &rollout).await?;
    seen(client, &rollout, "/status/phase", json!("Healthy")).await?;
    apply(client, NAMESPACE, &with_image(&rollout, "web:2")).await?;
    seen(client, &rollout, "/status/phase", json!("Paused")).await?;
    let canary = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": "routed-web-canary" } });
    let weight = "/metadata/annotations/nginx.ingress.kubernetes.io~1canary-weight";
    seen(client, &canary, weight, json!("30")).await?;
    seen(client, &rollout, "/status/canary/weights/canary/weight", json!(30)).await?;
    let mut aborted = with_image(&rollout, "web:1");
    aborted["metadata"]["annotations"] = json!({ "example.com/back": "1" });
    apply(client, NAMESPACE, &aborted).await?;
    seen(client, &canary, weight, json!("0")).await?;
    seen(client, &rollout, "/status/phase", json!("Healthy")).await
}

fn rollout(name: &str, canary: Value) -> Value {
    let labels = json!({ "app": name });
    json!({ "apiVersion": API_VERSION, "kind": kind::ROLLOUT, "metadata": { "name": name },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
            "strategy": { "canary": canary },
        } })
}

fn with_image(rollout: &Value, image: &str) -> Value {
    let mut next = rollout.clone();
    next["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    next
}

/// Waits until a field of an object is as expected.
async fn seen(
    client: &Client,
    object: &Value,
    pointer: &'static str,
    expected: Value,
) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        let live = find(client, NAMESPACE, object).await?;
        let found = live.pointer(pointer).cloned().unwrap_or_default();
        let is_observed = match live["status"]["observedGeneration"].as_str() {
            Some(observed) => *live["metadata"]["generation"].to_string() == *observed,
            None => true,
        };
        if found == expected && is_observed {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
            println!("{}", live["status"]);
            return Err(SampleError::Late { what, pointer, expected, found }.into());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// A server that answers every query of Prometheus with 0.99; its address. It ends with the process.
fn prometheus() -> Result<String, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            std::thread::spawn(move || {
                let mut buffer = [0; 8192];
                while let Ok(1..) = stream.read(&mut buffer) {
                    let body = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000,"0.99"]}]}}"#;
                    let length = body.len();
                    let head =
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                    let answer = format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}");
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(address)
}
