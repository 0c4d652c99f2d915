//! An experiment written against the public interface alone.

#[allow(dead_code)] // Each test uses some of the samples.
mod sample;

use std::sync::atomic::AtomicBool;

use sample::RedundantSignals;
use sidestep_lab::{Context, Experiment, Inputs, Number, Quantity, Row, Shared, Verdict};

fn rows(settings: &[&str]) -> Vec<Row> {
    let experiment = RedundantSignals;
    let settings: Vec<String> = settings.iter().map(|text| text.to_string()).collect();
    let declared = experiment.inputs();
    let inputs = Inputs::new(experiment.about().name, &declared, false, &settings).unwrap();
    let readable = inputs.without_axes(&declared);
    let (cancelled, shared) = (AtomicBool::new(false), Shared::new());
    let context = Context::new(1, true, &cancelled, &shared);
    let points = experiment.points(&inputs).unwrap();
    points
        .into_iter()
        .map(|point| Row {
            result: experiment.run_point(&readable, &point, &context),
            stated: experiment.stated(&readable, &point),
            metric: experiment.about().metric,
            point,
            spread: None,
        })
        .collect()
}

#[test]
fn rows_carry_value_ratio_and_verdict() {
    let rows = rows(&[]);
    let ratios: Vec<_> = rows
        .iter()
        .map(|row| row.quantity(Quantity::Ratio).unwrap())
        .collect();
    assert_eq!(ratios, [1, 1, 2, 4].map(Number::from));
    let verdicts: Vec<_> = rows.iter().map(Row::verdict).collect();
    use Verdict::{Holds, NotStated};
    assert_eq!(verdicts, [Holds, Holds, NotStated, NotStated]);
}

#[test]
fn inputs_change_the_outcome() {
    let rows = rows(&["guests=32", "bits=64", "wake=1us"]);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].quantity(Quantity::Baseline), Some(Number::from(1000)));
}
