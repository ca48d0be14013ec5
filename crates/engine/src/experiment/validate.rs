//! Can an Experiment be carried out as it is written?

use std::collections::BTreeSet;

use gradus_api::values::parse_go_duration;

use super::view::ExperimentView;

/// What is wrong with a spec, if anything is.
pub(super) fn problem(experiment: &ExperimentView) -> Option<String> {
    let (name, spec) = (&experiment.name, &experiment.spec);
    let deadline = spec.progress_deadline_seconds_or_default();
    let mut names = BTreeSet::new();
    for (index, template) in spec.templates.iter().enumerate() {
        let Some(selector) = &template.selector else {
            return Some(format!("Rollout has missing field '.Spec.Templates[{index}].Selector'"));
        };
        if selector.match_labels.is_empty() && selector.match_expressions.is_empty() {
            return Some(format!(
                "This experiment is selecting all pods at index {index}. A non-empty selector is \
                 required."
            ));
        }
        if template.min_ready_seconds > deadline {
            return Some(format!(
                "MinReadySeconds cannot be longer than ProgressDeadlineSeconds. Check template \
                 index {index}"
            ));
        }
        if template.name.is_empty() {
            return Some(format!("Experiment {name} has empty template name at index {index}"));
        }
        if !names.insert(&template.name) {
            let repeated = &template.name;
            return Some(format!(
                "Experiment {name} has repeated template name '{repeated}' in templates"
            ));
        }
    }
    if spec.duration.is_empty() {
        return None;
    }
    let error = parse_go_duration(&spec.duration).err()?;
    Some(format!("Experiment {name} has an invalid spec.duration: {error}"))
}
