//! How much one run may use. A condition comes from users, and the controller evaluates many.

use crate::error::Fault;

/// Steps of one run: about a second of a slow machine.
const MOST_STEPS: usize = 10_000_000;

/// Elements of all lists and maps that one run makes; the original has the same limit.
const MOST_ITEMS: usize = 1_000_000;

/// Bytes of all texts that one run makes.
const MOST_TEXT: usize = 16 * 1024 * 1024;

/// What a run may still use.
pub(crate) struct Budget {
    steps: usize,
    items: usize,
    text: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Budget { steps: MOST_STEPS, items: MOST_ITEMS, text: MOST_TEXT }
    }

    /// Takes so many steps.
    pub(crate) fn steps(&mut self, count: usize) -> Result<(), Fault> {
        let left = self.steps.checked_sub(count);
        let too_many = || Fault::limit(format!("more than {MOST_STEPS} steps"));
        self.steps = left.ok_or_else(too_many)?;
        Ok(())
    }

    /// Makes so many elements.
    pub(crate) fn items(&mut self, count: usize) -> Result<(), Fault> {
        let left = self.items.checked_sub(count).filter(|left| *left > 0);
        self.items = left.ok_or_else(|| Fault::limit("memory budget exceeded"))?;
        Ok(())
    }

    /// Makes a text of so many bytes.
    pub(crate) fn text(&mut self, bytes: usize) -> Result<(), Fault> {
        let left = self.text.checked_sub(bytes);
        self.text = left.ok_or_else(|| Fault::limit("memory budget exceeded"))?;
        self.steps(bytes / 64)
    }
}
