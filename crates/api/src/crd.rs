//! The CustomResourceDefinitions of the five kinds.

pub(crate) mod job;
pub(crate) mod pod_template;
