//! A question that changes something outside is a write: asked after the status that justifies it is
//! stored, never from a decision that was cut, and its answer is never thrown away.

use gradus_engine::ask::{
    Ask, AskId, Effect, PluginReply, Question, Reply, RouterCall, RouterGoal, RouterOperation,
    RouterReply,
};
use serde_json::{Value, json};

use super::super::*;
use super::{asked, at, done, frame, job, key, shell};

fn answers(shell: &Shell<super::Lamps>, now: Timestamp) -> usize {
    let world = shell.inspect(&key(), now).unwrap();
    world["world"]["answers"].as_object().map_or(0, serde_json::Map::len)
}

#[test]
fn it_is_asked_once_its_status_is_stored() {
    let spec = json!({ "on": true, "call": "bell" });
    let mut shell = shell(5, spec.clone(), json!({}));
    let first = job(&mut shell, at(0)).expect("the status comes first");
    assert!(shell.next_work(at(0)).is_none(), "and nothing is asked meanwhile");
    shell.learn(done(first, 6), at(1));
    assert!(shell.next_work(at(1)).is_none(), "nor before its own write is shown");
    let stored = frame("desk", 6, spec, json!({ "on": true }));
    shell.observe(&(), &Seen::Apply(stored), at(2));
    let inquiry = asked(&mut shell, at(2)).expect("now it is");
    assert_eq!(inquiry.effect, gradus_engine::ask::Effect::Acts);
    assert!(shell.next_work(at(2)).is_none(), "once");
}

#[test]
fn its_answer_is_kept_though_nobody_wants_it_any_more() {
    let lit = json!({ "on": true });
    let mut shell = shell(5, json!({ "on": true, "call": "bell" }), lit.clone());
    let inquiry = asked(&mut shell, at(0)).expect("nothing is to be stored");
    shell.observe(&(), &Seen::Apply(frame("desk", 6, lit.clone(), lit)), at(1));
    assert!(shell.next_work(at(1)).is_none(), "it is not asked for any more");
    let reply = Reply::Plugin(PluginReply::Disabled);
    shell.learn_answer(inquiry, Ok(reply), at(2));
    assert_eq!(answers(&shell, at(2)), 1, "the next decision sees it");
    assert!(shell.next_work(at(2)).is_none());
    assert_eq!(answers(&shell, at(2)), 0, "and may forget it");
}

#[test]
fn it_is_not_asked_by_a_decision_that_was_cut() {
    for (mode, is_asked) in [(InterlockMode::Enforce, false), (InterlockMode::Warn, true)] {
        let lit: Value = json!({ "on": true });
        let mut shell = Shell::<super::Lamps>::new(&Scope::default(), mode);
        let spec = json!({ "on": true, "call": "bell", "glaring": true });
        shell.observe(&(), &Seen::Init, at(0));
        shell.observe(&(), &Seen::InitApply(frame("desk", 5, spec, lit)), at(0));
        shell.observe(&(), &Seen::InitDone, at(0));
        assert_eq!(asked(&mut shell, at(0)).is_some(), is_asked, "{mode:?}");
    }
}

#[test]
fn one_that_could_not_be_asked_is_no_answer_and_is_asked_again() {
    let lit = json!({ "on": true });
    let mut shell = shell(5, json!({ "on": true, "call": "bell" }), lit);
    let inquiry = asked(&mut shell, at(0)).expect("nothing is to be stored");
    shell.take_back(inquiry, at(0));
    assert_eq!(answers(&shell, at(0)), 0, "nobody has answered");
    assert!(shell.next_work(at(0)).is_none(), "not at once");
    assert!(asked(&mut shell, at(1000)).is_some(), "the lead may be back");
}

/// Tells a traffic plugin of this weight.
fn tell(weight: i32) -> Ask {
    let goal = RouterGoal {
        canary_hash: String::new(),
        stable_hash: String::new(),
        weight_first: false,
        routes: None,
    };
    let operation = RouterOperation::Split(Box::new(goal));
    let call = RouterCall { name: "a/router".into(), operation, weight, additional: Vec::new() };
    let question = Question::RouterPlugin(Box::new(call));
    Ask { id: AskId(weight.to_string().into()), question, effect: Effect::Acts, after: None }
}

#[test]
fn a_traffic_plugin_is_told_one_thing_after_the_other() {
    let mut shell = shell(5, json!({}), json!({}));
    shell.start_asks(&key(), &[tell(0)], Askable::All, at(0));
    let first = asked(&mut shell, at(0)).expect("the first");
    shell.start_asks(&key(), &[tell(25)], Askable::All, at(1));
    assert!(asked(&mut shell, at(1)).is_none(), "the first may arrive after it");
    shell.learn_answer(first, Ok(Reply::RouterPlugin(RouterReply::Told)), at(2));
    assert!(shell.next_due().is_some(), "the answer wakes the key");
    shell.start_asks(&key(), &[tell(25)], Askable::All, at(3));
    assert!(asked(&mut shell, at(3)).is_some());
}
