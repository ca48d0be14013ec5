//! How is a simulated update told? As a table for people, as JSON for machines.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use gradus_api::names::analysis_phase;
use gradus_api::rollout::{CanaryStep, RolloutSpec};
use gradus_lab::tryout::{Report, RunSample, Sample, TryoutMeasurement, UpdateResult};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::INFALLIBLE;

/// The table, and what it comes to.
pub fn text(report: &Report, rollout: &Value) -> String {
    let steps = steps(rollout);
    let mut out = String::new();
    let name = rollout["metadata"]["name"].as_str().unwrap_or_default();
    let replicas = rollout["spec"]["replicas"].as_i64().unwrap_or(1);
    writeln!(out, "Rollout {name}, {replicas} replicas, from revision 1 to 2\n").expect(INFALLIBLE);
    let errors = if report.errors.is_empty() { "" } else { "  ERRORS" };
    writeln!(
        out,
        "{:>10}  {:<6} {:>6}  {:>9} {:>9} {:>5}{errors}  STATUS",
        "TIME", "STEP", "WEIGHT", "STABLE", "NEW", "PODS"
    )
    .expect(INFALLIBLE);
    let told: Vec<&Sample> = told(&report.timeline).collect();
    for part in folded(&told) {
        let sample = match part {
            TimelinePart::Sample(sample) => sample,
            TimelinePart::Repeated { lines, times, until } => {
                let until = clock(until);
                writeln!(out, "{:>10}  … {lines} lines like these {times} times more", until)
                    .expect(INFALLIBLE);
                continue;
            }
        };
        writeln!(
            out,
            "{:>10}  {:<6} {:>6}  {:>9} {:>9} {:>5}{}  {}",
            clock(sample.at),
            sample.step.map_or("-".to_owned(), |step| format!("{step}/{}", steps.len())),
            sample.weight,
            pods(sample, 1),
            pods(sample, 2),
            sample.wanted(),
            report
                .errors_at(sample.at)
                .map_or(String::new(), |share| { format!("  {:>6}", percent(share)) }),
            status(sample),
        )
        .expect(INFALLIBLE);
    }
    let runs = runs(report);
    if !runs.is_empty() {
        out.push_str("\nanalyses and experiments:\n");
    }
    for (at, RunSample { name, phase, message }) in runs {
        let why = if message.is_empty() { String::new() } else { format!(": {message}") };
        writeln!(out, "{:>10}  {name} {phase}{why}", clock(at)).expect(INFALLIBLE);
        if *phase != analysis_phase::RUNNING {
            measurements(&mut out, report, name);
        }
    }
    writeln!(out, "\n{}", conclusion(report)).expect(INFALLIBLE);
    if let Some(most) = report.errors.iter().map(|(_, share)| *share).max_by(f64::total_cmp) {
        writeln!(out, "errors: {} of all requests at most", percent(most)).expect(INFALLIBLE);
    }
    writeln!(out, "peak: {} pods for {replicas} replicas", report.peak_pods).expect(INFALLIBLE);
    match report.violations.as_slice() {
        [] => {
            writeln!(out, "invariants: all hold over {} writes", report.writes).expect(INFALLIBLE);
        }
        broken => broken.iter().for_each(|violation| {
            writeln!(out, "broken: {violation}").expect(INFALLIBLE);
        }),
    }
    out
}

/// What each metric of a run that has ended measured last, and by which conditions.
fn measurements(out: &mut String, report: &Report, run: &str) {
    let of_run = || report.measured.iter().filter(|one| one.run == run);
    let metrics: BTreeSet<&str> = of_run().map(|one| one.metric.as_str()).collect();
    for metric in metrics {
        let count = of_run().filter(|one| one.metric == metric).count();
        let Some(last) = of_run().rfind(|one| one.metric == metric) else { continue };
        let TryoutMeasurement { value, message, phase, conditions, .. } = last;
        let value = if value.is_empty() { message } else { value };
        let value = if value.is_empty() { String::new() } else { format!(" {value}") };
        let conditions =
            if conditions.is_empty() { String::new() } else { format!("; {conditions}") };
        let times = if count == 1 { String::new() } else { format!(" last of {count}") };
        writeln!(out, "{:>10}  {metric}{times}:{value} {phase}{conditions}", "").expect(INFALLIBLE);
    }
}

