//! The tables of the page: points, counters, inputs.

use maud::{Markup, html};

use super::{class, prose};
use crate::comparison::Comparison;
use crate::input::{Input, Value};
use crate::measurement::Counter;
use crate::paper::Quantity;
use crate::point::PointError;
use crate::report::words;
use crate::row::Row;

/// So many rows of a table are shown at most.
pub(super) const ROWS: usize = 1000;

/// A table that is scrolled by itself where it is wider than the page, by keyboard too.
pub(super) fn scroll(label: &str, table: &Markup) -> Markup {
    html! { div.scroll role="region" aria-label=(label) tabindex="0" { (table) } }
}

/// What is said below a table of which not all rows are shown.
pub(super) fn left_out(rows: usize, what: &str) -> Markup {
    html! {
        @if rows > ROWS {
            p.note { "The first " (ROWS) " of " (rows) " " (what) "; " code { "--format csv" } " has all." }
        }
    }
}

fn coordinate_headings(comparison: &Comparison) -> Markup {
    html! {
        @if let Some(row) = comparison.rows.first() {
            @for (key, _) in row.point.coordinates() { th scope="col" { (key) } }
        }
    }
}

fn coordinates(row: &Row) -> Markup {
    html! {
        @for (_, value) in row.point.coordinates() {
            @if matches!(value, Value::Text(_) | Value::Switch(_)) { td.at { (value) } }
            @else { td.at.number { (value) } }
        }
    }
}

/// A row a point: ours, the paper's, the verdict.
pub(super) fn points(comparison: &Comparison) -> Markup {
    let columns = comparison
        .rows
        .first()
        .map_or(0, |row| row.point.coordinates().len())
        + 6;
    let table = html! {
            table.filterable data-what="points" {
                thead {
                    tr {
                        (coordinate_headings(comparison))
                        th.number scope="col" { "baseline" } th.number scope="col" { "sidestep" } th.number scope="col" { "ratio" }
                        th.number scope="col" { "paper" } th.number scope="col" { "difference" } th scope="col" { "verdict" }
                    }
                }
                tbody {
                    @for row in comparison.rows.iter().take(ROWS) {
                        tr data-verdict=(outcome(row).0) {
                            (coordinates(row))
                            @for quantity in [Quantity::Baseline, Quantity::Sidestep, Quantity::Ratio] {
                                td.number {
                                    (words::show_or_none(row.quantity(quantity)))
                                    @if let Some(median) = row.spread.and_then(|spread| spread.of(quantity)) {
                                        div.interval { (words::show(median.low)) " to " (words::show(median.high)) }
                                    }
                                }
                            }
                            td.number {
                                @for stated in &row.stated {
                                    div title=(stated.source) { (words::quantity(stated.quantity)) " " (words::stated(stated)) }
                                }
                            }
                            td.number {
                                @for stated in &row.stated {
                                    div { (difference(row, stated)) }
                                }
                            }
                            td { @let (name, class) = outcome(row); span class={ "verdict " (class) } { (name) } }
                        }
                        @if let Err(error) = &row.result {
                            tr.attached { td.error colspan=(columns) { (error) } }
                        }
                    }
                }
            }
            (left_out(comparison.rows.len(), "points"))
    };
    scroll("Every point", &table)
}

pub(super) fn difference(row: &Row, stated: &crate::paper::Stated) -> String {
    (row.quantity(stated.quantity))
        .and_then(|ours| stated.difference(ours))
        .map_or("–".to_owned(), words::percent)
}

/// What is said of a row's outcome, and its class.
fn outcome(row: &Row) -> (&'static str, &'static str) {
    let verdict = row.verdict();
    match &row.result {
        Ok(_) => (words::verdict(verdict), class(verdict)),
        Err(PointError::Unavailable(_)) => ("not possible", "not-stated"),
        Err(PointError::Cancelled) => ("not run", "not-stated"),
        Err(_) => ("failed", "differs"),
    }
}

/// A row a point, a pair of columns a counter.
pub(super) fn counters(comparison: &Comparison) -> Markup {
    let counters = comparison.counters();
    let table = html! {
            table.filterable data-what="points" {
                thead {
                    tr {
                        (coordinate_headings(comparison))
                        @for (name, unit) in &counters {
                            th.number scope="col" { (name) @if !unit.is_empty() { " (" (unit) ")" } }
                        }
                    }
                }
                tbody {
                    @for row in comparison.rows.iter().take(ROWS) {
                        @if let Some(measurement) = row.measurement() {
                            tr {
                                (coordinates(row))
                                @for (name, _) in &counters {
                                    td.number.pair {
                                        span.baseline { (counter(measurement.baseline.find(name))) }
                                        span.sidestep { (counter(measurement.sidestep.find(name))) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            (left_out(comparison.rows.len(), "points"))
    };
    html! {
        (scroll("What explains it", &table))
        p.note { "In each cell: " span.baseline { "baseline" } " above, " span.sidestep { "sidestep" } " below." }
    }
}

fn counter(counter: Option<&Counter>) -> String {
    words::show_or_none(counter.map(|each| each.value))
}

/// Every input with its value, default and source.
pub(super) fn inputs(comparison: &Comparison) -> Markup {
    let table = html! {
            table.inputs.filterable data-what="inputs" {
                thead {
                    tr {
                        th scope="col" { "input" } th scope="col" { "value" } th scope="col" { "what it is" }
                        th scope="col" { "default and its source" }
                    }
                }
                tbody {
                    @for input in &comparison.declared {
                        @let value = comparison.inputs.value(input.key);
                        tr {
                            td { code { (input.key) } }
                            td { (shown(value, input)) }
                            td { (prose(input.about)) }
                            td {
                                @if *value != input.default { (shown(&input.default, input)) "; " }
                                (prose(input.source))
                            }
                        }
                    }
                }
            }
    };
    html! {
        (scroll("Inputs", &table))
        @if comparison.inputs.iter().next().is_none() { p.note { "This experiment has no inputs." } }
    }
}

fn shown(value: &Value, input: &Input) -> String {
    let text = match value {
        Value::List(elements) => elements
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
        Value::Text(text) if text.is_empty() => "none".to_owned(),
        value => value.to_string(),
    };
    match input.unit {
        "" => text,
        unit => format!("{text} {unit}"),
    }
}
