//! A metric plugin: a process of its own measures and judges. What it is told may act outside, so it
//! is called only for a run that is stored as begun.

use std::sync::Arc;

use gradus_api::analysis::{Measurement, Metric};
use gradus_api::values::Time;
use jiff::SignedDuration;
use serde_json::Value;

use super::{Call, MetricFault, Next, Observed, Provider, Reading, TextMap};
use crate::ask::{Effect, MetricCall, MetricOperation, MetricReply};
use crate::world::RunPhase;

/// When a plugin that is at work and does not say when to ask again is asked again.
const NEXT_LOOK: SignedDuration = SignedDuration::from_secs(10);
/// Entries of metadata that are kept.
const METADATA_LIMIT: usize = 32;

/// A plugin, by its name, and the metric it measures.
pub struct Plugin<'a> {
    /// The plugin.
    pub name: &'a str,
    /// What it measures.
    pub metric: &'a Metric,
}

impl Provider for Plugin<'_> {
    fn kind(&self) -> &'static str {
        "RPCPlugin"
    }

    fn address(&self) -> String {
        self.name.to_owned()
    }

    /// What it said about the metric; asked once, after the first measurement was begun.
    fn metadata(&self, seen: &Observed<'_>) -> TextMap {
        match seen.said.get(1) {
            Some(MetricReply::Metadata(found)) => {
                let text = |(key, text): (&String, &String)| match key.as_str() {
                    "error" => (key.clone(), format!("failed to get metadata via plugin: {text}")),
                    _ => (key.clone(), text.clone()),
                };
                found.iter().take(METADATA_LIMIT).map(text).collect()
            }
            Some(MetricReply::Broken(why) | MetricReply::Unusable(why)) => {
                TextMap::from([("error".to_owned(), why.clone())])
            }
            _ => TextMap::new(),
        }
    }

    fn next(&self, call: Call<'_>, seen: &Observed<'_>) -> Next {
        let operation = match call {
            Call::Run => MetricOperation::Run,
            Call::Resume(last) => MetricOperation::Resume(Box::new(last.clone())),
            Call::Terminate(last) => MetricOperation::Terminate(Box::new(last.clone())),
        };
        let Some(said) = seen.said.first() else {
            return self.call(operation, Effect::Acts);
        };
        let is_first = matches!(call, Call::Run) && seen.number == 1;
        let is_called = !matches!(said, MetricReply::Unusable(_) | MetricReply::NoSecret(_));
        if is_first && is_called && seen.said.len() == 1 {
            return self.call(MetricOperation::GetMetadata, Effect::Reads);
        }
        Next::Done(reading(&operation, said, seen))
    }
}

impl Plugin<'_> {
    /// Clears away what belongs to measurements that are no longer kept.
    pub fn garbage(&self, kept: usize) -> MetricCall {
        let kept = i32::try_from(kept).unwrap_or(i32::MAX);
        self.told(MetricOperation::GarbageCollect(kept))
    }

    fn call(&self, operation: MetricOperation, effect: Effect) -> Next {
        Next::Call(Box::new(self.told(operation)), effect)
    }

    fn told(&self, operation: MetricOperation) -> MetricCall {
        // What was read from JSON can be written as JSON.
        let metric = serde_json::to_value(self.metric).unwrap_or(Value::Null);
        MetricCall { name: self.name.to_owned(), operation, metric: Arc::new(metric) }
    }
}

/// The measurement that an answer makes.
fn reading(operation: &MetricOperation, said: &MetricReply, seen: &Observed<'_>) -> Reading {
    let verb = match operation {
        MetricOperation::Resume(_) => "resume",
        MetricOperation::Terminate(_) => "terminate",
        _ => "run",
    };
    let failed = |message: String| {
        // Nothing is left of the measurement before, as with Argo Rollouts.
        let phase = RunPhase::Error.text().to_owned();
        Reading::Measured(Box::new(Measurement {
            phase,
            message,
            finished_at: Some(Time::new(seen.now)),
            ..Measurement::default()
        }))
    };
    let measured = match said {
        MetricReply::Measured(measured) => measured,
        MetricReply::Unusable(why) => return Reading::Error(MetricFault::new(why.clone(), "")),
        MetricReply::NoSecret(error) => {
            let fault = MetricFault::new(error.to_string(), "");
            return Reading::Error(MetricFault { ends_run: true, ..fault });
        }
        MetricReply::Broken(why) => return failed(why.clone()),
        MetricReply::Metadata(_) | MetricReply::Done => {
            let method = operation.method();
            return failed(format!("{method} rpc call error: the answer is no measurement"));
        }
    };
    let mut measured = Measurement::clone(measured);
    while measured.metadata.len() > METADATA_LIMIT {
        measured.metadata.pop_last();
    }
    let is_ending = matches!(operation, MetricOperation::Terminate(_));
    match RunPhase::of(&measured.phase) {
        RunPhase::Running if is_ending => {
            return failed("failed to terminate via plugin: the measurement goes on".to_owned());
        }
        RunPhase::Running => {
            measured.finished_at = None;
            let soon = Time::new(seen.now + NEXT_LOOK);
            let is_ahead = |at: &Time| seen.now < at.timestamp();
            measured.resume_at = measured.resume_at.filter(is_ahead).or(Some(soon));
        }
        RunPhase::Error => {
            measured.message = format!("failed to {verb} via plugin: {}", measured.message);
        }
        RunPhase::Successful | RunPhase::Failed | RunPhase::Inconclusive => {}
        _ => {
            let phase = &measured.phase;
            return failed(format!(
                "failed to {verb} via plugin: phase '{phase}' is not valid: expected Running, \
                 Successful, Failed, Inconclusive or Error"
            ));
        }
    }
    Reading::Measured(Box::new(measured))
}
