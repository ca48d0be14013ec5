//! How do pods and people behave in a simulation? Short forms on the command line, or a file.

use std::path::Path;

use anyhow::{Context, bail};
use gradus_api::rollout::{RolloutSpec, StepKind};
use gradus_lab::person::Action;
use gradus_lab::sight::When;
use gradus_lab::tryout::{Deed, Tryout};
use gradus_simkube::behave::{Behaviour, Crash, Flapping};
use jiff::SignedDuration;
use serde::Deserialize;

/// A file of behaviours.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    /// How images behave, as in scenarios.
    images: Vec<Behaviour>,
    /// What people do, one after the other.
    actions: Vec<Act>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Act {
    /// So long after the update began.
    at: Option<SignedDuration>,
    when: Option<When>,
    r#do: Action,
}

const FORMS: &str = "start=10s, new:start=10s, new:never-ready, new:pull-error, new:crash=5s, \
                     new:flapping=10s/5s, promote, promote@5m, promote-full@5m, abort@5m, \
                     retry@5m, pause@5m, resume@5m, scale=10@5m, or a file";

/// Adds what the arguments say; `first` is the image of the first deploy.
pub fn add(tryout: &mut Tryout, given: &[String], first: &str) -> anyhow::Result<()> {
    let mut all = Behaviour::default();
    let mut old: Option<Behaviour> = None;
    let mut new: Option<Behaviour> = None;
    for text in given {
        if Path::new(text).is_file() {
            add_file(tryout, text)?;
        } else if let Some(form) = text.strip_prefix("new:") {
            change(new.get_or_insert_with(|| all.clone()), form, text)?;
        } else if let Some(form) = text.strip_prefix("old:") {
            change(old.get_or_insert_with(|| all.clone()), form, text)?;
        } else if text.contains('@') || text == "promote" {
            add_deed(tryout, text)?;
        } else {
            change(&mut all, text, text)?;
        }
    }
    let image = |behaviour: Option<Behaviour>, image: &str| {
        behaviour.map(|behaviour| Behaviour { image: image.to_owned(), ..behaviour })
    };
    let new = image(new, &tryout.image);
    tryout.behaviours.extend(new.into_iter().chain(image(old, first)).chain([all]));
    // What happens at a time happens in that order; what waits for a pause has no time.
    if tryout.deeds.iter().all(|deed| deed.after.is_some()) {
        tryout.deeds.sort_by_key(|deed| deed.after);
    }
    Ok(())
}

fn add_file(tryout: &mut Tryout, path: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let file: File = serde_saphyr::from_str(&text)
        .with_context(|| format!("{path}: expected `images` and `actions`"))?;
    tryout.behaviours.extend(file.images);
    let deeds = file.actions.into_iter();
    tryout.deeds.extend(deeds.map(|act| Deed { after: act.at, when: act.when, action: act.r#do }));
    Ok(())
}

fn change(behaviour: &mut Behaviour, form: &str, given: &str) -> anyhow::Result<()> {
    let (name, value) = form.split_once('=').unwrap_or((form, ""));
    match name {
        "start" => behaviour.start_up_seconds = seconds(value, given)?,
        "stop" => behaviour.termination_seconds = seconds(value, given)?,
        "never-ready" => behaviour.never_ready = true,
        "pull-error" => behaviour.pull_error = true,
        "crash" => {
            let after_seconds = if value.is_empty() { 1.0 } else { seconds(value, given)? };
            behaviour.crash = Some(Crash { after_seconds, times: None });
        }
        "flapping" => {
            let (ready, not_ready) = value.split_once('/').unwrap_or((value, value));
            behaviour.flapping = Some(Flapping {
                ready_seconds: seconds(ready, given)?,
                not_ready_seconds: seconds(not_ready, given)?,
            });
        }
        _ => bail!("behaviour {given:?} is not known; expected one of {FORMS}"),
    }
    Ok(())
}

fn add_deed(tryout: &mut Tryout, text: &str) -> anyhow::Result<()> {
    if text == "promote" {
        let pauses = open_pauses(tryout);
        tryout.deeds.extend(pauses.into_iter().map(|step| Deed {
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
        _ => match what.strip_prefix("scale=").and_then(|number| number.parse().ok()) {
            Some(replicas) => Action::Scale(replicas),
            None => bail!("behaviour {text:?} is not known; expected one of {FORMS}"),
        },
    };
    tryout.deeds.push(Deed { after: Some(duration(time, text)?), when: None, action });
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
    Ok(duration(text, given)?.as_secs_f64())
}

fn duration(text: &str, given: &str) -> anyhow::Result<SignedDuration> {
    let parsed = text.parse::<SignedDuration>();
    parsed.with_context(|| format!("behaviour {given:?}: expected a duration such as 10s or 1h30m"))
}
