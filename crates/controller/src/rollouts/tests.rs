//! What the index holds of kinds that are watched only once a Rollout names an object of them, and
//! of kinds that cannot be read.

use gradus_engine::ask::Recall;
use gradus_engine::frame::Frame;
use serde_json::json;

mod odd;

use super::*;
use crate::shell::{InterlockMode, Seen, Shell, Work};
use crate::watch::{Failed, FailedCause};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn frame(kind: &Kind, name: &str, version: u64, spec: serde_json::Value) -> Frame {
    serde_json::from_value(json!({
        "kind": kind.name, "spec": spec,
        "metadata": { "name": name, "namespace": "default", "uid": format!("{name}-uid"),
                      "resourceVersion": version.to_string(), "generation": 1 },
    }))
    .unwrap()
}

fn rollout(name: &str, ingress: &str) -> Frame {
    let canary = json!({ "trafficRouting": { "nginx": { "stableIngress": ingress } } });
    frame(&kinds::ROLLOUT, name, 5, json!({ "strategy": { "canary": canary } }))
}

/// A shell that has listed these Rollouts, and nothing else is there.
fn shell(rollouts: &[Frame]) -> Shell<Rollouts> {
    let mut shell = Shell::new(&Scope::default(), InterlockMode::default());
    for source in Rollouts::sources() {
        shell.observe(&source, &Seen::Init, at(0));
        for frame in rollouts.iter().filter(|_| source == Source::Rollouts) {
            shell.observe(&source, &Seen::InitApply(frame.clone()), at(0));
        }
        shell.observe(&source, &Seen::InitDone, at(0));
    }
    shell
}

fn ingresses() -> Source {
    Source::Named(kinds::INGRESS)
}

fn route(shell: &Shell<Rollouts>, rollout: &str) -> Known<Arc<serde_json::Value>> {
    let key = Key { namespace: "default".into(), name: rollout.into() };
    let none = BTreeMap::new();
    let world = Rollouts::gather(shell.index(), &key, &none, &Recall::default()).unwrap();
    world.routes[0].known.clone()
}

#[test]
fn a_kind_is_watched_once_a_rollout_names_an_object_of_it() {
    let mut shell = shell(&[rollout("web", "front")]);
    assert_eq!(shell.take_demands(), [Scope::default().all(kinds::INGRESS)]);
    assert_eq!(shell.take_demands(), [], "asked for once");
    assert_eq!(route(&shell, "web"), Known::Unknown(String::new()), "nobody has looked yet");

    shell.observe(&ingresses(), &Seen::Init, at(1));
    let other = frame(&kinds::INGRESS, "other", 7, json!({}));
    shell.observe(&ingresses(), &Seen::InitApply(other), at(1));
    shell.observe(&ingresses(), &Seen::InitDone, at(1));
    assert_eq!(route(&shell, "web"), Known::Absent);
    assert_eq!(shell.index().named.objects(&kinds::INGRESS), [], "what nobody names is not kept");

    let front = frame(&kinds::INGRESS, "front", 8, json!({ "rules": [] }));
    shell.observe(&ingresses(), &Seen::Apply(front.clone()), at(2));
    assert_eq!(route(&shell, "web"), Known::Present(Arc::new(front.object())));
    shell.observe(&ingresses(), &Seen::Delete(front), at(3));
    assert_eq!(route(&shell, "web"), Known::Absent);
}

#[test]
fn an_object_that_has_passed_by_unkept_is_read_when_it_is_named() {
    let mut shell = shell(&[rollout("web", "front")]);
    shell.observe(&ingresses(), &Seen::Init, at(1));
    shell.observe(&ingresses(), &Seen::InitDone, at(1));
    while shell.next_work(at(1)).is_some() {}
    shell.observe(&Source::Rollouts, &Seen::Apply(rollout("shop", "late")), at(2));
    let Some(Work::Settle(read)) = shell.next_work(at(2)) else { panic!("it is read") };
    assert_eq!(read.object.to_string(), "Ingress default/late");
    let late = frame(&kinds::INGRESS, "late", 6, json!({}));
    shell.learn_settling(read, Ok(Some(late.clone())), at(2));
    assert_eq!(route(&shell, "shop"), Known::Present(Arc::new(late.object())));
}

