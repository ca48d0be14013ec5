//! `cargo xtask real`: do the scenarios hold on a real control plane, with the real program as the
//! controller?

mod admission;
mod budgets;
mod deeds;
mod faults;
mod ground;
mod installation;
mod kargo;
mod namespaced;
mod outside;
mod plugin;
mod postgres;
mod quiet;
mod rights;
mod scenario;
mod sets;
mod together;

use std::time::Instant;

use thiserror::Error;

use crate::{
    Failure,
    audit::Audit,
    interrupt::or_interrupted,
    plane::User,
    proxy::Fault,
    repository,
    servers::Servers,
    stage::{ControllerKind, Stage},
    summary::Summary,
};
pub use deeds::{apply, create_namespace, find, perform, remove_namespace, resource};
use scenario::RealScenario;

/// The controller dies at a write.
const CRASHES: [Fault; 2] = [Fault::KillBefore, Fault::KillAfter];

/// The scenarios whose crash points every test run visits; `--faults` visits those of all.
const CRASHED: [&str; 4] =
    ["canary_pause_promote", "blue_green", "rolling_update", "database_create"];

/// Everything that can happen to a write.
const ALL_FAULTS: [Fault; 7] = [
    Fault::KillBefore,
    Fault::KillAfter,
    Fault::LoseAnswer,
    Fault::Unreachable,
    Fault::Answer(409),
    Fault::Answer(429),
    Fault::Answer(500),
];

/// What the command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wish {
    /// Leave the control plane running until Ctrl-C.
    keep: bool,
    /// What is done to every write, through the proxy; nothing when empty.
    faults: &'static [Fault],
    /// Scenarios by name; all when empty.
    names: Vec<String>,
}

#[derive(Debug, Error)]
enum RealError {
    #[error("unknown option {0}: expected --keep, --crashes or --faults")]
    UnknownOption(String),
    #[error(
        "no scenario {0}: expected the name of a file in scenarios/ or of the example's, without its ending"
    )]
    UnknownScenario(String),
}

/// Runs the task.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let wish = Wish::parse(arguments)?;
    let scenarios = chosen(scenario::all()?, &wish.names)?;
    let servers = Servers::ready(&repository())?;
    or_interrupted(async {
        let stage = Stage::set(&servers).await?;
        let result = if wish.faults.is_empty() {
            let are_all = wish.names.is_empty();
            let left_out = if are_all { scenario::left_out()? } else { Summary::default() };
            undisturbed(&stage, &scenarios, are_all).await.map(|mut summary| {
                summary += left_out;
                summary
            })
        } else {
            faults::everywhere(&stage, &scenarios, wish.faults).await
        };
        let result = explained(&stage, result);
        if wish.keep {
            // It waits without end: whoever looks at the cluster must know by then how it went.
            println!("{}", words_of(&result));
            keep(&stage).await;
        }
        result
    })
}

/// What every test run does: each scenario once, and the crash points of some.
pub fn check() -> Result<Summary, Failure> {
    let scenarios = scenario::all()?;
    let crashed = chosen(scenario::all()?, &CRASHED.map(str::to_owned))?;
    let servers = Servers::ready(&repository())?;
    or_interrupted(async {
        let stage = Stage::set(&servers).await?;
        explained(&stage, once_and_crashed(&stage, &scenarios, &crashed).await)
    })
}

async fn once_and_crashed(
    stage: &Stage,
    scenarios: &[RealScenario],
    crashed: &[RealScenario],
) -> Result<Summary, Failure> {
    let mut summary = scenario::left_out()?;
    summary += undisturbed(stage, scenarios, true).await?;
    summary += faults::everywhere(stage, crashed, &CRASHES).await?;
    Ok(summary)
}

/// Where something failed, the logs of all the servers and controllers stay, and a line says where.
fn explained(stage: &Stage, result: Result<Summary, Failure>) -> Result<Summary, Failure> {
    let result = result.map(|mut summary| {
        summary.failed += stage.deaths();
        summary
    });
    if !matches!(result, Ok(Summary { failed: 0, .. })) {
        println!("  the logs are in {}", stage.plane.keep_logs()?.display());
    }
    result
}

impl Wish {
    fn parse(arguments: &[String]) -> Result<Self, RealError> {
        let mut wish = Self::default();
        for argument in arguments {
            match argument.as_str() {
                "--keep" => wish.keep = true,
                "--crashes" => wish.faults = &CRASHES,
                "--faults" => wish.faults = &ALL_FAULTS,
                option if option.starts_with('-') => {
                    return Err(RealError::UnknownOption(option.to_owned()));
                }
                name => wish.names.push(name.to_owned()),
            }
        }
        Ok(wish)
    }
}

