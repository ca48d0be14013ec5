//! How a case is played on both sides, and what is seen at its checkpoints.

use std::time::{Duration, Instant};

use gradus_lab::{person::Action, sight::Sight};
use jiff::Timestamp;
use kube::{Api, api::DynamicObject};
use serde_json::{Value, json};

use super::{
    case::Case,
    compare::{Checkpoint, Compared, Difference},
    observe::observe,
    stage::{Side, Stage},
};
use crate::{
    Failure,
    real::{apply, perform, resource},
};

/// How long sides that differ have nothing more to do before that counts: a busy machine is slow.
const QUIET_THOUGH_UNEQUAL: Duration = Duration::from_secs(9);

/// How long an Event that one side alone has not posted is waited for: the library that Argo Rollouts
/// posts them with takes its time while many cases are played.
const QUIET_WITHOUT_EVENTS: Duration = Duration::from_secs(40);

/// Who goes on writing for so long does not settle.
const SETTLES_WITHIN: Duration = Duration::from_secs(75);

/// The field that says of either side whether it went on writing, where one did for too long.
const SETTLED: &str = "settled";
const STILL_CHANGES: &str = "still changes";

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How a case went.
#[derive(Clone, Debug)]
pub struct Played {
    /// Up to the first that has a mismatch.
    pub checkpoints: Vec<Checkpoint>,
    /// Rows of the differences that rules explained.
    pub rows: Vec<&'static str>,
    /// What nothing explains, at the last checkpoint.
    pub mismatch: Vec<Difference>,
    /// Did somebody act before both were settled, when one was further than the other? Then each was
    /// told something else, and both may be right.
    pub is_apart: bool,
    pub seconds: u64,
}

impl Played {
    /// Is this the mismatch of another play: does it differ where that one differs first? Events
    /// follow from what is done, so they count where nothing else differs.
    pub fn shows(&self, other: &Self) -> bool {
        let is_event = |difference: &&Difference| difference.path.starts_with("events.");
        let first = other.mismatch.iter().find(|one| !is_event(one)).or(other.mismatch.first());
        first.is_some_and(|first| self.mismatch.iter().any(|one| one.path == first.path))
    }
}

/// Plays a case to its end or to its first mismatch, and removes what it made.
pub async fn play(stage: &Stage, case: &Case) -> Result<Played, Failure> {
    let began = Instant::now();
    let result = steps(stage, case).await;
    remove(stage, case).await?;
    let mut played = result?;
    played.seconds = began.elapsed().as_secs();
    Ok(played)
}

async fn steps(stage: &Stage, case: &Case) -> Result<Played, Failure> {
    for object in &case.objects {
        for side in [&stage.argo, &stage.ours] {
            apply(&stage.client, side.namespace, object).await?;
        }
    }
    let mut played = Played {
        checkpoints: Vec::new(),
        rows: Vec::new(),
        mismatch: Vec::new(),
        is_apart: false,
        seconds: 0,
    };
    for (at, step) in case.steps.iter().enumerate() {
        match step.delay() {
            Some(delay) => {
                tokio::time::sleep(delay).await;
                let [argo, ours] = [&stage.argo, &stage.ours].map(|side| seen(side, case));
                played.is_apart |= position(&argo) != position(&ours);
            }
            None if !played.goes_on(stage, case, at).await => return Ok(played),
            None => {}
        }
        let action = step.action()?;
        futures::future::try_join(
            act(stage, &stage.argo, case, &action),
            act(stage, &stage.ours, case, &action),
        )
        .await?;
    }
    played.goes_on(stage, case, case.steps.len()).await;
    Ok(played)
}

impl Played {
    /// Waits for both sides, compares them and notes what came of it. False after a mismatch.
    async fn goes_on(&mut self, stage: &Stage, case: &Case, actions: usize) -> bool {
        let (checkpoint, compared) = settled(stage, case, actions).await;
        self.checkpoints.push(checkpoint);
        self.rows.extend(compared.known.iter().map(|(_, rule)| rule.row));
        self.mismatch = compared.unknown;
        self.mismatch.is_empty()
    }
}

/// What a person does to one side, as that side stands.
async fn act(stage: &Stage, side: &Side, case: &Case, action: &Action) -> Result<(), Failure> {
    let rollout = case.rollout();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resource = resource(&text(&rollout["apiVersion"]), &text(&rollout["kind"]));
    let rollouts: Api<DynamicObject> =
        Api::namespaced_with(stage.client.clone(), side.namespace, &resource);
    let seen = serde_json::to_value(rollouts.get(case.name()).await?)?;
    for write in action.writes(case.name(), &Sight::of(&seen), Timestamp::now()) {
        perform(&stage.client, side.namespace, &write).await?;
    }
    Ok(())
}

