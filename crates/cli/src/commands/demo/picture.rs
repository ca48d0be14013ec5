//! How does a scene look in a terminal? Text lines of a given width, coloured or not.

use super::scene::{PodLook, Role, RolloutState, Scene, SetScene};

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Lines that the picture may take.
    pub height: usize,
    /// Are colours wanted?
    pub colour: bool,
}

/// What is drawn where somebody has deleted all there was.
const NOTHING: &str = "No rollouts are left. kubectl apply -f examples/rollouts/ brings some back.";

/// Cells of a progress bar, where it has a line of its own and where pods share it.
const BAR: usize = 32;
const SHORT_BAR: usize = 16;

/// How much is said of a rollout. What fits does not depend on what the rollouts do just now: a
/// picture that changes its form all the time cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A title, a bar, a line per ReplicaSet, mostly two, and an empty one.
    Tree,
    /// A title, a line with a bar and all pods, and an empty one.
    Brief,
    /// The same without the empty line.
    Dense,
}

impl Form {
    fn of(rollouts: usize, height: usize) -> Self {
        match height {
            height if height >= 5 * rollouts => Form::Tree,
            height if height >= 3 * rollouts => Form::Brief,
            _ => Form::Dense,
        }
    }
}

/// The scenes, one line per string, none wider than the terminal.
pub fn draw(scenes: &[Scene], style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    if scenes.is_empty() {
        let mut line = Line::new(style);
        line.say(NOTHING, "2");
        lines.push(line.finish());
    }
    let form = Form::of(scenes.len(), style.height);
    for scene in scenes {
        lines.push(title(scene, style));
        if form == Form::Tree {
            lines.push(progress(&scene.standing, style));
            for (at, set) in scene.sets.iter().enumerate() {
                let branch = if at + 1 == scene.sets.len() { "└─" } else { "├─" };
                lines.push(branch_line(branch, set, style));
            }
        } else {
            lines.push(brief(scene, style));
        }
        if form != Form::Dense {
            lines.push(String::new());
        }
    }
    lines
}

fn title(scene: &Scene, style: Style) -> String {
    let standing = &scene.standing;
    let mut line = Line::new(style);
    line.say(&format!("{:<9} ", scene.name), "1");
    line.say(&format!("{:<12}", standing.phase), phase_colour(&standing.phase));
    line.say(&format!(" {}", step_text(standing)), "");
    line.finish()
}

/// What the rollout is doing, in a few words.
pub fn step_text(standing: &RolloutState) -> String {
    let RolloutState { step, steps, doing, image, .. } = standing;
    let share = match standing.traffic {
        Some(traffic) => format!("traffic {traffic} %"),
        None => format!("weight {} %", standing.weight),
    };
    if standing.is_promoted {
        return image.clone();
    }
    if standing.phase == "Degraded" || *steps == 0 {
        let message = if standing.message.is_empty() { "" } else { ", " };
        return format!("{image}{message}{}", standing.message);
    }
    match step {
        step if step <= steps => {
            format!("{image}, step {step}/{steps}: {doing}, {share}")
        }
        _ => format!("{image}, all {steps} steps done, {share}"),
    }
}

fn progress(standing: &RolloutState, style: Style) -> String {
    let mut line = Line::new(style);
    bar(&mut line, standing, BAR);
    let RolloutState { updated, available, desired, .. } = standing;
    line.say(&format!(" {updated}/{desired} updated, {available} available"), "");
    line.finish()
}

/// The bar, and the pods of every ReplicaSet without their names.
fn brief(scene: &Scene, style: Style) -> String {
    let mut line = Line::new(style);
    bar(&mut line, &scene.standing, SHORT_BAR);
    for set in &scene.sets {
        let (role, colour) = role(set);
        line.say(&format!("  {role}"), colour);
        line.say(&format!(" {}", set.revision), "2");
        for pod in &set.pods {
            let (sign, colour) = pod_sign(pod.state);
            line.say(&format!(" {sign}"), colour);
        }
    }
    line.finish()
}

