//! Where does a rollout stand? Conditions on what a person sees of it, the same in `simulate()`, in the
//! live lab and on a real control plane.

use gradus_api::names::{self, run_type};
use gradus_engine::world::RunPhase;
use serde::Deserialize;
use serde_json::Value;

/// A Rollout as a person sees it.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// `metadata.generation`.
    pub generation: i64,
    /// The revision annotation.
    pub revision: Option<i64>,
    /// `spec`.
    pub spec: &'a Value,
    /// `status`.
    pub status: &'a Value,
}

/// Where a rollout must stand. All that is named must hold, and the spec must be observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct When {
    /// `status.phase`.
    pub phase: Option<String>,
    /// The weight that the current step asks for.
    pub weight: Option<i64>,
    /// `status.currentStepIndex`.
    pub step: Option<i64>,
    /// The revision that is rolled out.
    pub revision: Option<i64>,
    /// `status.abort`.
    pub aborted: Option<bool>,
    /// `status.updatedReplicas`.
    pub updated: Option<i64>,
    /// `status.availableReplicas`.
    pub available: Option<i64>,
    /// Is the update over: promoted and healthy, or given up?
    pub over: Option<bool>,
    /// The run of this purpose is there and has not ended: Step, Background, PrePromotion or
    /// PostPromotion.
    pub run: Option<String>,
    /// The plugin of the current step has answered and is at work.
    pub plugin: Option<bool>,
    /// An Experiment is there and has not ended.
    pub experiment: Option<bool>,
    /// The part of the traffic that goes to the pods of an Experiment.
    pub experiment_weight: Option<i64>,
    /// The status says how the traffic is split.
    pub split: Option<bool>,
    /// The restart that is asked for is done.
    pub restarted: Option<bool>,
}

impl When {
    /// Does the rollout stand like this?
    pub fn holds(&self, sight: &Sight<'_>) -> bool {
        let status = sight.status;
        let number = |field: &str| status[field].as_i64().unwrap_or(0);
        let fits =
            |wanted: Option<i64>, found: Option<i64>| wanted.is_none_or(|n| found == Some(n));
        sight.is_observed()
            && self.phase.as_ref().is_none_or(|phase| status["phase"] == phase.as_str())
            && fits(self.weight, Some(sight.weight()))
            && fits(self.step, status["currentStepIndex"].as_i64())
            && fits(self.revision, sight.revision)
            && self
                .aborted
                .is_none_or(|aborted| status["abort"].as_bool().unwrap_or(false) == aborted)
            && fits(self.updated, Some(number("updatedReplicas")))
            && fits(self.available, Some(number("availableReplicas")))
            && self.over.is_none_or(|over| sight.is_over() == over)
            && self.run.as_ref().is_none_or(|purpose| sight.awaits(purpose))
            && self.plugin.is_none_or(|is_at_work| sight.has_plugin() == is_at_work)
            && self.experiment.is_none_or(|is_there| sight.has_experiment() == is_there)
            && fits(self.experiment_weight, Some(sight.experiment_weight()))
            && self.split.is_none_or(|is_there| status["canary"]["weights"].is_object() == is_there)
            && self.restarted.is_none_or(|is_done| sight.is_restarted() == is_done)
    }
}

impl<'a> Sight<'a> {
    /// The sight of an object as HTTP sends it.
    pub fn of(object: &'a Value) -> Self {
        let metadata = &object["metadata"];
        let revision = metadata["annotations"][names::annotation::REVISION].as_str();
        Sight {
            generation: metadata["generation"].as_i64().unwrap_or(0),
            revision: revision.and_then(|text| text.parse().ok()),
            spec: &object["spec"],
            status: &object["status"],
        }
    }

    /// Does the status speak about the spec as it is?
    pub fn is_observed(&self) -> bool {
        let observed = &self.status["observedGeneration"];
        // A Rollout's is text; that of most other kinds is a number.
        let number = observed.as_str().and_then(|text| text.parse().ok()).or(observed.as_i64());
        number == Some(self.generation)
    }

    /// Is no restart asked for that is not done?
    pub fn is_restarted(&self) -> bool {
        self.spec["restartAt"] == self.status["restartedAt"]
    }

    /// Is no update under way any more?
    pub fn is_over(&self) -> bool {
        self.status["phase"] == names::phase::HEALTHY || self.status["abort"] == true
    }

