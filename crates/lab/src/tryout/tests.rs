//! What becomes of small manifests.

use super::*;

fn tryout(steps: Value, deeds: Vec<Deed>, new: Behaviour) -> Report {
    let rollout = json!({
        "apiVersion": names::API_VERSION, "kind": names::kind::ROLLOUT,
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "replicas": 4, "selector": { "matchLabels": { "app": "web" } },
            "progressDeadlineSeconds": 60,
            "template": { "metadata": { "labels": { "app": "web" } },
                          "spec": { "containers": [{ "name": "web", "image": "web:1" }] } },
            "strategy": { "canary": { "stableService": "web", "steps": steps } },
        },
    });
    let behaviours = vec![Behaviour { image: "web:2".to_owned(), ..new }];
    let image = "web:2".to_owned();
    let tryout = Tryout { objects: vec![rollout], image, behaviours, deeds };
    tryout.run(&Faults::default()).unwrap()
}

fn deed(minutes: i64, action: Action) -> Deed {
    Deed { after: Some(SignedDuration::from_mins(minutes)), when: None, action }
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
        ("a timed pause ends by itself", &timed, vec![], good(), Verdict::Promoted, 180, 5),
        ("an open pause waits", &open, vec![], good(), Verdict::Waiting, 0, 4),
        ("until somebody promotes", &open, promote(), good(), Verdict::Promoted, 5, 5),
        ("or aborts", &open, abort(), good(), Verdict::Aborted, 5, 5),
        ("pods that never come up are told", &open, vec![], bad(), Verdict::Degraded, 1, 4),
    ];
    for (what, steps, deeds, new, expected, minutes, peak) in table {
        let report = tryout(steps.clone(), deeds, new);
        assert_eq!(report.result, expected, "{what}: {report:?}");
        assert_eq!(report.duration.as_mins(), minutes, "{what}");
        assert_eq!(report.peak_pods, peak, "{what}");
        assert!(report.violations.is_empty(), "{what}: {:?}", report.violations);
    }
}
