//! `cargo xtask dataplane`: do users notice an update? Real Traefik, or real istiod with Envoy, splits
//! real requests between pods that answer them, while Rollouts are updated, aborted, rolled back and
//! interrupted; one of them by a traffic plugin of Argo Rollouts.
//!
//! All of it runs in a user and network namespace, where pods can have addresses that the API
//! server accepts and a proxy can reach. Nothing there sees the machine's own network.

mod apps;
mod fetch;
mod front;
mod istio;
mod load;
mod play;
mod pods;
mod room;
mod traefik;

use std::path::PathBuf;

use thiserror::Error;

use crate::{
    Failure, argo, build,
    interrupt::or_interrupted,
    plugins, repository,
    servers::Servers,
    stage::{Programs, Stage},
    summary::Summary,
};
use front::DataPlane;
use room::Room;

#[derive(Debug, Error)]
enum DataplaneError {
    #[error(
        "unknown argument {0}: expected traefik or istio, and names of its routers or none for all"
    )]
    UnknownArgument(String),
}

/// Runs the task: the data plane, then its routers that are wanted.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let (plane, names) = match arguments.split_first() {
        None => (DataPlane::Traefik, &[][..]),
        Some((first, rest)) => match DataPlane::ALL.into_iter().find(|it| it.name() == first) {
            Some(plane) => (plane, rest),
            None => return Err(DataplaneError::UnknownArgument(first.clone()).into()),
        },
    };
    if let Some(unknown) = names.iter().find(|name| !plane.routers().contains(&name.as_str())) {
        return Err(DataplaneError::UnknownArgument(unknown.clone()).into());
    }
    if let Some(programs) = room::programs()? {
        return inside(programs, plane, names);
    }
    // Whatever is downloaded or built comes first: there is no network inside.
    let servers = Servers::ready(&repository())?;
    sample_plugin(plane)?;
    let installed = match plane.ready()? {
        Ok(installed) => installed,
        Err(why) => return Ok(skipped(&why)),
    };
    match Room::open(&installed, &servers)? {
        Ok(room) => {
            let [program, operator] = build::tested_programs(["gradus", "database-operator"])?;
            room.run(&Programs { program, operator }, plane, names)
        }
        Err(why) => Ok(skipped(&why)),
    }
}

/// The folder with Argo Rollouts' sample of a traffic plugin, built from its Go module, where one of the
/// applications needs it.
fn sample_plugin(plane: DataPlane) -> Result<Option<PathBuf>, Failure> {
    if !plane.routers().contains(&apps::PLUGIN) {
        return Ok(None);
    }
    let (_, _, package) = plugins::NGINX;
    Ok(Some(argo::sample_plugins(&[package])?))
}

/// What every test run does: the data plane that is there without a build. The traffic plugin of Argo
/// Rollouts is tried by the command alone: it has not been seen to end yet.
pub fn check() -> Result<Summary, Failure> {
    run(&["traefik", "gateway", "nginx", "traefik", "blue-green"].map(str::to_owned))
}

fn skipped(why: &str) -> Summary {
    println!("  data plane skipped: {why}");
    Summary::skipped()
}

fn inside(programs: Programs, plane: DataPlane, names: &[String]) -> Result<Summary, Failure> {
    let servers = Servers::ready(&repository())?;
    let installed = plane.ready()??;
    let sample = sample_plugin(plane)?;
    or_interrupted(async {
        let stage = Stage::with(&servers, programs).await?;
        let result = play::all(&stage, plane, &installed, sample.as_deref(), names).await;
        if !matches!(result, Ok(Summary { failed: 0, .. })) {
            println!("  the logs are in {}", stage.plane.keep_logs()?.display());
        }
        let mut summary = result?;
        summary.failed += stage.deaths();
        Ok(summary)
    })
}
