//! How many times a second is a story told, checkers on? `rate FILE [RUNS]`, on one core.

use std::path::Path;
use std::process::ExitCode;

use gradus_lab::faults::Faults;
use gradus_lab::simulate::{Prepared, simulate};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("usage: rate FILE [RUNS]");
        return ExitCode::FAILURE;
    };
    let runs: u32 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let told = gradus_lab::load(Path::new(&file))
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
    println!("{runs} runs in {seconds:.2} s: {:.0} a second", f64::from(runs) / seconds);
    ExitCode::SUCCESS
}
