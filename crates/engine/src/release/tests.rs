//! Whose marks go, as a table.

use super::*;
use crate::ask::{Class, Failure};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn marked(hash: Option<&str>, managed_by: Option<&str>, users: &[&str]) -> Marked {
    let service = ServiceView {
        name: "active".into(),
        uid: crate::uid::Uid::default(),
        version: 7,
        hash: hash.map(Into::into),
        selector: BTreeMap::new(),
        managed_by: managed_by.map(Into::into),
    };
    Marked {
        namespace: "default".into(),
        service: Arc::new(service),
        users: users.iter().map(|name| (*name).into()).collect(),
        manager: 0,
        answers: BTreeMap::new(),
        recall: Recall::default(),
    }
}

fn answered(world: &mut Marked, reply: Result<Reply, Failure>) {
    let ask = question(world).unwrap();
    let answer = Answer { asked_at: at(0), answered_at: at(1), reply };
    world.answers.insert(ask.id, answer);
}

fn rollout(strategy: Value) -> Arc<Value> {
    Arc::new(json!({ "spec": { "strategy": strategy } }))
}

/// What is decided: the patch, or nothing.
fn patch(world: &Marked) -> Option<Value> {
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
    world.manager = 12;
    assert_eq!(patch(&world), None);
    assert_eq!(decide(&world, at(0)).asks.len(), 1, "it is asked again");
}

#[test]
fn a_refusal_is_tried_again_when_it_is_due() {
    let mut world = marked(Some("h"), Some("web"), &[]);
    answered(&mut world, Ok(Reply::Object(None)));
    let refused = Failure { class: Class::Denied, message: "no".into(), times: 1, retry_at: at(3) };
    world.recall.failed.insert(unmark(&world).id, refused);
    assert_eq!(patch(&world), None);
    assert_eq!(decide(&world, at(3)).changes.len(), 1);
}
