//! How does a rollout look in a terminal? Styled lines of a given width.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::scene::{PodLook, Role, RolloutState, Scene, SetScene};

/// What is drawn where somebody has deleted all there was.
pub const NOTHING: &str =
    "No rollouts are left. kubectl apply -f examples/rollouts/ brings some back.";

/// Cells of a progress bar: on a line of its own, beside pods, and beside pods where it is narrow.
const BAR: usize = 32;
const SHORT_BAR: usize = 16;
const SHORTEST_BAR: usize = 8;

/// Columns below which the bar beside pods is the shortest.
const NARROW: usize = 72;

/// How much is said of a rollout. What fits does not depend on what the rollouts do just now: a
/// picture that changes its form all the time cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A title, a bar, a line per ReplicaSet, mostly two, and an empty one.
    Tree,
    /// A title, a line with a bar and all pods, and an empty one.
    Brief,
    /// The same without the empty line.
    Dense,
}

impl Form {
    /// The fullest form in which so many rollouts fit so many lines.
    pub fn of(rollouts: usize, height: usize) -> Self {
        match height {
            height if height >= 5 * rollouts => Form::Tree,
            height if height >= 3 * rollouts => Form::Brief,
            _ => Form::Dense,
        }
    }
}

/// How one rollout is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Columns there are.
    pub width: usize,
    /// Columns for the names of rollouts.
    pub names: usize,
    /// How much is said.
    pub form: Form,
    /// Is it the one that keys act on?
    pub is_chosen: bool,
}

/// The lines of one rollout, none wider than the terminal.
pub fn block(scene: &Scene, look: Block) -> Vec<Line<'static>> {
    let mut lines = vec![title(scene, look)];
    if look.form == Form::Tree {
        lines.push(progress(&scene.standing));
        for (at, set) in scene.sets.iter().enumerate() {
            let branch = if at + 1 == scene.sets.len() { "└─" } else { "├─" };
            lines.push(branch_line(branch, set, look.width));
        }
    } else {
        lines.push(brief(scene, look.width));
    }
    if look.form != Form::Dense {
        lines.push(Line::default());
    }
    lines.into_iter().map(|line| fit(line, look.width)).collect()
}

/// The line, cut where the terminal ends: an ellipsis says that there was more.
pub fn fit(line: Line<'static>, width: usize) -> Line<'static> {
    let wide = |line: &Line<'_>| line.spans.iter().map(|span| span.content.chars().count()).sum();
    let seen: usize = wide(&line);
    if seen <= width {
        return line;
    }
    let mut left = width.saturating_sub(1);
    let mut spans = Vec::new();
    for span in line.spans {
        let kept: String = span.content.chars().take(left).collect();
        left -= kept.chars().count();
        spans.push(Span::styled(kept, span.style));
    }
    let end = if width == 0 { "" } else { "…" };
    spans.push(Span::styled(end, dim()));
    Line::from(spans)
}

/// What the rollout is doing, in a few words.
pub fn step_text(standing: &RolloutState) -> String {
    let [whole, ..] = step_texts(standing);
    whole
}

/// What the rollout is doing, in fewer and fewer words.
fn step_texts(standing: &RolloutState) -> [String; 3] {
    let RolloutState { step, steps, doing, image, .. } = standing;
    let alike = |text: String| [text.clone(), text.clone(), text];
    let share = match standing.traffic {
        Some(traffic) => format!("traffic {traffic} %"),
        None => format!("weight {} %", standing.weight),
    };
    if standing.is_promoted {
        return alike(image.clone());
    }
    if standing.phase == "Degraded" || *steps == 0 {
        let message = if standing.message.is_empty() { "" } else { ", " };
        return alike(format!("{image}{message}{}", standing.message));
    }
    match step {
        step if step < steps => [
            format!("{image}, step {step}/{steps}: {doing}, {share}"),
            format!("{image}, step {step}/{steps}, {share}"),
            format!("step {step}/{steps}, {share}"),
        ],
        _ => [
            format!("{image}, all {steps} steps done, {share}"),
            format!("{image}, step {step}/{steps}, {share}"),
            format!("step {step}/{steps}, {share}"),
        ],
    }
}

fn title(scene: &Scene, look: Block) -> Line<'static> {
    let standing = &scene.standing;
    let (mark, name_style) = if look.is_chosen {
        ("▸ ", bold().add_modifier(Modifier::REVERSED))
    } else {
        ("  ", bold())
    };
    let name = crate::tree::shortened(&scene.title(), look.names);
    let blanks = " ".repeat((look.names + 1).saturating_sub(name.chars().count()));
    let left = look.width.saturating_sub(2 + look.names + 1 + 12 + 1);
    let texts = step_texts(standing);
    let text = texts.iter().find(|text| text.chars().count() <= left).unwrap_or(&texts[2]);
    Line::from(vec![
        Span::styled(mark, bold()),
        Span::styled(name, name_style),
        Span::raw(blanks),
        Span::styled(format!("{:<12}", standing.phase), phase_style(&standing.phase)),
        Span::raw(format!(" {text}")),
    ])
}

