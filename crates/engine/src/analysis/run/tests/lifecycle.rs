//! Due measurements, counts, limits and what they mean.

use super::*;

/// How a run ended: its phase, its message, and count/successful/failed/inconclusive/error of `m`.
fn told(play: &Play) -> String {
    let status = play.status();
    let result = play.result("m");
    let MetricResult { count, successful, failed, inconclusive, error, .. } = result;
    let counts = format!("{count}/{successful}/{failed}/{inconclusive}/{error}");
    format!("{} {counts} {}", status.phase, status.message).trim_end().to_owned()
}

#[test]
fn measurements_lead_to_the_end_that_the_limits_say() {
    let every = |fields: Value| {
        let mut metric = json!({ "interval": "5s", "count": 3 });
        metric.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        metric
    };
    let failed = "Metric \"m\" assessed Failed due to failed";
    let both = json!({ "failureCondition": "result < 0", "count": 2, "interval": "5s" });
    let cases = [
        // what, metric, answers, the end, after how many seconds
        ("one good value", json!({}), "1", "Successful 1/1/0/0/0".to_owned(), 0),
        ("one bad value", json!({}), "0", format!("Failed 1/0/1/0/0 {failed} (1) > failureLimit (0)"), 0),
        ("no conditions", json!({ "successCondition": "" }), "0", "Successful 1/1/0/0/0".to_owned(), 0),
        ("three of three", every(json!({})), "1 1 1", "Successful 3/3/0/0/0".to_owned(), 10),
        ("the first failure ends it", every(json!({})), "1 0",
            format!("Failed 2/1/1/0/0 {failed} (1) > failureLimit (0)"), 5),
        ("one failure is allowed", every(json!({ "failureLimit": 1 })), "1 0 1",
            "Successful 3/2/1/0/0".to_owned(), 10),
        ("two are not", every(json!({ "failureLimit": "1" })), "0 0",
            format!("Failed 2/0/2/0/0 {failed} (2) > failureLimit (1)"), 5),
        ("neither good nor bad", both.clone(), "0",
            "Inconclusive 1/0/0/1/0 Metric \"m\" assessed Inconclusive due to inconclusive (1) > \
             inconclusiveLimit (0)".to_owned(), 0),
        ("inconclusive is allowed", { let mut m = both; m["inconclusiveLimit"] = json!(1); m }, "0 1",
            "Successful 2/1/0/1/0".to_owned(), 5),
        ("errors do not count and are repeated after 10 seconds", every(json!({})), "E 1 E 1 1",
            "Successful 3/3/0/0/2".to_owned(), 30),
        ("five errors in a row are too many", json!({}), "E E E E E",
            "Error 0/0/0/0/5 Metric \"m\" assessed Error due to consecutiveErrors (5) > \
             consecutiveErrorLimit (4): \"Error Message: Get \"http://w\": refused (Web at http://w; \
             expected a 2xx answer with the value at the jsonPath)\"".to_owned(), 40),
        ("or fewer", json!({ "consecutiveErrorLimit": 0 }), "E",
            "Error 0/0/0/0/1 Metric \"m\" assessed Error due to consecutiveErrors (1) > \
             consecutiveErrorLimit (0): \"Error Message: Get \"http://w\": refused (Web at http://w; \
             expected a 2xx answer with the value at the jsonPath)\"".to_owned(), 0),
        ("good ones in a row are enough", json!({ "interval": "5s", "consecutiveSuccessLimit": 2,
            "failureLimit": 5 }), "0 1 0 1 1", "Successful 5/3/2/0/0".to_owned(), 20),
        ("not enough of them, though failures were allowed", json!({ "interval": "5s", "count": 3,
            "consecutiveSuccessLimit": 2, "failureLimit": 1 }), "1 0 1",
            "Inconclusive 3/2/1/0/0".to_owned(), 10),
        ("not enough of them, failures do not matter", json!({ "interval": "5s", "count": 3,
            "consecutiveSuccessLimit": 2, "failureLimit": -1 }), "0 1 0",
            "Failed 3/1/2/0/0".to_owned(), 10),
    ];
    for (what, metric, answers, expected, seconds) in cases {
        let mut play = Play::new(one(metric), answers);
        play.go(600);
        assert_eq!(told(&play), expected, "{what}");
        let (began, ended) =
            (play.status().started_at.unwrap(), play.status().completed_at.unwrap());
        let took = ended.timestamp().as_second() - began.timestamp().as_second();
        assert_eq!(took, seconds, "{what}");
        assert_eq!(play.calls, answers.split(' ').count(), "{what}: each value is asked for once");
        assert!(play.writes <= play.calls, "{what}: one write for each measurement");
        assert_eq!(play.status().dry_run_summary.as_ref().unwrap().count, 0, "{what}");
    }
}

#[test]
fn nothing_is_written_before_the_first_answer() {
    let mut play = Play::new(one(json!({})), "-");
    play.go(60);
    assert_eq!((play.writes, &*play.status().phase), (0, ""));
    play.script = ["1".to_owned()].into();
    play.go(60);
    assert_eq!((play.writes, &*play.status().phase), (1, "Successful"));
    let expected = [
        "MetricSuccessful Metric 'm' Completed. Result: Successful",
        "AnalysisRunSuccessful Analysis Completed. Result: Successful",
    ];
    assert_eq!(play.events, expected);
    let measurement = &play.result("m").measurements[0];
    assert_eq!((&*measurement.phase, &*measurement.value), ("Successful", "1"));
    assert_eq!(measurement.started_at, measurement.finished_at);
}

