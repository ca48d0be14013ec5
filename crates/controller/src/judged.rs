//! What would an engine decide about a World, whichever engine it is? For `explain`, which has the Worlds
//! of all engines as JSON.

use gradus_api::patch::Difference;
use gradus_engine::Engine;
use gradus_engine::decision::{Decision, ObjectRef, Why};
use jiff::Timestamp;
use serde_json::{Value, json};

/// A decision without the types of its engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The object the World is about.
    pub object: ObjectRef,
    /// The decision, as `/debug/world` shows it.
    pub decision: Value,
    /// The changes that may be made: without those the interlock holds.
    pub changes: Vec<String>,
    /// How the stored status would change.
    pub status: Option<Value>,
    /// The guards that hold something.
    pub why: Vec<Why>,
    /// When the object is looked at again even if nothing happens.
    pub wake_at: Option<Timestamp>,
}

/// Decides about a World, and leaves out what the interlock holds.
pub(crate) fn judge<E: Engine>(world: &Value, now: Timestamp) -> serde_json::Result<Judged> {
    let world: E::World = serde_json::from_value(world.clone())?;
    let whole = E::decide(&world, now);
    let decision = json!(whole);
    let harm = E::check(&world, &whole, now);
    let Decision { changes, status, why, wake_at, .. } = harm.map_or(whole, |harm| harm.cut);
    Ok(Judged {
        object: E::head(&world).object,
        decision,
        changes: changes.iter().map(|change| change.id.0.to_string()).collect(),
        status: status.and_then(|status| E::stored_status(&world).difference(&status)),
        why,
        wake_at,
    })
}