fn progress(standing: &RolloutState) -> Line<'static> {
    let mut spans = bar(standing, BAR);
    let RolloutState { updated, available, desired, .. } = standing;
    spans.push(Span::raw(format!(" {updated}/{desired} updated, {available} available")));
    Line::from(spans)
}

/// The bar, and the pods of every ReplicaSet without their names.
fn brief(scene: &Scene, width: usize) -> Line<'static> {
    let mut spans = bar(&scene.standing, if width < NARROW { SHORTEST_BAR } else { SHORT_BAR });
    for set in &scene.sets {
        let (role, style) = role(set);
        spans.push(Span::styled(format!("  {role}"), style));
        spans.push(Span::styled(format!(" {}", set.revision), dim()));
        for pod in &set.pods {
            let (sign, style) = pod_sign(pod.state);
            spans.push(Span::styled(format!(" {sign}"), style));
        }
    }
    Line::from(spans)
}

fn bar(standing: &RolloutState, cells: usize) -> Vec<Span<'static>> {
    let full = (done(standing) * cells as f64).round() as usize;
    vec![
        Span::raw("    "),
        Span::styled("█".repeat(full), phase_style(&standing.phase)),
        Span::styled("░".repeat(cells - full), dim()),
    ]
}

/// How much of the way lies behind, from 0 to 1: full only when the update is promoted.
fn done(standing: &RolloutState) -> f64 {
    let (passed, whole) = match standing {
        RolloutState { is_promoted: true, .. } => return 1.0,
        RolloutState { phase, .. } if phase == "Degraded" => return 0.0,
        RolloutState { steps: 0, updated, desired, .. } => (*updated as f64, *desired as f64 + 1.0),
        RolloutState { step, steps, .. } => (*step as f64, *steps as f64 + 1.0),
    };
    (passed / whole).clamp(0.0, 1.0)
}

fn branch_line(branch: &str, set: &SetScene, width: usize) -> Line<'static> {
    let (role, style) = role(set);
    let revision = format!("revision {} ", set.revision);
    let role = format!("{role:<7} ");
    let fixed = 8 + revision.len() + role.len() + 2 * set.pods.len();
    let name = crate::tree::shortened(&set.name, width.saturating_sub(fixed).max(12));
    let mut spans = vec![
        Span::raw(format!("    {branch} {name} ")),
        Span::styled(revision, dim()),
        Span::styled(role, style),
    ];
    // Names of pods are worth their place only where all of them have one.
    let taken: usize = spans.iter().map(|span| span.content.chars().count()).sum();
    let named: usize = set.pods.iter().map(|pod| pod.suffix.len() + 3).sum();
    let has_room = taken + named <= width;
    for pod in &set.pods {
        let (sign, style) = pod_sign(pod.state);
        spans.push(Span::styled(sign, style));
        let suffix = if has_room { format!(" {} ", pod.suffix) } else { " ".to_owned() };
        spans.push(Span::styled(suffix, dim()));
    }
    Line::from(spans)
}

/// What a ReplicaSet is to its rollout, in a word, and its colour.
fn role(set: &SetScene) -> (&'static str, Style) {
    match set.role {
        Role::Stable => ("stable", Style::new().fg(Color::Green)),
        Role::Canary => ("canary", Style::new().fg(Color::Yellow)),
        Role::Preview => ("preview", Style::new().fg(Color::Cyan)),
        Role::Old => ("old", dim()),
    }
}

