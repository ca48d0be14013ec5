//! `cargo xtask balancers`: does a weight wait until AWS says that a load balancer has it? moto answers as
//! AWS does; what the AWS load balancer controller would write there is written by this test, when it
//! wants to.

pub mod moto;

use std::time::{Duration, Instant};

use gradus_api::names::{API_VERSION, kind};
use gradus_lab::{person::Action, sight::Sight};
use gradus_simkube::behave::Behaviours;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use thiserror::Error;

pub use moto::REGION;

use crate::{
    Failure,
    controller::Settings,
    interrupt::or_interrupted,
    plane::User,
    real::{apply, create_namespace, find, perform},
    repository,
    servers::Servers,
    stage::{ControllerKind, Stage},
    summary::Summary,
};
use moto::{Balancer, Moto};

const NAMESPACE: &str = "balancers";

const NAME: &str = "web";

/// How long one act may take; a load balancer that is not where it should be is asked every 10 s.
const PATIENCE: Duration = Duration::from_secs(120);

const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What a wait for a load balancer must outlast: the controller has asked more than once by then.
const HELD_FOR: Duration = Duration::from_secs(12);

#[derive(Debug, Error)]
enum ActError {
    #[error("{what}: expected {expected}, the status is {found}")]
    Late { what: &'static str, expected: Value, found: Value },
}

/// Runs the task.
pub fn run(_: &[String]) -> Result<Summary, Failure> {
    let servers = Servers::ready(&repository())?;
    let moto = match Moto::ready()? {
        Ok(moto) => moto,
        Err(why) => {
            println!("  load balancers skipped: {why}");
            return Ok(Summary::skipped());
        }
    };
    or_interrupted(async {
        let stage = Stage::set(&servers).await?;
        let result = play(&stage, &moto).await;
        if result.is_err() {
            println!("  the logs are in {}", stage.plane.keep_logs()?.display());
        }
        result.map(|()| Summary::of(stage.deaths() == 0))
    })
}

async fn play(stage: &Stage, moto: &Moto) -> Result<(), Failure> {
    let aws = moto.start(stage.plane.folder()).await?;
    let balancer =
        aws.balancer(&["stable", "canary"], |service| format!("{NAMESPACE}/{NAME}-{service}:80"));
    let balancer = balancer.await?;
    let client = stage.plane.client(User::Person).await?;
    create_namespace(&client, NAMESPACE).await?;
    stage.kubelet.behave(NAMESPACE, Behaviours::default());
    let settings = Settings {
        name: NAMESPACE.to_owned(),
        kubeconfig: stage.plane.kubeconfig(User::Controller),
        metric_allow: Some("127.0.0.0/8".to_owned()),
        aws: Some(aws.address()),
        ..Settings::default()
    };
    let controller = stage.controller_with(ControllerKind::Rollouts, settings).await?;
    for object in objects() {
        apply(&client, NAMESPACE, &object).await?;
    }
    // What the AWS load balancer controller notes once there is a load balancer.
    let ingress = json!({ "loadBalancer": { "ingress": [{ "hostname": balancer.dns_name }] } });
    stage.plane.patch_status(NAMESPACE, &format!("ingress/{NAME}"), &ingress)?;
    let outcome = acts(&client, &aws, &balancer).await;
    drop(aws);
    outcome?;
    // Without AWS nothing goes forward, and everything goes back.
    does(&client, Action::SetImage("web:3".to_owned())).await?;
    let held = json!({ "phase": "Progressing", "weight": 25, "verified": false,
        "held": "WeightVerifyError" });
    reaches(&client, "AWS is away", &held).await?;
    does(&client, Action::Abort).await?;
    let back = json!({ "phase": "Degraded", "weight": 0 });
    reaches(&client, "an abort waits for nobody", &back).await?;
    drop(controller);
    Ok(())
}

/// An update that waits at 25 % and at its end, each time until the load balancer has the weights.
async fn acts(client: &Client, aws: &moto::Running, balancer: &Balancer) -> Result<(), Failure> {
    reaches(client, "the first deployment", &json!({ "phase": "Healthy" })).await?;
    does(client, Action::SetImage("web:2".to_owned())).await?;
    let held = json!({ "phase": "Progressing", "weight": 25, "verified": false, "step": 0,
        "held": "TargetGroupUnverified" });
    reaches(client, "the load balancer has nothing yet", &held).await?;
    tokio::time::sleep(HELD_FOR).await;
    reaches(client, "it waits", &held).await?;
    aws.split(balancer, &[75, 25]).await?;
    let verified = json!({ "phase": "Paused", "weight": 25, "verified": true, "step": 1,
        "balancer": NAME });
    reaches(client, "25 % are in force", &verified).await?;
    does(client, Action::Promote).await?;
    let held = json!({ "phase": "Progressing", "weight": 100, "verified": false,
        "held": "TargetGroupUnverified" });
    reaches(client, "the end waits, too", &held).await?;
    aws.split(balancer, &[0, 100]).await?;
    reaches(client, "promoted", &json!({ "phase": "Healthy", "weight": 0 })).await?;
    aws.split(balancer, &[100, 0]).await
}

fn objects() -> Vec<Value> {
    let service = |name: &str| {
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
            "spec": { "selector": { "app": NAME }, "ports": [{ "port": 80 }] } })
    };
    let backend = json!({ "service": { "name": "root", "port": { "name": "use-annotation" } } });
    let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
    let ingress = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": NAME },
        "spec": { "ingressClassName": "alb", "rules": [{ "http": { "paths": [path] } }] } });
    let labels = json!({ "app": NAME });
    let rollout = json!({ "apiVersion": API_VERSION, "kind": kind::ROLLOUT,
        "metadata": { "name": NAME },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
            "strategy": { "canary": {
                "stableService": "stable", "canaryService": "canary",
                "trafficRouting": {
                    "alb": { "ingress": NAME, "rootService": "root", "servicePort": 80 },
                },
                "steps": [{ "setWeight": 25 }, { "pause": {} }],
            } },
        } });
    vec![service("stable"), service("canary"), ingress, rollout]
}

async fn live(client: &Client) -> Result<Value, Failure> {
    let rollout = json!({ "apiVersion": API_VERSION, "kind": kind::ROLLOUT,
        "metadata": { "name": NAME } });
    find(client, NAMESPACE, &rollout).await
}

async fn does(client: &Client, action: Action) -> Result<(), Failure> {
    let rollout = live(client).await?;
    for write in action.writes(NAME, &Sight::of(&rollout), Timestamp::now()) {
        perform(client, NAMESPACE, &write).await?;
    }
    Ok(())
}

/// Waits until everything that is named is as expected.
async fn reaches(client: &Client, what: &'static str, expected: &Value) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        let rollout = live(client).await?;
        let status = &rollout["status"];
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let held = conditions.into_iter().find(|known| known["type"] == "Held");
        let seen = json!({
            "phase": status["phase"],
            "step": status["currentStepIndex"],
            "weight": status["canary"]["weights"]["canary"]["weight"],
            "verified": status["canary"]["weights"]["verified"],
            "held": held.map(|held| held["reason"].clone()),
            "balancer": status["alb"]["loadBalancer"]["name"],
        });
        let mut wanted = expected.as_object().into_iter().flatten();
        let is_observed = status["observedGeneration"].as_str()
            == Some(&rollout["metadata"]["generation"].to_string());
        if is_observed && wanted.all(|(field, value)| seen[field] == *value) {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            let (expected, found) = (expected.clone(), status.clone());
            return Err(ActError::Late { what, expected, found }.into());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
