//! What the controller remembers of Experiments, of the ReplicaSets, Services and AnalysisRuns they
//! control, and of the templates their analyses name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_api::names;
use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::experiment::{ExperimentService, ExperimentView, ExperimentWorld, Experiments};
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::rollout::references;
use gradus_engine::world::{Known, ReplicaSetView, RunView, TemplateView};
use jiff::Timestamp;

use crate::rollouts::owned::Owned;
use crate::rollouts::templates::TemplateIndex;
use crate::telemetry::Metrics;
use crate::watched::{Key, Measured, Reach, Scope, Selection, Shelf, Watched, references_to};

/// Experiments, and what they control and name.
#[derive(Default)]
pub struct ExperimentIndex {
    experiments: BTreeMap<Key, Arc<ExperimentView>>,
    sets: Owned<ReplicaSetView>,
    services: Owned<ExperimentService>,
    runs: Owned<RunView>,
    templates: TemplateIndex,
    /// Who names a template.
    users: BTreeMap<ObjectRef, BTreeSet<Key>>,
    /// What cannot be read, in the server's words.
    unreadable: BTreeMap<Source, String>,
}

/// What is watched for Experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The Experiments of this instance.
    Experiments,
    /// ReplicaSets with our label.
    ReplicaSets,
    /// Services.
    Services,
    /// AnalysisRuns.
    AnalysisRuns,
    /// AnalysisTemplates.
    AnalysisTemplates,
    /// ClusterAnalysisTemplates.
    ClusterAnalysisTemplates,
}

impl ExperimentIndex {
    fn apply_experiment(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let earlier = self.experiments.get(&key).cloned();
        let view = Arc::new(ExperimentView::read(frame, earlier.as_deref()));
        if earlier.as_ref().is_none_or(|known| !Arc::ptr_eq(&known.spec, &view.spec)) {
            self.forget_named(&key, earlier.as_deref());
            for object in named(&view) {
                self.users.entry(object).or_default().insert(key.clone());
            }
        }
        self.experiments.insert(key.clone(), view);
        vec![key]
    }

    fn remove_experiment(&mut self, key: &Key) -> Vec<Key> {
        let Some(former) = self.experiments.remove(key) else { return Vec::new() };
        self.forget_named(key, Some(&former));
        vec![key.clone()]
    }

    /// An Experiment no longer names the templates that it did.
    fn forget_named(&mut self, key: &Key, former: Option<&ExperimentView>) {
        for object in former.into_iter().flat_map(named) {
            if let Some(users) = self.users.get_mut(&object) {
                users.remove(key);
                if users.is_empty() {
                    self.users.remove(&object);
                }
            }
        }
    }

    fn apply_template(&mut self, kind: &Kind, frame: &Frame) -> Vec<Key> {
        let object = ObjectRef::new(kind.clone(), &frame.meta.namespace, &frame.meta.name);
        self.templates.insert(object.clone(), TemplateView::read(frame));
        self.users_of(&object)
    }

    fn remove_template(&mut self, object: &ObjectRef) -> Vec<Key> {
        self.templates.remove(object);
        self.users_of(object)
    }

    /// Who names a template, or one that names it.
    fn users_of(&self, object: &ObjectRef) -> Vec<Key> {
        let concerned = self.templates.concerned(object);
        let users = concerned.iter().filter_map(|template| self.users.get(template));
        let users: BTreeSet<Key> = users.flatten().cloned().collect();
        users.into_iter().collect()
    }

    /// What is known of objects of a source, unless that cannot be read.
    fn readable<T>(&self, source: Source, known: T) -> Known<T> {
        match self.unreadable.get(&source) {
            Some(message) => Known::Unknown(message.clone()),
            None => Known::Present(known),
        }
    }

    fn unreadable_template(&self, kind: &Kind) -> Option<String> {
        let source = if *kind == kinds::CLUSTER_ANALYSIS_TEMPLATE {
            Source::ClusterAnalysisTemplates
        } else {
            Source::AnalysisTemplates
        };
        self.unreadable.get(&source).cloned()
    }
}

/// The templates that an Experiment names.
fn named(experiment: &ExperimentView) -> Vec<ObjectRef> {
    let namespace = &experiment.namespace;
    let named = experiment.templates();
    named.map(|(name, is_cluster)| references::template(namespace, name, is_cluster)).collect()
}

/// The shelf of objects that Experiments control.
macro_rules! owned {
    ($field:ident, $read:expr) => {
        Shelf {
            apply: |index, _, frame| {
                index.$field.apply(frame, names::kind::EXPERIMENT, $read, |_| None)
            },
            remove: |index, object| index.$field.remove(&Key::of(object)),
            version: |index, object| Some(index.$field.get(&Key::of(object))?.version),
            objects: |index, kind| references_to(kind, index.$field.keys()),
        }
    };
}

