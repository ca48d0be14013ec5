//! Does a plugin do what is expected of it? Plays every call of its interface and every fault that a
//! controller can bring about, on a process that is started as the controller starts it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gradus_goplugin::PluginKind;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::config::{Location, PluginEntry};
use super::process::{self, CallFailure, NO_ANSWER, Running};

/// Which interface a plugin is expected to have.
pub use gradus_goplugin::PluginKind as Interface;

/// How long each call may take.
const LIMIT: Duration = Duration::from_secs(30);

/// One expectation, and how the plugin does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is expected.
    pub expected: String,
    /// What is wrong; `None` if nothing is.
    pub wrong: Option<String>,
}

/// A plugin that is tried.
#[derive(Clone, Debug)]
pub struct CheckedPlugin {
    /// Its program.
    pub program: PathBuf,
    /// Arguments of that.
    pub args: Vec<String>,
    /// What it is for.
    pub interface: Interface,
    /// The name under which it looks for its configuration.
    pub name: String,
    /// That configuration: an object.
    pub config: Value,
    /// What its environment has beside what the protocol needs; without a value it is ours.
    pub env: Vec<(String, Option<String>)>,
}

/// Plays everything at a plugin.
pub async fn check(subject: &CheckedPlugin) -> Vec<Finding> {
    let mut findings = Vec::new();
    let kind = subject.interface;
    let entry = Arc::new(PluginEntry {
        name: subject.name.clone(),
        location: Location::File(PathBuf::new()),
        sha256: [0; 32],
        args: subject.args.clone(),
        env: subject.env.clone(),
        headers_from: Vec::new(),
        is_disabled: false,
        timeout: LIMIT,
    });
    let program = match std::path::absolute(&subject.program) {
        Ok(program) => program,
        Err(error) => {
            note(&mut findings, "its program is found", Err(error.to_string()));
            return findings;
        }
    };
    let started = process::start(kind, &entry, &program).await;
    let running = match started {
        Ok(running) => running,
        Err(why) => {
            note(&mut findings, "it starts, and answers InitPlugin", Err(why));
            return findings;
        }
    };
    note(&mut findings, "it starts, and answers InitPlugin", Ok(()));
    for (expected, method, argument, fits) in calls(subject) {
        let outcome = answer(&running, method, argument).await.and_then(|reply| fits(&reply));
        note(&mut findings, expected, outcome);
    }
    faults(&running, subject, &mut findings).await;
    let began = Instant::now();
    let ended = timeout(Duration::from_secs(10), running.stop()).await;
    let took = began.elapsed();
    let in_time = ended.is_ok() && took < Duration::from_secs(2);
    let late = || format!("it was killed after {:.1} s", took.as_secs_f64());
    note(&mut findings, "it ends when it is asked to", in_time.then_some(()).ok_or_else(late));
    let again = process::start(kind, &entry, &program).await;
    let is_there = again.as_ref().map(|_| ()).map_err(String::clone);
    note(&mut findings, "it can be started again", is_there);
    if let Ok(running) = again {
        left(running, &mut findings).await;
    }
    findings
}

/// What a controller that dies leaves behind. That Argo Rollouts' plugins outlive it is their way.
async fn left(running: Running, findings: &mut Vec<Finding>) {
    if !running.reads_lines {
        return running.stop().await;
    }
    let has_ended = running.leave().await;
    let late = || "it was killed 2 s after its standard input had ended".to_owned();
    let expected = "it ends when its standard input does: the controller is gone";
    note(findings, expected, has_ended.then_some(()).ok_or_else(late));
}

/// What a controller that crashes, or is busy, does to a plugin.
async fn faults(running: &Running, subject: &CheckedPlugin, findings: &mut Vec<Finding>) {
    let Some((_, method, argument, fits)) = calls(subject).into_iter().next() else { return };
    let mut outcome = Ok(());
    for _ in 0..2 {
        let reply = answer(running, method, argument.clone()).await;
        outcome = outcome.and(reply.and_then(|reply| fits(&reply)));
    }
    let expected = "a call that is made again, as after a crash of the controller, is answered";
    note(findings, expected, outcome);
    let many = (0..8).map(|_| answer(running, method, argument.clone()));
    let many = futures::future::join_all(many).await;
    let outcome = many.into_iter().try_for_each(|reply| fits(&reply?));
    note(findings, "eight calls at once are answered, each its own", outcome);
    let mut large = argument.clone();
    let text = "x".repeat(900 << 10);
    large["rollout"]["metadata"]["annotations"] = json!({ "example.com/large": text });
    large["analysisRun"]["metadata"]["annotations"] = json!({ "example.com/large": text });
    let outcome = answer(running, method, large).await.map(|_| ());
    note(findings, "an object of a megabyte is read", outcome);
    let unknown = running.call("NoSuchMethod", Value::Null, LIMIT).await;
    let outcome = match unknown {
        Err(CallFailure::Transport(why)) if !running.is_there() || why.starts_with(NO_ANSWER) => {
            Err(why)
        }
        Err(_) => Ok(()),
        Ok(_) => Err("it answers a method that there is not".to_owned()),
    };
    note(findings, "a method that there is not is an error of that call alone", outcome);
    let outcome = answer(running, method, argument).await.and_then(|reply| fits(&reply));
    note(findings, "after all that it still answers", outcome);
}

