//! Does any secret get out? Canaries are planted wherever a secret can be, servers and a plugin send
//! back all they are given, and everything that can be read afterwards is searched.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gradus_api::names;
use gradus_simkube::kinds::KindId;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::program::{Running, command, debug_world, folder, get, gradus};

/// In every canary, in the small letters that logs may have made of it.
const CANARY: &str = "c4nary";
/// One that may stand anywhere in a URL, one that must be encoded wherever it is written, and one of
/// several lines.
const PLAIN: &str = "c4naryPlain";
const ODD: &str = "c4nary O\"dd/é";
const LINES: &str = "-----BEGIN\nc4naryFirstLine\nc4narySecondLine";
/// The token that the token endpoint issues.
const TOKEN: &str = "c4naryToken";
/// The environment's.
const AWS: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "c4naryKeyId"),
    ("AWS_SECRET_ACCESS_KEY", "c4naryAwsSecret"),
    ("AWS_SESSION_TOKEN", "c4narySession"),
];

/// Always HTTPS, and nowhere: its error is what could show the token.
const WAVEFRONT: &str = "wavefront.invalid";

/// How a canary may look. The Base64 of a text begins in one of three ways, by what stands before it.
fn is_out(text: &str) -> bool {
    let lower = text.to_lowercase();
    let in_base64 = ["YzRuYXJ5", "M0bmFyeV", "jNG5hcnl"];
    let escaped = lower.replace("\\u0063", "c").replace("%63", "c");
    escaped.contains(CANARY) || in_base64.iter().any(|start| text.contains(start))
}

/// A server that sends back everything it was sent, with or without an error.
struct Echo {
    address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let all = Arc::clone(&all);
                // Who hangs up in the middle has heard enough.
                std::thread::spawn(move || echo(stream, &all).ok());
            }
        });
        Echo { address, heard }
    }

    fn heard(&self) -> String {
        self.heard.lock().unwrap().join("\n")
    }
}

