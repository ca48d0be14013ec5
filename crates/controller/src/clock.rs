//! What time is it? The only place that knows.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::lease::election::Moment;

/// A clock that never goes back: the time at its start, what has passed since, and how far it was put
/// forward. What passes is tokio's time, so that a paused runtime moves this clock too. Clones are one
/// clock.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Timestamp,
    since: Instant,
    /// How far it was put forward since, in nanoseconds. It only grows.
    ahead: Arc<AtomicI64>,
    /// The clock of the machine; none for a clock that keeps a time of its own.
    wall: Option<fn() -> Timestamp>,
}

impl Clock {
    /// A clock that starts with the machine's time, and follows it and the API server's.
    pub fn system() -> Self {
        let wall: fn() -> Timestamp = Timestamp::now;
        Clock { wall: Some(wall), ..Self::starting_at(wall()) }
    }

    /// A clock that starts with the given time and follows no other.
    pub fn starting_at(start: Timestamp) -> Self {
        Clock { start, since: Instant::now(), ahead: Arc::default(), wall: None }
    }

    /// The same clock, put forward to the given time if it is behind. The API server's time is
    /// what deadlines in stored objects are made of; a machine that lags would wait too long.
    pub fn not_before(self, server: Timestamp) -> Self {
        self.put_forward(server.duration_since(self.now()).max(SignedDuration::ZERO));
        self
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        self.start.checked_add(passed.saturating_add(self.ahead())).unwrap_or(Timestamp::MAX)
    }

    /// The moment to sleep until, so that [`Clock::now`] is at or after the given time. A clock that is
    /// put forward meanwhile reaches it earlier: who sleeps long asks again.
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.start).saturating_sub(self.ahead());
        let ahead = ahead.max(SignedDuration::ZERO).unsigned_abs();
        self.since.checked_add(ahead).unwrap_or_else(|| self.since + FAR)
    }

    /// Compares the clock with the machine's: that one goes on while a virtual machine is suspended,
    /// and a person or NTP may set it.
    pub fn follow_wall(&self) {
        if let Some(wall) = self.wall {
            self.follow(wall(), "machine");
        }
    }

    /// Compares the clock with the time in an answer of the API server.
    pub fn follow_server(&self, server: Timestamp) {
        if self.wall.is_some() {
            self.follow(server, "API server");
        }
    }

    fn follow(&self, other: Timestamp, of: &'static str) {
        if let Some(step) = step(self.now(), other) {
            self.put_forward(step);
            let seconds = step.as_secs();
            tracing::warn!(seconds, of, "clock was behind and is put forward");
        }
    }

    fn put_forward(&self, step: SignedDuration) {
        let nanoseconds = i64::try_from(step.as_nanos()).unwrap_or(i64::MAX);
        let ahead = self.ahead.load(Ordering::Relaxed).saturating_add(nanoseconds.max(0));
        self.ahead.fetch_max(ahead, Ordering::Relaxed);
    }

    fn ahead(&self) -> SignedDuration {
        SignedDuration::from_nanos(self.ahead.load(Ordering::Relaxed))
    }
}

/// How far behind another clock may be seen before ours is put forward. A `Date` of HTTP has whole
/// seconds, and clocks that are kept in step by NTP differ by less.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

/// How far a clock that shows `own` is to be put forward for one that shows `other`. Never back: what
/// was due stays due, and a deadline that has passed stays so.
fn step(own: Timestamp, other: Timestamp) -> Option<SignedDuration> {
    let behind = other.duration_since(own);
    (TOLERANCE < behind).then_some(behind)
}

/// Two clocks for leader election, which must not rest on either alone.
#[derive(Clone, Debug)]
pub struct Stopwatch(Hands);

#[derive(Clone, Debug)]
enum Hands {
    /// Those of this machine, since it was started.
    Machine(Instant),
    Moved(MovedHands),
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Stopwatch(Hands::Machine(Instant::now()))
    }

    /// A stopwatch that somebody else moves, as simulations do.
    pub fn moved(moment: Moment) -> (Self, MovedHands) {
        let hands = MovedHands(Arc::new(Mutex::new(Shown { moment, wakes: None })));
        (Stopwatch(Hands::Moved(hands.clone())), hands)
    }

    /// The moment now, on both clocks.
    pub fn moment(&self) -> Moment {
        match &self.0 {
            Hands::Machine(since) => Moment { elapsed: since.elapsed(), wall: Timestamp::now() },
            Hands::Moved(hands) => hands.with(|shown| shown.moment),
        }
    }

    /// Waits until the monotonic clock reaches a time.
    pub async fn sleep_until(&self, elapsed: Duration) {
        match &self.0 {
            Hands::Machine(since) => {
                let at = since.checked_add(elapsed).unwrap_or_else(|| *since + FAR);
                tokio::time::sleep_until(at).await;
            }
            Hands::Moved(hands) => std::future::poll_fn(|_| hands.reaches(elapsed)).await,
        }
    }
}

