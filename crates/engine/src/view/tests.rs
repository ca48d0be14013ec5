//! Pods, phases, weights and parts as people see them.

use serde_json::{Value, json};

use super::*;

/// What, spec, status, expected status, ready, restarts.
const PODS: &str = r#"
starts              | {"containers":[{}]} | {"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":"ContainerCreating"}}}]} | ContainerCreating | 0/1 | 0
runs                | {"containers":[{},{}]} | {"phase":"Running","containerStatuses":[{"ready":true,"state":{"running":{}}},{"ready":false,"state":{"running":{}},"restartCount":2}]} | Running | 1/2 | 2
is evicted          | {"containers":[{}]} | {"phase":"Failed","reason":"Evicted"} | Evicted | 0/1 | 0
crashes             | {"containers":[{}]} | {"phase":"Running","containerStatuses":[{"restartCount":4,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]} | CrashLoopBackOff | 0/1 | 4
was killed          | {"containers":[{}]} | {"phase":"Failed","containerStatuses":[{"state":{"terminated":{"signal":9}}}]} | Signal:9 | 0/1 | 0
ended with a code   | {"containers":[{}]} | {"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":3}}}]} | ExitCode:3 | 0/1 | 0
half is done        | {"containers":[{},{}]} | {"phase":"Running","containerStatuses":[{"state":{"terminated":{"reason":"Completed"}}},{"ready":true,"state":{"running":{}}}]} | Running | 1/2 | 0
initialises         | {"containers":[{}],"initContainers":[{},{}]} | {"phase":"Pending","initContainerStatuses":[{"state":{"terminated":{"exitCode":0}}},{"state":{"waiting":{"reason":"PodInitializing"}}}]} | Init:1/2 | 0/1 | 0
initialises badly   | {"containers":[{}],"initContainers":[{}]} | {"phase":"Pending","initContainerStatuses":[{"restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]} | Init:CrashLoopBackOff | 0/1 | 3
its init failed     | {"containers":[{}],"initContainers":[{}]} | {"phase":"Pending","initContainerStatuses":[{"state":{"terminated":{"exitCode":2}}}]} | Init:ExitCode:2 | 0/1 | 0
its sidecar runs    | {"containers":[{}],"initContainers":[{"name":"s","restartPolicy":"Always"}]} | {"phase":"Running","initContainerStatuses":[{"name":"s","started":true,"state":{"running":{}}}],"containerStatuses":[{"ready":true,"state":{"running":{}}}]} | Running | 1/1 | 0
"#;

#[test]
fn a_pod_stands_as_kubectl_says() {
    for row in PODS.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, spec, status, expected, ready, restarts] = cells[..] else {
            panic!("six cells: {row}");
        };
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let pod =
            json!({ "metadata": { "name": "p" }, "spec": json(spec), "status": json(status) });
        let node = pod::node(&Object::new(&pod));
        assert_eq!(node.status, expected, "{what}");
        let (of, all) = ready.split_once('/').unwrap();
        let ready = Fact::Ready { ready: of.parse().unwrap(), all: all.parse().unwrap() };
        assert_eq!(node.facts[0], ready, "{what}");
        let restarts = restarts.parse::<i64>().ok().filter(|count| *count > 0);
        assert_eq!(node.facts.get(1).copied(), restarts.map(Fact::Restarts), "{what}");
        let leaving = json!({ "metadata": { "deletionTimestamp": "2024-01-01T00:00:00Z" },
            "spec": json(spec), "status": json(status) });
        assert_eq!(pod::node(&Object::new(&leaving)).status, "Terminating", "{what}, leaving");
    }
}

/// What, status of the Rollout, expected phase and message.
const PHASES: &str = r#"
never seen           | {} | Progressing | more replicas need to be updated
as stored            | {"observedGeneration":"3","phase":"Healthy"} | Healthy |
an older spec        | {"observedGeneration":"2","phase":"Healthy"} | Progressing | waiting for rollout spec update to be observed
not a number         | {"observedGeneration":"x","phase":"Healthy"} | Healthy |
ahead of us          | {"observedGeneration":"9","phase":"Healthy"} | Healthy |
resumed by a person  | {"observedGeneration":"3","phase":"Paused","controllerPause":true} | Progressing | waiting for rollout to unpause
"#;

#[test]
fn a_phase_counts_once_the_controller_has_seen_the_spec() {
    for row in PHASES.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, status, phase, message] = cells[..] else { panic!("four cells: {row}") };
        let spec: RolloutSpec = decode(&json!({ "strategy": { "canary": {} } })).0;
        let status = decode(&serde_json::from_str(status).unwrap()).0;
        let expected = (phase.to_owned(), message.to_owned());
        assert_eq!(standing::phase(3, &spec, &status), expected, "{what}");
    }
}

