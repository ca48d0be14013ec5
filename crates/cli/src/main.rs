//! The `gradus` binary: all that it is made of, and its memory.

use std::process::ExitCode;

// With glibc it stands in for `malloc` itself; elsewhere it is called by its own names.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use mimalloc as _;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    gradus::main()
}
