//! How do pods and people behave in a simulation? Short forms on the command line, or a file.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail};
use gradus_api::names::analysis_phase;
use gradus_api::rollout::{RolloutSpec, StepKind};
use gradus_lab::outlook::{Given, Measured};
use gradus_lab::person::Action;
use gradus_lab::played::{EXPECTED, Script};
use gradus_lab::sight::When;
use gradus_lab::tryout::{PlannedDeed, Tryout};
use gradus_simkube::behave::{Behaviour, Crash, Flapping};
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::Value;

use crate::near;

/// A file of behaviours.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    /// How images behave, as in scenarios.
    images: Vec<Behaviour>,
    /// What people do: each at its time, and those that wait for a sight one after the other.
    actions: Vec<Act>,
    /// What measuring a version gives.
    metrics: Vec<Measured>,
    /// How analyses of a version end.
    analyses: Vec<Given>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Act {
    /// So long after the update began.
    at: Option<SignedDuration>,
    when: Option<When>,
    r#do: Action,
}

/// How an analysis can end.
const RESULTS: [&str; 4] = [
    analysis_phase::SUCCESSFUL,
    analysis_phase::FAILED,
    analysis_phase::ERROR,
    analysis_phase::INCONCLUSIVE,
];

const FORMS: &str = "start=10s, new:start=10s, new:never-ready, new:gates-closed, new:pull-error, new:crash=5s, \
                     new:flapping=10s/5s, new:error-rate=4%, new:error-rate=4%@5m, \
                     new:latency=300ms@5m, metric:NAME=0.25@5m, \
                     new:analysis=failed, new:analysis=failed@60s, promote, promote@5m, promote-full@5m, abort@5m, \
                     retry@5m, plugin=NAME:running@30s,successful, pause@5m, resume@5m, scale=10@5m, or a file";

/// Adds what the arguments say; `first` is the image of the first deploy.
pub fn add(tryout: &mut Tryout, given: &[String], first: &str) -> anyhow::Result<()> {
    let mut all = Behaviour::default();
    let mut old: Option<Behaviour> = None;
    let mut new: Option<Behaviour> = None;
    let (old_image, new_image) = (first.to_owned(), tryout.image.clone());
    for text in given {
        let is_named_so = text.ends_with(".yaml") || text.ends_with(".yml") || text.contains('/');
        if Path::new(text).is_file() || (is_named_so && !text.contains('=')) {
            add_file(tryout, text)?;
            continue;
        }
        if let Some(plugin) = text.strip_prefix("plugin=") {
            let (name, script) = plugin.split_once(':').unwrap_or((plugin, ""));
            let script = Script::parse(script);
            let wrong = || format!("behaviour {text:?}: expected plugin=NAME:{EXPECTED}");
            tryout.plugins.insert(name.to_owned(), script.with_context(wrong)?);
            continue;
        }
        let (whose, form) = text.split_once(':').unwrap_or(("", text));
        if !["", "new", "old", "metric"].contains(&whose) {
            bail!("behaviour {text:?}: {whose:?} is no part of it; expected new:, old: or metric:");
        }
        let (image, behaviour) = match whose {
            "new" => (new_image.as_str(), new.get_or_insert_with(|| all.clone())),
            "old" => (old_image.as_str(), old.get_or_insert_with(|| all.clone())),
            _ => ("*", &mut all),
        };
        let is_deed = form.contains('@') || form == "promote";
        match form.split_once('=') {
            Some((metric, value)) if whose == "metric" => {
                is_measured(tryout, metric, text)?;
                tryout.outlook.measured.push(metric_value(metric, value, text)?);
            }
            Some(("latency", median)) => {
                tryout.outlook.measured.push(latency(image, median, text)?);
            }
            Some(("error-rate", rate)) => {
                tryout.outlook.measured.push(error_rate(image, rate, text)?);
            }
            Some(("analysis", result)) => {
                tryout.outlook.given.push(end_of_analysis(image, result, text)?);
            }
            _ if is_deed && whose.is_empty() => add_deed(tryout, text)?,
            _ => change(behaviour, form, text)?,
        }
    }
    let image = |behaviour: Option<Behaviour>, image: &str| {
        behaviour.map(|behaviour| Behaviour { image: image.to_owned(), ..behaviour })
    };
    let new = image(new, &tryout.image);
    tryout.behaviours.extend(new.into_iter().chain(image(old, first)).chain([all]));
    Ok(())
}

