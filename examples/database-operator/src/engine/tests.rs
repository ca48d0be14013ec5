//! One World each: what is written, asked and told.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_engine::ask::{Answer, AskId, Failure, Recall, Reply};
use gradus_engine::frame::Frame;
use serde_json::{Value, json};

use super::*;
use crate::children::place;
use crate::world::{Child, Database};

const UID: &str = "3f2a1c5e-0001-4abc-8def-00112233445a";

fn now() -> Timestamp {
    "2026-01-01T12:00:00.7Z".parse().unwrap()
}

fn frame(value: Value) -> Frame {
    serde_json::from_value(value).unwrap()
}

fn spec() -> Value {
    json!({ "version": "15.6", "replicas": 1, "storage": "1Gi", "database": "orders",
            "user": "clerk" })
}

fn database(spec: Value) -> Database {
    Database::read(&frame(json!({
        "metadata": { "name": "orders", "namespace": "shop", "uid": UID, "resourceVersion": "7",
                      "generation": 2 },
        "spec": spec,
    })))
}

/// A new Database that was confirmed, with random bytes drawn.
fn fresh(spec: Value) -> World {
    let database = Arc::new(database(spec));
    let answer =
        |reply| Answer { asked_at: now(), answered_at: now(), reply: Ok::<_, Failure>(reply) };
    let there = json!({ "metadata": { "uid": UID, "deletionTimestamp": null } });
    let answers = BTreeMap::from([
        (Ask::read(database.object.clone()).id, answer(Reply::Object(Some(Arc::new(there))))),
        (Ask::random("password", 0).id, answer(Reply::Random(Arc::from([7; RANDOM_BYTES])))),
    ]);
    World {
        database,
        secret: None,
        service: None,
        stateful_set: None,
        claim: None,
        unreadable: BTreeMap::new(),
        answers,
        recall: Recall::default(),
    }
}

/// The same after everything was made and runs.
fn running(spec: Value) -> World {
    let mut world = fresh(spec.clone());
    for change in Databases::decide(&world, now()).changes {
        let Op::Create(body) = &change.op else { continue }; // The finalizer.
        let mut object = Value::clone(body);
        object["metadata"]["generation"] = json!(1);
        object["metadata"]["resourceVersion"] = json!("1");
        object["status"] = json!({ "observedGeneration": 1, "replicas": 1, "readyReplicas": 1,
                                   "updatedReplicas": 1 });
        let child = Some(Arc::new(Child::read(&frame(object))));
        match &*change.target.kind.name {
            "Secret" => world.secret = child,
            "Service" => world.service = child,
            _ => world.stateful_set = child,
        }
    }
    let claim = json!({ "metadata": { "ownerReferences": [{ "uid": UID }] },
        "spec": { "resources": { "requests": { "storage": spec["storage"] } } } });
    world.claim = Some(Arc::new(Child::read(&frame(claim))));
    world.answers.clear();
    let status = Databases::decide(&world, now()).status.unwrap();
    Arc::make_mut(&mut world.database).status = status;
    world
}

fn with_spec(mut world: World, change: Value) -> World {
    let mut spec = spec();
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    Arc::make_mut(&mut world.database).spec = Arc::new(spec);
    world
}

fn written(decision: &Decision<Status>) -> Vec<String> {
    decision.changes.iter().map(|change| change.id.0.to_string()).collect()
}

fn phase(decision: &Decision<Status>) -> &str {
    decision.status.as_ref().map_or("", |status| &status.phase)
}

#[test]
fn nothing_is_made_before_the_database_is_confirmed_and_bytes_are_drawn() {
    let mut world = fresh(spec());
    let answers = std::mem::take(&mut world.answers);
    let ids = |decision: &Decision<Status>| -> Vec<AskId> {
        decision.asks.iter().map(|ask| ask.id.clone()).collect()
    };
    let read = Ask::read(world.database.object.clone()).id;
    let first = Databases::decide(&world, now());
    assert_eq!((written(&first), ids(&first)), (vec![], vec![read.clone()]));

    world.answers.insert(read.clone(), answers[&read].clone());
    let second = Databases::decide(&world, now());
    assert_eq!((written(&second), ids(&second).len()), (vec![], 2));

    world.answers = answers;
    let third = Databases::decide(&world, now());
    let expected = [
        "create Secret shop/orders-credentials",
        "create Service shop/orders",
        "create StatefulSet shop/orders",
    ];
    assert_eq!(written(&third), expected);
    assert_eq!(ids(&third), ids(&second), "what is used is still asked for");
}

