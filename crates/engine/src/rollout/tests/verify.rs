//! Load balancers that are asked whether they split the traffic as they were told.

use gradus_api::rollout::status::AlbStatus;
use serde_json::{Value, json};

use super::at;
use super::routers::with_fixed_services;
use super::story::Story;
use crate::ask::{Class, Failure, Split, WeightsSaid};
use crate::decision::EventKind;

fn said(split: Split) -> Option<Result<WeightsSaid, Failure>> {
    let resource = |name: &str| json!({ "name": name, "arn": format!("arn:{name}") });
    let balancer: AlbStatus = serde_json::from_value(json!({ "ingress": "web",
        "loadBalancer": resource("lb"), "canaryTargetGroup": resource("c"),
        "stableTargetGroup": resource("s") }))
    .unwrap();
    let message = format!("{split:?}");
    Some(Ok(WeightsSaid { split, message, load_balancers: vec![balancer] }))
}

fn away() -> Option<Result<WeightsSaid, Failure>> {
    let (class, message) = (Class::Unreachable, "away".to_owned());
    Some(Err(Failure { class, message, times: 1, retry_at: at(1000) }))
}

/// In mid-update, at a weight that the Ingress has and of which nothing is heard yet.
fn waiting(steps: Value) -> Story {
    let mut story = with_fixed_services(steps);
    story.balancers_say(None);
    story.settle(at(0));
    assert!(story.status().get("albs").is_none(), "nothing is asked in a first deploy");
    story.set_image("v2");
    story.settle(at(1));
    story.take_events();
    story
}

fn steps() -> Value {
    json!([{ "setWeight": 25 }, { "pause": {} }])
}

/// What is heard | verified | reason of Held | Events | the step it is at then.
const HEARD: &str = "
nothing    | false | -                     |                      | 0
otherwise  | false | TargetGroupUnverified | TargetGroupUnverified | 0
nowhere    | false | LoadBalancerNotFound  | LoadBalancerNotFound  | 0
unreadable | false | TargetGroupVerifyError | TargetGroupVerifyError | 0
away       | false | WeightVerifyError     | WeightVerifyError    | 0
as told    | null  | -                     | TargetGroupVerified RolloutStepCompleted RolloutPaused | 1";

#[test]
fn a_weight_step_waits_for_the_word_of_the_load_balancer() {
    for row in HEARD.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [heard, verified, held, events, step] = cells[..] else { panic!("five cells: {row}") };
        let mut story = waiting(steps());
        story.balancers_say(match heard {
            "otherwise" => said(Split::Otherwise),
            "nowhere" => said(Split::Nowhere),
            "unreadable" => said(Split::Unreadable),
            "as told" => said(Split::AsTold),
            "away" => away(),
            _ => None,
        });
        story.settle(at(2));
        story.settle(at(3));
        let status = story.status();
        assert_eq!(status["currentStepIndex"].to_string(), step, "{heard}");
        assert_eq!(status["canary"]["weights"]["canary"]["weight"], 25, "{heard}");
        assert_eq!(status["canary"]["weights"]["verified"].to_string(), verified, "{heard}");
        let known = status["conditions"].as_array().unwrap().iter();
        let known = known.filter(|known| known["type"] == "Held").map(|known| &known["reason"]);
        let known: Vec<&str> = known.map(|reason| reason.as_str().unwrap()).collect();
        assert_eq!(known.first().copied().unwrap_or("-"), held, "{heard}");
        assert_eq!(story.take_events().join(" "), events, "{heard}: told once");
        let is_found = !["nothing", "away"].contains(&heard);
        assert_eq!(status["alb"]["loadBalancer"]["name"] == "lb", is_found, "{heard}");
        match heard {
            "nothing" => assert!(story.why().contains("is weight 25 of Service canary in force")),
            "as told" => {}
            _ => assert!(story.why().contains("cannot be split"), "{}", story.why()),
        }
    }
}

#[test]
fn a_load_balancer_that_lags_is_asked_again_after_ten_seconds() {
    let mut story = waiting(steps());
    story.balancers_say(said(Split::Otherwise));
    story.reconcile(at(2));
    let decision = story.decide();
    assert_eq!(decision.wake_at, Some(at(12)));
    assert!(decision.events.iter().all(|event| event.kind == EventKind::Warning));
    story.balancers_say(said(Split::AsTold));
    story.settle(at(11));
    assert_eq!(story.status()["currentStepIndex"], 0, "not before");
    story.settle(at(12));
    assert_eq!(story.status()["currentStepIndex"], 1);
}

#[test]
fn the_end_of_an_update_waits_too_and_no_pods_go_before() {
    let mut story = waiting(steps());
    story.balancers_say(said(Split::AsTold));
    story.settle(at(2));
    story.promote();
    story.balancers_say(None);
    story.settle(at(3));
    let status = story.status();
    assert_eq!(status["canary"]["weights"]["canary"]["weight"], 100);
    assert_eq!((story.sizes(), &status["phase"]), (vec![4, 4], &json!("Progressing")));
    assert_ne!(status["stableRS"], status["currentPodHash"]);
    story.balancers_say(said(Split::AsTold));
    story.settle(at(4));
    let status = story.status();
    assert_eq!(
        (status["stableRS"] == status["currentPodHash"], &status["phase"]),
        (true, &json!("Healthy"))
    );
    story.take_lists();
    assert_eq!(story.rest(at(5)), [""; 0]);
    assert_eq!(story.take_lists(), 0, "nothing is asked at rest");
}

#[test]
fn an_abort_does_not_wait_for_a_load_balancer() {
    let mut story = waiting(steps());
    story.patch_status(json!({ "abort": true }));
    story.settle(at(2));
    assert_eq!(story.status()["canary"]["weights"]["canary"]["weight"], 0);
    assert_eq!(story.status()["phase"], "Degraded");
}
