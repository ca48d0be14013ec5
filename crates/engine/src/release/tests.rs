//! Whose marks go, as a table.

use gradus_api::names::{annotation, label};
use serde_json::json;

use super::*;
use crate::ask::{Class, Failure};
use crate::world::ServiceView;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn marked(hash: Option<&str>, managed_by: Option<&str>, users: &[&str]) -> Marked<ServiceView> {
    let service = ServiceView {
        name: "active".into(),
        uid: crate::uid::Uid::default(),
        version: 7,
        hash: hash.map(Into::into),
        selector: crate::frame::TextMap::default(),
        managed_by: managed_by.map(Into::into),
    };
    Marked {
        namespace: "default".into(),
        object: Arc::new(service),
        users: users.iter().map(|name| (*name).into()).collect(),
        managers: BTreeMap::new(),
        answers: BTreeMap::new(),
        recall: Recall::default(),
    }
}

fn answered<M: Mark>(world: &mut Marked<M>, reply: Result<Reply, Failure>) {
    let (_, ask) = questions(world).remove(0);
    let answer = Answer { asked_at: at(0), answered_at: at(1), reply };
    world.answers.insert(ask.id, answer);
}

fn rollout(strategy: Value) -> Arc<Value> {
    Arc::new(json!({ "spec": { "strategy": strategy } }))
}

/// What is decided: the patch, or nothing.
fn patch<M: Mark>(world: &Marked<M>) -> Option<Value> {
    let decision = decide(world, at(2));
    let change = decision.changes.first()?;
    let crate::decision::Op::Merge(body) = &change.op else { panic!("{change:?}") };
    Some(Value::clone(body))
}

#[test]
fn marks_go_when_the_server_says_that_nobody_names_the_service() {
    let both = json!({
        "metadata": { "annotations": { annotation::MANAGED_BY: null } },
        "spec": { "selector": { label::POD_TEMPLATE_HASH: null } },
    });
    let hash = json!({ "spec": { "selector": { label::POD_TEMPLATE_HASH: null } } });
    let mark = json!({ "metadata": { "annotations": { annotation::MANAGED_BY: null } } });
    let uses = || rollout(json!({ "blueGreen": { "activeService": "active" } }));
    let other = || rollout(json!({ "canary": { "stableService": "other" } }));
    let one = |found: Option<Arc<Value>>| Ok(Reply::Object(found));
    let all = |found: Vec<Arc<Value>>| Ok(Reply::Objects(found));
    let away = || {
        let message = "away".to_owned();
        Err(Failure { class: Class::Unreachable, message, times: 1, retry_at: at(9) })
    };
    let cases = [
        ("its Rollout is gone", marked(Some("h"), Some("web"), &[]), one(None), Some(&both)),
        (
            "its Rollout uses another",
            marked(Some("h"), Some("web"), &[]),
            one(Some(other())),
            Some(&both),
        ),
        ("its Rollout uses it", marked(Some("h"), Some("web"), &[]), one(Some(uses())), None),
        ("nobody can tell", marked(Some("h"), Some("web"), &[]), away(), None),
        ("a mark alone", marked(None, Some("web"), &[]), one(None), Some(&mark)),
        (
            "another uses it, its own is gone",
            marked(Some("h"), Some("web"), &["shop"]),
            one(None),
            Some(&both),
        ),
        ("a hash, no Rollout at all", marked(Some("h"), None, &[]), all(vec![]), Some(&hash)),
        (
            "a hash, none that uses it",
            marked(Some("h"), None, &[]),
            all(vec![other()]),
            Some(&hash),
        ),
        (
            "a hash of another instance",
            marked(Some("h"), None, &[]),
            all(vec![other(), uses()]),
            None,
        ),
    ];
    for (what, mut world, reply, expected) in cases {
        assert_eq!(patch(&world), None, "{what}: not before it is answered");
        answered(&mut world, reply);
        assert_eq!(patch(&world).as_ref(), expected, "{what}");
    }
}

