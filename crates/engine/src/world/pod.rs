//! What does a decision need of a pod? Its age, whether it serves, and what it is marked with.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::digest::{Bearer, Pair, digest, digests, sorted};
use crate::frame::Frame;
use crate::uid::Uid;

/// A pod as decisions see it, when they have asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodView {
    /// Name.
    pub name: Arc<str>,
    /// Identity.
    pub uid: Uid,
    /// `resourceVersion`.
    pub version: u64,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Since when it is ready, if it is.
    pub ready_since: Option<Timestamp>,
    /// Is it on its way out?
    pub terminating: bool,
    /// One digest per label and per annotation; see `has`.
    pub digests: Box<[u64]>,
}

impl PodView {
    /// The view of a frame.
    pub fn read(frame: &Frame) -> Self {
        let meta = &frame.meta;
        PodView {
            name: Arc::clone(&meta.name),
            uid: meta.uid,
            version: meta.version,
            created: meta.created,
            ready_since: ready_since(frame),
            terminating: meta.deleting.is_some(),
            digests: sorted(digests(&meta.labels, &meta.annotations).collect()),
        }
    }

    /// Has it this label or annotation with this value?
    pub fn has(&self, pair: Pair, key: &str, value: &str) -> bool {
        self.digests.binary_search(&digest(Bearer::Object, pair, key, value)).is_ok()
    }

    /// Does it stay, and has it been ready for so many seconds?
    pub fn is_available(&self, min_ready_seconds: i32, now: Timestamp) -> bool {
        let needed = SignedDuration::from_secs(i64::from(min_ready_seconds));
        let long_enough = |since: Timestamp| now.duration_since(since) >= needed;
        !self.terminating && self.ready_since.is_some_and(long_enough)
    }
}

fn ready_since(frame: &Frame) -> Option<Timestamp> {
    let conditions = frame.status["conditions"].as_array()?;
    let ready = conditions.iter().find(|one| one["type"] == "Ready" && one["status"] == "True")?;
    ready["lastTransitionTime"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_is_available_once_it_has_been_ready_for_long_enough() {
        let at = |second: i64| Timestamp::from_second(1_700_000_000 + second).unwrap();
        let pod = |ready: &str, deleted: bool| -> PodView {
            let mut pod = json!({
                "metadata": { "name": "a", "labels": { "role": "canary" } },
                "status": { "conditions": [
                    { "type": "Ready", "status": ready, "lastTransitionTime": at(10) },
                ] },
            });
            if deleted {
                pod["metadata"]["deletionTimestamp"] = json!(at(20));
            }
            PodView::read(&serde_json::from_value(pod).unwrap())
        };
        let cases = [
            ("not ready", "False", false, 0, 100, false),
            ("ready", "True", false, 0, 10, true),
            ("ready, but not for long enough", "True", false, 5, 14, false),
            ("ready for exactly long enough", "True", false, 5, 15, true),
            ("on its way out", "True", true, 0, 100, false),
        ];
        for (what, ready, deleted, min_ready_seconds, now, expected) in cases {
            let pod = pod(ready, deleted);
            assert_eq!(pod.is_available(min_ready_seconds, at(now)), expected, "{what}");
            assert!(pod.has(Pair::Label, "role", "canary"), "{what}");
        }
    }
}
