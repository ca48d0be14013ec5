//! What is the value of a PromQL query over given series? The common part of the language, evaluated
//! as Prometheus does; the rest is refused by name. It does no I/O, reads no clock and knows nothing
//! of Gradus.

mod api;
mod eval;
mod plan;

use std::collections::BTreeMap;

pub use api::{Answer, RequestError, Response, answer};
pub use plan::{Matcher, Selector};

use plan::Node;

/// Labels of a series, its name (`__name__`) among them.
pub type Labels = BTreeMap<String, String>;

/// The label that holds the name of a series.
pub const NAME: &str = "__name__";

/// How long a sample counts where none comes after it, in milliseconds.
const LOOKBACK: i64 = 5 * 60 * 1000;
/// The most points of one series that a range query may ask for, as in Prometheus.
const MOST_POINTS: i64 = 11_000;

/// Milliseconds since 1970.
pub type Millis = i64;

/// A value at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Millis,
    /// What. [`stale`] says that the series has ended.
    pub value: f64,
}

/// A series and some of its samples, the oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What it is of.
    pub labels: Labels,
    /// Its samples.
    pub samples: Vec<Sample>,
}

/// Who has series.
pub trait Source {
    /// The series that a selector selects, with their samples after `from` up to `to`.
    fn select(&self, selector: &Selector, from: Millis, to: Millis) -> Vec<Series>;
}

/// A query that was understood.
#[derive(Clone, Debug)]
pub struct Query {
    node: Node,
}

/// A labelled value at the moment of the query.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What it is of.
    pub labels: Labels,
    /// The value.
    pub value: f64,
}

/// What a query gives at a moment.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One number.
    Scalar(f64),
    /// A number for each of several label sets.
    Vector(Vec<Point>),
    /// The samples of several series.
    Matrix(Vec<Series>),
}

/// Why a query has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// It is no PromQL.
    #[error("invalid query: {0}")]
    Invalid(String),
    /// It is PromQL that this evaluator does not know.
    #[error("{0} is not supported here")]
    Unsupported(String),
    /// It cannot be evaluated over these series.
    #[error("{0}")]
    Failed(String),
}

/// The value of a sample after which its series has no more: Prometheus' staleness marker.
pub fn stale() -> f64 {
    f64::from_bits(0x7ff0_0000_0000_0002)
}

/// Is it the staleness marker?
pub fn is_stale(value: f64) -> bool {
    value.to_bits() == 0x7ff0_0000_0000_0002
}

impl Query {
    /// Reads a query.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        Ok(Query { node: plan::parse(text)? })
    }

    /// Everything it selects, in the order in which it is written.
    pub fn selectors(&self) -> Vec<&Selector> {
        let mut found = Vec::new();
        self.node.selectors(&mut found);
        found
    }

    /// Its value at a moment.
    pub fn instant(&self, source: &dyn Source, at: Millis) -> Result<Value, QueryError> {
        eval::value(&self.node, source, at)
    }

    /// Its values from a moment to another one, at every step.
    pub fn range(
        &self,
        source: &dyn Source,
        (start, end): (Millis, Millis),
        step: Millis,
    ) -> Result<Vec<Series>, QueryError> {
        let failed = |text: &str| Err(QueryError::Failed(text.to_owned()));
        if step <= 0 {
            return failed("zero or negative query resolution step widths are not accepted");
        }
        if end < start {
            return failed("end timestamp must not be before start time");
        }
        if (end - start) / step >= MOST_POINTS {
            return failed("exceeded maximum resolution of 11,000 points per timeseries");
        }
        let mut all: BTreeMap<Labels, Vec<Sample>> = BTreeMap::new();
        let mut at = start;
        while at <= end {
            let points = match self.instant(source, at)? {
                Value::Scalar(value) => vec![Point { labels: Labels::new(), value }],
                Value::Vector(points) => points,
                Value::Matrix(_) => {
                    return failed(
                        "invalid expression type \"range vector\" for range query, must be \
                         Scalar or instant Vector",
                    );
                }
            };
            for Point { labels, value } in points {
                all.entry(labels).or_default().push(Sample { at, value });
            }
            at += step;
        }
        Ok(all.into_iter().map(|(labels, samples)| Series { labels, samples }).collect())
    }
}