#[test]
fn the_service_of_an_experiment_carries_no_mark_of_ours() {
    let cases = [("Experiment", false), ("Rollout", true), ("", true)];
    for (owner, expected) in cases {
        let owner =
            json!({ "kind": owner, "name": "o", "uid": "u", "controller": !owner.is_empty() });
        let service = json!({
            "metadata": { "name": "candidate", "ownerReferences": [owner] },
            "spec": { "selector": { label::POD_TEMPLATE_HASH: "h" } },
        });
        let service = <ServiceView as Mark>::read(&serde_json::from_value(service).unwrap());
        assert_eq!(service.is_marked(), expected, "{owner}");
    }
}

#[test]
fn nothing_is_asked_while_a_rollout_that_we_know_of_uses_it() {
    for world in [marked(Some("h"), Some("web"), &["web"]), marked(Some("h"), None, &["web"])] {
        let decision = decide(&world, at(0));
        assert_eq!((decision.asks, decision.changes), (vec![], vec![]));
    }
}

#[test]
fn an_answer_of_before_the_rollout_changed_does_not_count() {
    let mut world = marked(Some("h"), Some("web"), &[]);
    answered(&mut world, Ok(Reply::Object(None)));
    world.managers.insert("web".into(), 12);
    assert_eq!(patch(&world), None);
    assert_eq!(decide(&world, at(0)).asks.len(), 1, "it is asked again");
}

#[test]
fn a_refusal_is_tried_again_when_it_is_due() {
    let mut world = marked(Some("h"), Some("web"), &[]);
    answered(&mut world, Ok(Reply::Object(None)));
    let refused = Failure { class: Class::Denied, message: "no".into(), times: 1, retry_at: at(3) };
    world.recall.failed.insert(unmark(&world, &[]).id, refused);
    assert_eq!(patch(&world), None);
    assert_eq!(decide(&world, at(3)).changes.len(), 1);
}

/// An Ingress of two Rollouts: `web` with a root Service and a header route, `shop` without.
fn managed() -> Value {
    let group = |service: &str, weight: i32| {
        json!({ "ServiceName": service, "ServicePort": "80",
        "Weight": weight })
    };
    let action = |groups: Value| {
        let sticky = json!({ "Enabled": true, "DurationSeconds": 60 });
        json!({ "Type": "forward", "ForwardConfig": { "TargetGroups": groups,
            "TargetGroupStickinessConfig": sticky } })
        .to_string()
    };
    let of_web = ["actions.root", "actions.testers", "conditions.testers"];
    let keys = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("alb.ingress.kubernetes.io/{name}")).collect()
    };
    let book = json!({ "web": keys(&of_web), "shop": keys(&["actions.shop"]) });
    let path = |service: &str| {
        json!({ "path": "/*", "backend": { "service": {
        "name": service, "port": { "name": "use-annotation" } } } })
    };
    json!({
        "metadata": { "name": "edge", "namespace": "default", "resourceVersion": "7",
            "annotations": {
                "alb.ingress.kubernetes.io/actions.root":
                    action(json!([group("pong", 20), group("ping", 80)])),
                "alb.ingress.kubernetes.io/actions.testers": action(json!([group("pong", 100)])),
                "alb.ingress.kubernetes.io/conditions.testers": "[]",
                "alb.ingress.kubernetes.io/actions.shop":
                    action(json!([group("canary", 40), group("shop", 60)])),
                "rollouts.argoproj.io/managed-alb-annotations": book.to_string(),
                "rollouts.argoproj.io/managed-alb-actions": "web:root,",
                "team": "edge",
            } },
        "spec": { "rules": [
            { "http": { "paths": [path("testers"), path("root")] } },
            { "host": "shop", "http": { "paths": [path("shop")] } },
        ] },
    })
}

