//! Do all scenarios hold when one controller has them all at once?

use futures::{StreamExt, stream};

use super::{
    reported,
    story::{Story, Telling},
};
use crate::{
    stage::{Kept, Stage},
    summary::Summary,
};

/// Each scenario in a namespace of its own.
pub async fn play(stage: &Stage, controller: &Kept, stories: &[Story]) -> Summary {
    let runs = stories.iter().map(|story| async {
        let namespace = story.namespace("");
        let run = story.play(stage, controller, &namespace, Telling::Strict);
        reported(story.name(), async { run.await.map(drop) }).await
    });
    let at_once = stories.len().max(1);
    let summaries: Vec<Summary> = stream::iter(runs).buffer_unordered(at_once).collect().await;
    summaries.into_iter().sum()
}
