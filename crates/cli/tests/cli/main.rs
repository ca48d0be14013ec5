//! The binary, run as a person runs it.

#![allow(clippy::unwrap_used, reason = "all of this crate is tests")]

mod bad_input;
mod causes;
mod cluster;
mod commands;
mod completion;
mod contract;
mod controller;
mod demo;
mod docs;
mod effects;
mod explain;
mod faulty;
mod flags;
// One way to find kubectl, for the tests of every crate.
#[path = "../../../simkube/tests/kubectl/found.rs"]
mod found;
mod help;
mod hostile;
mod interlock;
mod kubectl;
mod logs;
mod outputs;
mod person;
mod plugin;
mod plugins;
mod program;
mod reviewer;
mod schema;
mod secrets;
mod shell;
mod shown;
mod simulate;
mod stuck;
mod terminal;
mod words;
