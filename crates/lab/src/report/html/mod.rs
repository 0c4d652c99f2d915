//! Comparisons as one self-contained page: no network, light and dark, for a phone and for paper.
//!
//! All of it can be read without a script. With its own script tables are filtered and sorted, and pictures are asked
//! and zoomed, by mouse and by keyboard; no other script may run. How large a page is, is bounded: of tables and
//! drawings that are longer than anybody reads, it holds the beginning.
//!
//! The page holds what a reader needs to believe a result or to doubt it: question, setting, charts with the paper's
//! values beside ours, findings, every number, what explains them, the inputs with their sources, and the command that
//! reproduces it.

mod breakdown;
mod script;
mod tables;
mod timelines;
mod verdicts;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::picture::{STYLE, chart, matrix, tree};
use super::words;
use crate::about::Better;
use crate::comparison::Comparison;
use crate::drawing::Drawing;
use crate::paper::{Finding, Verdict};
use crate::row::Row;

/// How the page looks, besides its pictures.
const PAGE_STYLE: &str = include_str!("page.css");
/// The drawings of so many points are in the page.
const DRAWN_POINTS: usize = 48;
/// The drawings of so many points are open at first.
const OPEN_POINTS: usize = 2;

/// Comparisons as a page.
pub fn render(comparisons: &[Comparison]) -> String {
    let title = match comparisons {
        [one] => format!("{}: {}", one.about.name, one.about.question),
        _ => "Sidestep: baseline against sidestep".to_owned(),
    };
    let body = html! {
        @if comparisons.len() > 1 { (overview(comparisons)) } @else { h1.for-readers { (title) } }
        (verdicts::table(comparisons))
        @for comparison in comparisons { (experiment(comparison)) }
    };
    page(&title, &body)
}

/// A page around its content.
pub(super) fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(script::policy());
                title { (title) }
                // An icon of its own: without one a browser asks the server for it.
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) (PreEscaped(PAGE_STYLE)) }
            }
            body {
                a.skip href="#content" { "To the content" }
                main id="content" {
                    p.masthead { "Sidestep laboratory" }
                    (body)
                }
                footer {
                    "Written by sidestep " (env!("CARGO_PKG_VERSION")) ". Holds, differs: ours lies within, or outside, the "
                    "tolerance that the experiment states for the paper's value. Neither is said of a value that went in as "
                    "an input, of what lies beyond the paper, and of a second reading of what is judged elsewhere."
                }
                script { (PreEscaped(script::SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// The table of contents of a page with several experiments.
fn overview(comparisons: &[Comparison]) -> Markup {
    let table = html! {
        table.overview {
            thead {
                tr {
                    th scope="col" { "experiment" } th scope="col" { "question" } th scope="col" { "source" }
                    th scope="col" { "held against the paper" }
                }
            }
            tbody {
                @for comparison in comparisons {
                    tr {
                        th scope="row" { a href={ "#" (comparison.about.name) } { (comparison.about.name) } }
                        td { (comparison.about.question) }
                        td { (comparison.about.source) }
                        td { (tally(comparison)) }
                    }
                }
            }
        }
    };
    html! {
        h1 { "Baseline against sidestep" }
        nav aria-label="Experiments" { (tables::scroll("Experiments", &table)) }
    }
}

fn experiment(comparison: &Comparison) -> Markup {
    let about = &comparison.about;
    let better = match about.metric.better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    };
    html! {
        article id=(about.name) {
            header {
                p.name { (about.name) }
                h2 { (about.question) }
                p.source { (about.source) }
                (tally(comparison))
            }
            dl.sides {
                dt.baseline { "Baseline" } dd { (about.baseline) }
                dt.sidestep { "Sidestep" } dd { (about.sidestep) }
                dt { "Metric" }
                dd { (words::metric(about)) ", " (better) }
                dt { "Numbers" } dd { (words::nature(comparison)) }
            }
            p.setting { (prose(about.setting)) }
            @let charts: Vec<Markup> =
                comparison.figures.iter().flat_map(|figure| chart::draw(comparison, figure)).collect();
            @if !charts.is_empty() {
                section.charts { @for chart in charts { figure { (chart) } } }
            }
            (timelines::section(comparison))
            @if !comparison.findings.is_empty() {
                section { h3 { "Findings" } @for finding in &comparison.findings { (self::finding(finding)) } }
            }
            section { h3 { "Every point" } (tables::points(comparison)) }
            @if !comparison.counters().is_empty() {
                section { h3 { "What explains it" } (tables::counters(comparison)) }
            }
            (drawings(comparison))
            section { h3 { "How to read it" } p { (prose(about.reading)) } }
            section { h3 { "Inputs" } (tables::inputs(comparison)) }
            section { h3 { "To reproduce" } pre { code { (words::command(comparison)) } } }
        }
    }
}

fn tally(comparison: &Comparison) -> Markup {
    html! {
        p.tally {
            @for verdict in Verdict::ALL {
                @let count = comparison.count(verdict);
                @if count > 0 { span class={ "verdict " (class(verdict)) } { (count) " " (words::verdicts(verdict, count)) } " " }
            }
        }
    }
}

/// The class of a verdict.
pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Differs => "differs",
        Verdict::CheckedInput | Verdict::OtherReading | Verdict::BeyondThePaper | Verdict::NotJudged => {
            "aside"
        }
        Verdict::NotStated => "not-stated",
    }
}

/// Text in which what stands between backquotes is code.
pub(super) fn prose(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn finding(finding: &Finding) -> Markup {
    html! {
        div.finding {
            span class={ "verdict " (class(finding.verdict)) } { (words::verdict(finding.verdict)) }
            div {
                p { strong { (prose(&finding.about)) } ": " (prose(&finding.ours)) }
                @if !finding.stated.is_empty() {
                    p.paper { "Paper: " (prose(&finding.stated)) @if !finding.source.is_empty() { " (" (finding.source) ")" } }
                }
                @if !finding.because.is_empty() { p.because { (prose(&finding.because)) } }
            }
        }
    }
}

/// The pictures that the points brought, point by point.
fn drawings(comparison: &Comparison) -> Markup {
    let with: Vec<&Row> = (comparison.rows.iter())
        .filter(|row| row.measurement().is_some_and(|each| each.has_drawings()))
        .collect();
    html! {
        @if !with.is_empty() {
            section.drawings {
                h3 { "Point by point" }
                @if with.len() > DRAWN_POINTS {
                    p.note { "Of the first " (DRAWN_POINTS) " of " (with.len()) " points." }
                }
                @for (index, row) in with.iter().take(DRAWN_POINTS).enumerate() {
                    details open[index < OPEN_POINTS] {
                        summary { (row.point) }
                        (point_drawings(row))
                    }
                }
            }
        }
    }
}

fn point_drawings(row: &Row) -> Markup {
    let Some(measurement) = row.measurement() else {
        return Markup::default();
    };
    let sides = [
        ("", &measurement.drawings),
        ("Baseline", &measurement.baseline.drawings),
        ("Sidestep", &measurement.sidestep.drawings),
    ];
    html! {
        div.charts {
            @for (side, drawings) in sides {
                @for drawing in drawings {
                    figure {
                        @if !side.is_empty() { figcaption class=(side.to_lowercase()) { (side) } }
                        @match drawing {
                            Drawing::Matrix(matrix) => (matrix::draw(matrix)),
                            Drawing::Tree(tree) => (tree::draw(tree)),
                            Drawing::Breakdown(breakdown) => (breakdown::draw(breakdown)),
                        }
                    }
                }
            }
        }
    }
}
