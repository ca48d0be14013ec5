//! Calls of metric plugins: what they are told, and what their answers mean to the engine.

use gradus_api::analysis::Measurement;
use gradus_api::names::analysis_phase;
use gradus_engine::ask::{MetricCall, MetricOperation, MetricReply};
use gradus_engine::decision::ObjectRef;
use gradus_goplugin::PluginKind;
use serde_json::{Value, json};

use super::process::CallFailure;
use super::{PluginError, Plugins};
use crate::cluster::{Cluster, WriteError};
use crate::hidden::Hidden;

/// Calls the plugin with the whole AnalysisRun as it is now, and the metric with its secrets.
pub(super) async fn call<C: Cluster>(
    plugins: &Plugins,
    cluster: &C,
    run: &ObjectRef,
    call: &MetricCall,
    (metric, hidden): (&Value, &Hidden),
) -> Result<MetricReply, WriteError> {
    let Some(found) = cluster.read_whole(run).await? else {
        return Ok(MetricReply::Broken(format!("{run} is not there")));
    };
    let mut argument = json!({ "analysisRun": found, "metric": metric });
    match &call.operation {
        MetricOperation::Resume(last) | MetricOperation::Terminate(last) => {
            argument["measurement"] = json!(last);
        }
        MetricOperation::GarbageCollect(limit) => argument["limit"] = json!(limit),
        MetricOperation::GetMetadata => argument = json!({ "metric": metric }),
        MetricOperation::Run => {}
    }
    let (name, method) = (&call.name, call.operation.method());
    let plugin = (PluginKind::Metric, name.as_str());
    let answer = plugins.call_hiding(cluster, plugin, (method, argument), hidden).await;
    Ok(match answer {
        Ok(reply) => said(&call.operation, reply),
        Err(PluginError::Disabled) => unusable(&format!("plugin {name} is disabled")),
        Err(PluginError::Unread(error)) => return Err(error),
        Err(PluginError::Unusable(why)) => unusable(&why),
        Err(PluginError::Call(failure)) => failed(&call.operation, failure),
    })
}

/// A plugin that could not be called, in Argo Rollouts' words.
pub(super) fn unusable(why: &str) -> MetricReply {
    MetricReply::Unusable(format!(
        "failed to create plugin: unable to get metric plugin: unable to start plugin system: {why}"
    ))
}

fn said(operation: &MetricOperation, reply: Value) -> MetricReply {
    match operation {
        MetricOperation::GetMetadata => {
            let texts = reply.as_object().into_iter().flatten();
            let text =
                |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
            MetricReply::Metadata(texts.filter_map(text).collect())
        }
        MetricOperation::GarbageCollect(_) => MetricReply::Done,
        _ => match serde_json::from_value(reply) {
            Ok(measurement) => MetricReply::Measured(Box::new(measurement)),
            Err(error) => {
                let method = operation.method();
                MetricReply::Broken(format!("{method} rpc call error: no measurement: {error}"))
            }
        },
    }
}

fn failed(operation: &MetricOperation, failure: CallFailure) -> MetricReply {
    let method = operation.method();
    let collects = matches!(operation, MetricOperation::GarbageCollect(_));
    let prefix = if collects { "failed to garbage collect via plugin: " } else { "" };
    match failure {
        CallFailure::Transport(why) => {
            MetricReply::Broken(format!("{prefix}{method} rpc call error: {why}"))
        }
        CallFailure::Said(why) => match operation {
            MetricOperation::GetMetadata => {
                MetricReply::Metadata([("error".to_owned(), why)].into())
            }
            MetricOperation::GarbageCollect(_) => MetricReply::Broken(format!("{prefix}{why}")),
            _ => MetricReply::Measured(Box::new(Measurement {
                phase: analysis_phase::ERROR.to_owned(),
                message: why,
                ..Measurement::default()
            })),
        },
    }
}
