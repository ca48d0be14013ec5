//! When does an analysis end, and how? Its measurements, one after the other, on what a simulation
//! declares.

use gradus_api::analysis::{AnalysisRunSpec, Metric, MetricResult};
use gradus_api::names::analysis_phase as phase;
use gradus_api::values::{IntOrString, parse_go_duration};
use jiff::{SignedDuration, Timestamp};
use regex_lite::Regex;

use super::condition::{Condition, Says};
use super::{Outlook, Reading};

/// Between measurements where a metric does not say it.
const INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// No metric is measured more often: who needs more has no end.
const MOST_MEASUREMENTS: i32 = 1_000_000;

/// An analysis that is going on.
#[derive(Clone, Debug)]
pub struct Run<'r> {
    /// What it measures, its arguments filled in.
    pub spec: AnalysisRunSpec,
    /// Images of the version it judges.
    pub images: Vec<&'r str>,
    /// When it began.
    pub began: Timestamp,
    /// When the update began.
    pub update: Timestamp,
}

/// How an analysis ends.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// When.
    pub at: Timestamp,
    /// Successful, Failed, Error or Inconclusive.
    pub phase: String,
    /// Why, in the words users know.
    pub message: String,
    /// What became of the metrics that had come to their end.
    pub results: Vec<MetricResult>,
}

/// How a run ends; nothing if it goes on until somebody ends it.
pub fn verdict(run: &Run<'_>, outlook: &Outlook) -> Option<RunEnd> {
    if let Some(given) = outlook.given_end(&run.images, run.began) {
        return Some(given);
    }
    let courses: Vec<Course> =
        run.spec.metrics.iter().map(|metric| Course::of(metric, run, outlook)).collect();
    let bad = courses.iter().filter(|course| course.is_bad()).min_by_key(|course| course.ends);
    let at = match bad {
        Some(bad) => bad.ends?,
        None => courses
            .iter()
            .map(|course| course.ends)
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max()?,
    };
    let (phase, message) = match bad {
        None => (phase::SUCCESSFUL.to_owned(), String::new()),
        Some(Course { result, limit, .. }) => {
            let MetricResult { name, phase, .. } = result;
            let due = if limit.is_empty() { String::new() } else { format!(" due to {limit}") };
            (phase.clone(), format!("Metric \"{name}\" assessed {phase}{due}"))
        }
    };
    let ended = courses.into_iter().filter(|course| course.ends.is_some_and(|ends| ends <= at));
    Some(RunEnd { at, phase, message, results: ended.map(|course| course.result).collect() })
}

/// Can a share of errors be read as the value of this metric?
pub fn is_measurable(metric: &Metric) -> bool {
    // A limit that is an argument is a number when the run is made.
    let argument = Regex::new(r"\{\{[^}]*\}\}").expect("the pattern is well formed");
    let conditions = [&metric.success_condition, &metric.failure_condition];
    conditions
        .iter()
        .all(|text| text.is_empty() || Condition::parse(&argument.replace_all(text, "0")).is_some())
}

/// How one metric goes.
struct Course {
    /// Nothing where it has no end.
    ends: Option<Timestamp>,
    result: MetricResult,
    /// The limit that it went over.
    limit: String,
}

impl Course {
    fn of(metric: &Metric, run: &Run<'_>, outlook: &Outlook) -> Self {
        let limits = MetricLimits::of(metric);
        let is_dry = run.spec.dry_run.iter().any(|rule| {
            Regex::new(&rule.metric_name).is_ok_and(|rule| rule.is_match(&metric.name))
        });
        let mut result =
            MetricResult { name: metric.name.clone(), dry_run: is_dry, ..MetricResult::default() };
        let last_turn = outlook.turns().max().unwrap_or_default();
        let mut now = run.began + duration(&metric.initial_delay);
        for _ in 0..MOST_MEASUREMENTS {
            let at = now.duration_since(run.update);
            let outcome = measured(metric, outlook.reading(&run.images, &metric.name, at));
            count(&mut result, outcome);
            if let Some((phase, limit)) = limits.verdict(&result) {
                result.phase = phase.to_owned();
                return Course { ends: Some(now), result, limit };
            }
            if last_turn < at && limits.allow_for_ever(outcome) {
                break;
            }
            now += limits.interval;
        }
        result.phase = phase::RUNNING.to_owned();
        Course { ends: None, result, limit: String::new() }
    }

    fn is_bad(&self) -> bool {
        !self.result.dry_run && self.ends.is_some() && self.result.phase != phase::SUCCESSFUL
    }
}

/// What a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Good,
    Bad,
    Undecided,
}

