//! What a value means: the conditions of a metric, and the functions that they may use.

use gradus_api::analysis::Metric;
use gradus_expr::{
    Environment, Error, Function, Inputs, IntKind, Phase, Program, Span, Type, Value, parse_float,
    parse_int, truncated,
};
use jiff::Timestamp;

use super::functions;
use crate::ask::secret::has_marker;
use crate::metrics::MetricValue;
use crate::world::RunPhase;

/// The cause that is given where a condition cannot cope with a value because there is none.
const NO_DATA: &str = "metric result is nil or empty: no data returned from the metric provider";

/// What the conditions of a metric say of a value. Both are evaluated where they are set.
///
/// `earlier` are the values that the metric has had so far.
pub fn judge(
    metric: &Metric,
    result: &MetricValue,
    earlier: &[serde_json::Value],
    now: Timestamp,
) -> Result<RunPhase, String> {
    let value = value(result)?;
    let series = match result {
        MetricValue::Series(series) => series.as_slice(),
        _ => &[],
    };
    let history = match uses_history(metric) {
        true => history(earlier, result)?,
        false => Value::Nil,
    };
    let known = functions::with(environment(&value), series).with_value(HISTORY, &history);
    let inputs = Inputs::new().with("result", value.clone()).with(HISTORY, history);
    let holds = |field: &str, source: &str| match source {
        "" => Ok(None),
        source => holds(source, &known, &inputs, &value, now)
            .map(Some)
            .map_err(|cause| format!("could not evaluate {field} \"{source}\": {cause}")),
    };
    let success = holds("successCondition", &metric.success_condition)?;
    let failure = holds("failureCondition", &metric.failure_condition)?;
    Ok(match (success, failure) {
        (_, Some(true)) | (Some(false), None) => RunPhase::Failed,
        (Some(false), Some(false)) => RunPhase::Inconclusive,
        (Some(true) | None, _) => RunPhase::Successful,
    })
}

/// Does a condition look at the values that the metric had before?
pub fn uses_history(metric: &Metric) -> bool {
    [&metric.success_condition, &metric.failure_condition]
        .into_iter()
        .any(|condition| condition.contains(HISTORY))
}

/// The name of what a metric has measured so far, oldest first and this value included.
const HISTORY: &str = "history";

fn history(earlier: &[serde_json::Value], result: &MetricValue) -> Result<Value, String> {
    let number = |number: &f64| serde_json::Value::from(*number);
    let this = match result {
        MetricValue::Nil => serde_json::Value::Null,
        MetricValue::Number(one) => number(one),
        MetricValue::Numbers(all) => all.iter().map(number).collect(),
        MetricValue::Series(series) => {
            series.iter().flat_map(|one| one.points.iter().map(|(_, one)| number(one))).collect()
        }
        MetricValue::Text(text) => serde_json::Value::from(text.clone()),
        MetricValue::Json(json) => json.clone(),
        MetricValue::List(items) => items.clone().into(),
    };
    let all: Vec<serde_json::Value> = earlier.iter().cloned().chain([this]).collect();
    Value::from_json(&all.into()).ok_or_else(|| "the answer is nested too deeply".to_owned())
}

/// The moment that an expression such as `now() - duration("1h")` gives.
/// `startedAt` is when the run began.
pub fn moment(source: &str, now: Timestamp, began: Timestamp) -> Result<Timestamp, String> {
    let nanoseconds = u32::try_from(began.subsec_nanosecond()).unwrap_or(0);
    let began = Value::time(began.as_second(), nanoseconds);
    let environment = Environment::new()
        .with_function(is_nan())
        .with_function(is_inf())
        .with_value(STARTED_AT, &began);
    let found = run(source, &environment, Inputs::new().with(STARTED_AT, began), now)?;
    match &found {
        Value::Time(moment) => {
            let (seconds, nanoseconds) = moment.unix();
            let nanoseconds = i32::try_from(nanoseconds).map_err(|error| error.to_string())?;
            Timestamp::new(seconds, nanoseconds).map_err(|error| error.to_string())
        }
        other => Err(format!("expected time.Time, but got {}", other.type_name())),
    }
}

const STARTED_AT: &str = "startedAt";

/// Can a condition work, whatever a provider gives and whatever these names stand for? The error
/// knows which part cannot.
pub fn check(source: &str, names: &[String]) -> Result<(), Error> {
    let known = functions::with(environment(&Value::Nil), &[])
        .with_type("result", Type::Unknown)
        .with_type(HISTORY, Type::Unknown);
    let environment = names.iter().fold(known, |known, name| known.with_type(name, Type::Unknown));
    let program = Program::compile(source, &environment)?;
    let found = match program.type_of() {
        Type::Bool | Type::Unknown | Type::Any => return Ok(()),
        Type::Nil => "<nil>".to_owned(),
        other => other.to_string(),
    };
    let span = Span { start: 0, end: source.len() };
    let message = format!("expected bool, but got {found}");
    Err(Error { phase: Phase::Compile, span, message })
}

