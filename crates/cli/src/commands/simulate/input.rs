//! What is simulated? Manifests to a first deploy and an update of it.

use std::path::PathBuf;

use anyhow::bail;
use gradus_api::names::{self, annotation, label};
use gradus_lab::tryout::Tryout;
use serde_json::{Map, Value, json};

use super::super::lint;
use super::{Arguments, behaviour};
use crate::{near, output};
use gradus_manifest::{self as manifest, Document};

/// The tryout that the arguments ask for, and what is not as it would be in a cluster.
pub fn prepare(arguments: &Arguments) -> anyhow::Result<(Tryout, Vec<String>)> {
    let name = arguments.name.as_deref();
    let is_odd = |image: &&String| image.is_empty() || image.contains(char::is_whitespace);
    if let Some(image) = arguments.image.as_ref().filter(is_odd) {
        bail!("--image {image:?} is no image: expected one such as registry.example.com/web:1.2");
    }
    let mut notes = Vec::new();
    let mut tryout = if arguments.from.is_empty() {
        let objects = read(&arguments.filename, name, &mut notes)?;
        with_image(Tryout { objects, ..Tryout::default() }, arguments.image.as_deref(), &mut notes)
    } else {
        let old = read(&arguments.from, name, &mut notes)?;
        let new = read(&arguments.to, name, &mut Vec::new())?;
        between(old, new)?
    };
    let first = tryout.first_image().unwrap_or("image:1").to_owned();
    behaviour::add(&mut tryout, &arguments.behaviour, &first)?;
    Ok((tryout, notes))
}

/// The update to another image. Where that is the manifests' own, it is what is deployed, over one that
/// is made up.
fn with_image(mut tryout: Tryout, image: Option<&str>, notes: &mut Vec<String>) -> Tryout {
    let first = tryout.first_image().unwrap_or("image:1").to_owned();
    tryout.image = image.map_or_else(|| format!("{first}-next"), str::to_owned);
    if tryout.image == first {
        let before = format!("{first}-before");
        notes.push(format!("{first:?} is deployed over {before:?}, which is made up"));
        for object in &mut tryout.objects {
            replace_image(object, &first, &before);
        }
    }
    tryout
}

fn replace_image(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == "image" && value == old {
                    *value = json!(new);
                } else {
                    replace_image(value, old, new);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_image(item, old, new)),
        _ => {}
    }
}

/// The update from some manifests to others.
fn between(old: Vec<Value>, new: Vec<Value>) -> anyhow::Result<Tryout> {
    let is_same = |one: &Value, other: &Value| {
        one["kind"] == other["kind"] && one["metadata"]["name"] == other["metadata"]["name"]
    };
    let mut patches = Vec::new();
    let mut objects = old.clone();
    for object in &new {
        match old.iter().find(|known| is_same(known, object)) {
            None if object["kind"] == names::kind::ROLLOUT => {
                bail!("the Rollout has another name in --to; expected the same as in --from");
            }
            // What is new is there before the update needs it.
            None => objects.push(object.clone()),
            Some(known) if known != object => {
                let mut patch = difference(known, object);
                for field in ["apiVersion", "kind", "metadata"] {
                    patch[field] = object[field].clone();
                }
                patches.push(patch);
            }
            Some(_) => {}
        }
    }
    if patches.is_empty() {
        bail!("--from and --to say the same, so there is nothing to simulate");
    }
    // Whatever the Rollout needs is changed before it.
    patches.sort_by_key(|patch| patch["kind"] == names::kind::ROLLOUT);
    let of_new = Tryout { objects: new, ..Tryout::default() };
    let image = of_new.first_image().unwrap_or_default().to_owned();
    Ok(Tryout { objects, image, patches, ..Tryout::default() })
}

