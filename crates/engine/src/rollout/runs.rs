//! Which AnalysisRuns should exist now, and what do their verdicts mean for the update?

mod start;

use std::sync::Arc;

use gradus_api::names::{event, pause};
use gradus_api::rollout::status::RunStatus;
use gradus_api::rollout::{RolloutSpec, RolloutStatus};

use super::analyses::{self, Analysis, Purpose};
use super::draft::Draft;
use super::lifecycle;
use super::replica_sets::Roles;
use super::rollback::{self, Rollback};
use crate::decision::{After, Event, EventKind, ObjectRef};
use crate::kinds;
use crate::world::{RunPhase, RunView};

/// What a pass has found out about runs and Experiments. The status is made of it, so what is not
/// found again disappears.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Findings {
    /// The run of the current step.
    pub step: Option<Box<RunStatus>>,
    /// The run during the whole update.
    pub background: Option<Box<RunStatus>>,
    /// The run before the switch.
    pub pre: Option<Box<RunStatus>>,
    /// The run after the switch.
    pub post: Option<Box<RunStatus>>,
    /// The Experiment of the current step.
    pub experiment: String,
    /// Did the Experiment of the current step end well?
    pub experiment_succeeded: bool,
    /// The pause that a verdict asks for.
    pub pause: Option<&'static str>,
    /// Why the update is to be given up.
    pub abort_because: Option<String>,
    /// Why a run or an Experiment cannot be made of the spec.
    pub broken: Option<String>,
    /// An object that must be read before a run or an Experiment can be made.
    pub unread: Option<ObjectRef>,
}

impl Findings {
    /// Must nothing be moved any more in this pass? A verdict has changed the plan, or who should
    /// judge the update is not there yet.
    pub fn holds(&self) -> bool {
        self.pause.is_some()
            || self.abort_because.is_some()
            || self.broken.is_some()
            || self.unread.is_some()
    }

    /// Does more than a pause follow: the end of the update, or nothing before something is read or
    /// corrected?
    pub fn is_fatal(&self) -> bool {
        self.abort_because.is_some() || self.broken.is_some() || self.unread.is_some()
    }

    fn slot(&mut self, purpose: Purpose) -> &mut Option<Box<RunStatus>> {
        match purpose {
            Purpose::Step(_) => &mut self.step,
            Purpose::Background => &mut self.background,
            Purpose::PrePromotion => &mut self.pre,
            Purpose::PostPromotion => &mut self.post,
        }
    }

    fn names(&self, run: &RunView) -> bool {
        let slots = [&self.step, &self.background, &self.pre, &self.post];
        slots.into_iter().flatten().any(|slot| *slot.name == *run.name)
    }
}

/// The runs of a canary: of the current step, and of the whole update. Where there is nothing to
/// judge, all end and the status forgets them.
pub(super) fn of_canary<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    if is_exempt(&draft, roles) || rollback::classify(&draft, roles) != Rollback::None {
        return clean_up(draft);
    }
    let draft = of_step(draft, roles);
    clean_up(of_background(draft, roles))
}

/// The runs of a canary that can do nothing else now: verdicts count all the same.
pub(super) fn as_known<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    if is_exempt(&draft, roles) {
        return draft;
    }
    let mut draft = draft;
    draft.found.experiment.clone_from(&draft.status.canary.current_experiment);
    current_of_canary(&draft)
        .into_iter()
        .fold(draft, |draft, (purpose, run)| judge(draft, purpose, &run))
}

/// Has a run whose verdict counts found the new revision bad, or found nothing?
pub(super) fn is_condemned(draft: &Draft<'_>) -> bool {
    current_of_canary(draft).iter().any(|(_, run)| {
        run.phase.is_completed() && run.phase != RunPhase::Successful && !needs_new(draft, run)
    })
}

/// The runs that the status of a canary names, if they are of now.
fn current_of_canary(draft: &Draft<'_>) -> Vec<(Purpose, Arc<RunView>)> {
    let step = draft.current_step().and_then(|(index, _)| {
        let run = current(draft, Purpose::Step(index)).filter(|run| run.step == Some(index))?;
        Some((Purpose::Step(index), Arc::clone(run)))
    });
    let background = current(draft, Purpose::Background);
    step.into_iter().chain(background.map(|run| (Purpose::Background, Arc::clone(run)))).collect()
}

