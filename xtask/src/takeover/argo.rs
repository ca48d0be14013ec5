//! Argo Rollouts' own controller and ours on one Lease: ours takes over what the other left in the
//! middle, and the other takes it back. No pod is restarted, no ReplicaSet is made, nothing is lost.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use kube::{
    Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    seen::{SeenError, Standing, holder, next_holder, reached, rollout, rollouts, set_image},
    told,
};
use crate::{
    Failure, argo,
    controller::{Controller, Election, Settings},
    plane::User,
    ports,
    process::{Process, Recipe},
    real::{apply, create_namespace},
    stage::Stage,
    summary::Summary,
};

const NAMESPACE: &str = "moving";
const REACHED_WITHIN: Duration = Duration::from_secs(90);
/// A Lease of production, and a request.
const TAKEN_WITHIN: Duration = Duration::from_secs(40);
/// How long a new leader has to do harm.
const LOOKS_AROUND: Duration = Duration::from_secs(10);
/// What a dry run says that has something to do, and that the other has not done it.
const WOULD: &str = "dry run: would";
const DIFFERS: &str = "dry run: differs";
/// So long the other has to do it, and a little longer.
const DIFFERS_WITHIN: Duration = Duration::from_secs(15);

/// There and back.
pub async fn play(stage: &Stage) -> Summary {
    let began = Instant::now();
    told("from Argo Rollouts and back", began, &there_and_back(stage).await)
}

async fn there_and_back(stage: &Stage) -> Result<String, Failure> {
    let program = argo::controller_program()?;
    let client = stage.plane.client(User::Person).await?;
    create_namespace(&client, NAMESPACE).await?;
    let theirs = start_argo(&program, stage)?;
    prepare(&client).await?;

    let said = dry_run(stage, &client).await?;
    // The counts of the last pods are written a moment later.
    tokio::time::sleep(LOOKS_AROUND).await;
    let left = Standing::of(&client, NAMESPACE).await?;
    let mut ours = start_ours(stage, "gradus")?;
    let argo_holds = holder(&client).await?;
    drop(theirs);
    let (_, after) = next_holder(&client, &argo_holds, TAKEN_WITHIN).await?;
    ours.is_ready().await?;
    tokio::time::sleep(LOOKS_AROUND).await;
    left.is_kept("after Gradus took over", &Standing::of(&client, NAMESPACE).await?)?;

    goes_on(&client, "canary", "gradus").await?;
    goes_on(&client, "bluegreen", "gradus").await?;
    set_image(&client, NAMESPACE, "canary", "example.com/web:3").await?;
    is_at(&client, "canary", "Paused").await?;
    let left = Standing::of(&client, NAMESPACE).await?;
    ours.terminate()?;
    let before = holder(&client).await?;
    let _theirs = start_argo(&program, stage)?;
    next_holder(&client, &before, TAKEN_WITHIN).await?;
    tokio::time::sleep(LOOKS_AROUND).await;
    left.is_kept("after Argo Rollouts took it back", &Standing::of(&client, NAMESPACE).await?)?;
    goes_on(&client, "canary", "argo").await?;
    Ok(format!("{said}; Gradus led {after:.1?} after Argo Rollouts was killed; nothing changed"))
}

/// Four Rollouts as Argo leaves them: a canary at a pause, a blue-green update that waits, an aborted
/// canary, and one that is settled.
async fn prepare(client: &Client) -> Result<(), Failure> {
    let canary = json!({ "canary": { "steps": [{ "setWeight": 25 }, { "pause": {} }, { "setWeight": 75 }] } });
    let blue_green = json!({ "blueGreen": { "activeService": "active",
        "previewService": "preview", "autoPromotionEnabled": false } });
    for service in ["active", "preview"] {
        let spec = json!({ "selector": { "app": "bluegreen" }, "ports": [{ "port": 80 }] });
        let service = json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": service }, "spec": spec });
        apply(client, NAMESPACE, &service).await?;
    }
    let all = [
        ("canary", &canary),
        ("aborted", &canary),
        ("settled", &canary),
        ("bluegreen", &blue_green),
    ];
    for (name, strategy) in all {
        apply(client, NAMESPACE, &rollout(name, strategy)).await?;
    }
    for (name, _) in all {
        is_at(client, name, "Healthy").await?;
    }
    for name in ["canary", "aborted", "bluegreen"] {
        set_image(client, NAMESPACE, name, "example.com/web:2").await?;
    }
    for name in ["canary", "aborted", "bluegreen"] {
        is_at(client, name, "Paused").await?;
    }
    change_status(client, "aborted", json!({ "abort": true })).await?;
    is_at(client, "aborted", "Degraded").await?;
    // The counts of the last pods are written a moment later.
    tokio::time::sleep(LOOKS_AROUND).await;
    Ok(())
}