#[test]
fn what_changes_something_outside_waits_until_the_run_is_stored_as_begun() {
    let post = json!({ "provider": { "web": { "url": "http://w", "method": "POST" } } });
    let mut play = Play::new(one(post), "1");
    play.go(60); // `answer` asserts that the status was stored before.
    assert_eq!((play.calls, play.writes, &*play.status().phase), (1, 2, "Successful"));
}

#[test]
fn a_delay_at_the_start_survives_a_restart() {
    let mut play = Play::new(one(json!({ "initialDelay": "30s" })), "1");
    play.go(20);
    assert_eq!((play.calls, &*play.status().phase), (0, "Running"));
    assert_eq!(play.status().run_summary.count, 1);
    play.restart();
    play.go(60);
    assert_eq!(play.status().phase, "Successful");
    let measured = play.result("m").measurements[0].started_at.unwrap();
    assert_eq!(measured.timestamp().as_second(), 1030);
}

#[test]
fn a_restart_at_any_moment_leads_to_the_same_end() {
    let spec = || one(json!({ "interval": "7s", "count": 4, "failureLimit": 1 }));
    let answers = "1 E 0 1 1";
    let mut undisturbed = Play::new(spec(), answers);
    undisturbed.go(600);
    for lost in 0..12 {
        // The process dies before its decision number `lost`; what is stored stays.
        let mut play = Play::new(spec(), &format!("{answers} 1"));
        for step in 0..STEPS {
            if step == lost {
                let results = &play.status().metric_results;
                let used: i32 = results.iter().map(|result| result.count + result.error).sum();
                if used < i32::try_from(play.calls).unwrap() {
                    let unused: Vec<String> = play.world.answers.values().map(body).collect();
                    play.script.push_front(unused[0].clone());
                }
                play.restart();
            }
            match play.step() {
                Some(Some(wake_at)) => play.now = wake_at,
                Some(None) => break,
                None => {}
            }
        }
        assert_eq!(play.status(), undisturbed.status(), "lost at {lost}");
        assert!(play.calls <= undisturbed.calls + 1, "lost at {lost}: at most one call more");
    }
}

/// What an answer was made of.
fn body(answer: &Answer) -> String {
    match &answer.reply {
        Ok(Reply::Http(Ok(reply))) => reply.body.to_string(),
        _ => "E".to_owned(),
    }
}

#[test]
fn a_plugin_clears_away_before_its_measurements_go_also_after_the_end() {
    let plugin = |count: i32| {
        json!({ "metrics": [{ "name": "m", "count": count, "interval": "5s",
                "provider": { "plugin": { "a/b": {} } } }],
            "measurementRetention": [{ "metricName": "m", "limit": 3 }] })
    };
    let good = |count| vec!["Successful"; count].join(" ");
    let cases = [
        // what, measurements, answers after them, what was collected, what is left
        ("none too many", 3, "", vec![], 3),
        ("the last one", 4, "", vec![(4, 3)], 3),
        ("two of them", 5, "", vec![(4, 3), (4, 3)], 3),
        ("it fails after the end", 4, " broken", vec![(4, 3)], 4),
    ];
    for (what, count, then, collected, left) in cases {
        let script = format!("{}{then}", good(count));
        let mut play = Play::new(plugin(i32::try_from(count).unwrap()), &script);
        play.go(600);
        assert_eq!(play.status().phase, "Successful", "{what}");
        assert_eq!(play.collected, collected, "{what}");
        assert_eq!(play.result("m").measurements.len(), left, "{what}");
        assert_eq!(play.settle(), None, "{what}: it is left alone");
    }
    // A crash between the call and the write asks once more; nothing goes unasked.
    let mut play = Play::new(plugin(4), &good(4));
    while play.collected.is_empty() {
        if let Some(Some(moment)) = play.step() {
            play.now = moment;
        }
    }
    play.restart();
    play.go(600);
    assert_eq!(play.collected, [(4, 3), (4, 3)], "asked again");
    assert_eq!(play.result("m").measurements.len(), 3);
}

#[test]
fn only_the_latest_measurements_are_kept() {
    let every = json!({ "interval": "5s", "count": 14 });
    let mut play = Play::new(one(every.clone()), &["1"; 14].join(" "));
    play.go(600);
    assert_eq!((play.result("m").measurements.len(), play.result("m").count), (10, 14));
    let mut spec = one(every);
    spec["measurementRetention"] = json!([{ "metricName": ".*", "limit": 12 },
        { "metricName": "m", "limit": 2 }]);
    let mut play = Play::new(spec, &["1"; 14].join(" "));
    play.go(600);
    assert_eq!(play.result("m").measurements.len(), 2, "the last rule counts");
}

#[test]
fn a_long_answer_is_judged_whole_and_stored_in_part() {
    let long = format!("\"{}\"", "ü".repeat(2000));
    let mut play = Play::new(one(json!({ "successCondition": "" })), &long);
    play.go(60);
    let value = &play.result("m").measurements[0].value;
    assert!(value.len() <= 1024 && value.ends_with('…'), "{} bytes", value.len());
}
