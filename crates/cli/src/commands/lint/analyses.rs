//! Do the analyses that a manifest asks for get the templates and arguments they need?

use gradus_api::analysis::Argument;
use gradus_api::decode::decode;
use gradus_api::experiment::ExperimentSpec;
use gradus_api::names::{self, kind};
use gradus_engine::analysis::merge::{self, FindError, Found};
use gradus_engine::decision::Kind;
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::rollout::analyses;
use gradus_engine::world::{RolloutView, TemplateView, Templates};

use super::beside::{Beside, is, is_template};
use super::conditions;
use super::finding::Finding;
use gradus_manifest::Document;

/// The analyses of a Rollout: what the controller refuses, and what will surprise.
pub fn of_rollout(beside: Beside<'_>, view: &RolloutView) -> Vec<Finding> {
    let templates = beside.templates();
    let all = analyses::of(&view.spec.fields);
    let mut findings = Vec::new();
    for analysis in &all {
        let path = analysis.purpose.path();
        let found = match merge::find(&templates, analysis.named()) {
            Ok(found) => found,
            Err(error) => {
                findings.extend(missing(beside, &error, &format!("{path}.templates")));
                continue;
            }
        };
        if let Some(text) = analyses::fault(view, analysis, &all, &found) {
            findings.push(Finding::field_error(beside.document, &text));
        }
        let given = analysis.args.iter().map(|argument| argument.name.as_str());
        findings.extend(unknown(beside.document, &found, given, &path));
    }
    let steps = view.spec.fields.strategy.canary.iter().flat_map(|canary| &canary.steps);
    for (at, step) in steps.enumerate() {
        for (of, analysis) in step.experiment.iter().flat_map(|one| &one.analyses).enumerate() {
            let path = format!("spec.strategy.canary.steps[{at}].experiment.analyses[{of}]");
            let named = (analysis.template_name.as_str(), analysis.cluster_scope == Some(true));
            // Whatever a Rollout gives has a value when the Experiment is made.
            let given = analysis.args.iter().map(|argument| Argument {
                name: argument.name.clone(),
                value: Some(String::new()),
                value_from: None,
            });
            findings.extend(dry_run(beside, &templates, named, &given.collect::<Vec<_>>(), &path));
        }
    }
    findings
}

/// The analyses of an Experiment, and the placeholders of a template.
pub fn of_others(beside: Beside<'_>) -> Vec<Finding> {
    let document = beside.document;
    if is(document, names::GROUP, kind::EXPERIMENT) {
        let (spec, _) = decode::<ExperimentSpec>(&document.json()["spec"]);
        let templates = beside.templates();
        let each = spec.analyses.iter().enumerate().flat_map(|(at, analysis)| {
            let named = (analysis.template_name.as_str(), analysis.cluster_scope);
            dry_run(beside, &templates, named, &analysis.args, &format!("spec.analyses[{at}]"))
        });
        return each.collect();
    }
    let frame = serde_json::from_value::<Frame>(document.json()).ok();
    let template = frame.filter(|_| is_template(document)).map(|frame| TemplateView::read(&frame));
    let unknown = template.and_then(|template| analyses::unknown_placeholder(&template));
    let message = unknown.map(|unknown| format!("{unknown}: it is none of spec.args"));
    let unknown = message.map(|message| Finding::warning(document, "spec.metrics", message));
    unknown.into_iter().chain(conditions::check(document)).collect()
}

/// One analysis of an Experiment: the run is made without creating it.
fn dry_run(
    beside: Beside<'_>,
    templates: &Templates,
    named: (&str, bool),
    given: &[Argument],
    path: &str,
) -> Vec<Finding> {
    let found = match merge::find(templates, [named]) {
        Ok(found) => found,
        Err(error) => {
            let path = format!("{path}.templateName");
            return missing(beside, &error, &path).into_iter().collect();
        }
    };
    let made = merge::flatten(found.all().map(|(_, template)| template))
        .and_then(|flat| flat.with_arguments(given));
    let wrong = made.err().map(|error| Finding::error(beside.document, path, error.to_string()));
    let names = given.iter().map(|argument| argument.name.as_str());
    wrong.into_iter().chain(unknown(beside.document, &found, names, path)).collect()
}

fn missing(beside: Beside<'_>, error: &FindError, path: &str) -> Option<Finding> {
    let FindError::Absent { is_cluster, name } = error else { return None };
    let kind: &Kind =
        if *is_cluster { &kinds::CLUSTER_ANALYSIS_TEMPLATE } else { &kinds::ANALYSIS_TEMPLATE };
    beside.missing(kind, name, path)
}

/// Arguments that no template takes: their values are silently dropped.
fn unknown<'a>(
    document: &Document,
    found: &Found<'_>,
    given: impl Iterator<Item = &'a str>,
    path: &str,
) -> Vec<Finding> {
    let declared = || found.all().flat_map(|(_, template)| &template.fields.args);
    let unknown = given.enumerate().filter(|(_, name)| !declared().any(|one| one.name == **name));
    let told = unknown.map(|(at, name)| {
        let known: Vec<&str> = declared().map(|one| one.name.as_str()).collect();
        let known = match known.as_slice() {
            [] => "it takes none".to_owned(),
            known => format!("it takes {}", known.join(", ")),
        };
        let message = format!("the template has no argument {name:?}, so it is dropped; {known}");
        Finding::warning(document, &format!("{path}.args[{at}].name"), message)
    });
    told.collect()
}
