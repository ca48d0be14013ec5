//! What is done to each application, and what its users must see: every request answered, and the
//! split that the Rollout says.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use futures::future::join_all;
use gradus_lab::{
    person::Action,
    sight::{Sight, When},
};
use gradus_simkube::behave::{Behaviour, Behaviours};
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
};
use serde_json::Value;
use thiserror::Error;

use super::{
    apps::{self, App, COPIED, NAME},
    front::{DataPlane, Gauge, Installed},
    load::{Load, Split, Tally},
    pods::{Arrived, Containers},
};
use crate::{
    Failure,
    controller::{Election, Settings},
    plane::User,
    plugins,
    real::{apply, create_namespace, perform, resource},
    stage::{ControllerKind, Stage, Supervised},
    summary::Summary,
};

/// What has not happened by then does not happen, on a busy machine with two cores.
const ACT_WITHIN: Duration = Duration::from_secs(120);

/// How long the data plane may take to use what it was told.
const TAKEN_WITHIN: Duration = Duration::from_secs(15);

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The requests by which it is seen whether a split has been taken at all.
const GLANCE: usize = 200;

/// By so many of a hundred a glance may be off, where lots are drawn.
const GLANCED: usize = 15;

/// How long the controller lives between two kills, while one act is under way.
const LIFE: Duration = Duration::from_millis(400);

/// How often it is killed during one act.
const KILLS: usize = 4;

#[derive(Debug, Error)]
enum ActError {
    #[error("not reached within {} s; the rollout stands at {status}", ACT_WITHIN.as_secs())]
    NotReached { status: Value },
    #[error("{lost} of {} requests were lost: {}", .answered + .lost, .reasons.join("; "))]
    Lost { answered: usize, lost: usize, reasons: Vec<String> },
    #[error("{found:?} of {of} requests, expected {expected:?}")]
    Split { found: Split, of: usize, expected: Split },
    #[error("{found:?} arrived of {of} requests, expected {expected:?} with copies")]
    Copied { found: Split, of: usize, expected: Split },
    #[error("nobody answers: {0:?}")]
    Silent(Vec<String>),
}

/// One thing that happens to an application.
struct Act {
    what: &'static str,
    does: Vec<Action>,
    /// Is the controller killed again and again meanwhile?
    kills: bool,
    /// Where the rollout stands then: phase and weight.
    until: (&'static str, Option<i64>),
    /// Of a hundred requests, so many for each version.
    split: &'static [(&'static str, usize)],
    /// The version that gets copies.
    copied_to: Option<&'static str>,
}

/// One line of the table.
struct Row {
    router: &'static str,
    what: &'static str,
    seconds: f64,
    tally: Tally,
    seen: Seen,
    error: Option<ActError>,
}

/// What was measured at the end of an act.
#[derive(Default)]
struct Seen {
    split: Split,
    of: usize,
    copies: Split,
    /// Seconds from the moment at which the Rollout says that it is there.
    lag: f64,
}

/// Starts the data plane and plays every application, all at once; those with kills last, one by one.
pub async fn all(
    stage: &Stage,
    plane: DataPlane,
    installed: &Installed,
    sample: Option<&Path>,
    names: &[String],
) -> Result<Summary, Failure> {
    let client = stage.plane.client(User::Person).await?;
    let containers = Containers::start(client.clone());
    let front = installed.start(stage).await?;
    for object in installed.shared(front.port) {
        create(&client, &object).await?;
    }
    let kubeconfig = stage.plane.kubeconfig(User::Controller);
    if let Some(sample) = sample {
        let list = plugins::configuration(&[plugins::NGINX], sample, &kubeconfig)?;
        apply(&client, "argo-rollouts", &list).await?;
    }
    let settings = Settings {
        name: "controller".to_owned(),
        kubeconfig,
        // The next after a kill need not wait for a lease.
        election: Some(Election::Off),
        ..Settings::default()
    };
    let controller = stage.controller_with(ControllerKind::Rollouts, settings).await?;
    let is_wanted = |router: &&str| names.is_empty() || names.iter().any(|name| name == router);
    let mut players = Vec::new();
    for router in plane.routers().iter().copied().filter(is_wanted) {
        let (app, gauge) = (apps::app(plane, router), plane.gauge());
        let player = Player::begin(stage, &client, front.port, app, gauge, containers.arrived());
        players.push(player.await?);
    }
    let mut rows: Vec<Row> = Vec::new();
    let played = join_all(players.iter().map(|player| player.play(acts(player.app.router)))).await;
    rows.extend(played.into_iter().flatten());
    let with_kills = |player: &&Player<'_>| !["blue-green", "mirror"].contains(&player.app.router);
    for player in players.iter().filter(with_kills) {
        rows.extend(player.play_killing(&controller, killing_acts()).await);
    }
    rows.sort_by_key(|row| plane.routers().iter().position(|router| *router == row.router));
    Ok(print(&rows))
}

