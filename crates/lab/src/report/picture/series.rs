//! The lines (or bars) of a chart: which numbers of which points, and what the paper states beside them.

use crate::figure::{Figure, Measure};
use crate::input::Value;
use crate::number::Number;
use crate::paper::{Expected, Quantity};
use crate::row::Row;

/// A line, or the bars of one colour.
pub(super) struct Series {
    /// What the legend calls it.
    pub label: String,
    /// Which group of the splitting coordinates it belongs to.
    pub group: usize,
    /// Which of our numbers it shows.
    pub quantity: Quantity,
    /// Its points.
    pub marks: Vec<Mark>,
}

/// A point of a line.
pub(super) struct Mark {
    /// Where along the horizontal axis.
    pub x: Value,
    /// How high.
    pub y: Number,
    /// The confidence interval.
    pub interval: Option<(Number, Number)>,
    /// What the paper states, and how far from it ours may lie.
    pub stated: Option<(Number, Number)>,
}

/// The series of a chart over some rows, and how many groups there are.
pub(super) fn series(rows: &[&Row], figure: &Figure) -> (Vec<Series>, usize) {
    let mut groups: Vec<Vec<String>> = Vec::new();
    for row in rows {
        let group = group_of(row, figure);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let quantities: &[Quantity] = match figure.y {
        Measure::Ratio => &[Quantity::Ratio],
        Measure::Value | Measure::Counter(_) => &[Quantity::Baseline, Quantity::Sidestep],
    };
    let mut all = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        for &quantity in quantities {
            let marks: Vec<Mark> = (rows.iter())
                .filter(|row| group_of(row, figure) == *group)
                .filter_map(|row| mark(row, figure, quantity))
                .collect();
            if !marks.is_empty() {
                all.push(Series {
                    label: label(rows, figure, group, quantity),
                    group: index,
                    quantity,
                    marks,
                });
            }
        }
    }
    (all, groups.len())
}

fn group_of(row: &Row, figure: &Figure) -> Vec<String> {
    let value = |key: &&str| row.point.find(key).map_or(String::new(), ToString::to_string);
    figure.lines.iter().map(value).collect()
}

fn label(rows: &[&Row], figure: &Figure, group: &[String], quantity: Quantity) -> String {
    let side = match quantity {
        Quantity::Baseline => "baseline",
        Quantity::Sidestep => "sidestep",
        Quantity::Ratio => "gain",
    };
    let group: Vec<String> = (figure.lines.iter().zip(group))
        .map(|(key, value)| place(rows, key, value))
        .collect();
    match (group.is_empty(), quantity) {
        (true, _) => side.to_owned(),
        (false, Quantity::Ratio) => group.join(", "),
        (false, _) => format!("{}: {side}", group.join(", ")),
    }
}

/// A coordinate in words: a name says enough by itself, a number needs its key.
pub(super) fn place(rows: &[&Row], key: &str, value: &str) -> String {
    match rows
        .iter()
        .any(|row| matches!(row.point.find(key), Some(Value::Text(_))))
    {
        true => value.to_owned(),
        false => format!("{key} {value}"),
    }
}

fn mark(row: &Row, figure: &Figure, quantity: Quantity) -> Option<Mark> {
    let measurement = row.measurement()?;
    let x = row.point.find(figure.x.coordinate)?.clone();
    if let Measure::Counter(name) = figure.y {
        let side = match quantity {
            Quantity::Baseline => &measurement.baseline,
            Quantity::Sidestep | Quantity::Ratio => &measurement.sidestep,
        };
        return Some(Mark {
            x,
            y: side.find(name)?.value,
            interval: None,
            stated: None,
        });
    }
    let stated = row.statement(quantity).and_then(|stated| match stated.expected {
        Expected::Value { value, tolerance } => Some((value, value.abs() * tolerance)),
        // A bound is no point to be drawn.
        Expected::AtLeast(_) | Expected::AtMost(_) => None,
    });
    Some(Mark {
        x,
        y: row.quantity(quantity)?,
        interval: row
            .spread
            .and_then(|spread| spread.of(quantity))
            .map(|median| (median.low, median.high)),
        stated,
    })
}
