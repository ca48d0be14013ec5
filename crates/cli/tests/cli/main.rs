//! The binary, run as a person runs it.

#![allow(clippy::unwrap_used, reason = "all of this crate is tests")]

mod bad_input;
mod cluster;
mod controller;
mod demo;
mod docs;
mod explain;
mod flags;
mod kubectl;
mod program;
mod simulate;
