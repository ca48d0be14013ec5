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
        counts: Counts::from([("default/web-2".to_owned(), (1, 0))]),
    };
    let cases = [
        ("status", Ending { status: json!({"phase": "Paused"}), ..plain.clone() }),
        ("ReplicaSets", Ending { sets: BTreeMap::from([(2, set(5, 5))]), ..plain.clone() }),
        ("creates and deletes", Ending { counts: Counts::new(), ..plain.clone() }),
    ];
    assert_eq!(plain.same_as(&plain.clone()), Ok(()));
    for (what, other) in cases {
        let violation = other.same_as(&plain).unwrap_err();
        assert_eq!((violation.invariant, violation.object.as_str()), ("I-14", what));
    }
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
