//! What will surprise whoever applies a Rollout that is accepted?

use gradus_api::rollout::{CanaryStep, CanaryStrategy, RolloutSpec, StepKind};
use gradus_engine::rollout::{scale, supported};
use serde_json::Value;

use super::finding::Finding;
use super::words;
use gradus_manifest::Document;

/// What advice is about, by its name for tools.
pub const RULE: &str = "advice";

/// Everything that is worth a word, in the order of the manifest.
pub fn of(document: &Document, spec: &RolloutSpec) -> Vec<Finding> {
    let found = all(document, spec).into_iter();
    found.map(|finding| finding.about(RULE)).collect()
}

fn all(document: &Document, spec: &RolloutSpec) -> Vec<Finding> {
    let mut found: Vec<Finding> = supported::first_unsupported(spec)
        .map(|fault| Finding::warning(document, &fault.path, fault.message))
        .into_iter()
        .collect();
    if let Some(canary) = &spec.strategy.canary {
        found.extend(unreachable_steps(document, canary));
        found.extend(empty_parts(document));
        found.extend(more_than_all(document));
        found.extend(two_sizes(document));
        found.extend(peak(document, spec, canary));
    }
    found.extend(deadline(document, spec));
    found
}

/// Steps behind one that never ends by itself and that no pause explains.
fn unreachable_steps(document: &Document, canary: &CanaryStrategy) -> Option<Finding> {
    let steps = &canary.steps;
    let at = steps.iter().position(|step| never_ends(step).is_some())?;
    let why = never_ends(&steps[at])?;
    let path = format!("spec.strategy.canary.steps[{at}]");
    let behind = steps.len() - at - 1;
    let rest = match behind {
        0 => "the update never completes".to_owned(),
        1 => "the step behind it is never reached".to_owned(),
        _ => format!("the {behind} steps behind it are never reached"),
    };
    Some(Finding::warning(document, &path, format!("{why}: {rest} unless somebody promotes")))
}

/// Percentages above 100, which mean all pods.
fn more_than_all(document: &Document) -> Option<Finding> {
    let path = "spec.strategy.canary.maxUnavailable";
    let value = words::at(&document.json(), path);
    let percentage = value.as_str()?.strip_suffix('%')?.parse::<i64>().ok()?;
    let message = format!("{percentage}% is more than all pods, so none need be available");
    (percentage > 100).then(|| Finding::warning(document, path, message))
}

/// Steps that give the canary two sizes, or none.
fn two_sizes(document: &Document) -> Vec<Finding> {
    let steps = words::at(&document.json(), "spec.strategy.canary.steps");
    let steps = steps.as_array().cloned().unwrap_or_default().into_iter().enumerate();
    let odd = steps.filter_map(|(at, step)| {
        let scale = step["setCanaryScale"].as_object()?;
        let is_set =
            |name: &&str| scale.get(*name).is_some_and(|value| !value.is_null() && *value != false);
        let set: Vec<&str> =
            ["replicas", "weight", "matchTrafficWeight"].into_iter().filter(is_set).collect();
        let message = match set.as_slice() {
            [] => "it changes nothing: expected replicas, weight or matchTrafficWeight".to_owned(),
            [_] => return None,
            several => format!("one of {} decides: write one of them", several.join(" and ")),
        };
        let path = format!("spec.strategy.canary.steps[{at}].setCanaryScale");
        Some(Finding::warning(document, &path, message))
    });
    odd.collect()
}

/// Parts that are written down and hold nothing.
fn empty_parts(document: &Document) -> Vec<Finding> {
    let canary = document.json()["spec"]["strategy"]["canary"].clone();
    let is_empty = |value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(Value::is_null),
        Value::Null => true,
        _ => false,
    };
    let parts = [
        ("steps", "there are no steps: the update goes on to its end without a stop"),
        ("trafficRouting", "no router is named: the traffic is split by the number of pods"),
    ];
    let written = parts.into_iter().filter(|(name, _)| canary.get(name).is_some_and(is_empty));
    let warning = |(name, why): (&str, &str)| {
        Finding::warning(document, &format!("spec.strategy.canary.{name}"), why.to_owned())
    };
    written.map(warning).collect()
}

