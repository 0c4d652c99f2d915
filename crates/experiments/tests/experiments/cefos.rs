//! The experiments of CEFOS on a few points: they run, repeat to the last digit, and show what the paper is about.

use crate::points::measure;
use sidestep_lab::{Measurement, Number};

fn values(measurement: &Measurement) -> (Number, Number) {
    let value = |side: &sidestep_lab::Side| side.value.expect("a value");
    (value(&measurement.baseline), value(&measurement.sidestep))
}

#[test]
fn the_software_queue_gains_more_the_more_calls_wait() {
    let points = measure("cefos.gates", &["calls=10,80"]);
    let gains: Vec<Number> = points
        .iter()
        .map(|(_, measurement)| {
            let (hardware, software) = values(measurement);
            hardware.over(software).expect("clocks")
        })
        .collect();
    assert!(
        gains[0] > Number::ONE && gains[1] > gains[0] + gains[0],
        "{gains:?}"
    );
    assert_eq!(
        points,
        measure("cefos.gates", &["calls=10,80"]),
        "the same inputs give the same numbers"
    );
}

#[test]
fn more_devices_and_units_complete_more_calls() {
    let settings = ["round-trip=2us", "devices=1,2", "units=2", "period=20000"];
    let points = measure("cefos.scaling", &settings);
    let completed: Vec<Number> = points
        .iter()
        .map(|(_, measurement)| values(measurement).1)
        .collect();
    assert!(completed[1] > completed[0], "{completed:?}");
    let attached = measure(
        "cefos.scaling",
        &["device-model=attached", "round-trip=2us", "devices=1", "units=1"],
    );
    assert!(values(&attached[0].1).0 > Number::from(30));
}

#[test]
fn interrupts_livelock_and_continuations_do_not() {
    let points = measure(
        "cefos.livelock",
        &["units=1", "interval=8000,600", "period=200000"],
    );
    let (light, heavy) = (values(&points[0].1), values(&points[1].1));
    assert_eq!(light.0, light.1, "a light load is completed either way");
    assert!(heavy.0.is_zero() && heavy.1 > light.1, "{heavy:?}");
}
