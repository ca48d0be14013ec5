//! Do all scenarios hold when one controller has them all at once?

use futures::{StreamExt, stream};

use super::{reported, story::Story};
use crate::{stage::Stage, summary::Summary};

/// Each scenario in a namespace of its own.
pub async fn play(stage: &Stage, stories: &[Story]) -> Summary {
    let runs = stories.iter().map(|story| async {
        let namespace = story.namespace("");
        let run = async { story.play(stage, &namespace).await.map(drop) };
        reported(&story.name, run).await
    });
    let summaries: Vec<Summary> =
        stream::iter(runs).buffer_unordered(stories.len().max(1)).collect().await;
    summaries.into_iter().sum()
}
