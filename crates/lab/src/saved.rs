//! What does this version decide about a World that was saved? A bug report becomes a row of a test.

use std::io;
use std::path::{Path, PathBuf};

use gradus_api::rollout::RolloutStatus;
use gradus_engine::Engine;
use gradus_engine::decision::Decision;
use gradus_engine::rollout::{Memo, Rollouts};
use gradus_engine::world::World;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

/// A World from the field, decided on again.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Everything the decision rests on; a test may change it and call [`Replayed::decide`].
    pub world: World,
    /// When it was saved.
    pub now: Timestamp,
    /// What was decided then.
    pub saved: Value,
}

/// Why there is no World.
#[derive(Debug, thiserror::Error)]
pub enum Unsaved {
    /// The file cannot be read.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// It is not what `/debug/world/KIND/NAMESPACE/NAME` shows.
    #[error("{0}: not a World as /debug/world shows it: {1}")]
    Form(PathBuf, #[source] serde_json::Error),
}

/// The World in a file as the controller's health port shows it.
pub fn replayed(path: &Path) -> Result<Replayed, Unsaved> {
    #[derive(Deserialize)]
    struct File {
        now: Timestamp,
        world: World,
        #[serde(default)]
        decision: Value,
    }
    let text =
        std::fs::read_to_string(path).map_err(|error| Unsaved::File(path.to_owned(), error))?;
    let File { now, world, decision } =
        serde_json::from_str(&text).map_err(|error| Unsaved::Form(path.to_owned(), error))?;
    Ok(Replayed { world, now, saved: decision })
}

impl Replayed {
    /// What this version decides.
    pub fn decide(&self) -> Decision<RolloutStatus, Memo> {
        Rollouts::decide(&self.world, self.now)
    }

    /// Does this version decide as the one did that saved it?
    pub fn is_same(&self) -> bool {
        json!(self.decide()) == self.saved
    }
}