/// The hands of a stopwatch that somebody else moves. Whoever moves them polls the sleepers again.
#[derive(Clone, Debug)]
pub struct MovedHands(Arc<Mutex<Shown>>);

#[derive(Debug)]
struct Shown {
    moment: Moment,
    wakes: Option<Duration>,
}

impl MovedHands {
    /// Shows another moment.
    pub fn show(&self, moment: Moment) {
        self.with(|shown| shown.moment = moment);
    }

    /// Until when somebody sleeps; `None` if nobody does.
    pub fn wakes(&self) -> Option<Duration> {
        self.with(|shown| shown.wakes)
    }

    fn reaches(&self, elapsed: Duration) -> Poll<()> {
        self.with(|shown| {
            let is_reached = elapsed <= shown.moment.elapsed;
            shown.wakes = (!is_reached).then_some(elapsed);
            if is_reached { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Shown) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// As far ahead as any sleep needs to reach; who wakes then looks again.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

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
        tokio::time::advance(Duration::from_secs(1_800)).await;
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
        assert_eq!(clock.clone().not_before(at(900)).now(), at(1_000));
        assert_eq!(clock.not_before(at(1_007)).now(), at(1_007));
    }

    #[test]
    fn a_clock_steps_forward_when_it_is_more_than_a_second_behind() {
        let cases = [
            ("the same", 0, None),
            ("a little behind", 999, None),
            ("a whole second, as a Date may be off", 1_000, None),
            ("more", 1_001, Some(1_001)),
            ("an hour suspended", 3_600_000, Some(3_600_000)),
            ("years", 90_000_000_000, Some(90_000_000_000)),
            ("ahead of it: never back", -1, None),
            ("far ahead of it", -3_600_000, None),
        ];
        for (what, millis, expected) in cases {
            let other = at(1_000) + SignedDuration::from_millis(millis);
            let expected = expected.map(SignedDuration::from_millis);
            assert_eq!(step(at(1_000), other), expected, "{what}");
        }
        assert!(step(Timestamp::MIN, Timestamp::MAX).is_some(), "whatever it is told");
    }

    /// A clock of a machine whose clock shows the given time.
    fn of_machine(wall: fn() -> Timestamp) -> Clock {
        Clock { wall: Some(wall), ..Clock::starting_at(at(1_000)) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspended_machine_finds_its_deadlines_due() {
        let clock = of_machine(|| at(5_000));
        let shared = clock.clone();
        assert!(tokio::time::Instant::now() < clock.instant(at(4_000)));
        clock.follow_wall();
        assert_eq!(clock.now(), at(5_000));
        assert_eq!(shared.now(), at(5_000), "all who hold it see the same time");
        assert!(clock.instant(at(4_000)) <= tokio::time::Instant::now(), "it is due");
        tokio::time::sleep_until(clock.instant(at(5_060))).await;
        assert_eq!(clock.now(), at(5_060), "and later ones at their instant");
        clock.follow_wall();
        assert_eq!(clock.now(), at(5_060), "a clock that was set back moves nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn time_never_goes_back_whatever_other_clocks_show() {
        let clock = of_machine(|| at(1_500));
        let mut last = clock.now();
        for server in [900, 1_001, 1_400, 1_200, 2_000, 1_999, 0, 3_000] {
            clock.follow_wall();
            clock.follow_server(at(server));
            tokio::time::advance(Duration::from_millis(10)).await;
            assert!(last < clock.now(), "{server}");
            assert!(at(server) <= clock.now() + TOLERANCE, "{server}");
            last = clock.now();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_with_a_time_of_its_own_follows_nobody() {
        let clock = Clock::starting_at(at(1_000));
        clock.follow_wall();
        clock.follow_server(at(9_000));
        assert_eq!(clock.now(), at(1_000));
    }
}
