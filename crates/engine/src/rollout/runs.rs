//! Which AnalysisRuns should exist now, and what do their verdicts mean for the update?

mod start;

use std::sync::Arc;

use gradus_api::names::{event, pause};
use gradus_api::rollout::status::RunStatus;
use gradus_api::rollout::{RolloutSpec, RolloutStatus};

use super::analyses::{self, Analysis, Purpose};
use super::lifecycle::{self, StartOutcome};
use super::objects::Objects;
use super::plan::Proposal;
use super::replica_sets::Roles;
use super::rollback::{self, Rollback};
use super::status::Pauses;
use crate::decision::{EventKind, ObjectRef};
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

    /// What happens to the pauses: one more where a verdict asks for it.
    pub fn pauses(&self, otherwise: Pauses) -> Pauses {
        self.pause.map_or(otherwise, Pauses::Add)
    }

    /// Does more than a pause follow: the end of the update, or nothing before something is read or
    /// corrected?
    pub fn is_fatal(&self) -> bool {
        self.abort_because.is_some() || self.broken.is_some() || self.unread.is_some()
    }

    /// Both, this one first: the first reason to give the update up counts, and the last of anything
    /// else.
    pub fn and(self, later: Findings) -> Findings {
        let experiment =
            if later.experiment.is_empty() { self.experiment } else { later.experiment };
        Findings {
            step: later.step.or(self.step),
            background: later.background.or(self.background),
            pre: later.pre.or(self.pre),
            post: later.post.or(self.post),
            experiment,
            experiment_succeeded: self.experiment_succeeded || later.experiment_succeeded,
            pause: later.pause.or(self.pause),
            abort_because: self.abort_because.or(later.abort_because),
            broken: later.broken.or(self.broken),
            unread: later.unread.or(self.unread),
        }
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

/// What a stage wants of runs or Experiments, and what it has found out about them.
#[derive(Debug, Default)]
pub(super) struct JudgedRuns {
    pub proposal: Proposal,
    pub found: Findings,
}

impl JudgedRuns {
    /// Nothing is found out by this.
    pub fn only(proposal: Proposal) -> Self {
        JudgedRuns { proposal, found: Findings::default() }
    }

    /// An object must be read before a run or an Experiment can be made.
    pub fn unread(target: ObjectRef) -> Self {
        let found = Findings { unread: Some(target), ..Findings::default() };
        JudgedRuns { found, ..JudgedRuns::default() }
    }

    /// The spec makes no run or Experiment.
    pub fn broken(error: String) -> Self {
        let found = Findings { broken: Some(error), ..Findings::default() };
        JudgedRuns { found, ..JudgedRuns::default() }
    }

    /// Both, this one first.
    pub fn and(self, later: JudgedRuns) -> Self {
        JudgedRuns {
            proposal: self.proposal.and(later.proposal),
            found: self.found.and(later.found),
        }
    }
}

/// The runs of a canary: of the current step, and of the whole update. Where there is nothing to
/// judge, all end and the status forgets them. What is known of the Experiment comes first.
pub(super) fn of_canary(objects: &Objects<'_>, roles: Roles, experiment: JudgedRuns) -> JudgedRuns {
    if is_exempt(objects, roles) || rollback::classify(objects, roles) != Rollback::None {
        return cleaned(objects, experiment);
    }
    let runs = of_step(objects, roles).and(of_background(objects, roles));
    cleaned(objects, experiment.and(runs))
}

/// The runs of a canary that can do nothing else now: verdicts count all the same.
pub(super) fn as_known(objects: &Objects<'_>, roles: Roles) -> JudgedRuns {
    if is_exempt(objects, roles) {
        return JudgedRuns::default();
    }
    let experiment = objects.status.canary.current_experiment.clone();
    let found = Findings { experiment, ..Findings::default() };
    let known = JudgedRuns { found, ..JudgedRuns::default() };
    let judge = |known: JudgedRuns, (purpose, run): (Purpose, Arc<RunView>)| {
        known.and(judge(objects, purpose, &run))
    };
    current_of_canary(objects).into_iter().fold(known, judge)
}

/// Has a run whose verdict counts found the new revision bad, or found nothing?
pub(super) fn is_condemned(objects: &Objects<'_>) -> bool {
    current_of_canary(objects).iter().any(|(_, run)| is_against(objects, run))
}

/// Has the run of now for this purpose ended without success?
pub(super) fn is_refused(objects: &Objects<'_>, purpose: Purpose) -> bool {
    current(objects, purpose).is_some_and(|run| is_against(objects, run))
}

fn is_against(objects: &Objects<'_>, run: &RunView) -> bool {
    run.phase.is_completed() && run.phase != RunPhase::Successful && !needs_new(objects, run)
}

/// The runs that the status of a canary names, if they are of now.
fn current_of_canary(objects: &Objects<'_>) -> Vec<(Purpose, Arc<RunView>)> {
    let step = objects.current_step().and_then(|(index, _)| {
        let run = current(objects, Purpose::Step(index)).filter(|run| run.step == Some(index))?;
        Some((Purpose::Step(index), Arc::clone(run)))
    });
    let background = current(objects, Purpose::Background);
    step.into_iter().chain(background.map(|run| (Purpose::Background, Arc::clone(run)))).collect()
}

/// The runs of a blue-green rollout: before and after the switch. The status keeps them to the next
/// update.
pub(super) fn of_blue_green(objects: &Objects<'_>, roles: Roles, switch: Switch<'_>) -> JudgedRuns {
    let new = &objects.sets[roles.new].hash;
    let is_exempt = is_exempt(objects, roles) || switch.is_fast_rollback;
    let has_switched = *switch.active == **new;
    let may_post = !is_exempt && has_switched && switch.is_registered;
    let may_pre = !is_exempt && !has_switched && !switch.active.is_empty();
    let post = of_side(objects, roles, Purpose::PostPromotion, may_post, switch.is_complete);
    let pre = of_side(objects, roles, Purpose::PrePromotion, may_pre, switch.is_ready);
    cleaned(objects, post.and(pre))
}

/// Where a blue-green rollout stands, as far as its runs are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch<'d> {
    /// The revision the active Service selects.
    pub active: &'d str,
    /// Does this update skip pause and analysis?
    pub is_fast_rollback: bool,
    /// Does nobody say that its pods are missing in target groups?
    pub is_registered: bool,
    /// Has the new revision the pods a run before the switch wants?
    pub is_ready: bool,
    /// Does the new revision carry everything?
    pub is_complete: bool,
}

