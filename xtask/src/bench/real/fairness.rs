//! Does a busy namespace delay a quiet one? Small Rollouts of a quiet namespace are updated one after
//! the other, first alone, then while everything in the busy one is updated.

use std::time::Duration;

use super::{
    Ground, SETTLES,
    crowd::{Crowd, Shape},
    phase::Meter,
    reactions,
    side::Running,
};
use crate::Failure;

/// Enough for a 99th percentile that is not the slowest one.
const UPDATES: usize = 150;
const ROLLOUTS: usize = 30;
const BETWEEN: Duration = Duration::from_millis(120);
/// So many others are updated meanwhile: with fewer they are done before the quiet ones.
pub(super) const BUSY: usize = 500;

/// Reactions in the quiet namespace, alone and beside the busy one.
pub(super) async fn measure(
    ground: &Ground,
    busy: &Crowd,
    running: &mut Running,
) -> Result<[Vec<Duration>; 2], Failure> {
    let namespace = running.side().quiet_namespace();
    let quiet = Crowd::of(&ground.client, namespace);
    quiet.create(ROLLOUTS, Shape::Small).await?;
    quiet.is_done(running, "created in the quiet namespace").await?;
    tokio::time::sleep(SETTLES).await;
    let alone = updates(ground, &quiet, running).await?;
    quiet.is_done(running, "updated in the quiet namespace").await?;
    let names: Vec<String> = busy.names().into_iter().take(BUSY).collect();
    let (beside, updated) = futures::join!(updates(ground, &quiet, running), busy.update(&names));
    updated?;
    let beside = beside?;
    busy.is_done(running, "updated in the busy namespace").await?;
    Ok([alone, beside])
}

async fn updates(
    ground: &Ground,
    quiet: &Crowd,
    running: &Running,
) -> Result<Vec<Duration>, Failure> {
    let meter = Meter::start(&ground.plane, running)?;
    let names = quiet.names();
    for name in names.iter().cycle().take(UPDATES) {
        quiet.update(std::slice::from_ref(name)).await?;
        tokio::time::sleep(BETWEEN).await;
    }
    let measured = meter.read(running, Duration::from_secs(2)).await?;
    let side = running.side();
    Ok(reactions::of(&measured.requests, side.user(), side.quiet_namespace()))
}
