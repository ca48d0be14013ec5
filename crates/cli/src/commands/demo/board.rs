//! What is on the screen of the demo, and what do its keys do? A list of rollouts with a log below
//! it, the tree of one of them, or the legend.

mod legend;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use gradus_lab::person::Action;
use jiff::Timestamp;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::picture::{Block, Form, NOTHING, block, bold, dim, fit};
use super::scene::Scene;
use super::screen::seconds;

/// How many log lines are kept: more than a terminal shows.
const KEPT: usize = 200;

/// Lines that the log has at least, where the terminal has room for anything but the rollouts.
const LOG: usize = 2;

/// Columns for the names of rollouts: at most a third of the terminal.
const NAMES: usize = 3;

/// Which rollout: namespace and name.
pub type Key = (String, String);

/// What a key asks for, beyond what is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// A command for one rollout.
    Act(Key, Box<Action>),
    /// The end of the demo.
    Quit,
}

/// What the board shows at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    List,
    /// The tree of the chosen rollout.
    Tree,
}

/// What is on the screen, from one frame to the next.
pub struct Board {
    start: Timestamp,
    kubeconfig: String,
    colour: bool,
    /// Do the scripted people act?
    pub are_people_active: bool,
    view: View,
    has_legend: bool,
    /// The rollouts of the last frame.
    scenes: Vec<Scene>,
    chosen: usize,
    /// First line of the list, and of the tree.
    top: usize,
    scroll: usize,
    log: VecDeque<Entry>,
}

struct Entry {
    at: Timestamp,
    rollout: String,
    text: String,
    style: Style,
}

impl Board {
    /// An empty one.
    pub fn new(start: Timestamp, kubeconfig: &str, colour: bool) -> Self {
        Board {
            start,
            kubeconfig: kubeconfig.to_owned(),
            colour,
            are_people_active: true,
            view: View::List,
            has_legend: false,
            scenes: Vec::new(),
            chosen: 0,
            top: 0,
            scroll: 0,
            log: VecDeque::new(),
        }
    }

    /// Takes in the rollouts there are. The chosen one stays chosen while it is there.
    pub fn see(&mut self, scenes: Vec<Scene>) {
        let before = self.chosen();
        self.scenes = scenes;
        let same = |scene: &Scene| Some(key_of(scene)) == before;
        match self.scenes.iter().position(same) {
            Some(at) => self.chosen = at,
            None => {
                self.view = View::List;
                self.chosen = self.chosen.min(self.scenes.len().saturating_sub(1));
            }
        }
    }

    /// The rollout that keys act on.
    pub fn chosen(&self) -> Option<Key> {
        self.scenes.get(self.chosen).map(key_of)
    }

    /// The rollout whose tree is shown.
    pub fn opened(&self) -> Option<Key> {
        (self.view == View::Tree).then(|| self.chosen()).flatten()
    }

    /// Adds a line to the log.
    pub fn note(&mut self, rollout: &str, text: &str, is_warning: bool, at: Timestamp) {
        let style = if is_warning { Style::new().fg(Color::Red) } else { Style::new() };
        self.log.push_back(Entry { at, rollout: rollout.to_owned(), text: text.to_owned(), style });
        while self.log.len() > KEPT {
            self.log.pop_front();
        }
    }

