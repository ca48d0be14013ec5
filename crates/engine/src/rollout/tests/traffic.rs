//! Canaries whose traffic a router splits, in the middle of an update: what is written next.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;

/// A rollout of ten in mid-update, as a row of a table describes it.
struct Scene<'a> {
    /// Of the canary strategy, besides nginx, as JSON.
    strategy: &'a str,
    /// Size and available pods of the stable and of the new ReplicaSet.
    pods: [(i64, i64); 2],
    /// Weight that the router carries and the status records.
    weight: i64,
    /// Fields of the status, as JSON.
    status: &'a str,
}

impl Scene<'_> {
    fn fixture(&self, replicas: i32) -> Fixture {
        let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let mut fixture = Fixture::nginx(replicas, parsed(self.strategy));
        fixture.settle(at(0));
        fixture.set_image("v2");
        fixture.reconcile(at(1));
        for (set, (size, available)) in self.pods.into_iter().enumerate() {
            fixture.size(set, size, available);
        }
        let [old, new] = [fixture.hash(0), fixture.hash(1)];
        let key = "nginx.ingress.kubernetes.io/canary-weight";
        let note = json!({ "metadata": { "annotations": { key: self.weight.to_string() } } });
        fixture.patch_ingress("web-web-canary", note);
        let selector =
            json!({ "rollouts-pod-template-hash": if self.weight > 0 { &new } else { &old } });
        fixture.patch_service("canary", json!({ "spec": { "selector": selector } }));
        let max = parsed(self.strategy)["trafficRouting"]["maxTrafficWeight"].as_i64();
        let part = |weight: i64, service: &str, hash: &str| json!({ "weight": weight, "serviceName": service, "podTemplateHash": hash });
        let stable = part(max.unwrap_or(100) - self.weight, "stable", &old);
        let weights = json!({ "canary": part(self.weight, "canary", &new), "stable": stable });
        fixture.patch_status(json!({ "canary": { "weights": weights } }));
        fixture.patch_status(parsed(self.status));
        fixture.take_events();
        fixture
    }
}

/// Runs rows of: what | strategy | stable | new | weight | status | what is written.
fn table(rows: &str) {
    for row in rows.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, strategy, stable, new, weight, status, expected] = cells[..] else {
            panic!("seven cells: {row}");
        };
        let pods = |text: &str| -> (i64, i64) {
            let (size, available) = text.split_once('/').unwrap();
            (size.parse().unwrap(), available.parse().unwrap())
        };
        let pods = [pods(stable), pods(new)];
        let scene = Scene { strategy, pods, weight: weight.parse().unwrap(), status };
        assert_eq!(next(&mut scene.fixture(10)), expected, "{what}");
    }
}

/// What is written next, and what the status then says about the update.
fn next(fixture: &mut Fixture) -> String {
    let before = fixture.status();
    let mut written = fixture.reconcile(at(2));
    written.retain(|write| write != "status");
    let after = fixture.status();
    if before["currentStepIndex"] != after["currentStepIndex"] {
        written.push(format!("step {}", after["currentStepIndex"]));
    }
    if before["stableRS"] != after["stableRS"] {
        written.push("promoted".to_owned());
    }
    written.join(", ")
}

