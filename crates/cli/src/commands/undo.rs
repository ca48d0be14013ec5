//! `undo`: return to an earlier revision.

use anyhow::Context;
use clap::Args;
use gradus_api::names::annotation;
use gradus_engine::command::undo::{UndoError, UndoPatch, undo};
use gradus_engine::decision::Kind;
use gradus_engine::kinds;
use serde_json::Value;

use crate::cluster::{Cluster, PatchKind, ResourcePart};
use crate::near;
use crate::output;

/// Undo an update: back to an earlier revision
#[derive(Debug, Args)]
pub struct Arguments {
    /// Name of the rollout
    name: String,
    /// The revision to return to; 0 is the one before the newest
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true)]
    to_revision: i64,
}

/// Puts the template of the earlier revision in place of the current one.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    let Arguments { name, to_revision } = arguments;
    let rollout = near::get(cluster, &kinds::ROLLOUT, name).await?;
    let sets = cluster.list(&kinds::REPLICA_SET, &selector(&rollout)).await;
    let sets =
        sets.with_context(|| format!("failed to retrieve replica sets from rollout {name}"))?;
    let uid = &rollout["metadata"]["uid"];
    let owned = sets.into_iter().filter(|set| owner(set) == Some(uid)).collect::<Vec<_>>();
    match undo(&rollout, &owned, *to_revision).map_err(|error| explained(error, &owned))? {
        UndoPatch::Same => {
            let what = format!("current template already matches revision {to_revision}");
            output::print(&format!("skipped rollback ({what})"))?;
        }
        UndoPatch::Patch(patch) => {
            let failed = || format!("failed restoring revision {to_revision}");
            let (kind, target) = target(&rollout, name).with_context(failed)?;
            let patch = (PatchKind::Json, &patch);
            cluster.patch(&kind, &target, ResourcePart::Main, patch).await.with_context(failed)?;
            output::say(&format!("rollout '{name}' undo"))?;
        }
    }
    Ok(())
}

/// Where a revision is gone, those that are left.
fn explained(error: UndoError, owned: &[Value]) -> anyhow::Error {
    let revision = |set: &Value| {
        set["metadata"]["annotations"][annotation::REVISION].as_str()?.parse::<i64>().ok()
    };
    let mut known: Vec<i64> = owned.iter().filter_map(revision).collect();
    known.sort_unstable();
    match error {
        UndoError::NoSuchRevision(_) if !known.is_empty() => {
            let known = known.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            anyhow::anyhow!("{error}\n  its revisions are {known}")
        }
        error => error.into(),
    }
}

/// Where the template is: in the Rollout, or in the workload it refers to.
fn target(rollout: &Value, name: &str) -> anyhow::Result<(Kind, String)> {
    let workload = &rollout["spec"]["workloadRef"];
    let text = |field: &str| workload[field].as_str().unwrap_or_default().to_owned();
    match text("kind").as_str() {
        "" if workload.is_null() => Ok((kinds::ROLLOUT, name.to_owned())),
        "Deployment" => Ok((kinds::DEPLOYMENT, text("name"))),
        "ReplicaSet" => Ok((kinds::REPLICA_SET, text("name"))),
        kind => anyhow::bail!("workload of type {kind} is not supported"),
    }
}

/// The labels that a Rollout's ReplicaSets have, as the API server reads selectors.
fn selector(rollout: &Value) -> String {
    let selector = &rollout["spec"]["selector"];
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let pair = |(key, value): (&String, &Value)| Some(format!("{key}={}", value.as_str()?));
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    labels.filter_map(pair).chain(expressions.filter_map(requirement)).collect::<Vec<_>>().join(",")
}

fn requirement(expression: &Value) -> Option<String> {
    let key = expression["key"].as_str()?;
    let values = expression["values"].as_array().into_iter().flatten();
    let values = values.filter_map(Value::as_str).collect::<Vec<_>>().join(",");
    Some(match expression["operator"].as_str()? {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "Exists" => key.to_owned(),
        "DoesNotExist" => format!("!{key}"),
        _ => return None,
    })
}

fn owner(set: &Value) -> Option<&Value> {
    let owners = set["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true).map(|owner| &owner["uid"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_is_written_as_the_api_server_reads_it() {
        let expression = |key: &str, operator: &str, values: &[&str]| json!({ "key": key, "operator": operator, "values": values });
        let all = [
            expression("a", "In", &["1", "2"]),
            expression("b", "NotIn", &["3"]),
            expression("c", "Exists", &[]),
            expression("d", "DoesNotExist", &[]),
        ];
        let rollout = json!({ "spec": { "selector": {
            "matchLabels": { "app": "web" }, "matchExpressions": all } } });
        assert_eq!(selector(&rollout), "app=web,a in (1,2),b notin (3),c,!d");
        assert_eq!(selector(&json!({ "spec": {} })), "", "without one, all are listed");
    }
}
