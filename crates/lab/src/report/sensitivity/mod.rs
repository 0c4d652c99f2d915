//! What verdicts hang on, as text, data and a page: one module for each format.

mod columns;
mod html;
mod json;
mod words;

use std::fmt::Write;

use super::words as common;
use super::{csv, markdown, picture, table};
use crate::sensitivity::Sensitivity;

/// How many inputs are listed that move a claim most.
const LISTED_INPUTS: usize = 5;

pub use json::SCHEMA;

/// Analyses as text for a terminal of so many columns.
pub fn table(analyses: &[Sensitivity], width: usize) -> String {
    let texts: Vec<String> = analyses.iter().map(|each| one(each, width)).collect();
    texts.join("\n")
}

fn one(analysis: &Sensitivity, width: usize) -> String {
    let about = &analysis.about;
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("writing to a string");
    line(format!("{}: {}", about.name, about.question));
    line(format!("  varied    {}", words::design(analysis)));
    if analysis.claims.is_empty() {
        line("\n  Nothing of it is judged: no verdict can turn.".to_owned());
        return text;
    }
    for (claim, (stated, reading)) in analysis.claims.iter().zip(&analysis.nominal).enumerate() {
        line(format!("\n  #{} {}", claim + 1, stated.about));
        line(format!("    paper: {} ({})", stated.stated, stated.source));
        line(format!("    ours: {}", reading.ours));
        line(format!(
            "    {}",
            words::sentence(analysis, claim).replace('`', "")
        ));
    }
    text.push('\n');
    text += &table::layout(&words::swings(analysis, LISTED_INPUTS), width, 1);
    for problem in words::problems(analysis) {
        writeln!(text, "  {problem}").expect("writing to a string");
    }
    text
}

/// Analyses as Markdown: one table of verdicts with what turns them, then for each analysis what was varied and what
/// moves each number.
pub fn markdown(analyses: &[Sensitivity]) -> String {
    let mut text = String::from("| experiment | of | ours | turns |\n|---|---|---|---|\n");
    for analysis in analyses {
        for (claim, (stated, reading)) in analysis.claims.iter().zip(&analysis.nominal).enumerate() {
            let cells = [&stated.about, &reading.ours, &words::sentence(analysis, claim)];
            let [about, ours, turns] = cells.map(|text| markdown::cell(text));
            writeln!(text, "| `{}` | {about} | {ours} | {turns} |", analysis.about.name)
                .expect("writing to a string");
        }
    }
    for analysis in analyses {
        writeln!(
            text,
            "\n## {}\n\n{}.\n",
            analysis.about.name,
            words::design(analysis)
        )
        .expect("writing to a string");
        text += &markdown::grid(&words::inputs(analysis));
        text.push('\n');
        for problem in words::problems(analysis) {
            writeln!(text, "\n{problem}").expect("writing to a string");
        }
    }
    text
}

/// Analyses as comma-separated values: a row for each claim and each run with something varied, and for each place
/// where a verdict turns.
pub fn csv(analyses: &[Sensitivity]) -> String {
    csv::write(&columns::columns(analyses))
}

/// The same as an Apache Parquet file.
#[cfg(feature = "parquet")]
pub fn parquet(analyses: &[Sensitivity]) -> Vec<u8> {
    super::parquet::bytes(&columns::columns(analyses))
}

/// Analyses as one JSON document.
pub fn json(analyses: &[Sensitivity]) -> String {
    json::render(analyses)
}

/// Analyses as one self-contained page.
pub fn html(analyses: &[Sensitivity]) -> String {
    html::render(analyses)
}

/// A chart for each claim with a number, each as the name and content of a file.
pub fn files(analysis: &Sensitivity) -> Vec<(String, String)> {
    let charts = (0..analysis.claims.len()).filter_map(|claim| picture::tornado::draw(analysis, claim));
    let name = |index: usize| format!("{}-sensitivity-{}.svg", analysis.about.name, index + 1);
    charts
        .enumerate()
        .map(|(index, chart)| (name(index), picture::file(&chart)))
        .collect()
}

/// The exact command that repeats an analysis.
pub fn command(analysis: &Sensitivity) -> String {
    let request = &analysis.request;
    let mut words = vec![
        "sidestep".to_owned(),
        "sensitivity".to_owned(),
        analysis.about.name.to_owned(),
    ];
    words.extend(request.quick.then(|| "--quick".to_owned()));
    for setting in &request.settings {
        words.extend(["--set".to_owned(), common::quoted(setting)]);
    }
    let design = analysis.design;
    words.push(format!(
        "--factor {} --pairs {} --halvings {}",
        design.factor, design.paired, design.halvings
    ));
    if analysis.about.nature != crate::about::Nature::Deterministic {
        words.push(format!(
            "--seed {} --repeat {}",
            request.seed, analysis.repetitions
        ));
    }
    words.join(" ")
}
