//! Many values become one for each group of labels.

use std::collections::BTreeMap;

use crate::plan::{Aggregation, Grouping};
use crate::{Labels, NAME, Point};

/// The labels of a group.
pub fn group(labels: &Labels, by: &Grouping) -> Labels {
    let is_kept = |name: &String| match by {
        Grouping::By(names) => names.contains(name),
        Grouping::Without(names) => name != NAME && !names.contains(name),
    };
    let kept = labels.iter().filter(|(name, _)| is_kept(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// One value for each group.
pub fn aggregate(points: Vec<Point>, by: &Grouping, how: Aggregation) -> Vec<Point> {
    let mut groups: BTreeMap<Labels, Vec<f64>> = BTreeMap::new();
    for Point { labels, value } in points {
        groups.entry(group(&labels, by)).or_default().push(value);
    }
    let of = |values: &[f64]| {
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 series")]
        let count = values.len() as f64;
        // A value that is no number counts only where there is no other.
        let extreme =
            |better: fn(f64, f64) -> f64| values.iter().copied().reduce(better).unwrap_or(f64::NAN);
        match how {
            Aggregation::Sum => values.iter().sum(),
            Aggregation::Avg => values.iter().sum::<f64>() / count,
            Aggregation::Min => extreme(f64::min),
            Aggregation::Max => extreme(f64::max),
            Aggregation::Count => count,
        }
    };
    groups.into_iter().map(|(labels, values)| Point { labels, value: of(&values) }).collect()
}
