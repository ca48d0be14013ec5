//! Plugins that a run plays: what they answer goes by how long they have been at work. What one has
//! begun is known to it alone, as with a real one, and outlives the controller.
//!
//! A metric plugin measures for so long and then says how it ended. A traffic plugin takes what it is
//! told unless it fails, and has it in force when it is successful.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::analysis::Measurement;
use gradus_api::names::{analysis_phase, plugin_operation};
use gradus_api::values::Time;
use gradus_api::values::parse_go_duration;
use gradus_controller::plugins::unconfigured;
use gradus_engine::ask::{
    MetricCall, MetricOperation, MetricReply, PLUGIN_READY, PluginCall, PluginReply, PluginSaid,
    Question, Reply, RouterCall, RouterOperation, RouterReply,
};
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
    /// The weight that it was told last, and since when it is told of it.
    told: Option<(i32, Timestamp)>,
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
        let played =
            |script: &Script| Played { script: script.clone(), begun: BTreeMap::new(), told: None };
        let plugins = scripts.iter().map(|(name, script)| (name.clone(), played(script)));
        PlayedPlugins { plugins: plugins.collect() }
    }

    /// Is there a plugin of this name?
    pub fn has(&self, name: &str) -> bool {
        self.plugins.contains_key(name)
    }

    /// Does a traffic plugin split the traffic so already? Then telling it again changes nothing.
    pub fn has_done(&self, question: &Question) -> bool {
        let Question::RouterPlugin(call) = question else { return false };
        let told = self.plugins.get(&call.name).and_then(|played| played.told);
        told.is_some_and(|(weight, _)| weight == call.weight)
    }

    /// The reply to a question for a plugin; `None` for any other question.
    pub fn answer(&mut self, question: &Question, now: Timestamp) -> Option<Reply> {
        let played = match question.plugin().and_then(|name| self.plugins.get_mut(name)) {
            Some(played) => played,
            None => return unconfigured(question),
        };
        Some(match question {
            Question::Plugin(call) => Reply::Plugin(played.step(call, now)),
            Question::MetricPlugin(call) => Reply::MetricPlugin(played.measure(call, now)),
            Question::RouterPlugin(call) => Reply::RouterPlugin(played.route(call, now)),
            _ => return None,
        })
    }
}

/// Does this question for a plugin change something outside?
pub fn acts(question: &Question) -> bool {
    match question {
        Question::Plugin(call) => call.operation != PLUGIN_READY,
        Question::MetricPlugin(call) => !matches!(call.operation, MetricOperation::GetMetadata),
        Question::RouterPlugin(call) => !matches!(call.operation, RouterOperation::Verify),
        _ => false,
    }
}

impl Played {
    fn measure(&mut self, call: &MetricCall, now: Timestamp) -> MetricReply {
        let (began, is_ended) = match &call.operation {
            MetricOperation::GetMetadata => return MetricReply::Metadata(BTreeMap::new()),
            MetricOperation::GarbageCollect(_) => return MetricReply::Done,
            MetricOperation::Run => (now, false),
            MetricOperation::Resume(last) => (last.started_at.map_or(now, Time::timestamp), false),
            MetricOperation::Terminate(last) => {
                (last.started_at.map_or(now, Time::timestamp), true)
            }
        };
        let phase = match self.script.phase(now.duration_since(began)) {
            analysis_phase::RUNNING if is_ended => analysis_phase::SUCCESSFUL,
            phase => phase,
        };
        let is_over = phase != analysis_phase::RUNNING;
        MetricReply::Measured(Box::new(Measurement {
            phase: phase.to_owned(),
            value: if is_over { "1".to_owned() } else { String::new() },
            started_at: Some(Time::new(began)),
            finished_at: Some(Time::new(now)).filter(|_| is_over),
            resume_at: Some(Time::new(now + SignedDuration::from_secs(10))).filter(|_| !is_over),
            ..Measurement::default()
        }))
    }

    fn route(&mut self, call: &RouterCall, now: Timestamp) -> RouterReply {
        let first = *self.begun.entry(0).or_insert(now);
        let known = self.told.filter(|(weight, _)| *weight == call.weight);
        let since = known.map_or(now, |(_, since)| since);
        match call.operation {
            RouterOperation::Split(_) => match self.script.phase(now.duration_since(first)) {
                analysis_phase::FAILED | analysis_phase::ERROR => {
                    RouterReply::Broken("failed to set weight via plugin: plays error".to_owned())
                }
                _ => {
                    self.told = Some((call.weight, since));
                    RouterReply::Told
                }
            },
            RouterOperation::Verify => match self.script.phase(now.duration_since(since)) {
                analysis_phase::RUNNING => RouterReply::Verified(Some(false)),
                _ => RouterReply::Verified(Some(known.is_some())),
            },
        }
    }

    fn step(&mut self, call: &PluginCall, now: Timestamp) -> PluginReply {
        let Played { script, begun, .. } = self;
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
            let now = Timestamp::from_second(second).unwrap();
            match plugins.answer(&Question::Plugin(call), now) {
                Some(Reply::Plugin(PluginReply::Said(said))) => said.phase,
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
