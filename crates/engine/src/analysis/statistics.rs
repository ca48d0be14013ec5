//! Statistical tests over series of numbers. They know nothing of metrics: numbers in, a probability
//! out. Logarithms are those of `libm`, so that a result is the same on every machine.

mod mann_whitney;
mod sequential;

pub use mann_whitney::{Alternative, mann_whitney};
pub use sequential::{Counts, paired, proportions};

#[cfg(test)]
mod tests;