fn bar(line: &mut Line, standing: &RolloutState, cells: usize) {
    let full = (done(standing) * cells as f64).round() as usize;
    line.say("  ", "");
    line.say(&"█".repeat(full), phase_colour(&standing.phase));
    line.say(&"░".repeat(cells - full), "2");
}

/// How much of the way lies behind, from 0 to 1: full only when the update is promoted.
fn done(standing: &RolloutState) -> f64 {
    let (passed, whole) = match standing {
        RolloutState { is_promoted: true, .. } => return 1.0,
        RolloutState { phase, .. } if phase == "Degraded" => return 0.0,
        RolloutState { steps: 0, updated, desired, .. } => (*updated as f64, *desired as f64 + 1.0),
        RolloutState { step, steps, .. } => (*step as f64 - 1.0, *steps as f64 + 1.0),
    };
    (passed / whole).clamp(0.0, 1.0)
}

fn branch_line(branch: &str, set: &SetScene, style: Style) -> String {
    let (role, colour) = role(set);
    let mut line = Line::new(style);
    line.say(&format!("  {branch} {} ", set.name), "");
    line.say(&format!("revision {} ", set.revision), "2");
    line.say(&format!("{role:<7} "), colour);
    // Names of pods are worth their place only where all of them have one.
    let has_room = set.pods.iter().map(|pod| pod.suffix.len() + 3).sum::<usize>() <= line.left;
    for pod in &set.pods {
        let (sign, colour) = pod_sign(pod.state);
        line.say(sign, colour);
        line.say(&if has_room { format!(" {} ", pod.suffix) } else { " ".to_owned() }, "2");
    }
    line.finish()
}

/// What a ReplicaSet is to its rollout, in a word, and its colour.
fn role(set: &SetScene) -> (&'static str, &'static str) {
    match set.role {
        Role::Stable => ("stable", "32"),
        Role::Canary => ("canary", "33"),
        Role::Preview => ("preview", "36"),
        Role::Old => ("old", "2"),
    }
}

/// The sign of a pod, and its colour.
pub fn pod_sign(state: PodLook) -> (&'static str, &'static str) {
    match state {
        PodLook::Ready => ("●", "32"),
        PodLook::Starting => ("◌", "33"),
        PodLook::NotReady => ("○", "33"),
        PodLook::Ending => ("×", "2"),
    }
}

fn phase_colour(phase: &str) -> &'static str {
    match phase {
        "Healthy" => "32",
        "Paused" => "36",
        "Degraded" => "31",
        _ => "33",
    }
}

/// One line that never grows wider than the terminal.
struct Line {
    text: String,
    left: usize,
    colour: bool,
}

impl Line {
    fn new(style: Style) -> Self {
        Line { text: String::new(), left: style.width, colour: style.colour }
    }

    /// Adds text in a colour of the terminal (a number of SGR, or none), as far as there is room.
    fn say(&mut self, text: &str, colour: &str) {
        let fitting: String = text.chars().take(self.left).collect();
        self.left -= fitting.chars().count();
        if self.colour && !colour.is_empty() && !fitting.is_empty() {
            self.text.push_str(&format!("\x1b[{colour}m{fitting}\x1b[0m"));
        } else {
            self.text.push_str(&fitting);
        }
    }

    fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::super::scene::PodScene;
    use super::*;

