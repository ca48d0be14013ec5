//! What does the controller remember of Rollouts, their ReplicaSets and Services, and which keys do
//! these wake?

mod named;
mod orphans;
pub(crate) mod owned;
pub(crate) mod templates;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_api::names;
use gradus_api::rollout::RolloutStatus;
use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::{After, Event, EventKind, Kind, ObjectRef};
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::rollout::{Memo, Rollouts, claim, references, services, workload};
use gradus_engine::traffic::{self, RouteSelection, RouteView, RoutingObjects};
use gradus_engine::uid::Uid;
use gradus_engine::view::{set_weight, step};
use gradus_engine::world::{
    ExperimentSet, Known, Origin, ReplicaSetView, RolloutView, Route, RunView, ServiceView,
    TemplateView, WorkloadView, World,
};
use jiff::Timestamp;

use crate::telemetry::{Metrics, RolloutFigures};
use crate::watched::{
    Key, Measured, Reach, Scope, Selection, Shelf, Standing, Watched, references_to,
};
use named::Named;
use orphans::Orphans;
use owned::Owned;
use templates::TemplateIndex;

/// Kind of the owners.
const OWNER: &str = names::kind::ROLLOUT;

/// Kinds of workloads, which are watched only once a Rollout refers to one.
static WORKLOADS: [Kind; 3] = [kinds::DEPLOYMENT, kinds::REPLICA_SET, kinds::POD_TEMPLATE];

/// What is watched for Rollouts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The Rollouts themselves.
    Rollouts,
    /// ReplicaSets with our label.
    ReplicaSets,
    /// Services.
    Services,
    /// AnalysisRuns.
    AnalysisRuns,
    /// Experiments.
    Experiments,
    /// AnalysisTemplates.
    AnalysisTemplates,
    /// ClusterAnalysisTemplates.
    ClusterAnalysisTemplates,
    /// A kind that is watched once a Rollout names an object of it: whatever labels that has.
    Named(Kind),
}

/// Slim views of Rollouts, of what they control and of what they name.
#[derive(Default)]
pub struct RolloutIndex {
    rollouts: BTreeMap<Key, Arc<RolloutView>>,
    /// Rollouts that refer to a workload, with its template and selector filled in.
    resolved: BTreeMap<Key, Arc<RolloutView>>,
    sets: Owned<ReplicaSetView>,
    runs: Owned<RunView>,
    experiments: Owned<RunView>,
    experiment_sets: Owned<ExperimentSet>,
    templates: TemplateIndex,
    orphans: Orphans,
    services: BTreeMap<Key, Arc<ServiceView>>,
    named: Named,
    /// What cannot be read, in the server's words.
    unreadable: BTreeMap<Source, String>,
    /// Are load balancers asked whether they split the traffic as they were told?
    verifies: bool,
}

impl RolloutIndex {
    /// A Rollout.
    pub fn rollout(&self, key: &Key) -> Option<&Arc<RolloutView>> {
        self.rollouts.get(key)
    }

    /// All Rollouts, by namespace and name.
    pub fn rollouts(&self) -> impl Iterator<Item = (&Key, &Arc<RolloutView>)> {
        self.rollouts.iter()
    }

    fn apply_set(&mut self, frame: &Frame) -> Vec<Key> {
        let rollouts = &self.rollouts;
        let name_of = |key: &Key| Some(Arc::clone(&rollouts.get_key_value(key)?.0.name));
        let mut woken = self.sets.apply(frame, OWNER, ReplicaSetView::read, name_of);
        if let Some(orphan) = self.orphans.apply(frame, ReplicaSetView::read) {
            let namespace = &frame.meta.namespace;
            let first = Key { namespace: Arc::clone(namespace), name: "".into() };
            let here = rollouts.range(first..).take_while(|(key, _)| key.namespace == *namespace);
            let resolved = here.map(|(key, view)| (key, self.resolved.get(key).unwrap_or(view)));
            let matching = resolved.filter(|(_, view)| {
                let selector = view.spec.fields.selector.as_ref();
                selector.is_some_and(|selector| claim::matches(selector, orphan))
            });
            woken.extend(matching.map(|(key, _)| key.clone()));
        }
        let read = |frame: &Frame, _: Option<&ExperimentSet>| ExperimentSet::read(frame);
        let experiments =
            self.experiment_sets.apply(frame, names::kind::EXPERIMENT, read, |_| None);
        woken.extend(experiments.iter().filter_map(|key| self.experiments.owner(key)));
        woken
    }