#[test]
fn the_password_is_what_was_drawn_and_is_shown_nowhere_else() {
    let world = fresh(spec());
    let decision = Databases::decide(&world, now());
    let Op::Create(secret) = &decision.changes[0].op else { panic!("the Secret is made first") };
    let password = "07".repeat(RANDOM_BYTES);
    assert_eq!(secret["stringData"]["password"], password.as_str());
    let others = json!({ "world": world, "status": decision.status, "events": decision.events,
                         "rest": &decision.changes[1..] });
    assert!(!others.to_string().contains(&password));
}

#[test]
fn a_settled_database_is_left_alone() {
    let world = running(spec());
    let decision = Databases::decide(&world, now());
    assert_eq!(written(&decision), Vec::<String>::new());
    assert_eq!(decision.status.as_ref(), Some(&world.database.status));
    assert_eq!((decision.asks.len(), decision.events.len(), decision.wake_at), (0, 0, None));
    assert_eq!(phase(&decision), "Ready");
}

#[test]
fn a_change_of_the_spec_is_written_where_it_belongs() {
    let (secret, set) = ("patch Secret shop/orders-credentials", "patch StatefulSet shop/orders");
    let claim = "patch PersistentVolumeClaim shop/data-orders-0";
    let cases: [(&str, Value, &[&str], &str); 6] = [
        ("stopped", json!({"replicas": 0}), &[set], "Stopping"),
        ("a later version", json!({"version": "15.7"}), &[secret, set], "Starting"),
        ("more storage", json!({"storage": "2Gi"}), &[secret, claim], "Starting"),
        ("the same storage", json!({"storage": "1024Mi"}), &[secret], "Starting"),
        (
            "data to be kept",
            json!({"keepData": true}),
            &["patch Database shop/orders", secret, claim],
            "Starting",
        ),
        ("less storage", json!({"storage": "1Mi"}), &[], "Refused"),
    ];
    for (what, change, expected, standing) in cases {
        let decision = Databases::decide(&with_spec(running(spec()), change), now());
        assert_eq!(written(&decision), expected, "{what}");
        assert_eq!(phase(&decision), standing, "{what}");
    }
}