#[test]
fn a_kind_we_may_not_read_is_unknown_at_once_and_one_that_is_away_after_a_minute() {
    let denied = Failed { cause: FailedCause::Forbidden, message: "services is forbidden".into() };
    let away = Failed { cause: FailedCause::Away, message: "connection refused".into() };
    let sets = |shell: &Shell<Rollouts>| shell.index().sets_of(Uid::default());

    let mut shell = shell(&[rollout("web", "front")]);
    shell.observe_failure(&Source::ReplicaSets, &away, at(0));
    shell.observe_failure(&Source::ReplicaSets, &away, at(59));
    assert_eq!(sets(&shell), Known::Present(Vec::new()), "a short absence tells nothing");
    shell.observe_failure(&Source::ReplicaSets, &away, at(60));
    assert_eq!(sets(&shell), Known::Unknown("connection refused".into()));
    shell.observe_failure(&Source::ReplicaSets, &denied, at(61));
    assert_eq!(sets(&shell), Known::Unknown("services is forbidden".into()));
    shell.observe(&Source::ReplicaSets, &Seen::Init, at(70));
    shell.observe(&Source::ReplicaSets, &Seen::InitDone, at(70));
    assert_eq!(sets(&shell), Known::Present(Vec::new()));
}

#[test]
fn a_kind_whose_watch_goes_on_where_it_was_is_known_again() {
    let away = Failed { cause: FailedCause::Away, message: "connection refused".into() };
    let sets = |shell: &Shell<Rollouts>| shell.index().sets_of(Uid::default());
    let mut shell = shell(&[rollout("web", "front")]);
    shell.observe_failure(&Source::ReplicaSets, &away, at(0));
    shell.observe_failure(&Source::ReplicaSets, &away, at(60));
    assert_eq!(sets(&shell), Known::Unknown("connection refused".into()));
    while let Some(Work::Act(job)) = shell.next_work(at(60)) {
        shell.decline(&job.key, at(60));
    }
    shell.observe(&Source::ReplicaSets, &Seen::Resumed, at(70));
    assert_eq!(sets(&shell), Known::Present(Vec::new()), "without a list and without an event");
    assert_eq!(shell.next_due(), Some(at(70)), "who needs it is decided again");

    shell.observe_failure(&Source::ReplicaSets, &away, at(200));
    assert_eq!(sets(&shell), Known::Present(Vec::new()), "a second absence has its own minute");
}

#[test]
fn while_the_whole_server_is_away_no_kind_is_unknown() {
    let away = Failed { cause: FailedCause::Away, message: "connection refused".into() };
    let unknown = |shell: &Shell<Rollouts>| shell.index().unreadable.len();
    let mut shell = shell(&[rollout("web", "front")]);
    let watched = Rollouts::sources();
    for second in [0, 5, 60, 120, 600] {
        for source in &watched {
            shell.observe_failure(source, &away, at(second));
        }
        assert_eq!(unknown(&shell), 0, "after {second} s");
    }
    shell.observe(&Source::Services, &Seen::Resumed, at(601));
    shell.observe_failure(&Source::ReplicaSets, &away, at(602));
    assert_eq!(unknown(&shell), 0, "the server has just come back");
    shell.observe_failure(&Source::ReplicaSets, &away, at(660));
    assert_eq!(unknown(&shell), 1, "now it is this kind alone");
}

#[test]
fn what_cannot_be_read_is_said_on_the_rollout_and_taken_back() {
    let spec = json!({
        "replicas": 1, "selector": { "matchLabels": { "app": "web" } },
        "strategy": { "canary": {} },
        "template": { "metadata": { "labels": { "app": "web" } },
                      "spec": { "containers": [{ "name": "c", "image": "i" }] } },
    });
    let mut shell = shell(&[frame(&kinds::ROLLOUT, "web", 5, spec)]);
    let message = "replicasets is forbidden".to_owned();
    let denied = Failed { cause: FailedCause::Forbidden, message };
    shell.observe_failure(&Source::ReplicaSets, &denied, at(1));
    let Some(Work::Act(job)) = shell.next_work(at(1)) else { panic!("it is said") };
    assert!(job.changes.is_empty(), "nothing is planned on what is not known");
    let condition = &job.status.as_ref().unwrap().patch["status"]["conditions"][0];
    assert_eq!(
        (condition["type"].as_str(), condition["reason"].as_str(), condition["message"].as_str()),
        (Some("Held"), Some("Unreadable"), Some("replicasets is forbidden"))
    );
}