    fn remove_set(&mut self, key: &Key) -> Vec<Key> {
        self.orphans.remove(key);
        let experiments = self.experiment_sets.remove(key);
        let mut woken = self.sets.remove(key);
        woken.extend(experiments.iter().filter_map(|key| self.experiments.owner(key)));
        woken
    }

    /// The version of a ReplicaSet, whoever controls it.
    fn set_version(&self, key: &Key) -> Option<u64> {
        let set = self.sets.get(key).or_else(|| self.orphans.get(key)).map(|set| set.version);
        set.or_else(|| Some(self.experiment_sets.get(key)?.version))
    }

    /// An AnalysisRun or an Experiment.
    fn apply_run(&mut self, kind: &Kind, frame: &Frame) -> Vec<Key> {
        let rollouts = &self.rollouts;
        let name_of = |key: &Key| Some(Arc::clone(&rollouts.get_key_value(key)?.0.name));
        let runs = if *kind == kinds::EXPERIMENT { &mut self.experiments } else { &mut self.runs };
        runs.apply(frame, OWNER, |frame, _| RunView::read(kind, frame), name_of)
    }

    fn apply_service(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let object = ObjectRef::new(kinds::SERVICE, &key.namespace, &key.name);
        self.services.insert(key, Arc::new(ServiceView::read(frame)));
        self.named.users(&object)
    }

    fn remove_service(&mut self, object: &ObjectRef) -> Vec<Key> {
        self.services.remove(&Key::of(object));
        self.named.users(object)
    }

    fn apply_template(&mut self, kind: &Kind, frame: &Frame) -> Vec<Key> {
        let object = ObjectRef::new(kind.clone(), &frame.meta.namespace, &frame.meta.name);
        self.templates.insert(object.clone(), TemplateView::read(frame));
        self.users_of_template(&object)
    }

    fn remove_template(&mut self, object: &ObjectRef) -> Vec<Key> {
        self.templates.remove(object);
        self.users_of_template(object)
    }

    fn apply_named(&mut self, kind: &Kind, frame: &Frame) -> Vec<Key> {
        let object = ObjectRef::new(kind.clone(), &frame.meta.namespace, &frame.meta.name);
        // Who selects it names it from now on, or no longer.
        let mut woken = self.named.label(&object, Some(Arc::clone(&frame.meta.labels)));
        woken.iter().for_each(|key| self.name(key));
        woken.extend(self.named.keep(kind, frame));
        self.resolve_all(woken)
    }

    fn remove_named(&mut self, object: &ObjectRef) -> Vec<Key> {
        let mut woken = self.named.drop(object);
        woken.extend(self.named.label(object, None));
        self.resolve_all(woken)
    }

    /// Why templates of a kind cannot be read, if so.
    fn unreadable_template(&self, kind: &Kind) -> Option<String> {
        let source = if *kind == kinds::CLUSTER_ANALYSIS_TEMPLATE {
            Source::ClusterAnalysisTemplates
        } else {
            Source::AnalysisTemplates
        };
        self.unreadable.get(&source).cloned()
    }

    /// Who names a template, or one that names it.
    fn users_of_template(&self, object: &ObjectRef) -> Vec<Key> {
        let concerned = self.templates.concerned(object);
        concerned.iter().flat_map(|template| self.named.users(template)).collect()
    }

