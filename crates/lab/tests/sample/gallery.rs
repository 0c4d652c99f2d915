//! An experiment that brings everything a report can show: several charts, intervals, the paper's values, a heat map, a
//! tree, a breakdown, findings of every verdict, a point that is not possible and one that fails.

use std::time::Duration;

use sidestep_lab::{
    About, Axis, Better, Breakdown, Context, Drawing, Experiment, Figure, Finding, Input, Inputs, Matrix,
    Measure, Measurement, Metric, Nature, Node, Number, Part, Point, PointError, Quantity, Row, Side, Stated,
    Tree, Verdict,
};

/// Numbers without meaning.
pub struct Gallery;

impl Experiment for Gallery {
    fn about(&self) -> About {
        About {
            name: "sample.gallery",
            question: "Does a page show everything that an experiment can bring, on a screen and on paper?",
            source: "none: invented numbers",
            setting: "Invented numbers over made-up coordinates.",
            baseline: "one structure",
            sidestep: "the other structure",
            metric: Metric {
                name: "throughput",
                unit: "calls/s",
                better: Better::Higher,
            },
            nature: Nature::Seeded,
            takes: (Duration::from_secs(1), Duration::from_secs(1)),
            reading: "There is nothing to read.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::durations("round-trip", &[0, 2000, 4000, 6000])
                .lasting(0, 1_000_000)
                .about("what a device takes to answer")
                .source("invented")
                .axis(),
            Input::choices("policy", &["partial, with the given sets", "relaxed"])
                .about("who runs together")
                .source("invented")
                .axis(),
            Input::file("recording")
                .about("a recording")
                .source("none by default"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let mut points = Vec::new();
        for policy in inputs.texts("policy") {
            for round_trip in inputs.value("round-trip").elements() {
                points.push(
                    Point::new()
                        .at("policy", policy)
                        .at("round-trip", round_trip.clone()),
                );
            }
        }
        Ok(points)
    }

    fn run_point(
        &self,
        _inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let round_trip = point.value("round-trip").duration_ns();
        let relaxed = point.value("policy").text() == "relaxed";
        match (relaxed, round_trip) {
            (true, 4000) => {
                return Err(PointError::Unavailable(
                    "io_uring is not allowed on this host".to_owned(),
                ));
            }
            (true, 6000) => return Err(PointError::Failed("the invented device caught fire".to_owned())),
            _ => {}
        }
        let noise = context.seed * 7919 % 400;
        let value = 12_000_000 / (1000 + round_trip) * if relaxed { 3 } else { 2 } + noise;
        Ok(Measurement::new(side(value / 2 + noise), side(value))
            .draw(heat_map())
            .draw(tree()))
    }

    fn stated(&self, _inputs: &Inputs, point: &Point) -> Vec<Stated> {
        match (
            point.value("policy").text(),
            point.value("round-trip").duration_ns(),
        ) {
            ("relaxed", _) => vec![Stated::at_least(
                Quantity::Ratio,
                Number::decimal("2.5"),
                "section 2",
            )],
            (_, 2000) => vec![
                Stated::value(Quantity::Baseline, 4000, "0.15", "Table 1"),
                Stated::value(Quantity::Sidestep, 6500, "0.05", "Table 1"),
            ],
            _ => Vec::new(),
        }
    }

    fn findings(&self, _inputs: &Inputs, _rows: &[Row]) -> Vec<Finding> {
        [Verdict::Holds, Verdict::Differs, Verdict::NotStated]
            .map(|verdict| Finding {
                value: None,
                about: "growth of the throughput with the number of units".to_owned(),
                stated: "grows as n^2".to_owned(),
                source: "section 4".to_owned(),
                ours: "exponent 1.97".to_owned(),
                verdict,
                because: "Each caller waits for all that came before it, so the work is a sum of n terms."
                    .to_owned(),
            })
            .into()
    }

    fn figures(&self) -> Vec<Figure> {
        let round_trip = || Axis::new("round-trip", "device round trip", "us");
        vec![
            Figure::lines(
                "Throughput over round trip (Figure 5)",
                round_trip(),
                Measure::Value,
                "throughput",
                "calls/s",
            )
            .split_by(&["policy"]),
            Figure::lines("Gain over round trip", round_trip(), Measure::Ratio, "gain", "")
                .split_by(&["policy"]),
            Figure::bars(
                "Retries by policy",
                round_trip(),
                Measure::Counter("retries"),
                "retries",
                "retries",
            ),
            Figure::lines(
                "Throughput, logarithmic",
                round_trip(),
                Measure::Value,
                "throughput",
                "calls/s",
            )
            .split_by(&["policy"])
            .logarithmic(),
        ]
    }
}

fn side(value: u64) -> Side {
    let stalls = vec![
        Part::leaf("data", value / 3),
        Part::leaf("register stack engine", value / 5),
    ];
    let parts = vec![Part::leaf("issue", value / 2), Part::sum("stalled", stalls)];
    Side::new(value)
        .count("retries", value / 10)
        .counter("waited", Number::ratio(value, 7), "µs")
        .draw(Drawing::Breakdown(Breakdown {
            title: "Where the cycles went".to_owned(),
            unit: "cycles".to_owned(),
            whole: Part::sum("all", parts),
        }))
}

/// Who shares with whom, of five.
pub fn heat_map() -> Drawing {
    let names: Vec<String> = (0..5).map(|index| format!("vCPU {index}")).collect();
    let cell = |row: i32, column: i32| (row != column).then(|| Number::from((row * column) % 7 + 1));
    Drawing::Matrix(Matrix {
        title: "Who shares with whom".to_owned(),
        rows: ("vCPU".to_owned(), names.clone()),
        columns: ("vCPU".to_owned(), names),
        cells: (0..5)
            .map(|row| (0..5).map(|column| cell(row, column)).collect())
            .collect(),
        unit: "events".to_owned(),
    })
}

fn tree() -> Drawing {
    let leaf = |name: &str, set| Node::leaf(name).in_set(set);
    let left = Node::inner("9", vec![leaf("0", 0), leaf("3", 0)]).in_set(0);
    let right = Node::inner("7", vec![leaf("1", 1), leaf("4", 1)]).in_set(1);
    let upper = Node::inner("5.5", vec![left, right]);
    Drawing::Tree(Tree {
        title: "Dependency tree and the sets cut from it".to_owned(),
        root: Node::inner("1.25", vec![upper, leaf("2", 2)]),
    })
}
