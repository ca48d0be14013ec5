//! Decisions of whole rollouts.
