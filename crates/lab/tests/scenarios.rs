//! Every file of `scenarios/`: it happens as told, and ends the same whatever goes wrong.

use std::path::Path;

use gradus_lab::Scenario;
use gradus_lab::enumerate::{self, Tally};
use gradus_lab::faults::{Fault, Faults};
use gradus_lab::person::Action;
use gradus_lab::simulate::{Prepared, narrate, simulate};
use gradus_simkube::behave::Behaviours;

fn prepared(scenario: Scenario) -> Prepared {
    Prepared::new(scenario).expect("the objects of the stories are accepted")
}

fn stories() -> Vec<Prepared> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenarios = gradus_lab::load_all(&folder).expect("the stories are well formed");
    assert!(!scenarios.is_empty(), "there are stories to tell");
    scenarios.into_iter().map(prepared).collect()
}

/// The story that is always told with every case. Of the others an unoptimised build, forty times
/// slower, tells every eleventh: a number that meets each of the seven faults in turn.
const FIRST: &str = "canary_pause_promote";

fn stride(prepared: &Prepared) -> usize {
    if cfg!(debug_assertions) && prepared.scenario().name != FIRST { 11 } else { 1 }
}

/// Fails with everything that is needed to see why: the first run that failed, told again.
fn assert_all_good(prepared: &Prepared, tally: &Tally) {
    let name = &prepared.scenario().name;
    assert!(tally.runs > 0, "{name}: nothing was run");
    if let Some(first) = tally.failed.first() {
        let told = narrate(prepared, &first.faults);
        let count = tally.failed.len();
        panic!("{name}: {count} of {} runs failed; the first: {first}\n{}", tally.runs, told.trace);
    }
}

#[test]
fn every_story_happens_as_it_is_told() {
    for prepared in stories() {
        let outcome = simulate(&prepared, &Faults::default());
        if !outcome.violations.is_empty() {
            let told = narrate(&prepared, &Faults::default());
            let found: Vec<_> = outcome.violations.iter().map(ToString::to_string).collect();
            panic!("{}:\n{}\n{}", prepared.scenario().name, told.trace, found.join("\n"));
        }
    }
}

#[test]
fn a_fault_at_any_write_changes_the_path_but_not_the_end() {
    for prepared in stories() {
        assert_all_good(&prepared, &enumerate::every_fault(&prepared, stride(&prepared)));
    }
}

#[test]
fn two_faults_in_a_row_do_not_change_the_end() {
    for prepared in stories() {
        for second in [Fault::CrashAfter, Fault::LostAnswer] {
            let tally = enumerate::every_pair(&prepared, second, stride(&prepared));
            assert_all_good(&prepared, &tally);
        }
    }
}

#[test]
fn a_command_between_any_two_requests_is_obeyed() {
    for prepared in stories() {
        let has_good_images = prepared.scenario().images == Behaviours::default();
        for action in [Action::Abort, Action::Promote, Action::PromoteFull] {
            if action == Action::PromoteFull && !has_good_images {
                continue; // What is wanted in full and cannot run has no good end.
            }
            let tally = enumerate::every_interruption(&prepared, &action, stride(&prepared));
            assert_all_good(&prepared, &tally);
        }
    }
}
