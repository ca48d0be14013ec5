//! The functions of conditions that Argo Rollouts does not have: series of a Prometheus answer, and
//! statistical tests over them.

use std::collections::{BTreeMap, BTreeSet};

use gradus_expr::{Environment, Function, Type, Value};
use serde_json::json;

use super::statistics::{self, Alternative, Counts};
use crate::metrics::Series;

/// Adds them to what conditions may use.
pub fn with(environment: Environment, series: &[Series]) -> Environment {
    let given = series.to_vec();
    let picked = move |arguments: &[Value]| pick(&given, arguments);
    environment
        .with_function(Function::variadic("series", [Type::Text], Type::Any, picked))
        .with_function(Function::variadic("minSamples", [Type::Any], Type::Bool, min_samples))
        .with_function(Function::variadic("mannWhitney", [Type::Any], Type::Float, mann_whitney))
        .with_function(Function::variadic(
            "sequentialTest",
            [Type::Any],
            Type::Float,
            sequential_test,
        ))
}

/// Moments and what was measured at them. Of a list without moments the places count.
type Points = BTreeMap<u64, f64>;

/// `series("label", "value", …)`: the sum of all series that have these labels; `nil` if none has. In a
/// value `*` stands for any text.
fn pick(series: &[Series], arguments: &[Value]) -> Result<Value, String> {
    let texts: Vec<&str> = arguments
        .iter()
        .map(|argument| match argument {
            Value::Text(text) => Ok(&**text),
            other => Err(format!("series() takes labels and values, not {}", other.type_name())),
        })
        .collect::<Result<_, _>>()?;
    if !texts.len().is_multiple_of(2) {
        return Err("series() takes a value for each label: series(\"role\", \"canary\")".into());
    }
    let has = |one: &&Series| {
        texts.chunks(2).all(|pair| one.labels.get(pair[0]).is_some_and(|text| fits(pair[1], text)))
    };
    let mut sum: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    let mut is_there = false;
    for (time, value) in series.iter().filter(has).flat_map(|one| {
        is_there = true;
        &one.points
    }) {
        if !value.is_nan() {
            sum.entry(key(*time)).or_insert((*time, 0.0)).1 += value;
        }
    }
    if !is_there {
        return Ok(Value::Nil);
    }
    // JSON knows no infinity; a greatest number has the same rank.
    let finite = |value: f64| value.clamp(f64::MIN, f64::MAX);
    let times: Vec<f64> = sum.values().map(|(time, _)| *time).collect();
    let values: Vec<f64> = sum.values().map(|(_, value)| finite(*value)).collect();
    Value::from_json(&json!({ "times": times, "values": values }))
        .ok_or_else(|| "the series is nested too deeply".to_owned())
}

/// Is it the text, where `*` stands for any text?
fn fits(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == text };
    let Some(rest) = text.strip_prefix(before) else { return false };
    let mut starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts.any(|at| fits(after, &rest[at..]))
}

/// `minSamples(n, a, b, …)`: has every series at least so many values?
fn min_samples(arguments: &[Value]) -> Result<Value, String> {
    let wrong = || "minSamples() takes a number and at least one series: minSamples(20, a, b)";
    let [least, all @ ..] = arguments else { return Err(wrong().to_owned()) };
    let least = number(least).filter(|_| !all.is_empty()).ok_or_else(wrong)?;
    let counts: Vec<usize> =
        all.iter().map(|one| points(one).map(|points| points.len())).collect::<Result<_, _>>()?;
    Ok(Value::Bool(counts.into_iter().all(|count| count as f64 >= least)))
}

/// `mannWhitney(a, b[, alternative])`: the p-value.
fn mann_whitney(arguments: &[Value]) -> Result<Value, String> {
    let (first, second, alternative) = match arguments {
        [first, second] => (first, second, Some(Alternative::Differs)),
        [first, second, Value::Text(text)] => (first, second, Alternative::of(text)),
        _ => return Err(format!("mannWhitney() takes two series, not {}", arguments.len())),
    };
    let alternative = alternative
        .ok_or("the third argument of mannWhitney() is \"two-sided\", \"greater\" or \"less\"")?;
    let numbers = |value: &Value| Ok::<_, String>(points(value)?.into_values().collect::<Vec<_>>());
    let p_value = statistics::mann_whitney(&numbers(first)?, &numbers(second)?, alternative);
    Ok(Value::Float(p_value))
}

/// `sequentialTest(a, b)` or `sequentialTest(errors, requests, otherErrors, otherRequests)`: the
/// always-valid p-value.
fn sequential_test(arguments: &[Value]) -> Result<Value, String> {
    let p_value = match arguments {
        [first, second] => {
            let (first, second) = (points(first)?, points(second)?);
            statistics::paired(
                first.iter().filter_map(|(at, value)| Some((*value, *second.get(at)?))),
            )
        }
        [errors, requests, other_errors, other_requests] => {
            let (errors, requests) = (points(errors)?, points(requests)?);
            let (others, other_requests) = (points(other_errors)?, points(other_requests)?);
            let moments: BTreeSet<u64> = requests.keys().copied().collect();
            // Where nothing failed there often is no series of errors.
            let counted = |points: &Points, at: u64| points.get(&at).copied().map_or(0, whole);
            statistics::proportions(moments.into_iter().map(|at| Counts {
                first: (counted(&errors, at), counted(&requests, at)),
                second: (counted(&others, at), counted(&other_requests, at)),
            }))
        }
        _ => {
            return Err(format!(
                "sequentialTest() takes two series, or errors, requests, errors and requests; \
                 not {} arguments",
                arguments.len()
            ));
        }
    };
    Ok(Value::Float(p_value))
}

