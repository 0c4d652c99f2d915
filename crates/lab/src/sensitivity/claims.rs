//! What is judged of a comparison, each claim found again in another run of the same experiment.

use crate::comparison::Comparison;
use crate::number::Number;
use crate::paper::{Expected, Verdict};

/// Something that a paper states and that is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What it is about: a finding's words, or a point with the quantity.
    pub about: String,
    /// What the paper states.
    pub stated: String,
    /// Where it does.
    pub source: String,
    /// The paper's number, where ours is held against one.
    pub number: Option<Number>,
}

/// What came out of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What was measured.
    pub ours: String,
    /// The number in it that decides, where there is one.
    pub value: Option<Number>,
    /// Whether it agrees.
    pub verdict: Verdict,
}

/// Everything that a comparison holds for or against a paper, in the order of its report: findings, then points.
pub(super) fn judged(comparison: &Comparison) -> Vec<(Claim, Reading)> {
    let findings = comparison.findings.iter().map(|finding| {
        let claim = Claim {
            about: finding.about.clone(),
            stated: finding.stated.clone(),
            source: finding.source.clone(),
            number: None,
        };
        let reading = Reading {
            ours: finding.ours.clone(),
            value: finding.value,
            verdict: finding.verdict,
        };
        (claim, reading)
    });
    let points = (comparison.rows.iter()).flat_map(|row| row.stated.iter().map(move |stated| (row, stated)));
    let points = points.filter_map(|(row, stated)| {
        let number = stated.number();
        let bound = match stated.expected {
            Expected::Value { .. } => "",
            Expected::AtLeast(_) => "≥ ",
            Expected::AtMost(_) => "≤ ",
        };
        let quantity = format!("{:?}", stated.quantity).to_lowercase();
        let value = row.quantity(stated.quantity)?;
        let claim = Claim {
            about: format!("{}: {quantity}", row.point),
            stated: format!("{bound}{}", number.to_significant(4)),
            source: stated.source.clone(),
            number: Some(number),
        };
        let reading = Reading {
            ours: value.to_significant(4),
            value: Some(value),
            verdict: row.judge(stated)?,
        };
        Some((claim, reading))
    });
    findings
        .chain(points)
        .filter(|(_, reading)| reading.verdict.is_judged())
        .collect()
}

/// What came out of some claims in another run; `None` of a claim that is not judged there.
pub(super) fn readings(claims: &[Claim], comparison: &Comparison) -> Vec<Option<Reading>> {
    let mut found = judged(comparison);
    let of = |claim: &Claim| {
        let at = found.iter().position(|(other, _)| other.about == claim.about)?;
        Some(found.swap_remove(at).1)
    };
    claims.iter().map(of).collect()
}
