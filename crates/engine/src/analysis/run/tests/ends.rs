//! How runs end early, what does not count, and what is left of them.

use proptest::prelude::*;

use super::*;

fn two(first: Value, second: Value) -> Value {
    json!({ "metrics": [web(first), web(second)] })
}

fn every(name: &str) -> Value {
    json!({ "name": name, "interval": "5s" })
}

#[test]
fn a_failure_ends_the_other_metrics() {
    let mut play = Play::new(two(every("m"), every("n")), "1 1 1 0");
    play.go(600);
    let status = play.status();
    assert_eq!(status.phase, "Failed");
    let message = "Metric \"n\" assessed Failed due to failed (1) > failureLimit (0)";
    assert_eq!(status.message, message);
    assert_eq!((&*play.result("m").phase, &*play.result("n").phase), ("Successful", "Failed"));
    let summary = &status.run_summary;
    assert_eq!((summary.count, summary.successful, summary.failed), (2, 1, 1));
    let expected = [
        "MetricFailed Metric 'n' Completed. Result: Failed",
        "MetricSuccessful Metric 'm' Completed. Result: Successful",
        "AnalysisRunFailed Analysis Completed. Result: Failed",
    ];
    assert_eq!(play.events, expected);
    assert_eq!(play.settle(), None, "a completed run is left alone");
}

#[test]
fn the_worst_metric_decides() {
    let both = json!({ "name": "i", "failureCondition": "result < 0", "count": 1 });
    let error = json!({ "name": "e", "consecutiveErrorLimit": 0, "count": 1 });
    let fail = json!({ "name": "f", "count": 1 });
    let cases = [
        (two(both.clone(), error.clone()), "0 E", "Error"),
        (two(error.clone(), fail.clone()), "E 0", "Failed"),
        (two(fail, both), "0 0", "Failed"),
        (two(error, every("n")), "E 1", "Error"),
    ];
    for (spec, answers, expected) in cases {
        let mut play = Play::new(spec, answers);
        play.go(600);
        assert_eq!(play.status().phase, expected, "{answers}");
    }
}

#[test]
fn a_run_that_is_told_to_end_ends_as_its_measurements_say() {
    let cases = [
        // what, answers before, the end, its message
        ("nothing measured", "-", "Successful", "Run Terminated"),
        ("good values", "1", "Successful", "Run Terminated"),
        (
            "nothing but errors is no success",
            "E",
            "Error",
            "Metric \"m\" assessed Error due to errors (1) and no other measurement",
        ),
    ];
    for (what, answers, phase, message) in cases {
        let mut play = Play::new(one(every("m")), answers);
        play.go(2);
        play.change_run(|run| run.spec.terminate = true);
        play.go(60);
        assert_eq!(play.status().phase, phase, "{what}");
        assert!(play.status().message.starts_with(message), "{what}: {}", play.status().message);
        let calls = play.calls;
        play.go(600);
        assert_eq!(play.calls, calls, "{what}: nothing more is measured");
        assert!(play.status().completed_at.is_some(), "{what}");
    }
}

#[test]
fn a_run_of_nothing_but_errors_is_never_successful() {
    for limit in [0, 1, 4, 100] {
        for after in [0, 5, 12, 25, 90] {
            let metric = json!({ "interval": "5s", "consecutiveErrorLimit": limit });
            let mut play = Play::new(one(metric), &["E"; 200].join(" "));
            play.go(after);
            play.change_run(|run| run.spec.terminate = true);
            play.go(60);
            assert_eq!(play.status().phase, "Error", "limit {limit}, ended after {after}");
        }
    }
}

#[test]
fn a_dry_run_is_reported_and_does_not_count() {
    let mut spec = two(json!({ "name": "m" }), json!({ "name": "dry-1" }));
    spec["dryRun"] = json!([{ "metricName": "dry-.*" }]);
    let mut play = Play::new(spec, "1 0");
    play.go(60);
    let status = play.status();
    assert_eq!((&*status.phase, &*status.message), ("Successful", ""));
    let dry = play.result("dry-1");
    assert!(dry.dry_run && !play.result("m").dry_run);
    let message = "Metric assessed Failed due to failed (1) > failureLimit (0)";
    assert_eq!((&*dry.phase, &*dry.message), ("Failed", message));
    assert_eq!((status.run_summary.count, status.run_summary.successful), (1, 1));
    let summary = status.dry_run_summary.as_ref().unwrap();
    assert_eq!((summary.count, summary.failed), (1, 1));
}

#[test]
fn a_dry_run_ends_no_other_metric() {
    let mut spec =
        two(json!({ "name": "m", "interval": "5s", "count": 3 }), json!({ "name": "d" }));
    spec["dryRun"] = json!([{ "metricName": "d" }]);
    let mut play = Play::new(spec, "1 0 1 1");
    play.go(60);
    assert_eq!((play.result("m").count, &*play.status().phase), (3, "Successful"));
    let mut all_dry = one(json!({}));
    all_dry["dryRun"] = json!([{ "metricName": ".*" }]);
    let mut play = Play::new(all_dry, "0");
    play.go(60);
    assert_eq!(play.status().phase, "Successful", "nothing that counts has failed");
}

