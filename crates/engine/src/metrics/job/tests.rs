//! What a Job looks like, and what its end means.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{Of, next, provider};
use super::*;
use crate::ask::Failure;
use crate::ask::secret::marker;

const UID: &str = "00000000-0000-4000-8000-000000000001";
const NAME: &str = "00000000-0000-4000-8000-000000000001.m.3";

fn now() -> Timestamp {
    Timestamp::from_second(1000).unwrap()
}

fn metric(name: &str, container: Value) -> Metric {
    let spec = json!({ "backoffLimit": 1, "template": { "spec": { "containers": [container],
        "restartPolicy": "Never" } } });
    serde_json::from_value(json!({ "name": name, "provider": { "job": {
        "metadata": { "labels": { "l": "1" }, "annotations": { "a": "2" } }, "spec": spec } } }))
    .unwrap()
}

fn job(conditions: Value, run: &str) -> Arc<JobView> {
    let frame: Frame = serde_json::from_value(json!({
        "metadata": { "name": NAME, "labels": { "analysisrun.argoproj.io/uid": run } },
        "status": { "conditions": conditions },
    }))
    .unwrap();
    Arc::new(JobView::read(&frame))
}

fn after(
    metric: &Metric,
    call: Call<'_>,
    jobs: &[Arc<JobView>],
    refused: Option<&Failure>,
) -> Next {
    with_pods(metric, call, jobs, refused, Some(&[]))
}

fn with_pods(
    metric: &Metric,
    call: Call<'_>,
    jobs: &[Arc<JobView>],
    refused: Option<&Failure>,
    pods: Option<&[Arc<Value>]>,
) -> Next {
    let (namespace, job_namespace) = ("shop".into(), "shop".into());
    let (name, uid) = ("run".into(), Uid::parse(UID));
    let run = Of { namespace, job_namespace, name, uid, started_at: None };
    let jobs: BTreeMap<Arc<str>, Arc<JobView>> =
        jobs.iter().map(|job| (Arc::clone(&job.name), Arc::clone(job))).collect();
    let (now, said) = (now(), &[]);
    let seen =
        Observed { now, run: &run, number: 3, replies: &[], said, jobs: &jobs, refused, pods };
    next(&*provider(metric).unwrap(), call, &seen)
}

fn in_flight() -> Measurement {
    serde_json::from_value(json!({ "phase": "Running", "startedAt": "1970-01-01T00:16:30Z",
        "metadata": { "job-name": NAME, "job-namespace": "shop" } }))
    .unwrap()
}

#[test]
fn a_job_is_named_after_its_measurement_and_owned_by_its_run() {
    let next = after(&metric("m", json!({ "name": "c", "image": "i" })), Call::Run, &[], None);
    let Next::Create { name, job, then } = next else { panic!("a Job: {next:?}") };
    assert_eq!(&*name, NAME);
    assert_eq!(job["metadata"]["labels"], json!({ "l": "1", "analysisrun.argoproj.io/uid": UID }));
    assert_eq!(
        job["metadata"]["annotations"],
        json!({ "a": "2",
        "analysisrun.argoproj.io/name": "run", "analysisrun.argoproj.io/namespace": "shop",
        "analysisrun.argoproj.io/metric-name": "m" })
    );
    assert_eq!(job["metadata"]["ownerReferences"][0]["uid"], UID);
    assert_eq!(job["spec"]["backoffLimit"], 1);
    let pod = &job["spec"]["template"]["metadata"]["labels"];
    assert_eq!(*pod, json!({ "analysisrun.argoproj.io/uid": UID }));
    let metadata = TextMap::from([
        ("job-name".to_owned(), NAME.to_owned()),
        ("job-namespace".to_owned(), "shop".to_owned()),
    ]);
    assert_eq!(then, Reading::InFlight { resume_at: now(), metadata });
    let long = metric(&"x".repeat(80), json!({ "name": "c" }));
    let Next::Create { name, .. } = after(&long, Call::Run, &[], None) else { panic!("a Job") };
    assert_eq!(name.len(), 63);
    assert!(name.ends_with("x.3"), "{name}");
}

