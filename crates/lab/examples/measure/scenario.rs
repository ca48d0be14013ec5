//! How many times a second a scenario runs on one core, checkers on. The rate is printed for people;
//! what is held to a budget is the number of instructions.

use std::error::Error;
use std::path::Path;

use gradus_lab::faults::Faults;
use gradus_lab::simulate::{Prepared, simulate};

/// Runs the scenario of a file so many times.
pub fn tell(file: &str, runs: usize) -> Result<(), Box<dyn Error>> {
    let prepared = Prepared::new(gradus_lab::load(Path::new(file))?)?;
    #[expect(clippy::disallowed_types, reason = "this measures real time")]
    let begin = std::time::Instant::now();
    for _ in 0..runs {
        let outcome = simulate(&prepared, &Faults::default());
        assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("{runs} runs in {seconds:.2} s: {:.0} a second", rate(runs, seconds));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "so many runs nobody waits for")]
fn rate(runs: usize, seconds: f64) -> f64 {
    runs as f64 / seconds
}