/// What conditions may use, where a provider gave this value.
pub fn environment(result: &Value) -> Environment {
    let (given, is_nil) = (result.clone(), result.is_nil());
    Environment::new()
        .with_value("result", result)
        .with_function(Function::new("asInt", [Type::Any], Type::Int64, as_int))
        .with_function(Function::new("asFloat", [Type::Any], Type::Float, as_float))
        .with_function(is_nan())
        .with_function(is_inf())
        // Both look at what the provider gave, whatever their first argument is.
        .with_function(Function::new("isNil", [Type::Any], Type::Bool, move |_| {
            Ok(Value::Bool(is_nil))
        }))
        .with_function(Function::new(
            "default",
            [Type::Any, Type::Any],
            Type::Any,
            move |arguments| {
                let otherwise = arguments.get(1).cloned().unwrap_or_default();
                Ok(if is_nil { otherwise } else { given.clone() })
            },
        ))
}

fn holds(
    source: &str,
    known: &Environment,
    inputs: &Inputs,
    value: &Value,
    now: Timestamp,
) -> Result<bool, String> {
    if has_marker(source) {
        return Err("a condition cannot use a secret argument".to_owned());
    }
    let found = run(source, known, inputs.clone(), now).map_err(|cause| match value {
        value if value.is_nil() => NO_DATA.to_owned(),
        Value::List(list) if list.items().is_empty() => NO_DATA.to_owned(),
        _ => cause,
    })?;
    match found {
        Value::Bool(holds) => Ok(holds),
        other => Err(format!("expected bool, but got {}", other.type_name())),
    }
}

fn run(
    source: &str,
    environment: &Environment,
    inputs: Inputs,
    now: Timestamp,
) -> Result<Value, String> {
    let nanoseconds = u32::try_from(now.subsec_nanosecond()).unwrap_or(0);
    let inputs = inputs.at(now.as_second(), nanoseconds);
    let program = Program::compile(source, environment).map_err(|error| error.message)?;
    program.run(&inputs).map_err(|error| error.message)
}

/// A value of a provider as expressions see it.
fn value(result: &MetricValue) -> Result<Value, String> {
    let too_deep = || "the answer is nested too deeply".to_owned();
    Ok(match result {
        MetricValue::Nil => Value::Nil,
        MetricValue::Number(number) => Value::Float(*number),
        MetricValue::Numbers(numbers) => Value::floats(numbers.iter().copied()),
        MetricValue::Series(series) => Value::floats(
            series.iter().flat_map(|one| one.points.iter().map(|(_, number)| *number)),
        ),
        MetricValue::Text(text) => Value::text(text),
        MetricValue::Json(json) => Value::from_json(json).ok_or_else(too_deep)?,
        MetricValue::List(items) => Value::from_json(&items.clone().into()).ok_or_else(too_deep)?,
    })
}

fn as_int(arguments: &[Value]) -> Result<Value, String> {
    let whole = |number: i64| Ok(Value::Int(IntKind::Int64, number));
    match arguments.first().unwrap_or(&Value::Nil) {
        Value::Int(_, number) => whole(*number),
        Value::Float(number) => whole(truncated(*number)),
        Value::Text(text) => match parse_int(text) {
            Some(number) => whole(number),
            None => Err(unparsed("ParseInt", text)),
        },
        other => Err(format!("asInt() not supported on {} {other}", other.type_name())),
    }
}

fn as_float(arguments: &[Value]) -> Result<Value, String> {
    match arguments.first().unwrap_or(&Value::Nil) {
        Value::Int(_, number) => Ok(Value::Float(*number as f64)),
        Value::Float(number) => Ok(Value::Float(*number)),
        Value::Text(text) => match parse_float(text) {
            Some(number) => Ok(Value::Float(number)),
            None => Err(unparsed("ParseFloat", text)),
        },
        other => Err(format!("asFloat() not supported on {} {other}", other.type_name())),
    }
}

fn unparsed(function: &str, text: &str) -> String {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let why = if is_number { "value out of range" } else { "invalid syntax" };
    format!("strconv.{function}: parsing {text:?}: {why}")
}

fn is_nan() -> Function {
    of_number("isNaN", f64::is_nan)
}

fn is_inf() -> Function {
    of_number("isInf", f64::is_infinite)
}

