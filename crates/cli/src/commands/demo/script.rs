//! What do the people of the demo do, and when? A little scenario per rollout, again and again.

use gradus_lab::person::Action;
use gradus_lab::sight::Sight;
use jiff::{SignedDuration, Timestamp};

/// The scenario of one rollout.
pub struct Script {
    /// Whose.
    pub rollout: &'static str,
    beats: Vec<Beat>,
    next: usize,
    /// Since when the next beat's moment has lasted.
    since: Option<Timestamp>,
    /// Since when it has not come although nothing moves.
    stuck: Option<Timestamp>,
}

/// How long a scenario waits for a moment that does not come: somebody else has taken a hand in it.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// When a moment has lasted for a while, a person acts.
struct Beat {
    moment: Moment,
    lasts: SignedDuration,
    action: Action,
}

/// Where a rollout stands when a person acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Healthy,
    Paused,
    Progressing,
    Degraded,
}

/// The scenarios of the sample rollouts.
pub fn scripts() -> Vec<Script> {
    use Moment::{Degraded, Healthy, Paused, Progressing};
    let image = |image: &str| Action::SetImage(image.to_owned());
    vec![
        Script::new(
            "checkout",
            vec![
                Beat::new(Healthy, 1, image("nginx:1.28")),
                Beat::new(Paused, 2, Action::Promote),
                Beat::new(Paused, 2, Action::Promote),
                Beat::new(Healthy, 3, image("nginx:1.27")),
                Beat::new(Paused, 2, Action::Promote),
                Beat::new(Paused, 2, Action::PromoteFull),
            ],
        ),
        Script::new(
            "cart",
            vec![
                Beat::new(Healthy, 4, image("nginx:1.28")),
                Beat::new(Healthy, 4, image("nginx:1.27")),
            ],
        ),
        Script::new(
            "search",
            vec![
                Beat::new(Healthy, 2, image("nginx:1.28")),
                Beat::new(Healthy, 5, image("nginx:1.27")),
            ],
        ),
        Script::new(
            "colors",
            vec![
                Beat::new(Healthy, 3, image("argoproj/rollouts-demo:green")),
                Beat::new(Paused, 2, Action::Promote),
                Beat::new(Healthy, 3, image("argoproj/rollouts-demo:bad-red")),
                Beat::new(Progressing, 5, Action::Abort),
                Beat::new(Degraded, 3, image("argoproj/rollouts-demo:blue")),
                Beat::new(Paused, 2, Action::Promote),
            ],
        ),
        shop(),
        payments(),
    ]
}

/// Its pauses last two minutes; nobody here has the patience.
fn shop() -> Script {
    use Moment::{Degraded, Healthy, Paused};
    let image = |image: &str| Action::SetImage(image.to_owned());
    Script::new(
        "shop",
        vec![
            Beat::new(Healthy, 2, image("nginx:1.28")),
            Beat::new(Paused, 3, Action::Promote),
            Beat::new(Paused, 3, Action::Promote),
            Beat::new(Healthy, 4, image("nginx:1.27")),
            Beat::new(Paused, 3, Action::Abort),
            Beat::new(Degraded, 3, Action::Retry),
            Beat::new(Paused, 2, Action::Promote),
            Beat::new(Paused, 3, Action::Promote),
        ],
    )
}

/// Its analyses ask the metric server of the embedded cluster. One image fails.
fn payments() -> Script {
    use Moment::{Degraded, Healthy, Paused};
    let image = |image: &str| Action::SetImage(image.to_owned());
    Script::new(
        "payments",
        vec![
            Beat::new(Healthy, 3, image("nginx:1.28")),
            Beat::new(Paused, 3, Action::Promote),
            Beat::new(Healthy, 3, image("nginx:1.29")),
            Beat::new(Degraded, 4, image("nginx:1.27")),
            Beat::new(Paused, 3, Action::Promote),
        ],
    )
}

impl Beat {
    fn new(moment: Moment, seconds: i64, action: Action) -> Self {
        Beat { moment, lasts: SignedDuration::from_secs(seconds), action }
    }
}

impl Script {
    fn new(rollout: &'static str, beats: Vec<Beat>) -> Self {
        Script { rollout, beats, next: 0, since: None, stuck: None }
    }

    /// What the person does now, seeing the rollout like this.
    pub fn look(&mut self, sight: &Sight<'_>, now: Timestamp) -> Option<Action> {
        let beat = &self.beats[self.next];
        if !beat.moment.holds(sight) {
            self.since = None;
            self.find_thread(sight, now);
            return None;
        }
        self.stuck = None;
        let since = *self.since.get_or_insert(now);
        if now < since + beat.lasts {
            return None;
        }
        let action = beat.action.clone();
        self.next = (self.next + 1) % self.beats.len();
        self.since = None;
        Some(action)
    }

