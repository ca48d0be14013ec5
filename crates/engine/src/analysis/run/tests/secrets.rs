//! Secrets that arguments name: there before anything is measured, and before each Job.

use super::*;
use crate::ask::Class;

const MISSING: &str = "Unable to resolve metric arguments: secrets \"keys\" not found";
const NO_KEY: &str = "Unable to resolve metric arguments: key 'k' does not exist in secret 'keys'";

fn secret(key: &str) -> Option<Result<Value, Failure>> {
    Some(Ok(json!({ "metadata": { "name": "keys" }, "data": { key: "" } })))
}

fn failure(class: Class) -> Option<Result<Value, Failure>> {
    let retry_at = Timestamp::from_second(1003).unwrap();
    Some(Err(Failure { class, message: "in the server's words".into(), times: 1, retry_at }))
}

fn with_secret(mut spec: Value) -> Value {
    let from = json!({ "secretKeyRef": { "name": "keys", "key": "k" } });
    spec["args"] = json!([{ "name": "s", "valueFrom": from }]);
    spec
}

fn by_jobs(fields: Value) -> Value {
    let mut spec = one(fields);
    let container = json!({ "name": "c", "command": ["check", "{{args.s}}"] });
    spec["metrics"][0]["provider"] =
        json!({ "job": { "spec": { "template": { "spec": { "containers": [container] } } } } });
    spec["metrics"][0]["successCondition"] = json!("");
    with_secret(spec)
}

#[test]
fn a_job_is_made_only_once_its_secrets_are_there() {
    let cases = [
        (None, 0, MISSING),
        (secret("other"), 0, NO_KEY),
        (secret("k"), 1, ""),
        // Who may not read it leaves it to the kubelet.
        (failure(Class::Denied), 1, ""),
    ];
    for (found, jobs, message) in cases {
        let mut play = Play::new(by_jobs(json!({})), "");
        play.secret = found.clone();
        play.go(5);
        assert_eq!(play.world.jobs.len(), jobs, "{found:?}");
        assert_eq!(play.status().message, message, "{found:?}");
        let phase = if jobs == 1 { "Running" } else { "Error" };
        assert_eq!(play.status().phase, phase, "{found:?}");
    }
}

#[test]
fn a_secret_that_goes_ends_the_run_at_the_next_job() {
    let mut play = Play::new(by_jobs(json!({ "interval": "5s" })), "");
    play.secret = secret("k");
    play.go(1);
    for job in play.world.jobs.values_mut() {
        Arc::make_mut(job).phase = RunPhase::Successful;
    }
    play.go(1);
    play.secret = None;
    play.go(10);
    assert_eq!((&*play.status().phase, &*play.status().message), ("Error", MISSING));
    assert_eq!(play.world.jobs.len(), 1);
}

#[test]
fn an_argument_that_nobody_uses_must_be_there_all_the_same() {
    let mut play = Play::new(with_secret(one(json!({}))), "5");
    play.go(5);
    assert_eq!((&*play.status().phase, &*play.status().message), ("Error", MISSING));
    assert_eq!((play.calls, play.status().started_at), (0, None), "nothing was measured");
}

#[test]
fn an_api_server_that_is_away_changes_nothing() {
    let mut play = Play::new(by_jobs(json!({})), "");
    play.secret = failure(Class::Unreachable);
    assert_eq!(play.settle(), Some(Timestamp::from_second(1003).unwrap()));
    assert_eq!((play.writes, play.world.jobs.len()), (0, 0));
    play.secret = secret("k");
    play.restart();
    play.go(5);
    assert_eq!((&*play.status().phase, play.world.jobs.len()), ("Running", 1));
}
