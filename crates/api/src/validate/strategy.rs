//! Is exactly one strategy given, and is it a sound one?

use crate::decode::FieldError;
use crate::rollout::{AntiAffinity, BlueGreenStrategy, RolloutSpec};
use crate::validate::{canary, field, missing};

/// The field paths leave out `canary` and `blueGreen`, as users know them.
pub(super) const PATH: &str = "spec.strategy";

pub(super) fn validate(spec: &RolloutSpec) -> Vec<FieldError> {
    let path = format_args!("{PATH}.strategy");
    match (&spec.strategy.blue_green, &spec.strategy.canary) {
        (None, None) => {
            let what = ".spec.strategy.canary or .spec.strategy.blueGreen";
            vec![field::required(path, &missing(what))]
        }
        (Some(_), Some(_)) => {
            let both = "blueGreen: true canary: true";
            vec![field::invalid(path, &both, "Multiple Strategies can not be listed")]
        }
        (Some(blue_green), None) => {
            validate_blue_green(blue_green, spec.revision_history_limit_or_default())
        }
        (None, Some(canary)) => canary::validate(canary),
    }
}

fn validate_blue_green(strategy: &BlueGreenStrategy, history_limit: i32) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if strategy.active_service == strategy.preview_service {
        errors.push(field::invalid(
            format_args!("{PATH}.activeService"),
            &strategy.active_service,
            "This rollout uses the same service for the active and preview services, but two \
             different services are required.",
        ));
    }
    let limit = strategy.scale_down_delay_revision_limit.filter(|limit| history_limit < *limit);
    errors.extend(limit.map(|limit| {
        field::invalid(
            format_args!("{PATH}.scaleDownDelayRevisionLimit"),
            &limit,
            "This rollout's revision history limit can not be smaller than the rollout's scale \
             down limit",
        )
    }));
    errors.extend(anti_affinity(strategy.anti_affinity.as_ref()));
    errors
}

pub(super) fn anti_affinity(anti_affinity: Option<&AntiAffinity>) -> Vec<FieldError> {
    let Some(anti_affinity) = anti_affinity else {
        return Vec::new();
    };
    let path = format_args!("{PATH}.antiAffinity");
    let preferred = &anti_affinity.preferred_during_scheduling_ignored_during_execution;
    let required = &anti_affinity.required_during_scheduling_ignored_during_execution;
    let mut errors = Vec::new();
    if preferred.is_some() == required.is_some() {
        let is_set = required.is_some();
        let found = format!(
            "antiAffinity.PreferredDuringSchedulingIgnoredDuringExecution: {is_set} \
             antiAffinity.RequiredDuringSchedulingIgnoredDuringExecution: {is_set}"
        );
        let detail = "AntiAffinity must have exactly one strategy listed";
        errors.push(field::invalid(path, &found, detail));
    }
    let wrong = preferred.as_ref().filter(|preferred| !(1..=100).contains(&preferred.weight));
    errors.extend(wrong.map(|preferred| {
        let detail = "AntiAffinity weight must be between 1-100";
        field::invalid(format_args!("{path}.weight"), &preferred.weight, detail)
    }));
    errors
}