/// Waits until both sides are settled and equal, or will not become so.
async fn settled(stage: &Stage, case: &Case, actions: usize) -> (Checkpoint, Compared) {
    let began = Instant::now();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let is_late = began.elapsed() > SETTLES_WITHIN;
        let sides = [&stage.argo, &stage.ours];
        let quiet = sides.map(|side| side.mirror.quiet_for(case.name())).into_iter().min();
        let quiet = quiet.unwrap_or_default().min(began.elapsed());
        let is_observed = sides.iter().all(|side| is_observed(&side.mirror.rollout(case.name())));
        if !is_late && (quiet < case.quiet() || !is_observed) {
            continue;
        }
        let [mut argo, mut ours] = sides.map(|side| seen(side, case));
        if is_late {
            (argo[SETTLED], ours[SETTLED]) = (word(&stage.argo, case), word(&stage.ours, case));
        }
        let checkpoint = Checkpoint { actions, argo, ours };
        let mut compared = checkpoint.compare(case);
        // Where one side alone goes on, that is a difference like any other.
        if is_late && sides.iter().all(|side| word(side, case) == STILL_CHANGES) {
            compared.unknown.push(Difference {
                path: SETTLED.to_owned(),
                argo: checkpoint.argo[SETTLED].clone(),
                ours: checkpoint.ours[SETTLED].clone(),
            });
        }
        let lacks_events = compared.unknown.iter().all(|one| one.path == "events.added");
        let enough = if lacks_events { QUIET_WITHOUT_EVENTS } else { QUIET_THOUGH_UNEQUAL };
        let enough = enough.max(case.quiet());
        if is_late || compared.unknown.is_empty() || quiet >= enough {
            return (checkpoint, compared);
        }
    }
}

fn seen(side: &Side, case: &Case) -> Value {
    observe(&side.mirror.case(case.name()), case.name(), side.namespace)
}

/// How far an update has come: what a person who acts finds.
fn position(seen: &Value) -> Value {
    let status = &seen["rollout"]["status"];
    let sets = seen["replicaSets"].as_object().into_iter().flatten();
    let sizes: Vec<Value> = sets.map(|(name, set)| json!([name, set["replicas"]])).collect();
    let pauses = status["pauseConditions"].as_array().into_iter().flatten();
    json!([
        sizes,
        pauses.map(|pause| pause["reason"].clone()).collect::<Vec<Value>>(),
        status["phase"],
        status["currentPodHash"],
        status["stableRS"],
        status["currentStepIndex"],
    ])
}

fn is_observed(rollout: &Value) -> bool {
    !rollout.is_null() && Sight::of(rollout).is_observed()
}

/// Did this side go on writing?
fn word(side: &Side, case: &Case) -> Value {
    match side.mirror.quiet_for(case.name()) < case.quiet() {
        true => json!(STILL_CHANGES),
        false => json!("settled"),
    }
}

/// Deletes the objects of a case on both sides; what they own goes with them.
async fn remove(stage: &Stage, case: &Case) -> Result<(), Failure> {
    for side in [&stage.argo, &stage.ours] {
        for object in case.objects.iter().rev() {
            for write in
                Action::Delete(object.clone()).writes(case.name(), &nobody(), Timestamp::now())
            {
                perform(&stage.client, side.namespace, &write).await?;
            }
        }
        side.mirror.forget(case.name());
    }
    Ok(())
}

/// A deletion needs no sight of the Rollout.
fn nobody() -> Sight<'static> {
    Sight { generation: 0, revision: None, spec: &Value::Null, status: &Value::Null }
}

#[test]
fn a_person_finds_the_same_where_only_counts_differ() {
    let seen = |size: u64, available: u64, step: u64| {
        json!({
            "rollout": { "status": { "currentStepIndex": step, "readyReplicas": available } },
            "replicaSets": { "NAME-<app:v1>": { "replicas": size, "available": available } },
        })
    };
    let cases = [
        ("counts", seen(2, 1, 1), true),
        ("a size", seen(3, 2, 1), false),
        ("a step", seen(2, 2, 2), false),
    ];
    for (what, other, expected) in cases {
        assert_eq!(position(&seen(2, 2, 1)) == position(&other), expected, "{what}");
    }
}
