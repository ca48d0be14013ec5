//! Would the API server accept the pods and Jobs of a manifest, and can their probes work?

use std::sync::LazyLock;

use gradus_api::names::{self, kind};
use gradus_simkube::review;
use gradus_simkube::schema::Cause;
use serde_json::{Value, json};

use super::beside::{is, is_template};
use super::finding::{Finding, Known, is_within};
use super::schema::Shape;
use super::words::no_quantity;
use crate::near;
use gradus_manifest::Document;

static REPLICA_SET: LazyLock<Shape> = LazyLock::new(|| Shape::built_in("ReplicaSet"));
static JOB: LazyLock<Shape> = LazyLock::new(|| Shape::built_in("Job"));

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// A part of a document that becomes pods.
struct PodPart {
    /// Where it stands.
    path: String,
    /// Where the same stands in the object that is judged.
    inside: &'static str,
    /// An object that the API server would get.
    object: Value,
}

/// Everything that is wrong with what the document makes pods of.
pub fn check(document: &Document) -> Vec<Finding> {
    parts(document).iter().flat_map(|part| of_part(document, part)).collect()
}

/// What is wrong with the pod template at this path, which a workload lends to a Rollout.
pub fn of_template(document: &Document, path: &str) -> Vec<Finding> {
    let template = document.json().pointer(&pointer(path)).cloned().unwrap_or_default();
    of_part(document, &pods(path.to_owned(), &template))
}

fn parts(document: &Document) -> Vec<PodPart> {
    let object = document.json();
    let spec = &object["spec"];
    let list =
        |value: &Value| value.as_array().cloned().unwrap_or_default().into_iter().enumerate();
    if is(document, names::GROUP, kind::ROLLOUT) {
        let template = Some(&spec["template"]).filter(|template| !template["spec"].is_null());
        return template.map(|it| pods("spec.template".to_owned(), it)).into_iter().collect();
    }
    if is(document, names::GROUP, kind::EXPERIMENT) {
        let each = list(&spec["templates"]);
        let each = each.filter(|(_, one)| !one["template"]["spec"].is_null());
        let part = |(at, one): (usize, Value)| {
            pods(format!("spec.templates[{at}].template"), &one["template"])
        };
        return each.map(part).collect();
    }
    if !is_template(document) && !is(document, names::GROUP, kind::ANALYSIS_RUN) {
        return Vec::new();
    }
    let jobs = list(&spec["metrics"]);
    let jobs = jobs.filter(|(_, metric)| metric["provider"]["job"]["spec"].is_object());
    let part = |(at, metric): (usize, Value)| PodPart {
        path: format!("spec.metrics[{at}].provider.job.spec"),
        inside: "spec",
        object: json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "job" },
            "spec": metric["provider"]["job"]["spec"] }),
    };
    jobs.map(part).collect()
}

/// The ReplicaSet that a template would be part of. Its labels are judged elsewhere.
fn pods(path: String, template: &Value) -> PodPart {
    let labels = json!({ "app": "any" });
    let mut template = template.clone();
    if let Some(fields) = template.as_object_mut() {
        fields.insert("metadata".to_owned(), json!({ "labels": labels }));
    }
    let spec = json!({ "selector": { "matchLabels": labels }, "template": template });
    let object = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": "pods" }, "spec": spec });
    PodPart { path, inside: "spec.template", object }
}

fn of_part(document: &Document, part: &PodPart) -> Vec<Finding> {
    let path = |field: &str| field.replacen(part.inside, &part.path, 1);
    let shape: &Shape = if part.object["kind"] == "Job" { &JOB } else { &REPLICA_SET };
    let mut findings = Vec::new();
    let mut causes = shape.faults(&part.object);
    for (field, known) in shape.unknown_fields(&part.object) {
        // Around the pods of others there are other fields than around those of a ReplicaSet.
        let is_like =
            |place: &&String| is_within(part.inside, place.as_str()) || part.path == part.inside;
        let places = known.places.iter().filter(is_like).map(|place| path(place)).collect();
        let known = Known { places, ..known };
        // What has another shape has other fields.
        if !causes.iter().any(|cause| is_within(&cause.field, &field)) {
            findings.push(Finding::unknown_field(document, &path(&field), &known));
        }
    }
    // Rules about values can rely on their types.
    if causes.is_empty() {
        causes = review::faults(&part.object);
    }
    for Cause { field, message, .. } in causes {
        let value = part.object.pointer(&pointer(&field)).unwrap_or(&Value::Null);
        if value.as_str().is_some_and(|text| text.contains("{{")) {
            continue; // Known when the run is made.
        }
        let finding = Finding::error(document, &path(&field), message);
        findings.push(match own_words(&field, value, &finding.message) {
            Some(words) => finding.in_words(words),
            None => finding,
        });
    }
    for (field, message) in images(&part.object).into_iter().chain(amounts(&part.object)) {
        findings.push(Finding::error(document, &path(&field), message));
    }
    let has_odd_ports = findings.iter().any(|one| one.path.contains(".ports"));
    if !has_odd_ports {
        findings.extend(probes(document, part));
    }
    findings
}

/// The containers of pods, each with its path.
fn containers(object: &Value) -> Vec<(String, Value)> {
    let spec = &object["spec"]["template"]["spec"];
    let lists = ["initContainers", "containers"].into_iter();
    let each = lists.flat_map(|list| {
        let all = spec[list].as_array().cloned().unwrap_or_default().into_iter().enumerate();
        all.map(move |(at, one)| (format!("spec.template.spec.{list}[{at}]"), one))
    });
    each.collect()
}

