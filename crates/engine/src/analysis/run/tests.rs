//! Runs from their first look to their end, with providers that answer as each row says.

mod ends;
mod invalid;
mod jobs;
mod lifecycle;
mod no_data;
mod secrets;
mod told;

use std::collections::VecDeque;

use gradus_api::analysis::{Measurement, MetricResult};
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::ask::http::{HttpError, HttpReply};
use crate::ask::{Effect, Failure, MetricOperation, MetricReply, Question, Reply};
use crate::decision::Op;
use crate::frame::Frame;

const UID: &str = "00000000-0000-4000-8000-000000000001";

/// Most decisions of one play: more means that it never comes to rest.
const STEPS: usize = 500;

/// A run that is played: what a cluster and the providers would do, without either.
struct Play {
    world: RunWorld,
    now: Timestamp,
    /// What providers answer next; `E` is a failure, `-` no answer at all.
    script: VecDeque<String>,
    /// Requests that were sent.
    calls: usize,
    /// Writes of the status.
    writes: usize,
    /// Events in order, as `reason message`.
    events: Vec<String>,
    is_deleted: bool,
    /// What plugins were told to clear away: how many measurements are stored, how many stay.
    collected: Vec<(usize, i32)>,
    /// Create of a Job fails so.
    refusal: Option<Failure>,
    /// What a read of a Secret gives; without it there is none.
    secret: Option<Result<Value, Failure>>,
}

impl Play {
    fn new(spec: Value, script: &str) -> Self {
        let frame: Frame = serde_json::from_value(json!({
            "metadata": { "name": "run", "namespace": "shop", "uid": UID },
            "spec": spec,
        }))
        .unwrap();
        Play {
            world: RunWorld {
                run: Arc::new(AnalysisRunView::read(&frame)),
                jobs: BTreeMap::new(),
                answers: BTreeMap::new(),
                recall: Recall::default(),
                job_namespace: None,
            },
            now: Timestamp::from_second(1000).unwrap(),
            script: script.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect(),
            calls: 0,
            writes: 0,
            events: Vec::new(),
            is_deleted: false,
            collected: Vec::new(),
            refusal: None,
            secret: None,
        }
    }

    fn status(&self) -> &AnalysisRunStatus {
        &self.world.run.status
    }

    fn result(&self, metric: &str) -> &MetricResult {
        self.status().metric_results.iter().find(|result| result.name == metric).unwrap()
    }

    fn change_run(&mut self, change: impl FnOnce(&mut AnalysisRunView)) {
        change(Arc::make_mut(&mut self.world.run));
    }

    /// A new process knows what is stored and nothing else.
    fn restart(&mut self) {
        self.world.answers.clear();
        self.world.recall = Recall::default();
    }

    /// One decision, carried out. Says when to look again, or `None` if it changed something.
    fn step(&mut self) -> Option<Option<Timestamp>> {
        let decision = decide(&self.world, self.now);
        let mut is_moved = false;
        for change in &decision.changes {
            if let (Op::Create(_), Some(failure)) = (&change.op, self.refusal.take()) {
                self.world.recall.failed.insert(change.id.clone(), failure);
                return None;
            }
            is_moved = true;
            match &change.op {
                Op::Create(job) => {
                    let frame: Frame = Frame::deserialize(&**job).unwrap();
                    let view = Arc::new(JobView::read(&frame));
                    self.world.jobs.insert(Arc::clone(&view.name), view);
                }
                Op::Delete if change.target.kind == kinds::JOB => {
                    self.world.jobs.remove(&change.target.name);
                }
                Op::Delete => self.is_deleted = true,
                op => panic!("nothing else is written: {op:?}"),
            }
        }
        if let Some(status) = decision.status {
            assert_ne!(status, *self.world.run.status, "what is so already is not written");
            self.writes += 1;
            self.change_run(|run| run.status = Arc::new(status));
            is_moved = true;
        }
        let told = |event: &Event| format!("{} {}", event.reason, event.message);
        self.events.extend(decision.events.iter().map(told));
        let listed: Vec<AskId> = decision.asks.iter().map(|ask| ask.id.clone()).collect();
        self.world.answers.retain(|id, _| listed.contains(id));
        for ask in decision.asks {
            is_moved |= self.answer(ask);
        }
        (!is_moved).then_some(decision.wake_at)
    }

