//! An end that must not be is named.

use gradus_simkube::Request;
use jiff::Timestamp;
use serde_json::json;

use super::*;

fn set(size: i64, available: i64) -> SetEnding {
    SetEnding { size, replicas: size, available, marks: BTreeSet::new() }
}

#[test]
fn an_end_unlike_the_undisturbed_one_is_named() {
    let plain = Ending {
        status: json!({"phase": "Healthy"}),
        sets: BTreeMap::from([(1, set(0, 0)), (2, set(5, 5))]),
        around: BTreeMap::from([("Service web".to_owned(), json!({"selector": "revision 2"}))]),
        counts: Counts::from([("default/web-2".to_owned(), (1, 0))]),
    };
    let around = |name: &str, selector: &str| {
        BTreeMap::from([(name.to_owned(), json!({ "selector": selector }))])
    };
    let cases = [
        ("status", Ending { status: json!({"phase": "Paused"}), ..plain.clone() }),
        ("ReplicaSets", Ending { sets: BTreeMap::from([(2, set(5, 5))]), ..plain.clone() }),
        ("Service web", Ending { around: around("Service web", "revision 1"), ..plain.clone() }),
        ("Service web", Ending { around: BTreeMap::new(), ..plain.clone() }),
        (
            "AnalysisRun x",
            Ending {
                around: plain
                    .around
                    .clone()
                    .into_iter()
                    .chain(around("AnalysisRun x", ""))
                    .collect(),
                ..plain.clone()
            },
        ),
        ("creates and deletes", Ending { counts: Counts::new(), ..plain.clone() }),
    ];
    assert_eq!(plain.same_as(&plain.clone()), Ok(()));
    for (what, other) in cases {
        let violation = other.same_as(&plain).unwrap_err();
        assert_eq!((violation.invariant, violation.object.as_str()), ("I-14", what));
    }
}

/// Everything of ours around a Rollout is compared, and nothing that differs by chance.
#[test]
fn what_stands_around_is_seen_with_revisions_for_hashes() {
    let now = Timestamp::UNIX_EPOCH;
    let ground = crate::simulate::Ground::new().unwrap();
    let mut cluster = ground.cluster().clone();
    let mut make = |kind: KindId, body: Value| {
        cluster.call(&Request::create(kind, NAMESPACE, body), now).unwrap();
    };
    make(
        KindId::SERVICE,
        json!({
            "metadata": {"name": "web", "annotations": {"note": "ours"}},
            "spec": {"selector": {"app": "web", "hash": "aaa"}, "ports": [{"port": 80}]},
        }),
    );
    make(
        KindId::INGRESS,
        json!({
            "metadata": {"name": "web", "annotations": {"weight": "20"}},
            "spec": {"ingressClassName": "nginx", "defaultBackend": {
                "service": {"name": "web", "port": {"number": 80}},
            }},
        }),
    );
    let run = cluster.kinds().by_name("argoproj.io/v1alpha1", "AnalysisRun").unwrap();
    let body = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
        "metadata": {"name": "web-aaa-1"}, "spec": {"metrics": [], "terminate": true}});
    cluster.call(&Request::create(run, NAMESPACE, body), now).unwrap();
    let revisions = Revisions::from([("aaa".to_owned(), 1)]);
    let seen = json!(around::around(&cluster, &revisions));
    let expected = json!({
        "Service web": {
            "selector": {"app": "web", "hash": "revision 1"}, "annotations": {"note": "ours"},
        },
        "Ingress web": {
            "annotations": {"weight": "20"},
            "spec": {"ingressClassName": "nginx", "defaultBackend": {
                "service": {"name": "web", "port": {"number": 80}},
            }},
        },
        "AnalysisRun web-(revision 1)-1": {"terminate": true},
    });
    assert_eq!(seen, expected);
}

#[test]
fn orphans_and_old_pods_are_named() {
    let now = Timestamp::UNIX_EPOCH;
    let mut cluster = SimCluster::new(gradus_simkube::behave::Behaviours::default(), now);
    let body = json!({
        "metadata": {"name": "web-old", "labels": {"app": "web", "rollouts-pod-template-hash": "old"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    });
    cluster.call(&Request::create(KindId::REPLICA_SET, NAMESPACE, body), now).unwrap();
    let ours = Counts::from([("default/web-old".to_owned(), (1, 0))]);
    let serving = json!({
        "metadata": {"name": "web"}, "spec": {},
        "status": {"phase": "Paused", "blueGreen": {"activeSelector": "old"}},
    });
    let serving = Arc::new(Object::from_json(KindId::CONFIG_MAP, serving).unwrap());
    let found = judge(&cluster, Some(&serving), &Counts::new());
    assert_eq!(found, [], "users reach it");
    let found: Vec<String> = judge(&cluster, None, &ours).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "I-13 violated by the end of web-old: an orphan is left behind",
            "I-13 violated by the end of web-old: an old ReplicaSet is left at 2",
        ]
    );
}

