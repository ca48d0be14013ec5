//! How do the versions do, and what would an analysis find? A simulation declares it; nobody
//! measures.

mod assess;
mod condition;

use gradus_simkube::behave::matches;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

pub use assess::{Run, RunEnd, is_measurable, verdict};

/// What a simulation declares about its versions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outlook {
    /// What measuring a version gives; of those that fit, the last one counts.
    pub measured: Vec<Measured>,
    /// Results that are given, whatever is measured; the first that fits counts.
    pub given: Vec<Given>,
}

/// What measuring a version gives from a moment on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Measured {
    /// Which images; `*` stands for any text.
    pub image: String,
    /// Which metrics a value is for; `*` stands for any text.
    pub metric: String,
    /// Since the beginning of the update.
    pub from: SignedDuration,
    /// So many of a hundred requests fail.
    pub error_percent: Option<f64>,
    /// The metric's value itself.
    pub value: Option<f64>,
}

impl Default for Measured {
    fn default() -> Self {
        Measured {
            image: "*".to_owned(),
            metric: "*".to_owned(),
            from: SignedDuration::ZERO,
            error_percent: None,
            value: None,
        }
    }
}

/// How every analysis of a version ends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Given {
    /// Which images; `*` stands for any text.
    pub image: String,
    /// Successful, Failed, Error or Inconclusive.
    pub result: String,
    /// So long after it began.
    pub after: SignedDuration,
    /// In its own words.
    pub message: String,
}

impl Default for Given {
    fn default() -> Self {
        Given {
            image: "*".to_owned(),
            result: String::new(),
            after: SignedDuration::ZERO,
            message: String::new(),
        }
    }
}

/// What one measurement reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reading {
    /// The metric's value.
    Value(f64),
    /// The share of requests that fail, from 0 to 1: what the value is depends on the condition.
    Errors(f64),
}

impl Outlook {
    /// The share of requests that fail at a version with this image, from 0 to 1.
    pub fn error_share(&self, image: &str, at: SignedDuration) -> f64 {
        let fitting =
            self.measured.iter().filter(|one| matches(&one.image, image) && one.from <= at);
        fitting.filter_map(|one| one.error_percent).next_back().unwrap_or(0.0) / 100.0
    }

    /// Does it say of any version that requests fail?
    pub fn has_errors(&self) -> bool {
        self.measured.iter().any(|one| one.error_percent.is_some())
    }

    /// The moments at which a version begins to do otherwise.
    pub fn turns(&self) -> impl Iterator<Item = SignedDuration> {
        self.measured.iter().map(|one| one.from)
    }

    fn reading(&self, images: &[&str], metric: &str, at: SignedDuration) -> Reading {
        let is_about = |one: &&Measured| {
            matches(&one.metric, metric)
                && one.from <= at
                && images.iter().any(|image| matches(&one.image, image))
        };
        let mut values = self.measured.iter().filter(is_about).filter_map(|one| one.value);
        let errors = images.iter().map(|image| self.error_share(image, at));
        values
            .next_back()
            .map_or_else(|| Reading::Errors(errors.fold(0.0, f64::max)), Reading::Value)
    }

    /// The end that is given to every AnalysisRun and Experiment of a version, where one is.
    pub fn given_end(&self, images: &[&str], began: Timestamp) -> Option<RunEnd> {
        let fits = |one: &&Given| images.iter().any(|image| matches(&one.image, image));
        let given = self.given.iter().find(fits)?;
        Some(RunEnd {
            at: began + given.after,
            phase: given.result.clone(),
            message: given.message.clone(),
            results: Vec::new(),
        })
    }
}
