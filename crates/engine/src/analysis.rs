//! What does an analysis measure? Templates and arguments become the spec of a run, the same way for
//! whoever starts it.

pub mod arguments;
pub mod condition;
mod functions;
pub mod merge;
pub mod run;
pub mod start;
pub mod statistics;
