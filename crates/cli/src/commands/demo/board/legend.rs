//! The legend of the demo: its keys, its signs and how others join in.

use ratatui::text::{Line, Span};

use super::super::picture::{bold, dim, pod_sign};
use super::super::scene::PodLook;

/// What each key does.
const KEYS: [(&str, &str); 6] = [
    ("↑ ↓", "choose a rollout; scroll its tree"),
    ("Enter", "open the tree of a rollout; Esc goes back"),
    ("p", "promote: end the pause, or skip the step"),
    ("a", "abort the update"),
    ("s", "stop or start the scripted people"),
    ("q", "quit, as Ctrl-C"),
];

/// The legend, at most 16 lines where the path of the kubeconfig is short.
pub fn lines(kubeconfig: &str) -> Vec<Line<'static>> {
    let heading = |text: &'static str| Line::styled(text, bold());
    let mut lines = vec![heading("Keys")];
    for (key, does) in KEYS {
        lines.push(Line::from(vec![Span::styled(format!("  {key:<6}"), bold()), does.into()]));
    }
    lines.push(heading("Pods"));
    let mut signs = vec![Span::raw("  ")];
    for (state, means) in [
        (PodLook::Ready, "ready"),
        (PodLook::Starting, "starting"),
        (PodLook::NotReady, "running, not ready"),
        (PodLook::Ending, "ending"),
    ] {
        let (sign, style) = pod_sign(state);
        signs.push(Span::styled(sign, style));
        signs.push(Span::raw(format!(" {means}  ")));
    }
    lines.push(Line::from(signs));
    lines.push(heading("Updates"));
    lines.push(Line::raw("  step 1/4: one of four steps is done"));
    lines.push(Line::raw("  weight: part of the pods; traffic: part of the requests"));
    lines.push(heading("In another terminal"));
    lines.push(Line::styled(format!("  export KUBECONFIG={kubeconfig}"), dim()));
    lines.push(Line::styled("  kubectl get rollouts; gradus promote checkout", dim()));
    lines
}
