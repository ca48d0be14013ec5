//! How much of a plugin's output is taken in a second. One that floods is not read faster: it waits for
//! its pipe, and nobody else for us.

use std::time::Duration;

use tokio::time::Instant;

/// What is taken in a second of what a plugin prints, in bytes. Most of it would be dropped anyway.
pub(super) const PRINTED: usize = 1 << 20;
/// What is taken in a second of what it answers; the longest answer is 4 MiB.
pub(super) const ANSWERED: usize = 16 << 20;

const SECOND: Duration = Duration::from_secs(1);

/// How much was taken of one stream.
#[derive(Debug)]
pub(super) struct Pace {
    limit: usize,
    since: Instant,
    taken: usize,
}

impl Pace {
    /// At most so many bytes in a second.
    pub fn new(limit: usize) -> Self {
        Pace { limit, since: Instant::now(), taken: 0 }
    }

    /// So many bytes were taken.
    pub fn took(&mut self, bytes: usize) {
        if self.since.elapsed() >= SECOND {
            (self.since, self.taken) = (Instant::now(), 0);
        }
        self.taken = self.taken.saturating_add(bytes);
    }

    /// When more may be taken; `None` for now.
    pub fn pause(&self) -> Option<Instant> {
        let end = self.since + SECOND;
        (self.taken >= self.limit && Instant::now() < end).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_taken_at_its_pace() {
        let (mut pace, began, mut taken) = (Pace::new(1000), Instant::now(), 0);
        while began.elapsed() < Duration::from_millis(9_500) {
            match pace.pause() {
                Some(end) => tokio::time::sleep_until(end).await,
                None => {
                    pace.took(100);
                    taken += 100;
                }
            }
        }
        assert_eq!(taken, 10 * 1000);
    }
}
