//! Tells a story of `scenarios/` line by line: `narrate FILE [SEED]`, with all faults of the seed.

use std::path::Path;
use std::process::ExitCode;

use gradus_lab::faults::Faults;
use gradus_lab::simulate::{Prepared, narrate};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("usage: narrate FILE [SEED]");
        return ExitCode::FAILURE;
    };
    let seed = arguments.next().and_then(|text| text.parse().ok());
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
    let outcome = narrate(&prepared, &seed.map_or_else(Faults::default, Faults::mixed));
    println!("{}", outcome.trace);
    println!("ends with {}", outcome.ending.status);
    println!("{} writes, {} requests, {:#}", outcome.writes, outcome.requests, outcome.lasted);
    for violation in &outcome.violations {
        println!("{violation}");
    }
    if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
