//! What do the arguments of an Experiment's analyses say, with what is known of the Experiment
//! filled in?

use std::collections::BTreeMap;

use gradus_api::analysis::Argument;
use gradus_api::names::annotation;
use gradus_api::values::Time;

use super::{Pass, later};

/// The arguments with their placeholders filled in; else the placeholder that names nothing.
pub(super) fn resolve(pass: &Pass<'_>, given: &[Argument]) -> Result<Vec<Argument>, String> {
    let known = known(pass);
    let filled = given.iter().map(|argument| {
        let value = argument.value.as_deref().map(|text| filled(text, &known)).transpose()?;
        Ok(Argument { value, ..argument.clone() })
    });
    filled.collect()
}

/// What placeholders may name.
fn known(pass: &Pass<'_>) -> BTreeMap<String, String> {
    let experiment = pass.experiment;
    let mut known = BTreeMap::new();
    for template in &experiment.spec.templates {
        let name = &template.name;
        let mut sets = pass.owned.sets.iter();
        let found = sets.find(|set| set.has_annotation(annotation::EXPERIMENT_TEMPLATE_NAME, name));
        if let Some(set) = found {
            known.insert(format!("templates.{name}.podTemplateHash"), set.hash.to_string());
            known.insert(format!("templates.{name}.replicaset.name"), set.name.to_string());
        }
    }
    if let Some(begun) = experiment.status.available_at {
        known.insert("experiment.availableAt".to_owned(), begun.to_string());
        if let Some(duration) = experiment.duration() {
            let end = Time::new(later(begun.timestamp(), duration));
            known.insert("experiment.finishedAt".to_owned(), end.to_string());
        }
    }
    known
}

fn filled(text: &str, known: &BTreeMap<String, String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let (tag, after) =
            after.split_once("}}").ok_or_else(|| format!("failed to resolve {{{{{after}"))?;
        let value = known.get(tag.trim());
        filled.push_str(value.ok_or_else(|| format!("failed to resolve {{{{{tag}}}}}"))?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}
