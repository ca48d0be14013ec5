//! Does a scenario end as it should when writes of the controller go wrong: those it names itself,
//! and then any one of them?

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use thiserror::Error;

use super::{
    deeds, reported,
    scenario::{RealScenario, Telling},
};
use crate::{
    Failure,
    plane::User,
    proxy::{Fault, Nth, Planned},
    stage::Stage,
    summary::Summary,
};

/// Runs at once. Each is mostly waiting for pauses and pods, so more than there are processors.
const AT_ONCE: usize = 8;

/// More writes than any scenario needs: past it, something writes without end.
const MOST_WRITES: usize = 500;

/// Points that may lie past the end of their run.
const MISSED_AT_MOST_ONE_IN: usize = 10;

#[derive(Debug, Error)]
enum Differs {
    #[error("{missed} of {points} writes never came: expected about as many as undisturbed")]
    NeverCame { missed: usize, points: usize },
    #[error("its fault {0:?} never came: expected more than the {1} writes there were")]
    OwnNeverCame(Planned, usize),
    #[error("{0} writes in the undisturbed run: expected fewer than {MOST_WRITES}")]
    TooManyWrites(usize),
    #[error("ended otherwise than the undisturbed run:\n  {found}\nexpected\n  {expected}")]
    End { found: Value, expected: Value },
}

/// A scenario, how it ends undisturbed, and how many of its faults met no write.
struct Sweep<'s> {
    scenario: &'s RealScenario,
    end: Value,
    writes: usize,
    missed: AtomicUsize,
}

/// Scenarios that name faults themselves, all at once: each has a controller of its own, behind a
/// proxy.
pub async fn as_told(stage: &Stage, scenarios: &[RealScenario]) -> Summary {
    let told = scenarios.iter().filter(|scenario| !scenario.faults().is_empty());
    let runs = told.map(|scenario| {
        reported(scenario.name(), async { alone(stage, scenario, "").await.map(drop) })
    });
    let summaries: Vec<Summary> = stream::iter(runs).buffer_unordered(AT_ONCE).collect().await;
    summaries.into_iter().sum()
}

/// For each scenario one run to count the writes, then one for each write and fault: those of all
/// scenarios in one row, so that nobody waits for the last run of each scenario.
pub async fn everywhere(
    stage: &Stage,
    scenarios: &[RealScenario],
    faults: &[Fault],
) -> Result<Summary, Failure> {
    let counted = scenarios.iter().map(|scenario| async move {
        let (end, writes) = alone(stage, scenario, "undisturbed").await?;
        println!("  {}: {writes} writes, {} faults each", scenario.name(), faults.len());
        Ok::<_, Failure>(Sweep { scenario, end, writes, missed: AtomicUsize::new(0) })
    });
    let sweeps: Vec<Sweep<'_>> = stream::iter(counted).buffered(AT_ONCE).try_collect().await?;
    let runs = sweeps.iter().flat_map(|sweep| sweep.points(faults).map(move |at| (sweep, at)));
    let runs = runs.map(|(sweep, (number, fault))| async move {
        let name = format!("{} {}", sweep.scenario.name(), label(number, fault));
        reported(&name, sweep.meets(stage, number, fault)).await
    });
    let summaries: Vec<Summary> = stream::iter(runs).buffer_unordered(AT_ONCE).collect().await;
    let mut summary: Summary = summaries.into_iter().sum();
    for Sweep { scenario, writes, missed, .. } in sweeps {
        let struck = few_missed(missed.into_inner(), writes * faults.len());
        summary += reported(&format!("{} struck", scenario.name()), async { Ok(struck?) }).await;
    }
    Ok(summary)
}

impl Sweep<'_> {
    /// Every write with every fault.
    fn points(&self, faults: &[Fault]) -> impl Iterator<Item = (usize, Fault)> {
        (1..=self.writes).flat_map(move |number| faults.iter().map(move |fault| (number, *fault)))
    }

    /// One of them.
    async fn meets(&self, stage: &Stage, number: usize, fault: Fault) -> Result<(), Failure> {
        if !disturbed(stage, self.scenario, number, fault, &self.end).await? {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// On a busy machine two status writes may become one, so the last point may lie past the end of a
/// run. Where many do, the sweep proves nothing.
fn few_missed(missed: usize, points: usize) -> Result<(), Differs> {
    if missed * MISSED_AT_MOST_ONE_IN > points {
        return Err(Differs::NeverCame { missed, points });
    }
    Ok(())
}

/// A run with the scenario's own faults and no other: the end, and how many writes led to it.
async fn alone(
    stage: &Stage,
    scenario: &RealScenario,
    run: &str,
) -> Result<(Value, usize), Failure> {
    let namespace = scenario.namespace(run);
    let (controller, proxy) =
        stage.disturbed(scenario.part(), &namespace, scenario.faults()).await?;
    let end = scenario.play(stage, &controller, &namespace, Telling::Strict).await?;
    let writes = proxy.writes().len();
    if let Some(missed) = proxy.missed().into_iter().next() {
        return Err(Differs::OwnNeverCame(missed, writes).into());
    }
    if writes >= MOST_WRITES {
        return Err(Differs::TooManyWrites(writes).into());
    }
    Ok((end, writes))
}

/// One write goes wrong, and the end is the same. False where that write never came.
async fn disturbed(
    stage: &Stage,
    scenario: &RealScenario,
    number: usize,
    fault: Fault,
    expected: &Value,
) -> Result<bool, Failure> {
    let namespace = scenario.namespace(&label(number, fault));
    // First: of two faults at one write this one counts.
    let mut plan = vec![Planned { write: Nth::OfAll(number), fault }];
    plan.extend(scenario.faults());
    let (controller, proxy) = stage.disturbed(scenario.part(), &namespace, plan.clone()).await?;
    let found = scenario.play(stage, &controller, &namespace, Telling::Free).await?;
    if found != *expected {
        return Err(Differs::End { found, expected: expected.clone() }.into());
    }
    // A run that held is of no more use, and its pods cost the others time.
    drop(controller);
    deeds::remove_namespace(&stage.plane.client(User::Person).await?, &namespace).await?;
    Ok(!proxy.missed().contains(&plan[0]))
}

/// `kill-before-3`; part of a namespace's name.
fn label(number: usize, fault: Fault) -> String {
    match fault {
        Fault::KillBefore => format!("kill-before-{number}"),
        Fault::KillAfter => format!("kill-after-{number}"),
        Fault::LoseAnswer => format!("lose-answer-{number}"),
        Fault::Unreachable => format!("unreachable-{number}"),
        Fault::Answer(code) => format!("answer-{code}-{number}"),
    }
}

#[test]
fn a_sweep_that_mostly_missed_proves_nothing() {
    assert!(few_missed(2, 104).is_ok());
    assert!(few_missed(11, 104).is_err());
}
