//! Metric providers: what to request next, and what the answers measure. Every provider is a pure
//! function of the answers so far; the run's engine sends what it asks for and calls it again.

mod cloudwatch;
mod datadog;
mod format;
mod graphite;
mod influxdb;
mod job;
mod kayenta;
mod newrelic;
mod plugin;
mod prometheus;
mod skywalking;
mod wavefront;
mod web;

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::analysis::{Measurement, Metric};
use gradus_api::metrics::MetricProvider;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::ask::http::{HttpError, HttpOutcome, HttpReply, HttpRequest};
use crate::ask::secret::SecretText;
use crate::ask::{Effect, Failure, ListOf, MetricCall, MetricReply};
use crate::frame::TextMap;
use crate::uid::Uid;
use crate::world::RunPhase;
pub use format::{go_json, go_number};
pub use job::{JobView, name_of as job_name, superfluous as superfluous_jobs};
pub use plugin::Plugin;

/// What is to be done about one measurement.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Measure anew.
    Run,
    /// Look again at a measurement in flight.
    Resume(&'a Measurement),
    /// End a measurement in flight.
    Terminate(&'a Measurement),
}

/// What a provider may look at.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The moment of the decision.
    pub now: Timestamp,
    /// The run.
    pub run: &'a Of,
    /// Which measurement of the metric it is, from 1.
    pub number: i32,
    /// What came of the requests so far, in order.
    pub replies: &'a [HttpOutcome],
    /// What a plugin has said so far, in order.
    pub said: &'a [MetricReply],
    /// The Jobs of the run, by name.
    pub jobs: &'a BTreeMap<Arc<str>, Arc<JobView>>,
    /// Why the Job could not be created.
    pub refused: Option<&'a Failure>,
    /// The pods that were asked for.
    pub pods: Option<&'a [Arc<Value>]>,
}

/// The run a measurement belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Of {
    /// Namespace.
    pub namespace: Arc<str>,
    /// The namespace of its Jobs.
    pub job_namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Identity.
    pub uid: Uid,
    /// When it began.
    pub started_at: Option<Timestamp>,
}

/// What a provider wants next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// One more request.
    Send(Box<HttpRequest>, Effect),
    /// One call of a plugin.
    Call(Box<MetricCall>, Effect),
    /// This Job; once it is there, that is the measurement.
    Create {
        /// Its name.
        name: Arc<str>,
        /// The Job.
        job: Box<Value>,
        /// The measurement.
        then: Reading,
    },
    /// This Job deleted; then that is the measurement.
    Delete {
        /// The Job.
        job: Arc<JobView>,
        /// The measurement.
        then: Reading,
    },
    /// These pods, asked for once in each look; until they are known it waits.
    Pods {
        /// Which ones.
        of: ListOf,
        /// Which look it is.
        look: i64,
        /// When the next one is due.
        until: Timestamp,
    },
    /// Nothing new: the measurement stays as it is, to be looked at again at this moment.
    Wait(Option<Timestamp>),
    /// Nothing: this is the measurement.
    Done(Reading),
}

/// The measurement. That it failed is one of its outcomes.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// A value, which the conditions judge.
    Value {
        /// What conditions see as `result`.
        result: MetricValue,
        /// The value as the status shows it.
        text: String,
        /// What else the provider says.
        metadata: TextMap,
    },
    /// The provider judges by itself.
    Judged {
        /// Its verdict.
        phase: RunPhase,
        /// The value as the status shows it.
        text: String,
        /// Why.
        message: String,
        /// What else the provider says.
        metadata: TextMap,
    },
    /// It takes longer.
    InFlight {
        /// When to look again.
        resume_at: Timestamp,
        /// What is needed to look again.
        metadata: TextMap,
    },
    /// The provider keeps the measurement by itself: this is it, whole.
    Measured(Box<Measurement>),
    /// There is no value.
    Error(MetricFault),
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFault {
    /// The cause.
    pub message: String,
    /// What the answer should have been; empty where nothing was asked.
    pub expected: &'static str,
    /// Kept where it was known before the error.
    pub metadata: TextMap,
    /// Does it end the whole run? (A Secret that is not there.)
    pub ends_run: bool,
}