fn chosen(scenarios: Vec<RealScenario>, names: &[String]) -> Result<Vec<RealScenario>, RealError> {
    let is_known =
        |name: &&String| scenarios.iter().any(|scenario| scenario.name() == name.as_str());
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        return Err(RealError::UnknownScenario(name.clone()));
    }
    let is_chosen = |scenario: &RealScenario| {
        names.is_empty() || names.iter().any(|name| name == scenario.name())
    };
    Ok(scenarios.into_iter().filter(is_chosen).collect())
}

/// The ground the scenarios stand on, then all of them at once, then silence, then those that name
/// faults. Only a run of all scenarios tells whether every right is used.
async fn undisturbed(
    stage: &Stage,
    scenarios: &[RealScenario],
    are_all: bool,
) -> Result<Summary, Failure> {
    let mut summary = reported("pods", ground::pods_live_as_they_behave(stage)).await;
    let audit = Audit::from_now(stage.plane.audit_log())?;
    let mut controllers = Vec::new();
    for part in [ControllerKind::Rollouts, ControllerKind::Databases] {
        controllers.push((part, stage.controller(part).await?));
    }
    let rollouts = controllers.iter().find(|(part, _)| *part == ControllerKind::Rollouts);
    if let Some((_, controller)) = rollouts {
        // First: what they leave running for half a minute must be gone when silence is checked.
        summary += budgets::are_kept(stage, controller).await;
    }
    summary += together::play(stage, &controllers, scenarios).await;
    summary += postgres::keeps_a_row(stage).await;
    summary += reported("plugin", plugin::commands_have_their_effects(stage)).await;
    summary += reported("runs of Kargo", kargo::runs_are_carried_out(stage)).await;
    summary += reported("rights", async { quiet::nothing_was_forbidden(&audit) }).await;
    summary += reported("silence", quiet::a_settled_cluster_is_left_alone(stage)).await;
    drop(controllers);
    summary += reported("restart", quiet::a_restart_writes_nothing(stage)).await;
    summary += reported("installation", installation::can_be_applied(stage)).await;
    summary += reported("one namespace", namespaced::a_role_is_enough(stage)).await;
    summary += reported("admission", admission::says_what_lint_says(stage)).await;
    // Last: no controller of the whole cluster may run beside theirs.
    summary += faults::as_told(stage, scenarios).await;
    if are_all {
        summary += reported("rights in use", async { rights::are_all_used(&audit) }).await;
    }
    Ok(summary)
}

/// One check as one line.
async fn reported(name: &str, check: impl Future<Output = Result<(), Failure>>) -> Summary {
    let began = Instant::now();
    let result = check.await;
    let seconds = began.elapsed().as_secs();
    match &result {
        Ok(()) => println!("  {name}: {seconds} s"),
        Err(error) => println!("  {name}: FAILED after {seconds} s: {error}"),
    }
    Summary::of(result.is_ok())
}

/// How a run ended.
fn words_of(result: &Result<Summary, Failure>) -> String {
    match result {
        Ok(summary) => summary.to_string(),
        Err(error) => format!("the run failed: {error}"),
    }
}

/// Until Ctrl-C.
async fn keep(stage: &Stage) {
    let kubeconfig = stage.plane.kubeconfig(User::Person);
    println!("the control plane runs until Ctrl-C; its kubeconfig: {}", kubeconfig.display());
    let controller = stage.plane.kubeconfig(User::Controller);
    println!("a controller for it: cargo run -- controller --kubeconfig {}", controller.display());
    println!("export KUBECONFIG={}", kubeconfig.display());
    std::future::pending::<()>().await;
}

#[test]
fn a_plane_that_is_kept_tells_first_how_the_run_ended() {
    assert_eq!(words_of(&Ok(Summary::of(false))), "0 passed, 1 failed, 0 skipped");
    assert_eq!(words_of(&Err("no port".into())), "the run failed: no port");
}

#[test]
fn options_and_names_may_be_mixed() {
    let parse = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Wish::parse(&words)
    };
    let names = vec!["canary".to_owned()];
    let wish = parse(&["--faults", "canary", "--keep"]).unwrap();
    assert_eq!(wish, Wish { keep: true, faults: &ALL_FAULTS, names });
    assert_eq!(parse(&["--crashes"]).unwrap().faults, CRASHES);
    assert!(parse(&["--kepe"]).is_err());
}
