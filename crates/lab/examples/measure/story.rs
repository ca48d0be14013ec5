//! How many times a second is a story told, checkers on, on one core?

use std::path::Path;
use std::process::ExitCode;

use gradus_lab::faults::Faults;
use gradus_lab::simulate::{Prepared, simulate};

/// Tells the story of a file so many times.
pub fn tell(file: &str, runs: usize) -> ExitCode {
    let told = gradus_lab::load(Path::new(file))
        .map_err(|error| error.to_string())
        .and_then(|scenario| Prepared::new(scenario).map_err(|error| error.to_string()));
    let prepared = match told {
        Ok(prepared) => prepared,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    #[expect(clippy::disallowed_types, reason = "this measures real time")]
    let begin = std::time::Instant::now();
    for _ in 0..runs {
        let outcome = simulate(&prepared, &Faults::default());
        assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    }
    let seconds = begin.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "so many runs nobody waits for")]
    let rate = runs as f64 / seconds;
    println!("{runs} runs in {seconds:.2} s: {rate:.0} a second");
    ExitCode::SUCCESS
}
