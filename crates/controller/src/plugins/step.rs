//! Calls of step plugins: what they are told, and what their answers mean to the engine.

use std::sync::Arc;

use gradus_engine::ask::{PLUGIN_READY, PluginCall, PluginReply, PluginSaid};
use gradus_engine::decision::ObjectRef;
use gradus_goplugin::PluginKind;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::process::{CallFailure, PING};
use super::{PluginError, Plugins, shortened, subject};
use crate::cluster::{Cluster, WriteError};

/// The largest status that a plugin may want remembered, in bytes: all of a Rollout has to fit into
/// little more than a megabyte.
const STATUS_LIMIT: usize = 256 << 10;

/// Calls the plugin with the whole Rollout as it is now, or asks whether it is there.
pub(super) async fn call<C: Cluster>(
    plugins: &Plugins,
    cluster: &C,
    rollout: &ObjectRef,
    call: &PluginCall,
) -> Result<PluginReply, WriteError> {
    if call.operation == PLUGIN_READY {
        return ready(plugins, cluster, &call.name).await;
    }
    let Some(rollout) = subject::rollout(cluster, rollout).await? else {
        return Ok(PluginReply::Broken(format!("{rollout} is not there")));
    };
    let argument = json!({
        "rollout": rollout,
        "context": {
            "pluginName": call.name,
            "config": call.config,
            "status": call.status,
        },
    });
    let (name, method) = (&call.name, &call.operation);
    Ok(match plugins.call(cluster, PluginKind::Step, name, method, argument).await {
        Ok(reply) => said(&reply),
        Err(PluginError::Disabled) => PluginReply::Disabled,
        Err(PluginError::Unread(error)) => return Err(error),
        Err(PluginError::Unusable(why)) => unusable(name, &why),
        Err(PluginError::Call(CallFailure::Said(why))) => PluginReply::Broken(shortened(why)),
        Err(PluginError::Call(CallFailure::Transport(why))) => {
            PluginReply::Broken(shortened(format!("{method} rpc call error: {why}")))
        }
    })
}

/// Can the plugin be called? It is started if it does not run, and asked whether it is there, which
/// changes nothing.
async fn ready<C: Cluster>(
    plugins: &Plugins,
    cluster: &C,
    name: &str,
) -> Result<PluginReply, WriteError> {
    Ok(match plugins.call(cluster, PluginKind::Step, name, PING, Value::Null).await {
        Ok(_) | Err(PluginError::Call(CallFailure::Said(_))) => {
            PluginReply::Said(PluginSaid::default())
        }
        Err(PluginError::Disabled) => PluginReply::Disabled,
        Err(PluginError::Unread(error)) => return Err(error),
        Err(PluginError::Unusable(why)) => unusable(name, &why),
        Err(PluginError::Call(CallFailure::Transport(why))) => {
            let why = format!(
                "could not ping plugin will cleanup process so we can restart it next reconcile \
                 ({why})"
            );
            unusable(name, &why)
        }
    })
}

/// A plugin that could not be called, in Argo Rollouts' words.
pub(super) fn unusable(name: &str, why: &str) -> PluginReply {
    PluginReply::Unusable(shortened(format!(
        "failed to get step plugin {name}: unable to start plugin system: {why}"
    )))
}

fn said(reply: &Value) -> PluginReply {
    let text = |field: &str| reply[field].as_str().unwrap_or_default().to_owned();
    let status = Some(&reply["status"]).filter(|status| !status.is_null());
    if status.is_some_and(|status| status.to_string().len() > STATUS_LIMIT) {
        let limit = STATUS_LIMIT >> 10;
        return PluginReply::Broken(format!("the plugin's status is larger than {limit} KiB"));
    }
    PluginReply::Said(PluginSaid {
        phase: text("phase"),
        message: shortened(text("message")),
        requeue_after: seconds(&reply["requeueAfterSeconds"]),
        status: status.map(|status| Arc::new(status.clone())),
    })
}

/// Seconds and parts of them; those that are too many for Go's durations are as many as it has.
fn seconds(number: &Value) -> SignedDuration {
    let nanoseconds = number.as_f64().unwrap_or_default() * 1e9;
    SignedDuration::from_nanos(nanoseconds.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_second_count_and_no_number_is_too_large() {
        let cases = [
            (json!(17), 17_000_000_000),
            (json!(15.1), 15_100_000_000),
            (json!(-1), -1_000_000_000),
            (json!(1e300), i64::MAX),
            (json!("17s"), 0),
            (json!(null), 0),
        ];
        for (number, nanoseconds) in cases {
            assert_eq!(seconds(&number), SignedDuration::from_nanos(nanoseconds), "{number}");
        }
    }
}