#[test]
fn the_weight_follows_the_pods() {
    table(
        r#"
the pods are not there yet: the weight before stays | {"steps":[{"setWeight":10},{"setWeight":20}]} | 10/10 | 2/1 | 10 | {"currentStepIndex":1} |
they are: the weight, and the step is done | {"steps":[{"setWeight":10},{"setWeight":20}]} | 10/10 | 2/2 | 10 | {"currentStepIndex":1} | weight 20, step 2
more pods are wanted than its traffic needs: the weight stays | {"minPodsPerReplicaSet":2,"steps":[{"setWeight":5},{"pause":{}}]} | 10/10 | 2/1 | 5 | {} |
none is there: no weight, whatever the step says | {"steps":[{"setWeight":20},{"pause":{}}]} | 10/10 | 2/0 | 20 | {"currentStepIndex":1} | weight 0
none is there, and stable cannot take it all | {"dynamicStableScale":true,"steps":[{"setWeight":90},{"pause":{}}]} | 1/1 | 9/0 | 90 | {"currentStepIndex":1} |
stable is not there for the rest | {"steps":[{"setWeight":20}]} | 10/7 | 2/2 | 0 | {} | switch canary to 2, step 1
a threshold is enough for stable | {"replicaProgressThreshold":{"type":"Percent","value":80},"steps":[{"setWeight":20}]} | 10/7 | 2/2 | 0 | {} | switch canary to 2, weight 20, step 1
weights of a thousand | {"trafficRouting":{"maxTrafficWeight":1000},"steps":[{"setWeight":5},{"setWeight":15}]} | 10/10 | 1/1 | 5 | {"currentStepIndex":1} | weight 15, step 2
a step skipped by hand gets no traffic onto too few pods | {"steps":[{"setWeight":40},{"setWeight":60}]} | 10/10 | 2/2 | 0 | {"currentStepIndex":1} | switch canary to 2, resize 2 to 6
a smaller weight goes before its pods | {"steps":[{"setWeight":60},{"setWeight":20}]} | 10/10 | 6/6 | 60 | {"currentStepIndex":1} | weight 20
and then the pods | {"steps":[{"setWeight":60},{"setWeight":20}]} | 10/10 | 6/6 | 20 | {"currentStepIndex":1} | resize 2 to 2
all steps are done: everything, and promoted | {"steps":[{"setWeight":80}]} | 10/10 | 10/10 | 80 | {"currentStepIndex":1} | weight 100, promoted
without a verdict nothing rises | {"steps":[{"setWeight":10},{"setWeight":20}]} | 10/10 | 2/2 | 10 | {"currentStepIndex":1,"controllerPause":true,"pauseConditions":[{"reason":"InconclusiveAnalysisRun","startTime":"2023-11-14T22:13:20Z"}]} |
"#,
    );
}

#[test]
fn a_full_promotion_keeps_the_weight_or_follows_the_pods() {
    table(
        r#"
the weight stays until the new one is whole | {"steps":[{"setWeight":5},{"pause":{}}]} | 10/10 | 10/5 | 5 | {"currentStepIndex":2,"promoteFull":true} |
or follows its pods | {"dynamicStableScale":true,"steps":[{"setWeight":5},{"pause":{}}]} | 10/10 | 10/5 | 5 | {"currentStepIndex":2,"promoteFull":true} | weight 50
and stable shrinks after it | {"dynamicStableScale":true,"steps":[{"setWeight":5},{"pause":{}}]} | 10/10 | 10/5 | 50 | {"currentStepIndex":2,"promoteFull":true} | resize 1 to 5
more pods than wanted are no more than all | {"dynamicStableScale":true,"steps":[{"setWeight":5},{"pause":{}}]} | 1/1 | 12/12 | 90 | {"currentStepIndex":2,"promoteFull":true} | weight 100, promoted
"#,
    );
}