    /// The same for the lab, where a person takes a while for each beat.
    #[cfg(test)]
    pub fn steps(&self) -> Vec<gradus_lab::scenario::Step> {
        use gradus_lab::scenario::Step;
        use gradus_lab::sight::When;
        let mut at = SignedDuration::ZERO;
        let step = |beat: &Beat| {
            at += SignedDuration::from_secs(20);
            let phase = format!("{:?}", beat.moment);
            let when = When { phase: Some(phase), ..When::default() };
            let r#do = Some(beat.action.clone());
            Step { at: Some(at), when: Some(when), r#do, ..Step::default() }
        };
        self.beats.iter().map(step).collect()
    }

    /// Goes on with the next beat that fits, when the one that was due does not come.
    fn find_thread(&mut self, sight: &Sight<'_>, now: Timestamp) {
        if Moment::Progressing.holds(sight) {
            self.stuck = None;
            return;
        }
        let stuck = *self.stuck.get_or_insert(now);
        if stuck + PATIENCE <= now {
            let count = self.beats.len();
            let mut later = (1..count).map(|ahead| (self.next + ahead) % count);
            self.next = later.find(|at| self.beats[*at].moment.holds(sight)).unwrap_or(self.next);
            self.stuck = None;
        }
    }
}

impl Moment {
    fn holds(self, sight: &Sight<'_>) -> bool {
        let phase = match self {
            Moment::Healthy => "Healthy",
            Moment::Paused => "Paused",
            Moment::Progressing => "Progressing",
            Moment::Degraded => "Degraded",
        };
        // After a promote the phase stays for a moment, but the pause is no longer there.
        let pauses = sight.status["pauseConditions"].as_array();
        let is_paused = pauses.is_some_and(|pauses| !pauses.is_empty());
        sight.is_observed()
            && sight.status["phase"] == phase
            && (self != Moment::Paused || is_paused)
    }
}

/// The action in the words of the demo.
pub fn described(action: &Action) -> String {
    match action {
        Action::SetImage(image) => format!("a person sets the image {image}"),
        Action::Promote => "a person promotes it".to_owned(),
        Action::PromoteFull => "a person promotes it fully".to_owned(),
        Action::Abort => "a person aborts it".to_owned(),
        Action::Retry => "a person tries it again".to_owned(),
        other => format!("a person does {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn look(script: &mut Script, status: &Value, second: i64) -> Option<Action> {
        let sight = Sight { generation: 1, revision: None, spec: &Value::Null, status };
        script.look(&sight, at(second))
    }

    #[test]
    fn a_person_acts_when_a_moment_has_lasted_and_begins_again_at_the_end() {
        let beats = vec![Beat::new(Moment::Paused, 2, Action::Promote)];
        let mut script = Script::new("web", beats);
        let paused = json!({
            "phase": "Paused", "observedGeneration": "1",
            "pauseConditions": [{"reason": "CanaryPauseStep"}],
        });
        let promoted = json!({"phase": "Paused", "observedGeneration": "1"});
        let cases = [
            ("it begins", &paused, 0, None),
            ("not long enough", &paused, 1, None),
            ("now", &paused, 2, Some(Action::Promote)),
            ("the phase alone is no pause", &promoted, 10, None),
            ("and again: it begins", &paused, 11, None),
            ("and again: now", &paused, 13, Some(Action::Promote)),
        ];
        for (what, status, second, expected) in cases {
            assert_eq!(look(&mut script, status, second), expected, "{what}");
        }
    }

    #[test]
    fn a_scenario_goes_on_although_somebody_else_promoted() {
        let beats = vec![
            Beat::new(Moment::Paused, 0, Action::Promote),
            Beat::new(Moment::Degraded, 0, Action::Retry),
            Beat::new(Moment::Healthy, 0, Action::Abort),
        ];
        let mut script = Script::new("web", beats);
        let healthy = json!({"phase": "Healthy", "observedGeneration": "1"});
        let cases = [
            ("it waits for its pause", 0, None),
            ("for a while", 9, None),
            ("then it finds another beat", 10, None),
            ("and goes on from there", 11, Some(Action::Abort)),
        ];
        for (what, second, expected) in cases {
            assert_eq!(look(&mut script, &healthy, second), expected, "{what}");
        }
    }

    #[test]
    fn a_status_about_an_older_spec_is_not_acted_on() {
        let beats = vec![Beat::new(Moment::Healthy, 0, Action::Abort)];
        let mut script = Script::new("web", beats);
        let old = json!({"phase": "Healthy", "observedGeneration": "0"});
        assert_eq!(look(&mut script, &old, 0), None);
    }
}
