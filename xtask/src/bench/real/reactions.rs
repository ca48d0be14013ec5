//! How long after a person's change does a controller write? By the server's clock alone: from the
//! answer to the change to the arrival of the first write about the same Rollout.

use std::{collections::BTreeMap, time::Duration};

use crate::{audit::Request, plane::User};

/// All reactions in a namespace, shortest first.
pub(super) fn of(requests: &[Request], user: User, namespace: &str) -> Vec<Duration> {
    let mut waiting = BTreeMap::new();
    let mut found = Vec::new();
    let mut in_order: Vec<&Request> = requests
        .iter()
        .filter(|one| one.namespace == namespace && one.is_write() && one.code < 300)
        .collect();
    // A change counts from its answer, a reaction from its arrival.
    in_order.sort_by_key(|one| if one.is_by(User::Person) { one.at } else { one.received });
    for one in in_order {
        let rollout = rollout(&one.name);
        if one.is_by(User::Person) && one.verb == "patch" {
            waiting.insert(rollout, one.at);
        } else if one.is_by(user)
            && one.resource != "events"
            && let Some(changed) = waiting.remove(rollout)
        {
            found
                .push(Duration::try_from(one.received.duration_since(changed)).unwrap_or_default());
        }
    }
    found.sort();
    found
}

/// `web-00001` of itself and of its ReplicaSet `web-00001-5d9f`.
fn rollout(name: &str) -> &str {
    let end = name.match_indices('-').nth(1).map_or(name.len(), |(at, _)| at);
    &name[..end]
}

/// The value that so many of a hundred do not exceed.
pub(super) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(user: User, verb: &str, name: &str, received: i64, at: i64) -> Request {
        let moment = |millis| jiff::Timestamp::from_millisecond(millis).unwrap();
        Request {
            user: user.name().to_owned(),
            verb: verb.to_owned(),
            group: String::new(),
            resource: "any".to_owned(),
            namespace: "busy".to_owned(),
            name: name.to_owned(),
            code: 200,
            received: moment(received),
            at: moment(at),
        }
    }

    #[test]
    fn the_first_write_after_a_change_is_the_reaction() {
        let ours = User::Controller;
        let requests = [
            request(User::Person, "patch", "web-1", 0, 10),
            request(User::Person, "patch", "web-2", 5, 20),
            request(ours, "create", "web-2-abc", 25, 60),
            request(ours, "create", "web-1-abc", 40, 70),
            request(ours, "patch", "web-1", 90, 95),
        ];
        let expected = [5, 30].map(Duration::from_millis);
        assert_eq!(of(&requests, ours, "busy"), expected);
        assert!(of(&requests, ours, "other").is_empty());
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<Duration> = (1..=20).map(Duration::from_millis).collect();
        for (percent, expected) in [(50, 10), (95, 19), (99, 20), (100, 20)] {
            assert_eq!(percentile(&values, percent), Duration::from_millis(expected), "{percent}");
        }
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
