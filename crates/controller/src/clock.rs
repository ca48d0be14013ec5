//! What time is it? The only place that knows.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::lease::election::Moment;

/// A clock that never goes back: the time at its start plus what has passed since. What passes is
/// tokio's time, so that a paused runtime moves this clock too.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Timestamp,
    since: Instant,
}

impl Clock {
    /// A clock that starts with the machine's time.
    pub fn system() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// A clock that starts with the given time.
    pub fn starting_at(start: Timestamp) -> Self {
        Clock { start, since: Instant::now() }
    }

    /// The same clock, put forward to the given time if it is behind. The API server's time is
    /// what deadlines in stored objects are made of; a machine that lags would wait too long.
    pub fn not_before(self, server: Timestamp) -> Self {
        if self.now() < server { Self::starting_at(server) } else { self }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        self.start.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// The moment to sleep until, so that [`Clock::now`] is at or after the given time.
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.start).max(SignedDuration::ZERO);
        let ahead = ahead.unsigned_abs();
        self.since.checked_add(ahead).unwrap_or_else(|| self.since + FAR)
    }
}

/// Two clocks for leader election, which must not rest on either alone.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    since: Instant,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Stopwatch { since: Instant::now() }
    }

    /// The moment now, on both clocks.
    pub fn moment(&self) -> Moment {
        Moment { elapsed: self.since.elapsed(), wall: Timestamp::now() }
    }

    /// Waits until the monotonic clock reaches a time.
    pub async fn sleep_until(&self, elapsed: std::time::Duration) {
        let at = self.since.checked_add(elapsed).unwrap_or_else(|| self.since + FAR);
        tokio::time::sleep_until(at).await;
    }
}

/// As far ahead as any sleep needs to reach; who wakes then looks again.
const FAR: std::time::Duration = std::time::Duration::from_secs(30 * 365 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_moves_with_paused_time() {
        let clock = Clock::starting_at(at(1_000));
        assert_eq!(clock.now(), at(1_000));
        tokio::time::advance(std::time::Duration::from_secs(1_800)).await;
        assert_eq!(clock.now(), at(2_800));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleeper_wakes_at_the_instant_it_asked_for() {
        let clock = Clock::starting_at(at(1_000));
        for deadline in [at(1_060), at(10), at(4_000)] {
            tokio::time::sleep_until(clock.instant(deadline)).await;
            assert!(deadline <= clock.now());
        }
        assert_eq!(clock.now(), at(4_000), "and not later");
        assert!(clock.instant(Timestamp::MAX) > tokio::time::Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_later_server_moves_the_clock() {
        let clock = Clock::starting_at(at(1_000));
        assert_eq!(clock.not_before(at(900)).now(), at(1_000));
        assert_eq!(clock.not_before(at(1_007)).now(), at(1_007));
    }
}
