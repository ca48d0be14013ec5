//! What becomes of small manifests.

use super::*;
use crate::outlook::{Given, Measured};

fn rollout(steps: &Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": names::kind::ROLLOUT,
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "replicas": 4, "selector": { "matchLabels": { "app": "web" } },
            "progressDeadlineSeconds": 60,
            "template": { "metadata": { "labels": { "app": "web" } },
                          "spec": { "containers": [{ "name": "web", "image": "web:1" }] } },
            "strategy": { "canary": { "stableService": "web", "steps": steps } },
        },
    })
}

fn tryout(steps: Value, deeds: Vec<PlannedDeed>, new: Behaviour) -> Report {
    let behaviours = vec![Behaviour { image: "web:2".to_owned(), ..new }];
    let image = "web:2".to_owned();
    let objects = vec![rollout(&steps)];
    let tryout = Tryout { objects, image, behaviours, deeds, ..Tryout::default() };
    tryout.run(&Faults::default()).unwrap()
}

fn deed(minutes: i64, action: Action) -> PlannedDeed {
    PlannedDeed { after: Some(SignedDuration::from_mins(minutes)), when: None, action }
}

#[test]
fn an_update_ends_as_its_steps_its_people_and_its_pods_will_it() {
    let timed = json!([{ "setWeight": 25 }, { "pause": { "duration": "3h" } }]);
    let open = json!([{ "setWeight": 25 }, { "pause": {} }]);
    let good = Behaviour::default;
    let bad = || Behaviour { never_ready: true, ..Behaviour::default() };
    let promote = || vec![deed(5, Action::Promote)];
    let abort = || vec![deed(5, Action::Abort)];
    let table = [
        ("a timed pause ends by itself", &timed, vec![], good(), UpdateResult::Promoted, 180, 5),
        ("an open pause waits", &open, vec![], good(), UpdateResult::Waiting, 0, 4),
        ("until somebody promotes", &open, promote(), good(), UpdateResult::Promoted, 5, 5),
        ("or aborts", &open, abort(), good(), UpdateResult::Aborted, 5, 5),
        ("pods that never come up are told", &open, vec![], bad(), UpdateResult::Degraded, 1, 4),
    ];
    for (what, steps, deeds, new, expected, minutes, peak) in table {
        let report = tryout(steps.clone(), deeds, new);
        assert_eq!(report.result, expected, "{what}: {report:?}");
        assert_eq!(report.duration.as_mins(), minutes, "{what}");
        assert_eq!(report.peak_pods, peak, "{what}");
        assert!(report.violations.is_empty(), "{what}: {:?}", report.violations);
    }
}

/// A canary whose steps are judged by an analysis, with this outlook.
fn judged(metric: Value, outlook: Outlook) -> Report {
    let mut tryout = Tryout { image: "web:2".to_owned(), outlook, ..Tryout::default() };
    let mut metric = metric;
    metric["name"] = json!("errors");
    let of = |code: &str| format!("sum(rate(http_requests_total{{service=\"all\"{code}}}[1m]))");
    let query = format!("{} / {}", of(",code=~\"5..\""), of(""));
    metric["provider"] = json!({ "prometheus": { "address": "http://metrics", "query": query } });
    let template = json!({
        "apiVersion": names::API_VERSION, "kind": names::kind::ANALYSIS_TEMPLATE,
        "metadata": { "name": "errors" },
        "spec": { "args": [{ "name": "limit", "value": "0.015" }], "metrics": [metric] },
    });
    let analysis = json!({ "templates": [{ "templateName": "errors" }] });
    let steps =
        json!([{ "setWeight": 25 }, { "analysis": analysis }, { "pause": { "duration": "1h" } }]);
    // The Service of the stable revision sends nothing to the new one.
    let spec = json!({ "selector": { "app": "web" }, "ports": [{ "port": 80 }] });
    let all = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "all" },
                      "spec": spec });
    tryout.objects = vec![template, all, rollout(&steps)];
    tryout.run(&Faults::default()).unwrap()
}

