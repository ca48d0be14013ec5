//! How long did updates take? Counted when a stored status shows the end of an attempt: once, by
//! whoever saw it under way.

use gradus_api::names::completion;
use gradus_api::rollout::status::DurationStatus;
use gradus_api::values::Time;
use prometheus::{HistogramOpts, HistogramVec, Registry};

use super::register;

const WHOLE: [f64; 11] = [30., 60., 120., 300., 600., 1200., 1800., 3600., 7200., 14400., 28800.];
const WITHOUT_PEOPLE: [f64; 8] = [30., 60., 120., 300., 600., 900., 1800., 3600.];
const PEOPLE: [f64; 9] = [0., 60., 300., 600., 1800., 3600., 7200., 14400., 28800.];

/// The three histograms, by how an attempt ended.
pub(super) struct Durations {
    whole: HistogramVec,
    without_people: HistogramVec,
    people: HistogramVec,
}

impl Durations {
    pub(super) fn new(registry: &Registry) -> Self {
        let histogram = |name: &str, help: &str, buckets: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            register(registry, HistogramVec::new(options, &["status"]))
        };
        Durations {
            whole: histogram("rollout_duration_seconds", "Seconds an update took.", &WHOLE),
            without_people: histogram(
                "rollout_progression_duration_seconds",
                "Seconds an update took without waiting for people.",
                &WITHOUT_PEOPLE,
            ),
            people: histogram(
                "rollout_manual_pause_duration_seconds",
                "Seconds an update waited for people.",
                &PEOPLE,
            ),
        }
    }

    /// Counts the attempts that have ended between two stored statuses.
    pub(super) fn observe(&self, before: Option<&DurationStatus>, after: Option<&DurationStatus>) {
        let is_same = |one: &DurationStatus| {
            after.is_some_and(|after| after.rollout_started_at == one.rollout_started_at)
        };
        let open = before.filter(|before| before.finished_at.is_none());
        if let Some(superseded) = open.filter(|open| !is_same(open)) {
            let end = after.and_then(|after| after.rollout_started_at);
            self.count(superseded, end, completion::SUPERSEDED);
        }
        let was_over = before.is_some_and(|before| before.finished_at.is_some() && is_same(before));
        if let Some(over) = after.filter(|after| after.finished_at.is_some() && !was_over) {
            let how = over.completion_status.as_deref().unwrap_or(completion::PROMOTED);
            self.count(over, over.finished_at, how);
        }
    }

    fn count(&self, attempt: &DurationStatus, end: Option<Time>, how: &str) {
        let (Some(begin), Some(end)) = (attempt.rollout_started_at, end) else { return };
        let seconds =
            |from: Time| (end.timestamp().as_second() - from.timestamp().as_second()) as f64;
        let waited = attempt.total_manual_pause_duration_seconds.unwrap_or(0) as f64;
        let people = waited + attempt.manual_pause_started_at.map_or(0., seconds);
        let whole = seconds(begin);
        self.whole.with_label_values(&[how]).observe(whole);
        self.without_people.with_label_values(&[how]).observe((whole - people).max(0.));
        self.people.with_label_values(&[how]).observe(people);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn at(second: i64) -> Time {
        Time::new(Timestamp::from_second(second).unwrap())
    }

    fn attempt(began: i64, ended: Option<i64>, how: &str, waited: i64) -> DurationStatus {
        DurationStatus {
            rollout_started_at: Some(at(began)),
            finished_at: ended.map(at),
            completion_status: (!how.is_empty()).then(|| how.to_owned()),
            total_manual_pause_duration_seconds: (waited > 0).then_some(waited),
            ..DurationStatus::default()
        }
    }

    #[test]
    fn an_attempt_is_counted_once_when_its_end_is_stored() {
        let open = attempt(100, None, "", 10);
        let over = attempt(100, Some(160), "Promoted", 10);
        let next = attempt(130, None, "", 0);
        let next_over = attempt(130, Some(140), "Aborted", 0);
        let cases = [
            ("under way", None, Some(&open), vec![]),
            ("its end", Some(&open), Some(&over), vec![("Promoted", 60., 10.)]),
            ("as before", Some(&over), Some(&over), vec![]),
            ("seen only at the end", None, None, vec![]),
            ("taken over", Some(&open), Some(&next), vec![("Superseded", 30., 10.)]),
            ("the next begins", Some(&over), Some(&next), vec![]),
            ("begun and ended unseen", Some(&over), Some(&next_over), vec![("Aborted", 10., 0.)]),
        ];
        for (what, before, after, expected) in cases {
            let durations = Durations::new(&Registry::new());
            durations.observe(before, after);
            for how in ["Promoted", "Superseded", "Aborted"] {
                let counted = durations.whole.with_label_values(&[how]);
                let people = durations.people.with_label_values(&[how]);
                let rest = durations.without_people.with_label_values(&[how]);
                let wanted = expected.iter().find(|(status, ..)| *status == how);
                let (whole, waited) =
                    wanted.map_or((0., 0.), |(_, whole, waited)| (*whole, *waited));
                assert_eq!(
                    counted.get_sample_count(),
                    u64::from(wanted.is_some()),
                    "{what}: {how}"
                );
                let sums =
                    (counted.get_sample_sum(), people.get_sample_sum(), rest.get_sample_sum());
                assert_eq!(sums, (whole, waited, whole - waited), "{what}: {how}");
            }
        }
    }
}
