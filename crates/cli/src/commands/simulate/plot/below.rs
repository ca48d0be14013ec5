//! What is drawn below the pods? The share of requests that fail, and a bar for each analysis with a mark for
//! each of its measurements, whose title names metric, value and conditions.

use std::fmt::Write as _;

use gradus_api::names::analysis_phase as phase;
use gradus_lab::tryout::{Report, RunSample, TryoutMeasurement};
use jiff::SignedDuration;

use super::super::INFALLIBLE;
use super::super::timeline::{percent, runs};
use super::{HEIGHT, LEFT, RIGHT, Scale, WIDTH, escaped, label, stairs, width_of};

/// Height of the errors, with the room around them.
const ERRORS: f64 = 110.0;
/// Height of the room above and below a line.
const ROOM: f64 = 20.0;
/// Height of the bar of an analysis, with the room below it.
const BAR: f64 = 20.0;
/// More analyses than this are not drawn: they would not be told apart.
const MOST_BARS: usize = 12;
/// Characters of a value that are shown.
const VALUE_LIMIT: usize = 24;

/// What is drawn, and how much room it takes.
#[derive(Default)]
pub struct Panels {
    pub svg: String,
    pub height: f64,
}

/// Both, as far as there is anything to draw.
pub fn panels(report: &Report, scale: &Scale) -> Panels {
    let mut panels = Panels::default();
    if !report.errors.is_empty() {
        draw_errors(&mut panels, report, scale);
    }
    let mut bars = bars(report);
    bars.truncate(MOST_BARS);
    for bar in &bars {
        draw_bar(&mut panels, bar, scale);
    }
    if !bars.is_empty() {
        panels.height += ROOM / 2.0;
    }
    panels
}

fn draw_errors(panels: &mut Panels, report: &Report, scale: &Scale) {
    let (left, right) = (LEFT, WIDTH - RIGHT);
    let (top, bottom) = (HEIGHT + ROOM, HEIGHT + ERRORS - ROOM);
    let most = report.errors.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let y = |share: f64| bottom - (bottom - top) * if most > 0.0 { share / most } else { 0.0 };
    let points: Vec<(f64, f64)> =
        report.errors.iter().map(|(at, share)| (scale.x(*at), y(*share))).collect();
    let svg = &mut panels.svg;
    writeln!(
        svg,
        "<path d=\"M{left} {top} L{left} {bottom} L{right} {bottom}\" fill=\"none\" \
         stroke=\"#5f6368\"/>\n\
         <path class=\"errors\" d=\"{}\" fill=\"none\" stroke=\"#e37400\" stroke-width=\"2\"/>",
        stairs(&points, right)
    )
    .expect(INFALLIBLE);
    svg.push_str(&label(left - 6.0, top + 4.0, "end", "#e37400", &percent(most)));
    svg.push_str(&label(left - 6.0, bottom + 4.0, "end", "#e37400", "0%"));
    svg.push_str(&label(left + 6.0, top - 4.0, "start", "#e37400", "requests that fail"));
    panels.height += ERRORS;
}

/// One analysis: when it began, when it ended, how, and what it measured.
struct Bar<'r> {
    began: SignedDuration,
    ended: SignedDuration,
    last: &'r RunSample,
    measured: Vec<&'r TryoutMeasurement>,
}

fn bars(report: &Report) -> Vec<Bar<'_>> {
    let mut bars: Vec<Bar<'_>> = Vec::new();
    for (at, run) in runs(report) {
        let is_over = run.phase != phase::RUNNING;
        let ended = if is_over { at } else { report.duration };
        match bars.iter_mut().find(|bar| bar.last.name == run.name) {
            Some(bar) => (bar.ended, bar.last) = (ended, run),
            None => {
                let measured = report.measured.iter().filter(|one| one.run == run.name);
                bars.push(Bar { began: at, ended, last: run, measured: measured.collect() });
            }
        }
    }
    bars
}

fn draw_bar(panels: &mut Panels, bar: &Bar<'_>, scale: &Scale) {
    let RunSample { name, phase, .. } = bar.last;
    let colour = match phase.as_str() {
        phase::SUCCESSFUL => "#81c995",
        phase::RUNNING => "#8ab4f8",
        phase::FAILED => "#f28b82",
        _ => "#fdd663",
    };
    let label_of_value = bar.measured.last().map_or(String::new(), |last| {
        if last.value.is_empty() { String::new() } else { format!(" {}", shortened(&last.value)) }
    });
    let top = HEIGHT + panels.height;
    let (from, to) = (scale.x(bar.began), scale.x(bar.ended));
    let width = (to - from).max(3.0);
    writeln!(
        panels.svg,
        "<rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" \
         fill=\"{colour}\"/>",
        BAR - 6.0
    )
    .expect(INFALLIBLE);
    // Beside the bar, on the side that has the room, else within it.
    bar.measured.iter().for_each(|one| draw_mark(panels, one, scale, top));
    let text = format!("{name} {phase}{label_of_value}");
    let (room, behind) = (width_of(&text), from + width + 4.0);
    let (x, anchor) = match () {
        () if behind + room < WIDTH => (behind, "start"),
        () if from - 4.0 > room => (from - 4.0, "end"),
        () => (from + 4.0, "start"),
    };
    panels.svg.push_str(&label(x, top + 11.0, anchor, "#202124", &text));
    panels.height += BAR;
}

/// A measurement as a mark on the bar of its run.
fn draw_mark(panels: &mut Panels, one: &TryoutMeasurement, scale: &Scale, top: f64) {
    let TryoutMeasurement { metric, phase, value, message, conditions, .. } = one;
    let colour = match phase.as_str() {
        phase::SUCCESSFUL => "#188038",
        phase::FAILED => "#c5221f",
        _ => "#b06000",
    };
    let words = [metric.as_str(), &shortened(value), phase, message, conditions];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    writeln!(
        panels.svg,
        "<circle class=\"measurement\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"{colour}\">\
         <title>{}</title></circle>",
        scale.x(one.at),
        top + (BAR - 6.0) / 2.0,
        escaped(&words.join(", "))
    )
    .expect(INFALLIBLE);
}

/// A value as far as it fits beside a bar.
fn shortened(value: &str) -> String {
    match value.char_indices().nth(VALUE_LIMIT) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}
