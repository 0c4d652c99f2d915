//! What it costs to find out who shares memory, against how often pages are taken away.

use std::time::Duration;

use sidestep_gang::Selection;
use sidestep_hypervisor::virtual_machine::DetectionSettings;
use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Quantity, Row, Verdict,
};

use super::npb::hosts::{self, Hosts, Policy};

/// The cost of detection.
pub struct Overhead;

/// The rate at which detection may cost no more than the monitor lets it by default, and how often that is a
/// millisecond.
const LIMITED: &str = "limited";
const LIMITED_RATE: u64 = 100;
/// The counter of what detection took of both machines' cycles.
const TAKEN: &str = "of what vCPUs ran";

impl Experiment for Overhead {
    fn about(&self) -> About {
        About {
            name: "gang.overhead",
            question: "What does it cost each benchmark that the monitor finds out who shares memory?",
            source: "Busse et al., Partial Coscheduling (2015), sections 2.2 and 5: extra faults are resolved with a low \
                     overhead; no number",
            setting: "As gang.npb's `double` without contention, and every core's virtual machines coscheduled whole on \
                      both sides, so that nothing but detection differs. Pages are taken away so many times a \
                      millisecond, with no limit on what that costs; `limited` is a hundred times, with the monitor's \
                      default limit of half a hundredth.",
            baseline: "no detection",
            sidestep: "detection at the point's rate",
            metric: Metric {
                name: "execution times of both machines",
                unit: "ns",
                better: Better::Lower,
            },
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(15), Duration::from_secs(90)),
            reading: "A ratio of 0.99 is one hundredth longer. Extra faults are those of pages taken away.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut all = vec![
            hosts::kernels(),
            Input::choices("rates", &["1", "10", "100", LIMITED])
                .about("rounds a millisecond in which pages are taken away; `limited`: as often as the default's limit allows")
                .source("chosen: around the twenty of gang.npb")
                .axis(),
        ];
        all.extend(hosts::inputs());
        all
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Hosts::new(inputs, "ideal")?;
        let mut points = Vec::new();
        for kernel in inputs.texts("kernels") {
            for rate in inputs.texts("rates") {
                points.push(Point::new().at("kernel", kernel).at("rate", rate));
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
        let hosts = Hosts::new(inputs, "ideal").map_err(PointError::Failed)?;
        let kernel = point.value("kernel").text();
        let without = hosts.baseline(kernel, "double", context)?;
        let at = |rate: u64, budget_permille: u32| DetectionSettings {
            period_ns: 1_000_000 / rate,
            budget_permille,
            ..hosts.detection(Selection::Modularity, &without)
        };
        let settings = match point.value("rate").text() {
            LIMITED => at(LIMITED_RATE, DetectionSettings::default().budget_permille),
            rate => at(rate.parse().expect("the input offers numbers"), 1000),
        };
        let with = hosts.run(kernel, "double", &Policy::Full, Some(settings), context)?;
        let mut side = with.side();
        if let Some(detection) = with.detection() {
            side = side
                .count("pages taken away", detection.counts.taken)
                .count("extra faults", detection.counts.faults)
                .count("fills noted", detection.counts.fills);
        }
        let machines = &with.report.machines;
        let ran: u64 = machines
            .iter()
            .map(|machine| machine.cycles[0] + machine.cycles[1])
            .sum();
        let taken = machines.iter().filter_map(|machine| machine.detection.as_ref());
        let taken: u64 = taken.map(|detection| detection.cycles).sum();
        side = side.counter(TAKEN, Number::ratio(100 * taken, ran.max(1)), "%");
        Ok(Measurement::new(without.side(), side))
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let taken = |row: &Row| Some(row.measurement()?.sidestep.find(TAKEN)?.value);
        let limited = rows
            .iter()
            .filter(|row| row.point.value("rate").text() == LIMITED);
        let limited: Vec<&Row> = limited.collect();
        let Some(most) = limited.iter().filter_map(|row| taken(row)).max() else {
            return Vec::new();
        };
        let slowest = limited
            .iter()
            .filter_map(|row| row.quantity(Quantity::Ratio))
            .min();
        let longer = (Number::ONE - slowest.unwrap_or(Number::ONE)) * Number::from(100);
        let is_idle = |row: &&&Row| taken(row) == Some(Number::ZERO);
        let idle = limited.iter().filter(is_idle).count();
        vec![Finding {
            about: "what detection takes within its default limit of half a hundredth".to_owned(),
            stated: "a low overhead, no number".to_owned(),
            source: format!("{}, section 2.2", super::PAPER),
            ours: format!(
                "up to {} % of what vCPUs ran, {} % of the execution times; {idle} of {} runs were too short for \
                 a round",
                most.to_fixed(2),
                longer.to_fixed(2),
                limited.len()
            ),
            value: Some(most),
            verdict: Verdict::BeyondThePaper,
            because: "what a round and the faults of its pages can cost is saved before it is made, and fills are noted from \
                      what is left beside it"
                .to_owned(),
        }]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::bars(
                "What detection takes",
                Axis::new("kernel", "benchmark", ""),
                Measure::Counter(TAKEN),
                "of what vCPUs ran",
                "%",
            )
            .split_by(&["rate"]),
        ]
    }
}
