//! Every file of `scenarios/`: it happens as told, and ends the same whatever goes wrong.

use std::path::Path;

use gradus_lab::enumerate;
use gradus_lab::faults::{Fault, Faults};
use gradus_lab::person::Action;
use gradus_lab::simulate::{Ground, Outcome, Prepared, simulate};
use gradus_simkube::behave::Behaviours;

fn scenarios() -> Vec<Prepared> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenarios = gradus_lab::load_all(&folder).expect("the scenarios are well formed");
    assert!(!scenarios.is_empty(), "there are scenarios to tell");
    let ground = Ground::new().expect("our definitions are accepted");
    let prepared = scenarios.into_iter().map(|scenario| ground.prepare(scenario));
    prepared.collect::<Result<_, _>>().expect("the objects of the scenarios are accepted")
}

/// The scenario that is always told with every case. Of the others an unoptimised build, forty
/// times slower, tells every eleventh: a number that meets each of the seven faults in turn.
const FIRST: &str = "canary_pause_promote";

fn stride(prepared: &Prepared) -> usize {
    if cfg!(debug_assertions) && prepared.scenario().name != FIRST { 11 } else { 1 }
}

#[test]
fn every_scenario_happens_as_it_is_told() {
    for prepared in scenarios() {
        enumerate::undisturbed(&prepared).assert_all_good(&prepared);
    }
}

#[test]
fn a_fault_at_any_write_changes_the_path_but_not_the_end() {
    for prepared in scenarios() {
        enumerate::every_fault(&prepared, stride(&prepared)).assert_all_good(&prepared);
    }
}

/// Scenarios in which the server refuses writes, by themselves or because the scenario says so.
#[test]
fn writes_that_are_refused_are_visited_too() {
    let refused = ["argo_issue_3316", "argo_issue_3774", "restart"];
    let named = |prepared: &Prepared| refused.contains(&prepared.scenario().name.as_str());
    let scenarios: Vec<Prepared> = scenarios().into_iter().filter(named).collect();
    assert_eq!(scenarios.len(), refused.len());
    for prepared in scenarios {
        let name = &prepared.scenario().name;
        let plain = simulate(&prepared, &Faults::default());
        assert!(plain.writes < plain.attempts, "{name}: some of its writes are refused");
        // One fault at each write.
        let tally = enumerate::every_fault(&prepared, Fault::ALL.len());
        assert_eq!(tally.runs, plain.attempts, "{name}");
        tally.assert_all_good(&prepared);
        for fault in Fault::ALL {
            let last = simulate(&prepared, &Faults::at(plain.attempts, fault));
            let met = |outcome: &Outcome| outcome.trace.met().times(fault.name());
            assert_eq!(met(&last), met(&plain) + 1, "{name}: {fault:?} at the last write");
        }
    }
}

#[test]
fn a_crash_after_a_fault_does_not_change_the_end() {
    assert_second_fault_is_survived(Fault::CrashAfter);
}

#[test]
fn a_lost_answer_after_a_fault_does_not_change_the_end() {
    assert_second_fault_is_survived(Fault::LostAnswer);
}

/// One test for each second fault: these are the longest of all, and tests share the processors.
fn assert_second_fault_is_survived(second: Fault) {
    for prepared in scenarios() {
        let tally = enumerate::every_pair(&prepared, second, stride(&prepared));
        tally.assert_all_good(&prepared);
    }
}

#[test]
fn a_command_between_any_two_requests_is_obeyed() {
    for prepared in scenarios() {
        let has_good_images = prepared.scenario().images == Behaviours::default();
        for action in [Action::Abort, Action::Promote, Action::PromoteFull] {
            if action == Action::PromoteFull && !has_good_images {
                continue; // What is wanted in full and cannot run has no good end.
            }
            let tally = enumerate::every_interruption(&prepared, &action, stride(&prepared));
            tally.assert_all_good(&prepared);
            let name = &prepared.scenario().name;
            // Where cases are passed over, so may be the few requests of a short update.
            let has_update = prepared.scenario().end.sizes.len() > 1 && stride(&prepared) == 1;
            assert!(tally.interrupted > 0 || !has_update, "{name}: {action:?} met no update");
        }
    }
}
