//! A cluster in memory that knows nothing about rollouts.
pub mod patch;
pub mod schema;
pub mod selector;
