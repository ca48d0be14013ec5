//! Random cases: a Rollout with what it refers to, and a sequence of people's actions. The same seed
//! gives the same case.
//!
//! Whatever lasts in a case lasts either for at most two seconds or for longer than any case, so that
//! a side in which nothing changes for a moment is settled; a progress deadline alone lasts longer, and
//! is waited for ([`Case::quiet`]). Nothing is measured: a person says how a run ends.

mod objects;
mod strategy;

use gradus_api::names::{self, analysis_phase, run_type};
use gradus_lab::faults::Chance;
use serde_json::{Value, json};

use super::{
    case::{After, Case, Step},
    stage::{BAD, GOOD},
};
use objects::{check, deployment, ingress, object, service, template};
use strategy::{basic, blue_green, canary_steps, routed};

/// Ends within a checkpoint.
const SHORT_SECONDS: [u64; 2] = [1, 2];

/// Never ends within a case.
const LONG_SECONDS: u64 = 900;

/// A progress deadline that good pods keep on a busy machine.
const DEADLINE_SECONDS: u64 = 6;

/// People who race act within this time of each other.
const RACE_MILLISECONDS: u64 = 1_500;

/// Most actions of a case: each costs several seconds.
const ACTIONS: u64 = 5;

/// Who splits the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Basic,
    Nginx,
    Alb,
    BlueGreen,
}

/// What people can act on.
struct Ground<'a> {
    name: &'a str,
    kind: Kind,
    has_workload: bool,
    /// Purposes of the runs that may be there.
    runs: Vec<&'static str>,
}

/// The case of a seed, under the name `case<number>`.
pub fn case(seed: u64, number: u64) -> Case {
    let mut chance = Chance::new(seed);
    let name = format!("case{number}");
    let kinds =
        [Kind::Basic, Kind::Nginx, Kind::Nginx, Kind::Alb, Kind::BlueGreen, Kind::BlueGreen];
    let kind = chance.pick(&kinds).unwrap_or(Kind::Basic);
    let has_workload = chance.percent(12);
    let strategy = match kind {
        Kind::Basic => json!({ "canary": basic(&mut chance, &name) }),
        Kind::Nginx | Kind::Alb => json!({ "canary": routed(&mut chance, &name, kind) }),
        Kind::BlueGreen => json!({ "blueGreen": blue_green(&mut chance, &name) }),
    };
    let mut objects: Vec<Value> = roles(&strategy).map(|role| service(&name, role)).collect();
    if matches!(kind, Kind::Nginx | Kind::Alb) {
        objects.push(ingress(&name, kind));
    }
    // Steps that come later may have an analysis too.
    objects.push(check(&name));
    if has_workload {
        objects.push(deployment(&name));
    }
    let runs = runs(&strategy);
    objects.push(rollout(&mut chance, &name, strategy, has_workload));
    let ground = Ground { name: &name, kind, has_workload, runs };
    let steps = steps(&mut chance, &ground);
    Case { seed, objects, steps }
}

/// The Services that a strategy names, by what their names end with.
fn roles(strategy: &Value) -> impl Iterator<Item = &'static str> {
    let text = strategy.to_string();
    let named = move |role: &&str| text.contains(&format!("-{role}\""));
    ["stable", "canary", "active", "preview"].into_iter().filter(named)
}

/// The purposes of the runs that a strategy asks for.
fn runs(strategy: &Value) -> Vec<&'static str> {
    let (canary, blue_green) = (&strategy["canary"], &strategy["blueGreen"]);
    let mut steps = canary["steps"].as_array().into_iter().flatten();
    let all = [
        (steps.any(|step| step["analysis"].is_object()), run_type::STEP),
        (canary["analysis"].is_object(), run_type::BACKGROUND),
        (blue_green["prePromotionAnalysis"].is_object(), run_type::PRE_PROMOTION),
        (blue_green["postPromotionAnalysis"].is_object(), run_type::POST_PROMOTION),
    ];
    all.into_iter().filter(|(is_there, _)| *is_there).map(|(_, purpose)| purpose).collect()
}

fn rollout(chance: &mut Chance, name: &str, strategy: Value, has_workload: bool) -> Value {
    let mut spec = json!({
        "replicas": 1 + chance.below(5),
        "selector": { "matchLabels": { "app": name } },
        "strategy": strategy,
    });
    if has_workload {
        spec["workloadRef"] = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "name": format!("{name}-workload"),
        });
        if let Some(word) = chance.pick(&[None, Some("never"), Some("onsuccess")]).flatten() {
            spec["workloadRef"]["scaleDown"] = json!(word);
        }
    } else {
        spec["template"] = template(name);
    }
    if chance.percent(20) {
        spec["rollbackWindow"] = json!({ "revisions": 1 + chance.below(3) });
    }
    if chance.percent(15) {
        spec["revisionHistoryLimit"] = json!(chance.below(3));
    }
    if chance.percent(15) {
        spec["minReadySeconds"] = json!(1);
    }
    if chance.percent(10) {
        spec["progressDeadlineSeconds"] = json!(DEADLINE_SECONDS);
        spec["progressDeadlineAbort"] = json!(chance.percent(50));
    }
    object(names::API_VERSION, names::kind::ROLLOUT, name, spec)
}