#[test]
fn an_abort_returns_what_stable_can_carry_and_never_takes_more() {
    const STEPS: &str = r#""steps":[{"setWeight":50},{"pause":{}}]"#;
    let rows = r#"
stable is complete: nothing is left, the Service follows, the delay begins | {STEPS} | 10/10 | 5/5 | 50 | {"abort":true} | switch canary to 1, weight 0, annotate 2
stable has lost two: they stay with the new one | {STEPS} | 10/8 | 5/5 | 50 | {"abort":true} | weight 20
the new one has none: everything, although stable is not whole | {STEPS} | 10/1 | 5/0 | 50 | {"abort":true} | switch canary to 1, weight 0
stable has none either: nothing moves | {STEPS} | 10/0 | 5/5 | 50 | {"abort":true} |
dynamic: stable is made whole first | {"dynamicStableScale":true,STEPS} | 5/5 | 5/5 | 50 | {"abort":true} | resize 1 to 10
dynamic: what has come back is used at once | {"dynamicStableScale":true,STEPS} | 10/6 | 8/8 | 100 | {"abort":true,"abortedAt":"2023-11-14T22:13:20Z"} | weight 40
dynamic: then the pods follow their traffic | {"dynamicStableScale":true,STEPS} | 10/6 | 8/8 | 40 | {"abort":true,"abortedAt":"2023-11-14T22:13:20Z"} | resize 2 to 4
dynamic: never back up when stable flaps | {"dynamicStableScale":true,STEPS} | 10/8 | 2/2 | 0 | {"abort":true,"abortedAt":"2023-11-14T22:13:20Z"} | resize 2 to 0
dynamic, with a delay: the pods stay under weight | {"dynamicStableScale":true,"abortScaleDownDelaySeconds":30,STEPS} | 10/9 | 5/5 | 10 | {"abort":true,"abortedAt":"2023-11-14T22:13:20Z"} |
dynamic, with a delay: it begins when the weight is gone | {"dynamicStableScale":true,"abortScaleDownDelaySeconds":30,STEPS} | 10/10 | 5/5 | 0 | {"abort":true,"abortedAt":"2023-11-14T22:13:20Z"} | annotate 2
a delay begins when stable is complete | {STEPS} | 10/10 | 5/5 | 0 | {"abort":true,"abortedAt":"2023-11-14T22:13:20Z"} | annotate 2
not before | {STEPS} | 10/9 | 5/5 | 0 | {"abort":true,"abortedAt":"2023-11-14T22:13:20Z"} |
no delay, no end | {"abortScaleDownDelaySeconds":0,STEPS} | 10/10 | 5/5 | 0 | {"abort":true,"abortedAt":"2023-11-14T22:13:20Z"} |
a fixed size counts no more | {"abortScaleDownDelaySeconds":0,"steps":[{"setCanaryScale":{"replicas":3}}]} | 10/10 | 5/5 | 0 | {"abort":true,"abortedAt":"2023-11-14T22:13:20Z"} |
"#;
    table(
        &rows
            .replace("{STEPS}", &format!("{{{STEPS}}}"))
            .replace(",STEPS}", &format!(",{STEPS}}}")),
    );
}

#[test]
fn the_canary_is_sized_by_its_traffic_or_by_its_own_step() {
    table(
        r#"
by a share of its own | {"steps":[{"setCanaryScale":{"weight":25}}]} | 10/10 | 0/0 | 0 | {} | resize 2 to 3
by a number | {"steps":[{"setCanaryScale":{"replicas":7}}]} | 10/10 | 0/0 | 0 | {} | resize 2 to 7
more than all | {"steps":[{"setCanaryScale":{"weight":200}}]} | 10/10 | 10/10 | 0 | {} | switch canary to 2, resize 2 to 20
a number of available pods completes it | {"steps":[{"setCanaryScale":{"replicas":7}},{"pause":{}}]} | 10/10 | 7/7 | 0 | {} | switch canary to 2, step 1
a later weight does not change it | {"steps":[{"setCanaryScale":{"replicas":1}},{"setWeight":50},{"pause":{}}]} | 10/10 | 1/1 | 0 | {"currentStepIndex":1} | switch canary to 2, weight 50, step 2
until it follows the traffic again | {"steps":[{"setCanaryScale":{"replicas":1}},{"setWeight":50},{"setCanaryScale":{"matchTrafficWeight":true}}]} | 10/10 | 1/1 | 50 | {"currentStepIndex":2} | resize 2 to 5
a person may ask for less than the traffic needs | {"steps":[{"setWeight":50},{"setCanaryScale":{"replicas":1}}]} | 10/10 | 5/5 | 50 | {"currentStepIndex":1} | resize 2 to 1
for nothing, the traffic goes first | {"steps":[{"setWeight":50},{"setCanaryScale":{"replicas":0}}]} | 10/10 | 5/5 | 50 | {"currentStepIndex":1} | weight 0
then the pods | {"steps":[{"setWeight":50},{"setCanaryScale":{"replicas":0}}]} | 10/10 | 5/5 | 0 | {"currentStepIndex":1} | switch canary to 2
at least so many of each | {"minPodsPerReplicaSet":3,"steps":[{"setWeight":10}]} | 10/10 | 0/0 | 0 | {} | resize 2 to 3
dynamic: stable shrinks when its traffic has gone | {"dynamicStableScale":true,"steps":[{"setWeight":20},{"pause":{}}]} | 10/10 | 2/2 | 20 | {"currentStepIndex":1} | resize 1 to 8
dynamic: not before | {"dynamicStableScale":true,"steps":[{"setWeight":10},{"setWeight":20}]} | 9/9 | 2/1 | 10 | {"currentStepIndex":1} |
"#,
    );
}

