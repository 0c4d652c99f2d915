//! `itanium.ipc`: Table 6 and Figure 5, passing eight words to another thread in another address space.

use std::time::Duration;

use sidestep_itanium2::Event;
use sidestep_itanium2::parameters::Cost;
use sidestep_lab::{
    About, Axis, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric, Nature,
    Number, Point, PointError, Quantity, Row, Side, Stated, Verdict,
};

use super::kernel::Guest;
use super::timed::{self, Difference};

/// Four versions of one path.
pub struct Messages;

/// Table 6: the version, cycles. Results: for comparison alone.
const TABLE: &[(&str, &str, i64)] = &[
    ("first", "Initial asm", 170),
    ("scheduled", "Optimised", 95),
    ("measured", "Final", 36),
];
const GENERIC: i64 = 508;
/// The groups of the generic path, and of the one that is scheduled from public documentation.
const GENERIC_GROUPS: i64 = 231;
const SCHEDULED_GROUPS: i64 = 39;
/// Figure 5: the bubbles of the version scheduled from public documentation.
const FIGURE: &[(Event, i64)] = &[
    (Event::BackEndBubbleAll, 56),
    (Event::ExecutionAll, 30),
    (Event::ExecutionGeneral, 16),
    (Event::ExecutionSystem, 14),
    (Event::L1dFpuAll, 15),
    (Event::RseAll, 11),
    (Event::RseDependency, 4),
    (Event::RseLoad, 6),
    (Event::RseOverflow, 1),
];

impl Experiment for Messages {
    fn about(&self) -> About {
        About {
            name: "itanium.ipc",
            question: "What does knowing the latencies of system instructions save a message between threads?",
            source: "Gray et al., Itanium: A System Implementor's Tale, section 5.3, Table 6 and Figure 5",
            setting: "Two threads in two address spaces (guests/ia64/ipc) send each other eight words in registers, by \
                      a call of a gate page with epc that waits for the answer: the eight steps of section 5.3.1. \
                      generic: C code for every case, in which threads wait on kernel stacks. first: the fast case in \
                      assembly, one step after the other. scheduled: as many instructions to a group as there are \
                      units, each latency taken for one cycle. measured: the same, scheduled by Tables 4 and 5. All \
                      check the whole interface, and whatever is not the fast case (other names, items, flags, longer \
                      messages, timeouts, queued senders, floating-point state, NaTs) goes the generic way. What the \
                      threads' loops take is subtracted.",
            baseline: "the generic path",
            sidestep: "the fast path of that version",
            metric: Metric::lower("cycles a message", "cycles"),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(1)),
            reading: "The return goes to another thread than the return stack predicts. Figure 5 counts no flush for \
                      that, so its cycles are not in the value; `cycles with the return's flush` has them. The code \
                      was written from the paper's description of the steps and the published interface of such \
                      kernels; the paper's has 231, 83, 39 and 33 groups.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::choices("version", &["first", "scheduled", "measured"])
                .or("first,scheduled,measured")
                .about("how the fast path is written")
                .source("Itanium Table 6")
                .axis(),
            Input::integer("rounds", 200)
                .between(1, 1_000_000)
                .about("how many messages go there and back while they are counted, after 20 that warm up the caches")
                .source("chosen: the cycles of a message repeat"),
            timed::processor_input(),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let versions = inputs.texts("version");
        Ok(versions
            .into_iter()
            .map(|version| Point::new().at("version", version))
            .collect())
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let measure = |version: &str| -> Result<Side, PointError> {
            let rounds = inputs.count("rounds");
            let parameters = format!("ipc {version} {rounds}");
            let flush = timed::processor(inputs).cost(Cost::Mispredict);
            let side = |difference: &Difference<'_>| {
                let mut side = difference.side(&format!("A message, {version}"));
                let all = difference.cycles();
                side.value = Some(all - difference.event(Event::ReturnsWrongTarget) * Number::from(flush));
                side.count("cycles with the return's flush", all)
            };
            timed::measure(Guest::Messages, parameters, 2 * rounds, (inputs, context), side)
        };
        Ok(Measurement::new(
            measure("generic")?,
            measure(point.value("version").text())?,
        ))
    }

    fn stated(&self, _: &Inputs, point: &Point) -> Vec<Stated> {
        let version = point.value("version").text();
        let row = TABLE.iter().find(|row| row.0 == version);
        row.map_or_else(Vec::new, |(_, name, cycles)| {
            let source = format!("Itanium Table 6: {name}");
            vec![Stated::value(Quantity::Sidestep, *cycles, "0.1", source)]
        })
    }

    fn findings(&self, _: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let scheduled = rows
            .iter()
            .find(|row| row.point.value("version").text() == "scheduled");
        let Some(measurement) = scheduled.and_then(|row| row.measurement()) else {
            return Vec::new();
        };
        let judge = |ours: Number, stated: i64| {
            let tolerance = Number::from(stated) * Number::decimal("0.1");
            let holds = (ours - Number::from(stated)).abs() <= tolerance;
            if holds { Verdict::Holds } else { Verdict::Differs }
        };
        let Some(generic) = measurement.baseline.value else {
            return Vec::new();
        };
        let groups = timed::issue_cycles(&measurement.baseline);
        let mut findings = vec![Finding {
            about: "the generic path".to_owned(),
            stated: format!("{GENERIC} cycles in {GENERIC_GROUPS} groups"),
            source: "Itanium Table 6: C++ generic".to_owned(),
            ours: format!(
                "{} cycles in {} groups",
                generic.to_decimal(0),
                groups.to_decimal(0)
            ),
            verdict: judge(generic, GENERIC),
            because: format!(
                "{} bubbles beside the groups, the paper's {}; by its sources of 2007 the paper's kernel does more \
                 around its C++, and how much of the difference that makes was not measured",
                (generic - groups).to_decimal(0),
                GENERIC - GENERIC_GROUPS
            ),
        }];
        let bubbles = FIGURE.iter().map(|(event, stated)| {
            let count = |event: Event| timed::bubbles(&measurement.sidestep, event);
            // The figure has no flushes: neither has the sum of all.
            let (ours, because) = match event {
                Event::BackEndBubbleAll => (
                    count(*event) - count(Event::FlushAll),
                    format!(
                        "without the return's flush, as in the figure; this path has {} groups, the paper's \
                         {SCHEDULED_GROUPS}",
                        timed::issue_cycles(&measurement.sidestep).to_decimal(0)
                    ),
                ),
                Event::L1dFpuAll => (
                    count(*event),
                    "this code has no load close behind a store to its line, none just behind the region register, and \
                     none whose data meet a system register's value"
                        .to_owned(),
                ),
                _ => (
                    count(*event),
                    "which latencies a path runs into depends on where its author put what".to_owned(),
                ),
            };
            Finding {
                about: format!("{} of the scheduled version", event.name()),
                stated: format!("{stated} bubbles"),
                source: "Itanium Figure 5".to_owned(),
                ours: format!("{} bubbles", ours.to_decimal(1)),
                verdict: judge(ours, *stated),
                because,
            }
        });
        findings.extend(bubbles);
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::bars(
            "Cycles a message (Table 6)",
            Axis::new("version", "version", ""),
            Measure::Value,
            "cycles a message",
            "cycles",
        )]
    }
}