fn steps(chance: &mut Chance, ground: &Ground<'_>) -> Vec<Step> {
    let is_racing = chance.percent(33);
    let mut steps = vec![Step::settled(image(ground, &format!("{GOOD}2")))];
    for _ in 0..1 + chance.below(ACTIONS) {
        let action = action(chance, ground);
        let after = match is_racing && chance.percent(60) {
            true => After::Milliseconds(chance.below(RACE_MILLISECONDS)),
            false => After::Settled,
        };
        steps.push(Step { after, r#do: action });
    }
    steps
}

fn action(chance: &mut Chance, ground: &Ground<'_>) -> Value {
    if !ground.runs.is_empty() && chance.percent(35) {
        return verdict(chance, ground);
    }
    match chance.below(100) {
        0..=25 => image(ground, &format!("{GOOD}{}", 1 + chance.below(3))),
        26..=29 => image(ground, BAD),
        30..=50 => json!("promote"),
        51..=58 => json!("promoteFull"),
        59..=71 => json!("abort"),
        72..=78 => json!("retry"),
        79..=82 => json!("pause"),
        83..=86 => json!("resume"),
        87..=89 => edit(chance, ground),
        _ => json!({ "scale": chance.below(6) }),
    }
}

/// A person says how a run ends; nothing where none of that purpose is there.
fn verdict(chance: &mut Chance, ground: &Ground<'_>) -> Value {
    let phases = [
        analysis_phase::SUCCESSFUL,
        analysis_phase::SUCCESSFUL,
        analysis_phase::SUCCESSFUL,
        analysis_phase::FAILED,
        analysis_phase::ERROR,
        analysis_phase::INCONCLUSIVE,
    ];
    json!({ "run": { "type": chance.pick(&ground.runs), "phase": chance.pick(&phases) } })
}

/// An edit of the Rollout that is no new template: other steps, or a note.
fn edit(chance: &mut Chance, ground: &Ground<'_>) -> Value {
    let mut rollout = json!({
        "apiVersion": names::API_VERSION, "kind": names::kind::ROLLOUT,
        "metadata": { "name": ground.name },
    });
    if ground.kind == Kind::BlueGreen || chance.percent(30) {
        rollout["metadata"]["annotations"] = json!({ "example.com/note": "n" });
    } else {
        let steps = canary_steps(chance, ground.name, ground.kind);
        rollout["spec"] = json!({ "strategy": { "canary": { "steps": steps } } });
    }
    json!({ "patch": rollout })
}

/// A new image of the Rollout, or of the Deployment that it refers to.
fn image(ground: &Ground<'_>, image: &str) -> Value {
    if !ground.has_workload {
        return json!({ "setImage": image });
    }
    let containers = json!([{ "name": "app", "image": image }]);
    json!({ "patch": {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": format!("{}-workload", ground.name) },
        "spec": { "template": { "spec": { "containers": containers } } },
    } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_case_and_another_seed_another() {
        assert_eq!(case(7, 1), case(7, 1));
        assert_ne!(case(7, 1), case(8, 1));
        assert_eq!(case(7, 1).renamed("case2"), case(7, 2));
    }

    #[test]
    fn a_third_of_the_cases_races_and_every_action_can_be_done() {
        let cases: Vec<Case> = (0..1_000).map(|seed| case(seed, seed)).collect();
        let racing = cases.iter().filter(|case| case.is_racing()).count();
        assert!((200..400).contains(&racing), "{racing}");
        for case in &cases {
            assert_eq!(case.steps[0].after, After::Settled, "seed {}", case.seed);
            for step in &case.steps {
                assert!(step.action().is_ok(), "seed {}: {}", case.seed, step.r#do);
            }
        }
    }

    #[test]
    fn every_area_is_among_two_hundred_cases() {
        let texts: Vec<String> = (0..200).map(|seed| json!(case(seed, seed)).to_string()).collect();
        let areas = [
            "nginx",
            "\"alb\"",
            "blueGreen",
            "workloadRef",
            "rollbackWindow",
            "canaryMetadata",
            "activeMetadata",
            "replicaProgressThreshold",
            "previewReplicaCount",
            "dynamicStableScale",
            "setCanaryScale",
            "\"abort\"",
            "promoteFull",
            "\"pause\":{}",
            "\"analysis\"",
            "prePromotionAnalysis",
            "postPromotionAnalysis",
            "\"experiment\"",
            "setHeaderRoute",
            "pingPong",
            "minPodsPerReplicaSet",
            "maxTrafficWeight",
            "antiAffinity",
            "progressDeadlineSeconds",
            "Inconclusive",
        ];
        for area in areas {
            assert!(texts.iter().any(|text| text.contains(area)), "no case has {area}");
        }
    }
}