/// The runs of a blue-green rollout: before and after the switch. The status keeps them to the next
/// update.
pub(super) fn of_blue_green<'w>(draft: Draft<'w>, roles: Roles, switch: Switch<'_>) -> Draft<'w> {
    let new = Arc::clone(&draft.sets[roles.new].hash);
    let is_exempt = is_exempt(&draft, roles) || switch.is_fast_rollback;
    let has_switched = *switch.active == *new;
    let may_post = !is_exempt && has_switched;
    let may_pre = !is_exempt && !has_switched && !switch.active.is_empty();
    let draft = of_side(draft, roles, Purpose::PostPromotion, may_post, switch.is_complete);
    let draft = of_side(draft, roles, Purpose::PrePromotion, may_pre, switch.is_ready);
    clean_up(draft)
}

/// Where a blue-green rollout stands, as far as its runs are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch<'d> {
    /// The revision the active Service selects.
    pub active: &'d str,
    /// Does this update skip pause and analysis?
    pub is_fast_rollback: bool,
    /// Has the new revision the pods a run before the switch wants?
    pub is_ready: bool,
    /// Does the new revision carry everything?
    pub is_complete: bool,
}

/// The run that the status names for a purpose.
fn current<'d>(draft: &'d Draft<'_>, purpose: Purpose) -> Option<&'d Arc<RunView>> {
    let slot = purpose.slot(&draft.status)?;
    draft.runs.iter().find(|run| *run.name == *slot.name)
}

/// Has the analysis before the switch ended well, or is there none? A retry wants a new one.
pub(super) fn is_pre_promotion_done(draft: &Draft<'_>) -> bool {
    let purpose = Purpose::PrePromotion;
    wanted(draft, purpose).is_none()
        || draft.status.aborted_at.is_none() && is_successful(current(draft, purpose))
}

/// Has the analysis after the switch ended well, or is there none?
pub(super) fn is_post_promotion_done(draft: &Draft<'_>) -> bool {
    let purpose = Purpose::PostPromotion;
    wanted(draft, purpose).is_none() || is_successful(current(draft, purpose))
}

/// Is the analysis after the switch wanted and not over, by this status?
pub(super) fn awaits_post_promotion(spec: &RolloutSpec, status: &RolloutStatus) -> bool {
    let purpose = Purpose::PostPromotion;
    let phase = purpose.slot(status).map_or(RunPhase::Unstarted, |run| RunPhase::of(&run.status));
    let is_wanted = analyses::of(spec).iter().any(|analysis| analysis.purpose == purpose);
    is_wanted && !phase.is_completed()
}

fn is_successful(run: Option<&Arc<RunView>>) -> bool {
    run.is_some_and(|run| run.phase == RunPhase::Successful)
}

/// The analysis that the spec asks for.
fn wanted<'w>(draft: &Draft<'w>, purpose: Purpose) -> Option<Analysis<'w>> {
    analyses::of(draft.spec()).into_iter().find(|analysis| analysis.purpose == purpose)
}

/// Is there no update to judge, or has a person decided it already?
fn is_exempt(draft: &Draft<'_>, roles: Roles) -> bool {
    let status = &draft.status;
    let is_promoted = status.stable_rs == status.current_pod_hash;
    roles.stable.is_none() || is_promoted || status.abort || draft.promotes_fully()
}

/// The current step's own run; that of another step ends.
fn of_step<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let Some((index, _)) = draft.current_step() else { return draft };
    let Some(analysis) = wanted(&draft, Purpose::Step(index)) else { return draft };
    let run = current(&draft, analysis.purpose).filter(|run| run.step == Some(index)).cloned();
    if !draft.status.pause_conditions.is_empty() {
        return match run {
            Some(run) => judge(draft, analysis.purpose, &run),
            None => draft,
        };
    }
    keep_or_start(draft, roles, analysis, run)
}

/// The run during the whole update, from its starting step on.
fn of_background<'w>(draft: Draft<'w>, roles: Roles) -> Draft<'w> {
    let Some(analysis) = wanted(&draft, Purpose::Background) else { return draft };
    let first = draft.canary().analysis.as_ref().and_then(|one| one.starting_step).unwrap_or(0);
    let has_started =
        draft.steps().is_empty() || first <= draft.status.current_step_index.unwrap_or(0);
    if !has_started || draft.status.current_pod_hash.is_empty() {
        return draft;
    }
    let run = current(&draft, analysis.purpose).cloned();
    keep_or_start(draft, roles, analysis, run)
}