    fn scene() -> Scene {
        let pod = |suffix: &str, state| PodScene { suffix: suffix.to_owned(), state };
        let set = |name: &str, revision, role, pods| SetScene {
            name: name.to_owned(),
            revision,
            role,
            pods,
        };
        Scene {
            name: "checkout".to_owned(),
            standing: RolloutState {
                phase: "Paused".to_owned(),
                revision: 2,
                image: "nginx:1.28".to_owned(),
                step: 2,
                steps: 4,
                doing: "pause until promoted".to_owned(),
                weight: 20,
                updated: 1,
                available: 5,
                desired: 5,
                ..RolloutState::default()
            },
            sets: vec![
                set("checkout-6d5", 2, Role::Canary, vec![pod("x1", PodLook::Starting)]),
                set(
                    "checkout-9f4",
                    1,
                    Role::Stable,
                    vec![pod("a1", PodLook::Ready), pod("b2", PodLook::Ending)],
                ),
            ],
        }
    }

    #[test]
    fn a_rollout_is_a_title_a_bar_and_a_tree() {
        let lines = draw(&[scene()], Style { width: 100, height: 5, colour: false });
        assert_eq!(
            lines,
            [
                "checkout  Paused       nginx:1.28, step 2/4: pause until promoted, weight 20 %",
                "  ██████░░░░░░░░░░░░░░░░░░░░░░░░░░ 1/5 updated, 5 available",
                "  ├─ checkout-6d5 revision 2 canary  ◌ x1 ",
                "  └─ checkout-9f4 revision 1 stable  ● a1 × b2 ",
                "",
            ]
        );
    }

    #[test]
    fn six_rollouts_fit_a_usual_terminal() {
        let six: Vec<Scene> = (0..6).map(|_| scene()).collect();
        let lines = |height| draw(&six, Style { width: 80, height, colour: false });
        assert_eq!(lines(30).len(), 30, "room for all of it");
        assert_eq!(
            lines(22)[..3],
            [
                "checkout  Paused       nginx:1.28, step 2/4: pause until promoted, weight 20 %",
                "  ███░░░░░░░░░░░░░  canary 2 ◌  stable 1 ● ×",
                "",
            ]
        );
        assert_eq!(lines(22).len(), 18);
        assert_eq!(lines(17).len(), 12, "and without empty lines where it is lower still");
    }

    #[test]
    fn traffic_is_shown_where_it_is_split() {
        let mut standing = scene().standing;
        assert!(step_text(&standing).ends_with("weight 20 %"));
        standing.traffic = Some(15);
        assert!(step_text(&standing).ends_with("traffic 15 %"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [0, 1, 20, 39, 80] {
            let lines = draw(&[scene()], Style { width, height: 22, colour: false });
            let widest = lines.iter().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}: {lines:?}");
        }
        let narrow = draw(&[scene()], Style { width: 41, height: 22, colour: false });
        assert_eq!(narrow[3], "  └─ checkout-9f4 revision 1 stable  ● × ", "signs before names");
    }

    #[test]
    fn a_cluster_without_rollouts_is_shown_as_such() {
        let lines = draw(&[], Style { width: 80, height: 22, colour: false });
        assert_eq!(lines, [NOTHING]);
    }

    #[test]
    fn colours_are_used_only_where_they_are_wanted() {
        let has_colour = |colour| {
            let lines = draw(&[scene()], Style { width: 80, height: 22, colour });
            lines.iter().any(|line| line.contains('\x1b'))
        };
        assert!(has_colour(true));
        assert!(!has_colour(false));
    }

    #[test]
    fn the_bar_is_full_only_when_the_update_is() {
        let with = |step, steps, updated, is_promoted| {
            let standing = RolloutState {
                step,
                steps,
                updated,
                is_promoted,
                desired: 4,
                ..RolloutState::default()
            };
            done(&standing)
        };
        let cases = [
            ("at the first step", with(1, 4, 1, false), 0.0),
            ("all steps done, not yet promoted", with(5, 4, 4, false), 0.8),
            ("promoted", with(5, 4, 4, true), 1.0),
            ("without steps: by pods", with(1, 0, 2, false), 0.4),
            ("scaled to nothing", done(&RolloutState::default()), 0.0),
        ];
        for (what, found, expected) in cases {
            assert_eq!(found, expected, "{what}");
        }
    }
}
