//! `cargo xtask differential`: do Argo Rollouts and Gradus end alike? Both controllers run side by
//! side on one real control plane; random cases are played on both, and what is there is compared
//! whenever both are settled.

mod case;
mod compare;
mod generate;
mod mirror;
mod observe;
mod play;
mod rules;
mod scaling;
mod shrink;
mod stage;

use std::{
    collections::BTreeMap,
    num::ParseIntError,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use futures::{StreamExt, stream};
use serde_json::Value;
use thiserror::Error;

use crate::{
    Failure, build,
    interrupt::or_interrupted,
    repository,
    servers::{Servers, ServersError, go_is_present},
    summary::Summary,
};
use case::Case;
use play::{Played, play};
use stage::Stage;

/// Cases wait most of the time, so many share two cores.
const AT_ONCE: usize = 8;

/// Smaller cases that are played at once while one mismatch is shrunk.
const SMALLER_AT_ONCE: usize = 6;

/// How often a mismatch is played again before it counts.
const REPEATS: usize = 2;

/// What runs when no number is given: about two minutes.
const CASES: u64 = 25;

#[derive(Debug, Error)]
enum WishError {
    #[error(
        "unknown option {0}: expected --cases COUNT, --seed FIRST, --play FILE or --program FILE"
    )]
    UnknownOption(String),
    #[error("{0} expects a value")]
    NoValue(String),
    #[error("{option} {value}: {source}")]
    NoNumber { option: String, value: String, source: ParseIntError },
}

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wish {
    cases: u64,
    seed: u64,
    /// Cases of files instead of random ones.
    files: Vec<PathBuf>,
    /// Another build of Gradus than this work tree's.
    program: Option<PathBuf>,
}

/// How a case ended.
enum Verdict {
    Equal(Played),
    /// Equal but for the rows that are named.
    Explained(Played),
    /// Unequal in one play and equal in another, or people acted each time when one side was further
    /// than the other: chance decided.
    Race(Played),
    Unequal {
        shortest: Box<Case>,
        played: Played,
    },
}

/// Runs the task.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let wish = Wish::parse(arguments)?;
    if !go_is_present() {
        return Err(ServersError::GoIsAbsent.into());
    }
    let servers = Servers::ready(&repository())?;
    let program = match &wish.program {
        Some(path) => path.clone(),
        None => build::tested_program("gradus")?,
    };
    let cases = wish.chosen()?;
    or_interrupted(async {
        let mut stage = Stage::start(&servers, &program).await?;
        let summary = play_all(&stage, cases, !wish.files.is_empty()).await?;
        let is_whole = stage.is_whole();
        if summary.failed > 0 || is_whole.is_err() {
            println!("  the logs are in {}", stage.plane.keep_logs()?.display());
        }
        is_whole.map(|()| summary)
    })
}

impl Wish {
    fn parse(arguments: &[String]) -> Result<Self, WishError> {
        let mut wish = Self { cases: CASES, seed: 1, files: Vec::new(), program: None };
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            let value = arguments.next().ok_or_else(|| WishError::NoValue(option.clone()))?;
            let number = || {
                value.parse().map_err(|source| WishError::NoNumber {
                    option: option.clone(),
                    value: value.clone(),
                    source,
                })
            };
            match option.as_str() {
                "--cases" => wish.cases = number()?,
                "--seed" => wish.seed = number()?,
                "--play" => wish.files.push(value.into()),
                "--program" => wish.program = Some(value.into()),
                _ => return Err(WishError::UnknownOption(option.clone())),
            }
        }
        Ok(wish)
    }

    fn chosen(&self) -> Result<Vec<Case>, case::CaseError> {
        if self.files.is_empty() {
            return Ok((0..self.cases).map(|at| generate::case(self.seed + at, at)).collect());
        }
        let numbered = self.files.iter().enumerate();
        let read = numbered.map(|(at, path)| Ok(Case::read(path)?.renamed(&format!("case{at}"))));
        read.collect()
    }
}

