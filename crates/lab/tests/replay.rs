//! Every run twice: the same story and seed always give the same trace.

use std::path::Path;

use gradus_lab::faults::{Fault, Faults};
use gradus_lab::simulate::{Prepared, narrate, simulate};

#[test]
fn equal_runs_leave_equal_traces() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for scenario in gradus_lab::load_all(&folder).unwrap() {
        let name = scenario.name.clone();
        // Prepared twice as well: nothing of a process may enter a run.
        let (one, other) =
            (Prepared::new(scenario.clone()).unwrap(), Prepared::new(scenario).unwrap());
        let plain = simulate(&one, &Faults::default());
        let (stride, seeds) = if cfg!(debug_assertions) { (9, 5) } else { (1, 100) };
        let writes = (1..=plain.writes).step_by(stride);
        let crashes = writes.map(|write| Faults::at(write, Fault::CrashAfter));
        let seeds = (0..seeds).flat_map(|seed| [Faults::order(seed), Faults::mixed(seed)]);
        for faults in [Faults::default()].into_iter().chain(crashes).chain(seeds) {
            let (first, second) = (simulate(&one, &faults), simulate(&other, &faults));
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