#[test]
fn a_completed_run_is_deleted_when_its_time_has_come() {
    let cases = [
        // what, the strategy, the answer, deleted after so many seconds
        ("never", json!({}), "1", None),
        ("after completion", json!({ "secondsAfterCompletion": 60 }), "1", Some(61)),
        (
            "after success",
            json!({ "secondsAfterCompletion": 60, "secondsAfterSuccess": 5 }),
            "1",
            Some(6),
        ),
        (
            "after failure",
            json!({ "secondsAfterCompletion": 60, "secondsAfterFailure": 7 }),
            "0",
            Some(8),
        ),
        ("not as after a success", json!({ "secondsAfterSuccess": 5 }), "0", None),
        ("at once", json!({ "secondsAfterCompletion": 0 }), "1", Some(1)),
    ];
    for (what, strategy, answer, expected) in cases {
        let mut spec = one(json!({}));
        spec["ttlStrategy"] = strategy;
        let mut play = Play::new(spec, answer);
        play.go(0);
        let wake_at = decide(&play.world, play.now).wake_at;
        assert_eq!(wake_at.map(|at| at.as_second() - 1000), expected, "{what}");
        let Some(seconds) = expected else { continue };
        play.restart();
        play.now += SignedDuration::from_secs(seconds - 1);
        play.step();
        assert!(!play.is_deleted, "{what}");
        play.now += SignedDuration::from_secs(1);
        play.step();
        assert!(play.is_deleted, "{what}");
    }
}

proptest! {
    /// Whatever somebody writes into a status, a decision is made, and the same one again.
    #[test]
    fn no_status_stops_the_engine(
        numbers in proptest::collection::vec(any::<i32>(), 7),
        times in proptest::collection::vec(-62_135_596_800_i64..253_402_300_000, 4),
        phases in proptest::collection::vec(0_usize..8, 3),
        job in any::<bool>(),
        now in 0_i64..4_000_000_000,
    ) {
        const PHASES: [&str; 8] =
            ["", "Pending", "Running", "Successful", "Failed", "Error", "Inconclusive", "x"];
        let time = |at: i64| Timestamp::from_second(at).unwrap().to_string();
        let status = json!({
            "phase": PHASES[phases[0]], "startedAt": time(times[0]), "completedAt": time(times[1]),
            "metricResults": [{ "name": "m", "phase": PHASES[phases[1]], "count": numbers[0],
                "successful": numbers[1], "failed": numbers[2], "inconclusive": numbers[3],
                "error": numbers[4], "consecutiveError": numbers[5],
                "consecutiveSuccess": numbers[6], "measurements": [{ "phase": PHASES[phases[2]],
                    "startedAt": time(times[2]), "resumeAt": time(times[3]) }] }],
        });
        let mut spec = one(json!({ "interval": "1h", "initialDelay": "2000000h" }));
        spec["ttlStrategy"] = json!({ "secondsAfterCompletion": numbers[0] });
        if job {
            spec["metrics"][0]["provider"] = json!({ "job": { "spec": {} } });
        }
        let mut play = Play::new(spec, "");
        play.change_run(|run| run.status = Arc::new(serde_json::from_value(status).unwrap()));
        let now = Timestamp::from_second(now).unwrap();
        prop_assert_eq!(decide(&play.world, now), decide(&play.world, now));
    }
}

#[test]
fn a_run_that_is_being_deleted_is_left_alone() {
    let mut play = Play::new(one(json!({})), "1");
    play.change_run(|run| run.is_deleting = true);
    assert_eq!(decide(&play.world, play.now), Decision::default());
}

#[test]
fn results_stand_in_the_order_of_the_spec() {
    let named = |name: &str, delay: &str| web(json!({ "name": name, "initialDelay": delay }));
    let metrics = json!([named("late", "5s"), named("soon", ""), named("last", "9s")]);
    let mut play = Play::new(json!({ "metrics": metrics }), "5 5 5");
    play.go(20);
    let names = play.status().metric_results.iter().map(|result| &*result.name);
    assert_eq!(names.collect::<Vec<_>>(), ["late", "soon", "last"]);
}

#[test]
fn some_providers_keep_the_value_that_no_condition_can_judge() {
    let vector = r#"{"status":"success","warnings":["slow"],"data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]}}"#;
    let query = json!({ "address": "http://p", "query": "target=a" });
    let cases = [
        (json!({ "graphite": query }), r#"[{"datapoints":[[2,1]]}]"#, "[2.000000]"),
        (
            json!({ "cloudWatch": { "metricDataQueries": [{ "id": "a" }] } }),
            r#"{"MetricDataResults":[{"Values":[2]}]}"#,
            "[[2]]",
        ),
        (json!({ "prometheus": query }), vector, ""),
        (json!({ "web": { "url": "http://w" } }), "[2]", ""),
    ];
    for (provider, answer, value) in cases {
        let fields = json!({ "successCondition": "result[7] > 1", "provider": provider });
        let mut play = Play::new(one(fields), answer);
        play.settle();
        let measured = &play.result("m").measurements[0];
        assert_eq!((&*measured.phase, &*measured.value), ("Error", value), "{provider}");
        assert!(measured.metadata.is_empty(), "{provider}");
    }
}