fn referring(name: &str, kind: &str) -> Frame {
    let named = json!({ "apiVersion": "apps/v1", "kind": kind, "name": "web" });
    frame(&kinds::ROLLOUT, name, 5, json!({ "workloadRef": named, "strategy": { "canary": {} } }))
}

fn workload(kind: &Kind, version: u64, generation: i64, image: &str) -> Frame {
    let mut found = frame(
        kind,
        "web",
        version,
        json!({
            "replicas": 3, "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } },
                          "spec": { "containers": [{ "name": "c", "image": image }] } },
        }),
    );
    found.meta.generation = generation;
    found
}

#[test]
fn a_rollout_has_the_template_of_the_workload_it_refers_to() {
    // ReplicaSets are watched apart from our own, which carry a label.
    for (name, kind) in [("Deployment", kinds::DEPLOYMENT), ("ReplicaSet", kinds::REPLICA_SET)] {
        let mut shell = shell(&[referring("web", name)]);
        let source = Source::Named(kind.clone());
        assert_eq!(shell.take_demands(), [Scope::default().all(kind.clone())], "{name}");
        let key = Key { namespace: "default".into(), name: "web".into() };
        let gather = |shell: &Shell<Rollouts>| {
            let none = BTreeMap::new();
            Rollouts::gather(shell.index(), &key, &none, &Recall::default()).unwrap()
        };
        assert_eq!(gather(&shell).workload, Some(Known::Unknown(String::new())), "{name}");
        shell.observe(&source, &Seen::Init, at(1));
        shell.observe(&source, &Seen::InitApply(workload(&kind, 7, 1, "i:1")), at(1));
        shell.observe(&source, &Seen::InitDone, at(1));
        let first = gather(&shell);
        assert_eq!(first.rollout.spec.errors, [""; 0], "{name}");
        assert!(first.rollout.spec.template.contains("i:1"), "{name}");
        assert!(first.rollout.spec.fields.selector.is_some(), "{name}");

        shell.observe(&source, &Seen::Apply(workload(&kind, 8, 1, "i:1")), at(2));
        let second = gather(&shell);
        assert!(Arc::ptr_eq(&first.rollout.spec, &second.rollout.spec), "{name}: nothing changed");
        shell.observe(&source, &Seen::Apply(workload(&kind, 9, 2, "i:2")), at(3));
        let third = gather(&shell);
        assert_ne!(third.rollout.hash, second.rollout.hash, "{name}");
        assert_eq!(third.rollout.spec.origin.generation().map(|text| &**text), Some("2"), "{name}");

        shell.observe(&source, &Seen::Delete(workload(&kind, 10, 2, "i:2")), at(4));
        assert_eq!(gather(&shell).workload, Some(Known::Absent), "{name}");
    }
}

#[test]
fn an_orphan_wakes_the_rollouts_that_it_matches_and_no_others() {
    let selecting = |name: &str, app: &str| {
        let selector = json!({ "matchLabels": { "app": app } });
        frame(&kinds::ROLLOUT, name, 5, json!({ "selector": selector }))
    };
    let mut index = RolloutIndex::default();
    for rollout in [selecting("web", "web"), selecting("shop", "shop")] {
        index.apply_rollout(&rollout);
    }
    let mut orphan = frame(&kinds::REPLICA_SET, "left", 7, json!({}));
    Arc::make_mut(&mut orphan.meta.labels).insert("app".to_owned(), "web".to_owned());
    assert_eq!(index.apply_set(&orphan), [], "without our label it is not ours to take");
    let hash = names::label::POD_TEMPLATE_HASH.to_owned();
    Arc::make_mut(&mut orphan.meta.labels).insert(hash, "left".to_owned());
    let key = |name: &str| Key { namespace: "default".into(), name: name.into() };
    assert_eq!(index.apply_set(&orphan), [key("web")]);
    let orphans = |index: &RolloutIndex, name: &str| {
        let none = BTreeMap::new();
        let world = Rollouts::gather(index, &key(name), &none, &Recall::default()).unwrap();
        world.orphans.len()
    };
    assert_eq!((orphans(&index, "web"), orphans(&index, "shop")), (1, 0));
    let sets = (Rollouts::shelf(&Source::ReplicaSets).objects)(&index, &kinds::REPLICA_SET);
    assert_eq!(sets.len(), 1);
    index.remove_set(&key("left"));
    assert_eq!((orphans(&index, "web"), index.set_version(&key("left"))), (0, None));
}