fn add_file(tryout: &mut Tryout, path: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let file: File = serde_saphyr::from_str(&text).with_context(|| {
        format!("{path}: expected `images`, `actions`, `metrics` and `analyses`")
    })?;
    let unknown = file.analyses.iter().find(|given| !RESULTS.contains(&given.result.as_str()));
    if let Some(given) = unknown {
        bail!("{path}: result {:?}: expected one of {}", given.result, RESULTS.join(", "));
    }
    tryout.behaviours.extend(file.images);
    tryout.outlook.measured.extend(file.metrics);
    tryout.outlook.given.extend(file.analyses);
    let deeds = file.actions.into_iter();
    tryout.deeds.extend(deeds.map(|act| PlannedDeed {
        after: act.at,
        when: act.when,
        action: act.r#do,
    }));
    Ok(())
}

/// `4%`, or `4%@5m`: so many requests of a version fail, from a moment after the update began on.
fn error_rate(image: &str, rate: &str, given: &str) -> anyhow::Result<Measured> {
    let (percent, from) = rate.split_once('@').unwrap_or((rate, "0s"));
    let percent: f64 = percent
        .trim_end_matches('%')
        .parse()
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .with_context(|| format!("behaviour {given:?}: expected percents from 0 to 100"))?;
    Ok(Measured {
        image: image.to_owned(),
        error_percent: Some(percent),
        from: duration(from, given)?,
        ..Measured::default()
    })
}

/// `300ms`, or `300ms@5m`: half of all requests to a version take no longer.
fn latency(image: &str, median: &str, given: &str) -> anyhow::Result<Measured> {
    let (median, from) = median.split_once('@').unwrap_or((median, "0s"));
    Ok(Measured {
        image: image.to_owned(),
        latency_milliseconds: Some(seconds(median, given)? * 1000.0),
        from: duration(from, given)?,
        ..Measured::default()
    })
}

/// `0.25`, or `0.25@5m`: the value of a metric, whatever it asks for.
fn metric_value(metric: &str, value: &str, given: &str) -> anyhow::Result<Measured> {
    let (value, from) = value.split_once('@').unwrap_or((value, "0s"));
    let value: f64 =
        value.parse().with_context(|| format!("behaviour {given:?}: expected a number"))?;
    Ok(Measured {
        metric: metric.to_owned(),
        value: Some(value),
        from: duration(from, given)?,
        ..Measured::default()
    })
}

/// `failed`, or `failed@60s`: so ends every analysis of a version, so long after it began.
fn end_of_analysis(image: &str, result: &str, given: &str) -> anyhow::Result<Given> {
    let (result, after) = result.split_once('@').unwrap_or((result, "0s"));
    let known = RESULTS.iter().find(|known| known.eq_ignore_ascii_case(result));
    let known = known
        .with_context(|| format!("behaviour {given:?}: expected one of {}", RESULTS.join(", ")))?;
    Ok(Given {
        image: image.to_owned(),
        result: (*known).to_owned(),
        after: duration(after, given)?,
        message: String::new(),
    })
}

fn change(behaviour: &mut Behaviour, form: &str, given: &str) -> anyhow::Result<()> {
    let (name, value) = form.split_once('=').unwrap_or((form, ""));
    match name {
        "start" => behaviour.start_up_seconds = seconds(value, given)?,
        "stop" => behaviour.termination_seconds = seconds(value, given)?,
        // A pod whose readiness gates stay closed is as good as one that is never ready.
        "never-ready" | "gates-closed" | "pull-error" if !value.is_empty() => {
            bail!("behaviour {given:?}: {name} takes no value")
        }
        "never-ready" | "gates-closed" => behaviour.never_ready = true,
        "pull-error" => behaviour.pull_error = true,
        "crash" => {
            let after_seconds = if value.is_empty() { 1.0 } else { seconds(value, given)? };
            behaviour.crash = Some(Crash::after(after_seconds, None));
        }
        "flapping" => {
            let (ready, not_ready) = value.split_once('/').unwrap_or((value, value));
            behaviour.flapping = Some(Flapping {
                ready_seconds: seconds(ready, given)?,
                not_ready_seconds: seconds(not_ready, given)?,
            });
        }
        _ => return Err(unknown(given, name)),
    }
    Ok(())
}

