//! Do the Ingresses of the files lead to ports that their Services have?

use gradus_engine::kinds;
use serde_json::Value;

use super::beside::{Beside, is};
use super::finding::Finding;

const USE_ANNOTATION: &str = "use-annotation";

/// Backends whose Service is in the files and lacks the port.
pub fn check(beside: Beside<'_>) -> Vec<Finding> {
    if !is(beside.document, "networking.k8s.io", "Ingress") {
        return Vec::new();
    }
    let object = beside.document.json();
    let mut backends = vec![("spec.defaultBackend".to_owned(), &object["spec"]["defaultBackend"])];
    for (rule, one) in list(&object["spec"]["rules"]).iter().enumerate() {
        for (at, path) in list(&one["http"]["paths"]).iter().enumerate() {
            let place = format!("spec.rules[{rule}].http.paths[{at}].backend");
            backends.push((place, &path["backend"]));
        }
    }
    let wrong = backends.into_iter().filter_map(|(place, backend)| {
        let (field, message) = without_port(beside, &backend["service"])?;
        let path = format!("{place}.service.port.{field}");
        Some(Finding::error(beside.document, &path, message).about("port"))
    });
    wrong.collect()
}

/// The field that names a port which the Service does not have, and why.
fn without_port(beside: Beside<'_>, backend: &Value) -> Option<(&'static str, String)> {
    let name = backend["name"].as_str()?;
    let service = beside.find(&kinds::SERVICE, name)?;
    let ports = list(&service["spec"]["ports"]);
    let field = if backend["port"]["name"].is_string() { "name" } else { "number" };
    let wanted = &backend["port"][field];
    let of_port = if field == "name" { "name" } else { "port" };
    // Ports are left out in sketches.
    // The load balancer controller of AWS finds what to do in an annotation of that name.
    if wanted == USE_ANNOTATION {
        return None;
    }
    let is_sound =
        |port: &Value| port["port"].as_i64().is_some_and(|it| (1..=65_535).contains(&it));
    if wanted.is_null()
        || ports.is_empty()
        || !ports.iter().all(is_sound)
        || ports.iter().any(|one| one[of_port] == *wanted)
    {
        return None;
    }
    let known: Vec<String> = ports
        .iter()
        .map(|port| &port[of_port])
        .filter(|port| !port.is_null())
        .map(|port| port.as_str().map_or(port.to_string(), str::to_owned))
        .collect();
    let offer = match known.as_slice() {
        [] => "none of its ports has a name".to_owned(),
        known => format!("it has {}", known.join(", ")),
    };
    let what = if field == "name" { "port named" } else { "port" };
    Some((field, format!("Service {name} has no {what} {wanted}; {offer}")))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