#[test]
fn the_pods_of_an_experiment_wake_and_are_known_to_the_rollout_that_made_it() {
    let owned = |kind: &Kind, name: &str, spec: serde_json::Value, owner: (&Kind, &str)| {
        let mut frame = serde_json::to_value(frame(kind, name, 7, spec).object()).unwrap();
        frame["metadata"]["labels"] = json!({ names::label::POD_TEMPLATE_HASH: "h" });
        frame["metadata"]["ownerReferences"] = json!([{ "kind": owner.0.name, "name": owner.1,
            "uid": format!("{}-uid", owner.1), "controller": true }]);
        frame["status"] = json!({ "availableReplicas": 2 });
        serde_json::from_value::<Frame>(frame).unwrap()
    };
    let key = |name: &str| Key { namespace: "default".into(), name: name.into() };
    let mut index = RolloutIndex::default();
    index.apply_rollout(&frame(&kinds::ROLLOUT, "web", 5, json!({})));
    index.apply_rollout(&frame(&kinds::ROLLOUT, "shop", 5, json!({})));
    let experiment = owned(&kinds::EXPERIMENT, "try", json!({}), (&kinds::ROLLOUT, "web"));
    index.apply_run(&kinds::EXPERIMENT, &experiment);
    let one = json!({ "replicas": 1 });
    let set = owned(&kinds::REPLICA_SET, "try-one", one.clone(), (&kinds::EXPERIMENT, "try"));
    assert_eq!(index.apply_set(&set), [key("web")]);
    let alone = owned(&kinds::REPLICA_SET, "alone-one", one, (&kinds::EXPERIMENT, "alone"));
    assert_eq!(index.apply_set(&alone), [], "an Experiment of nobody");
    let available = |index: &RolloutIndex, name: &str| -> Vec<i64> {
        let none = BTreeMap::new();
        let world = Rollouts::gather(index, &key(name), &none, &Recall::default()).unwrap();
        world.experiment_sets.iter().map(|set| set.available).collect()
    };
    assert_eq!((available(&index, "web"), available(&index, "shop")), (vec![1], vec![]));
    assert_eq!(index.set_version(&key("try-one")), Some(7));
    let sets = (Rollouts::shelf(&Source::ReplicaSets).objects)(&index, &kinds::REPLICA_SET);
    assert_eq!(sets.len(), 2);
    assert_eq!(index.remove_set(&key("try-one")), [key("web")]);
    assert_eq!((available(&index, "web"), index.set_version(&key("try-one"))), (vec![], None));
}

#[test]
fn only_the_objects_of_its_own_instance_are_seen() {
    let key = "argo-rollouts.argoproj.io/controller-instance-id";
    for (id, wanted) in [("", format!("!{key}")), ("shop", format!("{key}=shop"))] {
        let scope = Scope { instance_id: id.to_owned(), ..Scope::default() };
        let labels = |source| Rollouts::selection(&source, &scope).unwrap().labels;
        let shared = [Source::Rollouts, Source::AnalysisRuns, Source::Experiments];
        for source in shared.into_iter().chain([Source::AnalysisTemplates]) {
            assert_eq!(labels(source), Some(wanted.clone()), "{id:?}");
        }
        assert_eq!(labels(Source::Services), None, "{id:?}");
        assert_eq!(labels(Source::ReplicaSets).as_deref(), Some("rollouts-pod-template-hash"));
    }
}

