//! What the controller remembers of AnalysisRuns and of the Jobs that measure for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::analysis::Metric;
use gradus_api::decode::decode;
use gradus_api::names::label;
use gradus_engine::analysis::run::{AnalysisRunView, AnalysisRuns, RunWorld};
use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::Kind;
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::metrics::{self, JobView};
use gradus_engine::uid::Uid;
use jiff::Timestamp;

use crate::telemetry::{MetricFigures, Metrics, RunFigures};
use crate::watched::{Key, Measured, Scope, Selection, Shelf, Watched, references_to};

/// AnalysisRuns, and the Jobs of each.
#[derive(Default)]
pub struct RunIndex {
    runs: BTreeMap<Key, Arc<AnalysisRunView>>,
    /// The key of a run, by its uid as Jobs carry it in their label.
    keys: BTreeMap<Uid, Key>,
    jobs: BTreeMap<Key, Arc<JobView>>,
    /// The Jobs of a run, by its uid.
    by_run: BTreeMap<Uid, BTreeMap<Arc<str>, Arc<JobView>>>,
    /// Where Jobs measure, if not in the namespace of their run.
    job_namespace: Option<Arc<str>>,
}

/// What is watched for AnalysisRuns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The runs of this instance.
    Runs,
    /// Jobs that carry the uid of a run.
    Jobs,
}

impl RunIndex {
    fn apply_run(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let run = AnalysisRunView::read(frame);
        if let Some(before) = self.runs.get(&key).filter(|before| before.uid != run.uid) {
            self.keys.remove(&before.uid);
        }
        self.keys.insert(run.uid, key.clone());
        self.runs.insert(key.clone(), Arc::new(run));
        vec![key]
    }

    fn remove_run(&mut self, key: &Key) -> Vec<Key> {
        let Some(run) = self.runs.remove(key) else { return Vec::new() };
        self.keys.remove(&run.uid);
        vec![key.clone()]
    }

    fn apply_job(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let job = Arc::new(JobView::read(frame));
        let mut woken = self.remove_job(&key);
        let run = Uid::parse(&job.run);
        self.by_run.entry(run).or_default().insert(Arc::clone(&key.name), Arc::clone(&job));
        self.jobs.insert(key, job);
        woken.extend(self.keys.get(&run).cloned());
        woken.dedup();
        woken
    }

    fn remove_job(&mut self, key: &Key) -> Vec<Key> {
        let Some(job) = self.jobs.remove(key) else { return Vec::new() };
        let run = Uid::parse(&job.run);
        if let Some(jobs) = self.by_run.get_mut(&run) {
            jobs.remove(&key.name);
            if jobs.is_empty() {
                self.by_run.remove(&run);
            }
        }
        self.keys.get(&run).cloned().into_iter().collect()
    }
}

impl Watched for AnalysisRuns {
    type Index = RunIndex;
    type Source = Source;

    fn index(scope: &Scope) -> RunIndex {
        let job_namespace = scope.job_namespace.as_deref().map(Into::into);
        RunIndex { job_namespace, ..RunIndex::default() }
    }

    fn sources() -> Vec<Source> {
        vec![Source::Runs, Source::Jobs]
    }

    fn kind_of(source: &Source) -> Kind {
        match source {
            Source::Runs => kinds::ANALYSIS_RUN,
            Source::Jobs => kinds::JOB,
        }
    }

    fn selection(source: &Source, scope: &Scope) -> Option<Selection> {
        Some(match source {
            Source::Runs => scope.of_instance(kinds::ANALYSIS_RUN),
            Source::Jobs => scope.labelled(kinds::JOB, label::ANALYSIS_RUN_UID),
        })
    }

    fn shelf(source: &Source) -> Shelf<RunIndex> {
        match source {
            Source::Runs => Shelf {
                apply: |index, _, frame| index.apply_run(frame),
                remove: |index, object| index.remove_run(&Key::of(object)),
                version: |index, object| Some(index.runs.get(&Key::of(object))?.version),
                objects: |index, kind| references_to(kind, index.runs.keys()),
            },
            Source::Jobs => Shelf {
                apply: |index, _, frame| index.apply_job(frame),
                remove: |index, object| index.remove_job(&Key::of(object)),
                version: |index, object| Some(index.jobs.get(&Key::of(object))?.version),
                objects: |index, kind| references_to(kind, index.jobs.keys()),
            },
        }
    }

    fn gather(
        index: &RunIndex,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<()>,
    ) -> Option<RunWorld> {
        let run = index.runs.get(key)?;
        Some(RunWorld {
            run: Arc::clone(run),
            jobs: index.by_run.get(&run.uid).cloned().unwrap_or_default(),
            answers: answers.clone(),
            recall: recall.clone(),
            job_namespace: index.job_namespace.clone(),
        })
    }

    /// A run that is to end stops what it measures, before others measure more.
    fn is_urgent(index: &RunIndex, key: &Key) -> bool {
        index.runs.get(key).is_some_and(|run| run.spec.terminate)
    }