/// Plays all cases, `in_detail` with everything that the last checkpoint of each has seen happen.
async fn play_all(stage: &Stage, cases: Vec<Case>, in_detail: bool) -> Result<Summary, Failure> {
    let plays = cases.into_iter().map(|case| async move {
        let verdict = judge(stage, &case).await;
        verdict.map(|verdict| (case, verdict))
    });
    let mut results = stream::iter(plays).buffer_unordered(AT_ONCE);
    let (mut summary, mut checkpoints) = (Summary::default(), 0);
    let mut rows = BTreeMap::<&str, usize>::new();
    while let Some(result) = results.next().await {
        let (case, verdict) = result?;
        println!("{}", line(&case, &verdict));
        summary += Summary::of(!matches!(verdict, Verdict::Unequal { .. }));
        let played = verdict.played();
        if let Some(last) = played.checkpoints.last().filter(|_| in_detail) {
            println!(
                "    Argo Rollouts:\n{}    Gradus:\n{}",
                course(&last.argo),
                course(&last.ours)
            );
        }
        checkpoints += played.checkpoints.len();
        for row in &played.rows {
            *rows.entry(row).or_default() += 1;
        }
        match &verdict {
            Verdict::Unequal { shortest, played } => report(shortest, played)?,
            // Whether it was chance is for a person to judge.
            Verdict::Race(played) => print_differences(played),
            Verdict::Equal(_) | Verdict::Explained(_) => {}
        }
    }
    println!("  {checkpoints} checkpoints; known differences by their row in docs/differences.md:");
    for (row, count) in rows {
        println!("    {count:>5}  {row}");
    }
    Ok(summary)
}

/// Plays a case, and a mismatch as often as it takes to know whether chance decided.
async fn judge(stage: &Stage, case: &Case) -> Result<Verdict, Failure> {
    let played = match play(stage, case).await {
        // A busy API server lets a person's request time out now and then.
        Err(error) => {
            println!("  seed {}: played again after {error}", case.seed);
            play(stage, &case.renamed(&format!("{}e", case.name()))).await?
        }
        played => played?,
    };
    if played.mismatch.is_empty() {
        let is_equal = played.rows.is_empty();
        return Ok(if is_equal { Verdict::Equal(played) } else { Verdict::Explained(played) });
    }
    let mut all = vec![played];
    for repeat in 0..REPEATS {
        let again = case.renamed(&format!("{}r{repeat}", case.name()));
        all.push(play(stage, &again).await?);
        if is_race(&all) {
            return Ok(Verdict::Race(all.swap_remove(0)));
        }
    }
    let Some(at) = all.iter().position(|played| !played.is_apart) else {
        return Ok(Verdict::Race(all.swap_remove(0)));
    };
    let (shortest, played) = shortest(stage, case, all.swap_remove(at)).await?;
    Ok(Verdict::Unequal { shortest: Box::new(shortest), played })
}

/// Has one side, in any play, ended as the other has in any play?
fn is_race(all: &[Played]) -> bool {
    if all.iter().any(|played| played.mismatch.is_empty()) {
        return true;
    }
    // Pod template hashes hold the case's name, which differs between two plays.
    let ends = |side: fn(&compare::Checkpoint) -> &Value| {
        let last = all.iter().filter_map(|played| played.checkpoints.last());
        last.map(move |checkpoint| {
            let mut seen = side(checkpoint).clone();
            seen["hashes"] = Value::Null;
            (checkpoint.actions, seen)
        })
    };
    ends(|checkpoint| &checkpoint.argo)
        .any(|argo| ends(|checkpoint| &checkpoint.ours).any(|ours| ours == argo))
}

