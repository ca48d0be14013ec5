//! The Rollout that a plugin is called with: as it is stored, with the pods of the workload that it
//! refers to, where Argo Rollouts' own types have them.

use gradus_api::rollout::WorkloadRef;
use gradus_engine::decision::ObjectRef;
use gradus_engine::kinds;
use gradus_engine::rollout::workload;
use serde_json::{Value, json};

use crate::cluster::{Cluster, WriteError};

/// The Rollout as it is now; `None` where it is gone.
pub(super) async fn rollout<C: Cluster>(
    cluster: &C,
    target: &ObjectRef,
) -> Result<Option<Value>, WriteError> {
    let Some(mut rollout) = cluster.read_whole(target).await? else { return Ok(None) };
    let named = WorkloadRef::deserialize(&rollout["spec"]["workloadRef"]);
    if let Ok(named) = named
        && let Ok(kind) = workload::kind_of(&named)
    {
        let place = if kind == kinds::POD_TEMPLATE { "" } else { "/spec" };
        let workload = ObjectRef::new(kind, &target.namespace, &named.name.as_str().into());
        if let Some(found) = cluster.read_whole(&workload).await? {
            resolve(&mut rollout["spec"], found.pointer(place).unwrap_or(&Value::Null));
        }
    }
    Ok(Some(rollout))
}

/// Takes over what the Rollout leaves to its workload. That it did stands in fields that no Rollout
/// stores.
fn resolve(spec: &mut Value, of: &Value) {
    for (field, noted) in
        [("template", "templateResolvedFromRef"), ("selector", "selectorResolvedFromRef")]
    {
        if of[field].is_object() && !spec[field].is_object() {
            spec[field] = of[field].clone();
            spec[noted] = json!(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_rollout_has_itself_stays() {
        let of = json!({ "template": { "spec": 1 }, "selector": { "matchLabels": {} } });
        let cases = [
            (
                "nothing of its own",
                json!({ "replicas": 1 }),
                json!({ "replicas": 1, "template": { "spec": 1 }, "selector": { "matchLabels": {} },
                    "templateResolvedFromRef": true, "selectorResolvedFromRef": true }),
            ),
            (
                "a selector of its own",
                json!({ "selector": { "matchLabels": { "app": "web" } } }),
                json!({ "selector": { "matchLabels": { "app": "web" } },
                    "template": { "spec": 1 }, "templateResolvedFromRef": true }),
            ),
        ];
        for (what, mut spec, expected) in cases {
            resolve(&mut spec, &of);
            assert_eq!(spec, expected, "{what}");
        }
        let mut spec = json!({});
        resolve(&mut spec, &json!({ "template": { "spec": 1 } }));
        assert!(spec.get("selector").is_none(), "a PodTemplate has none: {spec}");
    }
}
