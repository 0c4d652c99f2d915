//! What the papers state beside what came out, of every experiment of the page: the table that a reader filters.

use maud::{Markup, html};

use super::tables::{ROWS, left_out, scroll};
use super::{class, prose};
use crate::comparison::Comparison;
use crate::paper::Verdict;
use crate::report::words;

/// A row of the table.
struct Line<'a> {
    experiment: &'static str,
    about: String,
    stated: String,
    source: &'a str,
    ours: String,
    difference: String,
    verdict: Verdict,
}

/// The table; nothing where the papers state nothing.
pub(super) fn table(comparisons: &[Comparison]) -> Markup {
    let lines: Vec<Line> = comparisons.iter().flat_map(lines).collect();
    if lines.is_empty() {
        return Markup::default();
    }
    let rows = html! {
        table.filterable data-what="statements" {
            thead {
                tr {
                    @if comparisons.len() > 1 { th scope="col" { "experiment" } }
                    th scope="col" { "of" } th scope="col" { "the paper" } th scope="col" { "ours" }
                    th.number scope="col" { "difference" } th scope="col" { "verdict" }
                }
            }
            tbody {
                @for line in lines.iter().take(ROWS) {
                    tr data-verdict=(words::verdict(line.verdict)) {
                        @if comparisons.len() > 1 {
                            th scope="row" { a href={ "#" (line.experiment) } { (line.experiment) } }
                        }
                        td { (prose(&line.about)) }
                        td { (prose(&line.stated)) @if !line.source.is_empty() { div.source { (line.source) } } }
                        td { (prose(&line.ours)) }
                        td.number { (line.difference) }
                        td { span class={ "verdict " (class(line.verdict)) } { (words::verdict(line.verdict)) } }
                    }
                }
            }
        }
        (left_out(lines.len(), "statements"))
    };
    html! {
        section id="verdicts" {
            h2 { "What the papers state, and what came out" }
            (scroll("What the papers state, and what came out", &rows))
        }
    }
}

fn lines(comparison: &Comparison) -> Vec<Line<'_>> {
    let experiment = comparison.about.name;
    let findings = comparison
        .findings
        .iter()
        .filter(|finding| !finding.stated.is_empty());
    let mut lines: Vec<Line> = findings
        .map(|finding| Line {
            experiment,
            about: finding.about.clone(),
            stated: finding.stated.clone(),
            source: &finding.source,
            ours: finding.ours.clone(),
            difference: String::new(),
            verdict: finding.verdict,
        })
        .collect();
    for row in &comparison.rows {
        lines.extend(row.stated.iter().map(|stated| Line {
            experiment,
            about: format!("{}: {}", row.point, words::quantity(stated.quantity)),
            stated: words::stated(stated),
            source: &stated.source,
            ours: words::measured(row, stated.quantity),
            difference: super::tables::difference(row, stated),
            verdict: row.judge(stated).unwrap_or(Verdict::NotStated),
        }));
    }
    lines
}
