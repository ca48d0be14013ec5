//! `cargo xtask dataplane`: do users notice an update? Real Traefik splits real requests between
//! pods that answer them, while Rollouts are updated, aborted, rolled back and interrupted.
//!
//! All of it runs in a user and network namespace, where pods can have addresses that the API
//! server accepts and a proxy can reach. Nothing there sees the machine's own network.

mod apps;
mod load;
mod play;
mod pods;
mod room;
mod traefik;

use thiserror::Error;

use crate::{
    Failure, build,
    interrupt::or_interrupted,
    repository,
    servers::Servers,
    stage::{Programs, Stage},
    summary::Summary,
};
use room::Room;
use traefik::Traefik;

#[derive(Debug, Error)]
enum DataplaneError {
    #[error("unknown argument {0}: expected traefik, and names of routers or none for all")]
    UnknownArgument(String),
}

/// Runs the task: `traefik`, then the routers that are wanted.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let names = match arguments.split_first() {
        None => &[],
        Some((first, rest)) if first == "traefik" => rest,
        Some((first, _)) => return Err(DataplaneError::UnknownArgument(first.clone()).into()),
    };
    if let Some(unknown) = names.iter().find(|name| !apps::ROUTERS.contains(&name.as_str())) {
        return Err(DataplaneError::UnknownArgument(unknown.clone()).into());
    }
    if let Some(programs) = room::programs()? {
        return inside(programs, names);
    }
    // Whatever is downloaded or built comes first: there is no network inside.
    let servers = Servers::ready(&repository())?;
    let traefik = match Traefik::ready()? {
        Ok(traefik) => traefik,
        Err(why) => return Ok(skipped(&why)),
    };
    match Room::open(&traefik, &servers)? {
        Ok(room) => {
            let [program, operator] = build::tested_programs(["gradus", "database-operator"])?;
            room.run(&Programs { program, operator }, names)
        }
        Err(why) => Ok(skipped(&why)),
    }
}

/// What every test run does.
pub fn check() -> Result<Summary, Failure> {
    run(&[])
}

fn skipped(why: &str) -> Summary {
    println!("  data plane skipped: {why}");
    Summary::skipped()
}

fn inside(programs: Programs, names: &[String]) -> Result<Summary, Failure> {
    let servers = Servers::ready(&repository())?;
    let traefik = Traefik::ready()??;
    or_interrupted(async {
        let stage = Stage::with(&servers, programs).await?;
        let result = play::all(&stage, &traefik, names).await;
        if !matches!(result, Ok(Summary { failed: 0, .. })) {
            println!("  the logs are in {}", stage.plane.keep_logs()?.display());
        }
        let mut summary = result?;
        summary.failed += stage.deaths();
        Ok(summary)
    })
}
