//! Does a document have the fields of its kind, and nothing else?

use std::sync::LazyLock;

use gradus_api::{crd, names};
use gradus_simkube::review;
use gradus_simkube::schema::{Cause, Schema};
use serde_json::{Value, json};

use super::finding::{Finding, Known, SCHEMA, is_within};
use super::kinds;
use gradus_manifest::{Content, Document, Node};

/// Kinds of Kubernetes that a Rollout names, with their groups.
const BUILT_IN: [(&str, &str); 3] =
    [("", "Service"), ("networking.k8s.io", "Ingress"), ("policy", "PodDisruptionBudget")];

/// A kind that is known here, by group and kind.
struct KnownKind {
    group: String,
    kind: String,
    shape: Shape,
}

/// A schema, as it is written and as it is used.
pub struct Shape {
    written: Value,
    compiled: Schema,
}

impl Shape {
    /// A schema of ours or of Kubernetes.
    pub fn new(written: Value) -> Self {
        let compiled = Schema::compile(&written).expect("our own schemas are golden-tested");
        Shape { written, compiled }
    }

    /// The shape of a built-in kind.
    pub fn built_in(kind: &str) -> Self {
        Self::new(review::schema(kind).expect("every kind named here is built in"))
    }

    /// The fields that the shape does not have, each with what it has instead.
    pub fn unknown_fields(&self, object: &Value) -> Vec<(String, Known)> {
        let unknown = self.compiled.unknown_fields(object).into_iter();
        let known = |path: &str| Known {
            names: self.names_beside(path),
            places: self.places_of(path, object),
        };
        unknown.map(|path| (path.clone(), known(&path))).collect()
    }

    /// What is wrong with the values of an object; null means that a field is not there.
    pub fn faults(&self, object: &Value) -> Vec<Cause> {
        let causes = self.compiled.validate(&without_nulls(object), None);
        // The API server adds a word about checks that it left out; it is about no field.
        causes.into_iter().filter(|cause| cause.field != "<nil>").collect()
    }

    /// The names that a field may have at the place of a path.
    fn names_beside(&self, path: &str) -> Vec<String> {
        let around = path.rsplit_once('.').map_or("", |(around, _)| around);
        names_in(self.part(around)).map(str::to_owned).collect()
    }

    /// Where a field of the same name may stand: inside a field beside it, or in what it stands in.
    fn places_of(&self, path: &str, object: &Value) -> Vec<String> {
        let (around, field) = path.rsplit_once('.').unwrap_or_default();
        let field = if field.is_empty() { path } else { field };
        if ["", "spec"].contains(&around) && OF_METADATA.contains(&field) {
            return vec!["metadata".to_owned()];
        }
        if around.is_empty() || EVERYWHERE.contains(&field) {
            return Vec::new();
        }
        let mut found = Vec::new();
        below(self.part(around), around, field, DEEPEST, &mut found);
        let mut above = around;
        while let Some((outer, _)) = above.rsplit_once('.').filter(|_| found.is_empty()) {
            let has = |name: &str| self.part(name)["properties"][field].is_object();
            found.extend([outer].into_iter().filter(|outer| has(outer)).map(str::to_owned));
            if found.is_empty() {
                // In what stands beside it: a field of blueGreen in canary.
                below(self.part(outer), outer, field, 1, &mut found);
            }
            above = outer;
        }
        likely(found, around, object)
    }

    /// The schema of what stands at a path.
    fn part(&self, path: &str) -> &Value {
        let mut schema = &self.written;
        for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
            schema = match step.ends_with(']') {
                true => &schema["items"],
                false if schema["properties"][step].is_object() => &schema["properties"][step],
                false => &schema["additionalProperties"],
            };
        }
        schema
    }
}