/// A rollout of which two old runs of each kind may be kept, and what it has left behind.
#[test]
fn runs_and_ingresses_that_are_left_over_are_named() {
    let rollout = |status: Value| {
        let analysis = json!({"successfulRunHistoryLimit": 1, "unsuccessfulRunHistoryLimit": 0});
        json!({"metadata": {"name": "web", "namespace": NAMESPACE, "uid": "web"},
            "spec": {"analysis": analysis}, "status": status})
    };
    let run = |name: &str, hash: &str, phase: &str, terminate: bool| {
        json!({
            "metadata": {"name": name, "labels": {"rollouts-pod-template-hash": hash}},
            "spec": {"metrics": [], "terminate": terminate}, "status": {"phase": phase},
        })
    };
    let healthy = json!({"phase": "Healthy", "currentPodHash": "a", "stableRS": "a"});
    let waiting = json!({"phase": "Paused", "currentPodHash": "a", "stableRS": "a",
        "canary": {"currentStepAnalysisRunStatus": {"name": "r1"}}});
    let good = |name: &str| run(name, "a", "Successful", false);
    let cases = [
        // what, status, runs, expected
        ("as many as are kept", &healthy, vec![good("r1")], vec![]),
        (
            "too many",
            &healthy,
            vec![good("r1"), good("r2")],
            vec!["I-13 violated by the end of web: 2 successful runs, limit 1"],
        ),
        ("but for the one in use", &waiting, vec![good("r1"), good("r2")], vec![]),
        (
            "too many that were not",
            &healthy,
            vec![run("r1", "a", "Failed", false)],
            vec!["I-13 violated by the end of web: 1 unsuccessful runs, limit 0"],
        ),
        ("one that is told to end", &healthy, vec![run("r1", "a", "Running", true)], vec![]),
        (
            "one that runs on",
            &healthy,
            vec![run("r1", "a", "Running", false)],
            vec!["I-13 violated by the end of r1: still runs, and nobody waits"],
        ),
        (
            "of a revision that is gone",
            &healthy,
            vec![run("r1", "b", "Successful", false)],
            vec!["I-13 violated by the end of r1: the revision it has judged is gone"],
        ),
    ];
    for (what, status, runs, expected) in cases {
        let found = left_over(rollout(status.clone()), runs, &Counts::new());
        assert_eq!(found, expected, "{what}");
    }
}

/// What is wrong with an end at which this Rollout, with a ReplicaSet `a`, has these runs.
fn left_over(rollout: Value, runs: Vec<Value>, counts: &Counts) -> Vec<String> {
    let now = Timestamp::UNIX_EPOCH;
    let mut cluster = crate::simulate::Ground::new().unwrap().cluster().clone();
    let kind = |cluster: &SimCluster, name: &str| {
        cluster.kinds().by_name("argoproj.io/v1alpha1", name).unwrap()
    };
    let rollout = Arc::new(Object::from_json(kind(&cluster, "Rollout"), rollout).unwrap());
    let owner = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web",
        "uid": *rollout.meta.uid, "controller": true}]);
    let labels = json!({"app": "web", "rollouts-pod-template-hash": "a"});
    let set = json!({
        "metadata": {"name": "web-a", "labels": labels, "ownerReferences": owner},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    });
    cluster.call(&Request::create(KindId::REPLICA_SET, NAMESPACE, set), now).unwrap();
    let id = kind(&cluster, "AnalysisRun");
    for mut run in runs {
        run["apiVersion"] = json!("argoproj.io/v1alpha1");
        run["kind"] = json!("AnalysisRun");
        run["metadata"]["ownerReferences"] = owner.clone();
        cluster.call(&Request::create(id, NAMESPACE, run.clone()), now).unwrap();
    }
    judge(&cluster, Some(&rollout), counts).iter().map(ToString::to_string).collect()
}

