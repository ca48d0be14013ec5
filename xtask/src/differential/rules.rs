//! Differences that are meant, each with the row of docs/differences.md that says so. Whatever no
//! rule explains is a mismatch.

use gradus_api::names::{annotation, event, reason as condition_reason};
use serde_json::Value;

use super::{
    case::{After, Case, Step},
    compare::{Checkpoint, Difference},
    scaling,
};

/// One known difference.
#[derive(Debug)]
pub struct Rule {
    /// The first column of its row in docs/differences.md.
    pub row: &'static str,
    /// Is this difference of this checkpoint one of those that the row means?
    pub explains: fn(&Difference, &Checkpoint, &Case) -> bool,
}

/// In the order in which they are tried.
pub const RULES: &[Rule] = &[
    Rule {
        row: "deadline of an aborted revision",
        explains: |difference, checkpoint, _| {
            let (set, note) = annotated(difference).unwrap_or_default();
            note == annotation::SCALE_DOWN_DEADLINE
                && difference.ours.is_null()
                && checkpoint.ours["replicaSets"][set]["replicas"] == 0
        },
    },
    Rule {
        row: "`desired-replicas` of old ReplicaSets",
        explains: |difference, checkpoint, _| {
            let (set, note) = annotated(difference).unwrap_or_default();
            let hash = &checkpoint.ours["rollout"]["status"]["currentPodHash"];
            note == annotation::DESIRED_REPLICAS
                && !set.ends_with(hash.as_str().unwrap_or_default())
        },
    },
    Rule {
        row: "managed routes",
        explains: |difference, _, _| {
            difference.path == "events.missing" && text(&difference.argo).contains(MANAGED_ROUTES)
        },
    },
    Rule {
        row: "Events of the first deploy with a threshold",
        explains: |difference, checkpoint, case| {
            let canary = &case.rollout()["spec"]["strategy"]["canary"];
            checkpoint.actions == 0
                && canary["replicaProgressThreshold"].is_object()
                && differ_in_order_of(difference, &TRAFFIC)
        },
    },
    Rule {
        row: "Events of a full promotion",
        explains: |difference, checkpoint, _| {
            let mut events = checkpoint.ours["events"].as_array().into_iter().flatten();
            events.any(|event| text(event).ends_with(FULL))
                && differ_in_order_of(difference, &[condition_reason::ROLLOUT_RESUMED])
        },
    },
    Rule {
        row: "Events of a pass that fails",
        explains: |difference, _, _| {
            difference.path == "events.added"
                && reason(text(&difference.ours)) == condition_reason::NEW_REPLICA_SET_CREATED
        },
    },
    Rule {
        row: "`previewReplicaCount`",
        explains: |difference, checkpoint, case| {
            let blue_green = &case.rollout()["spec"]["strategy"]["blueGreen"];
            let replicas = checkpoint.ours["rollout"]["replicas"].as_i64();
            let is_event = difference.path.starts_with("events.")
                && [&difference.argo, &difference.ours]
                    .iter()
                    .all(|side| side.is_null() || reason(text(side)) == event::SCALING_REPLICA_SET);
            let is_count = ["pods", "replicaSets.", "rollout.status."]
                .iter()
                .any(|place| difference.path.starts_with(place))
                && !difference.path.contains("conditions");
            (is_event || is_count) && blue_green["previewReplicaCount"].as_i64() > replicas
        },
    },
    Rule {
        row: "a blue-green way back with `previewReplicaCount`",
        explains: |_, checkpoint, case| {
            let blue_green = &case.rollout()["spec"]["strategy"]["blueGreen"];
            let lacks = |word: &str| {
                let completed = |side: &Value| {
                    let events = side["events"].as_array().into_iter().flatten();
                    events.filter(|event| text(event).ends_with(word)).count()
                };
                completed(&checkpoint.argo) < completed(&checkpoint.ours)
            };
            blue_green["previewReplicaCount"].is_u64() && WAYS_BACK.into_iter().any(lacks)
        },
    },
    Rule {
        row: "number of passes",
        explains: |difference, checkpoint, _| {
            let scaling = [event::SCALING_REPLICA_SET];
            let is_scaling = |side: &Value| reason(text(side)) == event::SCALING_REPLICA_SET;
            let is_about_sizes = match difference.path.as_str() {
                "events.missing" => is_scaling(&difference.argo),
                "events.added" => is_scaling(&difference.ours),
                _ => differ_in_order_of(difference, &scaling),
            };
            is_about_sizes && scaling::go_the_same_way(&checkpoint.argo, &checkpoint.ours)
        },
    },
    Rule {
        row: "a version that is overtaken at once",
        explains: |difference, checkpoint, _| {
            let Some(set) = sized_by_us_alone(checkpoint) else { return false };
            let is_about_it = difference.path.strip_prefix("replicaSets.").is_some_and(|rest| {
                rest.strip_prefix(set).is_some_and(|field| field.starts_with('.'))
            });
            is_about_it
                || ["pods", "rollout.status.replicas"].contains(&difference.path.as_str())
                || difference.path == "events.added" && is_resize_of(&difference.ours, set)
        },
    },
    Rule {
        row: "`RolloutAddedToInformer`",
        explains: |difference, _, _| differ_in_order_of(difference, &[event::ROLLOUT_ADDED]),
    },
    Rule {
        row: "Services after an abort",
        explains: |difference, checkpoint, case| {
            let places = ["settled", "services.", "splits.", "rollout.status.conditions.Paused"];
            checkpoint.argo["settled"] == "still changes"
                && was_done(case, checkpoint, "abort")
                && places.iter().any(|place| difference.path.starts_with(place))
        },
    },
    Rule {
        row: "a pause after a blue-green switch",
        explains: |difference, checkpoint, case| {
            let status = &checkpoint.ours["rollout"]["status"];
            let is_paused = text(&status["conditions"]["Progressing"]["is"]).ends_with(PAUSED);
            let is_switched = status["blueGreen"]["activeSelector"] == status["currentPodHash"];
            let places = ["settled", "rollout.status.conditions.Progressing."];
            case.rollout()["spec"]["strategy"]["blueGreen"].is_object()
                && checkpoint.argo["settled"] == "still changes"
                && is_paused
                && is_switched
                && places.iter().any(|place| difference.path.starts_with(place))
        },
    },
    Rule {
        row: "abort beside a full promotion",
        explains: |_, checkpoint, case| {
            let is_aborted = |side: &Value| side["rollout"]["status"]["abort"] == true;
            // The promotion was not over yet, or still is not.
            let is_open = checkpoint.argo["rollout"]["status"]["promoteFull"] == true;
            let is_beside =
                |step: &Step| step.r#do == "abort" && (is_open || step.after != After::Settled);
            let mut done = case.steps.iter().take(checkpoint.actions);
            done.any(|step| step.r#do == "promoteFull")
                && done.any(is_beside)
                && is_aborted(&checkpoint.ours)
                && !is_aborted(&checkpoint.argo)
        },
    },
    Rule {
        row: "resume at a bad moment",
        explains: |_, checkpoint, case| {
            let is_completed = |side: &Value| {
                let condition = &side["rollout"]["status"]["conditions"]["Completed"]["is"];
                text(condition).starts_with("True")
            };
            let index = |side: &Value| side["rollout"]["status"]["currentStepIndex"].as_u64();
            let (argo, ours) = (&checkpoint.argo, &checkpoint.ours);
            let is_further = is_completed(ours) && !is_completed(argo) || index(argo) < index(ours);
            has_bad_promote(case, checkpoint) && is_further
        },
    },
    Rule {
        row: "old ReplicaSets without replicas",
        explains: |difference, checkpoint, _| {
            let has_pods = |side: &Value| {
                let sets = side["replicaSets"].as_object().into_iter().flatten();
                sets.into_iter().any(|(_, set)| set["replicas"].as_u64() > Some(0))
            };
            let is_event = difference.path.starts_with("events.");
            checkpoint.ours["rollout"]["replicas"] == 0
                && has_pods(&checkpoint.argo)
                && !has_pods(&checkpoint.ours)
                && !is_event
        },
    },
    Rule {
        row: "the Event of a blue-green way back",
        explains: |difference, _, case| {
            let is_completed = |side: &Value, how: &str| {
                reason(text(side)) == condition_reason::ROLLOUT_COMPLETED
                    && text(side).ends_with(how)
            };
            case.rollout()["spec"]["strategy"]["blueGreen"].is_object()
                && match difference.path.as_str() {
                    "events.missing" => is_completed(&difference.argo, COMPLETED),
                    "events.added" => is_completed(&difference.ours, WAYS_BACK[0]),
                    _ => false,
                }
        },
    },
];

/// An older ReplicaSet that waits for the end of its delay in ours, and that Argo Rollouts has created
/// and never sized.
fn sized_by_us_alone(checkpoint: &Checkpoint) -> Option<&str> {
    let events = |side: &Value| side["events"].as_array().cloned().unwrap_or_default();
    let sets = checkpoint.ours["replicaSets"].as_object()?;
    let waiting = sets.iter().find(|(name, set)| {
        let theirs = &checkpoint.argo["replicaSets"][name.as_str()];
        set["annotations"][annotation::SCALE_DOWN_DEADLINE].is_string()
            && set["replicas"].as_u64() > Some(0)
            && theirs["replicas"] == 0
            && !events(&checkpoint.argo).iter().any(|event| is_resize_of(event, name))
    });
    waiting.map(|(name, _)| name.as_str())
}

fn is_resize_of(event: &Value, set: &str) -> bool {
    reason(text(event)) == event::SCALING_REPLICA_SET && text(event).contains(&format!(" {set} "))
}

/// Has somebody promoted in haste, or in a pause by hand?
fn has_bad_promote(case: &Case, checkpoint: &Checkpoint) -> bool {
    let mut is_paused = false;
    case.steps.iter().take(checkpoint.actions).any(|step| {
        let is_promote = step.r#do == "promote";
        let is_bad = is_promote && (is_paused || step.after != After::Settled);
        is_paused = step.r#do == "pause" || is_paused && !is_promote && step.r#do != "resume";
        is_bad
    })
}

/// Has somebody done this before the checkpoint?
fn was_done(case: &Case, checkpoint: &Checkpoint, what: &str) -> bool {
    case.steps.iter().take(checkpoint.actions).any(|step| step.r#do == what)
}

/// How the Progressing condition ends of a rollout that waits.
const PAUSED: &str = " RolloutPaused";

/// How the Event of an update ends that went its whole way.
const COMPLETED: &str = ": Completed blue-green update";

/// How the Event of a completed way back ends.
const WAYS_BACK: [&str; 2] = [": Fast rollback", ": Rollback within window"];

/// Part of an Event of Argo Rollouts that reports nothing.
const MANAGED_ROUTES: &str = "managed routes";

/// Reasons of Events about weights.
const TRAFFIC: [&str; 4] =
    [event::TRAFFIC_WEIGHT_UPDATED, "CreatingCanaryIngress", "PatchingCanaryIngress", ALB];

/// Reason of the Event about an Ingress of an AWS load balancer.
const ALB: &str = "PatchingALBIngress";

/// How the Event of a full promotion ends.
const FULL: &str = ": Full promotion requested";

/// The ReplicaSet and the annotation that a difference is about.
fn annotated(difference: &Difference) -> Option<(&str, &str)> {
    let rest = difference.path.strip_prefix("replicaSets.")?;
    rest.split_once(".annotations.")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The reason of an Event as it is observed: `Normal ScalingReplicaSet: Scaled up …`.
fn reason(event: &str) -> &str {
    let rest = event.split_once(' ').map_or("", |(_, rest)| rest);
    rest.split_once(':').map_or("", |(reason, _)| reason)
}

/// Do two orders of Events differ in nothing but where these come?
fn differ_in_order_of(difference: &Difference, reasons: &[&str]) -> bool {
    let others = |side: &Value| -> Vec<Value> {
        let all = side.as_array().into_iter().flatten();
        all.filter(|event| !reasons.contains(&reason(text(event)))).cloned().collect()
    };
    difference.path == "events.order" && others(&difference.argo) == others(&difference.ours)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_rule_names_a_row_of_the_documents() {
        let page = crate::repository().join("docs/differences.md");
        let page = std::fs::read_to_string(page).unwrap();
        for Rule { row, .. } in RULES {
            assert!(page.contains(&format!("\n| {row} | ")), "no row {row}");
        }
    }

    fn side(replicas: u64, annotations: Value, events: &[&str]) -> Value {
        json!({
            "rollout": { "status": { "currentPodHash": "<app:v1>" } },
            "replicaSets": { "NAME-<app:v2>": {
                "replicas": replicas, "annotations": annotations,
            } },
            "events": events,
        })
    }

    const PROMOTED: &str = "Normal RolloutCompleted: Rollout completed: Full promotion requested";
    const RESUMED: &str = "Normal RolloutResumed: Rollout is resumed";

    /// The rows that explain what differs; `?` where none does.
    fn rows(argo: Value, ours: Value) -> Vec<&'static str> {
        let rollout = json!({ "kind": "Rollout", "metadata": { "name": "case1" } });
        let promote = Step::settled(json!("promote"));
        let case = Case { seed: 1, objects: vec![rollout], steps: vec![promote] };
        let compared = Checkpoint { actions: 1, argo, ours }.compare(&case);
        let known = compared.known.iter().map(|(_, rule)| rule.row);
        known.chain(compared.unknown.iter().map(|_| "?")).collect()
    }

    #[test]
    fn a_preview_beyond_all_replicas_explains_its_pods_and_no_condition() {
        let blue_green = json!({ "blueGreen": { "previewReplicaCount": 2 } });
        let rollout = json!({ "kind": "Rollout", "metadata": { "name": "case1" },
            "spec": { "strategy": blue_green } });
        let case = Case { seed: 1, objects: vec![rollout], steps: Vec::new() };
        let side = |replicas: u64, count: u64, reason: &str| {
            json!({
                "rollout": { "replicas": replicas, "status": {
                    "replicas": count + 1, "conditions": { "Progressing": reason },
                } },
                "replicaSets": { "NAME-<app:v2>": { "replicas": count } },
            })
        };
        let unknown = |replicas: u64, reason: &str| {
            let (argo, ours) = (side(replicas, 2, "a"), side(replicas, 1, reason));
            Checkpoint { actions: 1, argo, ours }.compare(&case).unknown.len()
        };
        assert_eq!((unknown(1, "a"), unknown(1, "b"), unknown(2, "a")), (0, 1, 2));
    }

    /// The rows that explain a case of these actions, the second of them in haste or not.
    fn rows_after(
        actions: [&str; 2],
        is_hasty: bool,
        argo: Value,
        ours: Value,
    ) -> Vec<&'static str> {
        let rollout = json!({ "kind": "Rollout", "metadata": { "name": "case1" } });
        let after = if is_hasty { After::Milliseconds(500) } else { After::Settled };
        let steps = vec![Step::settled(json!(actions[0])), Step { after, r#do: json!(actions[1]) }];
        let case = Case { seed: 1, objects: vec![rollout], steps };
        let compared = Checkpoint { actions: 2, argo, ours }.compare(&case);
        let known = compared.known.iter().map(|(_, rule)| rule.row);
        known.chain(compared.unknown.iter().map(|_| "?")).collect()
    }

    #[test]
    fn what_people_did_is_part_of_a_rule() {
        let aborted = |is: bool| json!({ "rollout": { "status": { "abort": is } } });
        let completed = |is: &str| {
            let conditions = json!({ "Completed": { "is": is } });
            json!({ "rollout": { "status": { "conditions": conditions } } })
        };
        let moving = |settled: &str, hash: &str| json!({ "settled": settled, "services": { "canary": hash } });
        let sized = |replicas: u64| json!({ "rollout": { "replicas": 0 }, "replicaSets": { "a": { "replicas": replicas } } });
        let flaps = || (moving("still changes", "v2"), moving("settled", "v1"));
        let promotes = || (completed("False x"), completed("True x"));
        let rows = |actions, is_hasty, (argo, ours)| rows_after(actions, is_hasty, argo, ours);
        let both = || (aborted(false), aborted(true));
        assert_eq!(rows(["promote", "abort"], true, flaps()), ["Services after an abort"; 2]);
        assert_eq!(rows(["promote", "retry"], true, flaps()), ["?"; 2]);
        assert_eq!(rows(["promoteFull", "abort"], true, both()), ["abort beside a full promotion"]);
        assert_eq!(rows(["promoteFull", "abort"], false, both()), ["?"]);
        let mut open = both();
        open.0["rollout"]["status"]["promoteFull"] = json!(true);
        open.1["rollout"]["status"]["promoteFull"] = json!(true);
        assert_eq!(rows(["promoteFull", "abort"], false, open), ["abort beside a full promotion"]);
        assert_eq!(rows(["abort", "promoteFull"], true, both()), ["?"]);
        assert_eq!(rows(["retry", "promote"], true, promotes()), ["resume at a bad moment"]);
        assert_eq!(rows(["retry", "promote"], false, promotes()), ["?"]);
        assert_eq!(rows(["pause", "promote"], false, promotes()), ["resume at a bad moment"]);
        assert_eq!(rows(["resume", "promote"], false, promotes()), ["?"]);
        let (none, one) = (sized(0), sized(1));
        let kept = (one.clone(), none.clone());
        assert_eq!(rows(["retry", "pause"], false, kept), ["old ReplicaSets without replicas"]);
        assert_eq!(rows(["retry", "pause"], false, (none, one)), ["?"], "ours keeps them");
    }

    #[test]
    fn a_pause_after_a_blue_green_switch_lets_argo_write_without_end() {
        let blue_green = json!({ "blueGreen": {} });
        let rollout = json!({ "kind": "Rollout", "metadata": { "name": "case1" },
            "spec": { "strategy": blue_green } });
        let case = Case { seed: 1, objects: vec![rollout], steps: Vec::new() };
        let side = |settled: &str, reason: &str| {
            json!({ "settled": settled, "rollout": { "status": {
                "currentPodHash": "<app:v2>", "blueGreen": { "activeSelector": "<app:v2>" },
                "conditions": { "Progressing": { "is": reason } },
            } } })
        };
        let unknown = |settled: &str| {
            let argo = side(settled, "True NewReplicaSetAvailable");
            let ours = side("settled", "Unknown RolloutPaused");
            Checkpoint { actions: 1, argo, ours }.compare(&case).unknown.len()
        };
        assert_eq!((unknown("still changes"), unknown("settled")), (0, 1));
    }

    #[test]
    fn a_version_that_argo_never_sized_has_pods_of_ours_until_its_delay_ends() {
        let ours = || {
            let scaled = "Normal ScalingReplicaSet: Scaled up ReplicaSet NAME-<app:v2> (revision 1) from 0 to 2";
            side(2, json!({ annotation::SCALE_DOWN_DEADLINE: "time" }), &[scaled])
        };
        let row = "a version that is overtaken at once";
        assert_eq!(rows(side(0, json!({}), &[]), ours()), [row; 3]);
        let sized = "Normal ScalingReplicaSet: Scaled down ReplicaSet NAME-<app:v2> (revision 1) from 2 to 0";
        assert_eq!(rows(side(0, json!({}), &[sized]), ours()), ["?"; 4], "Argo has sized it");
        assert_eq!(rows(side(1, json!({}), &[]), ours()), ["?"; 3], "Argo keeps one");
    }

    #[test]
    fn a_rule_explains_what_its_row_says_and_no_more() {
        let deadline = || json!({ annotation::SCALE_DOWN_DEADLINE: "time" });
        let replicas = |count: &str| json!({ annotation::DESIRED_REPLICAS: count });
        let created = "Normal NewReplicaSetCreated: Created ReplicaSet NAME-<app:v2>";
        let down = |from, to| {
            format!(
                "Normal ScalingReplicaSet: Scaled down ReplicaSet a (revision 1) from {from} to {to}"
            )
        };
        let (slow, fast) = ([down(3, 2), down(2, 1)], [down(3, 1)]);
        let events = |list: &[String]| {
            side(1, json!({}), &list.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let cases = [
            (
                "a deadline without pods",
                side(0, deadline(), &[]),
                side(0, json!({}), &[]),
                vec!["deadline of an aborted revision"],
            ),
            ("a deadline with pods", side(1, deadline(), &[]), side(1, json!({}), &[]), vec!["?"]),
            ("a deadline of ours", side(0, json!({}), &[]), side(0, deadline(), &[]), vec!["?"]),
            (
                "an old note",
                side(1, replicas("1"), &[]),
                side(1, replicas("2"), &[]),
                vec!["`desired-replicas` of old ReplicaSets"],
            ),
            (
                "an Event that Argo lost",
                side(1, json!({}), &[]),
                side(1, json!({}), &[created]),
                vec!["Events of a pass that fails"],
            ),
            (
                "an Event that we lost",
                side(1, json!({}), &[created]),
                side(1, json!({}), &[]),
                vec!["?"],
            ),
            (
                "a promotion after its resize was observed",
                side(1, json!({}), &[PROMOTED, RESUMED]),
                side(1, json!({}), &[RESUMED, PROMOTED]),
                vec!["Events of a full promotion"],
            ),
            (
                "another order without one",
                side(1, json!({}), &["Normal RolloutCompleted: x: y", RESUMED]),
                side(1, json!({}), &[RESUMED, "Normal RolloutCompleted: x: y"]),
                vec!["?"],
            ),
            ("fewer resizes", events(&slow), events(&fast), vec!["number of passes"; 3]),
            ("another size at the end", events(&slow), events(&[down(3, 0)]), vec!["?"; 3]),
        ];
        for (what, argo, ours, expected) in cases {
            assert_eq!(rows(argo, ours), expected, "{what}");
        }
    }
}
