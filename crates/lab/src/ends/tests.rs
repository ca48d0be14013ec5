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