fn echo(mut stream: TcpStream, all: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        request.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.push_str(&String::from_utf8_lossy(&body));
    all.lock().unwrap().push(request.clone());
    let escaped = |text: &str| -> String {
        text.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect()
    };
    let (status, answer) = if request.starts_with("POST /token") {
        (200, json!({ "access_token": TOKEN }).to_string())
    } else if request.contains(" /good") {
        (200, format!(r#"{{"said": {}, "escaped": "{}"}}"#, json!(request), escaped(&request)))
    } else if request.contains("/api/v1/query") {
        (400, json!({ "status": "error", "errorType": "bad", "error": request }).to_string())
    } else {
        (500, request.clone())
    };
    let said = request.replace(['\r', '\n'], " ");
    let length = answer.len();
    write!(stream, "HTTP/1.1 {status} So\r\nx-said: {said}\r\ncontent-length: {length}\r\n")?;
    write!(stream, "connection: close\r\n\r\n{answer}")
}

/// A metric plugin that prints and answers with all it is given.
const PLUGIN: &str = r#"#!/usr/bin/env python3
import json, sys
print(json.dumps({"protocol": "gradus-plugin", "version": 1, "kind": "metric"}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    params = json.dumps(request.get("params"), ensure_ascii=False)
    print("given", params, file=sys.stderr, flush=True)
    if request["method"] == "GetMetadata":
        result = {"given": params}
    elif request["method"] in ("InitPlugin", "Ping", "Quit", "GarbageCollect"):
        result = None
    elif request["method"] == "Type":
        result = "echo"
    else:
        given = request["params"]["metric"]["provider"]["plugin"]["example/echo"]
        for text in given.values():
            print(text, file=sys.stderr, flush=True)
        result = {"phase": "Successful", "value": json.dumps(given), "message": str(given),
                  "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:00Z",
                  "metadata": {"given": params}}
    print(json.dumps({"id": request["id"], "result": result}), flush=True)
"#;

/// Metrics of every provider, with a canary wherever a template can put one.
fn providers(to: &str) -> Vec<(&'static str, Value)> {
    const P: &str = "{{args.plain}}";
    const O: &str = "{{args.odd}}";
    let address = format!("http://{to}");
    let userinfo = format!("http://{P}:{P}@{to}");
    let oauth2 = json!({ "oauth2": { "tokenUrl": format!("{address}/token?a={P}"), "clientId": P,
        "clientSecret": O, "scopes": [P] } });
    let headers = json!([{ "key": "X-Key", "value": P }, { "key": "Authorization",
        "value": format!("Bearer {P}") }]);
    let web = |more: Value| {
        let mut spec = json!({ "url": format!("{address}/good?key={P}"), "headers": headers });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "web": spec })
    };
    let prometheus = |authentication: Value| {
        json!({ "prometheus": { "address": userinfo, "query": format!("up{{key=\"{P}\"}}"),
            "headers": headers, "authentication": authentication } })
    };
    vec![
        ("web-url", web(json!({ "url": format!("{userinfo}/good/{P}?key={P}") }))),
        ("web-value", web(json!({ "jsonPath": "{$.said}" }))),
        ("web-escaped", web(json!({ "jsonPath": "{$.escaped}" }))),
        ("web-body", web(json!({ "method": "POST", "body": format!("a={O}") }))),
        ("web-json", web(json!({ "method": "PUT", "jsonBody": { "a": O, "b": [P] } }))),
        ("web-error", web(json!({ "url": format!("{address}/bad?key={P}") }))),
        ("web-oauth2", web(json!({ "headers": [], "authentication": oauth2 }))),
        ("web-nowhere", web(json!({ "url": format!("http://{P}.invalid/{P}") }))),
        ("web-invalid", web(json!({ "url": format!("http://{O}/") }))),
        ("prometheus-plain", prometheus(json!({}))),
        ("prometheus-oauth2", prometheus(oauth2)),
        ("prometheus-basic", prometheus(json!({ "basicAuth": { "username": P, "password": O } }))),
        ("prometheus-sigv4", prometheus(json!({ "sigv4": { "region": "eu-central-1" } }))),
        (
            "cloud-watch",
            json!({ "cloudWatch": { "metricDataQueries": [{ "id": "a",
            "expression": P }] } }),
        ),
        ("datadog", json!({ "datadog": { "query": P } })),
        ("datadog-v2", json!({ "datadog": { "query": P, "apiVersion": "v2" } })),
        (
            "datadog-own",
            json!({ "datadog": { "query": P, "secretRef": { "name": "datadog",
            "namespaced": true } } }),
        ),
        ("new-relic", json!({ "newRelic": { "query": P } })),
        ("wavefront", json!({ "wavefront": { "address": WAVEFRONT, "query": P } })),
        (
            "graphite",
            json!({ "graphite": { "address": userinfo, "query": format!("target={P}") } }),
        ),
        ("influxdb", json!({ "influxdb": { "query": P } })),
        (
            "skywalking",
            json!({ "skywalking": { "address": userinfo, "interval": "5m",
            "query": O } }),
        ),
        (
            "kayenta",
            json!({ "kayenta": { "address": userinfo, "application": P, "lookback": true,
            "canaryConfigName": P, "metricsAccountName": P, "configurationAccountName": P,
            "storageAccountName": P, "scopes": [], "threshold": { "pass": 90, "marginal": 75 } } }),
        ),
        ("job", job(P, O)),
        (
            "plugin",
            json!({ "plugin": { "example/echo": { "a": P, "b": O,
            "c": "{{args.lines}}" } } }),
        ),
    ]
}

/// A Job with a secret in its arguments and its environment.
fn job(plain: &str, odd: &str) -> Value {
    json!({ "job": { "spec": { "backoffLimit": 0, "template": { "spec": {
        "restartPolicy": "Never", "containers": [{ "name": "c", "image": "example.com/i",
            "command": ["sh", "-c", "exit 0"], "args": [plain],
            "env": [{ "name": "KEY", "value": odd }] }] } } } } })
}

fn run(name: &str, provider: &Value, condition: &str) -> Value {
    let from = |key: &str| json!({ "name": key, "valueFrom": { "secretKeyRef": { "name": "keys", "key": key } } });
    let metric = json!({ "name": "m", "provider": provider, "successCondition": condition,
        "consecutiveErrorLimit": 0 });
    json!({ "apiVersion": names::API_VERSION, "kind": "AnalysisRun", "metadata": { "name": name },
        "spec": { "args": [from("plain"), from("odd"), from("lines")], "metrics": [metric] } })
}

fn secret(name: &str, data: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<String, Value> =
        data.iter().map(|(key, text)| ((*key).to_owned(), STANDARD.encode(text).into())).collect();
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "data": data })
}

/// Everything that providers are given by Secrets, and the plugin.
fn plant(cluster: &Cluster, to: &str, folder: &Path) {
    let address = format!("http://{to}");
    cluster.store(&secret("keys", &[("plain", PLAIN), ("odd", ODD), ("lines", LINES)]));
    let keys = [("api-key", PLAIN), ("app-key", "c4naryApp"), ("address", &address)];
    cluster.store(&secret("datadog", &keys));
    let keys = [
        ("personal-api-key", PLAIN),
        ("account-id", "4711"),
        ("region", "us"),
        ("base-url-nerdgraph", &format!("{address}/{PLAIN}")),
    ];
    cluster.store(&secret("newrelic", &keys));
    cluster.store(&secret("wavefront-api-tokens", &[(WAVEFRONT, PLAIN)]));
    let keys = [("address", &*address), ("authToken", PLAIN), ("org", "c4naryOrg")];
    cluster.store(&secret("influxdb", &keys));
    let program = folder.join("echo.py");
    std::fs::write(&program, PLUGIN).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let digest =
        "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())";
    let digest = Command::new("python3").args(["-c", digest]).arg(&program).output();
    let digest = digest.map(|done| String::from_utf8(done.stdout).unwrap()).unwrap_or_default();
    let (digest, place) = (digest.trim(), program.display());
    let listed =
        format!("- name: example/echo\n  location: file://{place}\n  sha256: \"{digest}\"\n");
    cluster.store(&json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "argo-rollouts-config" },
        "data": { "metricProviderPlugins": listed } }));
}

