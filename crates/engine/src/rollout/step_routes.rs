//! Which routes should the steps have made? A name stands for what the last step says that names it,
//! whether that is a route by header, one for copies, or none.

use gradus_api::rollout::CanaryStep;
use gradus_api::rollout::canary::{SetHeaderRoute, SetMirrorRoute};

/// The routes that steps ask for.
#[derive(Debug, Default)]
pub(super) struct StepRoutes<'w> {
    /// To the new revision by header.
    pub headers: Vec<&'w SetHeaderRoute>,
    /// With copies for the new revision.
    pub mirrors: Vec<&'w SetMirrorRoute>,
}

impl<'w> StepRoutes<'w> {
    /// As these steps leave them.
    pub fn of(steps: &'w [CanaryStep]) -> Self {
        let mut routes = StepRoutes::default();
        for step in steps {
            if let Some(route) = step.set_header_route.as_deref() {
                routes.forget(&route.name);
                routes.headers.extend((!route.r#match.is_empty()).then_some(route));
            }
            if let Some(route) = step.set_mirror_route.as_deref() {
                routes.forget(&route.name);
                routes.mirrors.extend((!route.r#match.is_empty()).then_some(route));
            }
        }
        routes
    }

    fn forget(&mut self, name: &str) {
        self.headers.retain(|known| known.name != name);
        self.mirrors.retain(|known| known.name != name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What | kinds and names of the steps, `-` where they have no match | the routes that are left.
    #[test]
    fn the_last_step_that_names_a_route_decides_what_it_is() {
        let cases = [
            ("one of each", "header a, mirror b", "header a, mirror b"),
            ("in the order of the steps", "header b, header a", "header b, header a"),
            ("taken back", "header a, header b, header a-", "header b"),
            ("taken back by a step of the other kind", "mirror a, header a-", ""),
            ("another kind of the same name", "header a, mirror a", "mirror a"),
            ("made anew", "header a, header b, header a", "header b, header a"),
        ];
        for (what, steps, expected) in cases {
            let step = |text: &str| {
                let (kind, name) = text.split_once(' ').unwrap();
                let (field, one) = match kind {
                    "header" => ("setHeaderRoute", json!([{ "headerName": "x" }])),
                    _ => ("setMirrorRoute", json!([{}])),
                };
                let matches = if name.ends_with('-') { json!([]) } else { one };
                let name = name.trim_end_matches('-');
                serde_json::from_value(json!({ field: { "name": name, "match": matches } }))
            };
            let steps: Vec<CanaryStep> = steps.split(", ").map(|it| step(it).unwrap()).collect();
            let found = StepRoutes::of(&steps);
            let headers = found.headers.iter().map(|route| format!("header {}", route.name));
            let mirrors = found.mirrors.iter().map(|route| format!("mirror {}", route.name));
            let found: Vec<String> = headers.chain(mirrors).collect();
            assert_eq!(found.join(", "), expected, "{what}");
        }
    }
}
