//! Comparisons as one JSON document.
//!
//! The schema is documented in the book, under *Formats*; [`SCHEMA`] names it and changes when a field changes its
//! meaning or goes away. New fields may come without a change.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Number as JsonNumber, Value as Json, json};

use super::words::command;
use crate::about::{Better, Nature};
use crate::comparison::Comparison;
use crate::drawing::{Drawing, Node, Part};
use crate::input::Value;
use crate::measurement::Side;
use crate::number::Number;
use crate::paper::{Expected, Finding, Quantity, Standing, Stated, Verdict};
use crate::point::PointError;
use crate::row::Row;

/// The name and version of the schema.
pub const SCHEMA: &str = "sidestep.compare/2";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    program: &'static str,
    comparisons: Vec<Experiment<'a>>,
}

#[derive(Serialize)]
struct Experiment<'a> {
    experiment: &'a str,
    question: &'a str,
    source: &'a str,
    baseline: &'a str,
    sidestep: &'a str,
    metric: &'a str,
    unit: &'a str,
    better: &'static str,
    nature: Nature,
    command: String,
    quick: bool,
    seed: u64,
    repetitions: u32,
    complete: bool,
    inputs: Vec<InputValue<'a>>,
    points: Vec<PointRow<'a>>,
    findings: &'a [Finding],
}

#[derive(Serialize)]
struct InputValue<'a> {
    key: &'a str,
    value: Json,
    unit: &'a str,
    about: &'a str,
    default: Json,
    source: &'a str,
}

#[derive(Serialize)]
struct PointRow<'a> {
    at: BTreeMap<String, Json>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    baseline: Option<JsonNumber>,
    sidestep: Option<JsonNumber>,
    ratio: Option<JsonNumber>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    intervals: BTreeMap<&'static str, Interval>,
    stated: Vec<Statement<'a>>,
    verdict: Verdict,
    counters: Counters<'a>,
    drawings: Vec<Json>,
}

#[derive(Serialize)]
struct Interval {
    low: JsonNumber,
    high: JsonNumber,
    confidence: JsonNumber,
}

#[derive(Serialize)]
struct Statement<'a> {
    quantity: Quantity,
    is: &'static str,
    value: JsonNumber,
    tolerance: Option<JsonNumber>,
    difference: Option<JsonNumber>,
    standing: Standing,
    verdict: Verdict,
    source: &'a str,
}

#[derive(Serialize)]
struct Counters<'a> {
    baseline: Vec<CounterValue<'a>>,
    sidestep: Vec<CounterValue<'a>>,
}

#[derive(Serialize)]
struct CounterValue<'a> {
    name: &'a str,
    value: JsonNumber,
    unit: &'a str,
}

/// Comparisons as one document, indented, with a newline at its end.
pub fn render(comparisons: &[Comparison]) -> String {
    let document = Document {
        schema: SCHEMA,
        program: concat!("sidestep ", env!("CARGO_PKG_VERSION")),
        comparisons: comparisons.iter().map(experiment).collect(),
    };
    let text = serde_json::to_string_pretty(&document).expect("text, numbers and lists are JSON");
    text + "\n"
}

fn experiment(comparison: &Comparison) -> Experiment<'_> {
    let about = &comparison.about;
    Experiment {
        experiment: about.name,
        question: about.question,
        source: about.source,
        baseline: about.baseline,
        sidestep: about.sidestep,
        metric: about.metric.name,
        unit: about.metric.unit,
        better: match about.metric.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
        },
        nature: about.nature,
        command: command(comparison),
        quick: comparison.quick,
        seed: comparison.seed,
        repetitions: comparison.repetitions,
        complete: comparison.is_complete(),
        inputs: (comparison.declared.iter())
            .map(|input| InputValue {
                key: input.key,
                value: value(comparison.inputs.value(input.key)),
                unit: input.unit,
                about: input.about,
                default: value(&input.default),
                source: input.source,
            })
            .collect(),
        points: comparison.rows.iter().map(point).collect(),
        findings: &comparison.findings,
    }
}

