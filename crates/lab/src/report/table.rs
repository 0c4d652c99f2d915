//! Comparisons as text for a terminal: a row a point, then the counters that explain it, then the findings.

use std::fmt::{self, Write};

use super::prose::paragraph;
use super::words;
use crate::about::Better;
use crate::comparison::Comparison;
use crate::measurement::Counter;
use crate::paper::Quantity;
use crate::point::PointError;
use crate::row::Row;

/// As the table that a terminal shows.
impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&render(std::slice::from_ref(self), TERMINAL_WIDTH))
    }
}

/// The usual width of a table.
const TERMINAL_WIDTH: usize = 120;

/// Comparisons as text, one after the other, no line wider than `width`: tables are split where they can be, sentences
/// go on in the next line.
pub fn render(comparisons: &[Comparison], width: usize) -> String {
    let texts: Vec<String> = comparisons.iter().map(|each| comparison(each, width)).collect();
    texts.join("\n")
}

fn comparison(comparison: &Comparison, width: usize) -> String {
    let about = &comparison.about;
    let mut text = String::new();
    paragraph(&mut text, &format!("{}: ", about.name), about.question, 2, width);
    for (what, said) in heads(comparison) {
        paragraph(&mut text, &format!("  {what:8}  "), &said, 12, width);
    }
    text.push('\n');
    let mut table = points(comparison, true);
    let is_too_narrow = narrowest(&table, coordinates(comparison)) > width;
    if is_too_narrow {
        table = points(comparison, false);
    }
    text += &layout(&table, width, coordinates(comparison));
    if is_too_narrow {
        text += "  The terminal is too narrow for intervals.\n";
    }
    for (point, error) in errors(comparison) {
        paragraph(&mut text, &format!("  {point}: "), &error.to_string(), 4, width);
    }
    if has_counters(comparison) {
        text += "\n  Counters, baseline → sidestep\n";
        text += &layout(&counters(comparison), width, coordinates(comparison));
    }
    if !comparison.findings.is_empty() {
        text += "\n  Findings\n";
    }
    for finding in &comparison.findings {
        let begin = format!("  {:10}  ", words::verdict(finding.verdict));
        paragraph(
            &mut text,
            &begin,
            &format!("{}: {}", finding.about, finding.ours),
            14,
            width,
        );
        for (what, said) in [("paper", &finding.stated), ("because", &finding.because)] {
            let source = match (what, finding.source.as_str()) {
                ("paper", source) if !source.is_empty() => format!(" ({source})"),
                _ => String::new(),
            };
            if !said.is_empty() {
                let said = format!("{said}{source}");
                paragraph(&mut text, &format!("              {what}: "), &said, 16, width);
            }
        }
    }
    text.push('\n');
    paragraph(&mut text, "  ", &words::tally(comparison), 4, width);
    text
}

/// What stands above the tables, each with its name.
pub(super) fn heads(comparison: &Comparison) -> Vec<(&'static str, String)> {
    let about = &comparison.about;
    let better = match about.metric.better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    };
    let metric = format!(
        "{}, {better}; {}",
        words::metric(about),
        words::nature(comparison)
    );
    let heads = [
        ("source", about.source.to_owned()),
        ("baseline", about.baseline.to_owned()),
        ("sidestep", about.sidestep.to_owned()),
        ("metric", metric),
    ];
    heads.into_iter().filter(|(_, said)| !said.is_empty()).collect()
}

/// How many columns at the left name the point.
fn coordinates(comparison: &Comparison) -> usize {
    comparison
        .rows
        .first()
        .map_or(0, |row| row.point.coordinates().len())
}

fn names(comparison: &Comparison) -> Vec<String> {
    let first = comparison.rows.first();
    first.map_or(Vec::new(), |row| {
        row.point.coordinates().map(|(key, _)| key.to_owned()).collect()
    })
}

fn place(row: &Row) -> Vec<String> {
    row.point
        .coordinates()
        .map(|(_, value)| value.to_string())
        .collect()
}

/// The table of values, heading first.
pub(super) fn points(comparison: &Comparison, with_intervals: bool) -> Vec<Vec<String>> {
    let mut heading = names(comparison);
    heading.extend(["baseline", "sidestep", "ratio", "paper", "difference", "verdict"].map(str::to_owned));
    let mut table = vec![heading];
    for row in &comparison.rows {
        let mut cells = place(row);
        cells.extend(
            [Quantity::Baseline, Quantity::Sidestep, Quantity::Ratio].map(|quantity| match with_intervals {
                true => words::measured(row, quantity),
                false => words::median(row, quantity),
            }),
        );
        cells.push(join(row, |stated| {
            Some(format!(
                "{} {}",
                words::quantity(stated.quantity),
                words::stated(stated)
            ))
        }));
        cells.push(join(row, |stated| {
            Some(words::percent(stated.difference(row.quantity(stated.quantity)?)?))
        }));
        cells.push(match &row.result {
            Ok(_) => words::verdict(row.verdict()).to_owned(),
            Err(PointError::Unavailable(_)) => "not possible".to_owned(),
            Err(PointError::Cancelled) => "not run".to_owned(),
            Err(_) => "FAILED".to_owned(),
        });
        table.push(cells);
    }
    table
}

