//! `gradus explain`: why is a rollout where it is? Decides again on a saved World and says it.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use gradus_api::rollout::RolloutStatus;
use gradus_engine::decision::Decision;
use gradus_engine::explain::sentence;
use gradus_engine::rollout::{Memo, Rollouts};
use gradus_engine::world::World;
use gradus_engine::{Engine, patch};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

/// The exit code that says: this version decides otherwise than the one that saved the World.
const DIFFERENT: u8 = 2;

/// Say why a rollout is where it is, from a saved World
///
/// A World is what the controller's health port shows at /debug/world/NAMESPACE/NAME. The exit
/// code is 0 if this version decides the same as the saved decision, 2 if not.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The saved World; - reads standard input
    #[arg(long, value_name = "FILE")]
    world: PathBuf,
}

/// What /debug/world shows.
#[derive(Deserialize)]
struct Saved {
    now: Timestamp,
    world: World,
    decision: Option<Value>,
}

/// Decides again and prints what came of it.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let saved = read(&arguments.world)?;
    let decision = Rollouts::decide(&saved.world, saved.now);
    print!("{}", account(&saved, &decision));
    let is_equal = saved.decision.is_none_or(|before| before == json!(decision));
    Ok(if is_equal { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

fn read(path: &Path) -> anyhow::Result<Saved> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| {
        format!("{} is no saved World: expected the JSON of /debug/world", path.display())
    })
}

fn account(saved: &Saved, decision: &Decision<RolloutStatus, Memo>) -> String {
    let mut said = format!("{} at {}\n", saved.world.rollout.reference(), saved.now);
    let mut say = |line: String| writeln!(said, "  {line}").expect("a String takes all text");
    if decision.why.is_empty() {
        say("nothing holds it".to_owned());
    }
    for why in &decision.why {
        say(sentence(why));
    }
    for change in &decision.changes {
        say(format!("it would {}", change.id.0));
    }
    let stored = json!(Rollouts::stored_status(&saved.world));
    let wanted = decision.status.as_ref();
    if let Some(patch) = wanted.and_then(|status| patch::difference(&stored, &json!(status))) {
        say(format!("it would change the status by {patch}"));
    }
    say(match decision.wake_at {
        Some(moment) => format!("it looks again at {moment}"),
        None => "it looks again when something changes".to_owned(),
    });
    say(match &saved.decision {
        None => "there is no saved decision to compare with".to_owned(),
        Some(before) if *before == json!(decision) => "the saved decision is the same".to_owned(),
        Some(before) => format!("the saved decision differs in {}", differing(before, decision)),
    });
    said
}

/// The fields of a decision that are not as they were saved.
fn differing(before: &Value, decision: &Decision<RolloutStatus, Memo>) -> String {
    let now = json!(decision);
    let fields = now.as_object().into_iter().flatten();
    let names = fields.filter(|(name, value)| before.get(name) != Some(value));
    names.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}
