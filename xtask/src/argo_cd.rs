//! `cargo xtask argo-cd`: what does Argo CD make of what we store? Its own health scripts judge every
//! state that a Rollout, an AnalysisRun or an Experiment has in any scenario, and each of its actions
//! has its effect.
//!
//! The scripts are read from Argo CD's Go module, in Go's cache; nothing of it enters this repository.

mod actions;
mod health;
mod script;

use std::{collections::BTreeSet, path::Path};

use gradus_api::names;
use gradus_lab::{faults::Faults, scenario, simulate::Ground, simulate::simulate_watched};
use gradus_simkube::SimCluster;
use serde_json::Value;

use crate::{
    Failure, go_module, repository,
    servers::{ServersError, go_is_present},
    summary::Summary,
};
use actions::Actions;
use health::Health;

/// The module, and the version whose scripts are run.
const MODULE: &str = "github.com/argoproj/argo-cd/v3";
const VERSION: &str = "v3.5.6";

/// The kinds that it has scripts for.
const KINDS: [&str; 3] = [names::kind::ROLLOUT, names::kind::ANALYSIS_RUN, names::kind::EXPERIMENT];

/// Runs the task.
pub fn run(_arguments: &[String]) -> Result<Summary, Failure> {
    if !go_is_present() {
        return Err(ServersError::GoIsAbsent.into());
    }
    let scripts = go_module::folder(MODULE, VERSION)?;
    let scripts = scripts.join("resource_customizations").join(names::GROUP);
    let mut summary = every_state(&scripts)?;
    summary += actions::have_their_effect(&Actions::of(&scripts))?;
    Ok(summary)
}

/// Each scenario is one check of all the states in it.
fn every_state(scripts: &Path) -> Result<Summary, Failure> {
    let (health, actions) = (Health::of(scripts), Actions::of(scripts));
    let (ground, mut summary, mut states) = (Ground::new()?, Summary::default(), 0);
    for scenario in scenario::load_all(&repository().join("scenarios"))? {
        let (name, end) = (scenario.name.clone(), scenario.end.expect["phase"].clone());
        let prepared = ground.prepare(scenario)?;
        let (mut seen, mut wrong, mut last) = (BTreeSet::new(), Vec::new(), Value::Null);
        simulate_watched(&prepared, &Faults::default(), &mut |_, cluster, _| {
            for (kind, object) in stored(cluster) {
                let version = object["metadata"]["resourceVersion"].to_string();
                if !seen.insert((kind, object["metadata"]["uid"].to_string(), version)) {
                    continue;
                }
                let mut note = |problem: Option<String>| wrong.extend(problem);
                note(health.is_right(kind, &object).err().map(|error| error.to_string()));
                note(actions.can_be_computed(kind, &object).err().map(|error| error.to_string()));
                if kind == names::kind::ROLLOUT {
                    last = object;
                }
            }
        });
        if end.is_string() {
            wrong.extend(health.is_at(&last, &end).err().map(|error| error.to_string()));
        }
        for problem in wrong.iter().take(3) {
            println!("  {name}: FAILED: {problem}");
        }
        states += seen.len();
        summary += Summary::of(wrong.is_empty());
    }
    println!("  health and actions of {states} states: {summary}");
    Ok(summary)
}

/// The objects that Argo CD has scripts for, as the API server shows them.
fn stored(cluster: &SimCluster) -> Vec<(&'static str, Value)> {
    let mut found = Vec::new();
    for kind in KINDS {
        let Some(id) = cluster.kinds().by_name(names::API_VERSION, kind) else { continue };
        found.extend(cluster.list(id, "").map(|object| (kind, object.to_json(cluster.kinds()))));
    }
    found
}