fn image(version: &str) -> Action {
    Action::SetImage(apps::image(version))
}

fn acts(router: &str) -> Vec<Act> {
    let act =
        |what, does, until, split| Act { what, does, kills: false, until, split, copied_to: None };
    let first = act("first deployment", vec![], ("Healthy", None), &[("v1", 100)]);
    if router == "blue-green" {
        return vec![
            first,
            act("switch", vec![image("v2")], ("Healthy", None), &[("v2", 100)]),
            act("rollback", vec![image("v1")], ("Healthy", None), &[("v1", 100)]),
            act("switch again", vec![image("v3")], ("Healthy", None), &[("v3", 100)]),
        ];
    }
    let paused = |weight| ("Paused", Some(weight));
    let copied = |act: Act| Act { copied_to: Some("v2"), ..act };
    if router == "mirror" {
        return vec![
            first,
            copied(act("copies", vec![image("v2")], paused(0), &[("v1", 100)])),
            copied(act(
                "copies at 20",
                vec![Action::Promote],
                paused(20),
                &[("v1", 80), ("v2", 20)],
            )),
            act("60, no copies", vec![Action::Promote], paused(60), &[("v1", 40), ("v2", 60)]),
            act("promoted", vec![Action::Promote], ("Healthy", None), &[("v2", 100)]),
        ];
    }
    vec![
        first,
        act("canary at 20", vec![image("v2")], paused(20), &[("v1", 80), ("v2", 20)]),
        act("canary at 60", vec![Action::Promote], paused(60), &[("v1", 40), ("v2", 60)]),
        act("promoted", vec![Action::Promote], ("Healthy", None), &[("v2", 100)]),
        act("canary to abort", vec![image("v3")], paused(20), &[("v2", 80), ("v3", 20)]),
        act("abort", vec![Action::Abort], ("Degraded", None), &[("v2", 100)]),
        act("back after the abort", vec![image("v2")], ("Healthy", None), &[("v2", 100)]),
        act("A to B at 20", vec![image("v4")], paused(20), &[("v2", 80), ("v4", 20)]),
        act("A to B at 60", vec![Action::Promote], paused(60), &[("v2", 40), ("v4", 60)]),
        act("B to C at 20", vec![image("v5")], paused(20), &[("v2", 80), ("v5", 20)]),
        act("rollback to A", vec![image("v2")], ("Healthy", None), &[("v2", 100)]),
        act("canary to promote", vec![image("v1")], paused(20), &[("v2", 80), ("v1", 20)]),
        act("promoted in full", vec![Action::PromoteFull], ("Healthy", None), &[("v1", 100)]),
    ]
}

fn killing_acts() -> Vec<Act> {
    let act =
        |what, does, until, split| Act { what, does, kills: true, until, split, copied_to: None };
    let paused = |weight| ("Paused", Some(weight));
    vec![
        act("killed before 20", vec![image("v6")], paused(20), &[("v1", 80), ("v6", 20)]),
        act("killed before 60", vec![Action::Promote], paused(60), &[("v1", 40), ("v6", 60)]),
        act("killed at the end", vec![Action::Promote], ("Healthy", None), &[("v6", 100)]),
        act("killed before 20 again", vec![image("v7")], paused(20), &[("v6", 80), ("v7", 20)]),
        act("killed in an abort", vec![Action::Abort], ("Degraded", None), &[("v6", 100)]),
    ]
}

