//! What does the controller remember of Rollouts, their ReplicaSets and Services, and which keys do
//! these wake?

mod named;
mod orphans;
mod owned;
mod templates;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_api::names;
use gradus_engine::ask::{Answer, AskId, Recall};
use gradus_engine::decision::{After, Event, EventKind, Kind, ObjectRef};
use gradus_engine::frame::Frame;
use gradus_engine::rollout::{Memo, Rollouts, claim, references, services, workload};
use gradus_engine::uid::Uid;
use gradus_engine::world::{
    Known, Origin, ReplicaSetView, RolloutView, Route, RunView, ServiceView, TemplateView,
    WorkloadView, World,
};
use gradus_engine::{kinds, traffic};
use jiff::Timestamp;

use crate::telemetry::{Metrics, RolloutFigures};
use crate::watched::{Key, Reach, Watch, Watched};
use named::Named;
use orphans::Orphans;
use owned::Owned;
use templates::TemplateIndex;

/// Kinds of workloads, which are watched only once a Rollout refers to one.
static WORKLOADS: [Kind; 3] = [kinds::DEPLOYMENT, kinds::REFERRED_REPLICA_SET, kinds::POD_TEMPLATE];

/// Slim views of Rollouts, of what they control and of what they name.
#[derive(Default)]
pub struct RolloutIndex {
    rollouts: BTreeMap<Key, Arc<RolloutView>>,
    /// Rollouts that refer to a workload, with its template and selector filled in.
    resolved: BTreeMap<Key, Arc<RolloutView>>,
    sets: Owned<ReplicaSetView>,
    runs: Owned<RunView>,
    experiments: Owned<RunView>,
    templates: TemplateIndex,
    orphans: Orphans,
    services: BTreeMap<Key, Arc<ServiceView>>,
    named: Named,
    /// Kinds that cannot be read, in the server's words.
    unreadable: BTreeMap<Kind, String>,
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
        let mut woken = self.sets.apply(frame, ReplicaSetView::read, name_of);
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
        woken
    }

    fn remove_set(&mut self, key: &Key) -> Vec<Key> {
        self.orphans.remove(key);
        self.sets.remove(key)
    }

    /// A ReplicaSet, whoever controls it.
    fn set(&self, key: &Key) -> Option<&Arc<ReplicaSetView>> {
        self.sets.get(key).or_else(|| self.orphans.get(key))
    }

    /// An AnalysisRun or an Experiment.
    fn apply_run(&mut self, kind: &Kind, frame: &Frame) -> Vec<Key> {
        let rollouts = &self.rollouts;
        let name_of = |key: &Key| Some(Arc::clone(&rollouts.get_key_value(key)?.0.name));
        let runs = if *kind == kinds::EXPERIMENT { &mut self.experiments } else { &mut self.runs };
        runs.apply(frame, |frame, _| RunView::read(kind, frame), name_of)
    }

    fn runs_of(&self, kind: &Kind) -> Option<&Owned<RunView>> {
        if *kind == kinds::ANALYSIS_RUN {
            return Some(&self.runs);
        }
        (*kind == kinds::EXPERIMENT).then_some(&self.experiments)
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
        if !is_same {
            self.named.name(&key, references::of(&view));
        }
        self.rollouts.insert(key.clone(), view);
        self.resolve(&key);
        vec![key]
    }

    fn remove_rollout(&mut self, key: &Key) -> Vec<Key> {
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

    /// The same for all who name an object that has changed.
    fn resolve_all(&mut self, woken: Vec<Key>) -> Vec<Key> {
        for key in &woken {
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
        Some(self.readable(&object.kind, known))
    }

    /// The Services a Rollout names, there or not.
    fn services_of(&self, rollout: &RolloutView) -> BTreeMap<Arc<str>, Known<Arc<ServiceView>>> {
        let named = services::references(&rollout.spec.fields).map(|named| {
            let key = Key { namespace: Arc::clone(&rollout.namespace), name: named.name.into() };
            let found = self.services.get(&key).cloned();
            (key.name, self.readable(&kinds::SERVICE, found.map_or(Known::Absent, Known::Present)))
        });
        named.collect()
    }

    /// The routing objects a Rollout names, there or not.
    fn routes_of(&self, rollout: &RolloutView) -> Vec<Route> {
        let named = references::routes(rollout).into_iter().map(|object| {
            let known = self.readable(&object.kind, self.named.known(&object));
            Route { object, known }
        });
        named.collect()
    }

    /// A Rollout's ReplicaSets, by creation time, then name.
    fn sets_of(&self, owner: Uid) -> Known<Vec<Arc<ReplicaSetView>>> {
        let mut sets = self.sets.of(owner);
        sets.sort_by_key(|set| set.created);
        self.readable(&kinds::REPLICA_SET, Known::Present(sets))
    }

    /// What is known of objects of a kind, unless that kind cannot be read.
    fn readable<T>(&self, kind: &Kind, known: Known<T>) -> Known<T> {
        match self.unreadable.get(kind) {
            Some(message) => Known::Unknown(message.clone()),
            None => known,
        }
    }
}

impl Watched for Rollouts {
    type Index = RolloutIndex;
    const IS_MEASURED: bool = true;

    fn watches(instance_id: &str) -> Vec<Watch> {
        vec![
            Watch::of_instance(kinds::ROLLOUT, instance_id),
            Watch {
                kind: kinds::REPLICA_SET,
                labels: Some(names::label::POD_TEMPLATE_HASH.to_owned()),
            },
            Watch { kind: kinds::SERVICE, labels: None },
            Watch::of_instance(kinds::ANALYSIS_RUN, instance_id),
            Watch::of_instance(kinds::EXPERIMENT, instance_id),
            Watch::of_instance(kinds::ANALYSIS_TEMPLATE, instance_id),
            Watch::of_instance(kinds::CLUSTER_ANALYSIS_TEMPLATE, instance_id),
        ]
    }

    fn is_cluster_scoped(kind: &Kind) -> bool {
        *kind == kinds::CLUSTER_ANALYSIS_TEMPLATE
    }

    fn apply(index: &mut RolloutIndex, kind: &Kind, frame: &Frame) -> Vec<Key> {
        if *kind == kinds::ROLLOUT {
            return index.apply_rollout(frame);
        }
        if *kind == kinds::REPLICA_SET {
            return index.apply_set(frame);
        }
        if *kind == kinds::SERVICE {
            let key = Key::new(&frame.meta.namespace, &frame.meta.name);
            let object = ObjectRef::new(kinds::SERVICE, &key.namespace, &key.name);
            index.services.insert(key, Arc::new(ServiceView::read(frame)));
            return index.named.users(&object);
        }
        if index.runs_of(kind).is_some() {
            return index.apply_run(kind, frame);
        }
        if templates::is_template(kind) {
            let object = ObjectRef::new(kind.clone(), &frame.meta.namespace, &frame.meta.name);
            index.templates.insert(object.clone(), TemplateView::read(frame));
            return index.users_of_template(&object);
        }
        let woken = index.named.keep(kind, frame);
        index.resolve_all(woken)
    }

    fn remove(index: &mut RolloutIndex, object: &ObjectRef) -> Vec<Key> {
        let key = Key::new(&object.namespace, &object.name);
        if object.kind == kinds::REPLICA_SET {
            return index.remove_set(&key);
        }
        if object.kind == kinds::SERVICE {
            index.services.remove(&key);
            return index.named.users(object);
        }
        if object.kind == kinds::ANALYSIS_RUN {
            return index.runs.remove(&key);
        }
        if object.kind == kinds::EXPERIMENT {
            return index.experiments.remove(&key);
        }
        if templates::is_template(&object.kind) {
            index.templates.remove(object);
            return index.users_of_template(object);
        }
        if named::is_on_demand(&object.kind) {
            let woken = index.named.drop(object);
            return index.resolve_all(woken);
        }
        index.remove_rollout(&key)
    }

    fn version(index: &RolloutIndex, object: &ObjectRef) -> Option<u64> {
        let key = Key::new(&object.namespace, &object.name);
        if object.kind == kinds::ROLLOUT {
            return index.rollouts.get(&key).map(|view| view.version);
        }
        if object.kind == kinds::REPLICA_SET {
            return index.set(&key).map(|view| view.version);
        }
        if object.kind == kinds::SERVICE {
            return index.services.get(&key).map(|view| view.version);
        }
        if let Some(runs) = index.runs_of(&object.kind) {
            return runs.get(&key).map(|view| view.version);
        }
        if templates::is_template(&object.kind) {
            return index.templates.get(object).map(|view| view.version);
        }
        index.named.version(object)
    }

    fn objects(index: &RolloutIndex, kind: &Kind) -> Vec<ObjectRef> {
        let of = |key: &Key| ObjectRef::new(kind.clone(), &key.namespace, &key.name);
        if *kind == kinds::REPLICA_SET {
            index.sets.keys().chain(index.orphans.keys()).map(of).collect()
        } else if let Some(runs) = index.runs_of(kind) {
            runs.keys().map(of).collect()
        } else if templates::is_template(kind) {
            index.templates.objects(kind)
        } else if named::is_on_demand(kind) {
            index.named.objects(kind)
        } else if *kind == kinds::SERVICE {
            index.services.keys().map(of).collect()
        } else {
            index.rollouts.keys().map(of).collect()
        }
    }

    fn demands(index: &RolloutIndex) -> Vec<Kind> {
        index.named.demands()
    }

    fn reach(index: &mut RolloutIndex, kind: &Kind, reach: Reach<'_>) -> Vec<Key> {
        let was = match reach {
            Reach::Listed => index.unreadable.remove(kind),
            Reach::Unreadable(message) => index.unreadable.insert(kind.clone(), message.to_owned()),
        };
        let is_news = match reach {
            Reach::Listed => was.is_some(),
            Reach::Unreadable(message) => was.as_deref() != Some(message),
        };
        let mut woken = if reach == Reach::Listed { index.named.listed(kind) } else { Vec::new() };
        if is_news {
            woken.extend(index.rollouts.keys().cloned());
        }
        woken
    }

    fn unseen(index: &RolloutIndex, key: &Key) -> Option<ObjectRef> {
        index.named.unseen(key).cloned()
    }

    fn gather(
        index: &RolloutIndex,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        recall: &Recall<Memo>,
    ) -> Option<World> {
        let rollout = index.resolved.get(key).or_else(|| index.rollouts.get(key))?;
        Some(World {
            rollout: Arc::clone(rollout),
            replica_sets: index.sets_of(rollout.uid),
            orphans: index
                .orphans
                .matching(&rollout.namespace, rollout.spec.fields.selector.as_ref()),
            services: index.services_of(rollout),
            routes: index.routes_of(rollout),
            runs: index.readable(&kinds::ANALYSIS_RUN, Known::Present(index.runs.of(rollout.uid))),
            experiments: index
                .readable(&kinds::EXPERIMENT, Known::Present(index.experiments.of(rollout.uid))),
            templates: index.templates.of(rollout, |kind| index.unreadable.get(kind).cloned()),
            workload: index.workload_of(rollout),
            // Nobody can ask a load balancer yet.
            verifies: false,
            answers: answers.clone(),
            recall: recall.clone(),
        })
    }

    fn is_urgent(world: &World) -> bool {
        world.rollout.status.abort
    }

    fn publish(index: &RolloutIndex, key: &Key, metrics: &Metrics, now: Timestamp) {
        match index.rollout(key) {
            Some(rollout) => metrics.rollout(&key.namespace, &key.name, figures(rollout)),
            None => metrics.deleted(&key.namespace, &key.name, now),
        }
    }

    fn farewell(object: &ObjectRef) -> Option<Event> {
        Some(Event {
            about: object.clone(),
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
fn metric_phase(status: &gradus_api::rollout::RolloutStatus) -> &'static str {
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