    /// What a key does; what it asks of others.
    pub fn press(&mut self, key: KeyEvent, now: Timestamp) -> Option<Wish> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return Some(Wish::Quit),
            _ if is_control => {}
            KeyCode::Char('q') => return Some(Wish::Quit),
            KeyCode::Char('?') => self.has_legend = !self.has_legend,
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left if self.has_legend => {
                self.has_legend = false;
            }
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => self.view = View::List,
            KeyCode::Enter | KeyCode::Right if !self.scenes.is_empty() => {
                (self.view, self.scroll, self.has_legend) = (View::Tree, 0, false);
            }
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.step(-10),
            KeyCode::PageDown => self.step(10),
            KeyCode::Char('p') => return self.command(Action::Promote, "promote", now),
            KeyCode::Char('a') => return self.command(Action::Abort, "abort", now),
            KeyCode::Char('s') => {
                self.are_people_active = !self.are_people_active;
                let does = if self.are_people_active { "start" } else { "stop" };
                self.note("", &format!("you {does} the scripted people"), false, now);
            }
            _ => {}
        }
        None
    }

    fn step(&mut self, by: isize) {
        match self.view {
            View::Tree => self.scroll = self.scroll.saturating_add_signed(by),
            View::List => {
                let last = self.scenes.len().saturating_sub(1);
                self.chosen = self.chosen.saturating_add_signed(by).min(last);
            }
        }
    }

    fn command(&mut self, action: Action, verb: &str, now: Timestamp) -> Option<Wish> {
        let scene = self.scenes.get(self.chosen)?;
        let (key, title) = (key_of(scene), scene.title());
        if scene.standing.is_promoted {
            let phase = &scene.standing.phase;
            let text = format!("nothing to {verb}: no update is under way, it is {phase}");
            self.note(&title, &text, false, now);
            return None;
        }
        self.note(&title, &format!("you {verb} it"), false, now);
        Some(Wish::Act(key, Box::new(action)))
    }

    /// Draws the frame. `tree` is the text of the opened rollout.
    pub fn render(&mut self, frame: &mut Frame<'_>, tree: Option<&str>, now: Timestamp) {
        let area = frame.area();
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let room = height.saturating_sub(3);
        let body = match tree {
            _ if self.has_legend => Vec::new(),
            Some(tree) => self.tree(tree, width, room),
            None => self.list(width, room),
        };
        let at = |y: usize, height: usize| {
            let y = u16::try_from(y).unwrap_or(u16::MAX).min(area.height);
            let height = u16::try_from(height).unwrap_or(u16::MAX).min(area.height - y);
            Rect { x: 0, y, width: area.width, height }
        };
        let heading = vec![self.header(width, now), self.hint(width)];
        frame.render_widget(Paragraph::new(heading), at(0, 2.min(height.saturating_sub(1))));
        if self.has_legend {
            let legend = Paragraph::new(legend::lines(&self.kubeconfig));
            frame.render_widget(legend.wrap(Wrap { trim: false }), at(2, room));
        } else {
            let log = self.log(width, room.saturating_sub(body.len()));
            let below = height.saturating_sub(1 + log.len());
            frame.render_widget(Paragraph::new(body), at(2, room));
            frame.render_widget(Paragraph::new(log), at(below, room));
        }
        frame.render_widget(Paragraph::new(self.footer(width)), at(height.saturating_sub(1), 1));
        if !self.colour {
            for cell in &mut frame.buffer_mut().content {
                (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
            }
        }
    }

    fn header(&self, width: usize, now: Timestamp) -> Line<'static> {
        let people = if self.are_people_active { "people: active" } else { "people: stopped" };
        let count = self.scenes.len();
        let left = format!("gradus demo  {count} rollouts");
        let right = format!("{people}  {}", seconds(self.start, now).trim_start());
        let gap = width.saturating_sub(left.chars().count() + right.chars().count()).max(2);
        let (name, rest) = left.split_at("gradus demo".len());
        let style = if self.are_people_active { dim() } else { Style::new().fg(Color::Yellow) };
        fit(
            Line::from(vec![
                Span::styled(name.to_owned(), bold()),
                Span::raw(format!("{rest}{}", " ".repeat(gap))),
                Span::styled(right, style),
            ]),
            width,
        )
    }

    /// How others join in; the whole path is in the legend.
    fn hint(&self, width: usize) -> Line<'static> {
        let mut text = format!("export KUBECONFIG={}; kubectl get rollouts", self.kubeconfig);
        if text.chars().count() > width {
            let name = std::path::Path::new(&self.kubeconfig).file_name().unwrap_or_default();
            text = format!("KUBECONFIG={} kubectl get rollouts", name.display());
        }
        fit(Line::styled(text, dim()), width)
    }

    fn footer(&self, width: usize) -> Line<'static> {
        let people = if self.are_people_active { "stop" } else { "start" };
        let moves: [(&str, &str); 3] = match self.view {
            _ if self.has_legend => [("?", "back"), ("", ""), ("", "")],
            View::List => [("?", "help"), ("↑↓", "move"), ("⏎", "open")],
            View::Tree => [("?", "help"), ("↑↓", "move"), ("←", "back")],
        };
        let keys = [("q", "quit")].into_iter().chain(moves);
        let keys = keys.chain([("p", "promote"), ("a", "abort"), ("s", people)]);
        let mut spans = Vec::new();
        for (key, does) in keys.filter(|(key, _)| !key.is_empty()) {
            let gap = if spans.is_empty() { "" } else { "  " };
            spans.push(Span::styled(format!("{gap}{key}"), bold()));
            spans.push(Span::styled(format!(" {does}"), dim()));
        }
        fit(Line::from(spans), width)
    }

    /// The rollouts, as many as there is room for, the chosen one among them.
    fn list(&mut self, width: usize, room: usize) -> Vec<Line<'static>> {
        if self.scenes.is_empty() {
            return vec![fit(Line::styled(NOTHING, dim()), width)];
        }
        let longest = self.scenes.iter().map(|scene| scene.title().chars().count()).max();
        let names = longest.unwrap_or(0).clamp(9, (width / NAMES).max(9));
        let form = Form::of(self.scenes.len(), room.saturating_sub(LOG));
        let (mut lines, mut chosen) = (Vec::new(), 0..0);
        for (at, scene) in self.scenes.iter().enumerate() {
            let is_chosen = at == self.chosen;
            let drawn = block(scene, Block { width, names, form, is_chosen });
            if is_chosen {
                chosen = lines.len()..lines.len() + drawn.len();
            }
            lines.extend(drawn);
        }
        self.top = self.top.max(chosen.end.saturating_sub(room)).min(chosen.start);
        self.top = self.top.min(lines.len().saturating_sub(room));
        lines.into_iter().skip(self.top).take(room).collect()
    }

    /// What `gradus get rollout` prints, from where it is scrolled to. Where that does not fit, two
    /// lines of the list stand for its head, and the log keeps its lines.
    fn tree(&mut self, text: &str, width: usize, room: usize) -> Vec<Line<'static>> {
        let (head, tree) = text.split_once("\n\n").unwrap_or(("", text));
        let tree: Vec<Line<'static>> = tree.lines().map(|line| fit(tinted(line), width)).collect();
        let mut lines: Vec<Line<'static>> =
            head.lines().map(|line| fit(tinted(line), width)).collect();
        let mut room = room;
        if lines.len() + 1 + tree.len() > room {
            room = room.saturating_sub(LOG);
            let look = Block { width, names: width / NAMES, form: Form::Tree, is_chosen: false };
            let scene = self.scenes.get(self.chosen);
            lines = scene.map(|scene| block(scene, look)).unwrap_or_default();
            lines.truncate(2);
        } else {
            lines.push(Line::default());
        }
        let left = room.saturating_sub(lines.len());
        self.scroll = self.scroll.min(tree.len().saturating_sub(left));
        lines.extend(tree.into_iter().skip(self.scroll).take(left));
        lines.truncate(room);
        lines
    }

    /// The last events, as many as there is room for; of one rollout where its tree is shown.
    fn log(&self, width: usize, room: usize) -> Vec<Line<'static>> {
        let opened = match self.view {
            View::Tree => self.scenes.get(self.chosen).map(Scene::title),
            View::List => None,
        };
        let shown = |entry: &&Entry| opened.as_ref().is_none_or(|title| entry.rollout == *title);
        let longest = self.scenes.iter().map(|scene| scene.title().chars().count()).max();
        let names = longest.unwrap_or(0).clamp(9, (width / NAMES).max(9));
        let mut lines: Vec<Line<'static>> = self
            .log
            .iter()
            .rev()
            .filter(shown)
            .take(room)
            .map(|entry| {
                let name = crate::tree::shortened(&entry.rollout, names);
                let line = Line::from(vec![
                    Span::styled(
                        format!("{} {name:<names$} ", seconds(self.start, entry.at)),
                        dim(),
                    ),
                    Span::styled(entry.text.replace('\n', " "), entry.style),
                ]);
                fit(line, width)
            })
            .collect();
        lines.reverse();
        lines
    }
}

fn key_of(scene: &Scene) -> Key {
    (scene.namespace.clone(), scene.name.clone())
}

/// A line of a tree in the colours of `gradus get rollout`.
fn tinted(line: &str) -> Line<'static> {
    let words = line.split_inclusive([' ', ',', '(', ')']);
    let spans = words.map(|word| {
        let colour = match word.trim_end_matches([' ', ',', '(', ')']) {
            "✔" | "stable" | "active" => Color::Green,
            "✖" | "⚠" => Color::Red,
            "◌" | "preview" => Color::Cyan,
            "canary" | "◷" | "॥" => Color::Yellow,
            _ => Color::Reset,
        };
        let style = if colour == Color::Reset { Style::new() } else { Style::new().fg(colour) };
        Span::styled(word.to_owned(), style)
    });
    Line::from(spans.collect::<Vec<_>>())
}
