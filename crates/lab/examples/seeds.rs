//! Do many seeds of every scenario end well? `seeds COUNT [--from FIRST] [--scenario NAME] [--two]` on
//! all cores, or one of them alone, told line by line: `seeds --seed SEED --scenario NAME [--two]`.
//! With `--two` there are two controllers, and things happen to the one that leads.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
#[expect(clippy::disallowed_types, reason = "this measures real time")]
use std::time::Instant;

use gradus_lab::enumerate::{Failed, ScenarioJudge};
use gradus_lab::faults::Faults;
use gradus_lab::simulate::{Ground, Prepared, narrate};
use gradus_lab::trace::Met;

/// After so many failures more of them tell nothing new.
const ENOUGH: usize = 10;
/// How often the bar moves, and how wide it is.
const EVERY: Duration = Duration::from_millis(200);
const WIDTH: u64 = 30;

/// What is asked for.
#[derive(Default)]
struct Wish {
    count: u64,
    first: u64,
    seed: Option<u64>,
    scenario: Option<String>,
    /// Two controllers instead of one.
    two: bool,
}

impl Wish {
    /// What a seed stands for.
    fn faults(&self, seed: u64) -> Faults {
        if self.two { Faults::pair_of_seed(seed) } else { Faults::of_seed(seed) }
    }
}

fn main() -> ExitCode {
    let judged = wish().and_then(|wish| {
        let scenarios = scenarios(wish.scenario.as_deref())?;
        match (wish.seed, scenarios.as_slice()) {
            (None, _) => Ok(run(&scenarios, &wish)),
            (Some(seed), [scenario]) => Ok(replay(scenario, seed, wish.two)),
            (Some(_), _) => {
                Err("--seed needs --scenario: a seed is told in one scenario".to_owned())
            }
        }
    });
    judged.unwrap_or_else(|error| {
        let usage =
            "seeds [--two] COUNT [--from FIRST] [--scenario NAME] | --seed SEED --scenario NAME";
        eprintln!("{error}\nusage: {usage}");
        ExitCode::FAILURE
    })
}

fn wish() -> Result<Wish, String> {
    let mut wish = Wish::default();
    let mut words = std::env::args().skip(1);
    let number = |word: Option<String>| {
        let word = word.unwrap_or_default();
        word.parse::<u64>().map_err(|_| format!("expected a number, found {word:?}"))
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--from" => wish.first = number(words.next())?,
            "--seed" => wish.seed = Some(number(words.next())?),
            "--scenario" => wish.scenario = words.next(),
            "--two" => wish.two = true,
            _ => wish.count = number(Some(word))?,
        }
    }
    Ok(wish)
}

fn scenarios(name: Option<&str>) -> Result<Vec<ScenarioJudge>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let all = gradus_lab::load_all(&folder).map_err(|error| error.to_string())?;
    let chosen = all.into_iter().filter(|scenario| name.is_none_or(|name| name == scenario.name));
    let ground = Ground::new().map_err(|error| error.to_string())?;
    let prepared: Result<Vec<Prepared>, _> =
        chosen.map(|scenario| ground.prepare(scenario)).collect();
    let prepared = prepared.map_err(|error| error.to_string())?;
    if prepared.is_empty() {
        return Err(format!("no scenario {}", name.unwrap_or_default()));
    }
    Ok(prepared.into_iter().map(ScenarioJudge::new).collect())
}

/// The scenario that a seed runs: they take turns.
fn scenario_of(seed: u64, scenarios: &[ScenarioJudge]) -> &ScenarioJudge {
    let at = seed % scenarios.len() as u64;
    &scenarios[usize::try_from(at).unwrap_or_default()]
}

/// So many seeds from the first one on, each in its own scenario.
fn run(scenarios: &[ScenarioJudge], wish: &Wish) -> ExitCode {
    let (first, count) = (wish.first, wish.count);
    let (next, done) = (AtomicU64::new(first), AtomicU64::new(0));
    let failed: Mutex<Vec<(u64, &str, Failed)>> = Mutex::new(Vec::new());
    let met = Mutex::new(Met::default());
    #[expect(clippy::disallowed_types, reason = "this measures real time")]
    let began = Instant::now();
    let failures = || failed.lock().expect("no thread panics with the lock").len();
    let work = &|| {
        while failures() < ENOUGH {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if first + count <= seed {
                return;
            }
            let scenario = scenario_of(seed, scenarios);
            for judged in scenario.judge([wish.faults(seed)].into_iter()) {
                met.lock().expect("no thread panics with the lock").add(&judged.met);
                if !judged.violations.is_empty() {
                    let name = scenario.prepared().scenario().name.as_str();
                    let mut failed = failed.lock().expect("no thread panics with the lock");
                    failed.push((seed, name, judged));
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let is_terminal = std::io::stderr().is_terminal();
    thread::scope(|scope| {
        // Nothing is sent: the channel ends when the last worker does.
        let (working, ended) = mpsc::channel::<()>();
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let working = working.clone();
            scope.spawn(move || {
                work();
                drop(working);
            });
        }
        drop(working);
        while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            if is_terminal {
                bar(done.load(Ordering::Relaxed), count, began.elapsed());
            }
        }
    });
    let done = done.into_inner();
    if is_terminal {
        bar(done, count, began.elapsed());
        eprintln!();
    }
    let failed = failed.into_inner().expect("no thread panics with the lock");
    for (seed, name, run) in &failed {
        let two = if wish.two { "--two " } else { "" };
        println!("cargo xtask sim {two}--seed {seed} --scenario {name}\n  {run}");
    }
    println!("met: {}", met.into_inner().expect("no thread panics with the lock"));
    let rate = rate(done, began.elapsed());
    println!(
        "{done} seeds in {} scenarios, {rate} a second: {} failed",
        scenarios.len(),
        failed.len()
    );
    if failed.is_empty() && done == count { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn bar(done: u64, count: u64, elapsed: Duration) {
    let full = usize::try_from(done * WIDTH / count.max(1)).unwrap_or_default();
    let rest = usize::try_from(WIDTH).unwrap_or_default().saturating_sub(full);
    let (full, rest) = ("█".repeat(full), "░".repeat(rest));
    eprint!("\r{full}{rest} {done} of {count} seeds, {} a second ", rate(done, elapsed));
    // A bar that cannot be drawn is no reason to stop.
    drop(std::io::stderr().flush());
}

fn rate(done: u64, elapsed: Duration) -> String {
    format!("{:.0}", done as f64 / elapsed.as_secs_f64().max(0.001))
}

/// One seed, told line by line.
fn replay(scenario: &ScenarioJudge, seed: u64, two: bool) -> ExitCode {
    let faults = if two { scenario.pair_faults_of(seed) } else { scenario.faults_of(seed) };
    let told = narrate(scenario.prepared(), &faults);
    println!("{}\nends with {} and {:?}", told.trace, told.ending.status, told.ending.sets);
    let judged: Vec<Failed> = scenario.judge([faults].into_iter()).collect();
    judged.iter().for_each(|judged| println!("{judged}"));
    let is_good = judged.iter().all(|judged| judged.violations.is_empty());
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
