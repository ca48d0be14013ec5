//! Do all scenarios hold when one controller of each kind has them all at once?

use futures::{StreamExt, stream};

use super::{
    reported,
    story::{Story, Telling},
};
use crate::{
    stage::{Kept, Part, Stage},
    summary::Summary,
};

/// Each scenario in a namespace of its own, except those whose controller meets faults: these would
/// strike the others.
pub async fn play(stage: &Stage, controllers: &[(Part, Kept)], stories: &[Story]) -> Summary {
    let undisturbed = stories.iter().filter(|story| story.faults().is_empty());
    let runs = undisturbed.map(|story| async {
        let namespace = story.namespace("");
        let (_, controller) = controllers
            .iter()
            .find(|(part, _)| *part == story.part())
            .expect("every part has its controller");
        let run = story.play(stage, controller, &namespace, Telling::Strict);
        reported(story.name(), async { run.await.map(drop) }).await
    });
    let at_once = stories.len().max(1);
    let summaries: Vec<Summary> = stream::iter(runs).buffer_unordered(at_once).collect().await;
    summaries.into_iter().sum()
}
