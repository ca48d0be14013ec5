//! Does a scenario end as it should when any one of the controller's writes goes wrong?

use futures::{StreamExt, stream};
use serde_json::Value;
use thiserror::Error;

use super::{
    deeds, reported,
    story::{Story, Telling},
};
use crate::{Failure, plane::User, proxy::Fault, stage::Stage, summary::Summary};

/// Runs at once. Each is mostly waiting for pauses and pods, so more than there are processors.
const AT_ONCE: usize = 6;

/// More writes than any story needs: past it, something writes without end.
const MOST_WRITES: usize = 500;

#[derive(Debug, Error)]
enum Differs {
    #[error("write {number} never came: expected at least as many as in the undisturbed run")]
    NeverCame { number: usize },
    #[error("{0} writes in the undisturbed run: expected fewer than {MOST_WRITES}")]
    TooManyWrites(usize),
    #[error("ended otherwise than the undisturbed run:\n  {found}\nexpected\n  {expected}")]
    End { found: Value, expected: Value },
}

/// For each story: one run to count the writes, then one for each write and fault.
pub async fn everywhere(
    stage: &Stage,
    stories: &[Story],
    faults: &[Fault],
) -> Result<Summary, Failure> {
    let mut summary = Summary::default();
    for story in stories {
        let (end, writes) = undisturbed(stage, story).await?;
        println!("  {}: {writes} writes, {} faults each", story.name(), faults.len());
        let points =
            (1..=writes).flat_map(|number| faults.iter().map(move |fault| (number, *fault)));
        let runs = points.map(|(number, fault)| {
            let name = format!("{} {}", story.name(), label(number, fault));
            let end = &end;
            async move { reported(&name, disturbed(stage, story, number, fault, end)).await }
        });
        let summaries: Vec<Summary> = stream::iter(runs).buffer_unordered(AT_ONCE).collect().await;
        summary += summaries.into_iter().sum();
    }
    Ok(summary)
}

/// The end, and how many writes led to it.
async fn undisturbed(stage: &Stage, story: &Story) -> Result<(Value, usize), Failure> {
    let namespace = story.namespace("undisturbed");
    let (controller, proxy) = stage.disturbed(story.part(), &namespace, None).await?;
    let end = story.play(stage, &controller, &namespace, Telling::Strict).await?;
    let writes = proxy.writes().len();
    if writes >= MOST_WRITES {
        return Err(Differs::TooManyWrites(writes).into());
    }
    Ok((end, writes))
}

async fn disturbed(
    stage: &Stage,
    story: &Story,
    number: usize,
    fault: Fault,
    expected: &Value,
) -> Result<(), Failure> {
    let namespace = story.namespace(&label(number, fault));
    let (controller, proxy) =
        stage.disturbed(story.part(), &namespace, Some((number, fault))).await?;
    let found = story.play(stage, &controller, &namespace, Telling::Free).await?;
    if !proxy.has_struck() {
        return Err(Differs::NeverCame { number }.into());
    }
    if found != *expected {
        return Err(Differs::End { found, expected: expected.clone() }.into());
    }
    // A run that held is of no more use, and its pods cost the others time.
    drop(controller);
    Ok(deeds::remove_namespace(&stage.plane.client(User::Person).await?, &namespace).await?)
}

/// `kill-before-3`; part of a namespace's name.
fn label(number: usize, fault: Fault) -> String {
    match fault {
        Fault::KillBefore => format!("kill-before-{number}"),
        Fault::KillAfter => format!("kill-after-{number}"),
        Fault::LoseAnswer => format!("lose-answer-{number}"),
        Fault::Answer(code) => format!("answer-{code}-{number}"),
    }
}