async fn answer(running: &Running, method: &str, argument: Value) -> Result<Value, String> {
    running.call(method, argument, LIMIT).await.map_err(|failure| match failure {
        CallFailure::Said(why) => format!("{method}: {why}"),
        CallFailure::Transport(why) => format!("{method}: rpc call error: {why}"),
    })
}

fn note(findings: &mut Vec<Finding>, expected: &str, outcome: Result<(), String>) {
    findings.push(Finding { expected: expected.to_owned(), wrong: outcome.err() });
}

type Fits = fn(&Value) -> Result<(), String>;
type Expectation = (&'static str, &'static str, Value, Fits);

/// Every call of an interface.
fn calls(subject: &CheckedPlugin) -> Vec<Expectation> {
    let CheckedPlugin { name, config, interface, .. } = subject;
    let rollout = json!({
        "apiVersion": gradus_api::names::API_VERSION,
        "kind": "Rollout",
        "metadata": { "name": "web", "namespace": "default", "uid": "0", "generation": 1 },
        "spec": { "replicas": 5, "strategy": { "canary": {
            "canaryService": "web-canary", "stableService": "web-stable",
            "trafficRouting": { "plugins": { name: config } },
            "steps": [{ "setWeight": 20 }, { "plugin": { "name": name, "config": config } }] } } },
        "status": { "phase": "Progressing", "currentStepIndex": 1, "availableReplicas": 5 },
    });
    let context = json!({ "pluginName": name, "config": config, "status": null });
    let step = json!({ "rollout": rollout, "context": context });
    let metric = json!({ "name": "check", "provider": { "plugin": { name: config } } });
    let run = json!({ "metadata": { "name": "run", "namespace": "default" },
        "spec": { "metrics": [metric] }, "status": {} });
    let measuring = json!({ "analysisRun": run, "metric": metric });
    let measured = json!({ "analysisRun": run, "metric": metric,
        "measurement": { "phase": "Running", "startedAt": "2026-01-01T00:00:00Z" } });
    let weight = json!({ "rollout": rollout, "desiredWeight": 20, "additionalDestinations": [] });
    let hashes = json!({ "rollout": rollout, "canaryHash": "abc", "stableHash": "def" });
    let header = json!({ "rollout": rollout, "setHeaderRoute": { "name": "check" } });
    let mirror = json!({ "rollout": rollout, "setMirrorRoute": { "name": "check" } });
    let alone = json!({ "rollout": rollout });
    let collect = json!({ "analysisRun": run, "metric": metric, "limit": 5 });
    match interface {
        PluginKind::Step => vec![
            ("Run answers with a phase", "Run", step.clone(), phase),
            ("Terminate is done when it answers", "Terminate", step.clone(), ended),
            ("Abort is done when it answers", "Abort", step, ended),
            ("Type is a text", "Type", Value::Null, text),
        ],
        PluginKind::Metric => vec![
            ("Run answers with a phase", "Run", measuring.clone(), phase),
            ("Resume answers with a phase", "Resume", measured.clone(), phase),
            ("Terminate answers with a phase", "Terminate", measured, phase),
            ("GetMetadata is a map of texts", "GetMetadata", json!({ "metric": metric }), texts),
            ("GarbageCollect is answered", "GarbageCollect", collect, anything),
            ("Type is a text", "Type", Value::Null, text),
        ],
        PluginKind::Router => vec![
            ("UpdateHash is answered", "UpdateHash", hashes, anything),
            ("SetWeight is answered", "SetWeight", weight.clone(), anything),
            ("VerifyWeight is yes, no or unknown", "VerifyWeight", weight, verified),
            ("SetHeaderRoute is answered", "SetHeaderRoute", header, anything),
            ("SetMirrorRoute is answered", "SetMirrorRoute", mirror, anything),
            ("RemoveManagedRoutes is answered", "RemoveManagedRoutes", alone, anything),
            ("Type is a text", "Type", Value::Null, text),
        ],
    }
}

fn phase(reply: &Value) -> Result<(), String> {
    match reply["phase"].as_str() {
        Some("Running" | "Successful" | "Failed" | "Error" | "Inconclusive" | "") => Ok(()),
        _ => Err(format!("phase: expected Running, Successful, Failed or Error, found {reply}")),
    }
}

fn ended(reply: &Value) -> Result<(), String> {
    phase(reply)?;
    match reply["phase"].as_str() {
        Some("Running") => Err("phase: Running, but nobody asks again".to_owned()),
        _ => Ok(()),
    }
}

fn text(reply: &Value) -> Result<(), String> {
    reply.is_string().then_some(()).ok_or_else(|| format!("expected a text, found {reply}"))
}

fn texts(reply: &Value) -> Result<(), String> {
    let all = reply.as_object().is_some_and(|map| map.values().all(Value::is_string));
    (all || reply.is_null()).then_some(()).ok_or_else(|| format!("expected texts, found {reply}"))
}

fn verified(reply: &Value) -> Result<(), String> {
    let known = reply["verified"].is_boolean() || reply["verified"].is_null();
    known.then_some(()).ok_or_else(|| format!("verified: expected true, false or null: {reply}"))
}

fn anything(_: &Value) -> Result<(), String> {
    Ok(())
}