    /// The weight that the current step asks for, as `kubectl argo rollouts get` shows it.
    pub fn weight(&self) -> i64 {
        if self.status["abort"] == true {
            return 0;
        }
        let steps = self.steps();
        let index = self.status["currentStepIndex"].as_u64().unwrap_or(0);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(passed) = steps.get(..=index) else {
            return 100;
        };
        passed.iter().rev().find_map(|step| step["setWeight"].as_i64()).unwrap_or(0)
    }

    /// Has the plugin of the current step answered that it is at work?
    pub fn has_plugin(&self) -> bool {
        let entries = self.status["canary"]["stepPluginStatuses"].as_array();
        let is_it = |entry: &Value| {
            entry["index"] == self.status["currentStepIndex"]
                && entry["operation"] == names::plugin_operation::RUN
                && entry["phase"] == names::analysis_phase::RUNNING
        };
        entries.into_iter().flatten().any(is_it)
    }

    /// What the status says of the run of this purpose.
    pub fn run(&self, purpose: &str) -> Option<&'a Value> {
        let (canary, blue_green) = (&self.status["canary"], &self.status["blueGreen"]);
        let slot = match purpose {
            run_type::STEP => &canary["currentStepAnalysisRunStatus"],
            run_type::BACKGROUND => &canary["currentBackgroundAnalysisRunStatus"],
            run_type::PRE_PROMOTION => &blue_green["prePromotionAnalysisRunStatus"],
            run_type::POST_PROMOTION => &blue_green["postPromotionAnalysisRunStatus"],
            _ => return None,
        };
        slot.is_object().then_some(slot)
    }

    /// Is there a run of this purpose that has not ended?
    pub fn awaits(&self, purpose: &str) -> bool {
        self.run(purpose).is_some_and(|run| {
            !RunPhase::of(run["status"].as_str().unwrap_or_default()).is_completed()
        })
    }

    /// The part of the traffic that goes to the pods of an Experiment, as the status says it.
    pub fn experiment_weight(&self) -> i64 {
        let parts = self.status["canary"]["weights"]["additional"].as_array();
        parts.into_iter().flatten().filter_map(|part| part["weight"].as_i64()).sum()
    }

    /// Is there an Experiment that has not ended?
    pub fn has_experiment(&self) -> bool {
        let name = self.status["canary"]["currentExperiment"].as_str();
        name.is_some_and(|name| !name.is_empty())
    }

    /// Does the update wait for a verdict, whoever speaks it?
    pub fn awaits_verdict(&self) -> bool {
        self.has_experiment() || self.awaited_run().is_some()
    }

    /// The purpose of the run that the update waits for.
    pub fn awaited_run(&self) -> Option<&'static str> {
        let purposes = [run_type::STEP, run_type::PRE_PROMOTION, run_type::POST_PROMOTION];
        purposes.into_iter().find(|purpose| self.awaits(purpose))
    }

    /// The steps of the canary.
    pub fn steps(&self) -> &'a [Value] {
        steps(self.spec)
    }
}

/// The steps of the canary in a Rollout's spec.
pub fn steps(spec: &Value) -> &[Value] {
    spec["strategy"]["canary"]["steps"].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paused() -> Value {
        json!({
            "observedGeneration": "2", "phase": "Paused", "message": "CanaryPauseStep",
            "currentPodHash": "bbb", "stableRS": "aaa", "currentStepIndex": 1, "updatedReplicas": 1,
        })
    }

    #[test]
    fn a_condition_holds_when_all_that_it_names_holds() {
        let spec = json!({"strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}]}}});
        let status = paused();
        let sight = Sight { generation: 2, revision: Some(2), spec: &spec, status: &status };
        let phase = |text: &str| Some(text.to_owned());
        let cases = [
            ("nothing named", When::default(), true),
            (
                "paused at 20",
                When { phase: phase("Paused"), weight: Some(20), ..When::default() },
                true,
            ),
            ("another weight", When { weight: Some(60), ..When::default() }, false),
            ("another phase", When { phase: phase("Healthy"), ..When::default() }, false),
            ("its step", When { step: Some(1), ..When::default() }, true),
            ("its revision", When { revision: Some(2), ..When::default() }, true),
            ("not aborted", When { aborted: Some(false), ..When::default() }, true),
            ("other counts", When { updated: Some(2), ..When::default() }, false),
            ("no restart is asked for", When { restarted: Some(true), ..When::default() }, true),
        ];
        for (what, when, expected) in cases {
            assert_eq!(when.holds(&sight), expected, "{what}");
        }
        let unobserved = Sight { generation: 3, ..sight };
        assert!(!When::default().holds(&unobserved), "an old status says nothing about a new spec");
    }
}
