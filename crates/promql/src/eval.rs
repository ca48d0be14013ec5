//! The value of a part of a query at a moment.

mod aggregate;
mod binary;
mod over_time;
mod quantile;

use crate::plan::{Each, Node, OverTime};
use crate::{
    LOOKBACK, Labels, Millis, NAME, Point, QueryError, Sample, Series, Source, Value, is_stale,
};

/// The value of a query at a moment.
pub fn value(node: &Node, source: &dyn Source, at: Millis) -> Result<Value, QueryError> {
    match node {
        Node::Number(number) => Ok(Value::Scalar(*number)),
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of this age fit")]
        Node::Time => Ok(Value::Scalar(at as f64 / 1000.0)),
        Node::Instant { selector, offset } => {
            let moment = at - offset;
            let found = source.select(selector, moment - LOOKBACK, moment);
            Ok(Value::Vector(found.into_iter().filter_map(|one| latest(one, moment)).collect()))
        }
        Node::Range { selector, offset, range } => {
            let moment = at - offset;
            let found = source.select(selector, moment - range, moment);
            let is_within = |sample: &Sample| {
                moment - range < sample.at && sample.at <= moment && !is_stale(sample.value)
            };
            let series = found.into_iter().map(|one| Series {
                samples: one.samples.into_iter().filter(|sample| is_within(sample)).collect(),
                ..one
            });
            Ok(Value::Matrix(series.filter(|one| !one.samples.is_empty()).collect()))
        }
        Node::Negated(of) => each(value(of, source, at)?, |number| -number),
        Node::Aggregate { by, how, of } => {
            let points = vector(of, source, at)?;
            Ok(Value::Vector(aggregate::aggregate(points, by, *how)))
        }
        Node::Binary { op, matching, left, right } => {
            let (left, right) = (value(left, source, at)?, value(right, source, at)?);
            binary::operate(*op, matching, left, right)
        }
        Node::OverTime { function, of } => over(*function, of, source, at),
        Node::Quantile { quantile, of } => {
            let quantile = scalar(quantile, source, at)?;
            Ok(Value::Vector(quantile::quantile(quantile, vector(of, source, at)?)))
        }
        Node::Each { function, of, limit } => {
            let limit = match limit {
                None => 0.0,
                Some(limit) => scalar(limit, source, at)?,
            };
            each(value(of, source, at)?, |number| match function {
                Each::Abs => number.abs(),
                Each::Ceil => number.ceil(),
                Each::Floor => number.floor(),
                Each::ClampMin => number.max(limit),
                Each::ClampMax => number.min(limit),
            })
        }
        Node::Vector(of) => {
            let value = scalar(of, source, at)?;
            Ok(Value::Vector(vec![Point { labels: Labels::new(), value }]))
        }
        Node::Scalar(of) => Ok(Value::Scalar(match &vector(of, source, at)?[..] {
            [one] => one.value,
            _ => f64::NAN,
        })),
    }
}

/// The last sample of a series, unless it is too old or the series has ended.
fn latest(series: Series, moment: Millis) -> Option<Point> {
    let is_recent = |sample: &&Sample| moment - LOOKBACK < sample.at && sample.at <= moment;
    let last = series.samples.iter().rfind(is_recent)?;
    let value = last.value;
    (!is_stale(value)).then_some(Point { labels: series.labels, value })
}

fn over(
    function: OverTime,
    of: &Node,
    source: &dyn Source,
    at: Millis,
) -> Result<Value, QueryError> {
    let Node::Range { offset, range, .. } = of else {
        return Err(QueryError::Unsupported("a function of anything but a range".to_owned()));
    };
    let Value::Matrix(series) = value(of, source, at)? else {
        return Err(failed("a range has samples"));
    };
    let window = over_time::Window { end: at - offset, range: *range };
    let keeps_name = function == OverTime::Last;
    let points = series.into_iter().filter_map(|one| {
        let value = over_time::over_time(function, &one.samples, &window)?;
        let labels = if keeps_name { one.labels } else { unnamed(one.labels) };
        Some(Point { labels, value })
    });
    Ok(Value::Vector(points.collect()))
}

fn each(value: Value, function: impl Fn(f64) -> f64) -> Result<Value, QueryError> {
    match value {
        Value::Scalar(number) => Ok(Value::Scalar(function(number))),
        Value::Vector(points) => {
            let points = points
                .into_iter()
                .map(|point| Point { labels: unnamed(point.labels), value: function(point.value) });
            Ok(Value::Vector(points.collect()))
        }
        Value::Matrix(_) => Err(failed("a range has no single value")),
    }
}

fn vector(node: &Node, source: &dyn Source, at: Millis) -> Result<Vec<Point>, QueryError> {
    match value(node, source, at)? {
        Value::Vector(points) => Ok(points),
        Value::Scalar(_) | Value::Matrix(_) => Err(failed("an instant vector is expected")),
    }
}

fn scalar(node: &Node, source: &dyn Source, at: Millis) -> Result<f64, QueryError> {
    match value(node, source, at)? {
        Value::Scalar(number) => Ok(number),
        Value::Vector(_) | Value::Matrix(_) => Err(failed("a scalar is expected")),
    }
}

fn failed(text: &str) -> QueryError {
    QueryError::Failed(text.to_owned())
}

/// Labels without the name: what is calculated is another metric.
fn unnamed(mut labels: Labels) -> Labels {
    labels.remove(NAME);
    labels
}