/// How each AnalysisRun and Experiment stood, whenever that changed.
pub fn runs(report: &Report) -> Vec<(SignedDuration, &RunSample)> {
    let mut known: Vec<(SignedDuration, &RunSample)> = Vec::new();
    for sample in &report.timeline {
        for run in sample.runs.iter().filter(|run| !run.phase.is_empty()) {
            let last = known.iter().rev().find(|(_, known)| known.name == run.name);
            if last.is_none_or(|(_, last)| *last != run) {
                known.push((sample.at, run));
            }
        }
    }
    known
}

/// `2.5%`
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// What is shown of a timeline.
pub enum TimelinePart<'s> {
    /// Where it stood.
    Sample(&'s Sample),
    /// The samples before this happened again and again.
    Repeated {
        /// How many of them.
        lines: usize,
        /// How often.
        times: usize,
        /// Until when.
        until: SignedDuration,
    },
}

/// Longer repetitions than this are not looked for.
const LONGEST: usize = 8;
/// What happens fewer times than this is not folded.
const FEWEST: usize = 3;

/// The samples with what repeats shown once.
pub fn folded<'s>(samples: &[&'s Sample]) -> Vec<TimelinePart<'s>> {
    let is_like = |one: &Sample, other: &Sample| {
        *one == Sample { at: one.at, runs: one.runs.clone(), ..other.clone() }
    };
    let times = |from: usize, length: usize| {
        let mut count = 1;
        while (0..length).all(|at| {
            let (one, other) = (samples.get(from + at), samples.get(from + count * length + at));
            one.zip(other).is_some_and(|(one, other)| is_like(one, other))
        }) {
            count += 1;
        }
        count
    };
    let mut parts = Vec::new();
    let mut at = 0;
    while at < samples.len() {
        let found = (1..=LONGEST).map(|length| (length, times(at, length)));
        let found = found
            .filter(|(_, count)| *count >= FEWEST)
            .max_by_key(|(length, count)| (length * count, std::cmp::Reverse(*length)));
        let (length, count) = found.unwrap_or((1, 1));
        parts.extend(samples[at..at + length].iter().copied().map(TimelinePart::Sample));
        let last = samples[at + length * count - 1].at;
        if count > 1 {
            parts.push(TimelinePart::Repeated { lines: length, times: count - 1, until: last });
        }
        at += length * count;
    }
    parts
}

/// Of what happens within a second at one step in one phase, the last is worth a line.
fn told(timeline: &[Sample]) -> impl Iterator<Item = &Sample> {
    let moment = |sample: &Sample| {
        (sample.at.as_secs(), sample.step, sample.phase.clone(), sample.weight == 100)
    };
    let next = timeline.iter().skip(1).map(Some).chain([None]);
    timeline
        .iter()
        .zip(next)
        .filter(move |(sample, next)| next.is_none_or(|next| moment(next) != moment(sample)))
        .map(|(sample, _)| sample)
}

fn conclusion(report: &Report) -> String {
    let time = clock(report.duration);
    let why =
        if report.message.is_empty() { String::new() } else { format!(": {}", report.message) };
    match report.result {
        UpdateResult::Promoted => format!("promoted after {time}"),
        UpdateResult::Aborted => format!("aborted and back on stable after {time}{why}"),
        UpdateResult::Degraded => format!("degraded after {time}{why}"),
        UpdateResult::Waiting => format!(
            "waits for a person since {time}{why}\n(--behaviour promote plays one who promotes at \
             every pause, promote@5m at one moment)"
        ),
        UpdateResult::Stuck if report.timeline.is_empty() => {
            format!("stuck: the first revision never gets healthy{why}")
        }
        UpdateResult::Stuck => format!("stuck since {time}{why}"),
    }
}

