//! Carries out what is due: asks the providers, and records what they measured.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::analysis::{Measurement, Metric, MetricResult};
use gradus_api::metrics::MetricProvider;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::prepare::{PlannedMetric, RunPlan};
use super::secrets::{self, SecretsSeen};
use super::tasks::{MetricTask, due, interval};
use super::{RunDraft, later, stored};
use crate::analysis::condition;
use crate::ask::http::HttpOutcome;
use crate::ask::{Ask, AskId, Class, Effect, Failure, ListOf, MetricReply, Question, Reply};
use crate::decision::{Change, Frees, Guard, ObjectRef};
use crate::frame::{Frame, TextMap};
use crate::kinds;
use crate::metrics::{self, Call, JobView, MetricFault, Next, Observed, Of, Provider, Reading};
use crate::world::RunPhase;

/// Requests of one measurement. The longest, New Relic's, needs four.
const REQUEST_LIMIT: usize = 8;
/// The most of a value or a message that is stored, in bytes: a status has to stay small, and the
/// conditions have seen the whole.
const STORED_LIMIT: usize = 1024;

/// Carries out what is due for every metric; the message if the run cannot go on.
pub fn all(draft: &mut RunDraft<'_>, plan: &RunPlan, is_terminating: bool) -> Option<String> {
    for planned in &plan.metrics {
        let task = due(&planned.metric, &draft.status, is_terminating, draft.now);
        let last = draft.last(&planned.metric.name);
        let (call, operation) = match (task, &last) {
            (MetricTask::Measure, _) => match secrets::look(draft, &planned.metric) {
                SecretsSeen::There => (Call::Run, "Run"),
                SecretsSeen::Awaited => continue,
                SecretsSeen::Missing(error) => {
                    return Some(format!("Unable to resolve metric arguments: {error}"));
                }
            },
            (MetricTask::Resume, Some(last)) => (Call::Resume(last), "Resume"),
            (MetricTask::Terminate, Some(last)) => (Call::Terminate(last), "Terminate"),
            (MetricTask::Begin, _) => {
                draft.must_begin = true;
                continue;
            }
            _ => continue,
        };
        let found = Measuring { planned, call, operation }.carry_out(draft);
        match found {
            Some(Taken { outcome: Reading::Error(fault), .. }) if fault.ends_run => {
                return Some(format!("Unable to resolve metric arguments: {}", fault.message));
            }
            Some(found) => draft.record(plan, planned, call, found),
            None => {}
        }
    }
    None
}

/// The metric that a question is about.
pub fn metric_of(id: &AskId) -> Option<&str> {
    let (_, rest) = id.0.strip_prefix("measure ")?.split_once(' ')?;
    rest.rsplitn(5, ' ').nth(4)
}

/// One measurement that is being made.
struct Measuring<'p> {
    planned: &'p PlannedMetric,
    call: Call<'p>,
    operation: &'static str,
}

/// What is known so far of what is asked for a measurement.
struct Heard<'f> {
    replies: Vec<HttpOutcome>,
    said: Vec<MetricReply>,
    jobs: BTreeMap<Arc<str>, Arc<JobView>>,
    refused: Option<&'f Failure>,
    pods: Option<Vec<Arc<Value>>>,
    /// When the first question was asked, and when the measurement was there.
    times: (Timestamp, Timestamp),
}

impl Heard<'_> {
    /// How many questions have been answered.
    fn count(&self) -> usize {
        self.replies.len() + self.said.len()
    }

    /// Takes in an answer; `None` if it is none to a question of a provider.
    fn take(&mut self, reply: &Reply, (asked, answered): (Timestamp, Timestamp)) -> Option<()> {
        let is_first = self.count() == 0;
        let began = if is_first { asked } else { self.times.0 };
        match reply {
            Reply::Http(outcome) => self.replies.push(outcome.clone()),
            // The first answer of a plugin is the measurement; the others only describe it.
            Reply::MetricPlugin(reply) => {
                self.said.push(reply.clone());
                if !is_first {
                    return Some(());
                }
            }
            _ => return None,
        }
        self.times = (began, answered);
        Some(())
    }

    fn observed<'h>(&'h self, now: Timestamp, run: &'h Of, number: i32) -> Observed<'h> {
        let Heard { replies, said, jobs, refused, pods, .. } = self;
        let pods = pods.as_deref();
        Observed { now, run, number, replies, said, jobs, refused: *refused, pods }
    }
}

