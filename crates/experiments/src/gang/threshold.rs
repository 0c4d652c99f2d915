//! The factor t, which the paper calls crucial and hard to choose, against the selection that needs none.

use std::time::Duration;

use sidestep_gang::topology::Placement;
use sidestep_gang::{Ratio, Selection};
use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Quantity, Row, Verdict,
};

use super::PAPER;
use super::scenario::{KIND_NAMES, LOADS, Setup, UNCOORDINATED, both, inputs, side, uncoordinated_ns};

/// The factor against the selection without one.
pub struct Threshold;

impl Experiment for Threshold {
    fn about(&self) -> About {
        About {
            name: "gang.threshold",
            question: "How much depends on the factor t, and does a selection without it do as well as the best t?",
            source: "Busse et al., Partial Coscheduling (2015), section 5: the parameter is crucial and hard to choose",
            setting: "The scenarios of gang.policies, with sets found while running.",
            baseline: "sets cut with the factor t",
            sidestep: "sets of greatest modularity, no factor",
            metric: Metric {
                name: "execution times of both machines, a round each",
                unit: "ns",
                better: Better::Lower,
            },
            nature: Nature::Seeded,
            takes: (Duration::from_secs(1), Duration::from_secs(40)),
            reading: "A ratio above one says that the factor cut wrongly: too low a factor tears threads apart that \
                      wait for each other, too high a one keeps programs together that have nothing to do with each \
                      other.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut all = vec![
            Input::ratios("factors", &["1.1", "1.25", "1.5", "2", "3", "5", "10"])
                .within("0.01", "1000")
                .quick("1.1,1.5,3")
                .about("factors t")
                .source("Partial Coscheduling 4: t = 1.5; others chosen around it")
                .axis(),
            Input::choices("workloads", KIND_NAMES)
                .or("bulk,regular,irregular")
                .quick("irregular")
                .about("the kinds of programs")
                .source("Partial Coscheduling, Table 1, by focus; parameters chosen")
                .axis(),
            Input::choices("loads", LOADS)
                .or("double,quad")
                .quick("double")
                .about("what VM1 runs")
                .source("Partial Coscheduling 4, Figure 5")
                .axis(),
        ];
        all.extend(inputs());
        all
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let mut points = Vec::new();
        for workload in inputs.texts("workloads") {
            for load in inputs.texts("loads") {
                for factor in inputs.ratios("factors") {
                    points.push(
                        Point::new()
                            .at("workload", workload)
                            .at("load", load)
                            .at("t", factor),
                    );
                }
            }
        }
        Ok(points)
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let setup = Setup::new(inputs, context);
        let kind = Setup::kind(point.value("workload").text());
        let scenario = setup.scenario(kind, point.value("load").text(), 8);
        let factor = point.value("t").ratio();
        let part = |part: i128| u128::try_from(part).expect("bounds that exclude negative factors");
        let factor = Selection::Factor(Ratio::new(part(factor.numerator()), part(factor.denominator())));
        let schedules =
            [factor, Selection::Modularity].map(|selection| setup.automatic(selection, Placement::Nearest));
        let [with_factor, without] = both(&scenario, schedules, context)?;
        let mut baseline = side(&scenario, &with_factor, context);
        if let Some(time) = uncoordinated_ns(&setup, &scenario) {
            baseline = baseline.counter(UNCOORDINATED, time, "ns");
        }
        Ok(Measurement::new(baseline, side(&scenario, &without, context)))
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let measured: Vec<(&Row, Number)> = rows
            .iter()
            .filter_map(|row| row.quantity(Quantity::Ratio).map(|ratio| (row, ratio)))
            .collect();
        // Within a load the selection without a factor is the same, so the ratios compare the factors.
        let spread = |(row, ratio): &(&Row, Number)| {
            let of_load = measured.iter().filter(|(other, _)| {
                ["workload", "load"]
                    .iter()
                    .all(|key| other.point.value(key) == row.point.value(key))
            });
            ratio.over(of_load.map(|(_, ratio)| *ratio).min()?)
        };
        let Some(spread) = measured.iter().filter_map(spread).max() else {
            return Vec::new();
        };
        let matters = spread > Number::decimal("1.05");
        let not_worse = measured
            .iter()
            .filter(|(_, ratio)| *ratio >= Number::decimal("0.98"))
            .count();
        vec![
            Finding {
                value: Some(spread),
                about: "a wrong factor's cost".to_owned(),
                stated: "the parameter is crucial".to_owned(),
                source: format!("{PAPER}, section 5"),
                ours: format!("up to {} times slower than with the best factor", spread.to_decimal(2)),
                verdict: Verdict::of(matters),
                because: "where programs share nothing with each other, every factor cuts at the same nodes, or at none"
                    .to_owned(),
            },
            Finding {
                value: None,
                about: "the selection without a factor".to_owned(),
                stated: String::new(),
                source: "none: beyond the paper".to_owned(),
                ours: format!(
                    "within 2 % of the factor's result or better in {not_worse} of {}",
                    measured.len()
                ),
                verdict: Verdict::NotStated,
                because: String::new(),
            },
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        let factor = Axis::new("t", "factor t", "").logarithmic();
        vec![
            Figure::lines(
                "Execution time by factor",
                factor,
                Measure::Value,
                "a round of both machines",
                "ns",
            )
            .split_by(&["workload", "load"]),
        ]
    }
}
