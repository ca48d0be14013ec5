//! Calls of traffic plugins: what they are told, and what their answers mean to the engine.

use gradus_engine::ask::{RouterCall, RouterGoal, RouterOperation, RouterReply};
use gradus_engine::decision::ObjectRef;
use gradus_goplugin::PluginKind;
use serde_json::{Value, json};

use super::process::CallFailure;
use super::{PluginError, Plugins, shortened, subject};
use crate::cluster::{Cluster, WriteError};

/// Calls the plugin with the whole Rollout as it is now: everything that brings the split about, one
/// call after the other, or the question whether it is in force. The first call that fails ends it;
/// every one may be made again.
pub(super) async fn call<C: Cluster>(
    plugins: &Plugins,
    cluster: &C,
    rollout: &ObjectRef,
    call: &RouterCall,
) -> Result<RouterReply, WriteError> {
    let Some(found) = subject::rollout(cluster, rollout).await? else {
        return Ok(RouterReply::Broken(format!("{rollout} is not there")));
    };
    let mut last = Value::Null;
    for (method, argument) in methods(call) {
        let mut argument = argument;
        argument["rollout"] = found.clone();
        match plugins.call(cluster, PluginKind::Router, &call.name, method, argument).await {
            Ok(reply) => last = reply,
            Err(PluginError::Unread(error)) => return Err(error),
            Err(PluginError::Disabled) => {
                let why = format!("plugin {} is disabled", call.name);
                return Ok(unusable(&call.name, &why));
            }
            Err(PluginError::Unusable(why)) => return Ok(unusable(&call.name, &why)),
            Err(PluginError::Call(failure)) => return Ok(failed(method, failure)),
        }
    }
    Ok(match call.operation {
        RouterOperation::Split(_) => RouterReply::Told,
        RouterOperation::Verify => RouterReply::Verified(last["verified"].as_bool()),
    })
}

/// A plugin that could not be called, in Argo Rollouts' words.
pub(super) fn unusable(name: &str, why: &str) -> RouterReply {
    RouterReply::Broken(shortened(format!(
        "failed to get traffic router plugin {name}: unable to start plugin system: {why}"
    )))
}

/// The calls that are made, in their order, with their arguments but the Rollout.
fn methods(call: &RouterCall) -> Vec<(&'static str, Value)> {
    let weight = json!({ "desiredWeight": call.weight, "additionalDestinations": call.additional });
    let goal = match &call.operation {
        RouterOperation::Verify => return vec![("VerifyWeight", weight)],
        RouterOperation::Split(goal) => goal,
    };
    let RouterGoal { canary_hash, stable_hash, weight_first, routes } = &**goal;
    let mut methods = Vec::new();
    match routes {
        None => methods.push(("RemoveManagedRoutes", json!({}))),
        Some(routes) => {
            let header = |route| ("SetHeaderRoute", json!({ "setHeaderRoute": route }));
            let mirror = |route| ("SetMirrorRoute", json!({ "setMirrorRoute": route }));
            methods.extend(routes.headers.iter().map(header));
            methods.extend(routes.mirrors.iter().map(mirror));
        }
    }
    if *weight_first {
        methods.push(("SetWeight", weight.clone()));
    }
    methods.push((
        "UpdateHash",
        json!({
            "canaryHash": canary_hash,
            "stableHash": stable_hash,
            "additionalDestinations": call.additional,
        }),
    ));
    methods.push(("SetWeight", weight));
    methods
}

fn failed(method: &str, failure: CallFailure) -> RouterReply {
    let verb = match method {
        "RemoveManagedRoutes" => "remove managed routes",
        "SetHeaderRoute" => "set header route",
        "SetMirrorRoute" => "set mirror route",
        "UpdateHash" => "update hash",
        "VerifyWeight" => "verify weight",
        _ => "set weight",
    };
    RouterReply::Broken(shortened(match failure {
        CallFailure::Said(why) => format!("failed to {verb} via plugin: {why}"),
        CallFailure::Transport(why) => {
            format!("failed to {verb} via plugin: {method} rpc call error: {why}")
        }
    }))
}
