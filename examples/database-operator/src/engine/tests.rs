//! One World each: what is written, asked and told.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_engine::ask::{Answer, AskId, Failure, Recall, Reply};
use gradus_engine::decision::Frees;
use gradus_engine::frame::Frame;

use super::*;
use crate::children::name_of;

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

/// A new Database that was confirmed, with random bytes drawn.
fn fresh(spec: Value) -> Family {
    let head = frame(json!({
        "metadata": { "name": "orders", "namespace": "shop", "uid": UID, "resourceVersion": "7",
                      "generation": 2 },
        "spec": spec,
    }));
    let mut family = Family {
        kind: DATABASE,
        head: Arc::new(head),
        members: BTreeMap::new(),
        unreadable: BTreeMap::new(),
        answers: BTreeMap::new(),
        recall: Recall::default(),
    };
    let answer =
        |reply| Answer { asked_at: now(), answered_at: now(), reply: Ok::<_, Failure>(reply) };
    let there = json!({ "metadata": { "uid": UID, "deletionTimestamp": null } });
    let read = Ask::read(family.head().object).id;
    let random = Ask::random("password", 0).id;
    family.answers.insert(read, answer(Reply::Object(Some(Arc::new(there)))));
    family.answers.insert(random, answer(Reply::Random(Arc::from([7; RANDOM_BYTES]))));
    family
}

/// The same after everything was made and runs.
fn running(spec: Value) -> Family {
    let mut family = fresh(spec.clone());
    for change in Databases::decide(&family, now()).changes {
        let Op::Create(body) = &change.op else { continue }; // The finalizer.
        let mut object = Value::clone(body);
        object["metadata"]["generation"] = json!(1);
        object["metadata"]["resourceVersion"] = json!("1");
        object["status"] = json!({ "observedGeneration": 1, "replicas": 1, "readyReplicas": 1,
                                   "updatedReplicas": 1 });
        put(&mut family, &change.target.kind, object);
    }
    let claim = json!({ "metadata": { "ownerReferences": [{ "uid": UID }] },
        "spec": { "resources": { "requests": { "storage": spec["storage"] } } } });
    put(&mut family, &CLAIM, claim);
    family.answers.clear();
    let status = Databases::decide(&family, now()).status.unwrap();
    Arc::make_mut(&mut family.head).status = Arc::new(status);
    family
}

fn put(family: &mut Family, kind: &Kind, object: Value) {
    let name = Family::<()>::name_of(kind, &name_of(family, kind));
    family.members.insert(name, Arc::new(frame(object)));
}

fn remove(family: &mut Family, kind: &Kind) {
    let name = Family::<()>::name_of(kind, &name_of(family, kind));
    family.members.remove(&name).expect("it was there");
}

/// Changes a child where it is stored.
fn edit(family: &mut Family, kind: &Kind, change: impl FnOnce(&mut Frame)) {
    let name = Family::<()>::name_of(kind, &name_of(family, kind));
    change(Arc::make_mut(family.members.get_mut(&name).expect("it is there")));
}

fn with_spec(mut family: Family, change: Value) -> Family {
    let mut spec = spec();
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    Arc::make_mut(&mut family.head).spec = Arc::new(spec);
    family
}

fn written(decision: &Decision<Value>) -> Vec<String> {
    decision.changes.iter().map(|change| change.id.0.to_string()).collect()
}

fn phase(decision: &Decision<Value>) -> &str {
    decision.status.as_ref().and_then(|status| status["phase"].as_str()).unwrap_or_default()
}

/// The message of the last condition.
fn last_message(decision: &Decision<Value>) -> &str {
    let conditions = decision.status.as_ref().unwrap()["conditions"].as_array().unwrap();
    conditions.last().unwrap()["message"].as_str().unwrap()
}

