//! The same scenarios with the production loop: a real client, HTTP, watches; time is virtual.

use std::path::Path;
use std::time::Duration;

use gradus_lab::faults::{Fault, Faults};
use gradus_lab::live::{Lab, live};
use gradus_lab::person::Action;
use gradus_lab::sight::Sight;
use gradus_lab::simulate::{Ground, Prepared, simulate};

/// Counts are written within a second.
const LATEST: Duration = Duration::from_secs(5);

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn scenario(name: &str) -> Prepared {
    let scenario = gradus_lab::load(&folder().join(name).with_extension("yaml"));
    let scenario = scenario.expect("the scenario is well formed");
    Prepared::new(scenario).expect("the objects of the scenario are accepted")
}

/// 20 %, half an hour, 60 %, a person, 100 %. The whole controller runs against the embedded
/// cluster; time is virtual, so this takes milliseconds.
#[tokio::test(start_paused = true)]
async fn a_canary_waits_for_time_then_for_a_person() {
    live(&scenario("canary_pause_promote"), async |lab| {
        lab.until(is_healthy).await.unwrap();
        lab.act(&Action::SetImage("example.com/web:2".to_owned())).unwrap();

        lab.until(paused_at(20)).await.unwrap();
        let paused = lab.lasted();
        lab.until(paused_at(60)).await.unwrap();
        let waited = (lab.lasted() - paused).as_secs();
        assert!((1_798..=1_802).contains(&waited), "half an hour, not {waited} s");

        lab.pass(Duration::from_secs(24 * 60 * 60)).await;
        assert!(lab.until(paused_at(60)).await.is_ok(), "nobody but a person ends it");
        lab.act(&Action::Promote).unwrap();
        lab.until(is_healthy).await.unwrap();
    })
    .await;
}

/// The scenarios in two halves: tests share the processors.
#[tokio::test(start_paused = true)]
async fn every_second_scenario_ends_live_as_it_ends_simulated() {
    assert_ends_alike(0).await;
}

#[tokio::test(start_paused = true)]
async fn every_other_scenario_ends_live_as_it_ends_simulated() {
    assert_ends_alike(1).await;
}

/// Every second scenario from this one on.
async fn assert_ends_alike(first: usize) {
    let scenarios = gradus_lab::load_all(&folder()).expect("the scenarios are well formed");
    let ground = Ground::new().expect("our definitions are accepted");
    for scenario in scenarios.into_iter().skip(first).step_by(2) {
        let name = scenario.name.clone();
        let prepared = ground.prepare(scenario).expect("the objects of the scenarios are accepted");
        let ending = live(&prepared, async |lab| {
            let ending = lab.tell(&prepared).await;
            let more = more_writes(lab).await;
            assert_eq!(more, 0, "{name}: the end is one for a controller that is started again");
            ending
        });
        let ending = ending.await.unwrap_or_else(|violation| panic!("{name}: {violation}"));
        let simulated = simulate(&prepared, &Faults::default());
        ending.same_as(&simulated.ending).unwrap_or_else(|violation| panic!("{name}: {violation}"));
    }
}

/// How often a settled controller, and one that is started in its place, still write: within the
/// time in which counts may be late.
async fn more_writes(lab: &Lab) -> usize {
    lab.pass(LATEST).await;
    let before = lab.asked().writes;
    lab.pass(LATEST).await;
    lab.act(&Action::RestartController).expect("nobody refuses a restart");
    lab.pass(LATEST).await;
    lab.asked().writes - before
}

#[tokio::test(start_paused = true)]
async fn the_faults_of_a_scenario_are_met_live_too() {
    for name in ["argo_issue_3316", "argo_issue_3774"] {
        let prepared = scenario(name);
        let planned = prepared.scenario().faults.len();
        assert!(planned > 0, "{name} tells of faults");
        live(&prepared, async |lab| {
            lab.tell(&prepared).await.unwrap_or_else(|violation| panic!("{name}: {violation}"));
            assert_eq!(lab.asked().struck, planned, "{name}");
        })
        .await;
    }
}

/// Of two faults at one write, and of any other, one that is asked for counts before the
/// scenario's.
#[tokio::test(start_paused = true)]
async fn a_fault_that_is_asked_for_comes_beside_those_of_the_scenario() {
    let prepared = scenario("argo_issue_3774");
    let own = prepared.scenario().faults[0];
    for (write, expected) in [(own.write, 1), (1, 2)] {
        live(&prepared, async |lab| {
            lab.disturb(write, Fault::ServerError);
            lab.tell(&prepared).await.unwrap();
            assert_eq!(lab.asked().struck, expected, "at write {write}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_settled_rollout_makes_no_requests_and_a_restart_makes_no_writes() {
    let prepared = scenario("canary_pause_promote");
    live(&prepared, async |lab| {
        lab.tell(&prepared).await.unwrap();
        lab.pass(Duration::from_secs(5)).await;
        let before = lab.asked();
        lab.pass(Duration::from_secs(60)).await;
        assert_eq!(lab.asked(), before, "nothing but watches in a minute");

        lab.act(&Action::RestartController).unwrap();
        lab.pass(Duration::from_secs(60)).await;
        let after = lab.asked();
        assert!(after.reads > before.reads, "the new one has listed");
        assert_eq!(after.writes, before.writes, "and has found nothing to do");
        assert_eq!(after.events, before.events, "nor to tell");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn events_are_posted_in_the_order_in_which_things_happened() {
    let prepared = scenario("canary_pause_promote");
    live(&prepared, async |lab| {
        lab.tell(&prepared).await.unwrap();
        lab.pass(Duration::from_secs(5)).await;
        let reasons = lab.events();
        let place = |reason: &str| reasons.iter().position(|one| one == reason).unwrap();
        assert!(place("NewReplicaSetCreated") < place("ScalingReplicaSet"), "{reasons:?}");
        assert!(place("RolloutStepCompleted") < place("RolloutPaused"), "{reasons:?}");
        assert!(place("RolloutPaused") < place("RolloutResumed"), "{reasons:?}");
        assert_eq!(reasons.last().map(String::as_str), Some("RolloutCompleted"), "{reasons:?}");
    })
    .await;
}

fn paused_at(weight: i64) -> impl Fn(&Sight<'_>) -> bool {
    move |sight| sight.status["phase"] == "Paused" && sight.weight() == weight
}

fn is_healthy(sight: &Sight<'_>) -> bool {
    sight.is_observed() && sight.status["phase"] == "Healthy"
}