/// What was measured, and when.
struct Taken {
    outcome: Reading,
    metadata: TextMap,
    began: Timestamp,
    ended: Timestamp,
}

impl Measuring<'_> {
    /// The measurement, or `None` while something is awaited.
    fn carry_out(&self, draft: &mut RunDraft<'_>) -> Option<Taken> {
        let (metric, now) = (&self.planned.metric, draft.now);
        if let Some(taken) = self.unasked(now) {
            return Some(taken);
        }
        let provider = metrics::provider(metric)?;
        let (of, number) = (draft.identity(), draft.number(&metric.name));
        let jobs = draft.world.jobs.clone();
        let (replies, said, times) = (Vec::new(), Vec::new(), (now, now));
        let mut heard = Heard { replies, said, jobs, refused: None, pods: None, times };
        for _ in 0..REQUEST_LIMIT {
            let seen = heard.observed(now, &of, number);
            let outcome = match metrics::next(&*provider, self.asked(), &seen) {
                Next::Done(outcome) => outcome,
                Next::Wait(moment) => {
                    moment.into_iter().for_each(|moment| draft.wake(moment));
                    return None;
                }
                Next::Pods { of, look, until } => {
                    heard.pods = Some(draft.pods(of, look, until)?);
                    continue;
                }
                Next::Send(request, effect) => {
                    self.ask(draft, &mut heard, (Question::Http(request), effect), number)?;
                    continue;
                }
                Next::Call(call, effect) => {
                    self.ask(draft, &mut heard, (Question::MetricPlugin(call), effect), number)?;
                    continue;
                }
                Next::Create { name, job, then } => match draft.create(&name, &job) {
                    Created::AsPlanned => then,
                    Created::Waits => return None,
                    Created::Ours(view) => {
                        heard.jobs.insert(name, view);
                        continue;
                    }
                    Created::Refused(failure) => {
                        heard.refused = Some(failure);
                        continue;
                    }
                },
                Next::Delete { job, then } => {
                    draft.changes.push(draft.deletion(&job));
                    then
                }
            };
            let metadata = provider.metadata(&seen);
            let (began, ended) = heard.times;
            return Some(Taken { outcome, metadata, began, ended });
        }
        let (began, ended) = heard.times;
        let fault = MetricFault::new(format!("no result after {REQUEST_LIMIT} requests"), "");
        Some(Taken { outcome: Reading::Error(fault), metadata: TextMap::new(), began, ended })
    }

    /// Asks, and takes in the answer; `None` as long as there is none.
    fn ask(
        &self,
        draft: &mut RunDraft<'_>,
        heard: &mut Heard<'_>,
        (question, effect): (Question, Effect),
        number: i32,
    ) -> Option<()> {
        let metric = &self.planned.metric;
        let provider = metrics::provider(metric)?;
        let id = self.id(draft, number, heard.count());
        let ask = Ask { id, question, effect, after: None };
        let (reply, times) = draft.reply(ask, &*provider, &metric.name)?;
        heard.take(reply, times)
    }

    /// What needs no provider: there is none, or what waits for data is ended.
    fn unasked(&self, now: Timestamp) -> Option<Taken> {
        let metric = &self.planned.metric;
        let outcome = match self.call {
            _ if metrics::provider(metric).is_none() => {
                Reading::Error(MetricFault::new("no provider specified", ""))
            }
            Call::Terminate(_) if waits_for_data(metric) => Reading::Judged {
                phase: RunPhase::Inconclusive,
                text: String::new(),
                message: String::new(),
                metadata: TextMap::new(),
            },
            _ => return None,
        };
        Some(Taken { outcome, metadata: TextMap::new(), began: now, ended: now })
    }

    /// What the provider is asked: what waits for data is measured anew.
    fn asked(&self) -> Call<'_> {
        match self.call {
            Call::Resume(_) if waits_for_data(&self.planned.metric) => Call::Run,
            call => call,
        }
    }

    /// The same for the same request of the same measurement, so that nothing is asked twice.
    fn id(&self, draft: &RunDraft<'_>, number: i32, step: usize) -> AskId {
        let resume = match self.call {
            Call::Run => None,
            Call::Resume(last) | Call::Terminate(last) => last.resume_at,
        };
        let resume = resume.map_or_else(|| "-".to_owned(), |time| time.to_string());
        let (uid, operation) = (draft.run().uid, self.operation);
        let name = &self.planned.metric.name;
        AskId(format!("measure {uid} {name} {number} {operation} {resume} {step}").into())
    }
}

