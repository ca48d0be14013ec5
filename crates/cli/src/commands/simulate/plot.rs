//! How does a simulated update look? Pods by revision and the weight over time, as SVG; below them
//! the errors and the analyses, where there are any.

mod below;

use std::fmt::Write as _;

use gradus_lab::tryout::{Report, Sample, UpdateResult};
use jiff::SignedDuration;
use serde_json::Value;

use super::INFALLIBLE;
use super::timeline::clock;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 50.0;
const TOP: f64 = 70.0;
const RIGHT: f64 = 50.0;
const BOTTOM: f64 = 40.0;

/// Where times, pods and weights lie.
struct Scale {
    seconds: f64,
    pods: f64,
    /// The weight that is all traffic.
    whole: i64,
}

impl Scale {
    fn x(&self, at: SignedDuration) -> f64 {
        let span = WIDTH - LEFT - RIGHT;
        LEFT + span * (at.as_secs_f64() / self.seconds).min(1.0)
    }

    fn pods(&self, pods: i64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 pods")]
        let share = pods as f64 / self.pods;
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
    }

    fn weight(&self, weight: i64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a weight is at most a few thousand")]
        let share = weight as f64 / self.whole as f64;
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share.min(1.0)
    }
}

/// The picture: stable pods below, new ones on top, the weight as a line.
pub fn picture(report: &Report, rollout: &Value) -> String {
    let name = rollout["metadata"]["name"].as_str().unwrap_or_default();
    let canary = &rollout["spec"]["strategy"]["canary"];
    #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 pods")]
    let scale = Scale {
        seconds: (report.duration.as_secs_f64() * 1.05).max(1.0),
        pods: report.peak_pods.max(1) as f64,
        whole: canary["trafficRouting"]["maxTrafficWeight"]
            .as_i64()
            .filter(|it| *it > 0)
            .unwrap_or(100),
    };
    let stable = |sample: &Sample| available(sample, 1);
    let all = |sample: &Sample| available(sample, 1) + available(sample, 2);
    let zero = |_: &Sample| 0;
    let is_good = report.result == UpdateResult::Promoted && report.violations.is_empty();
    let below = below::panels(report, &scale);
    let height = HEIGHT + below.height;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"{}\"/>\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"22\" font-size=\"15\" fill=\"{}\">{}</text>\n",
        if is_good { "#fff" } else { "#fce8e6" },
        if is_good { "#188038" } else { "#c5221f" },
        escaped(&title(name, report)),
    );
    steps(&mut svg, report, rollout, &scale);
    area(&mut svg, report, &scale, "#8ab4f8", zero, stable);
    area(&mut svg, report, &scale, "#81c995", stable, all);
    let weight: Vec<(f64, f64)> = report
        .timeline
        .iter()
        .map(|sample| (scale.x(sample.at), scale.weight(sample.weight)))
        .collect();
    writeln!(
        svg,
        "<path d=\"{}\" fill=\"none\" stroke=\"#d93025\" stroke-width=\"2\"/>",
        stairs(&weight, WIDTH - RIGHT)
    )
    .expect(INFALLIBLE);
    axes(&mut svg, report, &scale);
    svg.push_str(&below.svg);
    svg.push_str("</svg>\n");
    svg
}

fn available(sample: &Sample, revision: i64) -> i64 {
    sample.pods.get(&revision).map_or(0, |(_, available)| *available)
}

/// The area between two counts over time.
fn area(
    svg: &mut String,
    report: &Report,
    scale: &Scale,
    colour: &str,
    from: impl Fn(&Sample) -> i64,
    to: impl Fn(&Sample) -> i64,
) {
    let line = |count: &dyn Fn(&Sample) -> i64| -> Vec<(f64, f64)> {
        let points = report.timeline.iter();
        points.map(|sample| (scale.x(sample.at), scale.pods(count(sample)))).collect()
    };
    let end = WIDTH - RIGHT;
    let upper = corners(&line(&to), end);
    let mut lower = corners(&line(&from), end);
    lower.reverse();
    let points: Vec<String> =
        upper.iter().chain(&lower).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    writeln!(svg, "<polygon points=\"{}\" fill=\"{colour}\"/>", points.join(" "))
        .expect(INFALLIBLE);
}

/// A value stays until the next one: every point but the first is a corner.
fn corners(points: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = Vec::new();
    for (x, y) in points {
        if let Some((_, before)) = all.last().copied() {
            all.push((*x, before));
        }
        all.push((*x, *y));
    }
    if let Some((_, last)) = all.last().copied() {
        all.push((end, last));
    }
    all
}

fn stairs(points: &[(f64, f64)], end: f64) -> String {
    let corners = corners(points, end);
    let told = corners
        .iter()
        .enumerate()
        .map(|(at, (x, y))| format!("{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" }));
    told.collect::<Vec<_>>().join(" ")
}