fn never_ends(step: &CanaryStep) -> Option<&'static str> {
    match step.kind() {
        StepKind::Analysis(analysis) if analysis.templates.is_empty() => {
            Some("an analysis without templates never ends")
        }
        StepKind::Experiment(experiment) => {
            let is_judged =
                experiment.analyses.iter().any(|analysis| analysis.required_for_completion);
            (experiment.duration.is_empty() && !is_judged)
                .then_some("an experiment without duration and required analysis never ends")
        }
        _ => None,
    }
}

/// More pods at once than replicas and surge let expect.
fn peak(document: &Document, spec: &RolloutSpec, canary: &CanaryStrategy) -> Option<Finding> {
    let is_routed = canary.traffic_routing.is_some();
    // Who set no maxSurge expects no limit of it.
    canary.max_surge.as_ref()?;
    let replicas = spec.replicas_or_default();
    let (surge, _) = limits(replicas, canary);
    let max = canary.max_weight();
    let share =
        |weight: i32| (f64::from(replicas) * f64::from(weight) / f64::from(max)).ceil() as i32;
    // Pods beside the stable ones: of the canary, and of an experiment.
    let (mut canary_pods, mut most) = (0, (0, "trafficRouting".to_owned()));
    for (at, step) in canary.steps.iter().enumerate() {
        let mut pods = 0;
        match step.kind() {
            StepKind::SetWeight(weight) if is_routed => canary_pods = share(weight),
            StepKind::SetCanaryScale(scale) if is_routed => {
                canary_pods = scale.replicas.or(scale.weight.map(share)).unwrap_or(canary_pods);
            }
            StepKind::Experiment(experiment) => {
                let counts = experiment.templates.iter().map(|one| one.replicas.unwrap_or(1));
                pods = counts.sum();
            }
            _ => {}
        }
        if pods + canary_pods > most.0 {
            most = (pods + canary_pods, format!("steps[{at}]"));
        }
    }
    // At the end the new revision has all its pods before the stable one loses one.
    if is_routed && !canary.dynamic_stable_scale && replicas > most.0 {
        most = (replicas, "trafficRouting".to_owned());
    }
    let (more, field) = most;
    let total = replicas + more;
    (more > surge).then(|| {
        Finding::warning(
            document,
            &format!("spec.strategy.canary.{field}"),
            format!(
                "up to {total} pods at once for {replicas} replicas: maxSurge ({surge}) limits \
                 neither a revision that gets traffic by weight nor an experiment"
            ),
        )
    })
}

/// A progress deadline that passes before a pod, or all waves of pods, can be there.
fn deadline(document: &Document, spec: &RolloutSpec) -> Option<Finding> {
    let allowed = i64::from(spec.progress_deadline_seconds_or_default());
    let needed = i64::from(spec.min_ready_seconds) + start_up(&spec.template);
    let path = "spec.progressDeadlineSeconds";
    if needed >= allowed {
        return Some(Finding::warning(
            document,
            path,
            format!(
                "{allowed} s pass before a pod can be available: it needs {needed} s \
             (minReadySeconds, initialDelaySeconds and postStart)"
            ),
        ));
    }
    let canary = spec.strategy.canary.as_ref().filter(|canary| canary.traffic_routing.is_none())?;
    let replicas = spec.replicas_or_default();
    let (surge, unavailable) = limits(replicas, canary);
    let wave = (surge + unavailable).max(1);
    let waves = i64::from((replicas + wave - 1) / wave);
    (waves * needed > allowed).then(|| Finding::warning(document, path, format!(
        "{waves} waves of at most {wave} pods of {needed} s each take {} s, longer than the \
         {allowed} s allowed without progress: one slow wave and the update is given up; raise it, \
         or maxSurge",
        waves * needed
    )))
}

fn limits(replicas: i32, canary: &CanaryStrategy) -> (i32, i32) {
    scale::resolve_limits(
        replicas,
        &canary.max_surge_or_default(),
        &canary.max_unavailable_or_default(),
    )
}

/// Seconds a pod cannot be ready before, whatever it does: the slowest container counts.
fn start_up(template: &Value) -> i64 {
    let containers = template["spec"]["containers"].as_array().into_iter().flatten();
    let seconds = |container: &Value| {
        let delay = |probe: &str| container[probe]["initialDelaySeconds"].as_i64().unwrap_or(0);
        let sleep = container["lifecycle"]["postStart"]["sleep"]["seconds"].as_i64().unwrap_or(0);
        let startup = delay("startupProbe");
        sleep + startup.max(delay("readinessProbe"))
    };
    containers.map(seconds).max().unwrap_or(0)
}