/// The values of a series, of a list of numbers, or of nothing. NaN is no value.
fn points(value: &Value) -> Result<Points, String> {
    let wrong = |found: &Value| {
        format!("expected a series or a list of numbers, but got {}", found.type_name())
    };
    let numbers = |list: &gradus_expr::List| {
        // A value that was not there is nil in a history.
        let number = |value: &Value| if value.is_nil() { Some(f64::NAN) } else { number(value) };
        let all: Option<Vec<f64>> = list.items().iter().map(number).collect();
        all.ok_or_else(|| wrong(value))
    };
    let (times, values) = match value {
        Value::Nil => return Ok(Points::new()),
        Value::List(list) => (None, numbers(list)?),
        Value::Map(map) => match (map.get("times"), map.get("values")) {
            (Some(Value::List(times)), Some(Value::List(values))) => {
                (Some(numbers(times)?), numbers(values)?)
            }
            _ => return Err(wrong(value)),
        },
        single => match number(single) {
            Some(number) => (None, vec![number]),
            None => return Err(wrong(single)),
        },
    };
    let place = |at: usize| match &times {
        Some(times) => times.get(at).map_or(u64::MAX, |time| key(*time)),
        None => at as u64,
    };
    let points = values.into_iter().enumerate().filter(|(_, value)| !value.is_nan());
    Ok(points.map(|(at, value)| (place(at), value)).collect())
}

/// A moment as a key; seconds since 1970 are never negative here.
fn key(time: f64) -> u64 {
    (time * 1000.0) as u64
}

/// A count: what `increase` gives is a fraction.
fn whole(count: f64) -> u64 {
    count.round().max(0.0) as u64
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        Value::Int(_, number) => Some(*number as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gradus_expr::{Inputs, Program};

    use super::*;

    fn series(labels: &[(&str, &str)], values: &[f64]) -> Series {
        let own = |text: &str| text.to_owned();
        Series {
            labels: labels.iter().map(|(name, value)| (own(name), own(value))).collect(),
            points: values
                .iter()
                .enumerate()
                .map(|(at, value)| (at as f64 * 60.0, *value))
                .collect(),
        }
    }

    /// Errors begin in the third minute, and not in the baseline.
    fn given() -> Vec<Series> {
        let late = Series {
            points: vec![(120.0, 40.0), (180.0, 50.0)],
            ..series(&[("role", "canary"), ("code", "500")], &[])
        };
        vec![
            series(&[("role", "canary"), ("code", "200")], &[500.0, 500.0, 460.0, 450.0]),
            late,
            series(&[("role", "baseline"), ("code", "200")], &[500.0, 500.0, f64::NAN, 500.0]),
        ]
    }

    fn value(source: &str) -> String {
        let environment = with(Environment::new(), &given());
        let run = |program: Program| program.run(&Inputs::new());
        match Program::compile(source, &environment).and_then(run) {
            Ok(Value::Float(number)) => format!("{number:.4}"),
            Ok(other) => other.to_string(),
            Err(error) => error.message,
        }
    }

    #[test]
    fn functions_of_conditions() {
        let cases = [
            ("series('role', 'canary').values", "[500 500 500 500]"),
            ("series('role', 'canary', 'code', '500').times", "[120 180]"),
            ("series('role', 'baseline').values", "[500 500 500]"),
            ("series('role', 'nobody')", "<nil>"),
            ("series('role', 'c*y', 'code', '5*').values", "[40 50]"),
            ("series('code', '*4*')", "<nil>"),
            (
                "series('role')",
                "series() takes a value for each label: series(\"role\", \"canary\")",
            ),
            ("minSamples(3, series('role', 'canary'), series('role', 'baseline'))", "true"),
            ("minSamples(4, series('role', 'canary'), series('role', 'baseline'))", "false"),
            ("minSamples(1, nil)", "false"),
            (
                "minSamples(3)",
                "minSamples() takes a number and at least one series: minSamples(20, a, b)",
            ),
            ("mannWhitney([4, 5, 6], [1, 2, 3], 'greater')", "0.0500"),
            ("mannWhitney([4, 5, 6], [1, 2, 3])", "0.1000"),
            (
                "mannWhitney([4, 5, 6], [1, 2, 3], 'more')",
                "the third argument of mannWhitney() is \"two-sided\", \"greater\" or \"less\"",
            ),
            (
                "mannWhitney(['a'], [1])",
                "expected a series or a list of numbers, but got []interface {}",
            ),
            ("mannWhitney([1])", "mannWhitney() takes two series, not 1"),
            ("sequentialTest([1, 1, 1], [1, 1, 1])", "1.0000"),
            (
                "sequentialTest([2, 2, 2, 2, 2, 2, 2, 2, 2, 2], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]) < 0.01",
                "true",
            ),
            // The third minute of the baseline is unknown: it says nothing about either.
            (
                "sequentialTest(series('role', 'canary', 'code', '500'), series('role', 'canary'), \
              series('role', 'baseline', 'code', '500'), series('role', 'baseline')) < 0.001",
                "true",
            ),
            ("sequentialTest(nil, [500], nil, [500])", "1.0000"),
            (
                "sequentialTest(1)",
                "sequentialTest() takes two series, or errors, requests, errors and \
              requests; not 1 arguments",
            ),
        ];
        for (source, expected) in cases {
            assert_eq!(value(source), expected, "{source}");
        }
    }
}
