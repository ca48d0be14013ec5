//! Does a scenario end the same whatever happens to any one write, and whoever acts between any two
//! requests? All cases, one by one.

use crate::ends::Ending;
use crate::faults::{Fault, Faults, LeadFault};
use crate::person::Action;
use crate::simulate::{Outcome, Prepared, narrate, simulate};
use crate::trace::Met;
use gradus_simkube::behave::Behaviours;
use jiff::SignedDuration;

/// What one fault may cost: a write is tried again, what was done is read, and who measures or
/// waits looks again.
const COST: SignedDuration = SignedDuration::from_secs(60);

/// A run that did not end as it must.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    /// How it was disturbed.
    pub faults: Faults,
    /// What was wrong.
    pub violations: Vec<String>,
    /// What it has met.
    pub met: Met,
}

/// What a series of runs has shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTally {
    /// How many runs.
    pub runs: usize,
    /// How many of them were interrupted while an update was under way.
    pub interrupted: usize,
    /// Those that failed.
    pub failed: Vec<Failed>,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}:", self.faults)?;
        self.violations.iter().try_for_each(|violation| write!(f, "\n  {violation}"))
    }
}

impl RunTally {
    /// Panics if a run failed, with everything that is needed to see why: the first one, told
    /// again.
    #[track_caller]
    pub fn assert_all_good(&self, prepared: &Prepared) {
        let (name, runs) = (&prepared.scenario().name, self.runs);
        assert!(runs > 0, "{name}: nothing was run");
        if let Some(first) = self.failed.first() {
            let told = narrate(prepared, &first.faults);
            let count = self.failed.len();
            panic!("{name}: {count} of {runs} runs failed; the first: {first}\n{}", told.trace);
        }
    }
}

/// A scenario, and how it ends undisturbed.
#[derive(Clone, Debug)]
pub struct ScenarioJudge {
    prepared: Prepared,
    plain: Ending,
}

impl ScenarioJudge {
    /// Tells it once, undisturbed.
    pub fn new(prepared: Prepared) -> Self {
        let plain = simulate(&prepared, &Faults::default()).ending;
        ScenarioJudge { prepared, plain }
    }

    /// The scenario.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// What a seed does to this scenario.
    pub fn faults_of(&self, seed: u64) -> Faults {
        bearable(&self.prepared, Faults::of_seed(seed))
    }

    /// What a seed does to this scenario where there are two controllers.
    pub fn pair_faults_of(&self, seed: u64) -> Faults {
        bearable(&self.prepared, Faults::pair_of_seed(seed))
    }

    /// Tells it disturbed, once for each of these faults: it must end like the undisturbed run, or
    /// well if somebody else acts.
    pub fn judge(&self, faults: impl Iterator<Item = Faults>) -> impl Iterator<Item = Failed> {
        told(&self.prepared, faults.map(|faults| bearable(&self.prepared, faults)), &self.plain)
    }
}

/// Whoever wants an image in full that never stands, or fewer pods than must stay, gets no end:
/// nobody meddles with such scenarios.
pub fn bearable(prepared: &Prepared, mut faults: Faults) -> Faults {
    let scenario = prepared.scenario();
    let is_bound = scenario.objects.iter().any(|one| one["kind"] == "PodDisruptionBudget");
    faults.is_meddled_with &= scenario.images == Behaviours::default() && !is_bound;
    faults
}

/// The scenario as it is told.
pub fn undisturbed(prepared: &Prepared) -> RunTally {
    let plain = simulate(prepared, &Faults::default()).ending;
    tally(told(prepared, [Faults::default()].into_iter(), &plain))
}

/// Every fault at every write, or every `stride`th of these cases: each run must end like the
/// undisturbed one, and hardly later.
pub fn every_fault(prepared: &Prepared, stride: usize) -> RunTally {
    let plain = simulate(prepared, &Faults::default());
    let faults = points(plain.attempts).map(|(write, fault)| Faults::at(write, fault));
    let runs = faults.step_by(stride).map(|faults| {
        let outcome = simulate(prepared, &faults);
        let other = outcome.ending.same_as(&plain.ending).err().map(|found| found.to_string());
        found(faults, &outcome, other.or_else(|| belated(&outcome, &plain)))
    });
    tally(runs)
}

/// Every fault at one write, and another at the write after it.
pub fn every_pair(prepared: &Prepared, second: Fault, stride: usize) -> RunTally {
    let plain = simulate(prepared, &Faults::default());
    let runs = points(plain.attempts).map(|(write, fault)| {
        let mut faults = Faults::at(write, fault);
        faults.planned.extend(Faults::at(write + 1, second).planned);
        faults
    });
    tally(told(prepared, runs.step_by(stride), &plain.ending))
}

/// Where a frozen controller may leave another end. Its create arrives after the ReplicaSet was made by
/// the new leader, emptied and deleted as too old: it is made once more, nobody can tell, and as the
/// youngest it is kept instead of a newer revision.
const REMADE: &str = "history_limits";

