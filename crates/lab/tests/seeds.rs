//! Many seeds: any order of steps, and any mix of faults, leads to the same end.

use std::path::Path;

use gradus_lab::enumerate::{self, ScenarioJudge};
use gradus_lab::faults::Faults;
use gradus_lab::simulate::{Ground, Prepared, narrate};

/// The scenario with the most seeds.
const FIRST: &str = "canary_pause_promote";

/// Enough to meet every kind of fault often; an unoptimised build is forty times slower.
fn seeds(prepared: &Prepared) -> u64 {
    match (cfg!(debug_assertions), prepared.scenario().name == FIRST) {
        (true, true) => 100,
        (true, false) => 10,
        (false, _) => 1_000,
    }
}

fn scenarios() -> Vec<Prepared> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenarios = gradus_lab::load_all(&folder).expect("the scenarios are well formed");
    let ground = Ground::new().expect("our definitions are accepted");
    let prepared = scenarios.into_iter().map(|scenario| ground.prepare(scenario));
    prepared.collect::<Result<_, _>>().expect("the objects of the scenarios are accepted")
}

fn assert_all_good(seeds: impl Fn(&Prepared) -> u64, faults: impl Fn(u64) -> Faults) {
    for prepared in scenarios() {
        let tally = enumerate::seeds(&prepared, (0..seeds(&prepared)).map(&faults));
        tally.assert_all_good(&prepared);
    }
}

#[test]
fn the_order_of_steps_does_not_change_the_end() {
    assert_all_good(seeds, Faults::order);
}

/// The seeds in two halves: tests share the processors.
#[test]
fn faults_of_all_kinds_do_not_change_the_end() {
    assert_all_good(|scenario| seeds(scenario) / 2, |seed| Faults::mixed(2 * seed));
}

#[test]
fn faults_of_odd_seeds_do_not_change_the_end() {
    assert_all_good(|scenario| seeds(scenario) / 2, |seed| Faults::mixed(2 * seed + 1));
}

/// Scenario and seed of failures that were fixed.
const ONCE_FAILED: [(&str, u64); 2] =
    [("strategy_switch", 7_043_549), ("blue_green_manual", 7_131_824)];

#[test]
fn seeds_that_once_failed_do_not_fail_again() {
    let all = scenarios();
    for (name, seed) in ONCE_FAILED {
        let prepared = all.iter().find(|one| one.scenario().name == name).unwrap();
        let judge = ScenarioJudge::new(prepared.clone());
        let faults = judge.faults_of(seed);
        for judged in judge.judge([faults].into_iter()) {
            assert!(judged.violations.is_empty(), "{name}, seed {seed}: {judged}");
        }
    }
}

#[test]
fn the_mix_has_every_fault_that_is_promised() {
    let prepared =
        scenarios().into_iter().find(|scenario| scenario.scenario().name == FIRST).unwrap();
    let mut missing = vec![
        "controller: starts",
        "controller: a request takes its time",
        "is late",
        "is lost",
        "comes twice",
        "is overtaken",
        "an injected Conflict",
        "an injected Throttled",
        "an injected ServerError",
        "an injected LostAnswer",
        "an injected Unreachable",
        "fault of a read: ServerError",
        "fault: CrashBefore",
        "fault: CrashAfter",
        "person: Behave",
        "person: Scale",
        "person: SetImage(\"example.com/web:next",
        "person: Abort",
        "person: PromoteFull",
        "person: Retry",
        "person: Pause",
        "person: Restart",
    ];
    for seed in 0..60 {
        let told = narrate(&prepared, &Faults::of_seed(seed)).trace.to_string();
        missing.retain(|fault| !told.contains(fault));
        if missing.is_empty() {
            return;
        }
    }
    panic!("in 60 seeds nobody has met {missing:?}");
}

#[test]
fn whoever_acts_at_whatever_moment_the_rollout_ends_well() {
    // A sample; `cargo xtask sim --seeds` goes through many more.
    assert_all_good(|_| 10, Faults::meddled);
}
