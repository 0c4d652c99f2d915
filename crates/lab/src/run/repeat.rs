//! The repetitions of a point, merged into one measurement: the median of every number.

use crate::about::Metric;
use crate::measurement::{Counter, Measurement, Side};
use crate::number::Number;
use crate::row::Spread;
use crate::statistics::{Median, median};

/// Merges the repetitions of a point, at least one; says how they spread if there are several. Pictures and timelines
/// are those of the repetition in the middle by the sidestep's value.
pub(super) fn merge(metric: Metric, mut repetitions: Vec<Measurement>) -> (Measurement, Option<Spread>) {
    if repetitions.len() == 1 {
        return (repetitions.remove(0), None);
    }
    let of = |value: &dyn Fn(&Measurement) -> Option<Number>| -> Option<Median> {
        let values: Vec<Number> = repetitions.iter().filter_map(value).collect();
        median(&values)
    };
    let spread = Spread {
        repetitions: repetitions.len(),
        baseline: of(&|each| each.baseline.value),
        sidestep: of(&|each| each.sidestep.value),
        ratio: of(&|each| metric.gain(each.baseline.value?, each.sidestep.value?)),
    };
    let sides = |side: fn(&Measurement) -> &Side| repetitions.iter().map(side).collect::<Vec<_>>();
    let baseline_counters = merge_counters(&sides(|each| &each.baseline));
    let sidestep_counters = merge_counters(&sides(|each| &each.sidestep));

    let mut order: Vec<usize> = (0..repetitions.len()).collect();
    order.sort_by_key(|&index| {
        (
            repetitions[index].sidestep.value,
            repetitions[index].baseline.value,
            index,
        )
    });
    let mut merged = repetitions.swap_remove(order[order.len() / 2]);
    merged.baseline.value = spread.baseline.map(|median| median.value);
    merged.sidestep.value = spread.sidestep.map(|median| median.value);
    merged.baseline.counters = baseline_counters;
    merged.sidestep.counters = sidestep_counters;
    (merged, Some(spread))
}

/// The median of each counter over the repetitions that have it, in order of first appearance.
fn merge_counters(sides: &[&Side]) -> Vec<Counter> {
    let mut merged: Vec<Counter> = Vec::new();
    for counter in sides.iter().flat_map(|side| &side.counters) {
        if merged.iter().any(|each| each.name == counter.name) {
            continue;
        }
        let values: Vec<Number> = sides
            .iter()
            .filter_map(|side| side.find(&counter.name))
            .map(|each| each.value)
            .collect();
        let median = median(&values).expect("the counter occurs");
        merged.push(Counter {
            value: median.value,
            ..counter.clone()
        });
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::about::Better;

    const METRIC: Metric = Metric {
        name: "time",
        unit: "ns",
        better: Better::Lower,
    };

    #[test]
    fn the_ratio_is_the_median_of_paired_ratios() {
        // The third pair was disturbed on both sides alike: its ratio is as good as any.
        let pairs = [(20, 10), (22, 11), (2000, 1000), (30, 10), (21, 7)];
        let repetitions = pairs
            .iter()
            .map(|&(baseline, sidestep)| Measurement::new(Side::new(baseline), Side::new(sidestep)))
            .collect();
        let (_, spread) = merge(METRIC, repetitions);
        let ratio = spread.unwrap().ratio.unwrap();
        assert_eq!(
            (ratio.value, ratio.low, ratio.high),
            (2.into(), 2.into(), 3.into())
        );
    }

    #[test]
    fn counters_are_merged_by_name() {
        let side = |wakes: i64| Side::new(wakes).count("wakes", wakes);
        let rare = Side::new(0).count("wakes", 5).count("retries", 7);
        let repetitions = vec![
            Measurement::new(side(1), Side::absent()),
            Measurement::new(rare, Side::absent()),
            Measurement::new(side(9), Side::absent()),
        ];
        let (merged, spread) = merge(METRIC, repetitions);
        let counters: Vec<_> = merged
            .baseline
            .counters
            .iter()
            .map(|counter| (counter.name.as_ref(), counter.value))
            .collect();
        assert_eq!(counters, [("wakes", 5.into()), ("retries", 7.into())]);
        assert_eq!(merged.sidestep.value, None);
        assert_eq!(spread.unwrap().ratio, None);
    }
}