/// The merge patch that makes one object of another.
fn difference(old: &Value, new: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (old, new) else { return new.clone() };
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        match before.get(name) {
            Some(known) if known == value => {}
            Some(known) => drop(patch.insert(name.clone(), difference(known, value))),
            None => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

/// The manifests of these files that play a part, of one Rollout; refused ones end it.
fn read(
    paths: &[PathBuf],
    wanted: Option<&str>,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<Value>> {
    let mut documents: Vec<Document> = Vec::new();
    for source in lint::sources(paths)? {
        documents.extend(manifest::read(&source).map_err(|malformed| {
            let place = malformed.place;
            let (name, message) = (&source.name, &malformed.message);
            anyhow::anyhow!("{name}:{}:{}: {message}", place.line, place.column)
        })?);
    }
    let name = rollout_name(&documents, wanted)?;
    for scaler in documents.iter().filter(|one| is_kind(one, "HorizontalPodAutoscaler")) {
        let scaler = name_of(scaler);
        notes.push(format!(
            "HorizontalPodAutoscaler {scaler:?} is ignored: spec.replicas counts; \
             --behaviour scale=10@5m plays an autoscaler"
        ));
    }
    documents.retain(|document| match is_kind(document, names::kind::ROLLOUT) {
        true => name_of(document) == name,
        false => is_simulated(document),
    });
    let refused = lint::refused(&documents);
    if !refused.is_empty() {
        refused.iter().for_each(|finding| output::warn(finding));
        bail!("these manifests would be refused, so there is nothing to simulate");
    }
    Ok(documents.iter().map(|document| as_written(document.json())).collect())
}

fn is_kind(document: &Document, kind: &str) -> bool {
    document.text(&["kind"]) == Some(kind)
}

fn name_of(document: &Document) -> String {
    document.text(&["metadata", "name"]).unwrap_or_default().to_owned()
}

/// The Rollout that is meant.
fn rollout_name(documents: &[Document], wanted: Option<&str>) -> anyhow::Result<String> {
    let rollouts = documents.iter().filter(|one| is_kind(one, names::kind::ROLLOUT));
    let all: Vec<String> = rollouts.map(name_of).collect();
    Ok(match (wanted, all.as_slice()) {
        (_, []) => bail!("no Rollout in the manifests; expected one"),
        (Some(name), all) if all.iter().any(|known| known == name) => name.to_owned(),
        (Some(name), all) => {
            let near = near::offered(name, all);
            let hint = if near.is_empty() { "there is" } else { "did you mean" };
            let offered = if near.is_empty() { all.to_vec() } else { near };
            bail!("no Rollout {name:?} in the manifests; {hint} {}", offered.join(", "))
        }
        (None, [one]) => one.clone(),
        (None, all) => bail!("several Rollouts in the manifests; name one of {}", all.join(", ")),
    })
}

/// An object as somebody would write it: without what a cluster has added to it.
fn as_written(mut object: Value) -> Value {
    let added = [
        "resourceVersion",
        "uid",
        "creationTimestamp",
        "generation",
        "managedFields",
        "ownerReferences",
    ];
    let marks = [annotation::REVISION, annotation::MANAGED_BY];
    let without = |object: Option<&mut Value>, keys: &[&str]| {
        if let Some(fields) = object.and_then(Value::as_object_mut) {
            keys.iter().for_each(|key| drop(fields.remove(*key)));
        }
    };
    without(Some(&mut object), &["status"]);
    without(object.get_mut("metadata"), &added);
    without(object.pointer_mut("/metadata/annotations"), &marks);
    // A moment of the real time means nothing in the virtual one.
    without(object.get_mut("spec"), &["restartAt"]);
    if object["kind"] == "Service" {
        without(object.pointer_mut("/spec/selector"), &[label::POD_TEMPLATE_HASH]);
    }
    // Who opens readiness gates is not here: they count as open.
    for template in ["/spec/template/spec", "/template/spec"] {
        without(object.pointer_mut(template), &["readinessGates"]);
    }
    object
}

/// Kinds that play a part in an update; a ConfigMap beside it does not.
fn is_simulated(document: &Document) -> bool {
    let kinds = [
        "Service",
        "Ingress",
        "Deployment",
        "ReplicaSet",
        "PodTemplate",
        "AnalysisTemplate",
        "ClusterAnalysisTemplate",
    ];
    document.text(&["kind"]).is_some_and(|kind| kinds.contains(&kind))
}
