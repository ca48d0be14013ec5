//! A behaviour laid over one pod: what happens when, counted from its start.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Behaviour, ContainerState, Crash, Flapping, Phase, PodState};

/// The first wait before a crashed container is started again; it doubles up to the longest.
const FIRST_BACK_OFF: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_BACK_OFF: SignedDuration = SignedDuration::from_secs(300);
/// When a pull error turns into waiting for the next pull.
const PULL_BACK_OFF: SignedDuration = SignedDuration::from_secs(10);
/// What `sleep infinity` means: a hundred years.
const FOR_EVER: f64 = 3.2e9;

/// A pod's state at one moment, and when it changes next by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The state.
    pub state: PodState,
    /// The next change, if time alone brings one.
    pub next: Option<Timestamp>,
}

/// What happens when to a pod, counted from its start.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    ready_after: SignedDuration,
    stops_within: SignedDuration,
    gates: Vec<String>,
    course: Course,
    crash: Option<Arc<Crash>>,
    unschedulable: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
enum Course {
    Steady,
    NeverReady,
    PullError,
    NeverStarts,
    Crash { after: SignedDuration, times: Option<u32> },
    Flapping { ready: SignedDuration, not_ready: SignedDuration },
    Ends { after: SignedDuration, exit_code: i32 },
}

