//! Every run twice: the same scenario and seed always give the same trace.

use std::path::Path;

use gradus_lab::enumerate::bearable;
use gradus_lab::faults::{Fault, Faults};
use gradus_lab::person::Action;
use gradus_lab::simulate::{Ground, Outcome, Prepared, narrate, simulate};

/// The scenario of which every case is run twice.
const FIRST: &str = "canary_pause_promote";

/// Of the others an unoptimised build, forty times slower, takes every hundredth case: a number
/// that meets each of the seven faults, and each of the three commands, in turn.
fn stride(prepared: &Prepared) -> usize {
    if cfg!(debug_assertions) && prepared.scenario().name != FIRST { 100 } else { 1 }
}

fn seeds(prepared: &Prepared) -> u64 {
    match (cfg!(debug_assertions), prepared.scenario().name == FIRST) {
        (true, true) => 20,
        (true, false) => 2,
        (false, _) => 100,
    }
}

#[test]
fn equal_runs_leave_equal_traces() {
    assert_all_equal(|plain| {
        let writes = 1..=plain.attempts;
        let faults = writes.flat_map(|write| Fault::ALL.map(|fault| Faults::at(write, fault)));
        faults.collect()
    });
}

#[test]
fn equal_runs_that_somebody_interrupts_leave_equal_traces() {
    let commands = [Action::Abort, Action::Promote, Action::PromoteFull];
    assert_all_equal(|plain| {
        let requests = 1..=plain.requests + 1;
        let faults = requests.flat_map(|request| {
            commands.each_ref().map(|action| Faults::interrupted(request, action.clone()))
        });
        faults.collect()
    });
}

#[test]
fn equal_runs_in_drawn_order_leave_equal_traces() {
    assert_seeds_equal(Faults::order);
}

#[test]
fn equal_runs_with_equal_faults_leave_equal_traces() {
    assert_seeds_equal(Faults::mixed);
}

#[test]
fn equal_runs_that_others_meddle_with_leave_equal_traces() {
    assert_seeds_equal(Faults::meddled);
}

/// Every scenario twice with each of so many seeds.
fn assert_seeds_equal(faults: impl Fn(u64) -> Faults) {
    for (one, other) in twins() {
        let faults = (0..seeds(&one)).map(|seed| bearable(&one, faults(seed)));
        assert_equal(&one, &other, faults);
    }
}

/// Every scenario twice, undisturbed and with each of these faults, which depend on how it goes
/// undisturbed: all of them, or a sample.
fn assert_all_equal(faults: impl Fn(&Outcome) -> Vec<Faults>) {
    for (number, (one, other)) in twins().into_iter().enumerate() {
        // From another case on in each scenario: together they take all kinds.
        let stride = stride(&one);
        let faults = faults(&simulate(&one, &Faults::default()));
        let faults = faults.into_iter().skip(number % stride).step_by(stride);
        assert_equal(&one, &other, [Faults::default()].into_iter().chain(faults));
    }
}

/// Every scenario twice from the ground up: nothing of a process may enter a run.
fn twins() -> Vec<(Prepared, Prepared)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenarios = gradus_lab::load_all(&folder).expect("the scenarios are well formed");
    let grounds = [(); 2].map(|()| Ground::new().expect("our definitions are accepted"));
    let twin = |scenario| {
        let [one, other] = grounds.each_ref().map(|ground| {
            let scenario = Clone::clone(&scenario);
            ground.prepare(scenario).expect("the objects of the scenarios are accepted")
        });
        (one, other)
    };
    scenarios.into_iter().map(twin).collect()
}

/// Each of these faults in both: the same run.
fn assert_equal(one: &Prepared, other: &Prepared, faults: impl Iterator<Item = Faults>) {
    let name = &one.scenario().name;
    for faults in faults {
        let (first, second) = (simulate(one, &faults), simulate(other, &faults));
        assert_eq!(first.trace.hash(), second.trace.hash(), "{name}, {faults:?}");
        assert_eq!(first.trace.count(), second.trace.count(), "{name}, {faults:?}");
        assert_eq!(first.ending, second.ending, "{name}, {faults:?}");
    }
}

#[test]
fn a_told_run_is_the_run_that_is_told_about() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/canary_pause_promote.yaml");
    let prepared = Prepared::new(gradus_lab::load(&path).unwrap()).unwrap();
    let (quiet, told) =
        (simulate(&prepared, &Faults::mixed(3)), narrate(&prepared, &Faults::mixed(3)));
    assert_eq!(quiet.trace.hash(), told.trace.hash());
    assert_eq!(told.trace.records().len(), told.trace.count());
    assert!(quiet.trace.records().is_empty(), "a quiet run keeps its hash alone");
}
