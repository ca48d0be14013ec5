//! Does `docs/demo.svg` show what the demo draws? The six scenarios are told in virtual time, each
//! is drawn at a moment of its own, and the terminal becomes an SVG, which must be the one that is
//! there.

use std::path::Path;

use gradus_lab::faults::Faults;
use gradus_lab::person::Action;
use gradus_lab::scenario::{Beside, End, Scenario};
use gradus_lab::simulate::{Prepared, simulate_watched};
use jiff::Timestamp;
use serde_json::Value;

use super::cluster::{SAMPLES, behaviours};
use super::picture::{Style, draw};
use super::scene::{Scene, look};
use super::screen::line_of;
use super::script::{Script, scripts, told};

/// Rollouts in the order of the picture, and words that are on it when a rollout is drawn, or,
/// after an exclamation mark, are not.
const MOMENTS: [(&str, &[&str]); 6] = [
    ("cart", &["revision 3", "2/4 updated, 5 available", "○"]),
    ("checkout", &["revision 3", "Paused", "step 2/4"]),
    ("colors", &["revision 3", "Degraded", "○", "!old"]),
    ("payments", &["revision 2 stable", "Healthy"]),
    ("search", &["revision 2 stable", "Healthy"]),
    ("shop", &["revision 3", "Paused", "traffic 20 %"]),
];

/// Columns and lines of the terminal.
const STYLE: Style = Style { width: 107, height: 30, colour: true };

#[test]
fn the_picture_in_the_documents_is_what_the_demo_draws() {
    let scenes: Vec<Scene> = MOMENTS.map(|(name, words)| scene_of(name, words)).into();
    let mut lines = vec!["\x1b[2m$ \x1b[0mcargo run --release -- demo".to_owned()];
    lines.extend(super::greeting("~/gradus/gradus-demo.kubeconfig").lines().map(str::to_owned));
    lines.extend(draw(&scenes, STYLE));
    let now = Timestamp::from_millisecond(16_900).unwrap();
    let deed = told(&Action::SetImage("nginx:1.27".to_owned()));
    lines.push(line_of("shop", &deed, Timestamp::UNIX_EPOCH, now));
    let drawn = svg(&lines);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.svg");
    if std::fs::read_to_string(&path).ok().as_ref() != Some(&drawn) {
        let other = std::env::temp_dir().join("demo.svg");
        std::fs::write(&other, drawn).unwrap();
        let (path, other) = (path.display(), other.display());
        panic!("the demo draws something else now; if it should: mv {other} {path}");
    }
}

/// The rollout at the first moment of its scenario at which the picture is like this.
fn scene_of(name: &str, words: &[&str]) -> Scene {
    let script = scripts().into_iter().find(|script| script.rollout == name).unwrap();
    let prepared = Prepared::new(scenario(&script)).unwrap();
    let mut found = None;
    simulate_watched(&prepared, &Faults::default(), &mut |_, cluster, _| {
        let drawn = draw(&look(cluster), Style { colour: false, ..STYLE }).join("\n");
        let is_so = |word: &&str| match word.strip_prefix('!') {
            Some(word) => !drawn.contains(word),
            None => drawn.contains(*word),
        };
        if found.is_none() && words.iter().all(is_so) {
            found = look(cluster).pop();
        }
    });
    found.unwrap_or_else(|| panic!("{name} never shows {words:?}"))
}

/// The scenario of the demo as the lab tells it.
fn scenario(script: &Script) -> Scenario {
    let samples = SAMPLES.map(|(_, text)| serde_saphyr::from_multiple::<Value>(text).unwrap());
    let is_named = |object: &Value| object["metadata"]["name"] == script.rollout;
    let objects = samples.into_iter().find(|objects| objects.iter().any(is_named)).unwrap();
    Scenario {
        name: script.rollout.to_owned(),
        about: String::new(),
        kind: "Rollout".to_owned(),
        time_scale: 1,
        objects,
        plugins: std::collections::BTreeMap::new(),
        images: behaviours(),
        steps: script.steps(),
        faults: Vec::new(),
        metrics: Some(Vec::new()),
        end: End::default(),
        beside: Beside::default(),
    }
}

/// Width of a cell and height of a line, in pixels; where the first line stands.
const CELL: f64 = 8.4;
const LINE: usize = 19;
const LEFT: f64 = 20.0;
const TOP: usize = 30;

/// Lines of a terminal as a picture.
fn svg(lines: &[String]) -> String {
    let width = (2.0 * LEFT + STYLE.width as f64 * CELL).ceil();
    let height = TOP + lines.len() * LINE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" \
         font-size=\"14\">\n<title>The demo of Gradus in a terminal: six rollouts with their phase, \
         step, weight, progress, ReplicaSets and pods</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (at, line) in lines.iter().enumerate() {
        svg += &row(line, TOP + at * LINE);
    }
    svg + "</svg>\n"
}

/// One line: texts where they stand, and bars as boxes, for fonts leave gaps between cells.
fn row(line: &str, y: usize) -> String {
    let (mut texts, mut boxes, mut column) = (String::new(), String::new(), 0);
    let mut parts = line.split("\x1b[");
    let plain = parts.next().map(|text| ("0", text));
    for (colour, text) in plain.into_iter().chain(parts.filter_map(|part| part.split_once('m'))) {
        let shown = text.trim();
        let blanks = text.chars().take_while(|c| *c == ' ').count();
        let x = LEFT + (column + blanks) as f64 * CELL;
        let width = shown.chars().count() as f64 * CELL;
        column += text.chars().count();
        let fill = fill(colour);
        match shown.chars().next() {
            None => {}
            Some('█' | '░') => {
                let opacity = if shown.starts_with('░') { " opacity=\"0.35\"" } else { "" };
                let y = y - 12;
                boxes += &format!(
                    "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"14\" {fill}{opacity}/>\n"
                );
            }
            Some(_) => {
                texts += &format!(
                    "<tspan x=\"{x:.1}\" textLength=\"{width:.1}\" {fill}>{shown}</tspan>"
                );
            }
        }
    }
    match texts.is_empty() {
        true => boxes,
        false => format!("{boxes}<text y=\"{y}\" xml:space=\"preserve\">{texts}</text>\n"),
    }
}

/// A colour of the terminal (a number of SGR) as one of the picture.
fn fill(colour: &str) -> &'static str {
    match colour {
        "1" => "fill=\"#f0f6fc\" font-weight=\"bold\"",
        "2" => "fill=\"#8b949e\"",
        "31" => "fill=\"#ff7b72\"",
        "32" => "fill=\"#56d364\"",
        "33" => "fill=\"#e3b341\"",
        "36" => "fill=\"#76e3ea\"",
        _ => "fill=\"#c9d1d9\"",
    }
}
