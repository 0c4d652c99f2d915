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

fn coordinate_headings(comparison: &Comparison) -> Markup {
    html! {
        @if let Some(row) = comparison.rows.first() {
            @for (key, _) in row.point.coordinates() { th { (key) } }
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
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        (coordinate_headings(comparison))
                        th.number { "baseline" } th.number { "sidestep" } th.number { "ratio" }
                        th.number { "paper" } th.number { "difference" } th { "verdict" }
                    }
                }
                tbody {
                    @for row in &comparison.rows {
                        tr {
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
                            td { (outcome(row)) }
                        }
                        @if let Err(error) = &row.result {
                            tr { td.error colspan=(columns) { (error) } }
                        }
                    }
                }
            }
        }
    }
}

fn difference(row: &Row, stated: &crate::paper::Stated) -> String {
    (row.quantity(stated.quantity))
        .and_then(|ours| stated.difference(ours))
        .map_or("–".to_owned(), words::percent)
}

fn outcome(row: &Row) -> Markup {
    let verdict = row.verdict();
    html! {
        @match &row.result {
            Ok(_) => span class={ "verdict " (class(verdict)) } { (words::verdict(verdict)) },
            Err(PointError::Unavailable(_)) => span.verdict.not-stated { "not possible" },
            Err(PointError::Cancelled) => span.verdict.not-stated { "not run" },
            Err(_) => span.verdict.differs { "failed" },
        }
    }
}

/// A row a point, a pair of columns a counter.
pub(super) fn counters(comparison: &Comparison) -> Markup {
    let counters = comparison.counters();
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        (coordinate_headings(comparison))
                        @for (name, unit) in &counters {
                            th.number { (name) @if !unit.is_empty() { " (" (unit) ")" } }
                        }
                    }
                }
                tbody {
                    @for row in &comparison.rows {
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
        }
        p.note { "In each cell: " span.baseline { "baseline" } " above, " span.sidestep { "sidestep" } " below." }
    }
}

fn counter(counter: Option<&Counter>) -> String {
    words::show_or_none(counter.map(|each| each.value))
}

/// Every input with its value, default and source.
pub(super) fn inputs(comparison: &Comparison) -> Markup {
    html! {
        div.scroll {
            table.inputs {
                thead { tr { th { "input" } th { "value" } th { "what it is" } th { "default and its source" } } }
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
        }
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