/// Images that nobody can pull, because there is no such name.
fn images(object: &Value) -> Vec<(String, String)> {
    let wrong = containers(object).into_iter().filter_map(|(path, container)| {
        let image = container["image"].as_str()?;
        let why = no_image(image)?;
        Some((format!("{path}.image"), format!("{image:?} is no image: {why}")))
    });
    wrong.collect()
}

/// Why a text is no name of an image. What is filled in before it is applied is known later.
fn no_image(image: &str) -> Option<&'static str> {
    if image.trim() != image || image.is_empty() || image.contains(['$', '{', '<', '%']) {
        return None; // The server says so itself, or it is a placeholder.
    }
    if image.contains(char::is_whitespace) {
        return Some("there are no blanks in it");
    }
    if image.contains("://") {
        return Some("it is written without https://");
    }
    let (name, digest) = image.split_once('@').map_or((image, None), |(n, d)| (n, Some(d)));
    if digest.is_some_and(|digest| !digest.contains(':')) {
        return Some("a digest begins with its algorithm, as in sha256:");
    }
    let (folders, last) = name.rsplit_once('/').unwrap_or(("", name));
    let (base, tag) = last.split_once(':').map_or((last, None), |(b, t)| (b, Some(t)));
    let is_tag = |tag: &str| {
        tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && tag.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Some("behind the colon stands one tag of letters, digits, . _ and -");
    }
    let is_host = |part: &str| part.contains(['.', ':']) || part == "localhost";
    let mut parts: Vec<&str> = folders.split('/').filter(|part| !part.is_empty()).collect();
    if parts.first().is_some_and(|first| is_host(first)) {
        parts.remove(0);
    }
    parts.push(base);
    let has_capitals = parts.iter().any(|part| part.contains(|c: char| c.is_ascii_uppercase()));
    has_capitals.then_some("only a tag may have capital letters")
}

/// Amounts of a container that a variable can name.
const AMOUNTS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Variables that name an amount there is not.
fn amounts(object: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (path, container) in containers(object) {
        let variables = container["env"].as_array().cloned().unwrap_or_default();
        for (at, variable) in variables.iter().enumerate() {
            let field = &variable["valueFrom"]["resourceFieldRef"]["resource"];
            let Some(name) = field.as_str() else { continue };
            if AMOUNTS.contains(&name) || name.contains(".hugepages-") || name.contains("{{") {
                continue;
            }
            let known = AMOUNTS.map(str::to_owned);
            let near = near::offered(name, &known);
            let hint = near.first().map(|near| format!("; did you mean {near}?"));
            let message = format!(
                "Unsupported value: {name:?}: expected one of {}{}",
                AMOUNTS.join(", "),
                hint.unwrap_or_default()
            );
            let field = "valueFrom.resourceFieldRef.resource";
            found.push((format!("{path}.env[{at}].{field}"), message));
        }
    }
    found
}

/// Where the server's words are a regular expression, what is wrong in plain ones.
fn own_words(field: &str, value: &Value, said: &str) -> Option<String> {
    if said.contains("must be a standard resource") {
        let name = field.rsplit('[').next().unwrap_or_default().trim_end_matches(']');
        return Some(format!(
            "{name:?} is no resource: expected cpu, memory, ephemeral-storage, or a name with its \
             domain such as example.com/gpu"
        ));
    }
    let is_amount = field.contains(".limits") || field.contains(".requests");
    let is_amount = is_amount || field.ends_with("sizeLimit") || field.ends_with("divisor");
    let text = value.as_str().filter(|_| is_amount && !said.contains("must be of type"))?;
    let is_number = text.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit());
    if is_number && text.starts_with('-') {
        return None;
    }
    Some(no_quantity(text))
}

/// Probes that name a port which their container does not have.
fn probes(document: &Document, part: &PodPart) -> Vec<Finding> {
    let containers = &part.object["spec"]["template"]["spec"]["containers"];
    let mut findings = Vec::new();
    for (at, container) in containers.as_array().into_iter().flatten().enumerate() {
        let names = port_names(container);
        for (probe, call) in
            PROBES.iter().flat_map(|one| ["httpGet", "tcpSocket"].map(|call| (one, call)))
        {
            let Some(port) = container[*probe][call]["port"].as_str() else { continue };
            if names.iter().any(|name| name == port)
                || port.parse::<u16>().is_ok()
                || port.contains("{{")
            {
                continue;
            }
            let inner = if part.inside == "spec" { "template.spec" } else { "spec" };
            let path = format!("{}.{inner}.containers[{at}].{probe}.{call}.port", part.path);
            let message =
                format!("the container has no port named {port:?}; {}", offer(port, &names));
            findings.push(Finding::error(document, &path, message).about("port"));
        }
    }
    findings
}

/// The names of a container's ports.
pub fn port_names(container: &Value) -> Vec<String> {
    let ports = container["ports"].as_array().into_iter().flatten();
    ports.filter_map(|port| port["name"].as_str()).map(str::to_owned).collect()
}

/// What can be named instead.
pub fn offer(wanted: &str, names: &[String]) -> String {
    let near = near::offered(wanted, names);
    match (near.first(), names) {
        (Some(near), _) => format!("did you mean {near}?"),
        (None, []) => "none of its ports has a name".to_owned(),
        (None, names) => format!("it has {}", names.join(", ")),
    }
}

/// `/spec/containers/0` for `spec.containers[0]`, `/limits/cpu` for `limits[cpu]`.
fn pointer(path: &str) -> String {
    let steps = path.split(['.', '[']).filter(|step| !step.is_empty());
    steps.map(|step| format!("/{}", step.trim_end_matches(']'))).collect()
}