/// The run that the status names for a purpose.
fn current<'d>(objects: &'d Objects<'_>, purpose: Purpose) -> Option<&'d Arc<RunView>> {
    let slot = purpose.slot(&objects.status)?;
    objects.runs.iter().find(|run| *run.name == *slot.name)
}

/// Has the analysis before the switch ended well, or is there none? A retry wants a new one.
pub(super) fn is_pre_promotion_done(objects: &Objects<'_>) -> bool {
    let purpose = Purpose::PrePromotion;
    wanted(objects, purpose).is_none()
        || objects.status.aborted_at.is_none() && is_successful(current(objects, purpose))
}

/// Has the analysis after the switch ended well, or is there none?
pub(super) fn is_post_promotion_done(objects: &Objects<'_>) -> bool {
    let purpose = Purpose::PostPromotion;
    wanted(objects, purpose).is_none() || is_successful(current(objects, purpose))
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
fn wanted<'w>(objects: &Objects<'w>, purpose: Purpose) -> Option<Analysis<'w>> {
    analyses::of(objects.spec()).into_iter().find(|analysis| analysis.purpose == purpose)
}

/// Is there no update to judge, or has a person decided it already?
fn is_exempt(objects: &Objects<'_>, roles: Roles) -> bool {
    let status = &objects.status;
    let is_promoted = status.stable_rs == status.current_pod_hash;
    roles.stable.is_none() || is_promoted || status.abort || objects.promotes_fully()
}

/// The current step's own run; that of another step ends.
fn of_step(objects: &Objects<'_>, roles: Roles) -> JudgedRuns {
    let Some((index, _)) = objects.current_step() else { return JudgedRuns::default() };
    let Some(analysis) = wanted(objects, Purpose::Step(index)) else {
        return JudgedRuns::default();
    };
    let run = current(objects, analysis.purpose).filter(|run| run.step == Some(index));
    if objects.status.pause_conditions.is_empty() {
        return keep_or_start(objects, roles, analysis, run);
    }
    run.map(|run| judge(objects, analysis.purpose, run)).unwrap_or_default()
}

/// The run during the whole update, from its starting step on.
fn of_background(objects: &Objects<'_>, roles: Roles) -> JudgedRuns {
    let Some(analysis) = wanted(objects, Purpose::Background) else { return JudgedRuns::default() };
    let first = objects.canary().analysis.as_ref().and_then(|one| one.starting_step).unwrap_or(0);
    let has_started =
        objects.steps().is_empty() || first <= objects.status.current_step_index.unwrap_or(0);
    if !has_started || objects.status.current_pod_hash.is_empty() {
        return JudgedRuns::default();
    }
    keep_or_start(objects, roles, analysis, current(objects, analysis.purpose))
}