/// Is a measurement of this metric in flight because there was no data? Providers that take longer
/// have an end of their own.
fn waits_for_data(metric: &Metric) -> bool {
    let provider = &metric.provider;
    let is_slow =
        provider.job.is_some() || provider.kayenta.is_some() || !provider.plugin.is_empty();
    metric.on_no_data == "wait" && !is_slow
}

/// What became of a Job that is to be created.
enum Created<'w> {
    /// It is part of this decision.
    AsPlanned,
    /// It cannot be created now.
    Waits,
    /// It is there, and ours.
    Ours(Arc<JobView>),
    /// It cannot be created.
    Refused(&'w Failure),
}

impl<'w> RunDraft<'w> {
    fn result(&self, metric: &str) -> Option<&MetricResult> {
        self.status.metric_results.iter().find(|result| result.name == metric)
    }

    /// Where the Jobs of the run are.
    fn job_namespace(&self) -> &'w Arc<str> {
        self.world.job_namespace.as_ref().unwrap_or(&self.world.run.namespace)
    }

    /// The run, as providers see it.
    fn identity(&self) -> Of {
        let run = self.run();
        Of {
            namespace: Arc::clone(&run.namespace),
            job_namespace: Arc::clone(self.job_namespace()),
            name: Arc::clone(&run.name),
            uid: run.uid,
            started_at: self.status.started_at.map(|time| time.timestamp()),
        }
    }

    /// Which measurement of a metric the next one is, from 1.
    fn number(&self, metric: &str) -> i32 {
        let result = self.result(metric);
        result.map_or(1, |result| result.count.saturating_add(result.error).saturating_add(1))
    }

    fn last(&self, metric: &str) -> Option<Measurement> {
        self.result(metric).and_then(|result| result.measurements.last()).cloned()
    }

    /// Asks, and gives the reply with the times of question and answer once it is there.
    fn reply(
        &mut self,
        ask: Ask,
        provider: &dyn Provider,
        metric: &str,
    ) -> Option<(&'w Reply, (Timestamp, Timestamp))> {
        // What changes something outside is only asked for a run that is stored as begun.
        if ask.effect == Effect::Acts && self.run().status.phase.is_empty() {
            self.must_begin = true;
            return None;
        }
        let answer = self.world.answers.get(&ask.id);
        self.ask(ask);
        match answer.map(|answer| (answer, &answer.reply)) {
            Some((answer, Ok(reply))) => Some((reply, (answer.asked_at, answer.answered_at))),
            Some((_, Err(failure))) => {
                self.is_reading = true;
                let guard = Guard::Unreadable { message: failure.message.clone() };
                self.waits(guard, Frees::At(failure.retry_at));
                self.wake(failure.retry_at);
                None
            }
            None => {
                self.is_reading = true;
                let question =
                    format!("{} {} for metric {metric}", provider.kind(), provider.address());
                self.waits(Guard::Unanswered { question }, Frees::Cluster);
                None
            }
        }
    }

    /// Asks for pods once a look, and gives them once they are known. Nothing hinges on them, so
    /// one that fails is made up for by the next look.
    fn pods(&mut self, of: ListOf, look: i64, until: Timestamp) -> Option<Vec<Arc<Value>>> {
        let ask = Ask {
            id: AskId(format!("pods of {} look {look}", of.labels).into()),
            question: Question::List(of),
            effect: Effect::Reads,
            after: None,
        };
        let answer = self.world.answers.get(&ask.id).map(|answer| &answer.reply);
        self.ask(ask);
        match answer {
            Some(Ok(Reply::Objects(pods))) => Some(pods.clone()),
            _ => {
                self.wake(until);
                None
            }
        }
    }

    fn create(&mut self, name: &Arc<str>, job: &Value) -> Created<'w> {
        let target = ObjectRef::new(kinds::JOB, self.job_namespace(), name);
        let change = Change::create(target.clone(), job.clone());
        let Some(failure) = self.world.recall.failed.get(&change.id) else {
            self.changes.push(change);
            return Created::AsPlanned;
        };
        match failure.class {
            Class::Exists => self.existing(&target, failure),
            Class::Denied | Class::Gone => Created::Refused(failure),
            _ if self.now < failure.retry_at => {
                let (message, times) = (failure.message.clone(), failure.times);
                self.waits(Guard::Refused { message, times }, Frees::At(failure.retry_at));
                self.wake(failure.retry_at);
                Created::Waits
            }
            _ => {
                self.changes.push(change);
                Created::AsPlanned
            }
        }
    }

    /// Whose is the Job that has the name already?
    fn existing(&mut self, target: &ObjectRef, failure: &'w Failure) -> Created<'w> {
        let ask = Ask::read(target.clone());
        let answer = self.world.answers.get(&ask.id).map(|answer| &answer.reply);
        self.ask(ask);
        let Some(Ok(Reply::Object(found))) = answer else {
            self.is_reading = true;
            return Created::Waits;
        };
        let uid = self.run().uid.to_string();
        let frame = found.as_ref().and_then(|found| Frame::deserialize(&**found).ok());
        match frame.map(|frame| JobView::read(&frame)) {
            Some(job) if *job.run == *uid => Created::Ours(Arc::new(job)),
            _ => Created::Refused(failure),
        }
    }

    pub(super) fn deletion(&self, job: &JobView) -> Change {
        let target = ObjectRef::new(kinds::JOB, self.job_namespace(), &job.name);
        Change::delete(target, job.uid).or_skip()
    }

    /// The values that a metric has had so far, for conditions that look at them.
    fn earlier(&self, metric: &Metric) -> Vec<Value> {
        if !condition::uses_history(metric) {
            return Vec::new();
        }
        let all = self.result(&metric.name).map_or(&[][..], |result| &result.measurements);
        let is_value = |one: &&Measurement| one.finished_at.is_some() && !one.value.is_empty();
        let read = |one: &Measurement| {
            serde_json::from_str(&one.value).unwrap_or_else(|_| one.value.clone().into())
        };
        all.iter().filter(is_value).map(read).collect()
    }

    /// Records a measurement. Results stand in the order of the spec.
    fn record(&mut self, plan: &RunPlan, planned: &PlannedMetric, call: Call<'_>, found: Taken) {
        let Taken { outcome, metadata, began, ended } = found;
        let mut measurement = match call {
            Call::Run => Measurement { started_at: stored(began), ..Measurement::default() },
            Call::Resume(last) | Call::Terminate(last) => last.clone(),
        };
        let earlier = self.earlier(&planned.metric);
        judge(&mut measurement, planned, (outcome, &earlier), ended);
        if matches!(call, Call::Terminate(_)) {
            let phase = RunPhase::of(&measurement.phase);
            if matches!(phase, RunPhase::Successful | RunPhase::Inconclusive) {
                measurement.message = "Metric Terminated".to_owned();
            }
        }
        let name = &planned.metric.name;
        let results = &mut self.status.metric_results;
        if !results.iter().any(|result| result.name == *name) {
            let result = MetricResult {
                name: name.clone(),
                phase: RunPhase::Running.text().to_owned(),
                dry_run: planned.is_dry,
                metadata,
                ..MetricResult::default()
            };
            let place = |name: &str| plan.metrics.iter().position(|one| one.metric.name == name);
            let later = |other: &MetricResult| place(&other.name) > place(name);
            let at = results.iter().position(later).unwrap_or(results.len());
            results.insert(at, result);
        }
        let Some(result) = results.iter_mut().find(|result| result.name == *name) else { return };
        if !matches!(call, Call::Run) {
            result.measurements.pop();
        }
        if measurement.finished_at.is_some() {
            count(result, RunPhase::of(&measurement.phase));
        }
        result.measurements.push(measurement);
    }
}

