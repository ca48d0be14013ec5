//! What a Job does with its pods, in virtual time.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::SimCluster;
use crate::behave::Behaviours;
use crate::kinds::KindId;
use crate::request::Request;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A cluster with one Job that runs this command line.
fn cluster(line: &str, policy: &str, change: Value) -> SimCluster {
    let mut cluster = SimCluster::new(Behaviours::default(), at(0));
    let job = json!({
        "metadata": {"name": "check"},
        "spec": { "template": { "spec": { "restartPolicy": policy, "containers":
            [{"name": "c", "image": "tool:1", "command": ["sh", "-c", line]}] } } },
    });
    let job = crate::patch::merged(&job, json!({ "spec": change }));
    let request = Request::create(KindId::JOB, "default", job);
    cluster.call(&request, at(0)).unwrap();
    cluster
}

/// Lets time pass until the Job has ended or nothing happens any more; its end, pods and when.
fn end(cluster: &mut SimCluster, limit: i64) -> (String, usize, i64) {
    let mut now = at(0);
    loop {
        cluster.settle(now);
        let pods = cluster.list(KindId::POD, "default").count();
        let took = now.as_second() - at(0).as_second();
        let Some(job) = cluster.get(KindId::JOB, "default", "check") else {
            return ("deleted".to_owned(), pods, took);
        };
        let last = job.status["conditions"].as_array().and_then(|all| all.last()).cloned();
        if let Some(last) = last {
            let text = |field: &str| last[field].as_str().unwrap_or_default().to_owned();
            return (format!("{} {}", text("type"), text("reason")), pods, took);
        }
        match cluster.next_due().filter(|due| *due <= at(limit)) {
            Some(due) => now = due,
            None => return ("runs".to_owned(), pods, took),
        }
    }
}

#[test]
fn a_job_ends_as_its_pods_do() {
    let failed = "Failed BackoffLimitExceeded";
    let complete = "Complete CompletionsReached";
    let cases = [
        // what, command, restart policy, spec, its end, pods, after seconds
        ("a good end", "sleep 5", "Never", json!({}), complete, 1, 5),
        ("two in a row", "sleep 5", "Never", json!({ "completions": 2 }), complete, 2, 10),
        (
            "one failure is too many",
            "sleep 5; exit 1",
            "Never",
            json!({ "backoffLimit": 0 }),
            failed,
            1,
            5,
        ),
        (
            "three pods fail, after 10 and 20 seconds",
            "sleep 5; exit 1",
            "Never",
            json!({ "backoffLimit": 2 }),
            failed,
            3,
            45,
        ),
        (
            "restarts count",
            "sleep 5; exit 1",
            "OnFailure",
            json!({ "backoffLimit": 1 }),
            failed,
            0,
            40,
        ),
        (
            "too long",
            "sleep 1h",
            "Never",
            json!({ "activeDeadlineSeconds": 30 }),
            "Failed DeadlineExceeded",
            0,
            30,
        ),
        ("on and on", "sleep 1h", "Never", json!({}), "runs", 1, 1),
        ("suspended", "sleep 5", "Never", json!({ "suspend": true }), "runs", 0, 0),
    ];
    for (what, line, policy, spec, expected, pods, seconds) in cases {
        let mut cluster = cluster(line, policy, spec);
        let found = end(&mut cluster, 600);
        assert_eq!(found, (expected.to_owned(), pods, seconds), "{what}");
    }
}

#[test]
fn a_job_that_has_ended_goes_after_its_time_and_takes_its_pods_along() {
    let mut cluster = cluster("true", "Never", json!({ "ttlSecondsAfterFinished": 60 }));
    assert_eq!(end(&mut cluster, 600).0, "Complete CompletionsReached");
    let status = &cluster.get(KindId::JOB, "default", "check").unwrap().status;
    assert_eq!((&status["succeeded"], &status["active"]), (&json!(1), &json!(null)));
    cluster.settle(at(59));
    assert!(cluster.get(KindId::JOB, "default", "check").is_some());
    cluster.settle(at(61));
    assert!(cluster.get(KindId::JOB, "default", "check").is_none());
    cluster.settle(at(62));
    assert_eq!(cluster.list(KindId::POD, "default").count(), 0);
}

#[test]
fn the_pods_of_a_job_carry_its_labels() {
    let mut cluster = cluster("sleep 5", "Never", json!({}));
    cluster.settle(at(0));
    let pod = cluster.list(KindId::POD, "default").next().unwrap();
    assert_eq!(pod.meta.labels.get("job-name").map(String::as_str), Some("check"));
    assert!(pod.meta.name.starts_with("check-"), "{}", pod.meta.name);
    let job = cluster.get(KindId::JOB, "default", "check").unwrap();
    assert_eq!(job.status["active"], 1);
}