/// One application under load.
struct Player<'a> {
    client: &'a Client,
    app: App,
    load: Load,
    gauge: Gauge,
    arrived: Arrived,
}

impl<'a> Player<'a> {
    /// Applies it and waits for the first answer.
    async fn begin(
        stage: &Stage,
        client: &'a Client,
        port: u16,
        app: App,
        gauge: Gauge,
        arrived: &Arrived,
    ) -> Result<Self, Failure> {
        create_namespace(client, app.router).await?;
        let quick = Behaviour { start_up_seconds: 0.5, ..Behaviour::default() };
        stage.kubelet.behave(app.router, Behaviours::new(vec![quick]));
        for object in &app.objects {
            apply(client, app.router, object).await?;
        }
        let began = Instant::now();
        loop {
            // Nothing is lost while there is nothing: the load that counts begins with an answer.
            let load = Load::start(port, &app.host());
            if !load.measure(1).await.is_empty() {
                load.take();
                return Ok(Self { client, app, load, gauge, arrived: arrived.clone() });
            }
            if began.elapsed() > ACT_WITHIN {
                return Err(ActError::Silent(load.take().reasons).into());
            }
            drop(load);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn play(&self, acts: Vec<Act>) -> Vec<Row> {
        let mut rows = Vec::new();
        for act in acts {
            rows.push(self.row(act, None).await);
        }
        rows
    }

    async fn play_killing(&self, controller: &Supervised, acts: Vec<Act>) -> Vec<Row> {
        let mut rows = Vec::new();
        for act in acts {
            rows.push(self.row(act, Some(controller)).await);
        }
        rows
    }

    async fn row(&self, act: Act, controller: Option<&Supervised>) -> Row {
        let began = Instant::now();
        let result = self.act(&act, controller).await;
        let (seen, error) = match result {
            Ok(seen) => (seen, None),
            Err(error) => (Seen::default(), Some(error)),
        };
        let tally = self.load.take();
        let lost = (tally.lost > 0).then(|| ActError::Lost {
            answered: tally.answered,
            lost: tally.lost,
            reasons: tally.reasons.clone(),
        });
        let seconds = began.elapsed().as_secs_f64();
        let error = error.or(lost);
        Row { router: self.app.router, what: act.what, seconds, tally, seen, error }
    }

    async fn act(&self, act: &Act, controller: Option<&Supervised>) -> Result<Seen, ActError> {
        let mut not_before = 0;
        for action in &act.does {
            let rollout = self.rollout().await;
            for write in action.writes(NAME, &Sight::of(&rollout), Timestamp::now()) {
                match perform(self.client, self.app.router, &write).await {
                    Ok(version) => not_before = version,
                    Err(error) => return Err(ActError::Silent(vec![error.to_string()])),
                }
            }
        }
        if let Some(controller) = controller.filter(|_| act.kills) {
            for _ in 0..KILLS {
                controller.restart();
                tokio::time::sleep(LIFE).await;
            }
        }
        self.reach(act, not_before).await?;
        self.measured(act).await
    }

    async fn rollout(&self) -> Value {
        let resource = resource(gradus_api::names::API_VERSION, gradus_api::names::kind::ROLLOUT);
        let rollouts: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), self.app.router, &resource);
        let found = rollouts.get(NAME).await.ok();
        serde_json::to_value(found).unwrap_or_default()
    }

