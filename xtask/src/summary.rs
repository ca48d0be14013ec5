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
