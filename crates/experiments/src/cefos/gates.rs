//! Figures 7 to 11: many system calls through one gate, with the hardware's ready queue alone and with a software
//! queue.

use std::time::Duration;

use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Row, Side, Value,
};

use super::laws::{self, CLOCKS_A_CALL, SENDER_RETRIES, Sweep};
use super::machine;
use super::workload::{Run, Workload};

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
                      thread that occupies a unit, as in the paper. The paper does not state its round trip here, so \
                      a claim of its holds where it does at each of the round trips that it has elsewhere.",
            baseline: "hardware queue alone: denied senders self-continue",
            sidestep: "software queue before the gate",
            metric: Metric {
                name: "clocks for all calls",
                unit: "cycles",
                better: Better::Lower,
            },
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(5)),
            reading: "Without the software queue each pass through the gate waits for a turn of a queue full of \
                      senders, so clocks a call and self-continuations a sender grow with the calls, and the sum \
                      with their square. At few calls the constant cost of a call hides the square: the exponent \
                      of the paper's range is below 2 and rises towards it. A device with a long round trip hides it \
                      longer, because senders spin in time that is lost anyway. Memory that answers in half the time \
                      (`bank-cycles`) shortens what waits for the gate and what waits for the device alike; \
                      `sidestep sensitivity cefos.gates` says what that turns.",
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
            Input::durations("round-trip", &[0, 2_000, 6_000])
                .lasting(0, 50_000)
                .about("what a device takes for a request")
                .source("CEFOS 3.1: 0, 2, 4 and 6 us; section 4 does not say which")
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
            Input::choice("device-model", &["thread", "attached"])
                .about("whether a device is a thread that occupies a unit, or attached and occupies none")
                .source("CEFOS 3.1: a thread"),
        ];
        inputs.extend(machine::inputs());
        inputs
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        machine::check(inputs)?;
        Ok(inputs.sweep(&["round-trip", "calls"]))
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
                point.value("round-trip").duration_ns(),
                software_queue,
            )?;
            let run = workload.run(calls, None, context.trace, context)?;
            Ok(side(calls, run.expect("a run without a limit completes")))
        };
        Ok(Measurement::new(measure(false)?, measure(true)?))
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let mut round_trips: Vec<Value> = rows
            .iter()
            .map(|row| row.point.value("round-trip").clone())
            .collect();
        round_trips.dedup();
        let sweeps: Vec<Sweep> = (round_trips.into_iter())
            .map(|round_trip| Sweep::of(round_trip, rows))
            .collect();
        laws::findings(&sweeps)
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
            .logarithmic()
            .split_by(&["round-trip"]),
            Figure::lines(
                "Clocks a call (Figure 8)",
                calls(),
                Measure::Counter(CLOCKS_A_CALL),
                "clocks a call",
                "cycles",
            )
            .split_by(&["round-trip"]),
            Figure::lines(
                "Self-continuations a sender (Figure 9)",
                calls(),
                Measure::Counter(SENDER_RETRIES),
                "self-continuations a sender",
                "",
            )
            .split_by(&["round-trip"]),
            Figure::lines(
                "Self-continuations (Figure 10)",
                calls(),
                Measure::Counter(machine::SELF_CONTINUATIONS),
                "self-continuations",
                "",
            )
            .logarithmic()
            .split_by(&["round-trip"]),
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
