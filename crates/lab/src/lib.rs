//! The controller against a cluster: simulated, or a real control plane.
