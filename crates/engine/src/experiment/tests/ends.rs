//! What cannot be carried out as it is written.

use super::*;

/// Its templates, as fields over those of a good one | what is wrong.
#[test]
fn a_spec_that_is_wrong_is_told_and_nothing_is_done() {
    let good = || template("a", json!({}));
    let none = |field: &str| {
        let mut template = good();
        template.as_object_mut().unwrap().remove(field);
        template
    };
    let cases = [
        (
            vec![good(), none("selector")],
            "",
            "Rollout has missing field '.Spec.Templates[1].Selector'",
        ),
        (
            vec![template("a", json!({ "selector": {} }))],
            "",
            "This experiment is selecting all pods at index 0. A non-empty selector is required.",
        ),
        (
            vec![template("a", json!({ "minReadySeconds": 601 }))],
            "",
            "MinReadySeconds cannot be longer than ProgressDeadlineSeconds. Check template index 0",
        ),
        (vec![none("name")], "", "Experiment study has empty template name at index 0"),
        (vec![good(), good()], "", "Experiment study has repeated template name 'a' in templates"),
        (
            vec![good()],
            "5 minutes",
            "Experiment study has an invalid spec.duration: time: unknown unit \" minutes\" in \
             duration \"5 minutes\"",
        ),
    ];
    for (templates, duration, expected) in cases {
        let mut play = Play::new(json!({ "templates": templates, "duration": duration }));
        play.settle();
        let condition = &play.status().conditions[0];
        assert_eq!(condition.message, expected);
        let [kind, truth, reason] = [&condition.r#type, &condition.status, &condition.reason];
        assert_eq!([&**kind, truth, reason], ["InvalidSpec", "True", "InvalidSpec"]);
        assert_eq!((&*play.status().phase, play.written.len()), ("", 0), "{expected}");
        play.spec(|spec| {
            *spec = gradus_api::decode::decode(&one(json!({ "duration": "60s" }))).0;
        });
        play.settle();
        assert_eq!(play.status().phase, "Running", "{expected}: once it is right");
        let is_left = |one: &gradus_api::rollout::status::Condition| one.r#type == "InvalidSpec";
        assert!(!play.status().conditions.iter().any(is_left), "{expected}");
    }
}

#[test]
fn two_replica_sets_for_one_template_hold_it_up() {
    let mut play = Play::new(one(json!({})));
    play.settle();
    let mut other = play.object("ReplicaSet", "study-a").unwrap().clone();
    other["metadata"]["name"] = json!("twin");
    play.objects.insert(("ReplicaSet".to_owned(), "twin".to_owned()), other);
    play.spec(|spec| spec.terminate = true);
    play.look();
    let decision = decide(&play.world, play.now);
    assert_eq!(decision.changes, []);
    let message = "multiple ReplicaSets match single experiment template: a".to_owned();
    assert_eq!(decision.why[0].guard, Guard::InvalidSpec { message });
}