/// The same as one object.
pub fn json(report: &Report, rollout: &Value) -> Value {
    let samples: Vec<&Sample> = report.timeline.iter().collect();
    let timeline: Vec<Value> = folded(&samples)
        .into_iter()
        .map(|part| {
            let sample = match part {
                TimelinePart::Sample(sample) => sample,
                TimelinePart::Repeated { lines, times, until } => {
                    let seconds = until.as_secs_f64();
                    return json!({ "repeated": lines, "times": times, "until_seconds": seconds });
                }
            };
            let pods: serde_json::Map<String, Value> = sample
                .pods
                .iter()
                .map(|(revision, (wanted, available))| {
                    (revision.to_string(), json!({ "wanted": wanted, "available": available }))
                })
                .collect();
            json!({
                "seconds": sample.at.as_secs_f64(),
                "phase": sample.phase,
                "message": sample.message,
                "step": sample.step,
                "weight": sample.weight,
                "pods": pods,
                "error_rate": report.errors_at(sample.at),
            })
        })
        .collect();
    let analyses: Vec<Value> = runs(report)
        .into_iter()
        .map(|(at, RunSample { name, phase, message })| {
            let seconds = at.as_secs_f64();
            json!({ "seconds": seconds, "name": name, "phase": phase, "message": message })
        })
        .collect();
    let measured: Vec<Value> = report
        .measured
        .iter()
        .map(|one| {
            let TryoutMeasurement { at, run, metric, phase, value, message, conditions } = one;
            json!({ "seconds": at.as_secs_f64(), "run": run, "metric": metric, "phase": phase,
                "value": value, "message": message, "conditions": conditions })
        })
        .collect();
    let violations: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
    json!({
        "result": result(report.result),
        "duration_seconds": report.duration.as_secs_f64(),
        "peak_pods": report.peak_pods,
        "steps": taken(report, &steps(rollout)),
        "timeline": timeline,
        "analyses": analyses,
        "measurements": measured,
        "violations": violations,
        "message": report.message,
        "writes": report.writes,
    })
}

fn result(result: UpdateResult) -> &'static str {
    match result {
        UpdateResult::Promoted => "promoted",
        UpdateResult::Aborted => "aborted",
        UpdateResult::Degraded => "degraded",
        UpdateResult::Waiting => "waiting",
        UpdateResult::Stuck => "stuck",
    }
}

/// When each step was reached and left; nothing for one that was not.
fn taken(report: &Report, steps: &[CanaryStep]) -> Vec<Value> {
    let first = |step: usize| {
        let index = i64::try_from(step).ok();
        let reached = report.timeline.iter().find(|sample| {
            sample.pods.contains_key(&2) && sample.step.is_some() && sample.step >= index
        });
        reached.map(|sample| sample.at.as_secs_f64())
    };
    let told = steps.iter().enumerate().map(|(at, step)| {
        json!({ "index": at, "step": step.text(), "reached": first(at), "left": first(at + 1) })
    });
    told.collect()
}

/// The steps of the canary.
pub fn steps(rollout: &Value) -> Vec<CanaryStep> {
    let (spec, _) = gradus_api::decode::decode::<RolloutSpec>(&rollout["spec"]);
    spec.strategy.canary.map(|canary| canary.steps).unwrap_or_default()
}

fn pods(sample: &Sample, revision: i64) -> String {
    let (wanted, available) = sample.pods.get(&revision).copied().unwrap_or_default();
    format!("{available}/{wanted}")
}

fn status(sample: &Sample) -> String {
    if sample.message.is_empty() {
        sample.phase.clone()
    } else {
        format!("{} ({})", sample.phase, sample.message)
    }
}

/// `1h02m03s`, without what is nothing at its head.
pub fn clock(time: SignedDuration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes:02}m{seconds:02}s"),
    }
}
