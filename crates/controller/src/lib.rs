//! Carries decisions out: all cluster and network I/O.

pub mod act;
pub mod analysis_runs;
pub mod ask;
pub mod clock;
pub mod cluster;
pub mod connect;
pub mod engines;
pub mod events;
pub mod experiments;
pub mod families;
pub mod health;
mod hidden;
pub mod judged;
pub mod kube_cluster;
pub mod lease;
pub mod one_line;
pub mod plugins;
pub mod production;
pub mod program;
pub mod queue;
pub mod random;
pub mod rate;
pub mod reconciler;
pub mod releases;
pub mod rollouts;
pub mod run;
pub mod shell;
pub mod stop;
pub mod telemetry;
pub mod tolerant;
pub mod version;
pub mod watch;
pub mod watched;

/// How requests name who sends them, to whomever.
pub(crate) const AGENT: &str = concat!("gradus/", env!("CARGO_PKG_VERSION"));
