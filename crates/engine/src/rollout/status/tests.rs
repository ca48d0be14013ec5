//! Status tables.
