//! How do the versions do? A simulation declares it: what pods answer, and what single metrics are.

mod answerable;

use gradus_api::analysis::MetricResult;
use gradus_simkube::behave::{Behaviour, matches};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

pub use answerable::unanswerable;

/// How an analysis ends.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// When.
    pub at: Timestamp,
    /// Successful, Failed, Error or Inconclusive.
    pub phase: String,
    /// Why, in the words users know.
    pub message: String,
    /// What became of its metrics.
    pub results: Vec<MetricResult>,
}

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
    /// Half of all requests are answered within so many milliseconds.
    pub latency_milliseconds: Option<f64>,
    /// The metric's value itself, whatever it asks for.
    pub value: Option<f64>,
}

impl Default for Measured {
    fn default() -> Self {
        Measured {
            image: "*".to_owned(),
            metric: "*".to_owned(),
            from: SignedDuration::ZERO,
            error_percent: None,
            latency_milliseconds: None,
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

    /// The declared value of a metric of an analysis of a version, where there is one.
    pub fn value(&self, images: &[&str], metric: &str, at: SignedDuration) -> Option<f64> {
        let is_about = |one: &&Measured| {
            matches(&one.metric, metric)
                && one.from <= at
                && (one.image == "*" || images.iter().any(|image| matches(&one.image, image)))
        };
        self.measured.iter().filter(is_about).filter_map(|one| one.value).next_back()
    }

    /// Is the value of this metric declared?
    pub fn declares(&self, metric: &str) -> bool {
        self.measured.iter().any(|one| one.value.is_some() && matches(&one.metric, metric))
    }

    /// How images behave at a moment: as these say, and as their requests are answered then.
    pub fn behaviours(&self, given: &[Behaviour], at: SignedDuration) -> Vec<Behaviour> {
        let mut all = given.to_vec();
        if !all.iter().any(|one| one.image == "*" && one.command == "*") {
            all.push(Behaviour::default());
        }
        for one in self.measured.iter().filter(|one| one.from <= at) {
            let change = |behaviour: &mut Behaviour| {
                let Behaviour { error_percent, latency_milliseconds, .. } = behaviour;
                *error_percent = one.error_percent.unwrap_or(*error_percent);
                *latency_milliseconds = one.latency_milliseconds.unwrap_or(*latency_milliseconds);
            };
            // What is special about some images is so of those that fit them, too.
            all.iter_mut().filter(|known| matches(&one.image, &known.image)).for_each(change);
            if !all.iter().any(|known| known.image == one.image) {
                let like = all.iter().find(|known| matches(&known.image, &one.image)).cloned();
                let mut new = like.unwrap_or_default();
                new.image.clone_from(&one.image);
                change(&mut new);
                all.insert(0, new);
            }
        }
        all
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