#[test]
fn an_analysis_comes_to_what_the_versions_do() {
    let metric = || json!({ "initialDelay": "1m", "interval": "1m", "count": 3, "successCondition": "result[0] <= {{args.limit}}" });
    let failing = |error_percent: f64, minutes: i64| Outlook {
        measured: vec![Measured {
            image: "web:2".to_owned(),
            error_percent: Some(error_percent),
            from: SignedDuration::from_mins(minutes),
            ..Measured::default()
        }],
        ..Outlook::default()
    };
    let valued = |value: f64| Outlook {
        measured: vec![Measured {
            metric: "errors".to_owned(),
            value: Some(value),
            ..Measured::default()
        }],
        ..Outlook::default()
    };
    let given = Given { result: "Inconclusive".to_owned(), ..Given::default() };
    let undecided = Outlook { given: vec![given], ..Outlook::default() };
    let table = [
        (
            "nobody says anything: nothing fails",
            Outlook::default(),
            UpdateResult::Promoted,
            "Successful",
        ),
        ("few errors", failing(4.0, 0), UpdateResult::Promoted, "Successful"),
        ("many errors", failing(8.0, 0), UpdateResult::Aborted, "Failed"),
        ("many errors, but after it", failing(8.0, 30), UpdateResult::Promoted, "Successful"),
        ("a value that is declared", valued(0.5), UpdateResult::Aborted, "Failed"),
        ("another one", valued(0.01), UpdateResult::Promoted, "Successful"),
        ("an open result", undecided, UpdateResult::Waiting, "Inconclusive"),
    ];
    for (what, outlook, expected, phase) in table {
        let report = judged(metric(), outlook);
        assert_eq!(report.result, expected, "{what}: {report:#?}");
        let runs = &report.timeline.last().unwrap().runs;
        assert_eq!((runs.len(), runs[0].phase.as_str()), (1, phase), "{what}");
        assert!(report.violations.is_empty(), "{what}: {:?}", report.violations);
    }
    let report = judged(metric(), failing(8.0, 0));
    assert!(report.message.contains("failed (1) > failureLimit (0)"), "{}", report.message);
    let most = report.errors.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    assert!((most - 0.02).abs() < 0.001, "one pod of four fails for 8 %: {:?}", report.errors);
    assert!(report.errors.last().unwrap().1 < 1e-9, "and then none: {:?}", report.errors);
}

#[test]
fn deeds_come_at_their_time_whatever_waits_for_a_sight() {
    let open = json!([{ "setWeight": 25 }, { "pause": {} }]);
    let paused = When { phase: Some(phase::PAUSED.to_owned()), ..When::default() };
    let hour = Some(SignedDuration::from_hours(1));
    let deeds = vec![
        PlannedDeed { after: hour, when: Some(paused), action: Action::Promote },
        deed(5, Action::Scale(8)),
    ];
    let report = tryout(open, deeds, Behaviour::default());
    assert_eq!((report.result, report.duration.as_mins()), (UpdateResult::Promoted, 60));
    let scaled = report.timeline.iter().find(|sample| sample.wanted() >= 8).unwrap();
    assert_eq!(scaled.at.as_mins(), 5, "an autoscaler waits for nobody");
}

#[test]
fn a_template_is_changed_where_it_is() {
    for (api_version, kind) in [("apps/v1", "Deployment"), ("v1", "PodTemplate")] {
        let mut rollout = rollout(&json!([{ "setWeight": 25 }]));
        let template = rollout["spec"]["template"].take();
        rollout["spec"].as_object_mut().unwrap().remove("template");
        rollout["spec"]["workloadRef"] =
            json!({ "apiVersion": api_version, "kind": kind, "name": "web" });
        let inside =
            json!({ "selector": rollout["spec"]["selector"], "replicas": 0, "template": template });
        let metadata = json!({ "name": "web" });
        let workload = if kind == "PodTemplate" {
            json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "template": template })
        } else {
            json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": inside })
        };
        let tryout = Tryout {
            objects: vec![workload, rollout],
            image: "web:2".to_owned(),
            ..Tryout::default()
        };
        assert_eq!(tryout.first_image(), Some("web:1"), "{kind}");
        let report = tryout.run(&Faults::default()).unwrap();
        assert_eq!(report.result, UpdateResult::Promoted, "{kind}: {report:#?}");
    }
}
