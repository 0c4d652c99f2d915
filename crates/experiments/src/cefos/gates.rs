//! Figures 7 to 11: many system calls through one gate, with the hardware's ready queue alone and with a software
//! queue.

use std::time::Duration;

use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Quantity, Row, Side, Stated, Verdict,
};

use super::growth::exponent;
use super::machine;
use super::workload::{Run, Workload};

/// The system calls of the paper's figures go up to here.
const PAPER_CALLS_MAX: u64 = 80;
/// With fewer calls at a time the first pass the empty kernel while the others are still being launched.
const JUDGED_CALLS_MIN: u64 = 20;

/// Counters that findings and figures look at.
const CLOCKS_A_CALL: &str = "clocks a call";
const SENDER_RETRIES: &str = "self-continuations a sender";

/// Clocks and self-continuations of many system calls.
pub struct Gates;

impl Experiment for Gates {
    fn about(&self) -> About {
        About {
            name: "cefos.gates",
            question: "What do waiting system calls cost when they wait in the hardware's queue without priorities?",
            source: "Kusakabe et al., CEFOS on FUCE, section 4, Figures 7 to 11",
            setting: "So many system calls at once, each one request to a device, through one gate that one thread at \
                      a time may enter. Without a software queue a sender that finds the gate locked continues to \
                      its own beginning and so stands in the ready queue again, between the threads that would open \
                      the gate; with it the sender leaves its call in a queue in memory and ends. The device is a \
                      thread that occupies a unit, as in the paper. The paper does not state its round trip here; 0 \
                      is the case in which the gate and not the device is measured.",
            baseline: "hardware queue alone: denied senders self-continue",
            sidestep: "software queue before the gate",
            metric: Metric {
                name: "clocks for all calls",
                unit: "cycles",
                better: Better::Lower,
            },
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(1)),
            reading: "Without the software queue each pass through the gate waits for a turn of a queue full of \
                      senders, so clocks a call and self-continuations a sender grow with the calls, and the sum \
                      with their square. At few calls the constant cost of a call hides the square: the exponent \
                      of the paper's range is below 2 and rises towards it. A device with a long round trip hides it \
                      longer, because senders spin in time that is lost anyway.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::integers("calls", &[5, 10, 20, 40, 60, 80, 160, 320, 640, 1000])
                .between(1, 10_000)
                .quick("5,20,80,320")
                .about("system calls")
                .source("CEFOS 4.1 up to 80, then beyond")
                .axis(),
            Input::integer("units", 4)
                .between(1, 64)
                .about("thread execution units")
                .source("CEFOS 3.1: at most four"),
            Input::integer("gates", 1)
                .between(1, 64)
                .about("gates; calls go to them in turn")
                .source("chosen: the gate is what is measured"),
            Input::integer("devices", 1)
                .between(1, 48)
                .about("devices; calls go to them in turn")
                .source("chosen: as one gate"),
            Input::duration("round-trip", 0)
                .lasting(0, 50_000)
                .about("what a device takes for a request")
                .source(
                    "CEFOS 3.1 has 0 to 6 us; chosen: 0, so that the gate and not the device is measured",
                ),
            Input::choice("device-model", &["thread", "attached"])
                .about("whether a device is a thread that occupies a unit, or attached and occupies none")
                .source("CEFOS 3.1: a thread"),
        ];
        inputs.extend(machine::inputs());
        inputs
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        machine::check(inputs)?;
        Ok(inputs
            .integers("calls")
            .iter()
            .map(|calls| Point::new().at("calls", *calls))
            .collect())
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let calls = point.value("calls").count();
        let measure = |software_queue| -> Result<Side, PointError> {
            let workload = Workload::new(
                machine::config(inputs, inputs.count("units")),
                inputs.count("gates"),
                inputs.count("devices"),
                inputs.text("device-model") == "thread",
                inputs.duration_ns("round-trip"),
                software_queue,
            )?;
            let run = workload.run(calls, None, context.trace, context)?;
            Ok(side(calls, run.expect("a run without a limit completes")))
        };
        Ok(Measurement::new(measure(false)?, measure(true)?))
    }

    fn stated(&self, _inputs: &Inputs, point: &Point) -> Vec<Stated> {
        // "As the number of system calls increases": the figures' upper half.
        match point.value("calls").count() {
            40..=PAPER_CALLS_MAX => {
                vec![Stated::at_least(
                    Quantity::Ratio,
                    1,
                    "CEFOS 4.2, Figure 11: clocks are significantly reduced",
                )]
            }
            _ => Vec::new(),
        }
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let read = |of: fn(&Row) -> Option<Number>| -> Vec<(u64, Number)> {
            rows.iter()
                .filter_map(|row| Some((row.point.value("calls").count(), of(row)?)))
                .collect()
        };
        let hardware = read(|row| row.quantity(Quantity::Baseline));
        let software = read(|row| row.quantity(Quantity::Sidestep));
        let retries = read(|row| counter(&row.measurement()?.baseline, SENDER_RETRIES));
        let queued = read(|row| counter(&row.measurement()?.sidestep, machine::SELF_CONTINUATIONS));
        let mut findings = law(
            "clocks without software queue (Figure 7)",
            "n^2",
            "CEFOS 4.1",
            &hardware,
            2,
        );
        findings.extend(square_share(&hardware));
        findings.push(per_call(&hardware));
        let sender = "self-continuations a sender without software queue (Figure 9)";
        findings.extend(law(sender, "linear", "CEFOS 4.1", &retries, 1));
        let all = "self-continuations with software queue (Figure 10)";
        findings.extend(law(
            all,
            "almost proportional to the calls",
            "CEFOS 4.2",
            &queued,
            1,
        ));
        let clocks = "clocks with software queue (Figure 11)";
        findings.extend(law(
            clocks,
            "significantly lower as calls grow",
            "CEFOS 4.2",
            &software,
            1,
        ));
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let calls = || Axis::new("calls", "system calls", "calls").logarithmic();
        vec![
            Figure::lines(
                "Clocks (Figures 7 and 11)",
                calls(),
                Measure::Value,
                "clocks",
                "cycles",
            )
            .logarithmic(),
            Figure::lines(
                "Clocks a call (Figure 8)",
                calls(),
                Measure::Counter(CLOCKS_A_CALL),
                "clocks a call",
                "cycles",
            ),
            Figure::lines(
                "Self-continuations a sender (Figure 9)",
                calls(),
                Measure::Counter(SENDER_RETRIES),
                "self-continuations a sender",
                "",
            ),
            Figure::lines(
                "Self-continuations (Figure 10)",
                calls(),
                Measure::Counter(machine::SELF_CONTINUATIONS),
                "self-continuations",
                "",
            )
            .logarithmic(),
        ]
    }
}

