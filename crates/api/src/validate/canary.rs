//! Is a canary strategy sound, apart from its steps?

use crate::decode::FieldError;
use crate::rollout::CanaryStrategy;
use crate::rollout::canary::PingPong;
use crate::traffic::TrafficRouting;
use crate::validate::strategy::{PATH, anti_affinity};
use crate::validate::{field, steps};

pub(super) fn validate(strategy: &CanaryStrategy) -> Vec<FieldError> {
    [
        surge(strategy),
        equal_services(strategy),
        strategy.ping_pong.as_ref().map_or_else(Vec::new, |ping_pong| {
            validate_ping_pong(ping_pong, strategy.traffic_routing.as_deref())
        }),
        required_services(strategy),
        routing(strategy),
        steps::validate(strategy),
        anti_affinity(strategy.anti_affinity.as_ref()),
    ]
    .concat()
}

fn surge(strategy: &CanaryStrategy) -> Vec<FieldError> {
    let surge = strategy.max_surge_or_default();
    if !(surge.is_zero() && strategy.max_unavailable_or_default().is_zero()) {
        return Vec::new();
    }
    let detail = "MaxSurge and MaxUnavailable both can not be zero";
    vec![field::invalid(format_args!("{PATH}.maxSurge"), &surge, detail)]
}

fn equal_services(strategy: &CanaryStrategy) -> Vec<FieldError> {
    if strategy.stable_service.is_empty() || strategy.stable_service != strategy.canary_service {
        return Vec::new();
    }
    vec![field::invalid(
        format_args!("{PATH}.stableService"),
        &strategy.stable_service,
        "This rollout uses the same service for the stable and canary services, but two \
         different services are required.",
    )]
}

fn validate_ping_pong(ping_pong: &PingPong, routing: Option<&TrafficRouting>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_known =
        |it: &TrafficRouting| it.alb.is_some() || it.istio.is_some() || !it.plugins.is_empty();
    if let Some(routing) = routing.filter(|routing| !is_known(routing)) {
        let detail =
            "Ping-pong feature works with the ALB, Istio, and plugin-based traffic routers only";
        let path = format_args!("{PATH}.trafficRouting.alb");
        errors.push(field::invalid(path, &routing.alb, detail));
    }
    let (ping, pong) = (&ping_pong.ping_service, &ping_pong.pong_service);
    for (name, service) in [("pingService", ping), ("pongService", pong)] {
        if service.is_empty() {
            let detail = "Ping service and Pong service must to be set to use Ping-Pong feature";
            errors.push(field::invalid(format_args!("{PATH}.pingPong.{name}"), service, detail));
        }
    }
    if ping == pong {
        let detail = "This rollout uses the same service for the ping and pong services, but two \
                      different services are required.";
        errors.push(field::invalid(format_args!("{PATH}.pingPong.pingService"), ping, detail));
    }
    let alb = routing.and_then(|routing| routing.alb.as_ref());
    if let Some(alb) = alb.filter(|alb| alb.root_service.is_empty()) {
        let detail = "Root service field is required for the configuration with ALB and \
                      ping-pong feature enabled";
        let path = format_args!("{PATH}.trafficRouting.alb.rootService");
        errors.push(field::invalid(path, &alb.root_service, detail));
    }
    errors
}

fn required_services(strategy: &CanaryStrategy) -> Vec<FieldError> {
    let needs_services = strategy.traffic_routing.as_ref().is_some_and(|routing| {
        let by_host = routing.istio.as_ref().is_some_and(|it| it.destination_rule.is_none());
        ((routing.alb.is_some() || by_host) && strategy.ping_pong.is_none())
            || routing.smi.is_some()
            || routing.apisix.is_some()
            || routing.ambassador.is_some()
            || routing.nginx.is_some()
            || routing.app_mesh.is_some()
            || routing.traefik.is_some()
    });
    let services =
        [("stableService", &strategy.stable_service), ("canaryService", &strategy.canary_service)];
    let missing = services.iter().filter(|(_, name)| needs_services && name.is_empty());
    let detail = "Canary service and Stable service must to be set to use Traffic Routing";
    missing
        .map(|(field, name)| field::invalid(format_args!("{PATH}.{field}"), name, detail))
        .collect()
}

fn routing(strategy: &CanaryStrategy) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let delay = strategy.scale_down_delay_seconds;
    let dynamic = strategy.dynamic_stable_scale;
    let dynamic_path = format_args!("{PATH}.dynamicStableScale");
    let Some(routing) = &strategy.traffic_routing else {
        errors.extend(delay.map(|delay| {
            let detail = "Canary scaleDownDelaySeconds can only be used with traffic routing";
            field::invalid(format_args!("{PATH}.scaleDownDelaySeconds"), &delay, detail)
        }));
        if dynamic {
            let detail = "Canary dynamicStableScale can only be used with traffic routing";
            errors.push(field::invalid(dynamic_path, &dynamic, detail));
        }
        return errors;
    };
    if dynamic && delay.is_some() {
        let detail = "Canary dynamicStableScale cannot be used with scaleDownDelaySeconds";
        errors.push(field::invalid(dynamic_path, &dynamic, detail));
    }
    let knows_weight = routing.nginx.is_some() || !routing.plugins.is_empty();
    errors.extend(routing.max_traffic_weight.filter(|_| !knows_weight).map(|weight| {
        let detail =
            "Canary maxTrafficWeight in traffic routing only supported in Nginx and Plugins";
        field::invalid(format_args!("{PATH}.trafficRouting.maxTrafficWeight"), &weight, detail)
    }));
    // Nothing can be split into parts of nothing.
    errors.extend(routing.max_traffic_weight.filter(|weight| *weight <= 0).map(|weight| {
        let detail = "Canary maxTrafficWeight must be greater than 0";
        field::invalid(format_args!("{PATH}.trafficRouting.maxTrafficWeight"), &weight, detail)
    }));
    errors
}
