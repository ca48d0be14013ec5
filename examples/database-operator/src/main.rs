//! `database-operator`: the smallest complete controller on Gradus' loop. A Database becomes a
//! Secret, a Service and a StatefulSet that runs PostgreSQL.
//!
//! Read in this order: what a user writes (`api`), whether it may be carried out (`accept`), which
//! objects it asks for (`children`), the decision (`engine`); this file hands it to the loop.

mod accept;
mod api;
mod children;
mod demo;
mod engine;
#[cfg(test)]
mod scenarios;

use clap::Parser;
use gradus_controller::program::Flags;
use gradus_controller::run::Settings;

use crate::engine::ENGINES;

/// PostgreSQL databases as Kubernetes objects
#[derive(Debug, Parser)]
enum Command {
    /// Show the life of a Database on an embedded cluster, without Kubernetes
    Demo,
    /// Look after the Databases of a cluster
    Controller(Box<Flags>),
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Demo => demo::play(),
        Command::Controller(flags) => {
            flags.start_logging()?;
            Ok(flags.run(&ENGINES, "looking after the Databases", Settings::default())?)
        }
    }
}