    /// A Rollout, and which objects it names.
    fn apply_rollout(&mut self, frame: &Frame) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let earlier = self.rollouts.get(&key).cloned();
        let view = Arc::new(RolloutView::read(frame, earlier.as_deref()));
        let is_same = earlier.as_ref().is_some_and(|known| Arc::ptr_eq(&known.spec, &view.spec));
        self.rollouts.insert(key.clone(), view);
        if !is_same {
            self.name(&key);
        }
        self.resolve(&key);
        vec![key]
    }

    /// Notes which objects a Rollout names, and which those that are known name in turn.
    fn name(&mut self, key: &Key) {
        let Some(rollout) = self.rollouts.get(key) else { return };
        let known = |object: ObjectRef| match self.named.known(&object) {
            Known::Present(found) => Some((object, RouteView(found))),
            Known::Absent | Known::Unknown(_) => None,
        };
        let first = references::routes(rollout, &RoutingObjects::new());
        let seen: RoutingObjects = first.into_iter().filter_map(known).collect();
        let mut objects = references::of(rollout, &seen);
        self.named.select(key, traffic::selections(rollout));
        let named: BTreeSet<&ObjectRef> = objects.iter().collect();
        let mut selected = self.named.selected(key);
        selected.retain(|object| !named.contains(object));
        objects.extend(selected);
        self.named.name(key, objects);
    }

    /// A Rollout of whose spec nothing can be said but that it cannot be read.
    fn refuse_rollout(&mut self, frame: &Frame, message: &str) -> Vec<Key> {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let bare = Frame { spec: Arc::default(), ..frame.clone() };
        let mut view = RolloutView::read(&bare, None);
        Arc::make_mut(&mut view.spec).errors = vec![format!("spec: cannot be read: {message}")];
        self.named.select(&key, Vec::new());
        self.named.name(&key, Vec::new());
        self.resolved.remove(&key);
        self.rollouts.insert(key.clone(), Arc::new(view));
        vec![key]
    }

    fn remove_rollout(&mut self, key: &Key) -> Vec<Key> {
        self.named.select(key, Vec::new());
        self.named.name(key, Vec::new());
        self.resolved.remove(key);
        self.rollouts.remove(key).map(|_| key.clone()).into_iter().collect()
    }

    /// Fills in what a Rollout takes from the workload it refers to, or takes that back.
    fn resolve(&mut self, key: &Key) {
        let Some(rollout) = self.rollouts.get(key) else { return };
        let is_referring = rollout.spec.origin == Origin::Referred;
        let workload = workload::reference(rollout).filter(|_| is_referring);
        match workload.map(|object| self.named.known(&object)) {
            Some(Known::Present(found)) => {
                let earlier = self.resolved.get(key).map(Arc::as_ref);
                let resolved = rollout.resolved(&found, earlier);
                self.resolved.insert(key.clone(), Arc::new(resolved));
            }
            _ => drop(self.resolved.remove(key)),
        }
    }

    /// The same for all who name an object that has changed: it may name others.
    fn resolve_all(&mut self, woken: Vec<Key>) -> Vec<Key> {
        for key in &woken {
            self.name(key);
            self.resolve(key);
        }
        woken
    }

    /// The workload a Rollout refers to, there or not.
    fn workload_of(&self, rollout: &RolloutView) -> Option<Known<WorkloadView>> {
        let object = workload::reference(rollout)?;
        let known = match self.named.known(&object) {
            Known::Present(found) => Known::Present(WorkloadView::read(object.clone(), &found)),
            Known::Absent => Known::Absent,
            Known::Unknown(message) => Known::Unknown(message),
        };
        Some(self.readable(&Source::Named(object.kind), known))
    }

    /// The Services a Rollout names, there or not.
    fn services_of(&self, rollout: &RolloutView) -> BTreeMap<Arc<str>, Known<Arc<ServiceView>>> {
        let named = services::references(&rollout.spec.fields).map(|named| {
            let key = Key { namespace: Arc::clone(&rollout.namespace), name: named.name.into() };
            let found = self.services.get(&key).cloned();
            (
                key.name,
                self.readable(&Source::Services, found.map_or(Known::Absent, Known::Present)),
            )
        });
        named.collect()
    }

    /// The routing objects a Rollout names, there or not.
    fn routes_of(&self, rollout: &RolloutView) -> Vec<Route> {
        let key = Key::new(&rollout.namespace, &rollout.name);
        let named = self.named.of(&key).iter().filter(|object| traffic::routes(&object.kind));
        let route = |object: &ObjectRef| {
            let source = Source::Named(object.kind.clone());
            let known = self.readable(&source, self.named.known(object));
            Route { object: object.clone(), known }
        };
        // As long as not all are known that may be selected, nobody can tell which there are.
        let unlisted = |selection: &RouteSelection| {
            let object = ObjectRef::new(selection.kind.clone(), &selection.namespace, &"".into());
            let known =
                self.readable(&Source::Named(object.kind.clone()), Known::Unknown(String::new()));
            Route { object, known }
        };
        let unlisted = self.named.unlisted(&key).into_iter().map(unlisted);
        named.map(route).chain(unlisted).collect()
    }

    /// A Rollout's ReplicaSets, by creation time, then name.
    fn sets_of(&self, owner: Uid) -> Known<Vec<Arc<ReplicaSetView>>> {
        let mut sets = self.sets.of(owner);
        sets.sort_by_key(|set| set.created);
        self.readable(&Source::ReplicaSets, Known::Present(sets))
    }

    /// What is known of objects of a source, unless that cannot be read.
    fn readable<T>(&self, source: &Source, known: Known<T>) -> Known<T> {
        match self.unreadable.get(source) {
            Some(message) => Known::Unknown(message.clone()),
            None => known,
        }
    }
}

