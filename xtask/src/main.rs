//! Project tasks: `cargo xtask test`, `real`, `conformance`, `bench`, `crds`.

fn main() {}