#[test]
fn a_controller_of_one_namespace_does_not_wait_for_what_has_none() {
    let scope = Scope { namespaces: vec!["shop".into()], ..Scope::default() };
    let mut shell = Shell::<Rollouts>::new(&scope, InterlockMode::default());
    assert_eq!(shell.unread_kinds(), [kinds::CLUSTER_ANALYSIS_TEMPLATE]);
    let sources = Rollouts::sources().into_iter();
    for source in sources.filter(|source| *source != Source::ClusterAnalysisTemplates) {
        assert!(!shell.is_synced(), "{source:?}");
        shell.observe(&source, &Seen::Init, at(0));
        shell.observe(&source, &Seen::InitDone, at(0));
    }
    assert!(shell.is_synced());
}

#[test]
fn of_several_namespaces_each_has_its_own_watch_and_its_own_list() {
    let scope = Scope { namespaces: vec!["shop".into(), "bank".into()], ..Scope::default() };
    let mut shell = Shell::<Rollouts>::new(&scope, InterlockMode::default());
    let all = shell.selections();
    let namespaces = |kind: &Kind| {
        let of_kind = all.iter().filter(|watch| watch.kind == *kind);
        of_kind.filter_map(|watch| watch.namespace.clone()).collect::<Vec<_>>()
    };
    for kind in [kinds::ROLLOUT, kinds::REPLICA_SET, kinds::SERVICE] {
        assert_eq!(namespaces(&kind), ["bank", "shop"], "{kind:?}");
    }
    let web = |namespace: &str| {
        let mut frame = rollout("web", "front");
        frame.meta.namespace = namespace.into();
        frame
    };
    let list = |shell: &mut Shell<Rollouts>, watch: &Selection, listed: &[Frame], now| {
        let part = shell.part(watch).unwrap();
        shell.observe_part(&part, &Seen::Init, now);
        for frame in listed {
            shell.observe_part(&part, &Seen::InitApply(frame.clone()), now);
        }
        shell.observe_part(&part, &Seen::InitDone, now)
    };
    for watch in &all {
        assert!(!shell.is_synced(), "{watch:?}");
        let is_own = watch.kind == kinds::ROLLOUT;
        let listed = watch.namespace.iter().filter(|_| is_own).map(|name| web(name));
        list(&mut shell, watch, &listed.collect::<Vec<_>>(), at(0));
    }
    assert!(shell.is_synced());
    let ingresses = shell.take_demands();
    assert_eq!(ingresses.len(), 2, "one for each namespace: {ingresses:?}");
    let is_known = |shell: &Shell<Rollouts>, namespace: &str| {
        let key = Key { namespace: namespace.into(), name: "web".into() };
        let none = BTreeMap::new();
        Rollouts::gather(shell.index(), &key, &none, &Recall::default()).is_some()
    };
    assert!(is_known(&shell, "shop") && is_known(&shell, "bank"));
    let rollouts = all.iter().filter(|watch| watch.kind == kinds::ROLLOUT);
    let shop = rollouts.clone().find(|watch| watch.namespace.as_deref() == Some("shop")).unwrap();
    assert_eq!(list(&mut shell, shop, &[], at(1)).len(), 1, "the one that is gone");
    assert!(!is_known(&shell, "shop"), "gone from its own namespace's list");
    assert!(is_known(&shell, "bank"), "which says nothing of another namespace");
}

#[test]
fn the_metrics_name_the_router_that_was_asked_for_though_it_is_refused() {
    let cases = [
        (json!({}), ""),
        (json!({ "nginx": { "stableIngress": "web" } }), "Nginx"),
        (json!({ "istio": { "virtualService": { "name": "web" } } }), "Istio"),
        (json!({ "smi": {}, "alb": { "ingress": "web", "servicePort": 80 } }), "SMI"),
        (json!({ "traefik": { "weightedTraefikServiceName": "web" } }), ""),
    ];
    for (routing, name) in cases {
        let canary = json!({ "trafficRouting": routing });
        let frame = frame(&kinds::ROLLOUT, "web", 5, json!({ "strategy": { "canary": canary } }));
        let figures = figures(&RolloutView::read(&frame, None));
        assert_eq!(figures.traffic_router, name, "{canary}");
    }
}