/// The sign of a pod, and its colour.
pub fn pod_sign(state: PodLook) -> (&'static str, Style) {
    match state {
        PodLook::Ready => ("●", Style::new().fg(Color::Green)),
        PodLook::Starting => ("◌", Style::new().fg(Color::Yellow)),
        PodLook::NotReady => ("○", Style::new().fg(Color::Yellow)),
        PodLook::Ending => ("×", dim()),
    }
}

/// Text that matters less.
pub fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// Names and headings.
pub fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn phase_style(phase: &str) -> Style {
    Style::new().fg(match phase {
        "Healthy" => Color::Green,
        "Paused" => Color::Cyan,
        "Degraded" => Color::Red,
        _ => Color::Yellow,
    })
}

#[cfg(test)]
pub mod tests {
    use super::super::scene::PodScene;
    use super::*;

    /// A rollout that is paused at its second step.
    pub fn scene() -> Scene {
        let pod = |suffix: &str, state| PodScene { suffix: suffix.to_owned(), state };
        let set = |name: &str, revision, role, pods| SetScene {
            name: name.to_owned(),
            revision,
            role,
            pods,
        };
        Scene {
            namespace: "default".to_owned(),
            name: "checkout".to_owned(),
            standing: RolloutState {
                phase: "Paused".to_owned(),
                revision: 2,
                image: "nginx:1.28".to_owned(),
                step: 1,
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

    fn texts(scene: &Scene, width: usize, form: Form) -> Vec<String> {
        let look = Block { width, names: 8, form, is_chosen: false };
        block(scene, look).iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn a_rollout_is_a_title_a_bar_and_a_tree() {
        assert_eq!(
            texts(&scene(), 100, Form::Tree),
            [
                "  checkout Paused       nginx:1.28, step 1/4: pause until promoted, weight 20 %",
                "    ██████░░░░░░░░░░░░░░░░░░░░░░░░░░ 1/5 updated, 5 available",
                "    ├─ checkout-6d5 revision 2 canary  ◌ x1",
                "    └─ checkout-9f4 revision 1 stable  ● a1 × b2",
                "",
            ]
        );
        assert_eq!(
            texts(&scene(), 80, Form::Brief)[1..],
            ["    ███░░░░░░░░░░░░░  canary 2 ◌  stable 1 ● ×", ""]
        );
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_words_but_always_step_and_weight() {
        let cases = [
            (70, "  checkout Paused       nginx:1.28, step 1/4, weight 20 %"),
            (46, "  checkout Paused       step 1/4, weight 20 %"),
            (41, "  checkout Paused       step 1/4, weight…"),
        ];
        for (width, expected) in cases {
            assert_eq!(texts(&scene(), width, Form::Dense)[0], expected, "{width}");
        }
    }

    #[test]
    fn the_form_depends_on_the_room_alone() {
        let cases = [(30, Form::Tree), (29, Form::Brief), (18, Form::Brief), (17, Form::Dense)];
        for (height, expected) in cases {
            assert_eq!(Form::of(6, height), expected, "{height}");
        }
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
        let mut long = scene();
        long.name = "a-name-that-is-as-long-as-names-of-kubernetes-may-be-or-nearly-so".to_owned();
        long.sets[0].name = format!("{}-6d5f7b8c9d", long.name);
        for width in [0, 1, 20, 39, 60, 80] {
            for form in [Form::Tree, Form::Brief, Form::Dense] {
                for scene in [&scene(), &long] {
                    let lines = texts(scene, width, form);
                    let widest = lines.iter().map(|line| line.chars().count()).max();
                    assert!(widest <= Some(width), "{width}: {lines:?}");
                }
            }
        }
        let narrow = texts(&scene(), 43, Form::Tree);
        assert_eq!(narrow[3], "    └─ checkout-9f4 revision 1 stable  ● ×", "signs before names");
        let long = texts(&long, 80, Form::Tree);
        assert!(long[2].ends_with("f7b8c9d revision 2 canary  ◌"), "{long:?}");
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
            ("at the first step", with(0, 4, 1, false), 0.0),
            ("all steps done, not yet promoted", with(4, 4, 4, false), 0.8),
            ("promoted", with(4, 4, 4, true), 1.0),
            ("without steps: by pods", with(0, 0, 2, false), 0.4),
            ("scaled to nothing", done(&RolloutState::default()), 0.0),
        ];
        for (what, found, expected) in cases {
            assert_eq!(found, expected, "{what}");
        }
    }
}
