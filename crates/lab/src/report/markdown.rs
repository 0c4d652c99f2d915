//! Comparisons as Markdown, for a README or an issue: one table of what the papers state beside what came out, then a
//! section an experiment with what the terminal shows of it.

use std::fmt::Write;

use super::{table, words};
use crate::comparison::Comparison;
use crate::paper::{Standing, Stated, Verdict};
use crate::row::Row;

/// Up to so many points with statements get a line each; more are counted.
const LISTED_POINTS: usize = 6;

/// What the papers state beside what came out, then each comparison.
pub fn render(comparisons: &[Comparison]) -> String {
    let mut text = statements(comparisons);
    for comparison in comparisons {
        section(&mut text, comparison);
    }
    text
}

/// Every finding and every stated point of some comparisons, a line each.
fn statements(comparisons: &[Comparison]) -> String {
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
    let [paper, ours, verdict] = cells.map(cell);
    writeln!(
        text,
        "| `{}` | {paper} | {ours} | {verdict} |",
        comparison.about.name
    )
    .expect("writing to a string");
}

/// A text that a table can hold.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// A comparison in full.
fn section(text: &mut String, comparison: &Comparison) {
    let about = &comparison.about;
    let mut line = |line: String| writeln!(text, "{line}").expect("writing to a string");
    line(format!("\n## {}\n\n{}\n", about.name, about.question));
    for (what, said) in table::heads(comparison) {
        line(format!("- {what}: {said}"));
    }
    line(format!("\n{}", grid(&table::points(comparison, true))));
    for (point, error) in table::errors(comparison) {
        line(format!("- {point}: {error}"));
    }
    if table::has_counters(comparison) {
        let counters = grid(&table::counters(comparison));
        line(format!("\nCounters, baseline → sidestep:\n\n{counters}"));
    }
    if !comparison.findings.is_empty() {
        line("\nFindings:\n".to_owned());
    }
    for finding in &comparison.findings {
        let verdict = words::verdict(finding.verdict);
        let because = match finding.because.as_str() {
            "" => String::new(),
            because => format!("; because {because}"),
        };
        line(format!(
            "- {verdict}: {}: {}{because}",
            finding.about, finding.ours
        ));
    }
    line(format!("\n{}", words::tally(comparison)));
}

/// A table, heading first; numbers are right-aligned.
pub(super) fn grid(rows: &[Vec<String>]) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = (0..rows[0].len()).map(|column| match table::is_name(rows, column) {
        true => "---".to_owned(),
        false => "---:".to_owned(),
    });
    let mut lines = rows
        .iter()
        .map(|cells| row(cells.iter().map(|text| cell(text)).collect()));
    let heading = lines.next().expect("a table has a heading");
    let text: String = [heading, row(rule.collect())].into_iter().chain(lines).collect();
    text.trim_end().to_owned()
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
    for standing in Standing::ALL {
        let stated: Vec<(&Row, &Stated)> = (comparison.rows.iter())
            .flat_map(|row| row.stated.iter().map(move |stated| (row, stated)))
            .filter(|(_, stated)| stated.standing == standing)
            .collect();
        match stated.len() {
            0..=LISTED_POINTS => lines.extend(stated.into_iter().map(|(row, stated)| listed(row, stated))),
            _ => lines.push(counted(standing, &stated)),
        }
    }
    lines
}

/// A line for one statement.
fn listed(row: &Row, stated: &Stated) -> [String; 3] {
    let verdict = row.judge(stated).unwrap_or(Verdict::NotStated);
    [
        format!(
            "{}: {} {} ({})",
            row.point,
            words::quantity(stated.quantity),
            words::stated(stated),
            stated.source
        ),
        words::show_or_none(row.quantity(stated.quantity)),
        words::verdict(verdict).to_owned(),
    ]
}

/// A line for all statements of a standing: the worst of their verdicts.
fn counted(standing: Standing, stated: &[(&Row, &Stated)]) -> [String; 3] {
    let agreeing = (stated.iter())
        .filter(|(row, stated)| row.agrees(stated) == Some(true))
        .count();
    let all = stated.len();
    [
        format!("{all} {}", words::standing(standing)),
        format!("{agreeing} of {all} within the stated tolerance"),
        words::verdict(standing.verdict(agreeing == all)).to_owned(),
    ]
}