/// Conditions that are beyond a simulation are taken for met.
fn measured(metric: &Metric, reading: Reading) -> Meaning {
    let holds = |text: &str, says: Says, otherwise: bool| {
        Condition::parse(text).map_or(otherwise, |condition| condition.holds(reading, says))
    };
    let (good, bad) = (&metric.success_condition, &metric.failure_condition);
    let is_bad = !bad.is_empty() && holds(bad, Says::Bad, false);
    let is_good = good.is_empty() || holds(good, Says::Good, true);
    match (is_bad, is_good) {
        (true, _) => Meaning::Bad,
        (false, true) => Meaning::Good,
        (false, false) if bad.is_empty() => Meaning::Bad,
        (false, false) => Meaning::Undecided,
    }
}

fn count(result: &mut MetricResult, meaning: Meaning) {
    result.count += 1;
    match meaning {
        Meaning::Good => result.successful += 1,
        Meaning::Bad => result.failed += 1,
        Meaning::Undecided => result.inconclusive += 1,
    }
    let in_a_row = result.consecutive_success + 1;
    result.consecutive_success = if meaning == Meaning::Good { in_a_row } else { 0 };
}

/// What a metric allows.
struct MetricLimits {
    /// 0 where it has no end.
    count: i32,
    failed: i32,
    undecided: i32,
    /// 0 where no number of successes is enough.
    successes: i32,
    interval: SignedDuration,
}

impl MetricLimits {
    fn of(metric: &Metric) -> Self {
        let number = |limit: &Option<IntOrString>| limit.as_ref().map_or(0, IntOrString::int_value);
        let is_once = metric.interval.is_empty();
        MetricLimits {
            count: match number(&metric.count) {
                0 if is_once => 1,
                count => count,
            },
            failed: number(&metric.failure_limit),
            undecided: number(&metric.inconclusive_limit),
            successes: number(&metric.consecutive_success_limit),
            interval: if is_once { INTERVAL } else { duration(&metric.interval) },
        }
    }

    /// How the metric ends with this measurement, and the limit it went over.
    fn verdict(&self, result: &MetricResult) -> Option<(&'static str, String)> {
        let MetricResult { failed, inconclusive, .. } = result;
        let none = String::new;
        if *inconclusive > self.undecided {
            let limit =
                format!("inconclusive ({inconclusive}) > inconclusiveLimit ({})", self.undecided);
            return Some((phase::INCONCLUSIVE, limit));
        }
        if self.failed >= 0 && *failed > self.failed {
            let limit = format!("failed ({failed}) > failureLimit ({})", self.failed);
            return Some((phase::FAILED, limit));
        }
        if self.successes > 0 && result.consecutive_success >= self.successes {
            return Some((phase::SUCCESSFUL, none()));
        }
        if self.count == 0 || result.count < self.count {
            return None;
        }
        Some(match (self.successes > 0, self.failed >= 0) {
            (true, true) => (phase::INCONCLUSIVE, none()),
            (true, false) => (phase::FAILED, none()),
            (false, _) => (phase::SUCCESSFUL, none()),
        })
    }

    /// May the same come again and again without end?
    fn allow_for_ever(&self, meaning: Meaning) -> bool {
        self.count == 0
            && match meaning {
                Meaning::Good => self.successes == 0,
                Meaning::Bad => self.failed < 0,
                Meaning::Undecided => false,
            }
    }
}

