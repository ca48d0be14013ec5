//! Carries decisions out: all cluster and network I/O.

pub mod clock;
pub mod queue;
