//! What the shell promises.