/// The marks of an Ingress as the decision leaves them: weights by action, managers, paths.
fn left(world: &Marked<ManagedIngress>, object: &Value) -> String {
    let mut object = object.clone();
    if let Some(patch) = patch(world) {
        gradus_api::patch::apply(&mut object, &patch);
    }
    let notes = object["metadata"]["annotations"].as_object().unwrap();
    let told = notes.iter().filter_map(|(key, value)| {
        let name = key.strip_prefix("alb.ingress.kubernetes.io/actions.")?;
        let action: Value = serde_json::from_str(value.as_str()?).unwrap();
        assert!(action["ForwardConfig"]["TargetGroupStickinessConfig"].is_object(), "{key}");
        let groups = action["ForwardConfig"]["TargetGroups"].as_array().unwrap();
        let group = |group: &Value| {
            assert_eq!(group["ServicePort"], "80");
            format!("{} {}", group["ServiceName"].as_str().unwrap(), group["Weight"])
        };
        Some(format!("{name}: {}", groups.iter().map(group).collect::<Vec<_>>().join(" ")))
    });
    let actions = told.collect::<Vec<_>>().join(", ");
    let has = |key: &str| notes.contains_key(key);
    let frame = serde_json::from_value(object.clone()).unwrap();
    let managers = ManagedIngress::read(&frame).managers().join(" ");
    let count = |at: usize| object["spec"]["rules"][at]["http"]["paths"].as_array().unwrap().len();
    assert!(has("team"), "what is not ours stays");
    let conditions = has("alb.ingress.kubernetes.io/conditions.testers");
    let old = has("rollouts.argoproj.io/managed-alb-actions");
    format!("{actions}; {managers}; {} {} paths, {conditions} {old}", count(0), count(1))
}

/// What | answers about `shop` and `web` | what is left.
const RELEASED: &str = "
both use it       | uses uses | root: pong 20 ping 80, shop: canary 40 shop 60, testers: pong 100; shop web; 2 1 paths, true true
nobody can tell   | away away | root: pong 20 ping 80, shop: canary 40 shop 60, testers: pong 100; shop web; 2 1 paths, true true
one uses another  | other uses | root: pong 20 ping 80, shop: shop 100, testers: pong 100; web; 2 1 paths, true false
one is gone       | uses gone | root: ping 100, shop: canary 40 shop 60; shop; 1 1 paths, false false
one, as far known | away gone | root: ping 100, shop: canary 40 shop 60; shop; 1 1 paths, false false
both are gone     | gone gone | root: ping 100, shop: shop 100; ; 1 1 paths, false false";

#[test]
fn an_ingress_that_a_rollout_lets_go_of_sends_all_to_one_service_again() {
    for row in RELEASED.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, replies, expected] = cells[..] else { panic!("three cells: {row}") };
        let object = managed();
        let frame = serde_json::from_value(object.clone()).unwrap();
        let mut world = Marked {
            namespace: "default".into(),
            object: Arc::new(ManagedIngress::read(&frame)),
            users: Vec::new(),
            managers: BTreeMap::new(),
            answers: BTreeMap::new(),
            recall: Recall::default(),
        };
        let asked: Vec<Ask> = questions(&world).into_iter().map(|(_, ask)| ask).collect();
        assert_eq!(asked.len(), 2, "{what}");
        let refers =
            |alb: Value| rollout(json!({ "canary": { "trafficRouting": { "alb": alb } } }));
        for (ask, reply) in asked.into_iter().zip(replies.split_whitespace()) {
            let reply = match reply {
                "uses" => Ok(Reply::Object(Some(refers(json!({ "ingresses": ["edge"] }))))),
                "other" => Ok(Reply::Object(Some(refers(json!({ "ingress": "other" }))))),
                "gone" => Ok(Reply::Object(None)),
                _ => Err(Failure {
                    class: Class::Unreachable,
                    message: "away".into(),
                    times: 1,
                    retry_at: at(9),
                }),
            };
            world.answers.insert(ask.id, Answer { asked_at: at(0), answered_at: at(1), reply });
        }
        assert_eq!(left(&world, &object), expected, "{what}");
    }
}