/// A value as expressions see it. The kinds are those that matter to their type checks.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue {
    /// No data.
    Nil,
    /// A number.
    Number(f64),
    /// A list of numbers.
    Numbers(Vec<f64>),
    /// Series of numbers; conditions see all of them, in order, as one list of numbers.
    Series(Vec<Series>),
    /// A text.
    Text(String),
    /// Any JSON value; its numbers are floating-point.
    Json(Value),
    /// A list of any values.
    List(Vec<Value>),
}

/// Numbers that were measured at certain times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What is measured.
    pub labels: BTreeMap<String, String>,
    /// Moments, in seconds since 1970, and numbers.
    pub points: Vec<(f64, f64)>,
}

impl MetricValue {
    /// Has nothing been measured? Nothing but NaN, as 0/0 gives where there is no traffic, is nothing.
    pub fn is_no_data(&self) -> bool {
        match self {
            MetricValue::Nil => true,
            MetricValue::Number(number) => number.is_nan(),
            MetricValue::Numbers(numbers) => numbers.iter().all(|number| number.is_nan()),
            MetricValue::Series(series) => {
                series.iter().flat_map(|one| &one.points).all(|(_, number)| number.is_nan())
            }
            MetricValue::Text(text) => text.is_empty(),
            MetricValue::Json(json) => match json {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                _ => false,
            },
            MetricValue::List(items) => items.is_empty(),
        }
    }
}

/// A provider of metrics.
pub trait Provider {
    /// Its type, as metrics and logs name it.
    fn kind(&self) -> &'static str;

    /// Where it is, for people: without secrets, user and query.
    fn address(&self) -> String {
        String::new()
    }

    /// What it is asked, for people and without secrets.
    fn query(&self) -> String {
        String::new()
    }

    /// What it says about the metric as a whole.
    fn metadata(&self, _seen: &Observed<'_>) -> TextMap {
        TextMap::new()
    }

    /// The next request, or the measurement.
    fn next(&self, call: Call<'_>, seen: &Observed<'_>) -> Next;
}

/// The provider of a metric, as the contract orders them; `None` where it names none.
pub fn provider(metric: &Metric) -> Option<Box<dyn Provider + '_>> {
    Some(match &metric.provider {
        MetricProvider { prometheus: Some(spec), .. } => Box::new(prometheus::Prometheus(spec)),
        MetricProvider { job: Some(spec), .. } => Box::new(job::JobProvider { spec, metric }),
        MetricProvider { kayenta: Some(spec), .. } => Box::new(kayenta::Kayenta { spec, metric }),
        MetricProvider { web: Some(spec), .. } => Box::new(web::Web(spec)),
        MetricProvider { datadog: Some(spec), .. } => Box::new(datadog::Datadog(spec)),
        MetricProvider { wavefront: Some(spec), .. } => Box::new(wavefront::Wavefront(spec)),
        MetricProvider { new_relic: Some(spec), .. } => Box::new(newrelic::NewRelic(spec)),
        MetricProvider { cloud_watch: Some(spec), .. } => Box::new(cloudwatch::CloudWatch(spec)),
        MetricProvider { graphite: Some(spec), .. } => Box::new(graphite::Graphite(spec)),
        MetricProvider { influxdb: Some(spec), .. } => Box::new(influxdb::Influxdb(spec)),
        MetricProvider { skywalking: Some(spec), .. } => Box::new(skywalking::SkyWalking(spec)),
        MetricProvider { .. } => Box::new(plugin(metric)?),
    })
}

/// The plugin of a metric, where one measures it.
pub fn plugin(metric: &Metric) -> Option<Plugin<'_>> {
    let (name, _) = metric.provider.plugin.iter().next()?;
    Some(Plugin { name, metric })
}