impl Watched for Experiments {
    type Index = ExperimentIndex;
    type Source = Source;

    fn sources() -> Vec<Source> {
        vec![
            Source::Experiments,
            Source::ReplicaSets,
            Source::Services,
            Source::AnalysisRuns,
            Source::AnalysisTemplates,
            Source::ClusterAnalysisTemplates,
        ]
    }

    fn kind_of(source: &Source) -> Kind {
        match source {
            Source::Experiments => kinds::EXPERIMENT,
            Source::ReplicaSets => kinds::REPLICA_SET,
            Source::Services => kinds::SERVICE,
            Source::AnalysisRuns => kinds::ANALYSIS_RUN,
            Source::AnalysisTemplates => kinds::ANALYSIS_TEMPLATE,
            Source::ClusterAnalysisTemplates => kinds::CLUSTER_ANALYSIS_TEMPLATE,
        }
    }

    fn selection(source: &Source, scope: &Scope) -> Option<Selection> {
        let kind = Self::kind_of(source);
        match source {
            Source::ReplicaSets => Some(scope.labelled(kind, names::label::POD_TEMPLATE_HASH)),
            Source::Services => Some(scope.all(kind)),
            Source::Experiments | Source::AnalysisRuns | Source::AnalysisTemplates => {
                Some(scope.of_instance(kind))
            }
            Source::ClusterAnalysisTemplates => scope.of_instance_in_cluster(kind),
        }
    }

    fn shelf(source: &Source) -> Shelf<ExperimentIndex> {
        match source {
            Source::Experiments => Shelf {
                apply: |index, _, frame| index.apply_experiment(frame),
                remove: |index, object| index.remove_experiment(&Key::of(object)),
                version: |index, object| Some(index.experiments.get(&Key::of(object))?.version),
                objects: |index, kind| references_to(kind, index.experiments.keys()),
            },
            Source::ReplicaSets => owned!(sets, ReplicaSetView::read),
            Source::Services => owned!(services, |frame, _| ExperimentService::read(frame)),
            Source::AnalysisRuns => {
                owned!(runs, |frame, _| RunView::read(&kinds::ANALYSIS_RUN, frame))
            }
            Source::AnalysisTemplates | Source::ClusterAnalysisTemplates => Shelf {
                apply: |index, kind, frame| index.apply_template(kind, frame),
                remove: |index, object| index.remove_template(object),
                version: |index, object| Some(index.templates.get(object)?.version),
                objects: |index, kind| index.templates.objects(kind),
            },
        }
    }

    fn reach(index: &mut ExperimentIndex, source: &Source, reach: Reach<'_>) -> Vec<Key> {
        let is_news = match reach {
            Reach::Listed => index.unreadable.remove(source).is_some(),
            Reach::Unreadable(message) => {
                let before = index.unreadable.insert(*source, message.to_owned());
                before.as_deref() != Some(message)
            }
        };
        if is_news { index.experiments.keys().cloned().collect() } else { Vec::new() }
    }

    fn gather(
        index: &ExperimentIndex,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<()>,
    ) -> Option<ExperimentWorld> {
        let experiment = index.experiments.get(key)?;
        let uid = experiment.uid;
        let templates = index
            .templates
            .all(&experiment.namespace, named(experiment), |kind| index.unreadable_template(kind));
        Some(ExperimentWorld {
            experiment: Arc::clone(experiment),
            replica_sets: index.readable(Source::ReplicaSets, index.sets.of(uid)),
            services: index.readable(Source::Services, index.services.of(uid)),
            runs: index.readable(Source::AnalysisRuns, index.runs.of(uid)),
            templates,
            answers: answers.clone(),
            recall: recall.clone(),
        })
    }

    /// One that is to end stops its pods before others start more.
    fn is_urgent(index: &ExperimentIndex, key: &Key) -> bool {
        index.experiments.get(key).is_some_and(|experiment| experiment.spec.terminate)
    }

    fn publish(index: &ExperimentIndex, key: &Key, metrics: &Metrics, now: Timestamp) {
        let phase = index.experiments.get(key).map(|experiment| experiment.status.phase.clone());
        metrics.experiment(&key.namespace, &key.name, phase, now);
    }

    fn measure(metrics: &Metrics, key: &Key, measured: Measured<'_>) {
        let (namespace, name) = (&key.namespace, &key.name);
        match measured {
            Measured::Reconciled(took) => {
                metrics.experiment_reconciled(namespace, name, Some(took))
            }
            Measured::Failed => metrics.experiment_reconciled(namespace, name, None),
            // Neither is a metric of Experiments.
            Measured::Held(_) | Measured::Event(..) => {}
        }
    }