impl Watched for Rollouts {
    type Index = RolloutIndex;
    type Source = Source;

    fn index(scope: &Scope) -> RolloutIndex {
        RolloutIndex { verifies: scope.verifies, ..RolloutIndex::default() }
    }

    fn standing(world: &World, decided: Option<&RolloutStatus>) -> Standing {
        let (spec, annotations) = (&world.rollout.spec.fields, &world.rollout.annotations);
        let status = decided.unwrap_or(&world.rollout.status);
        // What is promoted has everything, by the way of the stable side.
        let weights = status.canary.weights.as_ref().filter(|_| !status.is_promoted());
        let routed = weights.map(|weights| weights.canary.weight);
        let canary = spec.strategy.canary.as_ref();
        let weight = canary.map(|canary| routed.unwrap_or_else(|| set_weight(canary, status)));
        Standing {
            rollout: Some(Arc::clone(&world.rollout.name)),
            revision: annotations.get(names::annotation::REVISION).map(ToString::to_string),
            step: step(spec, status),
            weight,
        }
    }

    fn sources() -> Vec<Source> {
        vec![
            Source::Rollouts,
            Source::ReplicaSets,
            Source::Services,
            Source::AnalysisRuns,
            Source::Experiments,
            Source::AnalysisTemplates,
            Source::ClusterAnalysisTemplates,
        ]
    }

    fn kind_of(source: &Source) -> Kind {
        match source {
            Source::Rollouts => kinds::ROLLOUT,
            Source::ReplicaSets => kinds::REPLICA_SET,
            Source::Services => kinds::SERVICE,
            Source::AnalysisRuns => kinds::ANALYSIS_RUN,
            Source::Experiments => kinds::EXPERIMENT,
            Source::AnalysisTemplates => kinds::ANALYSIS_TEMPLATE,
            Source::ClusterAnalysisTemplates => kinds::CLUSTER_ANALYSIS_TEMPLATE,
            Source::Named(kind) => kind.clone(),
        }
    }

    fn selection(source: &Source, scope: &Scope) -> Option<Selection> {
        let kind = Self::kind_of(source);
        match source {
            Source::ReplicaSets => Some(scope.labelled(kind, names::label::POD_TEMPLATE_HASH)),
            Source::Services | Source::Named(_) => Some(scope.all(kind)),
            Source::Rollouts
            | Source::AnalysisRuns
            | Source::Experiments
            | Source::AnalysisTemplates => Some(scope.of_instance(kind)),
            Source::ClusterAnalysisTemplates => scope.of_instance_in_cluster(kind),
        }
    }

