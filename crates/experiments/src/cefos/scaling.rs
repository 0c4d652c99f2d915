//! Figure 5: how many system calls complete in a fixed period, with more devices and more units.

use std::time::Duration;

use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Quantity, Row, Side, Stated, Value, Verdict,
};

use super::machine;
use super::workload::{Run, Workload};

/// The most calls the guest has room for.
const CALLS_MAX: u64 = 40_000;

/// Counters that explain a point.
const BUSY_SHARE: &str = "share of the period with the device busy";
const SENDER_RETRIES: &str = "self-continuations of senders";

/// Throughput of (devices, units), relative to one of each.
pub struct Scaling;

impl Experiment for Scaling {
    fn about(&self) -> About {
        About {
            name: "cefos.scaling",
            question: "How does throughput grow with devices and execution units when devices continue to threads?",
            source: "Kusakabe et al., CEFOS on FUCE, section 3, Figure 5",
            setting: "CEFOS serves system calls that each make one request to a device. All calls are launched at \
                      once, over the gates and devices in turn; a point's value is the greatest number of calls that \
                      complete within the period, none lost or late, found by bisection. As in the paper a device is \
                      a thread that occupies one of the units for the round trip (`device-model=thread`), and no \
                      software queue stands before the gates; both can be changed.",
            baseline: "one device, one unit",
            sidestep: "the point's devices and units",
            metric: Metric {
                name: "calls in the period",
                unit: "calls",
                better: Better::Higher,
            },
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(10)),
            reading: "The ratio is Figure 5's relative throughput. Above the number of devices it is superlinear: \
                      then the one-device case did badly, which its own counters show: the share of the period in \
                      which its only unit ran the device's thread, and how often senders and kernel threads had to \
                      start over. With 0 us the kernel alone is measured.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::durations("round-trip", &[0, 2_000, 4_000, 6_000])
                .lasting(0, 50_000)
                .quick("2us,6us")
                .about("what a device takes for a request")
                .source("CEFOS 3.1")
                .axis(),
            Input::integers("devices", &[1, 2, 3, 4, 8, 16])
                .between(1, 48)
                .quick("1,3")
                .about("devices")
                .source("CEFOS 3.2 up to 3, then beyond")
                .axis(),
            Input::integers("units", &[1, 2, 3, 4, 8, 16])
                .between(1, 64)
                .quick("1,3")
                .about("thread execution units")
                .source("CEFOS 3.2 up to 3, then beyond")
                .axis(),
            Input::integer("period", 100_000)
                .between(1_000, 10_000_000)
                .unit("cycles")
                .about("the fixed period")
                .source("CEFOS 3.1"),
            Input::choice("device-model", &["thread", "attached"])
                .about("whether a device is a thread that occupies a unit, or attached and occupies none")
                .source("CEFOS 3.1: a thread"),
            Input::choice("gates", &["one-a-device", "one"])
                .about("how many gates there are")
                .source("chosen: the paper does not say"),
            Input::switch("software-queue", false)
                .about("whether a software queue stands before each gate")
                .source("CEFOS 3: none; section 4.2 adds it"),
        ];
        inputs.extend(machine::inputs());
        inputs
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        machine::check(inputs)?;
        let mut points = Vec::new();
        for ns in inputs.durations_ns("round-trip") {
            for devices in inputs.integers("devices") {
                for units in inputs.integers("units") {
                    let point = Point::new().at("round-trip", Value::Duration { ns });
                    points.push(point.at("devices", devices).at("units", units));
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
        let round_trip = point.value("round-trip").duration_ns();
        let measure = |devices, units| side(inputs, round_trip, devices, units, context);
        let baseline = measure(1, 1)?;
        let sidestep = match (point.value("devices").count(), point.value("units").count()) {
            (1, 1) => baseline.clone(),
            (devices, units) => measure(devices, units)?,
        };
        Ok(Measurement::new(baseline, sidestep))
    }

    fn stated(&self, inputs: &Inputs, point: &Point) -> Vec<Stated> {
        let papers = inputs.count("period") == 100_000
            && inputs.text("device-model") == "thread"
            && !inputs.switch("software-queue");
        let place = (point.value("devices").count(), point.value("units").count());
        if !papers || place != (3, 3) {
            return Vec::new();
        }
        let statement = |value: &str, row: &str| {
            let source = format!("CEFOS 3.2, Figure 5: {row}");
            vec![Stated::value(
                Quantity::Ratio,
                Number::decimal(value),
                "0.1",
                source,
            )]
        };
        match point.value("round-trip").duration_ns() {
            2_000 => statement("2.5", "about 2.5 times at 2 us"),
            6_000 => statement("3.1", "about 3.1 times at 6 us"),
            _ => Vec::new(),
        }
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let superlinear: Vec<String> = rows
            .iter()
            .filter_map(|row| {
                let (devices, units) = (
                    row.point.value("devices").count(),
                    row.point.value("units").count(),
                );
                let ratio = row.quantity(Quantity::Ratio)?;
                let above = devices == units && devices > 1 && ratio > Number::from(devices);
                above.then(|| format!("{} ({} times)", row.point, ratio.to_decimal(2)))
            })
            .collect();
        let because = rows
            .iter()
            .rev()
            .find(|row| is_place(row, 3, 3))
            .and_then(explain);
        vec![Finding {
            value: None,
            about: "superlinear cases among pairs of as many devices as units".to_owned(),
            stated:
                "one: 3.1 times for (3, 3) at 6 us; the base case may be bad, possibly by self-continuations"
                    .to_owned(),
            source: "CEFOS 3.2".to_owned(),
            ours: match superlinear.is_empty() {
                true => "none".to_owned(),
                false => superlinear.join("; "),
            },
            // What is superlinear is the 3.1 at 6 us, which is judged at its point.
            verdict: Verdict::OtherReading,
            because: because.unwrap_or_default(),
        }]
    }

    fn figures(&self) -> Vec<Figure> {
        let devices = Axis::new("devices", "devices", "");
        vec![
            Figure::lines(
                "Relative throughput (Figure 5)",
                devices.clone(),
                Measure::Ratio,
                "throughput",
                "times",
            )
            .split_by(&["round-trip", "units"]),
            Figure::lines("Calls in the period", devices, Measure::Value, "calls", "calls")
                .split_by(&["round-trip", "units"]),
        ]
    }
}

fn is_place(row: &Row, devices: u64, units: u64) -> bool {
    (
        row.point.value("devices").count(),
        row.point.value("units").count(),
    ) == (devices, units)
}

/// Why (3, 3) relates to (1, 1) as it does, from the counters of both.
fn explain(row: &Row) -> Option<String> {
    let measurement = row.measurement()?;
    let both = |name: &str, digits: usize| -> Option<[String; 2]> {
        let shown = |side: &Side| Some(side.find(name)?.value.to_decimal(digits));
        Some([shown(&measurement.baseline)?, shown(&measurement.sidestep)?])
    };
    let [base_busy, busy] = both(BUSY_SHARE, 2)?;
    let [base_retries, retries] = both(SENDER_RETRIES, 0)?;
    let [_, held] = both(machine::HELD_CYCLES, 0)?;
    let calls = measurement.baseline.value?;
    Some(format!(
        "at {} devices are busy {base_busy} of the period with (1, 1) and {busy} with (3, 3). The one unit of (1, 1) \
         runs the device's thread most of the time, so senders hardly spin on it ({base_retries} self-continuations of \
         senders); of three units one is often free for them ({retries}). Threads that a busy unit had taken in \
         advance waited {held} cycles behind device threads while another unit was idle (see `preload`). The base case \
         is {} calls, so one call more or less in it moves the ratio by {} %",
        row.point.value("round-trip"),
        calls.to_decimal(0),
        Number::from(100).over(calls)?.to_decimal(0),
    ))
}

/// The greatest number of calls that complete in the period.
fn side(
    inputs: &Inputs,
    round_trip: u64,
    devices: u64,
    units: u64,
    context: &Context,
) -> Result<Side, PointError> {
    let period = inputs.count("period");
    let gates = if inputs.text("gates") == "one" { 1 } else { devices };
    let simulated = inputs.text("device-model") == "thread";
    let chip = machine::config(inputs, units);
    let workload = Workload::new(
        chip,
        gates,
        devices,
        simulated,
        round_trip,
        inputs.switch("software-queue"),
    )?;
    let run = |calls| workload.run(calls, Some(period), false, context);
    // So many complete for sure; so many do not, unless the guest has no room for more.
    let (mut complete, mut late) = (0, CALLS_MAX + 1);
    let mut best: Option<Run> = None;
    let mut next = 1;
    while complete + 1 < late {
        match run(next)? {
            Some(run) => {
                complete = next;
                best = Some(run);
            }
            None => late = next,
        }
        next = if late > CALLS_MAX {
            (complete * 2).clamp(1, CALLS_MAX)
        } else {
            complete.midpoint(late)
        };
    }
    let Some(mut best) = best else {
        return Ok(Side::new(0));
    };
    if context.trace
        && let Some(traced) = workload.run(complete, Some(period), true, context)?
    {
        best = traced;
    }
    let busy = Number::ratio(complete * round_trip, devices * period);
    let side = Side::new(complete)
        .counter("clocks", best.clocks, "cycles")
        .count(BUSY_SHARE, busy)
        .count(SENDER_RETRIES, best.sender_retries);
    Ok(machine::explain(side, &best.counters).traced(best.timeline))
}
