//! How does a person reach the embedded cluster, and what does a person see there?

use gradus_api::names::annotation;
use gradus_engine::projection::{self, project};
use gradus_simkube::object::Object;
use gradus_simkube::request::Verb;
use gradus_simkube::{ApiError, Place, Request, SimCluster, Subresource};
use jiff::Timestamp;
use serde_json::Value;

use crate::ends::{revisions, sets};
use crate::person::{Action, Deed, PersonalWrite};
use crate::sight::Sight;

/// The namespace scenarios happen in.
pub const NAMESPACE: &str = "default";

/// The name under which people write.
pub(crate) const PERSON: &str = "person";

/// Does what a person does, except to the controller.
pub(crate) fn perform(
    cluster: &mut SimCluster,
    rollout: &Place,
    action: &Action,
    now: Timestamp,
) -> Result<(), ApiError> {
    if let Action::Behave(behaviours) = action {
        cluster.set_behaviours(behaviours.clone());
    }
    let name = &rollout.key.name;
    let found = cluster.at(rollout).cloned();
    let none = Value::Null;
    let sight = match &found {
        Some(object) => sight(object),
        None => Sight { generation: 0, revision: None, spec: &none, status: &none },
    };
    action.writes(name, &sight, now).into_iter().try_for_each(|write| make(cluster, write, now))
}

fn make(cluster: &mut SimCluster, write: PersonalWrite, now: Timestamp) -> Result<(), ApiError> {
    let kind = cluster.kinds().by_name(&write.api_version, &write.kind);
    let kind = kind.ok_or_else(|| {
        ApiError::bad_request(format!("no kind {} {}", write.api_version, write.kind))
    })?;
    let namespace = if cluster.kinds().get(kind).namespaced { NAMESPACE } else { "" };
    let merge = |body: Value| Request::merge(kind, namespace, &write.name, body);
    let mut request = match write.deed {
        Deed::Apply(object) => match cluster.get(kind, namespace, &write.name) {
            Some(_) => merge(object),
            None => Request::create(kind, namespace, object),
        },
        Deed::Merge(patch) => merge(patch),
        Deed::MergeStatus(patch) => merge(patch).on(Subresource::Status),
        Deed::Delete => Request::new(Verb::Delete, kind, namespace, &write.name),
    };
    request.options.user = PERSON.into();
    cluster.serve(request, now).map(drop)
}

/// A stored Rollout as a person sees it.
pub(crate) fn sight(object: &Object) -> Sight<'_> {
    let revision = object.meta.annotations.get(annotation::REVISION);
    Sight {
        generation: object.meta.generation,
        revision: revision.and_then(|text| text.parse().ok()),
        spec: &object.spec,
        status: &object.status,
    }
}

/// The projected status of a Rollout; null where there is none.
pub(crate) fn projection(cluster: &SimCluster, rollout: &Place) -> Value {
    let found = cluster.at(rollout);
    found.map_or(Value::Null, |found| project(&found.status, &revisions(&sets(cluster))))
}

/// Is this the projected status of a Rollout?
pub(crate) fn is_projection(expected: &Value, cluster: &SimCluster, rollout: &Place) -> bool {
    let revisions = revisions(&sets(cluster));
    let found = cluster.at(rollout);
    found.map_or(expected.is_null(), |found| {
        projection::is_projection(expected, &found.status, &revisions)
    })
}

/// The object that another one names, as HTTP sends it.
pub(crate) fn find(cluster: &SimCluster, named: &Value) -> Option<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kinds = cluster.kinds();
    let kind = kinds.by_name(&text(&named["apiVersion"]), &text(&named["kind"]))?;
    let namespace = if kinds.get(kind).namespaced { NAMESPACE } else { "" };
    let found = cluster.get(kind, namespace, &text(&named["metadata"]["name"]))?;
    Some(found.to_json(kinds))
}

/// The fields in which two projections differ.
pub(crate) fn differences(seen: &Value, expected: &Value) -> String {
    let none = serde_json::Map::new();
    let (ours, theirs) = (seen.as_object().unwrap_or(&none), expected.as_object().unwrap_or(&none));
    let fields = ours.keys().chain(theirs.keys().filter(|field| !ours.contains_key(*field)));
    let text = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
    let lines = fields.filter(|field| ours.get(*field) != theirs.get(*field)).map(|field| {
        format!("{field}: {} instead of {}", text(ours.get(field)), text(theirs.get(field)))
    });
    lines.collect::<Vec<_>>().join("; ")
}