#[test]
fn an_ingress_of_ours_without_its_rollout_is_named() {
    let now = Timestamp::UNIX_EPOCH;
    let mut cluster = SimCluster::new(gradus_simkube::behave::Behaviours::default(), now);
    let ingress = json!({
        "metadata": {"name": "web-canary"},
        "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
    });
    cluster.call(&Request::create(KindId::INGRESS, NAMESPACE, ingress), now).unwrap();
    assert_eq!(
        judge(&cluster, None, &Counts::new()),
        [],
        "somebody else's is none of our business"
    );
    let ours = Counts::from([("default/web-canary".to_owned(), (1, 0))]);
    let found: Vec<String> = judge(&cluster, None, &ours).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["I-13 violated by the end of web-canary: an orphan is left behind"]);
}

#[test]
fn a_deadline_that_means_nothing_is_named() {
    let left = ["I-13 violated by the end of web-a: a deadline is left that means nothing"];
    let cases = [
        // what, size, stable, expected
        ("it waits for its end", 2, "b", &[][..]),
        ("that has come", 0, "b", &left),
        ("it is wanted again", 2, "a", &left),
    ];
    for (what, size, stable, expected) in cases {
        let status = json!({"phase": "Degraded", "abort": true, "currentPodHash": "a",
            "stableRS": stable});
        let rollout = json!({"metadata": {"name": "web"}, "spec": {}, "status": status});
        let rollout = Arc::new(Object::from_json(KindId::CONFIG_MAP, rollout).unwrap());
        let now = Timestamp::UNIX_EPOCH;
        let mut cluster = SimCluster::new(gradus_simkube::behave::Behaviours::default(), now);
        let labels = json!({"app": "web", "rollouts-pod-template-hash": "a"});
        let set = json!({
            "metadata": {"name": "web-a", "labels": labels,
                "annotations": {"scale-down-deadline": now.to_string()}},
            "spec": {
                "replicas": size,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                },
            },
        });
        cluster.call(&Request::create(KindId::REPLICA_SET, NAMESPACE, set), now).unwrap();
        let found = judge(&cluster, Some(&rollout), &Counts::new());
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn what_an_experiment_leaves_behind_is_named() {
    let now = Timestamp::UNIX_EPOCH;
    let pods = "I-13 violated by the end of study-a: pods are left of an Experiment that has ended";
    let service =
        "I-13 violated by the end of study-a: a Service is left of an Experiment that has ended";
    let run = "I-13 violated by the end of study-n: a run goes on of an Experiment that has ended";
    let cases = [
        // what, its phase, its pods, is its run told to end?, expected
        ("it runs", "Running", 1, false, vec![]),
        ("it has ended", "Successful", 1, false, vec![pods, service, run]),
        ("its pods are gone", "Failed", 0, true, vec![service]),
    ];
    for (what, phase, size, terminate, expected) in cases {
        let mut cluster = crate::simulate::Ground::new().unwrap().cluster().clone();
        let kind = |name: &str| cluster.kinds().by_name("argoproj.io/v1alpha1", name).unwrap();
        let (experiment, analysis_run) = (kind("Experiment"), kind("AnalysisRun"));
        let study = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Experiment",
            "metadata": {"name": "study"}, "spec": {"templates": []}, "status": {"phase": phase}});
        cluster.call(&Request::create(experiment, NAMESPACE, study), now).unwrap();
        let uid = cluster.get(experiment, NAMESPACE, "study").unwrap().meta.uid.clone();
        let metadata = |name: &str| {
            json!({"name": name, "labels": {"app": "study", "rollouts-pod-template-hash": "a"},
                "annotations": {"experiment.argoproj.io/name": "study"},
                "ownerReferences": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "Experiment",
                    "name": "study", "uid": *uid, "controller": true}]})
        };
        let labels = json!({"app": "study"});
        let set = json!({"metadata": metadata("study-a"), "spec": {"replicas": size,
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}});
        cluster.call(&Request::create(KindId::REPLICA_SET, NAMESPACE, set), now).unwrap();
        let made = json!({"metadata": metadata("study-a"),
            "spec": {"selector": labels, "ports": [{"port": 80}]}});
        cluster.call(&Request::create(KindId::SERVICE, NAMESPACE, made), now).unwrap();
        let measured = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
            "metadata": metadata("study-n"), "spec": {"metrics": [], "terminate": terminate}});
        cluster.call(&Request::create(analysis_run, NAMESPACE, measured), now).unwrap();
        let found = judge(&cluster, None, &Counts::new());
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{what}");
    }
}
