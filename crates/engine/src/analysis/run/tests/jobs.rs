//! Runs that are measured by Jobs.

use super::*;
use crate::ask::Class;

fn job_metric(fields: Value) -> Value {
    let job = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "c" }] } } } });
    let mut spec = one(fields);
    spec["metrics"][0]["provider"] = json!({ "job": job });
    spec["metrics"][0]["successCondition"] = json!("");
    spec
}

/// The one Job there is ends so.
fn end(play: &mut Play, phase: RunPhase) {
    for job in play.world.jobs.values_mut().filter(|job| job.phase == RunPhase::Running) {
        Arc::make_mut(job).phase = phase;
    }
}

fn names(play: &Play) -> Vec<String> {
    play.world.jobs.keys().map(|name| name.replace(UID, "")).collect()
}

#[test]
fn the_job_is_created_once_and_its_end_is_the_measurement() {
    for (phase, expected) in [(RunPhase::Successful, "Successful"), (RunPhase::Failed, "Failed")] {
        let mut play = Play::new(job_metric(json!({})), "");
        play.go(5);
        assert_eq!(names(&play), [".m.1"]);
        assert_eq!((&*play.status().phase, play.writes), ("Running", 1));
        let measurement = &play.result("m").measurements[0];
        assert_eq!(measurement.metadata["job-namespace"], "shop");
        assert!(measurement.finished_at.is_none());
        play.restart();
        play.go(30);
        assert_eq!((names(&play).len(), play.writes), (1, 1), "waiting writes nothing");
        end(&mut play, phase);
        play.go(5);
        assert_eq!((&*play.status().phase, play.writes), (expected, 2));
    }
}

#[test]
fn several_jobs_follow_each_other_and_old_ones_go() {
    let mut spec = job_metric(json!({ "interval": "5s", "count": 4 }));
    spec["measurementRetention"] = json!([{ "metricName": "m", "limit": 2 }]);
    let mut play = Play::new(spec, "");
    for _ in 0..4 {
        play.go(5);
        end(&mut play, RunPhase::Successful);
    }
    play.go(5);
    assert_eq!((&*play.status().phase, play.result("m").count), ("Successful", 4));
    assert_eq!(names(&play), [".m.3", ".m.4"]);
    assert_eq!(play.result("m").measurements.len(), 2);
}

#[test]
fn a_run_that_ends_deletes_its_running_job_and_is_inconclusive() {
    let mut play = Play::new(job_metric(json!({})), "");
    play.go(5);
    play.change_run(|run| run.spec.terminate = true);
    play.go(5);
    assert!(names(&play).is_empty());
    assert_eq!(play.status().phase, "Inconclusive");
    let message = "Metric \"m\" assessed Inconclusive due to inconclusive (1) > inconclusiveLimit \
                   (0): \"Error Message: Metric Terminated\"";
    assert_eq!(play.status().message, message);
}

#[test]
fn a_job_that_is_gone_is_an_error_and_is_made_anew() {
    let mut play = Play::new(job_metric(json!({})), "");
    play.go(1);
    play.world.jobs.clear();
    play.go(5);
    assert_eq!(play.result("m").error, 1);
    play.go(15);
    assert_eq!(names(&play), [".m.2"], "the number counts errors too");
}

#[test]
fn a_refused_job_is_an_error_and_one_that_must_wait_is_not() {
    let failure = |class| Failure {
        class,
        message: "in the server's words".into(),
        times: 1,
        retry_at: Timestamp::from_second(1003).unwrap(),
    };
    for class in [Class::Denied, Class::Exists] {
        let mut play = Play::new(job_metric(json!({})), "");
        play.refusal = Some(failure(class));
        play.go(2);
        let measurement = &play.result("m").measurements[0];
        assert_eq!(
            (&*measurement.phase, &*measurement.message),
            ("Error", "in the server's words")
        );
    }
    for class in [Class::Throttled, Class::Unreachable, Class::Unknown, Class::Stale] {
        let mut play = Play::new(job_metric(json!({})), "");
        play.refusal = Some(failure(class));
        play.go(2);
        assert!(play.status().metric_results.is_empty(), "{class:?}");
        play.go(10);
        assert_eq!(names(&play), [".m.1"], "{class:?}: it is tried again when its time has come");
    }
}

#[test]
fn jobs_may_be_in_a_namespace_of_their_own() {
    let mut play = Play::new(job_metric(json!({})), "");
    play.world.job_namespace = Some("jobs".into());
    let decision = decide(&play.world, play.now);
    let change = &decision.changes[0];
    let Op::Create(job) = &change.op else { panic!("a Job: {change:?}") };
    assert_eq!(
        (&*change.target.namespace, &job["metadata"]["namespace"]),
        ("jobs", &json!("jobs"))
    );
    assert_eq!(job["metadata"].get("ownerReferences"), None, "no owner is in another namespace");
    play.go(1);
    assert_eq!(play.result("m").measurements[0].metadata["job-namespace"], "jobs");
    play.change_run(|run| run.spec.terminate = true);
    let decision = decide(&play.world, play.now);
    assert_eq!(&*decision.changes[0].target.namespace, "jobs");
    let mut spec = job_metric(json!({}));
    let from = json!({ "secretKeyRef": { "name": "keys", "key": "k" } });
    spec["args"] = json!([{ "name": "s", "valueFrom": from }]);
    let pods = &mut spec["metrics"][0]["provider"]["job"]["spec"]["template"]["spec"];
    pods["containers"][0]["args"] = json!(["{{args.s}}"]);
    let mut play = Play::new(spec, "");
    play.secret = Some(Ok(json!({ "data": { "k": "" } })));
    play.world.job_namespace = Some("jobs".into());
    play.go(1);
    let message = &play.result("m").measurements[0].message;
    assert!(message.contains("another namespace than its run's"), "{message}");
}