    /// Waits until the Rollout stands where the act ends.
    async fn reach(&self, act: &Act, not_before: u64) -> Result<(), ActError> {
        let (phase, weight) = act.until;
        let when = When { phase: Some(phase.to_owned()), weight, ..When::default() };
        let began = Instant::now();
        loop {
            let rollout = self.rollout().await;
            let version = rollout["metadata"]["resourceVersion"].as_str();
            let version: u64 = version.and_then(|text| text.parse().ok()).unwrap_or(0);
            // The controller has answered what was written.
            if version > not_before && when.holds(&Sight::of(&rollout)) {
                return Ok(());
            }
            if began.elapsed() > ACT_WITHIN {
                return Err(ActError::NotReached { status: rollout["status"].clone() });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What the users see, once the data plane has taken what it was told.
    async fn measured(&self, act: &Act) -> Result<Seen, ActError> {
        let Gauge { requests, tolerance, in_a_row, misses } = self.gauge;
        let (began, mut right, mut wrong) = (Instant::now(), 0, 0);
        let mut lag = None;
        loop {
            if tolerance > 0 && lag.is_none() {
                // Lots are drawn: whether the old split is still in force is seen at a glance.
                let glance = self.load.measure(GLANCE).await;
                if !is_near(&glance, act.split, GLANCE, GLANCED) && began.elapsed() < TAKEN_WITHIN {
                    continue;
                }
            }
            let seen_after = began.elapsed().as_secs_f64();
            let before = self.arrived.of(&self.app.host());
            let split = self.load.measure(requests).await;
            if is_near(&split, act.split, requests, tolerance) {
                let lag = *lag.get_or_insert(seen_after);
                right += 1;
                if right == in_a_row {
                    let copies = self.copied(act, &before).await?;
                    return Ok(Seen { split, of: requests, copies, lag });
                }
                continue;
            }
            (right, wrong, lag) = (0, wrong + 1, None);
            if began.elapsed() > TAKEN_WITHIN || wrong > misses {
                let expected = expected(act.split, requests);
                return Err(ActError::Split { found: split, of: requests, expected });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The copies that came beside a measurement. The constant load is copied, too, so that shares of all
    /// that arrived are compared. Copies may arrive later than the answers.
    async fn copied(&self, act: &Act, before: &Split) -> Result<Split, ActError> {
        let Some(to) = act.copied_to else { return Ok(Split::default()) };
        let (tolerance, began) = (self.gauge.tolerance, Instant::now());
        loop {
            let mut arrived = self.arrived.of(&self.app.host());
            for (version, count) in &mut arrived {
                *count = count.saturating_sub(before.get(version).copied().unwrap_or(0));
            }
            let Copied { asked, wanted } = Copied::of(&arrived, act.split, to);
            if asked > 0 && is_near(&arrived, &wanted, asked, tolerance) {
                let answered = act.split.iter().find(|(version, _)| *version == to);
                let answered = answered.map_or(0, |(_, of_100)| of_100 * asked / 100);
                let copies = arrived[to].saturating_sub(answered);
                return Ok(Split::from([(to.to_owned(), copies * self.gauge.requests / asked)]));
            }
            if began.elapsed() > TAKEN_WITHIN {
                let expected = expected(&wanted, asked);
                return Err(ActError::Copied { found: arrived, of: asked, expected });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// What should arrive where each request is answered once, and some are copied.
struct Copied {
    /// How many requests were made, judged by what arrived.
    asked: usize,
    /// Of a hundred of them, so many should arrive at each version.
    wanted: Vec<(&'static str, usize)>,
}

impl Copied {
    fn of(arrived: &Split, split: &[(&'static str, usize)], to: &'static str) -> Self {
        let asked = arrived.values().sum::<usize>() * 100 / (100 + COPIED);
        let mut wanted = split.to_vec();
        match wanted.iter_mut().find(|(version, _)| *version == to) {
            Some((_, of_100)) => *of_100 += COPIED,
            None => wanted.push((to, COPIED)),
        }
        Copied { asked, wanted }
    }
}

/// How many of these requests each version should get.
fn expected(split: &[(&str, usize)], of: usize) -> Split {
    split.iter().map(|(version, of_100)| ((*version).to_owned(), of_100 * of / 100)).collect()
}

/// Is nobody's part further from what it should be than so many of a hundred, and is nobody there who
/// should get nothing?
fn is_near(found: &Split, wanted: &[(&str, usize)], of: usize, tolerance: usize) -> bool {
    let expected = expected(wanted, of);
    let is_known = found.keys().all(|version| expected.contains_key(version));
    let is_off = |(version, wanted): (&String, &usize)| {
        let found = found.get(version).copied().unwrap_or(0);
        found.abs_diff(*wanted) * 100 > tolerance * of
    };
    is_known && !expected.iter().any(is_off)
}

#[test]
fn a_split_is_near_within_its_tolerance_and_with_nobody_else() {
    let found = |parts: &[(&str, usize)]| -> Split {
        parts.iter().map(|(version, count)| ((*version).to_owned(), *count)).collect()
    };
    let wanted = [("v1", 80), ("v2", 20)];
    let cases = [
        ("exact", vec![("v1", 160), ("v2", 40)], 0, true),
        ("one off", vec![("v1", 161), ("v2", 39)], 0, false),
        ("3 of a hundred", vec![("v1", 166), ("v2", 34)], 3, true),
        ("more than 3 of a hundred", vec![("v1", 167), ("v2", 33)], 3, false),
        ("some of an old version", vec![("v1", 159), ("v2", 40), ("v0", 1)], 3, false),
        ("some were lost", vec![("v1", 140), ("v2", 40)], 3, false),
    ];
    for (what, parts, tolerance, expected) in cases {
        assert_eq!(is_near(&found(&parts), &wanted, 200, tolerance), expected, "{what}");
    }
}

#[test]
fn copies_are_a_share_of_all_that_arrives() {
    let arrived = |parts: &[(&str, usize)]| -> Split {
        parts.iter().map(|(version, count)| ((*version).to_owned(), *count)).collect()
    };
    type Parts = [(&'static str, usize)];
    let cases: [(&str, &Parts, &Parts, bool); 4] = [
        ("half of all", &[("v1", 100)], &[("v1", 8847), ("v2", 4358)], true),
        ("beside a weight", &[("v1", 80), ("v2", 20)], &[("v1", 7079), ("v2", 6297)], true),
        ("none", &[("v1", 100)], &[("v1", 9000)], false),
        ("all", &[("v1", 100)], &[("v1", 4500), ("v2", 4500)], false),
    ];
    for (what, split, parts, expected) in cases {
        let Copied { asked, wanted } = Copied::of(&arrived(parts), split, "v2");
        assert_eq!(is_near(&arrived(parts), &wanted, asked, 3), expected, "{what}");
    }
}

/// Creates an object as a person would.
pub async fn create(client: &Client, object: &Value) -> Result<(), Failure> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resource = resource(&text(&object["apiVersion"]), &text(&object["kind"]));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.create(&PostParams::default(), &serde_json::from_value(object.clone())?).await?;
    Ok(())
}

/// The table.
fn print(rows: &[Row]) -> Summary {
    println!(
        "  {:<11}{:<24}{:>6}{:>10}{:>6}{:>6}  split",
        "router", "act", "s", "requests", "lost", "lag"
    );
    let mut summary = Summary::default();
    for Row { router, what, seconds, tally, seen, error } in rows {
        let Seen { split, of, copies, lag } = seen;
        let part = |(version, count): (&String, &usize)| {
            format!("{version} {:.1} %", 100.0 * *count as f64 / *of as f64)
        };
        let mut parts: Vec<String> = split.iter().map(part).collect();
        parts.extend(copies.iter().map(|copies| format!("copies to {}", part(copies))));
        let requests = tally.answered + tally.lost;
        println!(
            "  {router:<11}{what:<24}{seconds:>6.1}{requests:>10}{:>6}{lag:>6.1}  {}",
            tally.lost,
            parts.join(", ")
        );
        if let Some(error) = error {
            println!("  {:<11}FAILED: {error}", "");
        }
        summary += Summary::of(error.is_none());
    }
    summary
}
