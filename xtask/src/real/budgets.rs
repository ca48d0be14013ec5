//! Does a rollout keep to its budget of writes on a real server, as its audit log counts them?

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use gradus_lab::budgets::{self, Budget};
use thiserror::Error;

use super::{
    quiet::list,
    reported,
    scenario::{Counted, RealScenario},
};
use crate::{
    Failure,
    stage::{Stage, Supervised},
    summary::Summary,
};

#[derive(Debug, Error)]
#[error("{} writes in {seconds} s, {overtaken} conflicts aside: expected at most {most}, of which one a second is for the pace of a real server; {}", found.values().sum::<usize>(), list(found))]
struct Over {
    most: usize,
    seconds: usize,
    overtaken: usize,
    found: BTreeMap<String, usize>,
}

/// All budgets at once: on top of each, one write for every second that was started. A try that was
/// refused because somebody else had written meanwhile is no write; it is told.
pub async fn are_kept(stage: &Stage, controller: &Supervised) -> Summary {
    // That nothing is written where nothing changes is counted apart, in a quiet cluster.
    let budgets: Vec<Budget> =
        budgets::all().into_iter().filter(|budget| budget.most > 0).collect();
    let runs = budgets.iter().map(|budget| async move {
        let name = format!("budget of {}", budget.what);
        reported(&name, is_kept(stage, controller, budget)).await
    });
    let at_once = budgets.len().max(1);
    let summaries: Vec<Summary> = stream::iter(runs).buffer_unordered(at_once).collect().await;
    summaries.into_iter().sum()
}

async fn is_kept(stage: &Stage, controller: &Supervised, budget: &Budget) -> Result<(), Failure> {
    let Counted { writes: found, overtaken, seconds } =
        RealScenario::of(budget.scenario()).count(stage, controller).await?;
    let most = budget.before() + budget.most + seconds;
    if found.values().sum::<usize>() > most {
        return Err(Over { most, seconds, overtaken, found }.into());
    }
    if overtaken > 0 {
        println!("  budget of {}: conflicts: {overtaken}", budget.what);
    }
    Ok(())
}
