//! Functions of the samples of a range, as Prometheus extrapolates them.

use crate::plan::OverTime;
use crate::{Millis, Sample};

/// The range that samples are of.
pub struct Window {
    pub end: Millis,
    pub range: Millis,
}

/// The value of a function over samples; none where they are too few.
pub fn over_time(function: OverTime, samples: &[Sample], window: &Window) -> Option<f64> {
    let values = || samples.iter().map(|sample| sample.value);
    #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 samples")]
    let count = samples.len() as f64;
    match function {
        OverTime::Rate => Some(increase(samples, window, true)? / seconds(window.range)),
        OverTime::Increase => increase(samples, window, true),
        OverTime::Delta => increase(samples, window, false),
        OverTime::Irate => irate(samples),
        OverTime::Avg => Some(values().sum::<f64>() / count),
        OverTime::Min => values().reduce(f64::min),
        OverTime::Max => values().reduce(f64::max),
        OverTime::Sum => Some(values().sum()),
        OverTime::Count => Some(count),
        OverTime::Last => values().next_back(),
    }
}

/// How much the samples grow over the whole window: what was seen, extrapolated to its borders, but
/// by no more than half an average distance where a border is far, and of a counter not below zero.
fn increase(samples: &[Sample], window: &Window, is_counter: bool) -> Option<f64> {
    let [first, .., last] = samples else { return None };
    let mut grown = last.value - first.value;
    if is_counter {
        let resets = samples.windows(2).filter(|pair| pair[1].value < pair[0].value);
        grown += resets.map(|pair| pair[0].value).sum::<f64>();
    }
    let sampled = seconds(last.at - first.at);
    #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 samples")]
    let average = sampled / (samples.len() - 1) as f64;
    let threshold = average * 1.1;
    let border = |distance: f64| if distance >= threshold { average / 2.0 } else { distance };
    let mut to_start = border(seconds(first.at - (window.end - window.range)));
    if is_counter && grown > 0.0 && first.value >= 0.0 {
        to_start = to_start.min(sampled * (first.value / grown));
    }
    let to_end = border(seconds(window.end - last.at));
    Some(grown * ((sampled + to_start + to_end) / sampled))
}

fn irate(samples: &[Sample]) -> Option<f64> {
    let [.., before, last] = samples else { return None };
    let grown = if last.value < before.value { last.value } else { last.value - before.value };
    Some(grown / seconds(last.at - before.at))
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of this age fit")]
fn seconds(millis: Millis) -> f64 {
    millis as f64 / 1000.0
}
