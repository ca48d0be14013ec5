//! How many times a second is a scenario told, checkers on, on one core: many runs abreast, as
//! whoever enumerates faults tells them, or one after another?
//!
//! A core that is shared is now and then somebody else's: besides the whole, the fastest of many
//! rows is told, which is what the core does when it is ours alone.

use std::error::Error;
use std::iter::repeat_n;
use std::path::Path;

use gradus_lab::faults::Faults;
use gradus_lab::simulate::{ABREAST, Outcome, Prepared, simulate, simulate_each};

/// So many runs are a row.
const ROW: usize = 10 * ABREAST;

/// How runs follow each other.
#[derive(Clone, Copy)]
pub enum Order {
    Abreast,
    Alone,
}

/// Tells the scenario of a file so many times.
pub fn tell(file: &str, runs: usize, order: Order) -> Result<(), Box<dyn Error>> {
    let prepared = Prepared::new(gradus_lab::load(Path::new(file))?)?;
    let (mut seconds, mut best) = (0.0, 0.0_f64);
    let mut left = runs;
    while left > 0 {
        let row = left.min(ROW);
        let elapsed = timed(&prepared, row, order);
        best = best.max(rate(row, elapsed));
        seconds += elapsed;
        left -= row;
    }
    let rate = rate(runs, seconds);
    println!(
        "{runs} runs in {seconds:.2} s: {rate:.0} a second, {ROW} in a row {best:.0} a second"
    );
    Ok(())
}

/// The seconds of so many runs.
fn timed(prepared: &Prepared, runs: usize, order: Order) -> f64 {
    let check = |outcome: &Outcome| {
        assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    };
    let faults = repeat_n(Faults::default(), runs);
    #[expect(clippy::disallowed_types, reason = "this measures real time")]
    let begin = std::time::Instant::now();
    match order {
        Order::Abreast => simulate_each(prepared, faults).for_each(|(_, outcome)| check(&outcome)),
        Order::Alone => faults.for_each(|faults| check(&simulate(prepared, &faults))),
    }
    begin.elapsed().as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "so many runs nobody waits for")]
fn rate(runs: usize, seconds: f64) -> f64 {
    runs as f64 / seconds
}
