//! The life of one Database on an embedded cluster, told line by line as it happens.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use gradus_controller::clock::Clock;
use gradus_controller::connect;
use gradus_controller::health::Health;
use gradus_controller::production::{Parts, control};
use gradus_controller::rate::Rate;
use gradus_controller::run::Settings;
use gradus_controller::telemetry::Metrics;
use gradus_simkube::behave::{Behaviour, Behaviours};
use gradus_simkube::kinds::KindId;
use gradus_simkube::request::{Request, Verb};
use gradus_simkube::server::Server;
use gradus_simkube::{ApiError, SimCluster};
use serde_json::{Value, json};

use crate::engine::Databases;

const NAMESPACE: &str = "default";
const NO_LIMIT: Rate = Rate { per_second: 0.0, burst: 1 };
/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is done, in words and as a write, and the phase that follows.
const STORY: [(&str, Deed, &str); 8] = [
    ("somebody creates Database orders", Deed::Create, "Ready"),
    ("somebody asks for PostgreSQL 15.7", Deed::Spec("version", "\"15.7\""), "Ready"),
    ("somebody deletes the Service", Deed::Delete("v1", "Service", "orders"), "Ready"),
    ("somebody asks for less storage", Deed::Spec("storage", "\"1Mi\""), "Refused"),
    ("somebody takes that back", Deed::Spec("storage", "\"1Gi\""), "Ready"),
    ("somebody stops it", Deed::Spec("replicas", "0"), "Stopped"),
    ("somebody starts it", Deed::Spec("replicas", "1"), "Ready"),
    (
        "somebody deletes the Secret",
        Deed::Delete("v1", "Secret", "orders-credentials"),
        "CredentialsLost",
    ),
];

enum Deed {
    Create,
    /// Sets a field of the spec.
    Spec(&'static str, &'static str),
    /// Deletes an object of this version, kind and name.
    Delete(&'static str, &'static str, &'static str),
}

/// Plays the story once, in a few seconds.
pub async fn play() -> anyhow::Result<()> {
    let clock = Clock::system();
    let server = Server::new(cluster(clock)?, Arc::new(move || clock.now()));
    let listening = server.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let workers = server.clone();
    tokio::spawn(async move { workers.run_workers().await });
    let config = kube::Config::new(listening.url().parse()?);
    let (health, worlds) = Health::new();
    let parts = Parts {
        client: connect::client(config)?.client,
        rate: NO_LIMIT,
        clock,
        metrics: Metrics::new(),
        health,
        worlds,
        settings: Settings::default(),
    };
    tokio::select! {
        told = tell(&server) => told,
        () = control::<Databases>(parts, std::future::pending()) => Ok(()),
    }
}

async fn tell(server: &Server) -> anyhow::Result<()> {
    for (words, deed, phase) in STORY {
        println!("\n{words}");
        server.with(|cluster, now| {
            let request = request(cluster, &deed)?;
            cluster.call(&request, now).map_err(refused)
        })?;
        follow(server, phase).await?;
    }
    Ok(())
}

/// Tells what the controller reports until the Database stands as expected.
async fn follow(server: &Server, phase: &str) -> anyhow::Result<()> {
    let began = tokio::time::Instant::now();
    let mut told = server.with(|cluster, _| events(cluster)).len();
    loop {
        let (events, status, is_observed) = server.with(|cluster, _| {
            let status = database(cluster).map(|one| one["status"].clone()).unwrap_or_default();
            let generation = database(cluster).map(|one| one["metadata"]["generation"].clone());
            let is_observed = Some(&status["observedGeneration"]) == generation.as_ref();
            (events(cluster), status, is_observed)
        });
        for event in events.iter().skip(told) {
            println!("  {event}");
        }
        told = told.max(events.len());
        let is_quiet = began.elapsed() > Duration::from_millis(600);
        if is_observed && status["phase"] == phase && is_quiet {
            let condition = status["conditions"].as_array().and_then(|list| list.last());
            let words = condition.and_then(|one| one["message"].as_str()).unwrap_or_default();
            println!("  = {phase}: {words}");
            return Ok(());
        }
        ensure!(began.elapsed() < PATIENCE, "it stands at {status}, expected {phase}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A cluster that knows Databases; a pod takes half a second to start.
fn cluster(clock: Clock) -> anyhow::Result<SimCluster> {
    let image = Behaviour { image: "*".to_owned(), start_up_seconds: 0.5, ..Behaviour::default() };
    let mut cluster = SimCluster::new(Behaviours::new(vec![image]), clock.now());
    let definition: Value = serde_saphyr::from_str(include_str!("../crd.yaml"))?;
    let request = Request::create(KindId::CUSTOM_RESOURCE_DEFINITION, "", definition);
    cluster.call(&request, clock.now()).map_err(refused)?;
    Ok(cluster)
}

fn request(cluster: &SimCluster, deed: &Deed) -> anyhow::Result<Request> {
    let kind = |version: &str, kind: &str| {
        cluster.kinds().by_name(version, kind).with_context(|| format!("no kind {kind}"))
    };
    let databases = kind("database.gradus.dev/v1", "Database")?;
    Ok(match deed {
        Deed::Create => {
            let manifest: Value = serde_saphyr::from_str(include_str!("../orders.yaml"))?;
            Request::create(databases, NAMESPACE, manifest)
        }
        Deed::Spec(field, value) => {
            let value: Value = serde_json::from_str(value)?;
            let patch = json!({ "spec": { *field: value } });
            Request::merge(databases, NAMESPACE, "orders", patch)
        }
        Deed::Delete(version, name, object) => {
            Request::new(Verb::Delete, kind(version, name)?, NAMESPACE, object)
        }
    })
}

fn database(cluster: &SimCluster) -> Option<Value> {
    let kind = cluster.kinds().by_name("database.gradus.dev/v1", "Database")?;
    Some(cluster.get(kind, NAMESPACE, "orders")?.to_json(cluster.kinds()))
}

fn events(cluster: &SimCluster) -> Vec<String> {
    let mut events: Vec<_> = cluster.list(KindId::EVENT, NAMESPACE).collect();
    events.sort_by_key(|event| event.version);
    let text = |event: &gradus_simkube::object::Object, field: &str| {
        event.rest.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    events.iter().map(|one| format!("{}: {}", text(one, "reason"), text(one, "message"))).collect()
}

fn refused(error: ApiError) -> anyhow::Error {
    anyhow!("the embedded cluster refused: {}", error.message)
}
