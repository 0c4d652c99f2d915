//! Comparisons as one table of columns, a row a point: what CSV and Parquet share.
//!
//! First the columns that every experiment has, in a fixed order; then one column for each coordinate, `at.KEY`; then
//! one for each counter of each side, `baseline.NAME` and `sidestep.NAME`; in order of first appearance. The schema is
//! documented in the book, under *Formats*.

use super::json;
use crate::about::Better;
use crate::comparison::Comparison;
use crate::input::Value;
use crate::measurement::Side;
use crate::number::Number;
use crate::paper::{Expected, Quantity};
use crate::row::Row;

/// A column: its name, and a cell for each point of each experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub name: String,
    pub cells: Cells,
}

/// The cells of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cells {
    Text(Vec<Option<String>>),
    Number(Vec<Option<Number>>),
}

/// The name of a coordinate's column: durations say their unit.
pub(super) fn coordinate_name(key: &str, value: &Value) -> String {
    match value {
        Value::Duration { .. } => format!("{key}_ns"),
        _ => key.to_owned(),
    }
}

type Point<'a> = (&'a Comparison, &'a Row);

/// Every column, of the same length.
pub(super) fn columns(comparisons: &[Comparison]) -> Vec<Column> {
    let points: Vec<Point> = comparisons
        .iter()
        .flat_map(|comparison| comparison.rows.iter().map(move |row| (comparison, row)))
        .collect();
    let mut columns = fixed(&points);
    columns.extend(coordinates(&points));
    columns.extend(counters(&points, "baseline", |row| {
        Some(&row.measurement()?.baseline)
    }));
    columns.extend(counters(&points, "sidestep", |row| {
        Some(&row.measurement()?.sidestep)
    }));
    columns
}

fn text(name: &str, points: &[Point], cell: impl Fn(&Point) -> Option<String>) -> Column {
    Column {
        name: name.to_owned(),
        cells: Cells::Text(points.iter().map(cell).collect()),
    }
}

fn number(name: &str, points: &[Point], cell: impl Fn(&Row) -> Option<Number>) -> Column {
    Column {
        name: name.to_owned(),
        cells: Cells::Number(points.iter().map(|(_, row)| cell(row)).collect()),
    }
}

fn fixed(points: &[Point]) -> Vec<Column> {
    use Quantity::{Baseline, Ratio, Sidestep};
    let named = [("baseline", Baseline), ("sidestep", Sidestep), ("ratio", Ratio)];
    let mut columns = vec![
        text("schema", points, |_| Some(json::SCHEMA.to_owned())),
        text("experiment", points, |(comparison, _)| {
            Some(comparison.about.name.to_owned())
        }),
        text("point", points, |(_, row)| Some(row.point.to_string())),
        text("status", points, |(_, row)| Some(json::status(row).to_owned())),
        text("error", points, |(_, row)| {
            row.result.as_ref().err().map(ToString::to_string)
        }),
        text("metric", points, |(comparison, _)| {
            Some(comparison.about.metric.name.to_owned())
        }),
        text("unit", points, |(comparison, _)| {
            Some(comparison.about.metric.unit.to_owned())
        }),
        text("better", points, |(comparison, _)| {
            let better = match comparison.about.metric.better {
                Better::Lower => "lower",
                Better::Higher => "higher",
            };
            Some(better.to_owned())
        }),
    ];
    for (name, quantity) in named {
        columns.push(number(name, points, |row| row.quantity(quantity)));
    }
    for (name, quantity) in named {
        let median = move |row: &Row| row.spread?.of(quantity);
        columns.push(number(&format!("{name}_low"), points, |row| {
            Some(median(row)?.low)
        }));
        columns.push(number(&format!("{name}_high"), points, |row| {
            Some(median(row)?.high)
        }));
    }
    columns.push(number("confidence", points, |row| {
        Some(row.spread?.sidestep?.confidence)
    }));
    for (name, quantity) in named {
        columns.push(number(&format!("paper_{name}"), points, |row| {
            Some(row.statement(quantity)?.number())
        }));
        columns.push(text(&format!("paper_{name}_is"), points, |(_, row)| {
            let is = match row.statement(quantity)?.expected {
                Expected::Value { .. } => "value",
                Expected::AtLeast(_) => "at-least",
                Expected::AtMost(_) => "at-most",
            };
            Some(is.to_owned())
        }));
        columns.push(number(&format!("difference_{name}"), points, |row| {
            row.statement(quantity)?.difference(row.quantity(quantity)?)
        }));
    }
    columns.push(text("paper_source", points, |(_, row)| {
        let sources: Vec<&str> = row.stated.iter().map(|stated| stated.source.as_str()).collect();
        (!sources.is_empty()).then(|| sources.join("; "))
    }));
    columns.push(text("verdict", points, |(_, row)| {
        Some(super::words::verdict(row.verdict()).replace(' ', "-"))
    }));
    columns
}

fn coordinates(points: &[Point]) -> Vec<Column> {
    let mut names: Vec<String> = Vec::new();
    for (key, value) in points.iter().flat_map(|(_, row)| row.point.coordinates()) {
        let name = coordinate_name(key, value);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
        .into_iter()
        .map(|name| {
            let values: Vec<Option<&Value>> = points
                .iter()
                .map(|(_, row)| {
                    let mut coordinates = row.point.coordinates();
                    coordinates
                        .find(|(key, value)| coordinate_name(key, value) == name)
                        .map(|(_, value)| value)
                })
                .collect();
            let numeric = values.iter().flatten().all(|value| value.number().is_some());
            Column {
                name: format!("at.{name}"),
                cells: match numeric {
                    true => Cells::Number(values.iter().map(|value| value.and_then(Value::number)).collect()),
                    false => Cells::Text(
                        values
                            .iter()
                            .map(|value| value.map(ToString::to_string))
                            .collect(),
                    ),
                },
            }
        })
        .collect()
}

fn counters(points: &[Point], prefix: &str, side: fn(&Row) -> Option<&Side>) -> Vec<Column> {
    let mut names: Vec<String> = Vec::new();
    for counter in points
        .iter()
        .filter_map(|(_, row)| side(row))
        .flat_map(|side| &side.counters)
    {
        if !names.iter().any(|name| *name == counter.name) {
            names.push(counter.name.to_string());
        }
    }
    names
        .iter()
        .map(|name| {
            number(&format!("{prefix}.{name}"), points, |row| {
                Some(side(row)?.find(name)?.value)
            })
        })
        .collect()
}
