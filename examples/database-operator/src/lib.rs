//! The smallest complete controller on Gradus' loop: a Database becomes a Secret, a Service and a
//! StatefulSet that runs PostgreSQL.
//!
//! Read in this order: what a user writes ([`api`]), what one decision may look at ([`world`]),
//! whether a spec may be carried out ([`accept`]), which objects it asks for ([`children`]), the
//! decision itself ([`engine`]) and what is watched for it ([`watched`]). `main.rs` hands it to the
//! loop.

pub mod api;
pub mod world;

pub mod accept;
pub mod children;
pub mod engine;
pub mod watched;

#[cfg(test)]
mod stories;