#[test]
fn nothing_is_made_before_the_database_is_confirmed_and_bytes_are_drawn() {
    let mut world = fresh(spec());
    let answers = std::mem::take(&mut world.answers);
    let ids = |decision: &Decision<Value>| -> Vec<AskId> {
        decision.asks.iter().map(|ask| ask.id.clone()).collect()
    };
    let read = Ask::read(world.head().object).id;
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
    assert_eq!(decision.status.as_ref(), Some(&*world.head.status));
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
        ("more storage", json!({"storage": "2Gi"}), &[secret, claim], "Ready"),
        ("the same storage", json!({"storage": "1024Mi"}), &[secret], "Ready"),
        (
            "data to be kept",
            json!({"keepData": true}),
            &["patch Database shop/orders", secret, claim],
            "Ready",
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
    edit(&mut world, &STATEFUL_SET, |set| {
        Arc::make_mut(&mut set.meta.labels).insert("team".to_owned(), "shop".to_owned());
        let template = &mut Arc::make_mut(&mut set.spec)["template"]["spec"];
        template["containers"][0]["imagePullPolicy"] = json!("Always");
        template["tolerations"] = json!([{ "key": "x" }]);
    });
    assert_eq!(written(&Databases::decide(&world, now())), Vec::<String>::new());

    edit(&mut world, &STATEFUL_SET, |set| {
        let template = &mut Arc::make_mut(&mut set.spec)["template"]["spec"];
        template["containers"][0]["image"] = json!("postgres:9.6");
    });
    let decision = Databases::decide(&world, now());
    let Op::Merge(patch) = &decision.changes[0].op else { panic!("it is patched") };
    let container = &patch["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "postgres:15.6");
    assert_eq!(container["imagePullPolicy"], "Always", "a list is written whole");
    assert_eq!(patch["spec"].as_object().unwrap().len(), 1, "and nothing beside it");
}

#[test]
fn lost_credentials_are_made_anew_only_while_there_are_no_data() {
    let cases: [(&str, &[Kind], &str, usize); 4] = [
        ("the set and the claim are there", &[], "CredentialsLost", 0),
        ("the set is there", &[CLAIM], "CredentialsLost", 0),
        ("the claim is there", &[STATEFUL_SET], "CredentialsLost", 0),
        ("neither is there", &[CLAIM, STATEFUL_SET], "Starting", 2),
    ];
    for (what, gone, expected, writes) in cases {
        let mut world = running(spec());
        world.answers = fresh(spec()).answers;
        gone.iter().chain([&SECRET]).for_each(|kind| remove(&mut world, kind));
        let decision = Databases::decide(&world, now());
        assert_eq!((phase(&decision), decision.changes.len()), (expected, writes), "{what}");
        let message = last_message(&decision);
        let words = ["shop/orders-credentials", "database.gradus.dev/name=orders", "data-orders-0"];
        let is_told = words.iter().all(|word| message.contains(word));
        assert_eq!(is_told, expected == "CredentialsLost", "{what}: {message}");
    }
}

#[test]
fn what_cannot_be_read_is_not_taken_for_absent() {
    let mut world = fresh(spec());
    world.unreadable.insert("secrets".to_owned(), "secrets is forbidden".to_owned());
    let decision = Databases::decide(&world, now());
    assert_eq!((phase(&decision), decision.changes.len()), ("Waiting", 0));
    assert_eq!(last_message(&decision), "secrets cannot be read: secrets is forbidden");
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
    assert_eq!(last_message(&waiting), "create Service shop/orders: quota is used up");
    assert_eq!(waiting.why[0].frees, Frees::Cluster, "nobody has to edit the Database");
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
    edit(&mut world, &SERVICE, |service| service.meta.owners[0].uid = Default::default());
    let decision = Databases::decide(&world, now());
    assert_eq!((phase(&decision), decision.changes.len()), ("Waiting", 0));
}

#[test]
fn a_database_that_goes_lets_go_what_is_to_be_kept() {
    let deleting = |keep_data: bool, finalizers: &[&str]| {
        let mut world = with_spec(running(spec()), json!({ "keepData": keep_data }));
        let meta = &mut Arc::make_mut(&mut world.head).meta;
        meta.deleting = Some(now());
        meta.finalizers = finalizers.iter().map(|name| (*name).to_owned()).collect();
        written(&Databases::decide(&world, now()))
    };
    assert_eq!(deleting(false, &[]), Vec::<String>::new(), "owner references do the rest");
    assert_eq!(deleting(false, &[FINALIZER]), ["patch Database shop/orders"]);
    assert_eq!(deleting(true, &["other"]).len(), 2, "before the finalizer was written");
    let expected = [
        "patch Secret shop/orders-credentials",
        "patch PersistentVolumeClaim shop/data-orders-0",
        "patch Database shop/orders",
    ];
    assert_eq!(deleting(true, &[FINALIZER]), expected);
}

#[test]
fn times_are_whole_seconds_and_move_only_with_the_status_of_their_condition() {
    let world = running(spec());
    let times = |status: &Value| -> Vec<Value> {
        let conditions = status["conditions"].as_array().unwrap();
        conditions.iter().map(|one| one["lastTransitionTime"].clone()).collect()
    };
    assert_eq!(times(&world.head.status), ["2026-01-01T12:00:00Z"; 2]);
    let later = now() + SignedDuration::from_hours(1);
    let status = Databases::decide(&with_spec(world, json!({"replicas": 0})), later).status;
    let expected = ["2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"];
    assert_eq!(times(&status.unwrap()), expected, "accepted as before, ready no more");
}

#[test]
fn a_world_can_be_saved_and_read() {
    let world = fresh(spec());
    let saved: Family = serde_json::from_value(json!(world)).unwrap();
    assert_eq!(saved.head.meta.version, 7);
    assert_eq!(saved.answers.len(), 2);
}