/// What, canary, status, available canary pods, step, set weight, actual weight.
const WEIGHTS: &str = r#"
by pods               | {"steps":S} | {"currentStepIndex":1,"availableReplicas":4} | 1 | 1/3 | 20 | 25
the nearest before    | {"steps":S} | {"currentStepIndex":2,"availableReplicas":4} | 2 | 2/3 | 60 | 50
past the last         | {"steps":S} | {"currentStepIndex":3,"availableReplicas":4} | 4 | 3/3 | 100 | 100
aborted               | {"steps":S} | {"currentStepIndex":0,"abort":true,"availableReplicas":4} | 1 | 0/3 | 0 | 25
nothing available     | {"steps":S} | {"currentStepIndex":1} | 0 | 1/3 | 20 | 0
no steps              | {} | {"abort":true,"availableReplicas":4} | 1 | | 0 | 100
by a router           | {"steps":S,"trafficRouting":{}} | {"currentStepIndex":1,"availableReplicas":4,"canary":{"weights":{"canary":{"weight":17},"stable":{"weight":83}}}} | 1 | 1/3 | 20 | 17
a router says nothing | {"steps":S,"trafficRouting":{}} | {"currentStepIndex":1,"availableReplicas":4} | 1 | 1/3 | 20 | 20
another whole         | {"trafficRouting":{"maxTrafficWeight":1000}} | {} | 0 | | 1000 | 1000
"#;

#[test]
fn weights_are_what_is_asked_and_what_is_reached() {
    let steps = r#"[{"setWeight":20},{"pause":{}},{"setWeight":60}]"#;
    for row in WEIGHTS.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, canary, status, available, step, set, actual] = cells[..] else {
            panic!("seven cells: {row}");
        };
        let canary: Value = serde_json::from_str(&canary.replace('S', steps)).unwrap();
        let spec: RolloutSpec = decode(&json!({ "strategy": { "canary": canary } })).0;
        let status: RolloutStatus = decode(&serde_json::from_str(status).unwrap()).0;
        let canary = spec.strategy.canary.as_ref().unwrap();
        assert_eq!(standing::step(&spec, &status).unwrap_or_default(), step, "{what}");
        assert_eq!(set_weight(canary, &status).to_string(), set, "{what}");
        let reached = standing::actual_weight(canary, &status, available.parse().unwrap());
        assert_eq!(reached.to_string(), actual, "{what}");
    }
}

/// What, strategy, status, hash of the ReplicaSet, expected tags.
const TAGS: &str = r#"
the new one          | {"canary":{}} | {"stableRS":"a","currentPodHash":"b"} | b | canary
the stable one       | {"canary":{}} | {"stableRS":"a","currentPodHash":"b"} | a | stable
an old one           | {"canary":{}} | {"stableRS":"a","currentPodHash":"b"} | c |
promoted             | {"canary":{}} | {"stableRS":"b","currentPodHash":"b"} | b | stable
stable is pong       | {"canary":{"pingPong":{}}} | {"stableRS":"a","currentPodHash":"b"} | a | stable pong
canary is ping       | {"canary":{"pingPong":{}}} | {"stableRS":"a","currentPodHash":"b"} | b | canary ping
stable is ping       | {"canary":{"pingPong":{}}} | {"stableRS":"a","currentPodHash":"b","canary":{"stablePingPong":"ping"}} | a | stable ping
active               | {"blueGreen":{}} | {"stableRS":"a","blueGreen":{"activeSelector":"a","previewSelector":"a"}} | a | stable active
preview              | {"blueGreen":{}} | {"stableRS":"a","blueGreen":{"activeSelector":"a","previewSelector":"b"}} | b | preview
"#;

#[test]
fn a_replica_set_plays_its_parts() {
    for row in TAGS.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, strategy, status, hash, expected] = cells[..] else { panic!("five: {row}") };
        let strategy: Value = serde_json::from_str(strategy).unwrap();
        let spec: RolloutSpec = decode(&json!({ "strategy": strategy })).0;
        let status: RolloutStatus = decode(&serde_json::from_str(status).unwrap()).0;
        let set = json!({ "metadata": { "labels": { "rollouts-pod-template-hash": hash } } });
        let tags = tree::Described { spec: &spec, status: &status }.tags(&Object::new(&set));
        let tags: Vec<&str> = tags.into_iter().map(Tag::name).collect();
        assert_eq!(tags.join(" "), expected, "{what}");
    }
}
