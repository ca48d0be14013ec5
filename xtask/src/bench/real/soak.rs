//! `cargo xtask soak`: do memory or metric series grow while the work stays the same? Rollouts get new
//! revisions, are scaled, come and go, for minutes. What is found is fitted with a line; its slope must
//! be no more than noise.

use std::time::{Duration, Instant};

use crate::{
    Failure, build, interrupt::or_interrupted, real::create_namespace, repository,
    servers::Servers, summary::Summary,
};

use super::{
    Ground, RealError,
    crowd::{Crowd, Shape},
    side::{Running, Side, Start},
};

const MINUTES: u64 = 10;
/// Rollouts that stay.
const STAYING: usize = 40;
/// Rollouts that come and go, at a time.
const PASSING: usize = 10;
const CHANGE_EVERY: Duration = Duration::from_millis(300);
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The part of the time in which everything is new and grows: caches, pools, the first of each series.
const WARM_UP: f64 = 0.3;
/// A growth over the whole time that is no leak, whatever the noise: a part of what there is.
const NEGLIGIBLE: f64 = 0.02;

/// What was found at a moment.
#[derive(Clone, Copy, Debug)]
struct Look {
    seconds: f64,
    resident: f64,
    series: f64,
}

/// A straight line through what was found.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    mean: f64,
    /// In a minute.
    slope: f64,
    /// How far the slope may be off, at 95 %.
    noise: f64,
}

/// Runs the task.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let minutes = match arguments {
        [] => MINUTES,
        [minutes] => {
            let parsed = minutes.parse().ok().filter(|minutes| *minutes > 0);
            parsed.ok_or_else(|| RealError::Minutes(minutes.clone()))?
        }
        [_, other, ..] => return Err(RealError::UnknownOption(other.clone()).into()),
    };
    let servers = Servers::ready(&repository())?;
    let program = build::program(&["--release", "--package", "gradus"])?;
    or_interrupted(async {
        let ground = Ground::start(&servers).await?;
        let start = Start { side: Side::Gradus, program: &program, has_default_rate: false };
        create_namespace(&ground.client, start.side.namespace()).await?;
        create_namespace(&ground.client, start.side.quiet_namespace()).await?;
        let mut running = Running::start(&start, &ground.plane).await?;
        running.leads(&ground.client).await?;
        let crowd = Crowd::of(&ground.client, start.side.namespace());
        crowd.create(STAYING, Shape::OneStepShortHistory).await?;
        crowd.is_done(&mut running, "created").await?;
        let lasts = Duration::from_secs(60 * minutes);
        let (churned, looks) = futures::join!(churn(&crowd, lasts), watch(&running, lasts));
        let changes = churned?;
        let looks = looks?;
        running.is_alive()?;
        println!("  {changes} changes in {minutes} minutes, {} looks", looks.len());
        let warm = lasts.as_secs_f64() * WARM_UP;
        let looks: Vec<Look> = looks.into_iter().filter(|look| look.seconds >= warm).collect();
        let mut summary = judge("memory, MB", &looks, |look| look.resident / 1_048_576.0);
        summary += judge("metric series", &looks, |look| look.series);
        Ok(summary)
    })
}

/// One change after the other; returns how many.
async fn churn(crowd: &Crowd, lasts: Duration) -> Result<usize, Failure> {
    let (began, names) = (Instant::now(), crowd.names());
    let (mut changes, mut came) = (0, 0);
    while began.elapsed() < lasts {
        let name = &names[changes / 3 % names.len()];
        match changes % 3 {
            0 => crowd.update(std::slice::from_ref(name)).await?,
            1 => crowd.scale(name, 2 + u32::try_from(changes / 3 % 3)?).await?,
            _ => {
                crowd.comes(&format!("passing-{came}")).await?;
                came += 1;
                if came > PASSING {
                    crowd.goes(&format!("passing-{}", came - PASSING - 1)).await?;
                }
            }
        }
        changes += 1;
        tokio::time::sleep(CHANGE_EVERY).await;
    }
    Ok(changes)
}

async fn watch(running: &Running, lasts: Duration) -> Result<Vec<Look>, Failure> {
    let (began, mut looks) = (Instant::now(), Vec::new());
    while began.elapsed() < lasts {
        let text = running.metrics().await?;
        let series = text.lines().filter(|line| !line.starts_with('#')).count();
        looks.push(Look {
            seconds: began.elapsed().as_secs_f64(),
            resident: running.usage()?.resident as f64,
            series: series as f64,
        });
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(looks)
}

/// Prints a line, and says whether it is flat.
fn judge(what: &str, looks: &[Look], value: impl Fn(&Look) -> f64) -> Summary {
    let Line { mean, slope, noise } = line(looks, value);
    let minutes = looks.last().map_or(0.0, |last| last.seconds / 60.0);
    let is_flat = is_flat(Line { mean, slope, noise }, minutes);
    let verdict = if is_flat { "no growth" } else { "FAILED: it grows" };
    println!("  {what}: {mean:.2} on average, {slope:+.4} ± {noise:.4} a minute: {verdict}");
    Summary::of(is_flat)
}

/// The slope is noise, or would not matter in all of the time.
fn is_flat(Line { mean, slope, noise }: Line, minutes: f64) -> bool {
    slope <= noise || slope * minutes <= mean * NEGLIGIBLE
}

/// The line with the least squares. Looks that follow each other are alike, so the noise of single
/// ones would seem smaller than it is: it is taken of the means of blocks.
fn line(looks: &[Look], value: impl Fn(&Look) -> f64) -> Line {
    const BLOCKS: usize = 12;
    let size = looks.len().div_ceil(BLOCKS).max(1);
    let points: Vec<(f64, f64)> = looks
        .chunks(size)
        .map(|block| {
            let mean = |part: &dyn Fn(&Look) -> f64| {
                block.iter().map(part).sum::<f64>() / block.len() as f64
            };
            (mean(&|look| look.seconds / 60.0), mean(&value))
        })
        .collect();
    let count = points.len().max(1) as f64;
    let middle = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|(x, _)| (x - middle).powi(2)).sum();
    if spread == 0.0 {
        return Line { mean, slope: 0.0, noise: 0.0 };
    }
    let slope = points.iter().map(|(x, y)| (x - middle) * (y - mean)).sum::<f64>() / spread;
    let rest: f64 = points.iter().map(|(x, y)| (y - mean - slope * (x - middle)).powi(2)).sum();
    let deviation = (rest / (count - 2.0).max(1.0) / spread).sqrt();
    Line { mean, slope, noise: 2.0 * deviation }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(value: impl Fn(f64) -> f64) -> Vec<Look> {
        let look = |at: u32| {
            let seconds = f64::from(at) * 2.0;
            Look { seconds, resident: value(seconds), series: 0.0 }
        };
        (0..300).map(look).collect()
    }

    #[test]
    fn a_leak_is_told_from_noise() {
        let wave = |seconds: f64| 20.0 + (seconds / 3.0).sin();
        let cases = [
            ("nothing changes", looks(|_| 20.0), true),
            ("it goes up and down", looks(wave), true),
            ("it shrinks", looks(|seconds| 20.0 - seconds / 600.0), true),
            ("a leak", looks(|seconds| 20.0 + seconds / 300.0), false),
            (
                "a leak that goes up and down",
                looks(|seconds| wave(seconds) + seconds / 200.0),
                false,
            ),
        ];
        for (what, looks, expected) in cases {
            let line = line(&looks, |look| look.resident);
            assert_eq!(is_flat(line, 10.0), expected, "{what}: {line:?}");
        }
    }
}
