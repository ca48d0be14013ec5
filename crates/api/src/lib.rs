//! What a user can write: the kinds of `argoproj.io/v1alpha1` as read-only views.
//!
//! A type here has every field of its part of the API. Nothing is required when reading
//! ([`decode`] says what could not be read), and every change to the cluster is a patch, so
//! what these types do not know is never lost. Metadata is not part of them.

pub mod names;
pub mod values;

pub mod rollout;
pub mod traffic;

pub mod analysis;
pub mod experiment;
pub mod metrics;

pub mod crd;
pub mod decode;
pub mod defaults;
pub mod patch;
pub mod validate;

mod schema;
mod view;

pub use analysis::{AnalysisRunSpec, AnalysisRunStatus, AnalysisTemplateSpec};
pub use decode::{FieldError, decode};
pub use experiment::{ExperimentSpec, ExperimentStatus};
pub use rollout::{CanaryStep, RolloutSpec, RolloutStatus, StepKind};
pub use values::Time;
