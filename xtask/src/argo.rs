//! `cargo xtask argo-e2e`: does Argo Rollouts' own end-to-end suite pass against our controller?
//!
//! The suite is fetched as a Go module into Go's cache and compiled into ours; nothing of it enters
//! this repository. Each test runs in a namespace of its own beside one controller on the real
//! control plane.

mod catalogue;
mod ground;
pub mod manifests;
mod play;
mod stand_in;
mod suite;

use futures::{StreamExt, stream};
use thiserror::Error;

use crate::{
    Failure,
    controller::{Election, LOOPBACK, Settings},
    interrupt::or_interrupted,
    plane::User,
    repository,
    servers::{Servers, ServersError, go_is_present},
    stage::{ControllerKind, Stage},
    summary::Summary,
};
use catalogue::Case;
use play::{Played, TestResult};
use stand_in::StandIn;
use suite::Suite;
pub use suite::{controller_program, sample_plugins, sources};

/// Every object of the suite carries this id, and its controller looks after no others.
const INSTANCE: &str = "argo-rollouts-e2e";

/// The port where the suite looks for metrics.
const METRICS_PORT: u16 = 8090;

/// Tests wait most of the time, so several share two cores.
const AT_ONCE: usize = 4;

/// Tests of this suite use the namespace of the controller, and each clears it at its end.
const SINGLE: &str = "StepPluginSuite";

/// What every test run plays: the shortest proof of each area.
const SHORT: [&str; 9] = [
    "FunctionalSuite/TestRolloutAbortRetryPromote",
    "FunctionalSuite/TestBlueGreenUpdate",
    "FunctionalSuite/TestBlueGreenToCanary",
    "FunctionalSuite/TestWorkloadRef",
    "FunctionalSuite/TestRolloutGoodToBadUpdate",
    "FunctionalSuite/TestKubectlWaitForPaused",
    "CanarySuite/TestRolloutScalingWhenPaused",
    "CanarySuite/TestCanaryScaleDownOnAbortNoTrafficRouting",
    "BlueGreenSuite/TestBlueGreenPreviewReplicaCount",
];

#[derive(Debug, Error)]
enum ArgoError {
    #[error("unknown option {0}: expected names of tests or suites, or none for all")]
    UnknownOption(String),
    #[error("no test or suite {0}: expected e.g. CanarySuite or TestCanaryWithSpecPause")]
    UnknownName(String),
}

/// Runs the task.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    if let Some(option) = arguments.iter().find(|argument| argument.starts_with('-')) {
        return Err(ArgoError::UnknownOption(option.clone()).into());
    }
    play_all(arguments)
}

/// What every test run does.
pub fn check() -> Result<Summary, Failure> {
    play_all(&SHORT.map(str::to_owned))
}

/// The suite reads Events the moment a phase is reached, and they come just after it: what fails
/// beside others is played once more, alone, and that counts.
fn play_all(names: &[String]) -> Result<Summary, Failure> {
    if !go_is_present() {
        return Err(ServersError::GoIsAbsent.into());
    }
    let servers = Servers::ready(&repository())?;
    let suite = Suite::ready()?;
    let cases = chosen(catalogue::of(&suite)?, names)?;
    or_interrupted(async {
        let stage = Stage::set(&servers).await?;
        ground::prepare(&stage, &suite)?;
        let manifests = stage.plane.folder().join("argo-e2e");
        let stand_in = StandIn::ready(&suite.folder(), manifests).await?;
        let controller = stage
            .controller_with(
                ControllerKind::Rollouts,
                Settings {
                    aws: None,
                    name: "controller".to_owned(),
                    kubeconfig: stage.plane.kubeconfig(User::Controller),
                    namespace: None,
                    instance_id: Some(INSTANCE.to_owned()),
                    metrics_port: Some(METRICS_PORT),
                    folder: Some(suite.controller_folder().to_owned()),
                    metric_allow: Some(LOOPBACK.to_owned()),
                    variables: Vec::new(),
                    election: Some(Election::On),
                    dry_run: false,
                },
            )
            .await?;
        let (single, beside): (Vec<&Case>, Vec<&Case>) =
            cases.iter().partition(|case| case.suite == SINGLE);
        let mut played = Vec::new();
        for (cases, at_once) in [(beside, AT_ONCE), (single, 1)] {
            let plays =
                cases.into_iter().map(|case| play::alone(&stage, &suite, &stand_in, case, ""));
            let mut results = stream::iter(plays).buffer_unordered(at_once);
            while let Some(result) = results.next().await {
                let result = result?;
                println!("{}", line(&result));
                played.push(result);
            }
        }
        for failed in played.iter_mut().filter(|one| one.verdict == TestResult::Failed) {
            *failed = play::alone(&stage, &suite, &stand_in, &failed.case, "-again").await?;
            println!("{}, played again alone", line(failed));
        }
        drop(controller);
        Ok(report(&suite, &played)?)
    })
}

/// The cases that a name stands for: a suite, a test, or a suite and its test.
fn chosen(cases: Vec<Case>, names: &[String]) -> Result<Vec<Case>, ArgoError> {
    if let Some(name) = names.iter().find(|name| !cases.iter().any(|case| case.is_meant_by(name))) {
        return Err(ArgoError::UnknownName(name.clone()));
    }
    let is_chosen =
        |case: &Case| names.is_empty() || names.iter().any(|name| case.is_meant_by(name));
    Ok(cases.into_iter().filter(is_chosen).collect())
}

fn line(played: &Played) -> String {
    let verdict = match played.verdict {
        TestResult::Passed => "passed",
        TestResult::Failed => "FAILED",
        TestResult::Skipped => "skipped",
    };
    format!("  {verdict:<8}{:>5} s  {}", played.seconds, played.case)
}

/// What failed, with the last words of both sides; its whole output stays in the cache.
fn report(suite: &Suite, played: &[Played]) -> Result<Summary, suite::SuiteError> {
    let mut summary = Summary::default();
    for played in played {
        summary += match played.verdict {
            TestResult::Passed => Summary::of(true),
            TestResult::Failed => Summary::of(false),
            TestResult::Skipped => Summary::skipped(),
        };
        if played.verdict == TestResult::Failed {
            let kept = suite.keep(&played.case.file_name(), &played.whole())?;
            println!("\n{} FAILED; all of it: {}", played.case, kept.display());
            println!("{}\n  our log:\n{}", played.last_words(), played.our_last_words());
        }
    }
    Ok(summary)
}

#[test]
fn a_name_is_a_suite_a_test_or_both() {
    let case = |suite: &str, test: &str| Case { suite: suite.into(), test: test.into() };
    let all = vec![case("ASuite", "TestX"), case("ASuite", "TestY"), case("BSuite", "TestX")];
    let names = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let cases = chosen(all.clone(), &words).ok()?;
        Some(cases.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    };
    let cases: [(&str, &[&str], Option<&str>); 5] = [
        ("nothing means all", &[], Some("ASuite/TestX ASuite/TestY BSuite/TestX")),
        ("a suite", &["ASuite"], Some("ASuite/TestX ASuite/TestY")),
        ("a test, wherever it is", &["TestX"], Some("ASuite/TestX BSuite/TestX")),
        ("both", &["BSuite/TestX"], Some("BSuite/TestX")),
        ("a typing error is told", &["TestX", "TestZ"], None),
    ];
    for (what, words, expected) in cases {
        assert_eq!(names(words).as_deref(), expected, "{what}");
    }
}