/// A measurement that somebody else has made and judged.
fn as_measured(begun: &Measurement, measured: Measurement, ended: Timestamp) -> Measurement {
    let is_bare = measured.phase == RunPhase::Error.text() && measured.started_at.is_none();
    let began = begun.started_at.filter(|_| !is_bare);
    let is_over = RunPhase::of(&measured.phase).is_completed();
    let metadata = measured.metadata.into_iter().map(|(key, text)| (cut(key), cut(text)));
    Measurement {
        message: cut(measured.message),
        value: cut(measured.value),
        metadata: metadata.collect(),
        started_at: measured.started_at.or(began),
        finished_at: measured.finished_at.or(stored(ended)).filter(|_| is_over),
        ..measured
    }
}

/// Writes the outcome into the measurement; conditions judge a value.
fn judge(
    measurement: &mut Measurement,
    planned: &PlannedMetric,
    (outcome, earlier): (Reading, &[Value]),
    ended: Timestamp,
) {
    let metric = &planned.metric;
    let (phase, message) = match outcome {
        Reading::InFlight { resume_at, metadata } => {
            measurement.phase = RunPhase::Running.text().to_owned();
            measurement.resume_at = stored(resume_at);
            measurement.metadata = metadata;
            return;
        }
        Reading::Value { result, text, metadata }
            if result.is_no_data() && !metric.on_no_data.is_empty() =>
        {
            measurement.metadata = metadata;
            measurement.value = cut(text);
            let Some(phase) = without_data(metric) else {
                measurement.phase = RunPhase::Running.text().to_owned();
                measurement.message = format!("{NO_DATA}; it is measured again");
                measurement.resume_at = stored(later(ended, interval(metric)));
                return;
            };
            (phase, format!("{NO_DATA} (onNoData: {})", metric.on_no_data))
        }
        Reading::Value { result, text, metadata } => {
            measurement.metadata = metadata;
            match condition::judge(metric, &result, earlier, ended) {
                Ok(phase) => {
                    measurement.value = cut(text);
                    measurement.resume_at = None;
                    (phase, String::new())
                }
                Err(message) => {
                    keep_unjudged(measurement, metric, text);
                    (RunPhase::Error, metrics::unjudged(metric, &message))
                }
            }
        }
        Reading::Judged { phase, text, message, metadata } => {
            measurement.metadata = metadata;
            measurement.value = cut(text);
            (phase, message)
        }
        Reading::Measured(measured) => {
            *measurement = as_measured(measurement, *measured, ended);
            return;
        }
        Reading::Error(MetricFault { message, metadata, .. }) => {
            measurement.metadata.extend(metadata);
            (RunPhase::Error, message)
        }
    };
    measurement.phase = phase.text().to_owned();
    measurement.message = cut(message);
    measurement.finished_at = stored(ended);
}

