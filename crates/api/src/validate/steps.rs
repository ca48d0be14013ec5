//! Is each canary step one that can be carried out?

use std::fmt::Arguments;

use crate::decode::FieldError;
use crate::rollout::canary::{
    CanaryStrategy, ExperimentStep, HeaderMatch, SetHeaderRoute, SetMirrorRoute, StringMatch,
};
use crate::rollout::{CanaryStep, RolloutArgument};
use crate::traffic::TrafficRouting;
use crate::validate::strategy::PATH;
use crate::validate::{field, labels, missing};

const WRONG_KIND: &str = "Step must have one of the following set: experiment, setWeight, \
                          setCanaryScale, plugin or pause";
const NO_MATCH: &str =
    "StringMatch value missed, match value must have one of the following: exact, regex, prefix";
const TWO_MATCHES: &str =
    "StringMatch match value must have exactly one of the following: exact, regex, prefix";

pub(super) fn validate(strategy: &CanaryStrategy) -> Vec<FieldError> {
    let errors =
        |(index, step)| validate_step(strategy, step, format_args!("{PATH}.steps[{index}]"));
    strategy.steps.iter().enumerate().flat_map(errors).collect()
}

fn validate_step(
    strategy: &CanaryStrategy,
    step: &CanaryStep,
    path: Arguments<'_>,
) -> Vec<FieldError> {
    let routing = strategy.traffic_routing.as_deref();
    let header = step.set_header_route.as_deref();
    let mirror = step.set_mirror_route.as_deref();
    [
        kinds(step, path),
        values(strategy, step, path),
        header.map_or_else(Vec::new, |route| header_route(route, routing, path)),
        mirror.map_or_else(Vec::new, |route| mirror_route(route, routing, path)),
        routing.map_or_else(Vec::new, |routing| managed_routes(step, routing, path)),
        step.experiment.as_ref().map_or_else(Vec::new, |it| experiment(it, routing, path)),
        arguments(step, path),
    ]
    .concat()
}

fn kinds(step: &CanaryStep, path: Arguments<'_>) -> Vec<FieldError> {
    let is_experiment = step.experiment.is_some();
    let is_pause = step.pause.is_some();
    let is_weight = step.set_weight.is_some();
    let is_analysis = step.analysis.is_some();
    let exclusive = [is_experiment, is_pause, is_weight, is_analysis];
    if exclusive.iter().filter(|is_set| **is_set).count() > 1 {
        let found = format!(
            "step.Experiment: {is_experiment} step.Pause: {is_pause} step.SetWeight: {is_weight} \
             step.Analysis: {is_analysis}"
        );
        return vec![field::invalid(path, &found, WRONG_KIND)];
    }
    if *step != CanaryStep::default() {
        return Vec::new();
    }
    // Of an empty step each kind is named as missing.
    let found = "step.Experiment: true step.Pause: true step.SetWeight: true step.Analysis: true \
                 step.SetCanaryScale: true step.SetHeaderRoute: true step.SetMirrorRoutes: true \
                 step.Plugin: true";
    vec![field::invalid(path, &found, WRONG_KIND)]
}

fn values(strategy: &CanaryStrategy, step: &CanaryStep, path: Arguments<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let max = strategy.max_weight();
    errors.extend(step.set_weight.filter(|weight| !(0..=max).contains(weight)).map(|weight| {
        let detail = format!("SetWeight needs to be between 0 and {max}");
        field::invalid(format_args!("{path}.setWeight"), &weight, &detail)
    }));
    let duration = step.pause.as_ref().and_then(|pause| pause.duration.as_ref());
    let seconds = duration.map(|duration| duration.seconds().unwrap_or(-1));
    errors.extend(seconds.filter(|seconds| *seconds < 0).map(|seconds| {
        let path = format_args!("{path}.pause.duration");
        field::invalid(path, &seconds, "Duration needs to be greater than 0")
    }));
    if step.set_canary_scale.is_some() && strategy.traffic_routing.is_none() {
        let detail = "SetCanaryScale requires TrafficRouting to be set";
        errors.push(field::required(format_args!("{PATH}.trafficRouting"), detail));
    }
    errors
}

fn header_route(
    route: &SetHeaderRoute,
    routing: Option<&TrafficRouting>,
    path: Arguments<'_>,
) -> Vec<FieldError> {
    let path = format_args!("{path}.setHeaderRoute");
    let is_known = |it: &&TrafficRouting| {
        it.istio.is_some() || it.alb.is_some() || it.apisix.is_some() || !it.plugins.is_empty()
    };
    let Some(routing) = routing.filter(is_known) else {
        let detail = "SetHeaderRoute requires TrafficRouting, supports Istio and ALB and Apisix";
        return vec![field::invalid(path, route, detail)];
    };
    let errors = |(index, header): (usize, &HeaderMatch)| {
        let path = format_args!("{path}.match[{index}]");
        let value = header.header_value.as_ref();
        if routing.alb.is_some() { alb_match(value, path) } else { one_match(value, path) }
    };
    route.r#match.iter().enumerate().flat_map(errors).collect()
}