#[test]
fn secrets_reach_a_container_as_variables_and_nothing_else() {
    let (one, two) = (marker("s", "one"), marker("s", "two"));
    let container = json!({ "name": "c", "command": ["run", format!("--key={one}")],
        "args": [format!("{two}{one}")], "env": [{ "name": "K", "value": one }] });
    let next = after(&metric("m", container), Call::Run, &[], None);
    let Next::Create { job, .. } = next else { panic!("a Job: {next:?}") };
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let from = |key: &str| json!({ "secretKeyRef": { "name": "s", "key": key } });
    assert_eq!(
        *container,
        json!({ "name": "c",
        "command": ["run", "--key=$(ANALYSIS_ARG_0)"],
        "args": ["$(ANALYSIS_ARG_1)$(ANALYSIS_ARG_0)"],
        "env": [
            { "name": "ANALYSIS_ARG_0", "valueFrom": from("one") },
            { "name": "ANALYSIS_ARG_1", "valueFrom": from("two") },
            { "name": "K", "value": "$(ANALYSIS_ARG_0)" },
        ] })
    );
    let image = metric("m", json!({ "name": "c", "image": marker("s", "one") }));
    let Next::Done(Reading::Error(fault)) = after(&image, Call::Run, &[], None) else {
        panic!("an image cannot be a secret");
    };
    assert!(fault.message.starts_with("a secret argument of a Job can only be used in"));
}

#[test]
fn a_job_that_is_there_is_taken_if_it_is_ours() {
    let metric = metric("m", json!({ "name": "c" }));
    let is_started = |next: &Next| matches!(next, Next::Done(Reading::InFlight { .. }));
    assert!(is_started(&after(&metric, Call::Run, &[job(json!([]), UID)], None)));
    let foreign = after(&metric, Call::Run, &[job(json!([]), "other")], None);
    assert!(matches!(foreign, Next::Create { .. }), "the server says whose it is");
    let failure =
        |class| Failure { class, message: "already exists".into(), times: 1, retry_at: now() };
    for class in [Class::Exists, Class::Denied] {
        let next = after(&metric, Call::Run, &[], Some(&failure(class)));
        assert_eq!(next, Next::Done(Reading::Error(MetricFault::new("already exists", ""))));
    }
}

#[test]
fn the_end_of_a_job_is_the_verdict() {
    let metric = metric("m", json!({ "name": "c" }));
    let (measurement, condition) = (in_flight(), |kind: &str| json!([{ "type": kind }]));
    let judged = |next: Next| match next {
        Next::Done(Reading::Judged { phase, .. }) => phase,
        next => panic!("a verdict: {next:?}"),
    };
    for (kind, expected) in [("Complete", RunPhase::Successful), ("Failed", RunPhase::Failed)] {
        let jobs = [job(condition(kind), UID)];
        let found = judged(after(&metric, Call::Resume(&measurement), &jobs, None));
        assert_eq!(found, expected, "{kind}");
    }
    let running = after(&metric, Call::Resume(&measurement), &[job(json!([]), UID)], None);
    assert!(matches!(running, Next::Wait(Some(at)) if now() < at), "{running:?}");
    let gone = after(&metric, Call::Resume(&measurement), &[], None);
    let expected = MetricFault::new(format!("job.batch \"{NAME}\" not found"), "");
    assert_eq!(gone, Next::Done(Reading::Error(expected)));
    let ended = after(&metric, Call::Terminate(&measurement), &[job(json!([]), UID)], None);
    let Next::Delete { job: deleted, then } = ended else { panic!("it is deleted: {ended:?}") };
    assert_eq!(&*deleted.name, NAME);
    assert_eq!(judged(Next::Done(then)), RunPhase::Inconclusive);
    let absent = after(&metric, Call::Terminate(&measurement), &[], None);
    assert_eq!(judged(absent), RunPhase::Inconclusive, "nothing is left to delete");
}