fn axes(svg: &mut String, report: &Report, scale: &Scale) {
    let (left, right, bottom) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM);
    writeln!(
        svg,
        "<path d=\"M{left} {TOP} L{left} {bottom} L{right} {bottom} L{right} {TOP}\" fill=\"none\" \
         stroke=\"#5f6368\"/>"
    )
    .expect(INFALLIBLE);
    let top = scale.pods(report.peak_pods) + 4.0;
    svg.push_str(&label(left - 6.0, top, "end", "#202124", &report.peak_pods.to_string()));
    svg.push_str(&label(left - 6.0, bottom + 4.0, "end", "#202124", "0"));
    svg.push_str(&label(right + 6.0, scale.weight(scale.whole) + 4.0, "start", "#d93025", "100 %"));
    svg.push_str(&label(right + 6.0, bottom + 4.0, "start", "#d93025", "0 %"));
    ticks(svg, scale);
    let keys = [
        ("#8ab4f8", "stable pods"),
        ("#81c995", "new pods"),
        ("#d93025", "weight of the new pods, in %"),
        ("#9aa0a6", "begin of a step"),
    ];
    let mut x = LEFT;
    for (colour, text) in keys {
        writeln!(svg, "<rect x=\"{x}\" y=\"33\" width=\"10\" height=\"10\" fill=\"{colour}\"/>")
            .expect(INFALLIBLE);
        svg.push_str(&label(x + 14.0, 42.0, "start", "#202124", text));
        x += 34.0 + width_of(text);
    }
}

/// Moments along the time axis, at whole numbers of seconds, minutes or hours.
fn ticks(svg: &mut String, scale: &Scale) {
    let steps =
        [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400];
    let most = 8.0;
    let step = steps.into_iter().find(|step| scale.seconds / f64::from(*step) <= most);
    let step = i64::from(step.unwrap_or(604_800));
    let bottom = HEIGHT - BOTTOM;
    let mut seconds = 0;
    loop {
        let at = SignedDuration::from_secs(seconds);
        if at.as_secs_f64() > scale.seconds {
            return;
        }
        let x = scale.x(at);
        writeln!(
            svg,
            "<path class=\"tick\" d=\"M{x:.1} {bottom} L{x:.1} {:.1}\" stroke=\"#5f6368\"/>",
            bottom + 5.0
        )
        .expect(INFALLIBLE);
        svg.push_str(&label(x, bottom + 18.0, "middle", "#202124", &clock(at)));
        seconds += step;
    }
}

/// The moments at which steps begin.
fn steps(svg: &mut String, report: &Report, rollout: &Value, scale: &Scale) {
    let count = super::timeline::steps(rollout).len();
    let mut last = None;
    let mut free = 0.0;
    for sample in report.timeline.iter().filter(|sample| sample.pods.contains_key(&2)) {
        let Some(step) = sample.step.filter(|step| Some(*step) != last) else { continue };
        last = Some(step);
        let x = scale.x(sample.at);
        let (top, bottom) = (TOP, HEIGHT - BOTTOM);
        writeln!(
            svg,
            "<path class=\"step\" d=\"M{x:.1} {top} L{x:.1} {bottom}\" stroke=\"#9aa0a6\" \
             stroke-dasharray=\"3 3\"/>"
        )
        .expect(INFALLIBLE);
        let text = format!("{step}/{count}");
        // Names that would lie upon each other are left out.
        if x >= free && x + width_of(&text) < WIDTH - RIGHT {
            svg.push_str(&label(x + 2.0, TOP - 6.0, "start", "#5f6368", &text));
            free = x + width_of(&text) + 6.0;
        }
    }
}

/// What came of it, in one line.
fn title(name: &str, report: &Report) -> String {
    let time = clock(report.duration);
    let result = match report.result {
        _ if !report.violations.is_empty() => format!("an invariant was broken ({time})"),
        UpdateResult::Promoted => format!("promoted after {time}"),
        UpdateResult::Aborted => format!("aborted after {time}"),
        UpdateResult::Degraded => format!("degraded after {time}"),
        UpdateResult::Waiting => format!("waits for a person since {time}"),
        UpdateResult::Stuck => format!("stuck since {time}"),
    };
    let mut name = name.to_owned();
    if name.len() > LONGEST_NAME {
        name = format!("{}…", &name[..LONGEST_NAME]);
    }
    format!("{name}: {result}, {} pods at most", report.peak_pods)
}

/// Longer names would not leave room for the result.
const LONGEST_NAME: usize = 60;

/// About how wide a text is.
fn width_of(text: &str) -> f64 {
    let letters = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    f64::from(letters) * 6.2
}

fn label(x: f64, y: f64, anchor: &str, colour: &str, text: &str) -> String {
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}</text>\n",
        escaped(text)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