fn join(row: &Row, word: impl Fn(&crate::paper::Stated) -> Option<String>) -> String {
    row.stated.iter().filter_map(word).collect::<Vec<_>>().join(", ")
}

pub(super) fn errors(comparison: &Comparison) -> impl Iterator<Item = (String, &PointError)> {
    comparison.rows.iter().filter_map(|row| match &row.result {
        Err(PointError::Cancelled) | Ok(_) => None,
        Err(error) => Some((row.point.to_string(), error)),
    })
}

/// Whether there are counters to show.
pub(super) fn has_counters(comparison: &Comparison) -> bool {
    !comparison.counters().is_empty() && comparison.rows.iter().any(|row| row.result.is_ok())
}

/// The table of counters, heading first.
pub(super) fn counters(comparison: &Comparison) -> Vec<Vec<String>> {
    let counters = comparison.counters();
    let mut heading = names(comparison);
    heading.extend(counters.iter().map(|(name, unit)| match unit.as_str() {
        "" => name.clone(),
        unit => format!("{name} ({unit})"),
    }));
    let mut table = vec![heading];
    for row in &comparison.rows {
        let Ok(measurement) = &row.result else { continue };
        let mut cells = place(row);
        cells.extend(counters.iter().map(|(name, _)| {
            let show = |counter: Option<&Counter>| words::show_or_none(counter.map(|each| each.value));
            match (measurement.baseline.find(name), measurement.sidestep.find(name)) {
                (None, None) => String::new(),
                (baseline, sidestep) => format!("{} → {}", show(baseline), show(sidestep)),
            }
        }));
        table.push(cells);
    }
    table
}

/// How wide each column of a table is.
fn widths(table: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| {
        table
            .iter()
            .map(|row: &Vec<String>| row[column].chars().count())
            .max()
    };
    (0..table[0].len())
        .map(|column| width(column).unwrap_or(0))
        .collect()
}

/// How narrow a table can be laid out: its first `fixed` columns beside the widest other one.
fn narrowest(table: &[Vec<String>], fixed: usize) -> usize {
    let widths = widths(table);
    let (fixed, others) = widths.split_at(fixed);
    fixed
        .iter()
        .chain(others.iter().max())
        .map(|width| width + 2)
        .sum()
}

/// Lays a table out in columns, right-aligned but for names; splits it between columns where it is too wide, repeating
/// the first `fixed` columns.
pub(super) fn layout(table: &[Vec<String>], width: usize, fixed: usize) -> String {
    let columns = table[0].len();
    let widths = widths(table);
    let fixed_width: usize = widths[..fixed].iter().map(|width| width + 2).sum();
    let mut text = String::new();
    let mut begin = fixed;
    while begin < columns {
        let mut end = begin;
        let mut taken = fixed_width;
        while end < columns && (end == begin || taken + widths[end] + 2 <= width) {
            taken += widths[end] + 2;
            end += 1;
        }
        if begin > fixed {
            text.push('\n');
        }
        for row in table {
            let mut line = String::new();
            for column in (0..fixed).chain(begin..end) {
                let (cell, width) = (&row[column], widths[column]);
                let padding = " ".repeat(width - cell.chars().count());
                match is_name(table, column) {
                    true => write!(line, "  {cell}{padding}"),
                    false => write!(line, "  {padding}{cell}"),
                }
                .expect("writing to a string");
            }
            writeln!(text, "{}", line.trim_end()).expect("writing to a string");
        }
        begin = end;
    }
    text
}

/// Whether a column holds words rather than numbers.
pub(super) fn is_name(table: &[Vec<String>], column: usize) -> bool {
    table[1..]
        .iter()
        .map(|row| &row[column])
        .find(|cell| !cell.is_empty())
        .is_some_and(|cell| cell.starts_with(|first: char| first.is_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_split_down_to_its_widest_column() {
        let table = [
            ["point", "baseline", "sidestep"],
            ["a", "5 [4, 6]", "17 [16, 18]"],
        ];
        let table = table.map(|row| row.map(str::to_owned).to_vec());
        let width = narrowest(&table, 1);
        assert_eq!(width, 2 + 5 + 2 + 11);
        let text = layout(&table, width, 1);
        assert!(text.lines().all(|line| line.len() <= width), "{text}");
        assert!(text.lines().any(|line| line.len() == width), "{text}");
    }
}
