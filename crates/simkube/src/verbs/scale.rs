//! Scale: the number of replicas of any kind that has one, in the words of autoscaling/v1.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{SimCluster, patch};
use crate::error::{ApiError, Cause, Details};
use crate::kinds::{KindInfo, ScalePaths};
use crate::object::Object;
use crate::request::{Reply, Request, Subresource, Verb};
use crate::selector::LabelSelector;

impl SimCluster {
    pub(super) fn scale(
        &mut self,
        request: &Request,
        kind: &KindInfo,
        now: Timestamp,
    ) -> Result<Reply, ApiError> {
        let Some(paths) = &kind.scale else { return Err(super::no_such_resource()) };
        let before = self.find(request, kind)?;
        if kind.custom && before.field(&paths.wanted).is_none() {
            return Err(no_such_field(&paths.wanted));
        }
        let mut scale = shown(&before, paths);
        match request.verb {
            Verb::Update => {
                scale = Value::clone(&request.body);
                check_body(&scale, &request.name)?;
            }
            Verb::Patch(language) => patch::apply(&mut scale, &request.body, language, kind)?,
            _ => return Ok(Reply::json(scale)),
        }
        let wanted = wanted(&before, paths, &scale, kind);
        let wanted = match request.verb {
            Verb::Patch(_) => wanted.map_err(|error| patch::unreadable(error, &scale)),
            _ => wanted,
        }?;
        let main =
            Request { subresource: Subresource::None, body: Arc::default(), ..request.clone() };
        let reply = self.change(&main, kind, before, wanted, now)?;
        let after = reply.as_object().expect("a change answers with the object");
        Ok(Reply::json(shown(after, paths)))
    }
}

/// Refuses a body that is no Scale, or that of another object.
fn check_body(scale: &Value, name: &str) -> Result<(), ApiError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, named) = (text(&scale["kind"]), text(&scale["metadata"]["name"]));
    if !matches!(kind.as_str(), "" | "Scale") {
        return Err(ApiError::bad_request(format!("{kind} cannot be handled as a Scale")));
    }
    if !named.is_empty() && named != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({named}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

fn wanted(
    before: &Object,
    paths: &ScalePaths,
    scale: &Value,
    kind: &KindInfo,
) -> Result<Object, ApiError> {
    let replicas = match &scale["spec"]["replicas"] {
        Value::Null => 0,
        Value::Number(number) if number.is_i64() => number.as_i64().unwrap_or_default(),
        other => {
            let message = format!("spec.replicas: expected a whole number, found {other}");
            return Err(ApiError::bad_request(message));
        }
    };
    // A custom kind is checked by its own paths when it is stored.
    if replicas < 0 && !kind.custom {
        let why = "must be greater than or equal to 0";
        let cause = Cause::invalid("spec.replicas", &json!(replicas), why);
        let scale = KindInfo { group: "autoscaling".into(), kind: "Scale".into(), ..kind.clone() };
        return Err(ApiError::invalid(&scale, &before.meta.name, vec![cause]));
    }
    let version = scale["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let mut wanted = before.clone();
    wanted.version = version.parse().unwrap_or_default();
    if let Some(path) = paths.wanted.strip_prefix("spec.") {
        set(Arc::make_mut(&mut wanted.spec), path, json!(replicas));
    }
    Ok(wanted)
}

fn no_such_field(path: &str) -> ApiError {
    let why = format!("the spec replicas field \".{path}\" does not exist");
    let causes = vec![Cause::new("", "", why.clone())];
    let details = Some(Box::new(Details { causes, ..Details::default() }));
    let message = format!("Internal error occurred: {why}");
    ApiError { code: 500, reason: "InternalError", message, details }
}

fn set(value: &mut Value, path: &str, number: Value) {
    let mut at = value;
    for part in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[part];
    }
    *at = number;
}

fn shown(object: &Object, paths: &ScalePaths) -> Value {
    let number = |path: &str| object.field(path).and_then(|text| text.parse::<i64>().ok());
    let meta = &object.meta;
    let mut metadata = json!({
        "name": meta.name, "uid": meta.uid, "resourceVersion": object.version.to_string(),
        "creationTimestamp": meta.created.to_string(),
    });
    if !meta.namespace.is_empty() {
        metadata["namespace"] = json!(meta.namespace);
    }
    let mut spec = Map::new();
    if let Some(replicas) = number(&paths.wanted).filter(|replicas| *replicas != 0) {
        spec.insert("replicas".to_owned(), json!(replicas));
    }
    let mut status = json!({ "replicas": number(&paths.seen).unwrap_or(0) });
    let selector = match &paths.selector {
        Some(path) => object.field(path),
        None => LabelSelector::from_json(&object.spec["selector"]).ok().map(|one| one.to_string()),
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        status["selector"] = json!(selector);
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": metadata, "spec": spec, "status": status,
    })
}
