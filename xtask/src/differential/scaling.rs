//! How sizes went up and down, from Events: two sides that take another number of resizes for the
//! same way go the same way.

use std::collections::BTreeMap;

use gradus_api::names::event::SCALING_REPLICA_SET;
use serde_json::Value;

/// Do the sizes of every ReplicaSet turn at the same points on both sides?
pub fn go_the_same_way(argo: &Value, ours: &Value) -> bool {
    ways(argo) == ways(ours)
}

/// By ReplicaSet, the sizes where growing turned into shrinking or the other way, and both ends.
fn ways(side: &Value) -> BTreeMap<String, Vec<i64>> {
    let mut ways = BTreeMap::<String, Vec<i64>>::new();
    let events = side["events"].as_array().into_iter().flatten();
    for (set, from, to) in events.filter_map(|event| resize(event.as_str()?)) {
        let way = ways.entry(set).or_default();
        for size in [from, to] {
            go_on(way, size);
        }
    }
    ways
}

/// Adds a size; one on the way to it is left out.
fn go_on(way: &mut Vec<i64>, size: i64) {
    match way[..] {
        [.., last] if last == size => {}
        [.., before, last] if (last - before).signum() == (size - last).signum() => {
            way.pop();
            way.push(size);
        }
        _ => way.push(size),
    }
}

/// `Normal ScalingReplicaSet: Scaled up ReplicaSet NAME (revision 2) from 0 to 3`.
fn resize(event: &str) -> Option<(String, i64, i64)> {
    let rest = event.split_once(&format!(" {SCALING_REPLICA_SET}: "))?.1;
    let set = rest.split(' ').nth(3)?;
    let (from, to) = rest.rsplit_once(" from ")?.1.split_once(" to ")?;
    Some((set.to_owned(), from.parse().ok()?, to.parse().ok()?))
}

#[test]
fn the_same_way_has_the_same_ends_and_turns() {
    let side = |sizes: &[(i64, i64)]| {
        let event = |(from, to): &(i64, i64)| {
            format!(
                "Normal {SCALING_REPLICA_SET}: Scaled up ReplicaSet NAME-<app:v1> (revision 1) \
                 from {from} to {to}"
            )
        };
        serde_json::json!({ "events": sizes.iter().map(event).collect::<Vec<_>>() })
    };
    let cases = [
        ("equal", &[(0, 3)][..], &[(0, 3)][..], true),
        ("one step or three", &[(0, 3)], &[(0, 1), (1, 2), (2, 3)], true),
        ("another end", &[(0, 3)], &[(0, 2)], false),
        ("a turn on the way", &[(0, 3)], &[(0, 3), (3, 1), (1, 3)], false),
        ("turns at the same sizes", &[(0, 3), (3, 0)], &[(0, 2), (2, 3), (3, 1), (1, 0)], true),
        ("nothing on one side", &[(0, 3)], &[], false),
    ];
    for (what, argo, ours, expected) in cases {
        assert_eq!(go_the_same_way(&side(argo), &side(ours)), expected, "{what}");
    }
}
