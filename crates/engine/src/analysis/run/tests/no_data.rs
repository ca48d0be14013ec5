//! What a measurement without data means, as `onNoData` says, and conditions that look at the values
//! before.

use super::*;

/// Phases of the measurements of `m`, and how the run ended.
fn told(play: &Play) -> String {
    let phases: Vec<&str> =
        play.result("m").measurements.iter().map(|one| one.phase.as_str()).collect();
    format!("{}: {}", play.status().phase, phases.join(" "))
}

fn metric(on_no_data: &str) -> Value {
    json!({ "interval": "5s", "count": 2, "onNoData": on_no_data, "inconclusiveLimit": 1,
        "failureLimit": 1, "successCondition": "result > 0" })
}

#[test]
fn no_data_means_what_the_metric_says() {
    let cases = [
        ("it passes", "pass", "null 1", "Successful: Successful Successful", 5),
        ("it fails", "fail", "null null", "Failed: Failed Failed", 5),
        ("nobody knows", "inconclusive", "null 1", "Successful: Inconclusive Successful", 5),
        ("it is waited for", "wait", "null null 1 null 1", "Successful: Successful Successful", 20),
    ];
    for (what, on_no_data, answers, expected, seconds) in cases {
        let mut play = Play::new(one(metric(on_no_data)), answers);
        play.go(600);
        assert_eq!(told(&play), expected, "{what}");
        let (began, ended) =
            (play.status().started_at.unwrap(), play.status().completed_at.unwrap());
        let took = ended.timestamp().as_second() - began.timestamp().as_second();
        assert_eq!(took, seconds, "{what}");
        assert_eq!(play.calls, answers.split(' ').count(), "{what}: each value is asked for once");
        let result = play.result("m");
        assert_eq!((result.count, result.error), (2, 0), "{what}");
    }
}

#[test]
fn without_the_field_no_data_is_judged_by_the_conditions() {
    let mut play = Play::new(one(json!({ "successCondition": "result > 0" })), "null 1");
    play.go(600);
    assert_eq!(told(&play), "Successful: Error Successful", "and repeated after 10 seconds");
}

#[test]
fn what_waits_for_data_says_so_and_survives_a_restart() {
    let mut play = Play::new(one(metric("wait")), "null -");
    play.go(3);
    let last = play.result("m").measurements.last().unwrap();
    assert_eq!((&*last.phase, &*last.value), ("Running", "null"));
    assert_eq!(last.message, "no data returned from the metric provider; it is measured again");
    assert_eq!(last.resume_at.unwrap().timestamp().as_second(), 1005);
    assert!(last.finished_at.is_none());
    play.go(3);
    play.restart();
    play.script = ["1".to_owned(), "1".to_owned()].into();
    play.go(600);
    assert_eq!(told(&play), "Successful: Successful Successful");
}

#[test]
fn a_run_that_is_ended_while_it_waits_for_data_is_no_success() {
    let mut spec = one(metric("wait"));
    spec["metrics"][0]["inconclusiveLimit"] = json!(0);
    let mut play = Play::new(spec, "null");
    play.go(2);
    play.change_run(|run| run.spec.terminate = true);
    play.go(600);
    assert_eq!(told(&play), "Inconclusive: Inconclusive");
    assert_eq!(play.calls, 1, "and nobody is asked once more");
}

#[test]
fn conditions_see_what_was_measured_before() {
    // It fails when the mean of all values so far is above 2.
    let spec = one(json!({ "interval": "5s", "count": 12, "successCondition": "",
        "failureCondition": "minSamples(3, history) && mean(history) > 2" }));
    let mut play = Play::new(spec.clone(), "9 9 1 1 1 1");
    play.go(600);
    assert_eq!(play.status().phase, "Failed", "19 / 3 is more than 2");
    assert_eq!(play.result("m").measurements.len(), 3);
    let mut play = Play::new(spec, "1 1 1 1 1 1 1 1 1 1 1 1");
    play.go(600);
    assert_eq!(play.status().phase, "Successful");
    assert_eq!(play.result("m").measurements.len(), 12, "more than 10 are kept for it");
}

#[test]
fn another_word_is_refused() {
    let mut play = Play::new(one(json!({ "onNoData": "ignore" })), "");
    play.go(1);
    assert_eq!(
        play.status().message,
        "Analysis spec invalid: metrics[0]: onNoData must be one of wait, inconclusive, pass, fail, \
         not \"ignore\""
    );
}