/// One of the two runs of a blue-green rollout. One that is out of place ends but is remembered; a
/// new one starts only on a revision that has its pods.
fn of_side<'w>(
    draft: Draft<'w>,
    roles: Roles,
    purpose: Purpose,
    is_due: bool,
    may_start: bool,
) -> Draft<'w> {
    let Some(analysis) = wanted(&draft, purpose) else { return draft };
    let run = current(&draft, purpose).cloned();
    match run {
        Some(_) if !is_due && is_retry(&draft) => draft, // A new attempt is judged anew.
        Some(run) if !is_due => {
            let draft = lifecycle::end(draft, &kinds::ANALYSIS_RUN, &run);
            record(draft, purpose, &run)
        }
        Some(run) if !needs_new(&draft, &run) => judge(draft, purpose, &run),
        // One that was started and not noted, because the controller fell over or the status was
        // refused, goes on like one that was, whatever its pods do meanwhile.
        None if is_due && start::is_started(&draft, roles, purpose) => {
            keep_or_start(draft, roles, analysis, None)
        }
        run if is_due && may_start => keep_or_start(draft, roles, analysis, run),
        _ => draft,
    }
}

fn keep_or_start<'w>(
    draft: Draft<'w>,
    roles: Roles,
    analysis: Analysis<'w>,
    run: Option<Arc<RunView>>,
) -> Draft<'w> {
    let is_frozen = draft.status.pause_condition(pause::INCONCLUSIVE_ANALYSIS_RUN).is_some();
    match run {
        Some(run) if is_frozen || !needs_new(&draft, &run) => judge(draft, analysis.purpose, &run),
        _ if is_frozen => draft,
        _ => match start::start(draft, roles, analysis) {
            (draft, Some(run)) => judge(draft, analysis.purpose, &run),
            (draft, None) => draft,
        },
    }
}

/// Is the current run's verdict not to be used any more? After a person's resume an inconclusive one
/// is replaced, after a retry any.
fn needs_new(draft: &Draft<'_>, run: &RunView) -> bool {
    let status = &draft.status;
    let pauses = [pause::CANARY_PAUSE_STEP, pause::BLUE_GREEN_PAUSE];
    let is_in_pause = pauses.iter().any(|reason| status.pause_condition(reason).is_some());
    if status.controller_pause && !is_in_pause {
        return run.phase == RunPhase::Inconclusive && status.pause_conditions.is_empty();
    }
    is_retry(draft)
}

/// Has a person just asked for another attempt?
fn is_retry(draft: &Draft<'_>) -> bool {
    draft.status.aborted_at.is_some() && !draft.status.abort
}

/// Notes how a run stands, and what follows from it.
fn judge<'w>(draft: Draft<'w>, purpose: Purpose, run: &RunView) -> Draft<'w> {
    let mut draft = record(draft, purpose, run);
    match run.phase {
        RunPhase::Inconclusive => draft.found.pause = Some(pause::INCONCLUSIVE_ANALYSIS_RUN),
        RunPhase::Failed | RunPhase::Error => {
            let what = match purpose {
                Purpose::Step(_) => "Step-based analysis phase",
                Purpose::Background => "Background analysis phase",
                Purpose::PrePromotion => "Blue/green pre-promotion analysis phase",
                Purpose::PostPromotion => "Blue/green post-promotion analysis phase",
            };
            draft.found.abort_because.get_or_insert(lifecycle::failure_text(what, run));
        }
        _ => {}
    }
    draft
}

/// Notes how a run stands, with the Event that tells of a new phase.
fn record<'w>(draft: Draft<'w>, purpose: Purpose, run: &RunView) -> Draft<'w> {
    let mut draft = draft;
    let known = purpose.slot(&draft.status);
    let phase = run.phase.text();
    let previous = match known {
        None => Some("NoPreviousStatus"),
        Some(slot) if *slot.name == *run.name && slot.status != phase => Some(&*slot.status),
        Some(_) => None,
    };
    if let Some(previous) = previous.filter(|_| run.phase != RunPhase::Unstarted) {
        let message = format!(
            "{} Analysis Run '{}' Status New: '{phase}' Previous: '{previous}'",
            purpose.label(),
            run.name
        );
        let kind = if run.phase.is_bad() { EventKind::Warning } else { EventKind::Normal };
        let reason = format!("{}{phase}", event::ANALYSIS_RUN_PREFIX).into();
        let about = draft.rollout().reference();
        draft.events.push(Event { about, uid: None, kind, reason, message, after: After::Status });
    }
    let message = run.message.to_string();
    *draft.found.slot(purpose) =
        Some(Box::new(RunStatus { name: run.name.to_string(), status: phase.to_owned(), message }));
    draft
}

/// Every run that no slot names ends, and goes when nobody needs it any more.
fn clean_up(draft: Draft<'_>) -> Draft<'_> {
    if draft.found.unread.is_some() {
        return draft; // One of them may be the one that is wanted.
    }
    let others: Vec<Arc<RunView>> =
        draft.runs.iter().filter(|run| !draft.found.names(run)).cloned().collect();
    lifecycle::clean_up(draft, &kinds::ANALYSIS_RUN, others)
}
