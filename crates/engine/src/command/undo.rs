//! Which template does an undo return to?

use gradus_api::names::annotation;
use serde_json::{Value, json};
use thiserror::Error;

use crate::template::{TemplateSide, normalized_digest, users_template};

/// What an undo comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum UndoPatch {
    /// A JSON patch of the Rollout, or of the workload it refers to.
    Patch(Value),
    /// The Rollout has that template already.
    Same,
}

/// Why there is nothing to return to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UndoError {
    /// No ReplicaSet has the revision that was asked for.
    #[error("unable to find specified revision {0} in history")]
    NoSuchRevision(i64),
    /// There is no earlier revision.
    #[error("no revision found for rollout \"{0}\"")]
    NoRevision(String),
}

/// The way back to a revision, 0 for the one before the newest. `replica_sets` are those the
/// Rollout controls.
pub fn undo(rollout: &Value, replica_sets: &[Value], to: i64) -> Result<UndoPatch, UndoError> {
    let no_revision = || {
        let name = rollout["metadata"]["name"].as_str().unwrap_or_default();
        UndoError::NoRevision(name.to_owned())
    };
    let mut known: Vec<(i64, &Value)> =
        replica_sets.iter().filter_map(|set| Some((revision(set)?, set))).collect();
    known.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let found = match to {
        ..0 => return Err(no_revision()),
        0 => known.get(1).ok_or_else(no_revision)?,
        _ => {
            let found = known.iter().find(|(number, _)| *number == to);
            found.ok_or(UndoError::NoSuchRevision(to))?
        }
    };
    let set = found.1;
    let ephemeral = set["metadata"]["annotations"][annotation::EPHEMERAL_METADATA].as_str();
    let template = &set["spec"]["template"];
    let wanted = normalized_digest(template, ephemeral, TemplateSide::Live);
    let current = normalized_digest(&rollout["spec"]["template"], None, TemplateSide::Desired);
    if rollout["spec"]["workloadRef"].is_null() && wanted == current {
        return Ok(UndoPatch::Same);
    }
    let value = users_template(template, ephemeral);
    Ok(UndoPatch::Patch(json!([{ "op": "replace", "path": "/spec/template", "value": value }])))
}

/// The revision of a ReplicaSet: 0 where it is not annotated, none where that is no number.
fn revision(set: &Value) -> Option<i64> {
    match set["metadata"]["annotations"][annotation::REVISION].as_str() {
        None => Some(0),
        Some(text) => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(image: &str) -> Value {
        json!({ "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "web", "image": image }] } })
    }

    fn set(revision: &str, image: &str) -> Value {
        let mut template = template(image);
        template["metadata"]["labels"]["rollouts-pod-template-hash"] = "abc".into();
        json!({ "metadata": { "annotations": { (annotation::REVISION): revision } },
            "spec": { "template": template } })
    }

    #[test]
    fn an_undo_returns_to_the_revision_asked_for() {
        let rollout =
            json!({ "metadata": { "name": "web" }, "spec": { "template": template("c") } });
        let sets = [set("1", "a"), set("3", "c"), set("2", "b"), set("x", "d")];
        let cases = [
            ("the one before", 0, Ok(Some("b"))),
            ("a given one", 1, Ok(Some("a"))),
            ("the one it has", 3, Ok(None)),
            ("one that is gone", 7, Err("unable to find specified revision 7 in history")),
            ("below zero", -1, Err("no revision found for rollout \"web\"")),
        ];
        for (what, to, expected) in cases {
            let found = match undo(&rollout, &sets, to) {
                Ok(UndoPatch::Same) => Ok(None),
                Ok(UndoPatch::Patch(patch)) => Ok(Some(patch[0]["value"].clone())),
                Err(error) => Err(error.to_string()),
            };
            let expected = expected.map(|image| image.map(template)).map_err(str::to_owned);
            assert_eq!(found, expected, "{what}");
        }
        assert!(undo(&rollout, &sets[..1], 0).is_err(), "there is no revision before the first");
    }

    #[test]
    fn what_the_controller_added_does_not_come_back() {
        let rollout = json!({ "spec": { "template": template("b") } });
        let mut old = set("1", "a");
        old["spec"]["template"]["metadata"]["labels"]["role"] = "stable".into();
        old["metadata"]["annotations"][annotation::EPHEMERAL_METADATA] =
            r#"{"labels":{"role":"stable"}}"#.into();
        old["spec"]["template"]["spec"]["affinity"] = json!({ "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{ "labelSelector": {
                "matchExpressions": [{ "key": "rollouts-pod-template-hash", "operator": "In",
                    "values": ["abc"] }] } }] } });
        let Ok(UndoPatch::Patch(patch)) = undo(&rollout, &[old], 1) else { panic!("it differs") };
        assert_eq!(patch[0]["value"], template("a"));
    }
}
