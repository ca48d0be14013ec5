//! A step plugin that a run plays: what it answers goes by how long it has been at work. What it has
//! begun is known to it alone, as with a real one, and outlives the controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names::{analysis_phase, plugin_operation};
use gradus_api::values::parse_go_duration;
use gradus_controller::plugins::not_configured;
use gradus_engine::ask::{PLUGIN_READY, PluginCall, PluginReply, PluginSaid};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// The plugins of a run, by name.
#[derive(Clone, Debug, Default)]
pub struct PlayedPlugins {
    plugins: BTreeMap<String, Played>,
}

#[derive(Clone, Debug)]
struct Played {
    script: Script,
    /// When it began what has not come to an end, by step.
    begun: BTreeMap<i32, Timestamp>,
}

/// What a plugin answers: each phase for so long, the last for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    phases: Vec<(&'static str, Option<SignedDuration>)>,
}

const PHASES: [&str; 4] = [
    analysis_phase::RUNNING,
    analysis_phase::SUCCESSFUL,
    analysis_phase::FAILED,
    analysis_phase::ERROR,
];

/// What is expected of a script.
pub const EXPECTED: &str = "running, successful, failed or error, each but the last with a time: \
                            running@30s,successful";

impl Script {
    /// Reads `running@30s,successful`; `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut phases = Vec::new();
        let parts: Vec<&str> = text.split(',').collect();
        for (at, part) in parts.iter().enumerate() {
            let (name, time) = match part.split_once('@') {
                Some((name, time)) => (name, Some(parse_go_duration(time).ok()?)),
                None => (*part, None),
            };
            let phase = PHASES.into_iter().find(|phase| phase.eq_ignore_ascii_case(name))?;
            let is_last = at + 1 == parts.len();
            if time.is_none() != is_last || time.is_some_and(|time| time.is_negative()) {
                return None;
            }
            phases.push((phase, time));
        }
        Some(Script { phases })
    }

    /// The phase after so long.
    fn phase(&self, worked: SignedDuration) -> &'static str {
        let mut end = SignedDuration::ZERO;
        for (phase, time) in &self.phases {
            end += time.unwrap_or(SignedDuration::MAX - end);
            if worked < end {
                return phase;
            }
        }
        self.phases.last().map_or("", |(phase, _)| phase)
    }
}

impl PlayedPlugins {
    /// Plugins that play these scripts.
    pub fn new(scripts: &BTreeMap<String, Script>) -> Self {
        let played = |script: &Script| Played { script: script.clone(), begun: BTreeMap::new() };
        let plugins = scripts.iter().map(|(name, script)| (name.clone(), played(script)));
        PlayedPlugins { plugins: plugins.collect() }
    }

    /// Is there a plugin of this name?
    pub fn has(&self, name: &str) -> bool {
        self.plugins.contains_key(name)
    }

    /// What a plugin answers.
    pub fn call(&mut self, call: &PluginCall, now: Timestamp) -> PluginReply {
        let Some(Played { script, begun }) = self.plugins.get_mut(&call.name) else {
            return not_configured(call);
        };
        if call.operation == PLUGIN_READY {
            return PluginReply::Said(PluginSaid::default());
        }
        if call.operation != plugin_operation::RUN {
            begun.remove(&call.index);
            let phase = analysis_phase::SUCCESSFUL.to_owned();
            return PluginReply::Said(PluginSaid { phase, ..PluginSaid::default() });
        }
        let remembered = call.status.as_ref().and_then(|status| status["began"].as_str());
        let remembered = remembered.and_then(|text| text.parse().ok());
        let began = *begun.entry(call.index).or_insert(remembered.unwrap_or(now));
        let phase = script.phase(now.duration_since(began));
        if phase == analysis_phase::SUCCESSFUL || phase == analysis_phase::FAILED {
            begun.remove(&call.index);
        }
        PluginReply::Said(PluginSaid {
            phase: phase.to_owned(),
            message: format!("plays {}", phase.to_lowercase()),
            requeue_after: SignedDuration::ZERO,
            status: Some(Arc::new(json!({ "began": began.to_string() }))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_or_refused() {
        for (text, is_read) in [
            ("successful", true),
            ("running@30s,successful", true),
            ("Running@1m,error@5s,failed", true),
            ("running@30s", false),
            ("running,successful", false),
            ("walking", false),
            ("running@soon,successful", false),
            ("", false),
        ] {
            assert_eq!(Script::parse(text).is_some(), is_read, "{text}");
        }
    }

    #[test]
    fn a_plugin_goes_on_with_what_it_has_begun_whoever_asks() {
        let script = Script::parse("running@30s,successful").unwrap();
        let mut plugins = PlayedPlugins::new(&BTreeMap::from([("a/b".to_owned(), script)]));
        let mut call = |second: i64, operation: &str, index: i32| {
            let (name, operation) = ("a/b".to_owned(), operation.to_owned());
            let call = PluginCall { name, operation, index, config: None, status: None };
            match plugins.call(&call, Timestamp::from_second(second).unwrap()) {
                PluginReply::Said(said) => said.phase,
                other => format!("{other:?}"),
            }
        };
        assert_eq!(call(0, "Run", 0), "Running");
        assert_eq!(call(20, "Run", 0), "Running", "a new controller asks, and nothing begins anew");
        assert_eq!(call(20, "Run", 1), "Running", "another step");
        assert_eq!(call(30, "Run", 0), "Successful");
        assert_eq!(call(31, "Run", 0), "Running", "another attempt");
        assert_eq!(call(32, "Abort", 0), "Successful");
    }
}
