//! Analyses as one table of columns: what CSV and Parquet share.

use super::json::SCHEMA;
use crate::input::Value;
use crate::number::Number;
use crate::report::columns::{Cells, Column};
use crate::report::words::verdict;
use crate::sensitivity::{Reading, Sensitivity};

/// A row: a claim of an analysis under a change.
struct Line<'a> {
    analysis: &'a Sensitivity,
    claim: usize,
    kind: &'static str,
    /// The inputs and their values.
    changes: Vec<(&'a str, &'a Value)>,
    reading: Option<&'a Reading>,
    problem: Option<&'a str>,
}

/// Every column, of the same length.
pub(super) fn columns(analyses: &[Sensitivity]) -> Vec<Column> {
    let lines: Vec<Line> = analyses.iter().flat_map(lines).collect();
    let text = |name: &str, cell: &dyn Fn(&Line) -> Option<String>| Column {
        name: name.to_owned(),
        cells: Cells::Text(lines.iter().map(cell).collect()),
    };
    let number = |name: &str, cell: &dyn Fn(&Line) -> Option<Number>| Column {
        name: name.to_owned(),
        cells: Cells::Number(lines.iter().map(cell).collect()),
    };
    let nominal = |line: &Line| line.analysis.nominal[line.claim].clone();
    let claim = |line: &Line| line.analysis.claims[line.claim].clone();
    let input = |line: &Line, index: usize| line.changes.get(index).map(|(key, _)| (*key).to_owned());
    let value = |line: &Line, index: usize| line.changes.get(index).map(|(_, value)| value.to_string());
    let machine = |of: &Reading| verdict(of.verdict).replace(' ', "-");
    vec![
        text("schema", &|_| Some(SCHEMA.to_owned())),
        text("experiment", &|line| Some(line.analysis.about.name.to_owned())),
        text("claim", &|line| Some(claim(line).about)),
        text("stated", &|line| Some(claim(line).stated)),
        text("source", &|line| Some(claim(line).source)),
        number("paper", &|line| claim(line).number),
        number("nominal", &|line| nominal(line).value),
        text("nominal_verdict", &|line| Some(machine(&nominal(line)))),
        text("kind", &|line| Some(line.kind.to_owned())),
        text("input", &|line| input(line, 0)),
        text("value", &|line| value(line, 0)),
        text("second_input", &|line| input(line, 1)),
        text("second_value", &|line| value(line, 1)),
        number("ours", &|line| line.reading?.value),
        text("ours_shown", &|line| Some(line.reading?.ours.clone())),
        text("verdict", &|line| line.reading.map(machine)),
        text("error", &|line| line.problem.map(str::to_owned)),
    ]
}

fn lines(analysis: &Sensitivity) -> Vec<Line<'_>> {
    let key = |assumption: usize| analysis.assumptions[assumption].key.as_str();
    let varied = [("alone", &analysis.alone), ("pair", &analysis.pairs)];
    let mut lines = Vec::new();
    for claim in 0..analysis.claims.len() {
        for (kind, variations) in varied {
            lines.extend(variations.iter().map(|variation| {
                Line {
                    analysis,
                    claim,
                    kind,
                    changes: variation
                        .changes
                        .iter()
                        .map(|(at, value)| (key(*at), value))
                        .collect(),
                    reading: variation.reading(claim),
                    problem: variation.readings.as_ref().err().map(String::as_str),
                }
            }));
        }
        let crossings = analysis
            .crossings
            .iter()
            .filter(|crossing| crossing.claim == claim);
        for crossing in crossings {
            for (kind, value) in [("keeps", &crossing.keeps), ("turns", &crossing.turns)] {
                lines.push(Line {
                    analysis,
                    claim,
                    kind,
                    changes: vec![(key(crossing.assumption), value)],
                    reading: None,
                    problem: None,
                });
            }
        }
    }
    lines
}
