//! First-stage validation.