/// How many providers a metric names; each plugin counts.
pub fn provider_count(provider: &MetricProvider) -> usize {
    let named = [
        provider.prometheus.is_some(),
        provider.job.is_some(),
        provider.kayenta.is_some(),
        provider.web.is_some(),
        provider.datadog.is_some(),
        provider.wavefront.is_some(),
        provider.new_relic.is_some(),
        provider.cloud_watch.is_some(),
        provider.graphite.is_some(),
        provider.influxdb.is_some(),
        provider.skywalking.is_some(),
    ];
    named.into_iter().filter(|is_named| *is_named).count() + provider.plugin.len()
}

/// The next request, or the measurement; a fault names the provider, its address and what was
/// expected.
pub fn next(provider: &dyn Provider, call: Call<'_>, seen: &Observed<'_>) -> Next {
    match provider.next(call, seen) {
        Next::Done(Reading::Error(fault)) if !fault.expected.is_empty() => {
            let message = placed(provider, &fault.message, fault.expected);
            Next::Done(Reading::Error(MetricFault { message, ..fault }))
        }
        next => next,
    }
}

/// What is wrong with an answer, who gave it, and what was expected.
fn placed(provider: &dyn Provider, message: &str, expected: &str) -> String {
    let (kind, address) = (provider.kind(), provider.address());
    let place = if address.is_empty() { String::new() } else { format!(" at {address}") };
    format!("{message} ({kind}{place}; expected {expected})")
}

/// Why the conditions of a metric cannot judge its value, and who gave that.
pub fn unjudged(metric: &Metric, message: &str) -> String {
    const EXPECTED: &str = "a value that the condition can judge";
    match provider(metric) {
        Some(provider) => placed(&*provider, message, EXPECTED),
        None => message.to_owned(),
    }
}

impl Next {
    /// A request that changes nothing.
    fn read(request: HttpRequest) -> Self {
        Next::Send(Box::new(request), Effect::Reads)
    }

    /// A measurement whose configuration is wrong.
    fn refused(message: impl Into<String>) -> Self {
        Next::Done(Reading::Error(MetricFault::new(message, "")))
    }

    /// A measurement whose answer is bad.
    fn bad(message: impl Into<String>, expected: &'static str) -> Self {
        Next::Done(Reading::Error(MetricFault::new(message, expected)))
    }

    /// A value without metadata.
    fn value(result: MetricValue, text: String) -> Self {
        Next::Done(Reading::Value { result, text, metadata: TextMap::new() })
    }
}

impl MetricFault {
    /// A cause, and what was expected.
    pub fn new(message: impl Into<String>, expected: &'static str) -> Self {
        let metadata = TextMap::new();
        MetricFault { message: message.into(), expected, metadata, ends_run: false }
    }

    /// Why a request has no answer. `expected` says what the answer should have been.
    fn unanswered(request: &HttpRequest, error: &HttpError, expected: &'static str) -> Self {
        let (method, url) = (request.method.text(), shown(&request.url));
        let method = format!("{}{}", &method[..1], method[1..].to_lowercase());
        match error {
            HttpError::Secret(error) => {
                MetricFault { ends_run: true, ..MetricFault::new(error.to_string(), "") }
            }
            HttpError::Timeout(_) => {
                MetricFault::new(format!("{method} \"{url}\": context deadline exceeded"), expected)
            }
            error => MetricFault::new(format!("{method} \"{url}\": {error}"), expected),
        }
    }
}

/// The first request, or what came of it.
enum Once<'a> {
    Ask(Next),
    Answered(&'a HttpReply),
}

/// For providers of one request: sends it, or passes its answer on.
fn once<'a>(seen: &Observed<'a>, request: HttpRequest, expected: &'static str) -> Once<'a> {
    match seen.replies.first() {
        None => Once::Ask(Next::read(request)),
        Some(Err(error)) => Once::Ask(Next::Done(Reading::Error(MetricFault::unanswered(
            &request, error, expected,
        )))),
        Some(Ok(reply)) => Once::Answered(reply),
    }
}

/// A URL for people: without user, password and query.
fn shown(url: &SecretText) -> String {
    let text = url.to_string();
    let text = text.split(['?', '#']).next().unwrap_or_default();
    match text.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => text.to_owned(),
    }
}

/// Whole seconds as a time limit.
fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count)
}

#[cfg(test)]
mod tests;