/// Of the places that a field can have, those that can be meant.
fn likely(mut found: Vec<String>, around: &str, object: &Value) -> Vec<String> {
    let depth = |path: &str| path.split('.').count();
    // What lies deeper is meant where it is written.
    found.retain(|place| depth(place) <= depth(around) + 1 || is_there(object, place));
    if found.len() > 1 && found.iter().any(|place| is_there(object, place)) {
        found.retain(|place| is_there(object, place));
    }
    if let Some(main) = found.iter().find(|place| place.ends_with(".containers[0]")).cloned() {
        return vec![main];
    }
    // Those that are found here and there say nothing.
    if found.len() > 2 { Vec::new() } else { found }
}

/// Is there a field at this path, whatever its value?
fn is_there(object: &Value, path: &str) -> bool {
    let steps = path.split(['.', '[']).filter(|step| !step.is_empty());
    let mut value = Some(object);
    for step in steps {
        value = value.and_then(|value| match step.strip_suffix(']') {
            Some(index) => value.get(index.parse::<usize>().ok()?),
            None => value.get(step),
        });
    }
    value.is_some()
}

/// Fields of the metadata of every object.
const OF_METADATA: [&str; 5] = ["annotations", "generateName", "labels", "name", "namespace"];

/// Names that many things have: they say nothing about where they belong.
const EVERYWHERE: [&str; 5] = ["kind", "labels", "name", "type", "value"];

/// How many fields deep a misplaced one is looked for.
const DEEPEST: usize = 2;

fn names_in(schema: &Value) -> impl Iterator<Item = &str> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str())
}

/// The places below this one that have a field of this name, the nearest alone.
fn below(schema: &Value, path: &str, field: &str, depth: usize, found: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    let start = found.len();
    for name in names_in(schema) {
        let inner = &schema["properties"][name];
        let (inner, index) = match inner["items"].is_object() {
            true => (&inner["items"], "[0]"),
            false => (inner, ""),
        };
        if inner["properties"][field].is_object() {
            found.push(format!("{path}.{name}{index}"));
        }
    }
    if found.len() > start {
        return;
    }
    for name in names_in(schema) {
        let inner = &schema["properties"][name];
        below(inner, &format!("{path}.{name}"), field, depth - 1, found);
    }
}

static KINDS: LazyLock<Vec<KnownKind>> = LazyLock::new(|| {
    let ours = crd::crds().into_iter().map(|(_, definition)| {
        let spec = &definition["spec"];
        KnownKind {
            group: names::GROUP.to_owned(),
            kind: spec["names"]["kind"].as_str().unwrap_or_default().to_owned(),
            shape: Shape::new(spec["versions"][0]["schema"]["openAPIV3Schema"].clone()),
        }
    });
    let others = BUILT_IN.map(|(group, kind)| KnownKind {
        group: group.to_owned(),
        kind: kind.to_owned(),
        shape: Shape::built_in(kind),
    });
    ours.chain(others).collect()
});

/// The metadata of any object, as if it were all it had.
static METADATA: LazyLock<Shape> = LazyLock::new(|| {
    let metadata = review::schema("ObjectMeta").expect("ObjectMeta is built in");
    let properties = json!({ "about": metadata });
    Shape::new(json!({ "type": "object", "properties": properties }))
});

/// Everything by which a document departs from the schema of its kind. Kinds that are not known
/// here are taken as they are.
pub fn check(document: &Document) -> Vec<Finding> {
    let Some(kind) = document.text(&["kind"]) else {
        let message = "a manifest needs a kind".to_owned();
        return vec![Finding::undecodable(document, "", message)];
    };
    let mut findings = Vec::new();
    repeated(document, &document.root, "", &mut findings);
    let version = document.text(&["apiVersion"]).unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let known = KINDS.iter().find(|known| known.group == group && known.kind == kind);
    let Some(known) = known else {
        findings.extend(kinds::slip(document, version, kind, &ours()));
        return findings;
    };
    if group == names::GROUP && version != names::API_VERSION {
        findings.push(kinds::wrong(document, names::API_VERSION, kind));
    } else if group != names::GROUP {
        findings.extend(kinds::of_kubernetes(document, version, kind));
    }
    let object = document.json();
    let mut causes = known.shape.faults(&object);
    for (path, instead) in known.shape.unknown_fields(&object) {
        // What has another shape has other fields.
        if !causes.iter().any(|cause| is_within(&cause.field, &path)) {
            findings.push(Finding::unknown_field(document, &path, &instead));
        }
    }
    if causes.is_empty() && group != names::GROUP {
        causes = review::faults(&object);
        // Ports are left out in sketches, and kubectl says so at once.
        causes.retain(|cause| cause.field != "spec.ports" && !cause.field.starts_with("metadata."));
    }
    for Cause { field, message, .. } in causes {
        findings.push(Finding::error(document, &field, message).about(SCHEMA));
    }
    findings.extend(metadata(document, &object));
    findings
}

