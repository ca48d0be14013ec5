//! A cluster in memory that knows nothing about rollouts.