    fn publish(index: &RunIndex, key: &Key, metrics: &Metrics, now: Timestamp) {
        let figures = index.runs.get(key).map(|run| figures(run));
        metrics.run(&key.namespace, &key.name, figures, now);
    }

    fn measure(metrics: &Metrics, key: &Key, measured: Measured<'_>) {
        let (namespace, name) = (&key.namespace, &key.name);
        match measured {
            Measured::Reconciled(took) => metrics.run_reconciled(namespace, name, Some(took)),
            Measured::Failed => metrics.run_reconciled(namespace, name, None),
            // Neither is a metric of AnalysisRuns.
            Measured::Held(_) | Measured::Event(..) => {}
        }
    }

    fn command_line(command: &str, key: &Key) -> String {
        format!("kubectl argo rollouts {command} {} -n {}", key.name, key.namespace)
    }
}

/// What the metrics say of a run: each metric of its spec, with the phase of its result.
fn figures(run: &AnalysisRunView) -> RunFigures {
    let raw = run.metrics.as_array().map_or(&[][..], Vec::as_slice);
    let metrics = raw.iter().map(|raw| {
        let metric: Metric = decode(raw).0;
        let results = &run.status.metric_results;
        let result = results.iter().find(|result| result.name == metric.name);
        MetricFigures {
            provider: metrics::provider(&metric).map_or("", |provider| provider.kind()),
            is_dry: result.is_some_and(|result| result.dry_run),
            phase: result.map_or_else(String::new, |result| result.phase.clone()),
            name: metric.name,
        }
    });
    RunFigures { phase: run.status.phase.clone(), metrics: metrics.collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const UID: &str = "00000000-0000-4000-8000-000000000001";
    const OTHER: &str = "00000000-0000-4000-8000-000000000002";

    fn frame(name: &str, uid: &str, run: &str, status: Value) -> Frame {
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "shop", "uid": uid, "resourceVersion": "7",
                "labels": { "analysisrun.argoproj.io/uid": run } },
            "spec": { "metrics": [] }, "status": status,
        }))
        .unwrap()
    }

    fn key(name: &str) -> Key {
        Key { namespace: "shop".into(), name: name.into() }
    }

    fn jobs_of(index: &RunIndex, run: &str) -> Vec<String> {
        let (answers, recall) = (BTreeMap::new(), Recall::default());
        let world = AnalysisRuns::gather(index, &key(run), &answers, &recall).unwrap();
        world.jobs.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn a_job_wakes_the_run_whose_uid_it_carries() {
        let mut index = RunIndex::default();
        let job = frame("j1", OTHER, UID, json!({}));
        assert_eq!(index.apply_job(&job), [], "nobody knows the run yet");
        assert_eq!(index.apply_run(&frame("run", UID, "", json!({}))), [key("run")]);
        assert_eq!(jobs_of(&index, "run"), ["j1"]);
        let ended = frame("j1", OTHER, UID, json!({ "conditions": [{ "type": "Complete" }] }));
        assert_eq!(index.apply_job(&ended), [key("run")]);
        assert_eq!(index.apply_job(&frame("j2", OTHER, OTHER, json!({}))), [], "another's");
        assert_eq!(jobs_of(&index, "run"), ["j1"]);
        assert_eq!(index.remove_job(&key("j1")), [key("run")]);
        assert_eq!(jobs_of(&index, "run"), Vec::<String>::new());
    }

    #[test]
    fn the_metrics_name_the_provider_and_the_phase_of_each_metric() {
        let status = json!({ "phase": "Running",
            "metricResults": [{ "name": "a", "phase": "Failed", "dryRun": true }] });
        let mut run = frame("run", UID, "", status);
        run.spec = Arc::new(json!({ "metrics": [{ "name": "a", "provider": { "web": {} } },
            { "name": "b", "provider": { "job": {} } }] }));
        let RunFigures { phase, metrics } = figures(&AnalysisRunView::read(&run));
        let told: Vec<String> = metrics
            .iter()
            .map(|one| format!("{} {} {} {}", one.name, one.provider, one.is_dry, one.phase))
            .collect();
        assert_eq!(
            (&*phase, told.join("; ")),
            ("Running", "a Web true Failed; b Job false ".into())
        );
    }

    #[test]
    fn a_run_made_anew_has_none_of_the_jobs_of_the_one_before() {
        let mut index = RunIndex::default();
        index.apply_run(&frame("run", UID, "", json!({})));
        index.apply_job(&frame("j1", OTHER, UID, json!({})));
        index.apply_run(&frame("run", OTHER, "", json!({})));
        assert_eq!(jobs_of(&index, "run"), Vec::<String>::new());
        assert_eq!(index.remove_job(&key("j1")), [], "its run is gone");
        assert_eq!(index.remove_run(&key("run")), [key("run")]);
        assert!(index.keys.is_empty() && index.by_run.is_empty() && index.jobs.is_empty());
    }
}
