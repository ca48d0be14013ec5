//! What have the analyses of an object measured, and what decided? Read from the AnalysisRuns that it
//! names; one that cannot be read is left out, as its owner tells of it.

use gradus_engine::analysis::run::{AnalysisRunView, told};
use gradus_engine::decision::Kind;
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::world::{RunPhase, World};
use serde::Deserialize;
use serde_json::Value;

use crate::source::Source;

/// So many runs of one object are told of.
const RUNS_LIMIT: usize = 5;

/// Of the runs that judge the revision that is rolled out: what they wait for, or what speaks against it.
pub async fn of_rollout(source: &Source, world: &World) -> Vec<String> {
    let rollout = &world.rollout;
    let runs = world.runs.present().map_or(&[][..], Vec::as_slice);
    let is_of_now = |hash: &str| hash == rollout.status.current_pod_hash;
    let runs = runs.iter().filter(|run| is_of_now(&run.hash) && is_worth_telling(run.phase));
    let names: Vec<&str> = runs.map(|run| &*run.name).collect();
    of_runs(source, &names).await
}

/// Of a run all metrics; of an Experiment those of its runs that have not ended well.
pub async fn of_object(source: &Source, kind: &Kind, object: &Value) -> Vec<String> {
    if *kind == kinds::ANALYSIS_RUN {
        return metrics(object, false);
    }
    let runs = object["status"]["analysisRuns"].as_array().into_iter().flatten();
    let text = |run: &'_ Value, field: &str| run[field].as_str().unwrap_or_default().to_owned();
    let runs = runs.filter(|run| is_worth_telling(RunPhase::of(&text(run, "phase"))));
    let names: Vec<String> = runs.map(|run| text(run, "analysisRun")).collect();
    of_runs(source, &names.iter().map(String::as_str).collect::<Vec<_>>()).await
}

fn is_worth_telling(phase: RunPhase) -> bool {
    !matches!(phase, RunPhase::Successful | RunPhase::Unstarted)
}

/// The latest of these runs.
async fn of_runs(source: &Source, names: &[&str]) -> Vec<String> {
    let mut told = Vec::new();
    for name in names.iter().rev().take(RUNS_LIMIT) {
        let Ok((object, _)) = source.read(&kinds::ANALYSIS_RUN, name).await else { continue };
        let texts = metrics(&object, true);
        told.extend(texts.into_iter().map(|text| format!("AnalysisRun {name}: {text}")));
    }
    told
}

/// The metrics of a run; of one that has ended, if so wished, those alone that decided.
fn metrics(object: &Value, is_short: bool) -> Vec<String> {
    let Ok(frame) = Frame::deserialize(object) else { return Vec::new() };
    let run = AnalysisRunView::read(&frame);
    let is_over = RunPhase::of(&run.status.phase).is_completed();
    let metrics = told(&run).into_iter();
    let metrics = metrics.filter(|metric| metric.is_against || !(is_short && is_over));
    metrics.map(|metric| metric.text).collect()
}
