//! Do Databases live as the scenarios in `scenarios/` tell, whatever goes wrong on the way?

use std::path::Path;
use std::time::Duration;

use gradus_lab::enumerate;
use gradus_lab::faults::{Fault, Faults};
use gradus_lab::live::live;
use gradus_lab::person::Action;
use gradus_lab::simulate::{Prepared, simulate};

use crate::engine::Databases;

fn scenarios() -> Vec<Prepared> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let scenarios = gradus_lab::load_all(&folder).expect("the scenarios are well formed");
    assert_eq!(scenarios.len(), 10, "every scenario is told");
    let prepared =
        |scenario| Prepared::about::<Databases>(scenario).expect("its objects are accepted");
    scenarios.into_iter().map(prepared).collect()
}

/// An unoptimised build, forty times slower, tries every fifth pair of faults.
const STRIDE: usize = if cfg!(debug_assertions) { 5 } else { 1 };

#[test]
fn every_scenario_happens_as_it_is_told() {
    for prepared in scenarios() {
        enumerate::undisturbed(&prepared).assert_all_good(&prepared);
    }
}

#[test]
fn a_crash_or_a_conflict_at_any_write_changes_the_path_but_not_the_end() {
    for prepared in scenarios() {
        enumerate::every_fault(&prepared, 1).assert_all_good(&prepared);
    }
}

#[test]
fn two_faults_in_a_row_do_not_change_the_end() {
    for prepared in scenarios() {
        for second in [Fault::CrashAfter, Fault::LostAnswer] {
            enumerate::every_pair(&prepared, second, STRIDE).assert_all_good(&prepared);
        }
    }
}

#[test]
fn any_order_of_steps_and_any_mix_of_faults_leads_to_the_same_end() {
    for prepared in scenarios() {
        for faults in [Faults::order, Faults::mixed] {
            enumerate::seeds(&prepared, (0..20).map(faults)).assert_all_good(&prepared);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_scenario_ends_live_as_it_ends_simulated() {
    for prepared in scenarios() {
        let name = &prepared.scenario().name;
        let ending = live(&prepared, async |lab| lab.tell(&prepared).await).await;
        let ending = ending.unwrap_or_else(|violation| panic!("{name}: {violation}"));
        let simulated = simulate(&prepared, &Faults::default());
        ending.same_as(&simulated.ending).unwrap_or_else(|violation| panic!("{name}: {violation}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_or_a_conflict_at_any_write_does_not_change_the_end_live() {
    for prepared in scenarios() {
        let name = &prepared.scenario().name;
        let told = live(&prepared, async |lab| (lab.tell(&prepared).await, lab.asked().writes));
        let (plain, writes) = told.await;
        let plain = plain.unwrap_or_else(|violation| panic!("{name}: {violation}"));
        for write in 1..=writes {
            for fault in [Fault::CrashBefore, Fault::CrashAfter, Fault::Conflict] {
                let ending = live(&prepared, async |lab| {
                    lab.disturb(write, fault);
                    lab.tell(&prepared).await
                });
                let is_same = ending.await.and_then(|ending| ending.same_as(&plain));
                is_same.unwrap_or_else(|found| panic!("{name}: {fault:?} at {write}: {found}"));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_settled_database_makes_no_requests_and_a_restart_makes_no_writes() {
    for prepared in scenarios() {
        let name = &prepared.scenario().name;
        live(&prepared, async |lab| {
            lab.tell(&prepared).await.unwrap();
            lab.pass(Duration::from_secs(5)).await;
            let before = lab.asked();
            lab.pass(Duration::from_secs(600)).await;
            assert_eq!(lab.asked(), before, "{name}: nothing but watches in ten minutes");

            lab.act(&Action::RestartController).unwrap();
            lab.pass(Duration::from_secs(60)).await;
            assert_eq!(lab.asked().writes, before.writes, "{name}: nothing to do after a restart");
        })
        .await;
    }
}
