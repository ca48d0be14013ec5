//! Does `docs/demo.svg` show what the demo draws? The six scenarios are simulated in virtual time,
//! each is drawn at a moment of its own, and the terminal becomes an SVG, which must be the one that
//! is there.

use std::path::Path;

use gradus_lab::faults::Faults;
use gradus_lab::person::Action;
use gradus_lab::scenario::{Beside, End, Scenario};
use gradus_lab::simulate::{Prepared, simulate_watched};
use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use serde_json::Value;

use super::board::Board;
use super::cluster::{SAMPLES, behaviours};
use super::scene::{Scene, look};
use super::script::{Script, described, scripts};

/// Rollouts in the order of the picture, and words that are on it when a rollout is drawn, or,
/// after an exclamation mark, are not.
const MOMENTS: [(&str, &[&str]); 6] = [
    ("cart", &["revision 3", "2/4 updated, 5 available", "○"]),
    ("checkout", &["revision 3", "Paused", "step 1/4"]),
    ("colors", &["revision 3", "Degraded", "○", "!old"]),
    ("payments", &["revision 2 stable", "Healthy"]),
    ("search", &["revision 2 stable", "Healthy"]),
    ("shop", &["revision 3", "Paused", "traffic 20 %"]),
];

/// Columns and lines of the terminal.
const SIZE: (u16, u16) = (107, 38);

/// The last lines of the log: when, which rollout, what.
const LOG: [(i64, &str, &str); 5] = [
    (15_200, "shop", "Rollout step 1/4 completed (setWeight: 20)"),
    (15_300, "shop", "Rollout is paused (CanaryPauseStep)"),
    (15_900, "colors", "Rollout aborted update to revision 3"),
    (
        16_400,
        "payments",
        "Rollout completed update to revision 2 (70dd5b9d9): Completed all 4 canary steps",
    ),
    (16_900, "cart", ""),
];

#[test]
fn the_picture_in_the_documents_is_what_the_demo_draws() {
    let scenes: Vec<Scene> = MOMENTS.map(|(name, words)| scene_of(name, words)).into();
    let at = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap();
    let mut board = board(scenes);
    for (moment, rollout, text) in LOG {
        let deed = described(&Action::SetImage("nginx:1.27".to_owned()));
        board.note(rollout, if text.is_empty() { &deed } else { text }, false, at(moment));
    }
    let drawn = svg(&screen(&mut board, at(16_900)));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.svg");
    if std::fs::read_to_string(&path).ok().as_ref() != Some(&drawn) {
        let other = std::env::temp_dir().join("demo.svg");
        std::fs::write(&other, drawn).unwrap();
        let (path, other) = (path.display(), other.display());
        panic!("the demo draws something else now; if it should: mv {other} {path}");
    }
}

fn board(scenes: Vec<Scene>) -> Board {
    let mut board = Board::new(Timestamp::UNIX_EPOCH, "~/gradus/gradus-demo.kubeconfig", true);
    board.see(scenes);
    board
}

fn screen(board: &mut Board, now: Timestamp) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).unwrap();
    terminal.draw(|frame| board.render(frame, None, now)).unwrap();
    terminal.backend().buffer().clone()
}

/// The rollout at the first moment of its scenario at which the picture is like this.
fn scene_of(name: &str, words: &[&str]) -> Scene {
    let script = scripts().into_iter().find(|script| script.rollout == name).unwrap();
    let prepared = Prepared::new(scenario(&script)).unwrap();
    let mut found = None;
    simulate_watched(&prepared, &Faults::default(), &mut |_, cluster, _| {
        let drawn = screen(&mut board(look(cluster)), Timestamp::UNIX_EPOCH);
        let drawn: String = drawn.content.iter().map(Cell::symbol).collect();
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

/// The scenario of the demo as the lab plays it.
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

/// A terminal as a picture.
fn svg(screen: &Buffer) -> String {
    let width = (2.0 * LEFT + f64::from(SIZE.0) * CELL).ceil();
    let height = TOP + usize::from(SIZE.1) * LINE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" \
         font-size=\"14\">\n<title>The demo of Gradus in a terminal: six rollouts with their phase, \
         step, weight, progress, ReplicaSets and pods, and a log of the last events</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (at, line) in screen.content.chunks(usize::from(SIZE.0)).enumerate() {
        svg += &row(line, TOP + at * LINE);
    }
    svg + "</svg>\n"
}

/// One line: texts where they stand, and bars as boxes, for fonts leave gaps between cells.
fn row(line: &[Cell], y: usize) -> String {
    let (mut texts, mut boxes, mut column) = (String::new(), String::new(), 0);
    let alike = |one: &Cell, other: &Cell| (one.fg, one.modifier) == (other.fg, other.modifier);
    for part in line.chunk_by(alike) {
        let text: String = part.iter().map(Cell::symbol).collect();
        let shown = text.trim();
        let blanks = text.chars().take_while(|c| *c == ' ').count();
        let x = LEFT + (column + blanks) as f64 * CELL;
        let width = shown.chars().count() as f64 * CELL;
        column += part.len();
        let is_reversed = part[0].modifier.contains(Modifier::REVERSED);
        let mut fill = fill(part[0].fg, part[0].modifier);
        if is_reversed {
            let y = y - 13;
            boxes += &format!(
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"17\" {fill}/>\n"
            );
            fill = "fill=\"#0d1117\" font-weight=\"bold\"";
        }
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

/// A colour of the terminal as one of the picture.
fn fill(colour: Color, modifier: Modifier) -> &'static str {
    match colour {
        Color::Red => "fill=\"#ff7b72\"",
        Color::Green => "fill=\"#56d364\"",
        Color::Yellow => "fill=\"#e3b341\"",
        Color::Cyan => "fill=\"#76e3ea\"",
        _ if modifier.contains(Modifier::BOLD) => "fill=\"#f0f6fc\" font-weight=\"bold\"",
        _ if modifier.contains(Modifier::DIM) => "fill=\"#8b949e\"",
        _ => "fill=\"#c9d1d9\"",
    }
}