fn side(calls: u64, run: Run) -> Side {
    let side = Side::new(run.clocks)
        .counter(CLOCKS_A_CALL, Number::ratio(run.clocks, calls), "cycles")
        .count(SENDER_RETRIES, Number::ratio(run.sender_retries, calls))
        .count("self-continuations of the kernel's threads", run.kernel_retries);
    machine::explain(side, &run.counters).traced(run.timeline)
}

fn counter(side: &Side, name: &str) -> Option<Number> {
    side.find(name).map(|counter| counter.value)
}

/// How far an exponent may lie from the law's.
const TOLERANCE: &str = "0.25";

/// Holds the growth of a quantity against a power of the calls: over the paper's calls, and from there on.
fn law(about: &str, stated: &str, source: &str, points: &[(u64, Number)], power: i32) -> Vec<Finding> {
    let whole = |number: Number| (number.numerator() / number.denominator()) as u64;
    // The smallest quantities are counts of a few; a thousandth is precise enough to take logarithms of.
    let scaled: Vec<(u64, u64)> = points
        .iter()
        .map(|(calls, value)| (*calls, whole(*value * Number::from(1000))))
        .collect();
    let within = |from: u64, to: u64| -> Vec<(u64, u64)> {
        scaled
            .iter()
            .copied()
            .filter(|(calls, _)| (from..=to).contains(calls))
            .collect()
    };
    let ranges = [
        (
            format!("up to {PAPER_CALLS_MAX} calls"),
            within(0, PAPER_CALLS_MAX),
            source.to_owned(),
        ),
        (
            format!("from {PAPER_CALLS_MAX} calls on"),
            within(PAPER_CALLS_MAX, u64::MAX),
            format!("{source}, extended"),
        ),
    ];
    ranges
        .into_iter()
        .filter_map(|(range, points, source)| {
            let found = exponent(&points)?;
            let near = (found - Number::from(power)).abs() <= Number::decimal(TOLERANCE);
            let because = if near {
                String::new()
            } else {
                format!("the fit is of one power; a constant and lower powers weigh beside {power}, see the points")
            };
            Some(Finding {
                about: format!("growth of {about}, {range}"),
                stated: stated.to_owned(),
                source,
                ours: format!("exponent {}", found.to_fixed(2)),
                verdict: if near { Verdict::Holds } else { Verdict::Differs },
                because,
            })
        })
        .collect()
}