/// What cannot be read is refused before; a moment passes all the same.
fn duration(text: &str) -> SignedDuration {
    if text.is_empty() {
        return SignedDuration::ZERO;
    }
    parse_go_duration(text).unwrap_or(INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::super::{Given, Measured};
    use super::*;
    use serde_json::json;

    /// The metric, and what is measured by percent of errors or value from minutes on: when it
    /// ends (seconds), how, and why.
    const CASES: &str = r#"
one measurement             | {} | 0 | 0 Successful
good enough                 | {"successCondition":"result[0] <= 0.05"} | 4 | 0 Successful
too many errors             | {"successCondition":"result[0] <= 0.05"} | 6 | 0 Failed failed (1) > failureLimit (0)
a delay                     | {"initialDelay":"90s","failureCondition":"result > 0.05"} | 6 | 90 Failed failed (1) > failureLimit (0)
several                     | {"interval":"1m","count":3} | 0 | 120 Successful
one bad one is allowed      | {"interval":"1m","count":3,"failureLimit":1,"successCondition":"result < 0.05"} | 6 | 60 Failed failed (2) > failureLimit (1)
without end                 | {"interval":"1m","successCondition":"result < 0.05"} | 0 | -
bad from some moment on     | {"interval":"1m","successCondition":"result < 0.05"} | 6@10 | 600 Failed failed (1) > failureLimit (0)
bad is allowed for ever     | {"interval":"1m","failureLimit":-1,"successCondition":"result < 0.05"} | 6 | -
between good and bad        | {"successCondition":"result < 0.01","failureCondition":"result > 0.05"} | 3 | 0 Inconclusive inconclusive (1) > inconclusiveLimit (0)
enough in a row             | {"interval":"1m","consecutiveSuccessLimit":2} | 0 | 60 Successful
not enough in a row         | {"interval":"1m","count":2,"failureLimit":2,"consecutiveSuccessLimit":2,"successCondition":"result < 0.01"} | 3 | 60 Inconclusive
beyond a simulation         | {"successCondition":"result.ok"} | 50 | 0 Successful
"#;

    fn run(metrics: serde_json::Value) -> Run<'static> {
        let spec = serde_json::from_value(metrics).unwrap();
        let zero = Timestamp::UNIX_EPOCH;
        Run { spec, images: vec!["web:2"], began: zero, update: zero }
    }

    fn metric(text: &str) -> serde_json::Value {
        let mut metric: serde_json::Value = serde_json::from_str(text).unwrap();
        metric["name"] = json!("errors");
        metric["provider"] = json!({ "web": { "url": "http://x" } });
        metric
    }

    fn told(verdict: Option<RunEnd>) -> String {
        let Some(verdict) = verdict else { return "-".to_owned() };
        let why = verdict.message.split(" due to ").nth(1).unwrap_or_default();
        format!("{} {} {why}", verdict.at.as_second(), verdict.phase).trim_end().to_owned()
    }

    #[test]
    fn a_metric_ends_when_its_limits_say_so() {
        for row in CASES.trim().lines() {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [what, text, errors, expected] = cells[..] else { panic!("four cells: {row}") };
            let (percent, from) = errors.split_once('@').unwrap_or((errors, "0"));
            let outlook = Outlook {
                measured: vec![Measured {
                    error_percent: percent.parse().ok(),
                    from: SignedDuration::from_mins(from.parse().unwrap()),
                    ..Measured::default()
                }],
                ..Outlook::default()
            };
            let run = run(json!({ "metrics": [metric(text)] }));
            assert_eq!(told(verdict(&run, &outlook)), expected, "{what}");
        }
    }

    #[test]
    fn only_comparisons_with_numbers_can_be_measured() {
        let cases = [
            ("{}", true),
            (r#"{"successCondition":"result[0] >= {{args.limit}}"}"#, true),
            (r#"{"successCondition":"result.ok"}"#, false),
            (r#"{"failureCondition":"len(result) > 0"}"#, false),
        ];
        for (text, expected) in cases {
            let metric = serde_json::from_value(metric(text)).unwrap();
            assert_eq!(is_measurable(&metric), expected, "{text}");
        }
    }

    #[test]
    fn the_first_bad_metric_ends_a_run_unless_it_is_dry() {
        let good = json!({ "name": "good", "interval": "1m", "count": 5, "provider": {} });
        let bad = json!({ "name": "bad", "initialDelay": "1m", "successCondition": "result < 1",
            "provider": {} });
        let value = Measured { metric: "bad".into(), value: Some(2.0), ..Measured::default() };
        let outlook = Outlook { measured: vec![value], ..Outlook::default() };
        let both = json!({ "metrics": [good, bad] });
        let found = verdict(&run(both.clone()), &outlook).unwrap();
        assert_eq!((found.at.as_second(), found.phase.as_str()), (60, phase::FAILED));
        let message = "Metric \"bad\" assessed Failed due to failed (1) > failureLimit (0)";
        assert_eq!(found.message, message);
        let mut dry = both;
        dry["dryRun"] = json!([{ "metricName": "b.d" }]);
        let found = verdict(&run(dry), &outlook).unwrap();
        assert_eq!((found.at.as_second(), found.phase.as_str()), (240, phase::SUCCESSFUL));
    }

    #[test]
    fn a_result_that_is_given_comes_before_any_measurement() {
        let given = Given {
            result: "Error".into(),
            after: SignedDuration::from_secs(7),
            ..Given::default()
        };
        let outlook = Outlook { given: vec![given], ..Outlook::default() };
        let found = verdict(&run(json!({ "metrics": [metric("{}")] })), &outlook).unwrap();
        assert_eq!((found.at.as_second(), found.phase.as_str()), (7, phase::ERROR));
    }
}
