//! A quantile of a classic histogram: buckets that each count what is at most `le`.

use std::collections::BTreeMap;

use super::unnamed;
use crate::{Labels, Point};

/// The quantile of each histogram among these buckets.
pub fn quantile(quantile: f64, buckets: Vec<Point>) -> Vec<Point> {
    let mut histograms: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for Point { labels, value } in buckets {
        let mut labels = unnamed(labels);
        let limit = labels.remove("le").and_then(|text| limit(&text));
        // What has no limit is no bucket.
        if let Some(limit) = limit {
            histograms.entry(labels).or_default().push((limit, value));
        }
    }
    let points = histograms.into_iter().map(|(labels, mut buckets)| {
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        Point { labels, value: of(quantile, buckets) }
    });
    points.collect()
}

fn limit(text: &str) -> Option<f64> {
    match text {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        text => text.parse().ok(),
    }
}

/// The quantile, interpolated within its bucket. Counts of larger buckets are never smaller.
fn of(quantile: f64, mut buckets: Vec<(f64, f64)>) -> f64 {
    if quantile.is_nan() {
        return f64::NAN;
    }
    if quantile < 0.0 {
        return f64::NEG_INFINITY;
    }
    if quantile > 1.0 {
        return f64::INFINITY;
    }
    buckets.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        if is_same {
            kept.1 += later.1;
        }
        is_same
    });
    let mut most = f64::NEG_INFINITY;
    for (_, count) in &mut buckets {
        most = most.max(*count);
        *count = most;
    }
    let [.., before, last] = &buckets[..] else { return f64::NAN };
    if last.0 != f64::INFINITY || last.1 == 0.0 || last.1.is_nan() {
        return f64::NAN;
    }
    let rank = quantile * last.1;
    let found = buckets.iter().position(|(_, count)| *count >= rank);
    match found.unwrap_or(buckets.len() - 1) {
        at if at == buckets.len() - 1 => before.0,
        0 if buckets[0].0 <= 0.0 => buckets[0].0,
        at => {
            let (end, count) = buckets[at];
            let (start, below) = if at == 0 { (0.0, 0.0) } else { buckets[at - 1] };
            start + (end - start) * ((rank - below) / (count - below))
        }
    }
}