/// What a measurement keeps whose value the conditions cannot judge: as Argo Rollouts, some providers
/// keep the value, and Prometheus drops its warnings.
fn keep_unjudged(measurement: &mut Measurement, metric: &Metric, text: String) {
    let MetricProvider { graphite, cloud_watch, prometheus, .. } = &metric.provider;
    if graphite.is_some() || cloud_watch.is_some() {
        measurement.value = cut(text);
    }
    if prometheus.is_some() {
        measurement.metadata.clear();
    }
}

/// What is said of a measurement that has none.
const NO_DATA: &str = "no data returned from the metric provider";

/// What no data means to a metric; `None` where it waits for some.
fn without_data(metric: &Metric) -> Option<RunPhase> {
    match metric.on_no_data.as_str() {
        "pass" => Some(RunPhase::Successful),
        "fail" => Some(RunPhase::Failed),
        "inconclusive" => Some(RunPhase::Inconclusive),
        _ => None,
    }
}

fn count(result: &mut MetricResult, phase: RunPhase) {
    let is_error = phase == RunPhase::Error;
    result.consecutive_error = if is_error { more(result.consecutive_error) } else { 0 };
    let is_success = phase == RunPhase::Successful;
    result.consecutive_success = if is_success { more(result.consecutive_success) } else { 0 };
    match phase {
        RunPhase::Successful => result.successful = more(result.successful),
        RunPhase::Failed => result.failed = more(result.failed),
        RunPhase::Inconclusive => result.inconclusive = more(result.inconclusive),
        _ => result.error = more(result.error),
    }
    if !is_error {
        result.count = more(result.count);
    }
}

fn more(number: i32) -> i32 {
    number.saturating_add(1)
}

/// A text that may be stored.
fn cut(text: String) -> String {
    if text.len() <= STORED_LIMIT {
        return text;
    }
    let mut end = STORED_LIMIT - '…'.len_utf8();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}