/// One of the two runs of a blue-green rollout. One that is out of place ends but is remembered; a
/// new one starts only on a revision that has its pods.
fn of_side(
    objects: &Objects<'_>,
    roles: Roles,
    purpose: Purpose,
    is_due: bool,
    may_start: bool,
) -> JudgedRuns {
    let Some(analysis) = wanted(objects, purpose) else { return JudgedRuns::default() };
    match current(objects, purpose) {
        // A new attempt is judged anew.
        Some(_) if !is_due && is_retry(objects) => JudgedRuns::default(),
        Some(run) if !is_due => {
            let ended = lifecycle::end(objects, &kinds::ANALYSIS_RUN, run);
            JudgedRuns::only(ended).and(record(objects, purpose, run))
        }
        Some(run) if !needs_new(objects, run) => judge(objects, purpose, run),
        // One that was started and not noted, because the controller fell over or the status was
        // refused, goes on like one that was, whatever its pods do meanwhile.
        None if is_due && start::is_started(objects, roles, purpose) => {
            keep_or_start(objects, roles, analysis, None)
        }
        run if is_due && may_start => keep_or_start(objects, roles, analysis, run),
        _ => JudgedRuns::default(),
    }
}

fn keep_or_start(
    objects: &Objects<'_>,
    roles: Roles,
    analysis: Analysis<'_>,
    run: Option<&Arc<RunView>>,
) -> JudgedRuns {
    let is_frozen = objects.status.pause_condition(pause::INCONCLUSIVE_ANALYSIS_RUN).is_some();
    match run {
        Some(run) if is_frozen || !needs_new(objects, run) => judge(objects, analysis.purpose, run),
        _ if is_frozen => JudgedRuns::default(),
        _ => {
            let started = start::start(objects, roles, analysis);
            let judged = match started.outcome {
                StartOutcome::Run(run) => judge(objects, analysis.purpose, &run),
                StartOutcome::Unread(target) => JudgedRuns::unread(target),
                StartOutcome::Broken(error) => JudgedRuns::broken(error),
            };
            JudgedRuns::only(started.proposal).and(judged)
        }
    }
}

/// Is the current run's verdict not to be used any more? After a person's resume an inconclusive one
/// is replaced, after a retry any.
fn needs_new(objects: &Objects<'_>, run: &RunView) -> bool {
    let status = &objects.status;
    let pauses = [pause::CANARY_PAUSE_STEP, pause::BLUE_GREEN_PAUSE];
    let is_in_pause = pauses.iter().any(|reason| status.pause_condition(reason).is_some());
    if status.controller_pause && !is_in_pause {
        return run.phase == RunPhase::Inconclusive && status.pause_conditions.is_empty();
    }
    is_retry(objects)
}

/// Has a person just asked for another attempt?
fn is_retry(objects: &Objects<'_>) -> bool {
    objects.status.aborted_at.is_some() && !objects.status.abort
}

/// Notes how a run stands, and what follows from it.
fn judge(objects: &Objects<'_>, purpose: Purpose, run: &RunView) -> JudgedRuns {
    let mut judged = record(objects, purpose, run);
    match run.phase {
        RunPhase::Inconclusive => judged.found.pause = Some(pause::INCONCLUSIVE_ANALYSIS_RUN),
        RunPhase::Failed | RunPhase::Error => {
            let what = match purpose {
                Purpose::Step(_) => "Step-based analysis phase",
                Purpose::Background => "Background analysis phase",
                Purpose::PrePromotion => "Blue/green pre-promotion analysis phase",
                Purpose::PostPromotion => "Blue/green post-promotion analysis phase",
            };
            judged.found.abort_because = Some(lifecycle::failure_text(what, run));
        }
        _ => {}
    }
    judged
}

/// Notes how a run stands, with the Event that tells of a new phase.
fn record(objects: &Objects<'_>, purpose: Purpose, run: &RunView) -> JudgedRuns {
    let known = purpose.slot(&objects.status);
    let phase = run.phase.text();
    let previous = match known {
        None => Some("NoPreviousStatus"),
        Some(slot) if *slot.name == *run.name && slot.status != phase => Some(&*slot.status),
        Some(_) => None,
    };
    let mut judged = JudgedRuns::default();
    if let Some(previous) = previous.filter(|_| run.phase != RunPhase::Unstarted) {
        let message = format!(
            "{} Analysis Run '{}' Status New: '{phase}' Previous: '{previous}'",
            purpose.label(),
            run.name
        );
        let kind = if run.phase.is_bad() { EventKind::Warning } else { EventKind::Normal };
        let reason = format!("{}{phase}", event::ANALYSIS_RUN_PREFIX);
        judged.proposal = Proposal::default().tell(kind, reason, message);
    }
    let message = run.message.to_string();
    *judged.found.slot(purpose) =
        Some(Box::new(RunStatus { name: run.name.to_string(), status: phase.to_owned(), message }));
    judged
}

/// Every run that no slot names ends, and goes when nobody needs it any more.
fn cleaned(objects: &Objects<'_>, judged: JudgedRuns) -> JudgedRuns {
    if judged.found.unread.is_some() {
        return judged; // One of them may be the one that is wanted.
    }
    let is_other = |run: &RunView| !judged.found.names(run);
    let left = lifecycle::clean_up(objects, &kinds::ANALYSIS_RUN, is_other);
    judged.and(JudgedRuns::only(left))
}
