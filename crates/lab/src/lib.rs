//! The controller against a cluster: simulated in virtual time, or live over HTTP.
//!
//! Read in this order: a scenario ([`scenario`], [`person`], [`sight`]), how it is run
//! ([`simulate`], [`faults`], `meddler`, [`trace`]), how it is judged ([`checks`], [`ends`]) and
//! how often ([`enumerate`]). [`live`] tells the same scenarios with the production loop;
//! [`tryout`] makes one of a user's own manifests, with what analyses find ([`outlook`]);
//! [`budgets`] makes some that count writes. [`saved`] decides again on a World from the field.

pub mod budgets;
pub mod checks;
mod deeds;
mod door;
pub mod ends;
pub mod enumerate;
pub mod faults;
pub mod live;
mod meddler;
pub mod objects;
pub mod outlook;
pub mod outside;
pub mod person;
pub mod played;
pub mod routing;
pub mod saved;
pub mod scenario;
pub mod sight;
pub mod simulate;
pub mod subject;
pub mod trace;
pub mod tryout;

pub use scenario::{Scenario, load, load_all};
pub use simulate::{Outcome, Prepared, simulate};
