//! `cargo xtask takeover`: who takes over, and what is lost? Two of our controllers with the durations
//! of production, then Argo Rollouts' own controller and ours on one Lease, on a real control plane.

mod argo;
mod pair;
mod seen;

use std::time::Instant;

pub use seen::{holder, reached, rollout, set_image};
use thiserror::Error;

use crate::{
    Failure, interrupt::or_interrupted, repository, servers::Servers, stage::Stage,
    summary::Summary,
};

#[derive(Debug, Error)]
#[error("unknown part {0}: expected pair, argo, or none for both")]
struct UnknownPart(String);

/// Runs the task.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    if let Some(other) = arguments.iter().find(|word| !["pair", "argo"].contains(&word.as_str())) {
        return Err(UnknownPart(other.clone()).into());
    }
    let is_wanted = |part: &str| arguments.is_empty() || arguments.iter().any(|word| word == part);
    let servers = Servers::ready(&repository())?;
    or_interrupted(async {
        let mut stage = Stage::set(&servers).await?;
        let mut summary = Summary::default();
        // First: the other part kills servers.
        if is_wanted("argo") {
            summary += argo::play(&stage).await;
        }
        if is_wanted("pair") {
            summary += pair::play(&mut stage).await;
        }
        if summary.failed > 0 {
            println!("  the logs are in {}", stage.plane.keep_logs()?.display());
        }
        Ok(summary)
    })
}

/// One check as one line; it says what it measured.
fn told(name: &str, began: Instant, result: &Result<String, Failure>) -> Summary {
    let seconds = began.elapsed().as_secs();
    match result {
        Ok(found) => println!("  {name}: {found} ({seconds} s)"),
        Err(error) => println!("  {name}: FAILED after {seconds} s: {error}"),
    }
    Summary::of(result.is_ok())
}
