//! The `gradus` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    gradus::main()
}
