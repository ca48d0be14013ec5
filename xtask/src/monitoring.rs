//! `cargo xtask monitoring`: do the alerts fire when they should, and do dashboards made for Argo
//! Rollouts find what they ask for? Asked of promtool and Prometheus of Debian, which are fetched once
//! into the cache folder and extracted without root.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use gradus_manifest::Source;
use http::Request;
use kube::{Client, Config};
use serde_json::Value;
use thiserror::Error;

use crate::{
    Failure, argo,
    controller::{Election, Settings},
    debian,
    folder::Folder,
    interrupt::or_interrupted,
    plane::User,
    ports,
    process::{Process, Recipe},
    real, repository,
    servers::Servers,
    stage::{ControllerKind, Stage},
    summary::Summary,
};

/// The packages that hold the programs.
const PACKAGE: &str = "prometheus";

/// How long Prometheus may take to have scraped twice what every query needs.
const ANSWERS_WITHIN: Duration = Duration::from_secs(90);

/// Phases that no Rollout here is in: a sum over nothing is nothing, as on Argo Rollouts.
const ABSENT_PHASES: [&str; 6] =
    ["Abort", "Error", "InvalidSpec", "Timeout", "Paused", "Progressing"];

#[derive(Debug, Error)]
enum MonitoringError {
    #[error("{what}: {message}")]
    Tool { what: String, message: String },
    #[error("{0}: expected groups of rules")]
    NoGroups(&'static str),
    #[error("no answer to {0}")]
    NoAnswer(String),
}

/// Runs the task; without Debian's packages it is skipped with a line.
pub fn run(_arguments: &[String]) -> Result<Summary, Failure> {
    let tools = match tools() {
        Ok(tools) => tools,
        Err(error) => {
            println!("  not tried: Prometheus of Debian cannot be had: {error}");
            return Ok(Summary::skipped());
        }
    };
    let mut summary = Summary::default();
    let rules = rules(&tools.join("promtool"));
    if let Err(error) = &rules {
        println!("  rules: FAILED: {error}");
    }
    summary += Summary::of(rules.is_ok());
    summary += dashboard(&tools.join("prometheus"))?;
    Ok(summary)
}

/// The folder with `prometheus` and `promtool`.
pub fn tools() -> Result<PathBuf, Failure> {
    Ok(debian::extracted(PACKAGE)?.join("usr/bin"))
}

/// The alerts of the PrometheusRule, tried with the series of `rules-test.yaml`.
fn rules(promtool: &Path) -> Result<(), Failure> {
    let monitoring = repository().join("manifests/monitoring");
    let name = "prometheusrule.yaml";
    let source = Source { name: name.to_owned(), text: fs::read_to_string(monitoring.join(name))? };
    let documents = gradus_manifest::read(&Arc::new(source));
    let documents = documents.map_err(|error| format!("{name}: {}", error.message))?;
    let spec = documents.first().map(|document| document.json()["spec"].clone());
    let spec = spec.filter(|spec| spec["groups"].is_array());
    let spec = spec.ok_or(MonitoringError::NoGroups(name))?;
    let folder = Folder::create("rules")?;
    fs::write(folder.path().join("rules.yaml"), spec.to_string())?;
    fs::copy(monitoring.join("rules-test.yaml"), folder.path().join("rules-test.yaml"))?;
    let promtool = || {
        let mut command = Command::new(promtool);
        command.current_dir(folder.path());
        command
    };
    said(promtool().args(["check", "rules", "rules.yaml"]))?;
    said(promtool().args(["test", "rules", "rules-test.yaml"]))
}

/// Every query of Argo Rollouts' own dashboard, answered from our metrics.
fn dashboard(prometheus: &Path) -> Result<Summary, Failure> {
    let text = fs::read_to_string(argo::sources()?.join("examples/dashboard.json"))?;
    let mut queries = Vec::new();
    expressions(&serde_json::from_str(&text)?, &mut queries);
    let ours = repository().join("manifests/monitoring/dashboard.json");
    expressions(&serde_json::from_str(&fs::read_to_string(ours)?)?, &mut queries);
    queries.sort();
    queries.dedup();
    let servers = Servers::ready(&repository())?;
    or_interrupted(async {
        let stage = Stage::set(&servers).await?;
        let [metrics_port, port] = ports::free()?;
        let settings = Settings {
            name: "controller".to_owned(),
            kubeconfig: stage.plane.kubeconfig(User::Controller),
            metrics_port: Some(metrics_port),
            election: Some(Election::On),
            ..Settings::default()
        };
        let _controller = stage.controller_with(ControllerKind::Rollouts, settings).await?;
        let person = stage.plane.client(User::Person).await?;
        real::create_namespace(&person, "shop").await?;
        let sample = repository().join("examples/rollouts/rolling-update.yaml");
        stage.plane.kubectl_does(&["apply", "--namespace", "shop", "-f"], &sample)?;
        let recipe = recipe(prometheus, stage.plane.folder(), metrics_port, port)?;
        let _prometheus = Process::start(&recipe, stage.plane.folder())?;
        let client = client_of(port)?;
        let mut summary = Summary::default();
        for query in &queries {
            let answered = is_answered(&client, query).await;
            if let Err(error) = &answered {
                println!("  dashboard: FAILED: {error}");
            }
            summary += Summary::of(answered.is_ok());
        }
        println!("  dashboard: {} queries of Argo Rollouts' and ours", queries.len());
        Ok(summary)
    })
}

/// All queries of a dashboard, with its variables filled in.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(query)) = map.get("expr") {
                let filled = query.replace("$rollout_namespace", "shop");
                let filled =
                    filled.replace("$rollout_name", "cart").replace("$__rate_interval", "1m");
                found.push(filled);
            }
            map.values().for_each(|value| expressions(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

fn recipe(prometheus: &Path, folder: &Path, from: u16, port: u16) -> Result<Recipe, Failure> {
    let config = serde_json::json!({
        "global": { "scrape_interval": "1s" },
        "scrape_configs": [{
            "job_name": "argo-rollouts-metrics", "honor_labels": true,
            "static_configs": [{ "targets": [format!("127.0.0.1:{from}")] }],
        }],
    });
    let path = folder.join("prometheus.yaml");
    fs::write(&path, config.to_string())?;
    Ok(Recipe::new("prometheus", prometheus)
        .flag("config.file", &path)
        .flag("storage.tsdb.path", folder.join("tsdb"))
        .flag("web.listen-address", format!("127.0.0.1:{port}"))
        .flag("log.level", "error"))
}

fn client_of(port: u16) -> Result<Client, Failure> {
    let mut config = Config::new(format!("http://127.0.0.1:{port}").parse()?);
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Asks until there is a result. One that counts a phase nobody is in need only be understood.
async fn is_answered(client: &Client, query: &str) -> Result<(), Failure> {
    let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let began = Instant::now();
    let may_be_empty =
        ABSENT_PHASES.iter().any(|phase| query.contains(&format!("phase=\"{phase}\"")));
    loop {
        let request = Request::get(format!("/api/v1/query?query={escaped}")).body(Vec::new())?;
        if let Ok(answer) = client.request_text(request).await {
            let answer: Value = serde_json::from_str(&answer)?;
            let has_result = answer["data"]["result"].as_array().is_some_and(|all| !all.is_empty());
            if answer["status"] == "success" && (has_result || may_be_empty) {
                return Ok(());
            }
        }
        if began.elapsed() > ANSWERS_WITHIN {
            return Err(MonitoringError::NoAnswer(query.to_owned()).into());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn said(command: &mut Command) -> Result<(), Failure> {
    let what = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let failed = |message: String| MonitoringError::Tool { what: what.clone(), message };
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let words = [output.stdout, output.stderr].concat();
    Err(failed(String::from_utf8_lossy(&words).trim().to_owned()).into())
}

#[test]
fn queries_are_found_wherever_they_stand() {
    let dashboard = serde_json::json!({ "panels": [
        { "targets": [{ "expr": "rollout_info{name=\"$rollout_name\"}" }] },
        { "panels": [{ "targets": [{ "expr": "up" }] }] },
    ] });
    let mut found = Vec::new();
    expressions(&dashboard, &mut found);
    assert_eq!(found, ["rollout_info{name=\"cart\"}", "up"]);
}
