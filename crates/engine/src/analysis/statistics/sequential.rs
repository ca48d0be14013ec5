//! Tests that may be looked at after every measurement: mixture sequential probability ratio tests
//! (mSPRT), with the always-valid p-value of Johari, Koomen, Pekelis and Walsh, "Always Valid
//! Inference: Continuous Monitoring of A/B Tests", Operations Research 70 (2022).
//!
//! A likelihood ratio against "the canary is no worse" has a mean of at most 1 whenever that is true,
//! so by Ville's inequality it ever exceeds 1/α with a probability of at most α, however often it is
//! looked at and whenever one stops. Ratios for several sizes of the effect are averaged, so nobody
//! has to name one.

/// Odds ratios of errors that are looked for, with equal weights: from a tenth more to thirtyfold.
const ODDS: [f64; 8] = [1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0];

/// Probabilities that the first number of a pair is the greater one, with equal weights.
const CHANCES: [f64; 6] = [0.55, 0.6, 0.7, 0.8, 0.9, 0.99];

/// What was counted in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Errors and requests of the revision that is judged.
    pub first: (u64, u64),
    /// Errors and requests of the one it is compared with.
    pub second: (u64, u64),
}

/// The always-valid p-value of "the first has no more errors per request than the second".
///
/// Each interval is judged given its number of errors, which leaves nothing to be known about the
/// rate of errors: it may change from one interval to the next, as long as both share it. Requests
/// fail independently of each other.
pub fn proportions(intervals: impl IntoIterator<Item = Counts>) -> f64 {
    let mut ratios = [0.0; ODDS.len()];
    let mut least = 1.0_f64;
    for counts in intervals {
        for (ratio, odds) in ratios.iter_mut().zip(ODDS) {
            *ratio += conditional(counts, odds);
        }
        least = least.min(1.0 / mean(&ratios));
    }
    least
}

/// The always-valid p-value of "the first number of a pair is not the greater one more often than
/// the second". Pairs of equal numbers say nothing.
pub fn paired(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let mut ratios = [0.0; CHANCES.len()];
    let mut least = 1.0_f64;
    for (first, second) in pairs {
        for (ratio, chance) in ratios.iter_mut().zip(CHANCES) {
            *ratio += match first.partial_cmp(&second) {
                Some(std::cmp::Ordering::Greater) => libm::log(2.0 * chance),
                Some(std::cmp::Ordering::Less) => libm::log(2.0 * (1.0 - chance)),
                _ => 0.0,
            };
        }
        least = least.min(1.0 / mean(&ratios));
    }
    least
}

/// The mean of ratios that are given by their logarithms; never infinite, so that 1 through it is a
/// number.
fn mean(logarithms: &[f64]) -> f64 {
    let sum: f64 = logarithms.iter().map(|logarithm| libm::exp(logarithm.min(700.0))).sum();
    sum / logarithms.len() as f64
}

/// The logarithm of the likelihood ratio of one interval, given how many errors it has in all: with
/// these odds Fisher's noncentral hypergeometric distribution, without them the central one.
pub(super) fn conditional(counts: Counts, odds: f64) -> f64 {
    let ((errors, requests), (others, other_requests)) = (counts.first, counts.second);
    if requests == 0 || other_requests == 0 || errors > requests || others > other_requests {
        return 0.0;
    }
    let all = errors + others;
    if all == 0 || all == requests + other_requests {
        return 0.0;
    }
    errors as f64 * libm::log(odds) - moment(requests, other_requests, all, odds)
}

/// The logarithm of the mean of `odds` to the power of the errors among `requests`, if `all` errors
/// are dealt out over both. Its terms rise to one peak and fall again; the sum goes from the peak to
/// both sides for as long as terms matter.
fn moment(requests: u64, others: u64, all: u64, odds: f64) -> f64 {
    let (least, most) = (all.saturating_sub(others), all.min(requests));
    // The term of `errors` through the one before it.
    let growth = |errors: u64| {
        let up = (requests - errors + 1) as f64 * (all - errors + 1) as f64 * odds;
        up / (errors as f64 * (others + errors - all) as f64)
    };
    let (mut low, mut high) = (least, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if growth(middle) >= 1.0 { low = middle } else { high = middle - 1 }
    }
    let peak = low;
    let mut sum = 1.0;
    let mut term = 1.0;
    for errors in peak + 1..=most {
        term *= growth(errors);
        sum += term;
        if term < NEGLIGIBLE {
            break;
        }
    }
    term = 1.0;
    for errors in (least + 1..=peak).rev() {
        term /= growth(errors);
        sum += term;
        if term < NEGLIGIBLE {
            break;
        }
    }
    let hypergeometric =
        choices(requests, peak) + choices(others, all - peak) - choices(requests + others, all);
    hypergeometric + peak as f64 * libm::log(odds) + libm::log(sum)
}

/// Terms below this share of the greatest do not change the sum.
const NEGLIGIBLE: f64 = 1e-18;

/// The logarithm of the number of ways to choose some of many.
fn choices(many: u64, some: u64) -> f64 {
    let factorial = |number: u64| libm::lgamma(number as f64 + 1.0);
    factorial(many) - factorial(some) - factorial(many - some)
}
