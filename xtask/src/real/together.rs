//! Do all scenarios hold when one controller of each kind has them all at once?

use futures::{StreamExt, stream};

use super::{
    reported,
    scenario::{RealScenario, Telling},
};
use crate::{
    stage::{ControllerKind, Stage, Supervised},
    summary::Summary,
};

/// Each scenario in a namespace of its own, except those whose controller meets faults: these would
/// strike the others.
pub async fn play(
    stage: &Stage,
    controllers: &[(ControllerKind, Supervised)],
    scenarios: &[RealScenario],
) -> Summary {
    let undisturbed = scenarios.iter().filter(|scenario| scenario.faults().is_empty());
    let runs = undisturbed.map(|scenario| async {
        let namespace = scenario.namespace("");
        let (_, controller) = controllers
            .iter()
            .find(|(part, _)| *part == scenario.part())
            .expect("every part has its controller");
        let run = scenario.play(stage, controller, &namespace, Telling::Strict);
        reported(scenario.name(), async { run.await.map(drop) }).await
    });
    let at_once = scenarios.len().max(1);
    let summaries: Vec<Summary> = stream::iter(runs).buffer_unordered(at_once).collect().await;
    summaries.into_iter().sum()
}
