//! Who may act on a rollout at any moment, and what do they do? People with commands, an
//! autoscaler, a pipeline with the next image, and images that fall over a few times before they
//! stand.

use gradus_simkube::behave::{Behaviour, Behaviours, Crash};

use crate::faults::Chance;
use crate::person::Action;

/// Nobody acts more often than this in one run: it must be able to end.
const MOST_DEEDS: u64 = 5;
/// Of a hundred turns, at how many somebody acts.
const AT_A_TURN: u64 = 1;
/// Of a hundred moments at which everybody waits, at how many somebody acts.
const AT_REST: u64 = 30;
/// The images a pipeline brings: few, so that it also goes back to one.
const IMAGES: u64 = 3;
/// Of so many seeds one has people who act twice at the same moment.
const HASTY: u64 = 4;
/// An autoscaler goes from none to so many.
const MOST_REPLICAS: u64 = 8;

/// What a deed of somebody who is not part of the scenario is called.
pub(crate) fn name(deed: &Action, is_updating: bool) -> &'static str {
    match deed {
        Action::Scale(_) => "autoscaler",
        Action::Behave(_) => "pods flap",
        Action::SetImage(_) if is_updating => "new revision in mid-flight",
        Action::SetImage(_) => "new revision at rest",
        Action::Run(_) | Action::Experiment(_) => "verdict",
        _ => "command",
    }
}

/// Acts at moments that a seed draws.
#[derive(Clone, Debug)]
pub(crate) struct Meddler {
    chance: Chance,
    left: u64,
    usual: Behaviours,
    /// Draws what is done at the same moment as something else; none where nobody is hasty.
    haste: Option<Chance>,
    /// What is done before the next turn, whatever chance says.
    at_once: Option<Action>,
    /// Somebody has halted the rollout, and must let it go again before the end.
    has_halted: bool,
}

impl Meddler {
    /// The meddler of a seed, for a scenario whose images usually behave like this.
    pub(crate) fn new(seed: u64, usual: Behaviours) -> Self {
        let mut chance = Chance::new(seed ^ 0x3edd);
        let left = 1 + chance.below(MOST_DEEDS);
        // A stream of its own: the other seeds stay as they were.
        let haste = (seed % HASTY == HASTY - 1).then(|| Chance::new(seed ^ 0x7a57));
        Meddler { chance, left, usual, haste, at_once: None, has_halted: false }
    }

    /// What somebody does before the next turn, if anything.
    pub(crate) fn before_a_turn(&mut self) -> Option<Action> {
        self.draw(AT_A_TURN)
    }

    /// What somebody does while everybody waits, if anything.
    pub(crate) fn at_rest(&mut self) -> Option<Action> {
        self.draw(AT_REST)
    }

    /// What must be done before the end: a rollout that is halted is let go, once, and one that
    /// waits for a verdict gets it.
    pub(crate) fn last_word(&mut self, verdict: Option<Action>) -> Option<Action> {
        (self.left, self.at_once) = (0, None);
        std::mem::take(&mut self.has_halted).then_some(Action::Resume).or(verdict)
    }

    fn draw(&mut self, percent: u64) -> Option<Action> {
        if let Some(deed) = self.at_once.take() {
            self.has_halted |= deed == Action::Pause;
            return Some(deed);
        }
        if self.left == 0 || !self.chance.percent(percent) {
            return None;
        }
        self.left -= 1;
        let deed = match self.chance.below(11) {
            0 => Action::Promote,
            1 => Action::PromoteFull,
            2 => Action::Abort,
            3 => Action::Retry,
            4 => Action::Pause,
            5 => Action::Resume,
            6 => Action::Scale(u32::try_from(self.chance.below(MOST_REPLICAS + 1)).unwrap_or(1)),
            7 => Action::Behave(self.unsteady()),
            8 => Action::Restart,
            _ => Action::SetImage(format!("example.com/web:next-{}", self.chance.below(IMAGES))),
        };
        self.at_once = self.haste.as_mut().and_then(|chance| beside(chance, &deed));
        self.has_halted |= deed == Action::Pause;
        Some(deed)
    }

    /// Every new pod is ready for a moment, falls over a few times, and then stands.
    fn unsteady(&mut self) -> Behaviours {
        let seconds = self.chance.below(20) as f64;
        let times = u32::try_from(1 + self.chance.below(3)).ok();
        self.usual.clone().first(Behaviour {
            start_up_seconds: 0.5 * self.chance.below(8) as f64,
            crash: Some(Crash::after(seconds, times)),
            ..Behaviour::default()
        })
    }
}

/// What somebody else does at the same moment, mostly: an abort or a halt beside a new number of
/// replicas, another image beside a halt, the image before beside an image.
fn beside(chance: &mut Chance, deed: &Action) -> Option<Action> {
    let image = Action::SetImage(format!("example.com/web:next-{}", chance.below(IMAGES)));
    let size = u32::try_from(chance.below(MOST_REPLICAS + 1)).unwrap_or(1);
    match (deed, chance.below(4)) {
        (Action::Scale(_), 0 | 1) => Some(Action::Abort),
        (Action::Scale(_), 2) => Some(Action::Pause),
        (Action::Pause, 0 | 1) | (Action::SetImage(_) | Action::Promote, 0) => Some(image),
        (Action::Pause | Action::Abort | Action::Retry | Action::SetImage(_), 2) => {
            Some(Action::Scale(size))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_can_be_done_is_done_by_some_seed_and_never_too_often() {
        let mut seen = Vec::new();
        for seed in 0..200 {
            let mut meddler = Meddler::new(seed, Behaviours::default());
            let mut deeds: Vec<Action> = (0..1_000).filter_map(|_| meddler.at_rest()).collect();
            deeds.extend(meddler.last_word(None));
            let most = if meddler.haste.is_some() { 11 } else { 6 };
            assert!((1..=most).contains(&deeds.len()), "seed {seed}: {}", deeds.len());
            if let Some(halted) = deeds.iter().position(|deed| *deed == Action::Pause) {
                assert!(deeds[halted..].contains(&Action::Resume), "seed {seed}");
            }
            let name = |deed: &Action| {
                let text = format!("{deed:?}");
                text.split(['(', '{']).next().unwrap_or_default().to_owned()
            };
            seen.extend(deeds.iter().map(name));
        }
        seen.sort();
        seen.dedup();
        let all = "Abort Behave Pause Promote PromoteFull Restart Resume Retry Scale SetImage";
        assert_eq!(seen.join(" "), all);
    }
}