/// Looks for the smallest case with the same mismatch, within a number of plays.
async fn shortest(stage: &Stage, case: &Case, played: Played) -> Result<(Case, Played), Failure> {
    let actions = played.checkpoints.last().map_or(0, |checkpoint| checkpoint.actions);
    let (mut best, mut shown) = (shrink::until(case, actions), played);
    let plays = AtomicU64::new(0);
    loop {
        let candidates = shrink::smaller(&best).into_iter().map(|smaller| {
            let number = plays.fetch_add(1, Ordering::Relaxed);
            smaller.renamed(&format!("{}s{number}", case.name()))
        });
        let trials = candidates.map(|smaller| async move {
            play(stage, &smaller).await.map(|played| (smaller, played))
        });
        let mut results = stream::iter(trials).buffered(SMALLER_AT_ONCE);
        let mut found = None;
        while let Some(result) = results.next().await {
            let (smaller, played) = result?;
            if played.shows(&shown) && !played.is_apart {
                found = Some((smaller, played));
                break;
            }
        }
        drop(results);
        match found {
            Some((smaller, played)) => (best, shown) = (smaller.renamed(case.name()), played),
            None => return Ok((best, shown)),
        }
        if plays.load(Ordering::Relaxed) >= shrink::PLAYS_AT_MOST as u64 {
            return Ok((best, shown));
        }
    }
}

impl Verdict {
    fn played(&self) -> &Played {
        match self {
            Self::Equal(played) | Self::Explained(played) | Self::Race(played) => played,
            Self::Unequal { played, .. } => played,
        }
    }
}

fn line(case: &Case, verdict: &Verdict) -> String {
    let word = match verdict {
        Verdict::Equal(_) => "equal",
        Verdict::Explained(_) => "known",
        Verdict::Race(_) => "race",
        Verdict::Unequal { .. } => "UNEQUAL",
    };
    let played = verdict.played();
    let (seed, seconds, count) = (case.seed, played.seconds, played.checkpoints.len());
    let racing = if case.is_racing() { ", racing" } else { "" };
    format!("  {word:<8}seed {seed}: {count} checkpoints, {seconds} s{racing}")
}

/// What happened on one side, line by line.
fn course(side: &Value) -> String {
    let line = |event: &Value| format!("      {}\n", event.as_str().unwrap_or_default());
    let events = side["events"].as_array().into_iter().flatten().map(line).collect::<String>();
    format!("{events}      splits: {}\n", side["splits"])
}

/// Prints a mismatch and writes the file that plays it again.
fn report(shortest: &Case, played: &Played) -> Result<(), Failure> {
    let folder = repository().join("target/differential");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("seed-{}.json", shortest.seed));
    shortest.write(&path)?;
    println!("    play it again: cargo xtask differential --play {}", path.display());
    println!("    {}", shortest.rollout()["spec"]);
    for step in &shortest.steps {
        println!("    {:?}: {}", step.after, step.r#do);
    }
    print_differences(played);
    Ok(())
}

fn print_differences(played: &Played) {
    for difference in &played.mismatch {
        println!("    {difference}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use compare::{Checkpoint, Difference};

    #[test]
    fn options_have_values_and_defaults() {
        let parse = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Wish::parse(&words)
        };
        let wish = parse(&["--cases", "3", "--seed", "9", "--play", "a.json"]).unwrap();
        assert_eq!((wish.cases, wish.seed, wish.files), (3, 9, vec![PathBuf::from("a.json")]));
        assert_eq!(parse(&[]).unwrap().cases, CASES);
        for bad in [&["--cases"][..], &["--cases", "x"], &["--case", "3"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn chance_decided_where_any_two_plays_agree() {
        let played = |argo: &str, ours: &str| Played {
            checkpoints: vec![Checkpoint {
                actions: 1,
                argo: json!({ "phase": argo, "hashes": { "a": argo } }),
                ours: json!({ "phase": ours, "hashes": { "a": ours } }),
            }],
            rows: Vec::new(),
            mismatch: match argo == ours {
                true => Vec::new(),
                false => {
                    vec![Difference { path: "phase".into(), argo: argo.into(), ours: ours.into() }]
                }
            },
            is_apart: false,
            seconds: 0,
        };
        let cases = [
            ("unequal each time", vec![played("a", "b"), played("a", "b")], false),
            ("equal once", vec![played("a", "b"), played("b", "b")], true),
            ("equal across two plays", vec![played("a", "b"), played("b", "c")], true),
        ];
        for (what, all, expected) in cases {
            assert_eq!(is_race(&all), expected, "{what}");
        }
    }
}