    fn shelf(source: &Source) -> Shelf<RolloutIndex> {
        match source {
            Source::Rollouts => Shelf {
                apply: |index, _, frame| index.apply_rollout(frame),
                remove: |index, object| index.remove_rollout(&Key::of(object)),
                version: |index, object| Some(index.rollouts.get(&Key::of(object))?.version),
                objects: |index, kind| references_to(kind, index.rollouts.keys()),
            },
            Source::ReplicaSets => Shelf {
                apply: |index, _, frame| index.apply_set(frame),
                remove: |index, object| index.remove_set(&Key::of(object)),
                version: |index, object| index.set_version(&Key::of(object)),
                objects: |index, kind| {
                    let own = index.sets.keys().chain(index.orphans.keys());
                    references_to(kind, own.chain(index.experiment_sets.keys()))
                },
            },
            Source::Services => Shelf {
                apply: |index, _, frame| index.apply_service(frame),
                remove: |index, object| index.remove_service(object),
                version: |index, object| Some(index.services.get(&Key::of(object))?.version),
                objects: |index, kind| references_to(kind, index.services.keys()),
            },
            Source::AnalysisRuns => Shelf {
                apply: |index, kind, frame| index.apply_run(kind, frame),
                remove: |index, object| index.runs.remove(&Key::of(object)),
                version: |index, object| Some(index.runs.get(&Key::of(object))?.version),
                objects: |index, kind| references_to(kind, index.runs.keys()),
            },
            Source::Experiments => Shelf {
                apply: |index, kind, frame| index.apply_run(kind, frame),
                remove: |index, object| index.experiments.remove(&Key::of(object)),
                version: |index, object| Some(index.experiments.get(&Key::of(object))?.version),
                objects: |index, kind| references_to(kind, index.experiments.keys()),
            },
            Source::AnalysisTemplates | Source::ClusterAnalysisTemplates => Shelf {
                apply: |index, kind, frame| index.apply_template(kind, frame),
                remove: |index, object| index.remove_template(object),
                version: |index, object| Some(index.templates.get(object)?.version),
                objects: |index, kind| index.templates.objects(kind),
            },
            Source::Named(_) => Shelf {
                apply: |index, kind, frame| index.apply_named(kind, frame),
                remove: |index, object| index.remove_named(object),
                version: |index, object| index.named.version(object),
                objects: |index, kind| index.named.objects(kind),
            },
        }
    }

    fn refuse(index: &mut RolloutIndex, source: &Source, frame: &Frame, message: &str) -> Vec<Key> {
        match source {
            Source::Rollouts => index.refuse_rollout(frame, message),
            // What names the object finds it as it was, or not there.
            Source::ReplicaSets
            | Source::Services
            | Source::AnalysisRuns
            | Source::Experiments
            | Source::AnalysisTemplates
            | Source::ClusterAnalysisTemplates
            | Source::Named(_) => Vec::new(),
        }
    }

    fn demands(index: &RolloutIndex) -> Vec<Source> {
        index.named.demands().into_iter().map(Source::Named).collect()
    }

    fn reach(index: &mut RolloutIndex, source: &Source, reach: Reach<'_>) -> Vec<Key> {
        let was = match reach {
            Reach::Listed => index.unreadable.remove(source),
            Reach::Unreadable(message) => {
                index.unreadable.insert(source.clone(), message.to_owned())
            }
        };
        let is_news = match reach {
            Reach::Listed => was.is_some(),
            Reach::Unreadable(message) => was.as_deref() != Some(message),
        };
        let mut woken = match (source, reach) {
            (Source::Named(kind), Reach::Listed) => index.named.listed(kind),
            _ => Vec::new(),
        };
        if is_news {
            woken.extend(index.rollouts.keys().cloned());
        }
        woken
    }

    fn unseen(index: &RolloutIndex, key: &Key) -> Option<(Source, ObjectRef)> {
        let object = index.named.unseen(key)?;
        Some((Source::Named(object.kind.clone()), object.clone()))
    }

