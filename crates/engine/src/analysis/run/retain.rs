//! What a run keeps: the latest measurements and their Jobs, and itself for a while after its end.

use gradus_api::analysis::AnalysisRunStatus;
use gradus_api::values::Time;
use jiff::{SignedDuration, Timestamp};

use super::prepare::{RunPlan, prepare};
use super::view::AnalysisRunView;
use super::{RunDraft, RunWorld, later};
use crate::ask::{Ask, AskId, Effect, MetricCall, MetricReply, Question, Reply};
use crate::decision::{Change, Decision, Op};
use crate::metrics;
use crate::world::RunPhase;

/// Keeps the latest measurements of each metric; the Jobs of the others go first.
pub fn trim(draft: &mut RunDraft<'_>, plan: &RunPlan) {
    for planned in &plan.metrics {
        let name = &planned.metric.name;
        let results = &mut draft.status.metric_results;
        let Some(result) = results.iter_mut().find(|result| result.name == *name) else { continue };
        let surplus = result.measurements.len().saturating_sub(planned.kept);
        if surplus == 0 {
            continue;
        }
        if let Some(plugin) = metrics::plugin(&planned.metric) {
            let (count, call) = (result.measurements.len(), plugin.garbage(planned.kept));
            if !is_collected(draft, name, count, call, planned.kept) {
                continue;
            }
        }
        let results = &mut draft.status.metric_results;
        let Some(result) = results.iter_mut().find(|result| result.name == *name) else { continue };
        result.measurements.drain(..surplus);
        if planned.metric.provider.job.is_none() {
            continue;
        }
        // A Job that this decision creates counts already, and is not there yet.
        let last = result.measurements.last().and_then(metrics::job_name);
        let is_new = |change: &Change| {
            matches!(change.op, Op::Create(_)) && last == Some(&*change.target.name)
        };
        let new = usize::from(draft.changes.iter().any(is_new));
        let own = draft.world.jobs.values().filter(|job| *job.metric == **name);
        let surplus = metrics::superfluous_jobs(own, planned.kept.saturating_sub(new));
        let deletions: Vec<Change> = surplus.into_iter().map(|job| draft.deletion(job)).collect();
        draft.changes.extend(deletions);
    }
}

/// Has the plugin cleared away what belongs to measurements that are to go? It is asked once they are
/// stored, those of the last decision of a run after its end; one that cannot keeps them, up to a limit.
fn is_collected(
    draft: &mut RunDraft<'_>,
    metric: &str,
    count: usize,
    call: MetricCall,
    kept: usize,
) -> bool {
    let is_stored = draft.status.metric_results == draft.world.run.status.metric_results;
    if !is_stored {
        return count > most(kept);
    }
    let id = AskId(format!("collect {} {metric} {count}", draft.run().uid).into());
    let answer = draft.world.answers.get(&id).map(|answer| &answer.reply);
    let question = Question::MetricPlugin(Box::new(call));
    draft.ask(Ask { id, question, effect: Effect::Acts, after: None });
    match answer {
        Some(Ok(Reply::MetricPlugin(MetricReply::Done))) => true,
        Some(_) => count > most(kept),
        None => false,
    }
}

/// The most measurements that are kept for a plugin that does not clear away.
fn most(kept: usize) -> usize {
    kept.saturating_mul(2).saturating_add(10)
}

/// A completed run is deleted when its time has come; until then plugins clear away what is left.
pub fn after_completion(world: &RunWorld, now: Timestamp) -> Decision<AnalysisRunStatus> {
    let run = &world.run;
    let due = due(run);
    if due.is_some_and(|due| due <= now) {
        let changes = vec![Change::delete(run.reference(), run.uid)];
        return Decision { changes, ..Decision::default() };
    }
    let mut draft = RunDraft::new(world, now);
    if has_plugins(run)
        && let Ok(mut plan) = prepare(run)
    {
        plan.metrics.retain(|planned| metrics::plugin(&planned.metric).is_some());
        trim(&mut draft, &plan);
    }
    draft.wake_at = due;
    draft.decision()
}

/// Does a plugin measure for this run?
fn has_plugins(run: &AnalysisRunView) -> bool {
    let all = run.metrics.as_array().map_or(&[][..], Vec::as_slice);
    all.iter().any(|metric| metric["provider"]["plugin"].is_object())
}

/// When more than the seconds of its `ttlStrategy` have passed since its end.
fn due(run: &AnalysisRunView) -> Option<Timestamp> {
    let strategy = run.spec.ttl_strategy.as_ref()?;
    let own = match RunPhase::of(&run.status.phase) {
        RunPhase::Successful => strategy.seconds_after_success,
        RunPhase::Failed => strategy.seconds_after_failure,
        _ => None,
    };
    let seconds = i64::from(own.or(strategy.seconds_after_completion)?);
    let completed = run.status.completed_at.map(Time::timestamp)?;
    Some(later(completed, SignedDuration::from_secs(seconds + 1)))
}