impl Timeline {
    /// Lays a behaviour over a pod.
    pub fn of(pod_spec: &Value, behaviour: &Behaviour) -> Self {
        let containers = pod_spec["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let slowest = containers.iter().map(start_delay).fold(0.0, f64::max);
        let longest_stop = containers.iter().map(stop_delay).fold(0.0, f64::max);
        let grace = pod_spec["terminationGracePeriodSeconds"].as_f64().unwrap_or(30.0);
        let gates = pod_spec["readinessGates"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            ready_after: seconds(behaviour.start_up_seconds + slowest),
            stops_within: seconds((behaviour.termination_seconds + longest_stop).min(grace)),
            gates: gates
                .iter()
                .filter_map(|gate| gate["conditionType"].as_str())
                .map(str::to_owned)
                .collect(),
            course: course(pod_spec, containers.first(), behaviour),
            crash: behaviour.crash.clone().map(Arc::new),
            unschedulable: behaviour.unschedulable.as_str().into(),
        }
    }

    /// The state at `now` of a pod that was started at `started`.
    pub fn at(&self, started: Timestamp, now: Timestamp) -> Plan {
        match &self.course {
            Course::Steady => self.steady(started, now, 0),
            Course::NeverReady => running(started, started, false, 0, None),
            Course::PullError => pull_error(started, now),
            Course::NeverStarts => waiting("ContainerCreating", started, None),
            Course::Crash { after, times } => self.crash(*after, *times, started, now),
            Course::Flapping { ready, not_ready } => self.flap(*ready, *not_ready, started, now),
            Course::Ends { after, exit_code } => self.ends(*after, *exit_code, started, now),
        }
    }

    /// How long the pod takes to go once it is deleted.
    pub fn stops_within(&self) -> SignedDuration {
        self.stops_within
    }

    /// How its containers end, where they crash.
    pub fn ends_in(&self) -> Option<&Arc<Crash>> {
        self.crash.as_ref()
    }

    /// Why no node takes the pod; empty where one does.
    pub fn unschedulable(&self) -> &Arc<str> {
        &self.unschedulable
    }

    /// The conditions that must be true besides the containers' readiness.
    pub fn gates(&self) -> &[String] {
        &self.gates
    }

    fn steady(&self, started: Timestamp, now: Timestamp, restarts: u32) -> Plan {
        let ready_at = started + self.ready_after;
        if ready_at <= now {
            running(started, ready_at, true, restarts, None)
        } else {
            running(started, started, false, restarts, Some(ready_at))
        }
    }

    fn crash(
        &self,
        after: SignedDuration,
        times: Option<u32>,
        started: Timestamp,
        now: Timestamp,
    ) -> Plan {
        let mut began = started;
        let mut back_off = FIRST_BACK_OFF;
        let mut restarts = 0;
        while times.is_none_or(|times| restarts < times) {
            let falls = began + after;
            if now < falls {
                let mut plan = self.steady(began, now, restarts);
                plan.next = Some(plan.next.map_or(falls, |next| next.min(falls)));
                return plan;
            }
            let again = falls + back_off;
            if now < again {
                let container = ContainerState::Waiting("CrashLoopBackOff");
                let phase = Phase::Running;
                let state = PodState { phase, ready: false, since: falls, container, restarts };
                return Plan { state, next: Some(again) };
            }
            began = again;
            back_off = (back_off * 2).min(LONGEST_BACK_OFF);
            restarts += 1;
        }
        self.steady(began, now, restarts)
    }

    fn flap(
        &self,
        ready: SignedDuration,
        not_ready: SignedDuration,
        started: Timestamp,
        now: Timestamp,
    ) -> Plan {
        let first = started + self.ready_after;
        let period = (ready + not_ready).as_millis().max(1);
        if now < first {
            return running(started, started, false, 0, Some(first));
        }
        let turns = now.duration_since(first).as_millis() / period;
        let began = first + milliseconds(turns * period);
        let turns_bad = began + ready;
        if now < turns_bad {
            running(started, began, true, 0, Some(turns_bad))
        } else {
            running(started, turns_bad, false, 0, Some(began + milliseconds(period)))
        }
    }

    fn ends(
        &self,
        after: SignedDuration,
        exit_code: i32,
        started: Timestamp,
        now: Timestamp,
    ) -> Plan {
        let finished = started + after;
        if now < finished {
            let mut plan = self.steady(started, now, 0);
            plan.next = Some(plan.next.map_or(finished, |next| next.min(finished)));
            return plan;
        }
        let phase = if exit_code == 0 { Phase::Succeeded } else { Phase::Failed };
        let container = ContainerState::Terminated { exit_code, started, finished };
        let state = PodState { phase, ready: false, since: finished, container, restarts: 0 };
        Plan { state, next: None }
    }
}

fn course(pod_spec: &Value, first: Option<&Value>, behaviour: &Behaviour) -> Course {
    if behaviour.pull_error {
        return Course::PullError;
    }
    if behaviour.never_starts || !behaviour.unschedulable.is_empty() {
        return Course::NeverStarts;
    }
    let line = first.map(command_line).unwrap_or_default();
    let after = seconds(sleep_in(&line).unwrap_or(0.0));
    let exit_code = exit_in(&line);
    match pod_spec["restartPolicy"].as_str() {
        Some("Never") => return Course::Ends { after, exit_code },
        Some("OnFailure") if exit_code == 0 => return Course::Ends { after, exit_code },
        Some("OnFailure") => return Course::Crash { after, times: None },
        _ => {}
    }
    if let Some(Crash { after_seconds, times, .. }) = behaviour.crash {
        return Course::Crash { after: seconds(after_seconds), times };
    }
    if behaviour.never_ready {
        return Course::NeverReady;
    }
    match behaviour.flapping {
        Some(Flapping { ready_seconds, not_ready_seconds }) => Course::Flapping {
            ready: seconds(ready_seconds),
            not_ready: seconds(not_ready_seconds),
        },
        None => Course::Steady,
    }
}

fn running(
    started: Timestamp,
    since: Timestamp,
    ready: bool,
    restarts: u32,
    next: Option<Timestamp>,
) -> Plan {
    let container = ContainerState::Running(started);
    Plan { state: PodState { phase: Phase::Running, ready, since, container, restarts }, next }
}

fn pull_error(started: Timestamp, now: Timestamp) -> Plan {
    let backs_off = started + PULL_BACK_OFF;
    let (reason, next) = if now < backs_off {
        ("ErrImagePull", Some(backs_off))
    } else {
        ("ImagePullBackOff", None)
    };
    waiting(reason, started, next)
}

/// A pod whose containers have not begun, for this reason.
fn waiting(reason: &'static str, started: Timestamp, next: Option<Timestamp>) -> Plan {
    let container = ContainerState::Waiting(reason);
    let state =
        PodState { phase: Phase::Pending, ready: false, since: started, container, restarts: 0 };
    Plan { state, next }
}

/// What the pod itself asks for before it may be ready.
fn start_delay(container: &Value) -> f64 {
    let probe = container["readinessProbe"]["initialDelaySeconds"].as_f64().unwrap_or(0.0);
    probe + hook_delay(&container["lifecycle"]["postStart"])
}

fn stop_delay(container: &Value) -> f64 {
    hook_delay(&container["lifecycle"]["preStop"])
}

fn hook_delay(hook: &Value) -> f64 {
    let slept = hook["sleep"]["seconds"].as_f64();
    slept.or_else(|| sleep_in(&words(&hook["exec"]["command"]))).unwrap_or(0.0)
}

/// What a container is to run, in one line.
pub(super) fn command_line(container: &Value) -> String {
    [words(&container["command"]), words(&container["args"])].join(" ").trim().to_owned()
}

fn words(list: &Value) -> String {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

/// The seconds of the first `sleep N` in a command line.
fn sleep_in(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once("sleep ")?;
    if rest.starts_with("infinity") {
        return Some(FOR_EVER);
    }
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let number: f64 = rest[..end].parse().ok()?;
    let unit = match rest[end..].chars().next() {
        Some('m') => 60.0,
        Some('h') => 3_600.0,
        Some('d') => 86_400.0,
        _ => 1.0,
    };
    Some(number * unit)
}

/// The code of the first `exit N` in a command line. `exit` alone is no program.
fn exit_in(line: &str) -> i32 {
    const NOT_FOUND: i32 = 127;
    if line.starts_with("exit") {
        return NOT_FOUND;
    }
    let Some((_, rest)) = line.split_once("exit ") else { return 0 };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().unwrap_or(0)
}

fn seconds(number: f64) -> SignedDuration {
    SignedDuration::try_from_secs_f64(number.clamp(0.0, FOR_EVER)).unwrap_or_default()
}

fn milliseconds(number: i128) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000 + second).unwrap()
    }

    fn next(plan: &Plan) -> Option<i64> {
        plan.next.map(|next| next.as_second() - 1_000)
    }

    /// pod, behaviour, then rows of (second, phase, ready, restarts, next change).
    fn walk(pod: Value, behaviour: Value, rows: &[(i64, Phase, bool, u32, Option<i64>)]) {
        let behaviour: Behaviour = serde_json::from_value(behaviour).unwrap();
        for (second, phase, ready, restarts, change) in rows {
            let plan = super::super::plan(&pod, &behaviour, at(0), at(*second));
            let seen = (plan.state.phase, plan.state.ready, plan.state.restarts, next(&plan));
            assert_eq!(seen, (*phase, *ready, *restarts, *change), "second {second}");
        }
    }

    #[test]
    fn a_good_pod_is_ready_after_its_start_up_and_stays_so() {
        use Phase::Running;
        let rows = [(0, Running, false, 0, Some(3)), (3, Running, true, 0, None)];
        walk(json!({}), json!({"startUpSeconds": 3}), &rows);
    }

    #[test]
    fn probe_and_hook_delays_come_on_top() {
        let pod = json!({"containers": [{
            "readinessProbe": {"initialDelaySeconds": 5},
            "lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", "sleep 2"]}}},
        }]});
        let rows = [(7, Phase::Running, false, 0, Some(8)), (8, Phase::Running, true, 0, None)];
        walk(pod, json!({}), &rows);
    }

    #[test]
    fn a_crash_loop_backs_off_longer_each_time() {
        use Phase::Running;
        let rows = [
            (0, Running, false, 0, Some(1)),
            (1, Running, true, 0, Some(5)),
            (6, Running, false, 0, Some(15)),
            (15, Running, false, 1, Some(16)),
            (16, Running, true, 1, Some(20)),
            (20, Running, false, 1, Some(40)),
            (40, Running, false, 2, Some(41)),
            (41, Running, true, 2, None),
        ];
        let behaviour = json!({"startUpSeconds": 1, "crash": {"afterSeconds": 5, "times": 2}});
        walk(json!({}), behaviour, &rows);
    }

    #[test]
    fn a_flapping_pod_is_ready_by_turns() {
        use Phase::Running;
        let rows = [
            (0, Running, false, 0, Some(1)),
            (1, Running, true, 0, Some(11)),
            (11, Running, false, 0, Some(14)),
            (14, Running, true, 0, Some(24)),
        ];
        let behaviour = json!({"flapping": {"readySeconds": 10, "notReadySeconds": 3}});
        walk(json!({}), behaviour, &rows);
    }

    #[test]
    fn images_that_cannot_be_had_and_pods_that_never_get_ready_wait() {
        let pull = [(0, Phase::Pending, false, 0, Some(10)), (10, Phase::Pending, false, 0, None)];
        walk(json!({}), json!({"pullError": true}), &pull);
        let never = [(99, Phase::Running, false, 0, None)];
        walk(json!({}), json!({"neverReady": true}), &never);
    }

    #[test]
    fn pods_of_jobs_end_as_their_command_says() {
        let pod = |line: &str| {
            let command = ["sh", "-c", line];
            json!({"restartPolicy": "Never", "containers": [{"command": command}]})
        };
        let cases = [
            ("sleep 5", 5, Phase::Succeeded),
            ("sleep 5; exit 1", 5, Phase::Failed),
            ("true", 0, Phase::Succeeded),
        ];
        for (line, second, phase) in cases {
            walk(pod(line), json!({}), &[(second, phase, false, 0, None)]);
        }
    }

    #[test]
    fn stopping_takes_the_hook_and_the_image_but_no_longer_than_the_grace() {
        let pod = |line: &str| {
            json!({"terminationGracePeriodSeconds": 30, "containers": [
                {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", line]}}}}]})
        };
        let behaviour = Behaviour { termination_seconds: 2.0, ..Behaviour::default() };
        let stop = |line: &str| Timeline::of(&pod(line), &behaviour).stops_within().as_secs();
        assert_eq!(stop("sleep 5"), 7);
        assert_eq!(stop("sleep 1m"), 30);
        assert_eq!(stop("true"), 2);
    }
}
