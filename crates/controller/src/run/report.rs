//! What the loop reports to those who run it: Events on their way, held objects, alarms, and what a
//! dry run would do.

use gradus_engine::ask::{Class, Question};
use gradus_engine::decision::{Event, Frees};
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::Loop;
use super::beside::UnmadeWrite;
use crate::act::Job;
use crate::shell::{Alarm, HoldChange, Inquiry, InterlockMode, Outgoing};
use crate::telemetry::Metrics;
use crate::watched::{Key, Measured, Meter, Standing};

/// Hands Events to the poster; a controller that may not write logs them instead.
#[derive(Clone)]
pub(super) struct Voice {
    pub(super) events: mpsc::UnboundedSender<Outgoing>,
    pub(super) metrics: Metrics,
    pub(super) dry_run: bool,
}

impl Voice {
    pub(super) fn tell(&self, outgoing: Outgoing, standing: &Standing, meter: Meter) {
        let Event { about, kind, reason, message, .. } = &outgoing.event;
        if self.dry_run {
            tracing::info!(%about, "dry run: would emit event {reason}: {message}");
            return;
        }
        let Standing { rollout, revision, step, weight } = standing;
        tracing::info!(
            kind = %about.kind.name, namespace = %about.namespace, name = %about.name,
            rollout = rollout.as_deref(), revision, step, weight, %reason, detail = message,
            "event",
        );
        let kind = crate::events::kind_name(*kind);
        meter(&self.metrics, &Key::of(about), Measured::Event(kind, reason));
        if self.events.send(outgoing).is_err() {
            tracing::error!("the Event poster has ended; Events are lost");
        }
    }
}

/// What was decided, before it is done.
pub(super) fn say_decision(job: &Job) {
    let Job { key, head, changes, status, events, wake_at, .. } = job;
    let changes: Vec<&str> = changes.iter().map(|change| &*change.id.0).collect();
    let events: Vec<&str> = events.iter().map(|event| &*event.reason).collect();
    let status = status.as_ref().map(|status| status.patch.to_string());
    let Standing { rollout, revision, step, weight } = &job.standing;
    tracing::debug!(
        kind = %head.object.kind.name, namespace = %key.namespace, name = %key.name,
        rollout = rollout.as_deref(), revision, step, weight,
        changes = changes.join(", "), status, events = events.join(", "),
        wake_at = wake_at.map(tracing::field::display), "decided",
    );
}

/// What would be done, in the order in which it would be.
pub(super) fn say_job(job: &Job) {
    let writes = job.changes.iter().map(|change| format!("write {}", change.id.0));
    let status = job.status.iter().map(|status| format!("patch status {}", status.patch));
    let events =
        job.events.iter().map(|event| format!("emit event {}: {}", event.reason, event.message));
    for one in writes.chain(status).chain(events) {
        tracing::info!(key = %job.key, "dry run: would {one}");
    }
}

/// A question that would change something outside.
pub(super) fn say_inquiry(inquiry: &Inquiry) {
    let what = match &inquiry.question {
        Question::Plugin(call) => format!("call plugin {}", call.name),
        Question::MetricPlugin(call) => format!("call plugin {}", call.name),
        Question::RouterPlugin(call) => format!("call plugin {}", call.name),
        Question::Http(request) => format!("send {} {}", request.method.text(), request.url),
        other => format!("ask {other:?}"),
    };
    tracing::info!(key = %inquiry.key, "dry run: would {what}");
}

/// A guard holds an object up, or no longer does.
fn say_hold(key: &Key, standing: &Standing, change: &HoldChange) {
    let Standing { rollout, revision, step, weight } = standing;
    let rollout = rollout.as_deref();
    match change {
        HoldChange::Held { guard, detail } => tracing::info!(
            namespace = %key.namespace, name = %key.name, rollout, revision, step, weight, guard,
            detail, "is held",
        ),
        HoldChange::Freed { guard, seconds } => tracing::info!(
            namespace = %key.namespace, name = %key.name, rollout, revision, step, weight, guard,
            seconds, "is free",
        ),
    }
}