#[test]
fn only_fields_that_are_ours_are_put_right() {
    let mut world = running(spec());
    let mut set = Child::clone(world.stateful_set.as_ref().unwrap());
    let template = &mut set.content["spec"]["template"]["spec"];
    template["containers"][0]["imagePullPolicy"] = json!("Always");
    template["tolerations"] = json!([{ "key": "x" }]);
    set.content["metadata"]["labels"]["team"] = json!("shop");
    world.stateful_set = Some(Arc::new(set.clone()));
    assert_eq!(written(&Databases::decide(&world, now())), Vec::<String>::new());

    set.content["spec"]["template"]["spec"]["containers"][0]["image"] = json!("postgres:9.6");
    world.stateful_set = Some(Arc::new(set));
    let decision = Databases::decide(&world, now());
    let Op::Merge(patch) = &decision.changes[0].op else { panic!("it is patched") };
    let container = &patch["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "postgres:15.6");
    assert_eq!(container["imagePullPolicy"], "Always", "a list is written whole");
    assert_eq!(patch["spec"].as_object().unwrap().len(), 1, "and nothing beside it");
}

#[test]
fn lost_credentials_are_made_anew_only_while_there_are_no_data() {
    type Change = fn(&mut World);
    let cases: [(&str, Change, &str, usize); 3] = [
        ("the set is there", |world| world.claim = None, "CredentialsLost", 0),
        ("the claim is there", |world| world.stateful_set = None, "CredentialsLost", 0),
        (
            "nothing is there",
            |world| (world.claim, world.stateful_set) = (None, None),
            "Starting",
            2,
        ),
    ];
    for (what, change, expected, writes) in cases {
        let mut world = running(spec());
        world.secret = None;
        world.answers = fresh(spec()).answers;
        change(&mut world);
        let decision = Databases::decide(&world, now());
        assert_eq!((phase(&decision), decision.changes.len()), (expected, writes), "{what}");
    }
    let mut world = running(spec());
    world.secret = None;
    world.answers = fresh(spec()).answers;
    let status = Databases::decide(&world, now()).status.unwrap();
    let message = &status.conditions.last().unwrap().message;
    let words = ["shop/orders-credentials", "database.gradus.dev/name=orders", "data-orders-0"];
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
}

#[test]
fn what_cannot_be_read_is_not_taken_for_absent() {
    let mut world = fresh(spec());
    world.unreadable.insert(SECRET, "secrets is forbidden".to_owned());
    let decision = Databases::decide(&world, now());
    assert_eq!((phase(&decision), decision.changes.len()), ("Waiting", 0));
    let status = decision.status.unwrap();
    let told = &status.conditions.last().unwrap().message;
    assert_eq!(told, "secrets cannot be read: secrets is forbidden");
}

#[test]
fn a_refused_write_is_told_in_the_words_of_the_server_and_waited_for() {
    let mut world = fresh(spec());
    let id = Databases::decide(&world, now()).changes[1].id.clone();
    let retry_at = now() + TRY_AGAIN;
    let failure =
        Failure { class: Class::Denied, message: "quota is used up".into(), times: 1, retry_at };
    world.recall.failed.insert(id, failure);
    let waiting = Databases::decide(&world, now());
    assert_eq!(written(&waiting), ["create Secret shop/orders-credentials"]);
    assert_eq!(waiting.wake_at, Some(retry_at));
    let status = waiting.status.unwrap();
    let told = &status.conditions.last().unwrap().message;
    assert_eq!(told, "create Service shop/orders: quota is used up");
    assert_eq!(written(&Databases::decide(&world, retry_at)).len(), 3, "then it is tried again");
}

#[test]
fn errors_have_the_delay_of_their_class() {
    let cases = [
        (Class::Unreachable, Some(10)),
        (Class::Throttled, Some(10)),
        (Class::Denied, Some(10)),
        (Class::Unknown, None),
        (Class::Stale, None),
    ];
    for (class, expected) in cases {
        let delay = Databases::retry_after(class).map(|delay| delay.as_secs());
        assert_eq!(delay, expected, "{class:?}");
    }
}

#[test]
fn an_object_of_somebody_else_is_waited_for() {
    let mut world = running(spec());
    let mut service = Child::clone(world.service.as_ref().unwrap());
    service.owners = vec![gradus_engine::uid::Uid::parse("another")];
    world.service = Some(Arc::new(service));
    let decision = Databases::decide(&world, now());
    assert_eq!((phase(&decision), decision.changes.len()), ("Waiting", 0));
}

#[test]
fn a_database_that_goes_lets_go_what_is_to_be_kept() {
    let deleting = |spec: Value, finalizers: &[&str]| {
        let mut world = running(spec.clone());
        for child in [&mut world.secret, &mut world.claim] {
            let child = Arc::make_mut(child.as_mut().unwrap());
            child.owners = vec![world.database.uid];
        }
        let database = Arc::make_mut(&mut world.database);
        database.is_deleting = true;
        database.finalizers = finalizers.iter().map(|name| (*name).to_owned()).collect();
        written(&Databases::decide(&world, now()))
    };
    let mut keep = spec();
    keep["keepData"] = json!(true);
    assert_eq!(deleting(spec(), &[]), Vec::<String>::new(), "owner references do the rest");
    assert_eq!(deleting(spec(), &[FINALIZER]), ["patch Database shop/orders"]);
    assert_eq!(deleting(keep.clone(), &["other"]).len(), 2, "before the finalizer was written");
    let expected = [
        "patch Secret shop/orders-credentials",
        "patch PersistentVolumeClaim shop/data-orders-0",
        "patch Database shop/orders",
    ];
    assert_eq!(deleting(keep, &[FINALIZER]), expected);
}

#[test]
fn times_are_whole_seconds_and_move_only_with_the_status_of_their_condition() {
    let world = running(spec());
    let began = world.database.status.conditions[0].last_transition_time;
    assert_eq!(began.to_string(), "2026-01-01T12:00:00Z");
    let later = now() + SignedDuration::from_hours(1);
    let status = Databases::decide(&with_spec(world, json!({"replicas": 0})), later).status;
    let times = status.unwrap().conditions.into_iter().map(|one| one.last_transition_time);
    let expected = [began, "2026-01-01T13:00:00Z".parse().unwrap()];
    assert_eq!(times.collect::<Vec<_>>(), expected, "accepted as before, ready no more");
}

#[test]
fn names_are_determined_by_the_database() {
    let database = database(spec());
    let name = |kind| place(&database, kind).name.to_string();
    let names = [SECRET, SERVICE, STATEFUL_SET, CLAIM].map(name);
    assert_eq!(names, ["orders-credentials", "orders", "orders", "data-orders-0"]);
}
