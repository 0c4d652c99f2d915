//! Measuring single points of an experiment that ships, for tests that look at a few of them.

use std::sync::atomic::AtomicBool;

use sidestep_experiments as experiments;
use sidestep_lab::{Context, Inputs, Measurement, Point, Shared};

/// Measures the points of an experiment with some settings, quickly.
pub fn measure(name: &str, settings: &[&str]) -> Vec<(Point, Measurement)> {
    let experiment = experiments::find(&[name.to_owned()]).expect("it ships")[0];
    let declared = experiment.inputs();
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let inputs = Inputs::new(name, &declared, true, &settings).expect("good settings");
    let (cancelled, shared) = (AtomicBool::new(false), Shared::new());
    let context = Context::new(0, false, &cancelled, &shared);
    let points = experiment.points(&inputs).expect("points");
    let fixed = inputs.without_axes(&declared);
    points
        .into_iter()
        .map(|point| {
            let measured = experiment.run_point(&fixed, &point, &context);
            let measurement = measured.unwrap_or_else(|error| panic!("{point}: {error}"));
            (point, measurement)
        })
        .collect()
}