    /// Answers a question, unless it is known already or nobody answers.
    fn answer(&mut self, ask: Ask) -> bool {
        if self.world.answers.contains_key(&ask.id) || self.script.front().is_some_and(|a| a == "-")
        {
            return false;
        }
        let is_garbage = matches!(&ask.question, Question::MetricPlugin(call)
            if matches!(call.operation, MetricOperation::GarbageCollect(_)));
        if ask.effect == Effect::Acts && !is_garbage {
            assert_eq!(self.status().phase, "Running", "it is stored as begun before it acts");
        }
        let reply = match &ask.question {
            Question::Read(target) if target.kind == kinds::SECRET => match self.secret.clone() {
                Some(Err(failure)) => {
                    let (asked_at, answered_at) = (self.now, self.now);
                    let answer = Answer { asked_at, answered_at, reply: Err(failure) };
                    self.world.answers.insert(ask.id, answer);
                    return true;
                }
                found => Reply::Object(found.and_then(Result::ok).map(Arc::new)),
            },
            Question::Http(_) => {
                self.calls += 1;
                let said = self.script.pop_front().expect("the script has an answer");
                Reply::Http(match said.as_str() {
                    "E" => Err(HttpError::Connect("refused".into())),
                    "S" => Err(crate::ask::secret::SecretError::NoSecret("keys".into()).into()),
                    body => Ok(HttpReply::new(200, body)),
                })
            }
            Question::MetricPlugin(call) => Reply::MetricPlugin(self.measured(&call.operation)),
            Question::Read(target) => {
                let found = self.world.jobs.contains_key(&target.name);
                assert!(!found, "what is known is not read");
                Reply::Object(None)
            }
            // Pods of Jobs, none of which lacks its image.
            Question::List(_) => Reply::Objects(Vec::new()),
            question => panic!("not asked here: {question:?}"),
        };
        let answer = Answer { asked_at: self.now, answered_at: self.now, reply: Ok(reply) };
        self.world.answers.insert(ask.id, answer);
        true
    }

    /// What a plugin answers: to a measurement the word of the script as its phase.
    fn measured(&mut self, operation: &MetricOperation) -> MetricReply {
        match operation {
            MetricOperation::GetMetadata => MetricReply::Metadata(BTreeMap::new()),
            MetricOperation::GarbageCollect(kept) => {
                self.collected.push((self.result("m").measurements.len(), *kept));
                match self.script.front().map(String::as_str) {
                    Some("broken") => MetricReply::Broken("no disk".to_owned()),
                    _ => MetricReply::Done,
                }
            }
            _ => {
                self.calls += 1;
                let phase = self.script.pop_front().expect("the script has an answer");
                MetricReply::Measured(Box::new(Measurement { phase, ..Measurement::default() }))
            }
        }
    }

    /// Until nothing moves at this moment. Says when to look again.
    fn settle(&mut self) -> Option<Timestamp> {
        for _ in 0..STEPS {
            if let Some(wake_at) = self.step() {
                return wake_at;
            }
        }
        panic!("it never comes to rest: {:?}", self.world.run.status);
    }

    /// For so many seconds, or until it comes to rest for good.
    fn go(&mut self, seconds: i64) {
        let end = self.now + SignedDuration::from_secs(seconds);
        for _ in 0..STEPS {
            match self.settle() {
                Some(wake_at) if wake_at <= end => self.now = wake_at.max(self.now),
                Some(_) => {
                    self.now = end;
                    return;
                }
                None => return,
            }
        }
        panic!("it never comes to rest: {:?}", self.world.run.status);
    }
}

/// A metric of the web provider.
fn web(fields: Value) -> Value {
    let mut metric = json!({ "name": "m", "successCondition": "result >= 1",
        "provider": { "web": { "url": "http://w" } } });
    for (key, value) in fields.as_object().unwrap() {
        metric[key] = value.clone();
    }
    metric
}

fn one(fields: Value) -> Value {
    json!({ "metrics": [web(fields)] })
}
