//! What the papers state beside what came out, as a Markdown table: for a README or an issue.

use std::fmt::Write;

use super::words;
use crate::comparison::{Comparison, Row};
use crate::paper::{Stated, Verdict};

/// Up to so many points with statements get a line each; more are counted.
const LISTED_POINTS: usize = 6;

/// Every finding and every stated point of some comparisons, a line each.
pub fn render(comparisons: &[Comparison]) -> String {
    let mut text = String::from("| experiment | the paper | ours | verdict |\n|---|---|---|---|\n");
    for comparison in comparisons {
        let lines = lines(comparison);
        if lines.is_empty() {
            line(
                &mut text,
                comparison,
                [
                    "states nothing to compare with",
                    comparison.about.question,
                    "not stated",
                ],
            );
        }
        for [paper, ours, verdict] in &lines {
            line(&mut text, comparison, [paper, ours, verdict]);
        }
    }
    text
}

fn line(text: &mut String, comparison: &Comparison, cells: [&str; 3]) {
    let [paper, ours, verdict] = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
    writeln!(
        text,
        "| `{}` | {paper} | {ours} | {verdict} |",
        comparison.about.name
    )
    .expect("writing to a string");
}

fn lines(comparison: &Comparison) -> Vec<[String; 3]> {
    let mut lines: Vec<[String; 3]> = (comparison.findings.iter())
        .filter(|finding| finding.verdict != Verdict::NotStated)
        .map(|finding| {
            let paper = format!("{}: {} ({})", finding.about, finding.stated, finding.source);
            [
                paper,
                finding.ours.clone(),
                words::verdict(finding.verdict).to_owned(),
            ]
        })
        .collect();
    let stated: Vec<(&Row, &Stated)> = (comparison.rows.iter())
        .flat_map(|row| row.stated.iter().map(move |stated| (row, stated)))
        .collect();
    if stated.len() > LISTED_POINTS {
        let holding = (stated.iter())
            .filter(|(row, stated)| row.judge(stated) == Some(Verdict::Holds))
            .count();
        let ours = format!("{holding} of {} within the stated tolerance", stated.len());
        let verdict = if holding == stated.len() {
            "holds"
        } else {
            "differs"
        };
        lines.push([
            format!("{} stated values", stated.len()),
            ours,
            verdict.to_owned(),
        ]);
        return lines;
    }
    for (row, stated) in stated {
        let ours = row.quantity(stated.quantity);
        let verdict = row.judge(stated).unwrap_or(Verdict::NotStated);
        lines.push([
            format!(
                "{}: {} {} ({})",
                row.point,
                words::quantity(stated.quantity),
                words::stated(stated),
                stated.source
            ),
            words::show_or_none(ours),
            words::verdict(verdict).to_owned(),
        ]);
    }
    lines
}