/// How much of the clocks at the paper's most calls is the square's: what the slope of the clocks a call accounts for.
fn square_share(points: &[(u64, Number)]) -> Option<Finding> {
    let at = |calls: u64| {
        points
            .iter()
            .find(|(each, _)| *each == calls)
            .map(|(_, clocks)| *clocks)
    };
    let (few, most) = (JUDGED_CALLS_MIN, PAPER_CALLS_MAX);
    let (low, high) = (at(few)?, at(most)?);
    let slope = (high * Number::ratio(1, most) - low * Number::ratio(1, few)) * Number::ratio(1, most - few);
    let share = (slope * Number::from(most * most)).over(high)?;
    Some(Finding {
        about: format!("share of the square in the clocks of {most} calls without software queue"),
        stated: String::new(),
        source: "CEFOS 4.1".to_owned(),
        ours: format!("{} %: {} clocks a call more for each call", (share * Number::from(100)).to_decimal(0), slope.to_fixed(1)),
        verdict: Verdict::NotStated,
        because: "each denied sender costs its turn again in every pass of the queue; the rest is the cost of a call \
                  that waits for nobody, linear in the calls"
            .to_owned(),
    })
}

/// Figure 8: clocks a call grow linearly. Judged by the slope between neighbouring points, which for a line is the
/// same.
fn per_call(points: &[(u64, Number)]) -> Finding {
    let per_call: Vec<(u64, Number)> = points
        .iter()
        .map(|(calls, clocks)| (*calls, *clocks * Number::ratio(1, *calls)))
        .collect();
    let slopes: Vec<Number> = per_call
        .windows(2)
        .filter_map(|pair| (pair[1].1 - pair[0].1).over(Number::from(pair[1].0) - Number::from(pair[0].0)))
        .collect();
    let shown: Vec<String> = slopes.iter().map(|slope| slope.to_fixed(1)).collect();
    let upper: Vec<Number> = per_call
        .windows(2)
        .zip(&slopes)
        .filter(|(pair, _)| pair[0].0 >= JUDGED_CALLS_MIN)
        .map(|(_, slope)| *slope)
        .collect();
    let least = upper.iter().min().copied();
    let most = upper.iter().max().copied();
    let verdict = match (least, most) {
        (Some(least), Some(most)) if least > Number::ZERO && most <= least * Number::from(2) => {
            Verdict::Holds
        }
        (Some(_), Some(_)) => Verdict::Differs,
        _ => Verdict::NotStated,
    };
    Finding {
        about: "growth of clocks a call without software queue (Figure 8)".to_owned(),
        stated: "linear".to_owned(),
        source: "CEFOS 4.1".to_owned(),
        ours: format!(
            "clocks a call more for each further call, from point to point: {}",
            shown.join(", ")
        ),
        verdict,
        because: format!(
            "judged from {JUDGED_CALLS_MIN} calls on: the slopes must be positive and within a factor of two; below, \
             the first calls pass the empty kernel while the others are still being launched"
        ),
    }
}
