//! The `gradus` binary: argv to command.

fn main() {}
