//! How do plugins of steps stand, as seen from outside: what they said, since when, and what is next?

use gradus_api::names::{condition, event, phase, plugin_operation};
use gradus_api::rollout::status::StepPluginStatus;
use gradus_api::rollout::{RolloutSpec, RolloutStatus, StepKind};
use gradus_api::values::Time;

use super::PluginSummary;
use crate::rollout::next_plugin_call;

/// The calls of plugins of an update that is not through; last, one that cannot be called.
pub fn of(spec: &RolloutSpec, status: &RolloutStatus) -> Vec<PluginSummary> {
    if status.phase == phase::HEALTHY {
        return Vec::new();
    }
    let entries = &status.canary.step_plugin_statuses;
    let called = entries.iter().map(|entry| summary(entry, status));
    called.chain(uncalled(spec, status)).collect()
}

fn summary(entry: &StepPluginStatus, status: &RolloutStatus) -> PluginSummary {
    let is_awaited = entry.operation == plugin_operation::RUN && !status.abort;
    PluginSummary {
        name: entry.name.clone(),
        step: entry.index.saturating_add(1),
        operation: entry.operation.clone(),
        phase: if entry.disabled { "disabled".to_owned() } else { entry.phase.clone() },
        message: entry.message.clone(),
        since: entry.started_at.map(Time::timestamp),
        next: next_plugin_call(entry).filter(|_| is_awaited),
    }
}

/// The plugin of the current step that could not be called so far.
fn uncalled(spec: &RolloutSpec, status: &RolloutStatus) -> Option<PluginSummary> {
    let held = status.condition(condition::HELD)?;
    let index = status.current_step_index?;
    let step = spec.strategy.canary.as_ref()?.steps.get(usize::try_from(index).ok()?)?;
    let StepKind::Plugin(plugin) = step.kind() else { return None };
    let is_called = status.canary.step_plugin_statuses.iter().any(|entry| entry.index == index);
    (held.reason == event::RECONCILIATION_ERROR && !is_called).then(|| PluginSummary {
        name: plugin.name.clone(),
        step: index.saturating_add(1),
        operation: plugin_operation::RUN.to_owned(),
        phase: String::new(),
        message: held.message.clone(),
        since: Some(held.last_transition_time.timestamp()),
        next: None,
    })
}