    fn command_line(command: &str, key: &Key) -> String {
        format!("kubectl argo rollouts {command} {} -n {}", key.name, key.namespace)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const UID: &str = "00000000-0000-4000-8000-000000000001";

    fn frame(name: &str, uid: &str, owner: Option<&str>, spec: Value) -> Frame {
        let owners = owner
            .map(|kind| json!({ "kind": kind, "name": "study", "uid": UID, "controller": true }));
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "shop", "uid": uid, "resourceVersion": "7",
                "labels": { "rollouts-pod-template-hash": "abc" },
                "ownerReferences": owners.into_iter().collect::<Vec<_>>() },
            "spec": spec,
        }))
        .unwrap()
    }

    fn key(name: &str) -> Key {
        Key { namespace: "shop".into(), name: name.into() }
    }

    fn apply(index: &mut ExperimentIndex, source: Source, frame: &Frame) -> Vec<Key> {
        (Experiments::shelf(&source).apply)(index, &Experiments::kind_of(&source), frame)
    }

    fn world(index: &ExperimentIndex) -> ExperimentWorld {
        Experiments::gather(index, &key("study"), &BTreeMap::new(), &Recall::default()).unwrap()
    }

    #[test]
    fn what_an_experiment_controls_wakes_it_and_what_a_rollout_controls_does_not() {
        let mut index = ExperimentIndex::default();
        let study = frame("study", UID, None, json!({ "analyses": [] }));
        assert_eq!(apply(&mut index, Source::Experiments, &study), [key("study")]);
        for source in [Source::ReplicaSets, Source::Services, Source::AnalysisRuns] {
            let own = frame("own", "", Some("Experiment"), json!({}));
            assert_eq!(apply(&mut index, source, &own), [key("study")], "{source:?}");
            let other = frame("other", "", Some("Rollout"), json!({}));
            assert_eq!(apply(&mut index, source, &other), [], "{source:?}");
        }
        let found = world(&index);
        assert_eq!(found.replica_sets.present().unwrap().len(), 1);
        assert_eq!(found.services.present().unwrap().len(), 1);
        assert_eq!(found.runs.present().unwrap().len(), 1);
        let woken = Experiments::reach(
            &mut index,
            &Source::Services,
            Reach::Unreadable("services is forbidden"),
        );
        assert_eq!(woken, [key("study")]);
        assert_eq!(world(&index).services, Known::Unknown("services is forbidden".to_owned()));
        let target = ObjectRef::new(kinds::EXPERIMENT, &"shop".into(), &"study".into());
        let gone = (Experiments::shelf(&Source::Experiments).remove)(&mut index, &target);
        assert_eq!(gone, [key("study")]);
        assert!(index.users.is_empty());
    }

    #[test]
    fn a_template_that_is_no_longer_named_wakes_nobody() {
        let mut index = ExperimentIndex::default();
        let names =
            |template: &str| json!({ "analyses": [{ "name": "n", "templateName": template }] });
        let template = |index: &mut ExperimentIndex, name: &str| {
            apply(index, Source::AnalysisTemplates, &frame(name, "", None, json!({})))
        };
        apply(&mut index, Source::Experiments, &frame("study", UID, None, names("one")));
        assert_eq!(template(&mut index, "one"), [key("study")]);
        apply(&mut index, Source::Experiments, &frame("study", UID, None, names("two")));
        assert_eq!((template(&mut index, "one"), index.users.len()), (Vec::new(), 1));
        assert_eq!(template(&mut index, "two"), [key("study")]);
    }

    #[test]
    fn a_template_wakes_who_names_it_over_others_too() {
        let mut index = ExperimentIndex::default();
        let spec = json!({ "analyses": [{ "name": "n", "templateName": "outer" }] });
        apply(&mut index, Source::Experiments, &frame("study", UID, None, spec));
        let outer = json!({ "templates": [{ "templateName": "inner" }] });
        let outer = frame("outer", "", None, outer);
        assert_eq!(apply(&mut index, Source::AnalysisTemplates, &outer), [key("study")]);
        let inner = frame("inner", "", None, json!({}));
        assert_eq!(apply(&mut index, Source::AnalysisTemplates, &inner), [key("study")]);
        let stranger = frame("stranger", "", None, json!({}));
        assert_eq!(apply(&mut index, Source::AnalysisTemplates, &stranger), []);
        assert_eq!(world(&index).templates.namespaced.len(), 2);
    }
}