#[test]
fn an_ingress_without_a_readable_book_is_left_alone() {
    for book in ["", "{", "[]", "{}"] {
        let frame = serde_json::from_value(json!({ "metadata": { "name": "edge", "annotations": {
            "rollouts.argoproj.io/managed-alb-annotations": book } } }));
        assert!(!ManagedIngress::read(&frame.unwrap()).is_marked(), "{book:?}");
    }
}

/// What routers leave on objects of each kind: the object, the routing that names it, and what is done
/// with it when another routing does not.
#[test]
fn what_a_router_has_made_goes_and_what_it_has_marked_is_as_it_was() {
    let owned = |name: &str| {
        let owner = json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web",
            "uid": "u", "controller": true });
        json!({ "metadata": { "name": name, "uid": "x", "ownerReferences": [owner] } })
    };
    let used = |spec: Value| {
        let notes = json!({ annotation::MANAGED_BY: "web" });
        json!({ "metadata": { "name": "old", "annotations": notes }, "spec": spec })
    };
    let labels = |hash: bool| match hash {
        true => json!({ label::POD_TEMPLATE_HASH: "h", "app": "web" }),
        false => json!({ "app": "web" }),
    };
    let subsets = |hash: bool| json!([{ "name": "a", "labels": labels(hash) }, { "name": "b" }]);
    let free = json!({ "annotations": { annotation::MANAGED_BY: null } });
    let rule = Undo::Patch(json!({ "metadata": free, "spec": { "subsets": subsets(false) } }));
    let selector = json!({ "matchLabels": { label::POD_TEMPLATE_HASH: null } });
    let node = Undo::Patch(json!({ "metadata": free, "spec": { "podSelector": selector } }));
    let nodes = json!({ "canaryVirtualNodeRef": { "name": "old" } });
    let apisix = json!({ "apisix": { "route": { "name": "web" } },
        "managedRoutes": [{ "name": "testers" }] });
    judge::<0>(
        &owned("web-old-canary"),
        json!({ "nginx": { "stableIngress": "old" } }),
        &Undo::Delete,
    );
    judge::<1>(
        &used(json!({ "host": "web", "subsets": subsets(true) })),
        json!({ "istio": { "destinationRule": { "name": "old" } } }),
        &rule,
    );
    judge::<2>(&owned("web"), json!({ "smi": {} }), &Undo::Delete);
    judge::<3>(
        &owned("old-canary"),
        json!({ "ambassador": { "mappings": ["old"] } }),
        &Undo::Delete,
    );
    judge::<4>(
        &used(json!({ "podSelector": { "matchLabels": labels(true) } })),
        json!({ "appMesh": { "virtualNodeGroup": nodes } }),
        &node,
    );
    judge::<5>(&owned("testers"), apisix, &Undo::Delete);
}

fn judge<const AT: usize>(object: &Value, routing: Value, expected: &Undo) {
    let kind = ManagedRoute::<AT>::KIND;
    let frame = serde_json::from_value(object.clone()).unwrap();
    let read = ManagedRoute::<AT>::read(&frame);
    assert_eq!(read.managers(), ["web".into()], "{kind:?}");
    let spec = |routing: Value| json!({ "strategy": { "canary": { "trafficRouting": routing } } });
    let name = read.name().to_string();
    assert!(ManagedRoute::<AT>::named_in("web", &spec(routing)).contains(&name), "{kind:?}");
    let other = json!({ "traefik": { "weightedTraefikServiceName": "old" } });
    assert_eq!(ManagedRoute::<AT>::named_in("web", &spec(other)), [""; 0], "{kind:?}");
    assert_eq!(read.unmarked(&["web".into()]), *expected, "{kind:?}");
    let theirs = serde_json::from_value(json!({ "metadata": { "name": "theirs" } })).unwrap();
    assert!(!ManagedRoute::<AT>::read(&theirs).is_marked(), "{kind:?}: not ours");
}
