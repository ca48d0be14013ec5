//! Carries decisions out: all cluster and network I/O.

pub mod act;
pub mod clock;
pub mod cluster;
pub mod connect;
pub mod engines;
pub mod events;
pub mod families;
pub mod health;
pub mod kube_cluster;
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
pub mod watch;
pub mod watched;
