//! Do the analyses that a manifest asks for get the templates and arguments they need?

use gradus_api::analysis::Argument;
use gradus_api::decode::decode;
use gradus_api::experiment::ExperimentSpec;
use gradus_api::names::{self, kind};
use gradus_engine::analysis::merge::{self, FindError, Found};
use gradus_engine::decision::Kind;
use gradus_engine::kinds;
use gradus_engine::rollout::analyses;
use gradus_engine::world::{RolloutView, Templates};

use super::beside::{Beside, is, is_template};
use super::finding::{Finding, Severity};
use super::{conditions, experiments, metrics, schema, words};
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
        // What is wrong with a template is said where it stands.
        if found.all().any(|(_, template)| has_errors(beside, &template.name)) {
            continue;
        }
        findings.extend(repeated(
            beside.document,
            analysis.args.iter().map(|one| &*one.name),
            &path,
        ));
        if let Some(text) = analyses::fault(view, analysis, &all, &found) {
            findings.push(at_its_use(beside.document, &text, &found, &path));
            continue; // An argument that is missing may be one that is misspelt.
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

/// Is a template of this name in the files, with something wrong of its own?
fn has_errors(beside: Beside<'_>, name: &str) -> bool {
    let is_named =
        |other: &&Document| is_template(other) && other.text(&["metadata", "name"]) == Some(name);
    beside.all.iter().filter(is_named).any(|template| {
        let found = schema::check(template).into_iter().chain(metrics::check(template));
        let found = found.chain(metrics::placeholders(template)).chain(conditions::check(template));
        found.into_iter().any(|finding| finding.severity == Severity::Error)
    })
}

/// Arguments that are given twice: only one of the values is used.
fn repeated<'a>(
    document: &Document,
    given: impl Iterator<Item = &'a str>,
    path: &str,
) -> Vec<Finding> {
    let names: Vec<&str> = given.collect();
    let twice = names.iter().enumerate().filter(|(at, name)| names[..*at].contains(name));
    let told = twice.map(|(at, name)| {
        let message = format!("argument {name:?} is given twice; only one of its values is used");
        Finding::warning(document, &format!("{path}.args[{at}].name"), message)
    });
    told.collect()
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
        return each.chain(experiments::check(document)).collect();
    }
    let mut findings = metrics::check(document);
    if is_template(document) {
        findings.extend(metrics::placeholders(document));
    }
    findings.extend(conditions::check(document));
    findings
}

/// What is wrong with an analysis, at the template that it is about; what is missing, with how to
/// give it.
fn at_its_use(document: &Document, text: &str, found: &Found<'_>, path: &str) -> Finding {
    let finding = Finding::field_error(document, text).about("analysis");
    if let Some((_, field)) = finding.message.rsplit_once("unsupported fieldPath: ") {
        let args = words::at(&document.json(), &format!("{path}.args"));
        let mut args = args.as_array().into_iter().flatten();
        let at = args.position(|one| one["valueFrom"]["fieldRef"]["fieldPath"] == field);
        let message = format!(
            "unsupported fieldPath: {field}: expected one such as metadata.labels['app'], \
             metadata.name or status.podIP"
        );
        return match at {
            Some(at) => {
                let path = format!("{path}.args[{at}].valueFrom.fieldRef.fieldPath");
                Finding::error(document, &path, message).about("analysis")
            }
            None => finding,
        };
    }
    let open = finding.message.rsplit_once("args.").and_then(|(_, rest)| rest.split_once(' '));
    let Some((argument, "was not resolved")) = open else { return finding };
    let argument = argument.to_owned();
    let has = |name: &str| {
        let named = found.all().find(|(_, template)| &*template.name == name);
        named.is_some_and(|(_, it)| it.fields.args.iter().any(|one| one.name == argument))
    };
    let object = document.json();
    let templates = words::at(&object, &format!("{path}.templates"));
    let user = templates
        .as_array()
        .into_iter()
        .flatten()
        .position(|template| template["templateName"].as_str().is_some_and(has));
    let words = format!("{}; give it a value in {path}.args", finding.message);
    let place =
        user.map(|at| document.root.place_of(&format!("{path}.templates[{at}].templateName")));
    let place = place.unwrap_or(finding.place);
    finding.in_words(words).at(place)
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
    if let Err(error) = made {
        // An argument that is missing may be one that is misspelt.
        return vec![Finding::error(beside.document, path, error.to_string())];
    }
    let names = given.iter().map(|argument| argument.name.as_str());
    unknown(beside.document, &found, names, path)
}

fn missing(beside: Beside<'_>, error: &FindError, path: &str) -> Option<Finding> {
    let FindError::Absent { is_cluster, name } = error else { return None };
    if name.is_empty() {
        return None; // Its name is missing, which is said where it stands.
    }
    let other: &Kind =
        if *is_cluster { &kinds::ANALYSIS_TEMPLATE } else { &kinds::CLUSTER_ANALYSIS_TEMPLATE };
    if beside.find(other, name).is_some() {
        let way = match *is_cluster {
            true => "an AnalysisTemplate in these files: leave out clusterScope",
            false => "a ClusterAnalysisTemplate in these files: add clusterScope: true",
        };
        let message = format!("{name:?} is {way}");
        return Some(Finding::warning(beside.document, path, message));
    }
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
