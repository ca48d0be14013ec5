//! Every run twice: the same story and seed always give the same trace.

use std::path::Path;

use gradus_lab::faults::{Fault, Faults};
use gradus_lab::simulate::{Ground, Outcome, Prepared, narrate, simulate, simulate_each};

/// Of an unoptimised build, so many writes are passed over, and so many seeds are enough.
const STRIDE: usize = if cfg!(debug_assertions) { 9 } else { 1 };
const SEEDS: u64 = if cfg!(debug_assertions) { 5 } else { 100 };

#[test]
fn equal_runs_leave_equal_traces() {
    assert_all_equal(|plain| {
        let writes = (1..=plain.writes).step_by(STRIDE);
        let crashes = writes.map(|write| Faults::at(write, Fault::CrashAfter));
        [Faults::default()].into_iter().chain(crashes).collect()
    });
}

#[test]
fn equal_runs_in_drawn_order_leave_equal_traces() {
    assert_all_equal(|_| (0..SEEDS).map(Faults::order).collect());
}

#[test]
fn equal_runs_with_equal_faults_leave_equal_traces() {
    assert_all_equal(|_| (0..SEEDS).map(Faults::mixed).collect());
}

/// Every story twice with each of these faults, which may depend on how it goes undisturbed.
fn assert_all_equal(faults: impl Fn(&Outcome) -> Vec<Faults>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    // Twice from the ground up: nothing of a process may enter a run.
    let grounds = [(); 2].map(|()| Ground::new().expect("our definitions are accepted"));
    for scenario in gradus_lab::load_all(&folder).expect("the stories are well formed") {
        let name = scenario.name.clone();
        let [one, other] = grounds.each_ref().map(|ground| {
            ground.prepare(scenario.clone()).expect("the objects of the stories are accepted")
        });
        // And once alone, once among others: no run sees another.
        let faults = faults(&simulate(&one, &Faults::default()));
        for (faults, first) in simulate_each(&one, faults) {
            let second = simulate(&other, &faults);
            assert_eq!(first.trace.hash(), second.trace.hash(), "{name}, {faults:?}");
            assert_eq!(first.trace.count(), second.trace.count(), "{name}, {faults:?}");
            assert_eq!(first.ending, second.ending, "{name}, {faults:?}");
        }
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