#[test]
fn a_service_moves_only_onto_enough_pods() {
    let steps = r#"{"steps":[{"setWeight":20},{"pause":{}}]}"#;
    let scene = Scene { strategy: steps, pods: [(10, 10), (2, 1)], weight: 0, status: "{}" };
    let cases = [
        // what, whose the Service is, available new pods, expected
        ("ours: one pod is enough without traffic", Some("web"), 1, "switch canary to 2"),
        ("not ours yet: all of them", None, 1, ""),
        ("not ours yet, and they are there", None, 2, "switch canary to 2, weight 20, step 1"),
        ("no pod, no switch", Some("web"), 0, ""),
    ];
    for (what, owner, available, expected) in cases {
        let mut fixture = scene.fixture(10);
        fixture.size(1, 2, available);
        let mark = json!({ "argo-rollouts.argoproj.io/managed-by-rollouts": owner });
        fixture.patch_service("canary", json!({ "metadata": { "annotations": mark } }));
        assert_eq!(next(&mut fixture), expected, "{what}");
    }
}

/// Of four replicas with a threshold of 25 % | the weights that are written, in order.
const THRESHOLDS: &str = r#"
two weights, then a pause  | [{"setWeight":20},{"setWeight":60},{"pause":{}}]  | 0 20 60
up to everything           | [{"setWeight":20},{"setWeight":100},{"pause":{}}] | 0 20 100
down by a step             | [{"setWeight":60},{"setWeight":20},{"pause":{}}]  | 0 60 20"#;

#[test]
fn a_weight_that_a_threshold_allowed_stays_while_the_pods_follow() {
    for row in THRESHOLDS.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, steps, expected] = cells[..] else { panic!("three cells: {row}") };
        let steps: Value = serde_json::from_str(steps).unwrap();
        let threshold = json!({ "type": "Percent", "value": 25 });
        let strategy = json!({ "replicaProgressThreshold": threshold, "steps": steps });
        let mut fixture = Fixture::nginx(4, strategy);
        fixture.settle(at(0));
        fixture.set_image("v2");
        let mut weights = vec![fixture.weight().to_owned()];
        for second in 1..40 {
            // Most of the time the ReplicaSet controller has yet to see the last resize.
            if second % 3 == 0 {
                fixture.pods_follow();
            }
            fixture.reconcile(at(second));
            if weights.last().map(String::as_str) != Some(fixture.weight()) {
                weights.push(fixture.weight().to_owned());
            }
        }
        assert_eq!(weights.join(" "), expected, "{what}");
        assert_eq!(fixture.status()["phase"], "Paused", "{what}");
    }
}

/// Second, what happens, what is written, the weight, and what the row shows.
const THREE_REVISIONS: &str = "
0   | image v2 | create 2 size 1, revision 2, status | 0  | the second version comes
1   | pods     | switch canary to 2, weight 20, status | 20 | it has its pod, its Service and its traffic
2   | image v3 | create 3 size 1, revision 3, weight 0, status | 0 | the second loses its traffic
3   |          |                                     | 0  | but keeps its pods: its Service leads there
5   | pods     | switch canary to 3, weight 20, status | 20 | the third has its pod: Service, then traffic
6   |          | resize 2 to 0                       | 20 | nothing leads to the second any more";

#[test]
fn a_version_that_is_overtaken_keeps_its_pods_while_anything_leads_there() {
    let mut fixture = Fixture::nginx(5, json!({ "steps": [{ "setWeight": 20 }, { "pause": {} }] }));
    fixture.settle(at(-1));
    tell(&mut fixture, THREE_REVISIONS);
}

