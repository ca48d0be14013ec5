//! How do the containers of an image behave over time? Data in, a pod's state and its next change
//! out; the embedded kubelet and one in front of a real API server share it.

mod timeline;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use timeline::{Plan, Timeline};

/// How the containers of some images behave. Every field has a default, so that data names only
/// what is special.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Behaviour {
    /// Which images; `*` stands for any text.
    pub image: String,
    /// And which command lines; `*` stands for any text.
    pub command: String,
    /// From creation until ready. Probe and hook delays of the pod come on top.
    pub start_up_seconds: f64,
    /// Runs, but never becomes ready.
    pub never_ready: bool,
    /// The image cannot be had.
    pub pull_error: bool,
    /// Never starts, as when a volume cannot be mounted.
    pub never_starts: bool,
    /// Why no node takes the pod, in the scheduler's words. Empty where one does.
    pub unschedulable: String,
    /// Ends by itself although it should not.
    pub crash: Option<Crash>,
    /// Is ready and not ready by turns.
    pub flapping: Option<Flapping>,
    /// From deletion until gone. A preStop sleep of the pod comes on top.
    pub termination_seconds: f64,
    /// So many of a hundred requests are answered with an error.
    pub error_percent: f64,
    /// Half of all requests are answered within so many milliseconds.
    pub latency_milliseconds: f64,
}

/// A container that ends although it should not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Crash {
    /// How long each attempt lives.
    pub after_seconds: f64,
    /// How often; for ever if left out.
    pub times: Option<u32>,
    /// What the container exits with.
    pub exit_code: i32,
    /// Why, as the kubelet says it (`Error`, `OOMKilled`).
    pub reason: String,
    /// The end of its log, which the kubelet keeps where the container asks for it.
    pub message: String,
}

impl Crash {
    /// An error after so many seconds, so often; for ever where no number is given.
    pub fn after(after_seconds: f64, times: Option<u32>) -> Self {
        Self { after_seconds, times, ..Self::default() }
    }
}

impl Default for Crash {
    fn default() -> Self {
        Self {
            after_seconds: 0.0,
            times: None,
            exit_code: 1,
            reason: "Error".to_owned(),
            message: String::new(),
        }
    }
}

/// A container that is ready and not ready by turns, beginning with ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Flapping {
    /// How long it is ready.
    pub ready_seconds: f64,
    /// How long it is not.
    pub not_ready_seconds: f64,
}

/// The behaviours of a cluster: the first whose image fits counts, else the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Behaviours {
    list: Vec<Behaviour>,
    #[serde(skip)]
    default: Behaviour,
}

/// `status.phase` of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not all containers have started.
    Pending,
    /// At least one container runs, or is about to run again.
    Running,
    /// All have ended well, for good.
    Succeeded,
    /// All have ended, at least one badly, for good.
    Failed,
}

/// What all containers of a pod are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerState {
    /// Not running, for this reason (`ContainerCreating`, `CrashLoopBackOff` and so on).
    Waiting(&'static str),
    /// Running since.
    Running(Timestamp),
    /// Ended.
    Terminated {
        /// With this code.
        exit_code: i32,
        /// After running since.
        started: Timestamp,
        /// Until.
        finished: Timestamp,
    },
}

/// The state of a pod's containers at one moment. Readiness gates are not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodState {
    /// `status.phase`.
    pub phase: Phase,
    /// Whether all containers are ready.
    pub ready: bool,
    /// Since when `ready` is what it is.
    pub since: Timestamp,
    /// What the containers do.
    pub container: ContainerState,
    /// How often they were started again.
    pub restarts: u32,
}

/// The state of a pod at `now`, and when it changes next by itself.
pub fn plan(pod_spec: &Value, behaviour: &Behaviour, started: Timestamp, now: Timestamp) -> Plan {
    Timeline::of(pod_spec, behaviour).at(started, now)
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            image: "*".to_owned(),
            command: "*".to_owned(),
            start_up_seconds: 1.0,
            never_ready: false,
            pull_error: false,
            never_starts: false,
            unschedulable: String::new(),
            crash: None,
            flapping: None,
            termination_seconds: 0.0,
            error_percent: 0.0,
            latency_milliseconds: 50.0,
        }
    }
}

impl Behaviours {
    /// These behaviours, in this order of preference.
    pub fn new(list: Vec<Behaviour>) -> Self {
        Self { list, default: Behaviour::default() }
    }

    /// The same, with one more that is preferred to all others.
    pub fn first(mut self, behaviour: Behaviour) -> Self {
        self.list.insert(0, behaviour);
        self
    }

    /// How this pod behaves: by the first behaviour that fits any of its containers.
    pub fn of_pod(&self, pod_spec: &Value) -> &Behaviour {
        let containers = pod_spec["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let fits = |behaviour: &&Behaviour| {
            containers.iter().any(|one| {
                let image = one["image"].as_str().unwrap_or_default();
                matches(&behaviour.image, image)
                    && matches(&behaviour.command, &timeline::command_line(one))
            })
        };
        self.list.iter().find(fits).unwrap_or(&self.default)
    }
}

impl Phase {
    /// As the API spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Whether the pod has ended for good.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// Whether `text` is `pattern` with each `*` standing for any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(head) else {
        return false;
    };
    let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.any(|at| matches(tail, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn images_are_matched_with_stars() {
        let cases = [
            ("all images", "*", "nginx:1", true),
            ("exactly", "nginx:1", "nginx:1", true),
            ("no more", "nginx:1", "nginx:12", false),
            ("any tag", "nginx:*", "nginx:12", true),
            ("in the middle", "*/demo:bad*", "quay.io/demo:bad-1", true),
            ("another", "*:bad", "quay.io/demo:good", false),
        ];
        for (what, pattern, image, expected) in cases {
            assert_eq!(matches(pattern, image), expected, "{what}");
        }
    }

    #[test]
    fn the_first_behaviour_that_fits_counts_and_data_names_only_what_is_special() {
        let list = json!([
            {"image": "*:slow", "startUpSeconds": 60},
            {"image": "*:bad", "crash": {"afterSeconds": 3}},
        ]);
        let behaviours: Behaviours = serde_json::from_value(list).unwrap();
        let pod = |image: &str| json!({"containers": [{"image": image}]});
        assert_eq!(behaviours.of_pod(&pod("a:slow")).start_up_seconds, 60.0);
        assert_eq!(behaviours.of_pod(&pod("a:bad")).crash.as_ref().unwrap().times, None);
        assert_eq!(behaviours.of_pod(&pod("a:good")), &Behaviour::default());
        let by_command = json!([{"command": "/bad*", "neverReady": true}]);
        let behaviours: Behaviours = serde_json::from_value(by_command).unwrap();
        let pod = |command: &str| json!({"containers": [{"image": "a", "command": [command]}]});
        assert!(behaviours.of_pod(&pod("/bad-command")).never_ready, "by its command");
        assert!(!behaviours.of_pod(&pod("/good-command")).never_ready);
        let unknown = json!([{"image": "*", "starUpSeconds": 1}]);
        assert!(
            serde_json::from_value::<Behaviours>(unknown).is_err(),
            "a typing error is refused"
        );
    }
}
