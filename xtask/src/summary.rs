//! How did a task end, in numbers?

use std::{fmt, iter::Sum, ops::AddAssign};

/// What a task checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Summary {
    /// One check, by its result.
    pub fn of(passed: bool) -> Self {
        Self { passed: usize::from(passed), failed: usize::from(!passed), skipped: 0 }
    }

    /// A summary as it is printed; `None` for any other line.
    pub fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(", ");
        let mut count = |what: &str| parts.next()?.strip_suffix(what)?.parse().ok();
        Some(Self {
            passed: count(" passed")?,
            failed: count(" failed")?,
            skipped: count(" skipped")?,
        })
    }

    /// One check that could not be made here.
    pub fn skipped() -> Self {
        Self { skipped: 1, ..Self::default() }
    }
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Sum for Summary {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        let mut total = Self::default();
        parts.for_each(|part| total += part);
        total
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[test]
fn a_summary_is_read_as_it_is_printed() {
    let summary = Summary { passed: 12, failed: 1, skipped: 0 };
    assert_eq!(Summary::parse(&summary.to_string()), Some(summary));
    assert_eq!(Summary::parse("12 passed"), None);
}