/// Every stored object of these kinds.
fn stored(cluster: &Cluster) -> Vec<Value> {
    cluster.server.with(|cluster, _| {
        let run = cluster.kinds().by_name(names::API_VERSION, "AnalysisRun").unwrap();
        let job = cluster.kinds().by_name("batch/v1", "Job").unwrap();
        let kinds = [run, job, KindId::POD, KindId::EVENT];
        let all = kinds.into_iter().flat_map(|kind| cluster.list(kind, "default"));
        all.map(|object| object.to_json(cluster.kinds())).collect()
    })
}

fn is_over(object: &Value) -> bool {
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    !matches!(phase, "" | "Pending" | "Running")
}

/// Waits until every run has ended; what is stored then.
fn ended(cluster: &Cluster, count: usize) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let all = stored(cluster);
        let runs = || all.iter().filter(|object| object["kind"] == "AnalysisRun");
        if runs().filter(|run| is_over(run)).count() == count {
            return all;
        }
        let left: Vec<&Value> =
            runs().filter(|run| !is_over(run)).map(|run| &run["metadata"]["name"]).collect();
        assert!(began.elapsed() < Duration::from_secs(120), "not ended: {left:?}");
        std::thread::sleep(Duration::from_millis(50)); // A simulated cluster cannot be waited on.
    }
}

/// A controller that logs all there is, with credentials of AWS in its environment.
fn controller(cluster: &Cluster, to: &str) -> (Running, u16, u16) {
    let words = ["controller", "--healthzPort=0", "--metricsPort=0", "--loglevel=trace"];
    let mut command = command(&words);
    command.args(["--kloglevel=9", "--metric-allow=127.0.0.0/8"]).args(debug_world());
    command.arg("--kubeconfig").arg(&cluster.kubeconfig);
    command.envs(AWS).env("AWS_ENDPOINT_URL", format!("http://{to}"));
    command.env("AWS_REGION", "eu-central-1");
    let mut controller = Running::start(command);
    let line = controller.until("health on port");
    let port = |after: &str| -> u16 {
        let rest = line.split(after).nth(1).unwrap();
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    let ports = (port("health on port "), port("metrics on port "));
    (controller, ports.0, ports.1)
}

#[test]
fn no_secret_gets_out_whoever_sends_it_back() {
    let folder = folder("secrets");
    let cluster = Cluster::start(0, &folder);
    let echo = Echo::start();
    plant(&cluster, &echo.address, &folder);
    let mut runs = providers(&echo.address);
    let has_python = Command::new("python3").arg("--version").output().is_ok();
    if !has_python {
        println!("skipped: Python is not installed, and no plugin is given a secret");
        runs.retain(|(name, _)| *name != "plugin");
    }
    let (mut controller, health, metrics) = controller(&cluster, &echo.address);
    for (name, provider) in &runs {
        cluster.store(&run(name, provider, ""));
        cluster.store(&run(&format!("{name}-judged"), provider, "len(result) > 1000000"));
    }
    let condition = "result == \"{{args.plain}}\"";
    cluster.store(&run("condition", &runs[0].1, condition));
    let objects = ended(&cluster, 2 * runs.len() + 1);

    // The canaries were sent, or nothing would be shown by their absence.
    let heard = echo.heard();
    let pair = STANDARD.encode(format!("{PLAIN}:{ODD}"));
    for sent in [PLAIN, "c4nary O\\\"dd", TOKEN, &pair, "c4naryKeyId", "c4narySession"] {
        assert!(heard.contains(sent), "{sent} was not sent:\n{heard}");
    }
    let text = |object: &Value| object.to_string();
    let value = |name: &str| {
        let run = objects.iter().find(|object| object["metadata"]["name"] == name).unwrap();
        text(&run["status"])
    };
    for name in ["web-value", "web-escaped"].into_iter().chain(has_python.then_some("plugin")) {
        assert!(value(name).contains("*****"), "{name} is sent back: {}", value(name));
    }

    let mut seen: Vec<(String, String)> = objects
        .iter()
        .map(|object| (format!("{} {}", object["kind"], object["metadata"]["name"]), text(object)))
        .collect();
    let world = folder.join("world.json");
    for (name, _) in &runs {
        let path = format!("/debug/world/analysisrun/default/{name}");
        let (status, body) = get(health, &path).unwrap();
        assert_eq!(status, 200, "{path}");
        std::fs::write(&world, &body).unwrap();
        let explained = gradus(&["explain", "--world", world.to_str().unwrap()]);
        seen.push((path, body));
        seen.push((format!("explain {name}"), explained.stdout + &explained.stderr));
    }
    seen.push(("/metrics".to_owned(), get(metrics, "/metrics").unwrap().1));
    controller.signal("TERM");
    controller.end();
    seen.extend(controller.seen.iter().map(|line| ("the log".to_owned(), line.clone())));
    let out: Vec<String> = seen
        .iter()
        .filter(|(_, text)| is_out(text))
        .map(|(place, text)| format!("{place}: {text}"))
        .collect();
    assert!(out.is_empty(), "{} times:\n{}", out.len(), out.join("\n"));
}
