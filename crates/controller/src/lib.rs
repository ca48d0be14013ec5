//! Carries decisions out: all cluster and network I/O.