/// A dry run beside Argo Rollouts finds nothing to do that the other has not done, at rest and in an
/// update.
async fn dry_run(stage: &Stage, client: &Client) -> Result<String, Failure> {
    let mut dry = stage.mortal(&Settings {
        name: "dry-run".to_owned(),
        kubeconfig: stage.plane.kubeconfig(User::Controller),
        dry_run: true,
        ..Settings::default()
    })?;
    dry.is_ready().await?;
    tokio::time::sleep(LOOKS_AROUND).await;
    let words = dry.words();
    let wishes: Vec<&str> = words.lines().filter(|line| line.contains(WOULD)).collect();
    if !wishes.is_empty() {
        let wishes = wishes.join("\n");
        return Err(SeenError::Other(format!("the dry run wants something:\n{wishes}")).into());
    }
    // Now something happens: what the dry run decides is what Argo Rollouts does.
    set_image(client, NAMESPACE, "settled", "example.com/web:2").await?;
    is_at(client, "settled", "Paused").await?;
    goes_on(client, "settled", "argo").await?;
    tokio::time::sleep(DIFFERS_WITHIN).await;
    let words = dry.words();
    let decided = words.lines().filter(|line| line.contains(WOULD)).count();
    let others: Vec<&str> = words.lines().filter(|line| line.contains(DIFFERS)).collect();
    if decided > 0 && others.is_empty() {
        return Ok(format!(
            "a dry run beside Argo Rollouts wants nothing at rest, and none of its {decided} \
             decisions in an update differs"
        ));
    }
    let others = others.join("\n");
    Err(SeenError::Other(format!("{decided} decisions; the dry run differs:\n{others}")).into())
}

/// A promote ends the update that waits.
async fn goes_on(client: &Client, name: &str, leader: &str) -> Result<(), Failure> {
    change_status(client, name, json!({ "pauseConditions": null })).await?;
    let what = format!("Healthy under {leader}");
    reached(client, (NAMESPACE, name), (&what, REACHED_WITHIN), |status| {
        status["phase"] == "Healthy" && status["stableRS"] == status["currentPodHash"]
    })
    .await
}

async fn change_status(client: &Client, name: &str, status: Value) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "status": status }));
    rollouts(client, NAMESPACE).patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn is_at(client: &Client, name: &str, phase: &str) -> Result<(), Failure> {
    let is_there = |status: &Value| status["phase"] == phase;
    reached(client, (NAMESPACE, name), (phase, REACHED_WITHIN), is_there).await
}

fn start_ours(stage: &Stage, name: &str) -> Result<Controller, Failure> {
    stage.mortal(&Settings {
        name: name.to_owned(),
        kubeconfig: stage.plane.kubeconfig(User::Controller),
        election: Some(Election::Production),
        ..Settings::default()
    })
}

/// With its own defaults: the whole cluster, and the Lease in its own namespace.
fn start_argo(program: &Path, stage: &Stage) -> Result<Process, Failure> {
    let [metrics_port, health_port] = ports::free()?;
    let recipe = Recipe::new("argo-rollouts", program)
        .flag("kubeconfig", stage.plane.kubeconfig(User::Person))
        .flag("metricsPort", metrics_port.to_string())
        .flag("healthzPort", health_port.to_string());
    Ok(Process::start(&recipe, stage.plane.folder())?)
}
