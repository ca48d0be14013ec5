//! Who answers for a step plugin? Nobody: none can be configured in this version.

use gradus_engine::ask::{PluginCall, PluginReply};

/// The reply to a call of a step plugin, in the words for one that is not configured.
pub fn call(call: &PluginCall) -> PluginReply {
    let name = &call.name;
    PluginReply::Unusable(format!(
        "failed to get step plugin {name}: unable to start plugin system: unable to find plugin \
         ({name}): plugin {name} not configured in configmap"
    ))
}