fn mirror_route(
    route: &SetMirrorRoute,
    routing: Option<&TrafficRouting>,
    path: Arguments<'_>,
) -> Vec<FieldError> {
    let path = format_args!("{path}.setMirrorRoute");
    let mut errors = Vec::new();
    let is_known = |it: &TrafficRouting| it.istio.is_some() || !it.plugins.is_empty();
    if !routing.is_some_and(is_known) {
        let detail = "SetMirrorRoute requires TrafficRouting, supports Istio and Plugins";
        errors.push(field::invalid(path, route, detail));
    }
    for (index, request) in route.r#match.iter().enumerate() {
        let path = format_args!("{path}.match[{index}]");
        for value in [&request.method, &request.path].into_iter().flatten() {
            errors.extend(one_match(Some(value), path));
        }
    }
    errors
}

fn alb_match(value: Option<&StringMatch>, path: Arguments<'_>) -> Vec<FieldError> {
    let detail = match value {
        None => NO_MATCH,
        Some(it) if it.exact.is_empty() || !it.regex.is_empty() || !it.prefix.is_empty() => {
            "SetHeaderRoute match value invalid. ALB supports 'exact' value only"
        }
        Some(_) => return Vec::new(),
    };
    vec![field::invalid(path, &value, detail)]
}

fn one_match(value: Option<&StringMatch>, path: Arguments<'_>) -> Vec<FieldError> {
    let texts = value.map(|it| [&it.exact, &it.regex, &it.prefix]);
    let set = texts.map_or(0, |texts| texts.iter().filter(|text| !text.is_empty()).count());
    match set {
        0 => vec![field::invalid(path, &value, NO_MATCH)],
        1 => Vec::new(),
        _ => vec![field::invalid(path, &value, TWO_MATCHES)],
    }
}

fn managed_routes(
    step: &CanaryStep,
    routing: &TrafficRouting,
    path: Arguments<'_>,
) -> Vec<FieldError> {
    let header = step.set_header_route.as_ref().map(|it| ("setHeaderRoute", &it.name));
    let mirror = step.set_mirror_route.as_ref().map(|it| ("setMirrorRoute", &it.name));
    let routes: Vec<(&str, &String)> = header.into_iter().chain(mirror).collect();
    if routes.is_empty() {
        return Vec::new();
    }
    if routing.managed_routes.is_empty() {
        let detail = missing("spec.strategy.canary.trafficRouting.managedRoutes");
        return vec![field::required(format_args!("{PATH}.trafficRouting.managedRoutes"), &detail)];
    }
    let is_managed = |name: &str| routing.managed_routes.iter().any(|route| route.name == name);
    let unknown = routes.iter().filter(|(_, name)| !is_managed(name));
    let detail = "Steps define a route that does not exist in \
                  spec.strategy.canary.trafficRouting.managedRoutes";
    unknown
        .map(|(kind, name)| field::invalid(format_args!("{path}.{kind}"), name, detail))
        .collect()
}

fn experiment(
    step: &ExperimentStep,
    routing: Option<&TrafficRouting>,
    path: Arguments<'_>,
) -> Vec<FieldError> {
    let detail = match routing {
        None => "Experiment template weight cannot be set unless TrafficRouting is enabled",
        Some(it)
            if it.alb.is_none()
                && it.smi.is_none()
                && it.istio.is_none()
                && it.plugins.is_empty() =>
        {
            "Experiment template weight is only available for TrafficRouting with SMI, ALB, Istio \
             and Plugins at this time"
        }
        Some(_) => return Vec::new(),
    };
    let weights = step.templates.iter().enumerate();
    let weights = weights.filter_map(|(index, template)| Some((index, template.weight?)));
    let error = |(index, weight): (usize, i32)| {
        field::invalid(format_args!("{path}.experiment.templates[{index}].weight"), &weight, detail)
    };
    weights.map(error).collect()
}

/// Arguments may be taken of the Rollout's metadata only as the downward API allows it.
fn arguments(step: &CanaryStep, path: Arguments<'_>) -> Vec<FieldError> {
    let of_experiment = step.experiment.iter().flat_map(|it| &it.analyses).flat_map(|it| &it.args);
    let of_analysis = step.analysis.iter().flat_map(|it| &it.args);
    let arguments: Vec<&RolloutArgument> = of_experiment.chain(of_analysis).collect();
    let field_path = |argument: &&RolloutArgument| {
        Some(argument.value_from.as_ref()?.field_ref.as_ref()?.field_path.clone())
    };
    let wrong = arguments.iter().filter_map(field_path);
    let wrong = wrong.filter(|path| path.starts_with("metadata") && !is_downward_path(path));
    let detail = "Analyses arguments must refer to valid object metadata supported by downwardAPI";
    let path = format_args!("{path}.analyses");
    wrong.map(|_| field::invalid(path, &arguments, detail)).collect()
}

fn is_downward_path(path: &str) -> bool {
    let subscript = path.strip_suffix("']").and_then(|path| path.split_once("['"));
    match subscript {
        Some(("metadata.annotations", key)) => labels::key_errors(&key.to_lowercase()).is_empty(),
        Some(("metadata.labels", key)) => labels::key_errors(key).is_empty(),
        Some(_) => false,
        None => {
            let known = ["annotations", "labels", "name", "namespace", "uid"];
            path.strip_prefix("metadata.").is_some_and(|field| known.contains(&field))
        }
    }
}
