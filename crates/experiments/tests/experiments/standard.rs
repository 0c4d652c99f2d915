//! What every experiment that ships must hold to.

use std::collections::BTreeSet;

use sidestep_experiments::all;
use sidestep_lab::{Experiment, Inputs, Measure, Point};

fn points(experiment: &dyn Experiment, quick: bool) -> Vec<Point> {
    let name = experiment.about().name;
    let inputs = Inputs::new(name, &experiment.inputs(), quick, &[]).expect("the defaults are values");
    experiment
        .points(&inputs)
        .unwrap_or_else(|error| panic!("{name}: its own defaults contradict each other: {error}"))
}

#[test]
fn names_are_unique_and_formed_alike() {
    let mut seen = BTreeSet::new();
    for experiment in all() {
        let name = experiment.about().name;
        assert!(seen.insert(name), "{name} occurs twice");
        let (area, rest) = name.split_once('.').unwrap_or_else(|| panic!("{name}: no area"));
        for part in [area, rest] {
            let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(!part.is_empty() && part.bytes().all(good), "{name}: a bad name");
        }
    }
}

#[test]
fn what_is_shown_to_users_is_there() {
    for experiment in all() {
        let about = experiment.about();
        let name = about.name;
        assert!(about.question.ends_with('?'), "{name}: the question is not one");
        assert!(
            !about.question.contains('\n'),
            "{name}: the question takes one line"
        );
        for (what, text) in [
            ("source", about.source),
            ("setting", about.setting),
            ("baseline", about.baseline),
            ("sidestep", about.sidestep),
            ("metric", about.metric.name),
            ("reading", about.reading),
        ] {
            assert!(!text.trim().is_empty(), "{name}: no {what}");
        }
        assert!(
            about.takes.0 <= about.takes.1,
            "{name}: quick takes longer than full"
        );
    }
}

#[test]
fn inputs_have_bounds_defaults_and_sources() {
    for experiment in all() {
        let name = experiment.about().name;
        let mut keys = BTreeSet::new();
        for input in experiment.inputs() {
            let key = input.key;
            assert!(keys.insert(key), "{name}: two inputs are called {key}");
            assert!(!input.about.is_empty(), "{name}: input {key} is not explained");
            assert!(!input.source.is_empty(), "{name}: input {key} has no source");
            for value in [Some(&input.default), input.quick.as_ref()].into_iter().flatten() {
                let text = value.to_string();
                assert_eq!(input.parse(&text).as_ref(), Ok(value), "{name}: default of {key}");
            }
        }
    }
}

#[test]
fn points_are_distinct_and_have_the_same_coordinates() {
    for experiment in all() {
        let name = experiment.about().name;
        for quick in [true, false] {
            let points = points(experiment, quick);
            assert!(!points.is_empty(), "{name}: nothing to measure");
            let keys = |point: &Point| -> Vec<String> {
                point.coordinates().map(|(key, _)| key.to_owned()).collect()
            };
            assert!(
                points.iter().all(|point| keys(point) == keys(&points[0])),
                "{name}: coordinates vary"
            );
            let distinct: BTreeSet<_> = points.iter().collect();
            assert_eq!(distinct.len(), points.len(), "{name}: a point occurs twice");
        }
    }
}

#[test]
fn charts_name_coordinates_and_axes_that_exist() {
    for experiment in all() {
        let name = experiment.about().name;
        let point = &points(experiment, true)[0];
        for figure in experiment.figures() {
            for coordinate in figure.lines.iter().chain([&figure.x.coordinate]) {
                assert!(
                    point.find(coordinate).is_some(),
                    "{name}: {} has no {coordinate}",
                    figure.title
                );
            }
            assert!(
                !figure.x.label.is_empty() && !figure.y_label.is_empty(),
                "{name}: axis without a name"
            );
            if figure.y == Measure::Value {
                assert_eq!(
                    figure.y_unit,
                    experiment.about().metric.unit,
                    "{name}: {}",
                    figure.title
                );
            }
        }
    }
}