/// Two controllers, and everything that can happen to the leader before every write, or every
/// `stride`th of these cases: each run must end like the undisturbed one.
pub fn every_takeover(prepared: &Prepared, stride: usize) -> RunTally {
    let plain = simulate(prepared, &Faults::default());
    let points = (1..=plain.attempts).flat_map(|write| LeadFault::ALL.map(|fault| (write, fault)));
    tally(points.step_by(stride).map(|(write, fault)| {
        let faults = Faults::of_pair(write, fault);
        let outcome = simulate(prepared, &faults);
        let other = other_end(prepared, &outcome, &plain.ending);
        found(faults, &outcome, other)
    }))
}

/// Many seeds: each run must end like the undisturbed one.
pub fn seeds(prepared: &Prepared, faults: impl Iterator<Item = Faults>) -> RunTally {
    let judge = ScenarioJudge::new(prepared.clone());
    tally(judge.judge(faults))
}

/// A person acts between any two requests of ours: an abort or promote is obeyed, never lost.
pub fn every_interruption(prepared: &Prepared, action: &Action, stride: usize) -> RunTally {
    let plain = simulate(prepared, &Faults::default());
    let requests = (1..=plain.requests + 1).step_by(stride);
    let faults = requests.map(|request| Faults::interrupted(request, action.clone()));
    let mut interrupted = 0;
    let runs = faults.map(|faults| {
        let outcome = simulate(prepared, &faults);
        interrupted += usize::from(outcome.interrupted_update == Some(true));
        found(faults, &outcome, disobeyed(action, &outcome, &plain.ending))
    });
    let tally = tally(runs);
    RunTally { interrupted, ..tally }
}

/// I-19: does a run with one fault take longer than that fault can cost? A pause or a delay that
/// begins anew does.
fn belated(outcome: &Outcome, plain: &Outcome) -> Option<String> {
    let (lasted, usual) = (outcome.lasted, plain.lasted);
    (usual + COST < lasted).then(|| format!("I-19: it lasts {lasted:#}, undisturbed {usual:#}"))
}

/// Every fault at every write that is tried: those that are refused count, as faults count them.
fn points(attempts: usize) -> impl Iterator<Item = (usize, Fault)> {
    (1..=attempts).flat_map(|write| Fault::ALL.map(|fault| (write, fault)))
}

/// What is wrong with the end of a run in which somebody interrupted an update.
fn disobeyed(action: &Action, outcome: &Outcome, plain: &Ending) -> Option<String> {
    if outcome.interrupted_update != Some(true) {
        return None; // There was nothing to give up or to promote.
    }
    let status = &outcome.ending.status;
    let is_obeyed = match action {
        Action::Abort => status["abort"] == true && status["phase"] == "Degraded",
        // Where the scenario itself aborts later, that counts.
        Action::PromoteFull => status["phase"] == "Healthy" || plain.status["abort"] == true,
        // Whatever it has ended or skipped, a promote that is lost is seen at the write that loses
        // it: a pause begins again, or the step goes back.
        _ => true,
    };
    (!is_obeyed).then(|| format!("{action:?} is not obeyed: the rollout ends with {status}"))
}

/// The scenario once for each of these faults: each must end like the undisturbed one.
fn told(
    prepared: &Prepared,
    faults: impl Iterator<Item = Faults>,
    plain: &Ending,
) -> impl Iterator<Item = Failed> {
    faults.map(|faults| {
        let outcome = simulate(prepared, &faults);
        let ends_as_it_likes = faults.may_change_the_scenario();
        let other = other_end(prepared, &outcome, plain).filter(|_| !ends_as_it_likes);
        found(faults, &outcome, other)
    })
}

/// How a run ends otherwise than the undisturbed one. The create of a leader that froze in the middle of it
/// arrives late, perhaps after the new leader has made the object and deleted it again: then it is made and
/// deleted once more.
fn other_end(prepared: &Prepared, outcome: &Outcome, plain: &Ending) -> Option<String> {
    let mut ending = outcome.ending.clone();
    if outcome.trace.met().times(LeadFault::Frozen.name()) > 0 {
        if prepared.scenario().name == REMADE {
            return None;
        }
        for (name, (made, gone)) in &mut ending.counts {
            let known = plain.counts.get(name).copied().unwrap_or_default();
            let surplus = (made.saturating_sub(known.0), gone.saturating_sub(known.1));
            if surplus.0 == surplus.1 {
                (*made, *gone) = (*made - surplus.0, *gone - surplus.1);
            }
        }
    }
    ending.same_as(plain).err().map(|violation| violation.to_string())
}

/// What is wrong with a run, and with its end.
fn found(faults: Faults, outcome: &Outcome, end: Option<String>) -> Failed {
    let violations = outcome.violations.iter().map(ToString::to_string).chain(end).collect();
    Failed { faults, violations, met: outcome.trace.met().clone() }
}

fn tally(runs: impl Iterator<Item = Failed>) -> RunTally {
    let mut tally = RunTally::default();
    for run in runs {
        tally.runs += 1;
        if !run.violations.is_empty() {
            tally.failed.push(run);
        }
    }
    tally
}
