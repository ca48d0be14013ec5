//! What should happen next: pure decisions from a snapshot of the cluster.

pub mod template;