#[test]
fn a_job_whose_image_cannot_be_had_has_shown_nothing() {
    let pod = |list: &str, reason: &str| {
        let mut pod = json!({ "metadata": { "name": "p" }, "status": {} });
        pod["status"][list] = json!([{ "name": "c",
            "state": { "waiting": { "reason": reason, "message": "no such image" } } }]);
        Arc::new(pod)
    };
    let (metric, measurement) = (metric("m", json!({ "name": "c" })), in_flight());
    let seen = |pods: Option<&[Arc<Value>]>| {
        with_pods(&metric, Call::Resume(&measurement), &[job(json!([]), UID)], None, pods)
    };
    let cases = [
        ("it is pulled in vain", pod("containerStatuses", "ErrImagePull"), "ErrImagePull"),
        ("and again", pod("containerStatuses", "ImagePullBackOff"), "ImagePullBackOff"),
        (
            "of an init container",
            pod("initContainerStatuses", "InvalidImageName"),
            "InvalidImageName",
        ),
        ("it is created", pod("containerStatuses", "ContainerCreating"), ""),
        ("it crashes", pod("containerStatuses", "CrashLoopBackOff"), ""),
    ];
    for (what, pod, reason) in cases {
        match (seen(Some(&[pod])), reason) {
            (Next::Wait(Some(at)), "") => assert!(now() < at, "{what}"),
            (Next::Done(Reading::Judged { phase, message, .. }), reason) => {
                assert_eq!(phase, RunPhase::Inconclusive, "{what}");
                let expected =
                    format!("Pod p, container c has terminal error ({reason}): no such image\n");
                assert_eq!(message, expected, "{what}");
            }
            (next, _) => panic!("{what}: {next:?}"),
        }
    }
    let Next::Pods { of, look, until } = seen(None) else { panic!("its pods are asked for") };
    assert_eq!(&*of.labels, format!("job-name={NAME}"));
    assert_eq!((look, until.as_second()), (3, 1005), "10 seconds after its start");
}

#[test]
fn pods_are_looked_at_once_a_minute_at_last() {
    let began = Timestamp::from_second(0).unwrap();
    let cases = [
        (-5, 0, 1),
        (0, 0, 1),
        (1, 1, 3),
        (2, 1, 3),
        (3, 2, 7),
        (62, 5, 63),
        (63, 6, 123),
        (122, 6, 123),
        (123, 7, 183),
        (3663, 66, 3723),
    ];
    for (elapsed, look, end) in cases {
        let found = look_at(began, Timestamp::from_second(elapsed).unwrap());
        assert_eq!(found, (look, Timestamp::from_second(end).unwrap()), "after {elapsed} seconds");
    }
}

#[test]
fn looks_become_rarer() {
    let began = Timestamp::from_second(0).unwrap();
    let cases = [(-5, 1), (0, 1), (2, 2), (50, 10), (5000, 100), (1_000_000_000, 600)];
    for (elapsed, expected) in cases {
        let now = Timestamp::from_second(elapsed).unwrap();
        let pause = next_look(began, now).as_second() - elapsed;
        assert_eq!(pause, expected, "after {elapsed} seconds");
    }
}

#[test]
fn the_oldest_jobs_go_first() {
    let at = |seconds: i64, is_deleting: bool| {
        let view = JobView {
            name: format!("j{seconds}").into(),
            created: Timestamp::from_second(seconds).ok(),
            deleting: is_deleting,
            ..JobView::clone(&job(json!([]), UID))
        };
        Arc::new(view)
    };
    let jobs = [at(3, false), at(1, true), at(2, false), at(4, false)];
    let names: Vec<&str> = superfluous(jobs.iter(), 1).iter().map(|job| &*job.name).collect();
    assert_eq!(names, ["j2", "j3"]);
    assert!(superfluous(jobs.iter(), 4).is_empty());
}
