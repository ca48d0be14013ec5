//! Two controllers, of which one leads: whatever happens to it, and whenever, one writes at a time
//! (I-17) and every rollout ends as with one controller.

use std::path::Path;

use gradus_lab::enumerate;
use gradus_lab::faults::{Faults, LeadFault};
use gradus_lab::simulate::{Ground, Prepared, narrate};
use gradus_lab::trace::Met;

fn scenarios() -> Vec<Prepared> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenarios = gradus_lab::load_all(&folder).expect("the scenarios are well formed");
    let ground = Ground::new().expect("our definitions are accepted");
    let prepared = scenarios.into_iter().map(|scenario| ground.prepare(scenario));
    prepared.collect::<Result<_, _>>().expect("the objects of the scenarios are accepted")
}

/// An unoptimised build tries a sample; `cargo xtask sim` tries all of them.
#[test]
fn whatever_happens_to_the_leader_before_any_write_the_end_is_the_same() {
    let stride = if cfg!(debug_assertions) { 151 } else { 1 };
    for prepared in scenarios() {
        enumerate::every_takeover(&prepared, stride).assert_all_good(&prepared);
    }
}

/// A sample; `cargo xtask sim --two --seeds` goes through many more.
#[test]
fn two_controllers_with_clocks_apart_end_as_one_does() {
    let count = if cfg!(debug_assertions) { 1 } else { 500 };
    for prepared in scenarios() {
        let tally = enumerate::seeds(&prepared, (0..count).map(Faults::pair_of_seed));
        tally.assert_all_good(&prepared);
    }
}

#[test]
fn seeds_meet_everything_that_can_happen_to_a_leader() {
    let prepared = scenarios().swap_remove(0);
    let mut met = Met::default();
    for seed in 0..40 {
        met.add(narrate(&prepared, &Faults::pair_of_seed(seed)).trace.met());
    }
    for fault in LeadFault::ALL {
        assert!(met.times(fault.name()) > 0, "{} in {met}", fault.name());
    }
    assert!(met.times("takeover") > 80, "the lead changes in nearly every run: {met}");
}
