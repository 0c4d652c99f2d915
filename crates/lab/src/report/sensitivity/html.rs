//! Analyses as one self-contained page, as that of comparisons.

use maud::{Markup, html};

use super::words;
use crate::report::html::{class, page, prose};
use crate::report::picture::tornado;
use crate::report::words as common;
use crate::sensitivity::Sensitivity;

/// Analyses as a page.
pub(super) fn render(analyses: &[Sensitivity]) -> String {
    let title = match analyses {
        [one] => format!("{}: what its verdicts hang on", one.about.name),
        _ => "Sidestep: what verdicts hang on".to_owned(),
    };
    let body = html! {
        h1.for-readers { (title) }
        @for analysis in analyses { (self::analysis(analysis)) }
    };
    page(&title, &body)
}

fn analysis(analysis: &Sensitivity) -> Markup {
    let about = &analysis.about;
    html! {
        article id=(about.name) {
            header {
                p.name { (about.name) }
                h2 { (about.question) }
                p.source { (about.source) }
            }
            p.setting { (words::design(analysis)) "." }
            @if analysis.claims.is_empty() { p { "Nothing of it is judged: no verdict can turn." } }
            section {
                h3 { "Verdicts" }
                @for (index, (claim, reading)) in analysis.claims.iter().zip(&analysis.nominal).enumerate() {
                    div.finding {
                        span class={ "verdict " (class(reading.verdict)) } { (common::verdict(reading.verdict)) }
                        div {
                            p { strong { (prose(&claim.about)) } ": " (prose(&reading.ours)) }
                            p.paper { "Paper: " (prose(&claim.stated)) " (" (claim.source) ")" }
                            p.because { (prose(&words::sentence(analysis, index))) }
                        }
                    }
                }
            }
            @let charts: Vec<Markup> =
                (0..analysis.claims.len()).filter_map(|claim| tornado::draw(analysis, claim)).collect();
            @if !charts.is_empty() {
                section.charts { @for chart in charts { figure { (chart) } } }
            }
            section { h3 { "What was varied" } (table(&words::inputs(analysis))) }
            @let problems = words::problems(analysis);
            @if !problems.is_empty() {
                section { h3 { "What could not be run" } @for problem in problems { p { (prose(&problem)) } } }
            }
            section { h3 { "To reproduce" } pre { code { (super::command(analysis)) } } }
        }
    }
}

fn table(rows: &[Vec<String>]) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { @for cell in &rows[0] { th scope="col" { (cell) } } } }
                tbody { @for row in &rows[1..] { tr { @for cell in row { td { (prose(cell)) } } } } }
            }
        }
    }
}
