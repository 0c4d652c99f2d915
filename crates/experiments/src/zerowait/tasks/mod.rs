//! `zerowait.tasks`: what a continuation costs, and what a task costs elsewhere.

mod onetbb;
#[cfg(feature = "rivals")]
mod rayon;
mod shape;
#[cfg(feature = "rivals")]
mod tokio;
mod zerowait;

use std::time::Duration;

use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Input, Inputs, Measure, Measurement, Metric, Nature,
    Number, Point, PointError, Side,
};

use super::stopwatch::{Sample, in_turns};
use shape::{Runtime, Shape};

/// A continuation against a task of other runtimes, on the same shapes.
pub struct Tasks;

/// Which shapes which rival has on how many cores.
///
/// Only tokio's idiom binds work to a core (a runtime for each thread), so only it plays ping-pong.
const RIVALS: &[(&str, &[(Shape, u64)])] = &[
    ("rayon", POOLED),
    ("onetbb", POOLED),
    (
        "tokio",
        &[
            (Shape::Chain, 1),
            (Shape::Fan, 1),
            (Shape::Fan, 2),
            (Shape::Gate, 1),
            (Shape::Gate, 2),
            (Shape::PingPong, 2),
        ],
    ),
];

const POOLED: &[(Shape, u64)] = &[
    (Shape::Chain, 1),
    (Shape::Fan, 1),
    (Shape::Fan, 2),
    (Shape::Gate, 1),
    (Shape::Gate, 2),
];

impl Experiment for Tasks {
    fn about(&self) -> About {
        About {
            name: "zerowait.tasks",
            question: "What does a continuation cost, and what a task of other runtimes?",
            source: "none: CEFOS gives no cost of a continuation on an ordinary processor",
            setting: "chain: each thread continues to the next. fan: one continues to many, and all to a join, which \
                      begins again. gate: many come to one gate, which counts. ping-pong: two threads bound to two \
                      cores continue to each other. The rivals do the same with their own means: spawned tasks, \
                      scopes or join sets, a mutex, channels.",
            baseline: "the rival that the point names",
            sidestep: "zero-wait threads",
            metric: Metric {
                name: "processor time an operation",
                unit: "ns",
                better: Better::Lower,
            },
            nature: Nature::Measured,
            takes: (Duration::from_secs(30), Duration::from_secs(240)),
            reading: "An operation is a continuation or a task: in fan and gate one for each of the many. Processor \
                      time counts what all cores of the process burnt, also while looking for work, and does not count \
                      other programs; the time of day, which does, is beside it. A rival pays for what it has and \
                      zero-wait threads have not: any closure as a task (an allocation), work stealing at any moment, \
                      wakers. Ratios below one are shapes where the rival is better.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::choices("rivals", &["rayon", "tokio", "onetbb"])
                .about("which runtimes to compare with")
                .source("chosen: the common work-stealing pool, the common async runtime, the common C++ one")
                .axis(),
            Input::choices("shapes", &["chain", "fan", "gate", "ping-pong"])
                .about("which shapes of work")
                .source("chosen: what services are made of")
                .axis(),
            Input::integer("operations", 1_000_000)
                .between(1000, 1_000_000_000)
                .quick("100000")
                .about("how many operations a round has")
                .source("chosen: some ten milliseconds"),
            Input::integer("width", 1000)
                .between(1, 4000)
                .about("how many threads a fan or a gate has at once")
                .source("chosen: fits every runtime's queues"),
            Input::integer("rounds", 7)
                .between(1, 1000)
                .quick("3")
                .about("how often each side runs, in turns; the median counts")
                .source("chosen: enough for a median"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let (rivals, shapes) = (inputs.texts("rivals"), inputs.texts("shapes"));
        let mut points = Vec::new();
        for (rival, played) in RIVALS.iter().filter(|(rival, _)| rivals.contains(rival)) {
            for (shape, cores) in played.iter().filter(|(shape, _)| shapes.contains(&shape.name())) {
                points.push(
                    Point::new()
                        .at("rival", *rival)
                        .at("shape", shape.name())
                        .at("cores", *cores as i64),
                );
            }
        }
        if points.is_empty() {
            return Err(
                "no rival of `rivals` plays any shape of `shapes`; ping-pong is tokio's alone".to_owned(),
            );
        }
        Ok(points)
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let shape = Shape::of(point.value("shape").text());
        let (cores, width) = (point.value("cores").count() as usize, inputs.count("width"));
        let operations = inputs.count("operations");
        let mut rival = rival(point.value("rival").text(), shape, cores, width)?;
        let mut ours = zerowait::Zerowait::start(shape, cores, width)?;
        // A rival that takes ten times as long need not do so for as many operations.
        let few = operations / 8;
        let [(baseline, first), (sidestep, second)] = in_turns(
            inputs.count("rounds"),
            context,
            &mut || rival.run(few.max(1)),
            &mut || ours.run(operations),
        )?;
        let side = |sample: Sample| {
            Side::new(sample.processor_per_operation())
                .counter(
                    "cycles an operation",
                    cycles(sample.processor_per_operation()),
                    "cycles",
                )
                .counter("time of day an operation", sample.wall_per_operation(), "ns")
        };
        Ok(Measurement::new(
            first.explain(side(baseline)),
            second.explain(ours.explain(side(sidestep))),
        ))
    }

    fn figures(&self) -> Vec<Figure> {
        let shape = Axis::new("shape", "shape", "");
        vec![
            Figure::bars(
                "Processor time an operation",
                shape.clone(),
                Measure::Value,
                "time",
                "ns",
            )
            .split_by(&["rival", "cores"])
            .logarithmic(),
            Figure::bars(
                "How many times cheaper a continuation is",
                shape,
                Measure::Ratio,
                "times",
                "",
            )
            .split_by(&["rival", "cores"]),
        ]
    }
}

fn rival(name: &str, shape: Shape, cores: usize, width: u64) -> Result<Box<dyn Runtime>, PointError> {
    match name {
        #[cfg(feature = "rivals")]
        "rayon" => Ok(Box::new(rayon::Rayon::start(shape, cores, width)?)),
        #[cfg(feature = "rivals")]
        "tokio" => Ok(Box::new(tokio::Tokio::start(shape, cores, width)?)),
        "onetbb" => Ok(Box::new(onetbb::OneTbb::find(shape, cores, width)?)),
        other => Err(PointError::Unavailable(format!(
            "this build has no {other}; `cargo install --path crates/cli --features rivals` brings it"
        ))),
    }
}

/// Nanoseconds as cycles of the processor's time-stamp counter, which runs at its nominal clock; the same
/// number where the processor says no rate.
fn cycles(nanoseconds: Number) -> Number {
    let megahertz = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
        line.split(':').nth(1)?.trim().parse::<Number>().ok()
    });
    megahertz.map_or(nanoseconds, |megahertz| {
        nanoseconds * megahertz * Number::ratio(1, 1000)
    })
}