fn tell(fixture: &mut Fixture, rows: &str) {
    for row in rows.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [second, happens, writes, weight, what] = cells[..] else {
            panic!("five cells: {row}");
        };
        match happens.split_once(' ').unwrap_or((happens, "")) {
            ("pods", _) => fixture.pods_follow(),
            ("image", tag) => fixture.set_image(tag),
            ("scale", replicas) => {
                fixture.patch_spec(json!({ "replicas": replicas.parse::<i32>().unwrap() }));
            }
            ("abort", _) => fixture.patch_status(json!({ "abort": true })),
            ("promote", _) => fixture.promote(),
            _ => {}
        }
        let written = fixture.reconcile(at(second.parse().unwrap())).join(", ");
        assert_eq!(written, writes, "{what}");
        assert_eq!(fixture.weight(), weight, "{what}: weight");
    }
}

/// As above; the delays are 30 seconds.
const TO_THE_END: &str = "
0  | image v2 | create 2 size 5, revision 2, status | 0 | no steps: all at once
1  | pods     | switch canary to 2, status          | 0 | promoted
2  |          | switch stable to 2, status          | 0 | then the stable Service
3  |          | annotate 1                          | 0 | the old one gets its deadline
32 |          |                                     | 0 | and stays
33 |          | resize 1 to 0                       | 0 | until then
34 | pods     | status                              | 0 | healthy";

#[test]
fn an_old_version_stays_for_its_delay() {
    let mut fixture = Fixture::nginx(5, json!({}));
    fixture.settle(at(-1));
    tell(&mut fixture, TO_THE_END);
    assert_eq!(*fixture.note(0, "scale-down-deadline"), Value::Null, "the note goes with the pods");
    assert_eq!(fixture.condition("Healthy")["status"], "True");
}

#[test]
fn only_so_many_old_versions_stay_and_one_that_is_wanted_again_is_freed() {
    let mut fixture = Fixture::nginx(3, json!({ "scaleDownDelayRevisionLimit": 1 }));
    fixture.settle(at(0));
    for tag in ["v2", "v3"] {
        fixture.set_image(tag);
        fixture.settle(at(10));
    }
    assert_eq!(fixture.sizes(), [0, 3, 3], "of two delayed ones the older goes at once");
    fixture.set_image("v2");
    fixture.settle(at(20));
    assert_eq!(*fixture.note(1, "scale-down-deadline"), Value::Null, "wanted again");
    assert_ne!(*fixture.note(2, "scale-down-deadline"), Value::Null, "left behind");
    assert_eq!(fixture.sizes(), [0, 3, 3]);
    assert_eq!(fixture.status()["phase"], "Healthy");
    fixture.settle(at(5000));
    assert_eq!(fixture.sizes(), [0, 3, 0], "a long delay is no standstill");
    assert_eq!(fixture.condition("Progressing")["reason"], "NewReplicaSetAvailable");
}

/// As above, after an abort at 40 %; the delay is 30 seconds.
const ABORT: &str = "
0  | abort   | switch canary to 1, weight 0, annotate 2, status | 0 | back at once, once
1  |         |                                 | 0 | the Service stays where it is
2  | scale 4 | resize 1 to 4, status           | 0 | stable follows
3  | pods    | annotate 2                      | 0 | the new one only notes the number
4  |         | status                          | 0 | the counts
29 |         |                                 | 0 | it stays
30 |         | resize 2 to 0                   | 0 | until its deadline
31 | scale 8 | resize 1 to 8, status           | 0 | it is not woken by a new number";

#[test]
fn an_aborted_version_stays_for_its_delay_whatever_the_number_of_replicas() {
    let mut fixture = Fixture::nginx(5, json!({ "steps": [{ "setWeight": 40 }, { "pause": {} }] }));
    fixture.settle(at(-3));
    fixture.set_image("v2");
    fixture.settle(at(-2));
    tell(&mut fixture, ABORT);
    assert_eq!(fixture.status()["phase"], "Degraded");
}