fn point(row: &Row) -> PointRow<'_> {
    let measurement = row.measurement();
    let side = |of: fn(&crate::measurement::Measurement) -> &Side| {
        measurement.map_or(Vec::new(), |each| counters(of(each)))
    };
    let quantities = [
        ("baseline", Quantity::Baseline),
        ("sidestep", Quantity::Sidestep),
        ("ratio", Quantity::Ratio),
    ];
    let interval = |quantity| {
        let median = row.spread?.of(quantity)?;
        Some(Interval {
            low: number(median.low),
            high: number(median.high),
            confidence: number(median.confidence),
        })
    };
    PointRow {
        at: (row.point.coordinates())
            .map(|(key, coordinate)| {
                (
                    super::columns::coordinate_name(key, coordinate),
                    value(coordinate),
                )
            })
            .collect(),
        status: status(row),
        error: row.result.as_ref().err().map(ToString::to_string),
        baseline: row.quantity(Quantity::Baseline).map(number),
        sidestep: row.quantity(Quantity::Sidestep).map(number),
        ratio: row.quantity(Quantity::Ratio).map(number),
        intervals: (quantities.into_iter())
            .filter_map(|(name, quantity)| Some((name, interval(quantity)?)))
            .collect(),
        stated: row.stated.iter().map(|stated| statement(row, stated)).collect(),
        verdict: row.verdict(),
        counters: Counters {
            baseline: side(|each| &each.baseline),
            sidestep: side(|each| &each.sidestep),
        },
        drawings: measurement.map_or(Vec::new(), |measurement| {
            let shared = measurement.drawings.iter().map(|each| ("both", each));
            let baseline = measurement
                .baseline
                .drawings
                .iter()
                .map(|each| ("baseline", each));
            let sidestep = measurement
                .sidestep
                .drawings
                .iter()
                .map(|each| ("sidestep", each));
            shared
                .chain(baseline)
                .chain(sidestep)
                .map(|(side, each)| drawing(side, each))
                .collect()
        }),
    }
}

/// Whether a row was measured, and if not, why.
pub(super) fn status(row: &Row) -> &'static str {
    match &row.result {
        Ok(_) => "measured",
        Err(PointError::Unavailable(_)) => "unavailable",
        Err(PointError::Failed(_)) => "failed",
        Err(PointError::Panicked(_)) => "panicked",
        Err(PointError::Cancelled) => "not-run",
    }
}

fn statement<'a>(row: &Row, stated: &'a Stated) -> Statement<'a> {
    let ours = row.quantity(stated.quantity);
    Statement {
        quantity: stated.quantity,
        is: match stated.expected {
            Expected::Value { .. } => "value",
            Expected::AtLeast(_) => "at-least",
            Expected::AtMost(_) => "at-most",
        },
        value: number(stated.number()),
        tolerance: match stated.expected {
            Expected::Value { tolerance, .. } => Some(number(tolerance)),
            Expected::AtLeast(_) | Expected::AtMost(_) => None,
        },
        difference: ours.and_then(|ours| stated.difference(ours)).map(number),
        standing: stated.standing,
        verdict: row.judge(stated).unwrap_or(Verdict::NotStated),
        source: &stated.source,
    }
}

fn counters(side: &Side) -> Vec<CounterValue<'_>> {
    (side.counters.iter())
        .map(|counter| CounterValue {
            name: &counter.name,
            value: number(counter.value),
            unit: &counter.unit,
        })
        .collect()
}

/// A drawing as data, with the side that it belongs to.
fn drawing(side: &str, drawing: &Drawing) -> Json {
    match drawing {
        Drawing::Matrix(matrix) => json!({
            "side": side,
            "kind": "matrix",
            "title": matrix.title,
            "unit": matrix.unit,
            "rows": { "title": matrix.rows.0, "names": matrix.rows.1 },
            "columns": { "title": matrix.columns.0, "names": matrix.columns.1 },
            "cells": matrix.cells.iter().map(|row| row.iter().map(|cell| cell.map(number)).collect()).collect::<Vec<Vec<_>>>(),
        }),
        Drawing::Tree(tree) => {
            json!({ "side": side, "kind": "tree", "title": tree.title, "root": node(&tree.root) })
        }
        Drawing::Breakdown(breakdown) => json!({
            "side": side,
            "kind": "breakdown",
            "title": breakdown.title,
            "unit": breakdown.unit,
            "whole": part(&breakdown.whole),
        }),
    }
}

fn node(node: &Node) -> Json {
    let children: Vec<Json> = node.children.iter().map(self::node).collect();
    json!({ "label": node.label, "set": node.set, "children": children })
}

fn part(part: &Part) -> Json {
    let parts: Vec<Json> = part.parts.iter().map(self::part).collect();
    json!({ "name": part.name, "value": number(part.value), "parts": parts })
}

/// A value of an input or coordinate; times in nanoseconds.
pub(super) fn value(value: &Value) -> Json {
    match value {
        Value::Integer(integer) => Json::from(*integer),
        Value::Ratio(ratio) => Json::Number(number(*ratio)),
        Value::Duration { ns } => Json::from(*ns),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Switch(on) => Json::from(*on),
        Value::List(elements) => elements.iter().map(self::value).collect(),
    }
}

/// A number as JSON knows it: integers in full, others to nine digits.
pub(super) fn number(number: Number) -> JsonNumber {
    let integer = || match i64::try_from(number.numerator()) {
        Ok(integer) => Some(JsonNumber::from(integer)),
        Err(_) => u64::try_from(number.numerator()).ok().map(JsonNumber::from),
    };
    (number.is_integer().then(integer).flatten())
        .unwrap_or_else(|| JsonNumber::from_f64(number.to_f64()).expect("a finite number"))
}