    fn gather(
        index: &RolloutIndex,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<Memo>,
    ) -> Option<World> {
        let rollout = index.resolved.get(key).or_else(|| index.rollouts.get(key))?;
        let experiments = index.experiments.of(rollout.uid);
        let experiment_sets = experiments.iter().flat_map(|one| index.experiment_sets.of(one.uid));
        Some(World {
            rollout: Arc::clone(rollout),
            replica_sets: index.sets_of(rollout.uid),
            orphans: index
                .orphans
                .matching(&rollout.namespace, rollout.spec.fields.selector.as_ref()),
            services: index.services_of(rollout),
            routes: index.routes_of(rollout),
            runs: index.readable(&Source::AnalysisRuns, Known::Present(index.runs.of(rollout.uid))),
            experiment_sets: experiment_sets.collect(),
            experiments: index.readable(&Source::Experiments, Known::Present(experiments)),
            templates: index.templates.of(rollout, |kind| index.unreadable_template(kind)),
            workload: index.workload_of(rollout),
            verifies: index.verifies,
            answers: answers.clone(),
            recall: recall.clone(),
        })
    }

    fn is_urgent(index: &RolloutIndex, key: &Key) -> bool {
        index.rollouts.get(key).is_some_and(|rollout| rollout.status.abort)
    }

    fn publish(index: &RolloutIndex, key: &Key, metrics: &Metrics, now: Timestamp) {
        match index.rollout(key) {
            Some(rollout) => metrics.rollout(&key.namespace, &key.name, figures(rollout)),
            None => metrics.deleted(&key.namespace, &key.name, now),
        }
    }

    fn measure(metrics: &Metrics, key: &Key, measured: Measured<'_>) {
        let (namespace, name) = (&key.namespace, &key.name);
        match measured {
            Measured::Reconciled(took) => metrics.reconciled(namespace, name, took),
            Measured::Failed => metrics.reconcile_failed(namespace, name),
            Measured::Held(held) => metrics.held(namespace, name, held),
            Measured::Event(kind, reason) => metrics.event(namespace, name, kind, reason),
        }
    }

    fn command_line(command: &str, key: &Key) -> String {
        format!("kubectl argo rollouts {command} {} -n {}", key.name, key.namespace)
    }

    fn farewell(object: &ObjectRef) -> Option<Event> {
        Some(Event {
            about: object.clone(),
            uid: None,
            kind: EventKind::Normal,
            reason: names::event::ROLLOUT_DELETED.into(),
            message: format!("Rollout {}/{} is deleted.", object.name, object.namespace),
            after: After::Status,
        })
    }
}

fn figures(rollout: &RolloutView) -> RolloutFigures {
    let (spec, status) = (&rollout.spec.fields, &rollout.status);
    let strategy = match (&spec.strategy.canary, &spec.strategy.blue_green) {
        (Some(_), _) => "canary",
        (None, Some(_)) => "blueGreen",
        (None, None) => "none",
    };
    RolloutFigures {
        strategy,
        traffic_router: traffic::metric_label(spec),
        phase: metric_phase(status),
        desired: spec.replicas_or_default(),
        replicas: status.replicas,
        available: status.available_replicas,
        updated: status.updated_replicas,
        duration: status.duration.as_deref().cloned(),
    }
}

/// The phase as metrics name it, which is not `status.phase`: from the reason of the Progressing
/// condition, unless the spec is refused.
fn metric_phase(status: &RolloutStatus) -> &'static str {
    use names::{condition, reason};
    if status.condition(condition::INVALID_SPEC).is_some() {
        return "InvalidSpec";
    }
    match status.condition(condition::PROGRESSING).map(|known| known.reason.as_str()) {
        Some(reason::NEW_REPLICA_SET_AVAILABLE) => "Completed",
        Some(reason::ROLLOUT_PAUSED) => "Paused",
        Some(reason::REPLICA_SET_CREATE_ERROR) => "Error",
        Some(reason::PROGRESS_DEADLINE_EXCEEDED) => "Timeout",
        Some(reason::ROLLOUT_ABORTED) => "Abort",
        _ => "Progressing",
    }
}