fn of_number(name: &str, holds: fn(f64) -> bool) -> Function {
    Function::new(name, [Type::Float], Type::Bool, move |arguments| match arguments {
        [Value::Float(number)] => Ok(Value::Bool(holds(*number))),
        _ => Err("expected a float64".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ask::secret::marker;

    fn judged(success: &str, failure: &str, result: &MetricValue) -> String {
        let metric = Metric {
            success_condition: success.to_owned(),
            failure_condition: failure.to_owned(),
            ..Metric::default()
        };
        let now = Timestamp::from_second(1_704_067_201).unwrap();
        judge(&metric, result, &[], now).map_or_else(|error| error, |phase| phase.text().to_owned())
    }

    #[test]
    fn both_conditions_together_say_what_a_value_means() {
        let cases = [
            ("", "", "Successful"),
            ("result > 1", "", "Successful"),
            ("result > 3", "", "Failed"),
            ("", "result > 1", "Failed"),
            ("", "result > 3", "Successful"),
            ("result > 1", "result > 3", "Successful"),
            ("result > 1", "result > 1", "Failed"),
            ("result > 3", "result > 1", "Failed"),
            ("result > 3", "result > 3", "Inconclusive"),
        ];
        for (success, failure, expected) in cases {
            let found = judged(success, failure, &MetricValue::Number(2.0));
            assert_eq!(found, expected, "{success} | {failure}");
        }
    }

    #[test]
    fn values_have_the_types_of_their_provider() {
        let list = || MetricValue::Numbers(vec![0.99, 0.5]);
        let document = || MetricValue::Json(json!({ "ok": true, "rate": 0.95, "list": [1, 2] }));
        let text = |text: &str| MetricValue::Text(text.to_owned());
        let cases: Vec<(MetricValue, &str, &str)> = vec![
            (list(), "result[0] >= 0.95", "Successful"),
            (list(), "all(result, # > 0.9)", "Failed"),
            (list(), "len(result) == 0 || result[1] > 0.4", "Successful"),
            (document(), "result.ok && result.rate >= 0.9", "Successful"),
            (document(), "sum(result.list) == 3", "Successful"),
            (text("true"), "result == \"true\"", "Successful"),
            (text("7"), "asInt(result) == 7 && asFloat(result) < 7.5", "Successful"),
            (MetricValue::Number(f64::NAN), "isNaN(result)", "Successful"),
            (MetricValue::Number(f64::INFINITY), "isInf(result)", "Successful"),
            (MetricValue::Nil, "isNil(result)", "Successful"),
            (MetricValue::Number(1.0), "isNil(result)", "Failed"),
            (MetricValue::Nil, "default(result, 0) == 0", "Successful"),
            (MetricValue::Number(1.0), "default(result, 0) == 1", "Successful"),
            (
                MetricValue::List(vec![json!({ "Values": [1.0, 3.0] })]),
                "all(result[0].Values, # < 4)",
                "Successful",
            ),
            (MetricValue::Number(1.0), "now() - duration(\"1h\") < now()", "Successful"),
        ];
        for (result, condition, expected) in cases {
            assert_eq!(judged(condition, "", &result), expected, "{condition}");
        }
    }

    #[test]
    fn what_cannot_be_evaluated_says_why() {
        let one = || MetricValue::Number(1.0);
        let secret = format!("result == \"{}\"", marker("s", "k"));
        let cases: Vec<(MetricValue, &str, &str)> = vec![
            (one(), "foo > 1", "unknown name foo"),
            (
                MetricValue::Numbers(vec![1.0]),
                "result > 1",
                "invalid operation: > (mismatched types []float64 and int)",
            ),
            (
                MetricValue::Numbers(vec![1.0]),
                "result[5] > 1",
                "index out of range: 5 (array length is 1)",
            ),
            (MetricValue::Numbers(Vec::new()), "result[0] > 1", NO_DATA),
            (MetricValue::Nil, "result[0] > 1", NO_DATA),
            (one(), "result", "expected bool, but got float64"),
            (one(), "result >", "unexpected token EOF"),
            (
                MetricValue::Text("1.2".into()),
                "asInt(result) > 1",
                "strconv.ParseInt: parsing \"1.2\": invalid syntax",
            ),
            (
                MetricValue::Text("x".into()),
                "asFloat(result) > 1",
                "strconv.ParseFloat: parsing \"x\": invalid syntax",
            ),
            (one(), "asInt(nil) == 1", "asInt() not supported on <nil> <nil>"),
            (one(), &secret, "a condition cannot use a secret argument"),
        ];
        for (result, condition, expected) in cases {
            let expected =
                format!("could not evaluate successCondition \"{condition}\": {expected}");
            assert_eq!(judged(condition, "", &result), expected);
        }
    }

    #[test]
    fn a_condition_is_refused_only_where_no_value_could_satisfy_it() {
        let cases = [
            ("result > 1", ""),
            ("result[0].a.b == 'x'", ""),
            ("isNaN(result)", ""),
            ("result > 1 &&", "&"),
            ("reslut > 1", "reslut"),
            ("len(result)", "len(result)"),
            ("result.ok && 'a' > 1", "'a' > 1"),
        ];
        for (condition, expected) in cases {
            let blamed = match check(condition, &[]) {
                Ok(()) => "",
                Err(error) => &condition[error.span.start..error.span.end],
            };
            assert_eq!(blamed, expected, "{condition}");
        }
    }

    #[test]
    fn an_expression_gives_a_moment() {
        let now = Timestamp::new(1_704_067_201, 500_000_000).unwrap();
        let began = now - jiff::SignedDuration::from_mins(5);
        let at = |text: &str| moment(text, now, began);
        assert_eq!(at("now()"), Ok(now));
        assert_eq!(at("startedAt"), Ok(began));
        let hour = jiff::SignedDuration::from_hours(1);
        assert_eq!(at("now() - duration(\"1h\")"), Ok(now - hour));
        assert_eq!(at("7").unwrap_err(), "expected time.Time, but got int");
        assert_eq!(at("result").unwrap_err(), "unknown name result");
    }
}
