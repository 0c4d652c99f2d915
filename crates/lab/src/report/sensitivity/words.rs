//! How an analysis is worded, alike in every format that people read.

use crate::input::{Assumption, Value};
use crate::report::words::{self as common, show};
use crate::sensitivity::{Change, Sensitivity, Variation};

/// So many pairs are named; more are counted.
const NAMED_PAIRS: usize = 2;

/// What was varied and how.
pub(super) fn design(analysis: &Sensitivity) -> String {
    let runs = 1 + analysis.alone.len() + analysis.pairs.len();
    let design = analysis.design;
    format!(
        "{} assumed or estimated inputs, each alone from a {} to {} times its value or over its stated range, choices by \
         their others; every pair of the {} that moved most; {runs} runs besides bisection",
        analysis.assumptions.len(),
        part(design.factor),
        design.factor,
        design.paired,
    )
}

/// `half`, `3rd`.
fn part(factor: u32) -> String {
    match factor {
        2 => "half".to_owned(),
        3 => "third".to_owned(),
        factor => format!("{factor}th"),
    }
}

/// A value with its unit.
fn with_unit(value: &Value, assumption: &Assumption) -> String {
    match assumption.unit.as_str() {
        "" => value.to_string(),
        unit => format!("{value} {unit}"),
    }
}

fn change(analysis: &Sensitivity, (assumption, value): &Change) -> String {
    format!("`{}`={value}", analysis.assumptions[*assumption].key)
}

fn pair(analysis: &Sensitivity, variation: &Variation) -> String {
    let changes: Vec<String> = variation
        .changes
        .iter()
        .map(|each| change(analysis, each))
        .collect();
    changes.join(" and ")
}

/// Where a claim's verdict stands: `holds for \`transfer\` from 165 to 409 cycles, not with \`gates\`=one`.
pub(super) fn sentence(analysis: &Sensitivity, claim: usize) -> String {
    let verdict = common::verdict(analysis.nominal[claim].verdict);
    let standpoint = analysis.standpoint(claim);
    let ranges: Vec<String> = (standpoint.ranges.iter())
        .map(|(assumption, least, greatest)| {
            let (key, greatest) = (&assumption.key, with_unit(greatest, assumption));
            match greatest == with_unit(least, assumption) {
                true => format!("`{key}` at {greatest}"),
                false => format!("`{key}` from {least} to {greatest}"),
            }
        })
        .collect();
    let mut not: Vec<String> = (standpoint.choices.iter())
        .map(|(assumption, value)| format!("`{}`={value}", assumption.key))
        .collect();
    let pairs = standpoint.pairs.len();
    not.extend(
        standpoint
            .pairs
            .iter()
            .take(NAMED_PAIRS)
            .map(|variation| pair(analysis, variation)),
    );
    if pairs > NAMED_PAIRS {
        not.push(format!("{} more pairs", pairs - NAMED_PAIRS));
    }
    match (ranges.as_slice(), not.as_slice()) {
        ([], []) => format!("{verdict} whatever was varied"),
        ([], not) => format!("{verdict}, but not with {}", not.join("; ")),
        (ranges, []) => format!("{verdict} for {}", ranges.join(", ")),
        (ranges, not) => format!("{verdict} for {}; not with {}", ranges.join(", "), not.join("; ")),
    }
}

/// A table of the inputs that move each claim's number most, heading first.
pub(super) fn swings(analysis: &Sensitivity, most: usize) -> Vec<Vec<String>> {
    let heading = ["claim", "input", "tried", "ours", "from", "to"]
        .map(str::to_owned)
        .to_vec();
    let rows = (0..analysis.claims.len()).flat_map(|claim| {
        let nominal = analysis.nominal[claim].value;
        analysis
            .swings(claim)
            .into_iter()
            .take(most)
            .filter_map(move |swing| {
                let (least, greatest) = swing.bounds(nominal?);
                let tried: Vec<String> = swing.ends.iter().map(|(value, _)| value.to_string()).collect();
                Some(vec![
                    format!("#{}", claim + 1),
                    swing.assumption.key.clone(),
                    tried.join(", "),
                    show(nominal?),
                    show(least),
                    show(greatest),
                ])
            })
    });
    [heading].into_iter().chain(rows).collect()
}

/// A table of the inputs, heading first: value, what it was tried with, source.
pub(super) fn inputs(analysis: &Sensitivity) -> Vec<Vec<String>> {
    let heading = ["input", "value", "tried", "source"].map(str::to_owned).to_vec();
    let rows = analysis.assumptions.iter().map(|assumption| {
        let others: Vec<String> = assumption.others.iter().map(ToString::to_string).collect();
        vec![
            format!("`{}`", assumption.key),
            with_unit(&assumption.nominal, assumption),
            others.join(", "),
            assumption.source.clone(),
        ]
    });
    [heading].into_iter().chain(rows).collect()
}

/// What could not be run, and why.
pub(super) fn problems(analysis: &Sensitivity) -> Vec<String> {
    let varied = analysis.alone.iter().chain(&analysis.pairs);
    let problem = |variation: &Variation| {
        let problem = variation.readings.as_ref().err()?;
        Some(format!("not run with {}: {problem}", pair(analysis, variation)))
    };
    varied.filter_map(problem).collect()
}