/// A form that there is not, with those that are like it.
fn unknown(given: &str, name: &str) -> anyhow::Error {
    let known = FORMS.split(", ").map(|form| {
        let form = form.trim_start_matches("new:");
        form.split(['=', '@', ':']).next().unwrap_or(form).to_owned()
    });
    let known: BTreeSet<String> = known.filter(|form| !form.contains(' ')).collect();
    match near::offered(name, &known.into_iter().collect::<Vec<_>>()).first() {
        Some(near) => anyhow::anyhow!(
            "behaviour {given:?} is not known; did you mean {near}? expected one of {FORMS}"
        ),
        None => anyhow::anyhow!("behaviour {given:?} is not known; expected one of {FORMS}"),
    }
}

/// Does any template of the manifests have a metric of this name?
fn is_measured(tryout: &Tryout, metric: &str, given: &str) -> anyhow::Result<()> {
    let objects = tryout.objects.iter().chain(&tryout.patches);
    let lists = objects.map(|object| &object["spec"]["metrics"]);
    let metrics = lists.filter_map(Value::as_array).flatten();
    let names: Vec<String> =
        metrics.filter_map(|one| one["name"].as_str()).map(str::to_owned).collect();
    if metric.contains('*') || names.iter().any(|name| name == metric) {
        return Ok(());
    }
    let near = near::offered(metric, &names);
    match (near.first(), names.as_slice()) {
        (Some(near), _) => {
            bail!("behaviour {given:?}: no metric is called {metric:?}; did you mean {near}?")
        }
        (None, []) => bail!("behaviour {given:?}: there is no metric in the manifests"),
        (None, names) => bail!(
            "behaviour {given:?}: no metric is called {metric:?}; there are {}",
            names.join(", ")
        ),
    }
}

fn add_deed(tryout: &mut Tryout, text: &str) -> anyhow::Result<()> {
    if text == "promote" {
        let pauses = open_pauses(tryout);
        tryout.deeds.extend(pauses.into_iter().map(|step| PlannedDeed {
            after: None,
            when: Some(When { phase: Some("Paused".to_owned()), step, ..When::default() }),
            action: Action::Promote,
        }));
        return Ok(());
    }
    let (what, time) = text.split_once('@').unwrap_or((text, ""));
    let action = match what {
        "promote" => Action::Promote,
        "promote-full" => Action::PromoteFull,
        "abort" => Action::Abort,
        "retry" => Action::Retry,
        "pause" => Action::Pause,
        "resume" => Action::Resume,
        _ => match what.strip_prefix("scale=").map(|number| (number, number.parse())) {
            Some((_, Ok(replicas))) => Action::Scale(replicas),
            Some((number, _)) => {
                bail!("behaviour {text:?}: expected a number of replicas, found {number:?}")
            }
            None => return Err(unknown(text, what)),
        },
    };
    tryout.deeds.push(PlannedDeed { after: Some(duration(time, text)?), when: None, action });
    Ok(())
}

/// The pauses that end only by a person: steps of a canary, or the one before a blue-green switch.
fn open_pauses(tryout: &Tryout) -> Vec<Option<i64>> {
    let Some(rollout) = tryout.rollout() else { return Vec::new() };
    let (spec, _) = gradus_api::decode::decode::<RolloutSpec>(&rollout["spec"]);
    if let Some(blue_green) = &spec.strategy.blue_green {
        return if blue_green.auto_promotion_enabled_or_default() {
            Vec::new()
        } else {
            vec![None]
        };
    }
    let steps = spec.strategy.canary.map(|canary| canary.steps).unwrap_or_default();
    let is_open =
        |kind: StepKind<'_>| matches!(kind, StepKind::Pause(pause) if pause.duration.is_none());
    let open = steps.iter().enumerate().filter(|(_, step)| is_open(step.kind()));
    open.map(|(at, _)| i64::try_from(at).ok()).collect()
}

fn seconds(text: &str, given: &str) -> anyhow::Result<f64> {
    let is_negative = text.trim_start().starts_with('-');
    if is_negative && text.parse::<SignedDuration>().is_ok() {
        bail!("behaviour {given:?}: {text} is no length of time; expected 0s or more");
    }
    Ok(duration(text, given)?.as_secs_f64())
}

fn duration(text: &str, given: &str) -> anyhow::Result<SignedDuration> {
    if text.parse::<f64>().is_ok() {
        bail!("behaviour {given:?}: {text} needs a unit, such as {text}s or {text}m");
    }
    let Ok(parsed) = text.parse::<SignedDuration>() else {
        bail!("behaviour {given:?}: expected a duration such as 10s or 1h30m, found {text:?}");
    };
    if parsed.is_negative() {
        bail!("behaviour {given:?}: {text} is before the update begins; expected 0s or more");
    }
    Ok(parsed)
}
