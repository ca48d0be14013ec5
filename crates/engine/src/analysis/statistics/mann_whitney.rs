//! The rank-sum test of Mann and Whitney (1947): do the numbers of one sample tend to be greater than
//! those of another? It assumes nothing of their distribution.

/// Up to so many numbers altogether all ways to deal out the ranks are counted; above, the normal
/// approximation is used, with a margin.
const EXACT: usize = 24;

/// The margin of an approximate p-value, in standard errors of a rate that is measured in
/// [`MARGIN_SERIES`] series: so many comparisons without a difference raise no more false alarms than
/// the p-value says, and not only on average. It covers the error of the approximation as well.
const MARGIN: f64 = 3.0;
/// See [`MARGIN`].
const MARGIN_SERIES: f64 = 10_000.0;

/// What the test looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternative {
    /// The samples differ, in either direction.
    Differs,
    /// The first sample tends to be greater.
    Greater,
    /// The first sample tends to be less.
    Less,
}

impl Alternative {
    /// As conditions name it.
    pub fn of(text: &str) -> Option<Self> {
        match text {
            "two-sided" => Some(Alternative::Differs),
            "greater" => Some(Alternative::Greater),
            "less" => Some(Alternative::Less),
            _ => None,
        }
    }
}

/// How likely ranks as these, or more extreme ones, are if both samples come from the same
/// distribution. 1 where a sample is empty. No number may be NaN.
pub fn mann_whitney(first: &[f64], second: &[f64], alternative: Alternative) -> f64 {
    if first.is_empty() || second.is_empty() {
        return 1.0;
    }
    let ranks = Ranks::of(first, second);
    let (at_least, at_most) = match first.len() + second.len() <= EXACT {
        true => ranks.exact(),
        false => ranks.approximate(),
    };
    match alternative {
        Alternative::Greater => at_least,
        Alternative::Less => at_most,
        Alternative::Differs => (2.0 * at_least.min(at_most)).min(1.0),
    }
}

/// The ranks of both samples together. Equal numbers share the mean of their ranks, so all ranks are
/// doubled to be whole.
struct Ranks {
    doubled: Vec<usize>,
    /// How many numbers the first sample has, and the sum of their doubled ranks.
    count: usize,
    sum: usize,
    /// How many numbers are equal, for each number that occurs more than once.
    ties: Vec<usize>,
}

impl Ranks {
    fn of(first: &[f64], second: &[f64]) -> Self {
        let mut all: Vec<(f64, bool)> = first.iter().map(|number| (*number, true)).collect();
        all.extend(second.iter().map(|number| (*number, false)));
        // Both zeros are equal.
        all.sort_by(|one, other| (one.0 + 0.0).total_cmp(&(other.0 + 0.0)));
        let (mut doubled, mut ties, mut sum) = (Vec::new(), Vec::new(), 0);
        let mut start = 0;
        while start < all.len() {
            let number = all[start].0;
            let equal = all[start..].iter().take_while(|(other, _)| *other == number).count();
            let rank = 2 * start + equal + 1;
            sum +=
                rank * all[start..start + equal].iter().filter(|(_, is_first)| *is_first).count();
            doubled.extend(std::iter::repeat_n(rank, equal));
            ties.extend(Some(equal).filter(|equal| *equal > 1));
            start += equal;
        }
        Ranks { doubled, count: first.len(), sum, ties }
    }

    /// How likely a sum of at least, and of at most, this is: over all choices of ranks.
    fn exact(&self) -> (f64, f64) {
        let most: usize = self.doubled.iter().sum();
        // ways[k][s]: in how many ways k of the ranks so far have the sum s.
        let mut ways = vec![vec![0.0_f64; most + 1]; self.count + 1];
        ways[0][0] = 1.0;
        for (seen, rank) in self.doubled.iter().enumerate() {
            for chosen in (1..=self.count.min(seen + 1)).rev() {
                let (fewer, more) = ways.split_at_mut(chosen);
                let (from, to) = (&fewer[chosen - 1], &mut more[0]);
                for sum in *rank..=most {
                    to[sum] += from[sum - rank];
                }
            }
        }
        let ways = &ways[self.count];
        let all: f64 = ways.iter().sum();
        let at_least: f64 = ways[self.sum..].iter().sum();
        let at_most: f64 = ways[..=self.sum].iter().sum();
        (at_least / all, at_most / all)
    }

    /// The same by the normal distribution, corrected for ties and for whole numbers, and with a
    /// margin.
    fn approximate(&self) -> (f64, f64) {
        let all = self.doubled.len() as f64;
        let first = self.count as f64;
        let second = all - first;
        let sum = self.sum as f64 / 2.0;
        let mean = first * (all + 1.0) / 2.0;
        let cube = |count: f64| count * count * count - count;
        let tied: f64 = self.ties.iter().map(|equal| cube(*equal as f64)).sum();
        let variance = first * second / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)));
        if variance <= 0.0 {
            return (1.0, 1.0);
        }
        let deviation = libm::sqrt(variance);
        let side = |distance: f64| with_margin(above((distance - 0.5) / deviation));
        (side(sum - mean), side(mean - sum))
    }
}

/// A probability that errs on the safe side.
fn with_margin(probability: f64) -> f64 {
    let error = libm::sqrt(probability * (1.0 - probability) / MARGIN_SERIES);
    (probability + MARGIN * error).min(1.0)
}

/// How likely a normal number is greater.
fn above(deviations: f64) -> f64 {
    0.5 * libm::erfc(deviations / std::f64::consts::SQRT_2)
}
