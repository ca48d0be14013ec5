//! How are many runs told in the time of fewer? Abreast: each takes one step, then the next one
//! does. A run goes through more code than a core keeps close to itself; what one has fetched, and
//! which way its branches go, the next finds there.

use super::{Outcome, Prepared, Run};
use crate::faults::Faults;
use crate::subject::Subject;
use crate::trace::Trace;

/// So many runs go abreast. What they hold must stay close to the core as well.
pub const ABREAST: usize = 16;

/// Runs a scenario once for each of these faults, in their order. Every run is as it would be
/// alone.
pub fn simulate_each(
    prepared: &Prepared,
    faults: impl IntoIterator<Item = Faults>,
) -> impl Iterator<Item = (Faults, Outcome)> {
    let mut faults = faults.into_iter();
    let rows = std::iter::from_fn(move || {
        let row: Vec<Faults> = faults.by_ref().take(ABREAST).collect();
        (!row.is_empty()).then(|| {
            let outcomes = (prepared.subject.simulate_row)(prepared, &row);
            row.into_iter().zip(outcomes)
        })
    });
    rows.flatten()
}

/// Runs a scenario about objects of this kind, once for each of these faults.
pub(crate) fn row<S: Subject>(prepared: &Prepared, faults: &[Faults]) -> Vec<Outcome> {
    let begun = faults.iter().map(|faults| Run::<S>::new(prepared, faults, Trace::hashed()));
    let mut runs: Vec<Run<'_, S>> = begun.collect();
    loop {
        let mut is_over = true;
        for run in &mut runs {
            is_over &= !run.advance();
        }
        if is_over {
            return runs.into_iter().map(Run::outcome).collect();
        }
    }
}