impl Loop {
    /// Kinds that a controller of some namespaces does not read.
    pub(super) fn say_unread(&self) {
        let namespaces = &self.settings.scope.namespaces;
        let word = if namespaces.len() == 1 { "namespace" } else { "namespaces" };
        let namespaces = namespaces.join(", ");
        for kind in self.engines.iter().flat_map(|engine| engine.reconciler.unread()) {
            let plural = &kind.plural;
            tracing::info!("{plural} are not read: only objects of {word} {namespaces} are");
        }
    }

    pub(super) fn look_at_held(&mut self, now: Timestamp) {
        if !self.leads {
            return;
        }
        for engine in &mut self.engines {
            let (reconciler, metrics) = (&mut engine.reconciler, &self.metrics);
            let (all_held, meter) = (reconciler.held(now), reconciler.meter());
            let keys = all_held.iter().map(|(key, _)| key.clone()).collect();
            let shown = std::mem::replace(&mut engine.shown_held, keys);
            for freed in shown.difference(&engine.shown_held) {
                meter(metrics, freed, Measured::Held(None));
            }
            for (key, held) in all_held {
                let figures = (held.guard, held.seconds as f64);
                meter(metrics, &key, Measured::Held(Some(figures)));
                if !held.is_news {
                    continue;
                }
                let why = gradus_engine::explain::sentence(&held.why);
                let command = match &held.frees {
                    Frees::Command(command) => Some(reconciler.command_line(command, &key)),
                    _ => None,
                };
                tracing::warn!(
                    namespace = %key.namespace, name = %key.name, guard = held.guard,
                    seconds = held.seconds, detail = why, run = command, "held",
                );
            }
        }
    }

    /// What a dry run would have done and nobody else has.
    pub(super) fn say_differences(&mut self) {
        let now = self.clock.now();
        let Loop { engines, beside, .. } = self;
        let still = |wish: &UnmadeWrite| engines[wish.at].reconciler.inspect(&wish.key, now);
        for wish in beside.take_due(now, still) {
            let (key, would) = (&wish.key, wish.words());
            tracing::warn!(
                namespace = %key.namespace, name = %key.name, would,
                "dry run: differs: nobody has done this within 10 s",
            );
        }
    }

    pub(super) fn say_alarms(&mut self) {
        let alarms: Vec<Alarm> =
            self.engines.iter_mut().flat_map(|engine| engine.reconciler.take_alarms()).collect();
        for alarm in alarms {
            self.say_alarm(alarm);
        }
    }

    fn say_alarm(&self, alarm: Alarm) {
        match alarm {
            Alarm::Panicked { key, doing, message } => {
                tracing::error!(
                    namespace = %key.namespace, name = %key.name, %doing, detail = message,
                    "panicked; other objects are not affected",
                );
            }
            Alarm::Interlock { key, invariant, message, mode } => {
                self.metrics.interlock(invariant.id());
                let done = match mode {
                    InterlockMode::Enforce => "held",
                    InterlockMode::Warn => "written (--interlock=warn)",
                };
                tracing::error!(
                    namespace = %key.namespace, name = %key.name, invariant = invariant.id(), done,
                    detail = message, "a write would break an invariant",
                );
            }
            Alarm::Refused { key, change, class, message, times } => {
                self.metrics.refused(&format!("{class:?}"));
                // The first refusals are ordinary; a refusal that stays is news. Of a server that
                // is away, one tells for all.
                let is_of_server = matches!(class, Class::Unreachable | Class::Unknown);
                let is_lasting = times.is_power_of_two() && times > 1;
                if is_lasting && (!is_of_server || self.settings.outage.refuses_writes()) {
                    tracing::warn!(
                        namespace = %key.namespace, name = %key.name, %change, ?class, times,
                        detail = message, "write refused",
                    );
                } else {
                    tracing::debug!(
                        namespace = %key.namespace, name = %key.name, %change, ?class, times,
                        detail = message, "write refused",
                    );
                }
            }
            Alarm::Hold { key, standing, change } => say_hold(&key, &standing, &change),
            Alarm::Pruned { key, fields } => {
                let fields = fields.join(", ");
                tracing::warn!(
                    namespace = %key.namespace, name = %key.name, fields,
                    "the CRD on this server is older and drops status fields",
                );
            }
        }
    }
}