/// Our own kinds.
fn ours() -> Vec<String> {
    let ours = KINDS.iter().filter(|known| known.group == names::GROUP);
    ours.map(|known| known.kind.clone()).collect()
}

/// What is wrong with the metadata: fields, types, and what names and labels may look like.
fn metadata(document: &Document, object: &Value) -> Vec<Finding> {
    let around = json!({ "about": object["metadata"] });
    let path = |field: &str| field.replacen("about", "metadata", 1);
    let mut findings = Vec::new();
    for (field, known) in METADATA.unknown_fields(&around) {
        findings.push(Finding::unknown_field(document, &path(&field), &known));
    }
    for cause in METADATA.faults(&around) {
        let message = cause.message.replace("about.", "metadata.");
        findings.push(Finding::error(document, &path(&cause.field), message));
    }
    if !findings.is_empty() {
        return findings;
    }
    let has = |field: &str| object["metadata"][field].as_str().is_some_and(|name| !name.is_empty());
    if !has("name") && !has("generateName") {
        let message = "Required value: name or generateName is required".to_owned();
        return vec![Finding::error(document, "metadata.name", message)];
    }
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !namespace.is_empty() {
        let wrong = review::label_faults(namespace).into_iter();
        let wrong = wrong.map(|why| format!("Invalid value: {namespace:?}: {why}"));
        let wrong = wrong.map(|text| Finding::error(document, "metadata.namespace", text));
        findings.extend(wrong);
    }
    let named = if has("name") { object["metadata"]["name"].clone() } else { json!("any") };
    // What holds for names and labels holds for every kind; a Service's name is a host name.
    let kind = if object["kind"] == "Service" { "Service" } else { "ConfigMap" };
    let mut like = json!({ "apiVersion": "v1", "kind": kind, "metadata": object["metadata"] });
    if let Some(metadata) = like["metadata"].as_object_mut() {
        metadata.remove("finalizers");
        metadata.insert("name".to_owned(), named);
    }
    let causes = review::faults(&like).into_iter();
    let causes = causes.filter(|cause| cause.field.starts_with("metadata."));
    findings.extend(causes.map(|cause| Finding::error(document, &cause.field, cause.message)));
    findings
}

/// The same value without nulls, as a server reads it.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Keys that stand twice in one object: only the last counts, and `kubectl create` refuses them.
fn repeated(document: &Document, node: &Node, path: &str, found: &mut Vec<Finding>) {
    match &node.content {
        Content::Scalar(_) => {}
        Content::List(items) => {
            for (at, item) in items.iter().enumerate() {
                repeated(document, item, &format!("{path}[{at}]"), found);
            }
        }
        Content::Object(entries) => {
            let is_second = |name: &str| {
                path.is_empty() && entries.iter().any(|one| one.key == name && one.is_repeated)
            };
            if is_second("apiVersion") && is_second("kind") {
                let message = "a second manifest begins here: --- is missing before it".to_owned();
                found.push(Finding::error(document, "apiVersion", message).about("repeated-key"));
                return;
            }
            for entry in entries {
                let dot = if path.is_empty() { "" } else { "." };
                let below = format!("{path}{dot}{}", entry.key);
                if entry.is_repeated {
                    let message = "the key stands twice; only the last one counts".to_owned();
                    let finding = Finding::warning(document, &below, message);
                    found.push(finding.about("repeated-key"));
                }
                repeated(document, &entry.value, &below, found);
            }
        }
    }
}
