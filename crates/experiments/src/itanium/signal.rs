//! `itanium.signal`: Table 2 and section 5.1, delivering a signal with the full or with the minimal state, and what a
//! core dump costs where an unwinder rebuilds what the minimal state leaves out.

use std::collections::BTreeMap;
use std::time::Duration;

use sidestep_lab::{
    About, Axis, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric, Nature,
    Number, Point, PointError, Quantity, Row, Side, Standing, Stated,
};

use super::core_file::CoreFile;
use super::kernel::{Finished, Guest};
use super::timed::{self, Difference};

/// Full against minimal state.
pub struct Signals;

/// What is counted.
const DELIVERY: &str = "delivery";
const DUMP: &str = "dump";
/// Of all core files together.
const DIFFERING: &str = "registers other than with the full state";

impl Experiment for Signals {
    fn about(&self) -> About {
        About {
            name: "itanium.signal",
            question: "What does delivering a signal cost when preserved registers are left where they are?",
            source: "Gray et al., Itanium: A System Implementor's Tale, section 5.1 and Table 2",
            setting: "delivery: a program of the kernel in guests/ia64/kernel sends itself a signal whose handler does \
                      nothing, and returns from it; what the same call takes that sends none is subtracted. dump: a \
                      process aborts and leaves a core file; what one takes that ends by itself is subtracted. With \
                      the full state the preserved registers go to a structure on the kernel's stack, from there to \
                      the program's, back, and into the registers; with the minimal state they stay in the registers, \
                      and a core dump unwinds the kernel's stack to find them. U is the kernel for one CPU, M that for \
                      two, of which one is idle.",
            baseline: "the full state (signal-state=full)",
            sidestep: "the minimal state (signal-state=minimal)",
            metric: Metric::lower("cycles a signal", "cycles"),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(1)),
            reading: "siginfo_t and struct sigcontext are those of Linux/ia64, which the kernel fills and reads back. \
                      What a full Linux does beyond that on each entry and each signal (threads, process groups, \
                      tracers, audit) is not there. The host's work of writing a core file takes no time of the \
                      machine.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::choices("kernel", &["U", "M"])
                .or("U,M")
                .about("the uniprocessor kernel, or the one for two CPUs")
                .source("Itanium Table 2")
                .axis(),
            Input::choices("of", &[DELIVERY, DUMP])
                .or("delivery,dump")
                .about(
                    "what is counted: a signal that is handled, or one that ends a process with a core dump",
                )
                .source("Itanium 5.1")
                .axis(),
            Input::integer("dumps", 10)
                .between(1, 1000)
                .about("how many core dumps are counted, after 2 that warm up the caches")
                .source("chosen: the cycles of a dump repeat"),
            Input::integer("signals", 200)
                .between(1, 1_000_000)
                .about("how many signals are counted, after 10 that warm up the caches")
                .source("chosen: the cycles of a signal repeat"),
        ];
        inputs.extend(timed::inputs());
        inputs
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let (kernels, kinds) = (inputs.texts("kernel"), inputs.texts("of"));
        let point = |of: &str, kernel: &str| Point::new().at("of", of).at("kernel", kernel);
        Ok(kinds
            .iter()
            .flat_map(|of| kernels.iter().map(move |kernel| point(of, kernel)))
            .collect())
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let processors = if point.value("kernel").text() == "M" { 2 } else { 1 };
        let (program, count, what) = match point.value("of").text() {
            DUMP => ("dumps", inputs.count("dumps"), "A core dump"),
            _ => ("signals", inputs.count("signals"), "A signal"),
        };
        let run = |state: &str| -> Result<(Finished, Side), PointError> {
            let parameters = format!("signal-state={state} program={program} {count}");
            let title = format!("{what} with {state} state");
            let finished = timed::run(Guest::Kernel(processors), parameters, inputs, context)?;
            let side = |difference: &Difference<'_>| difference.side(&title);
            let side = timed::compare(&finished, count, (inputs, context), side);
            Ok((finished, side))
        };
        let ((full, baseline), (minimal, mut sidestep)) = (run("full")?, run("minimal")?);
        if program == "dumps" {
            let differing = differing_registers(&full.dumps, &minimal.dumps)?;
            sidestep = sidestep.count(DIFFERING, Number::from(differing));
        }
        Ok(Measurement::new(baseline, sidestep))
    }

    fn stated(&self, _: &Inputs, point: &Point) -> Vec<Stated> {
        if point.value("of").text() == DUMP {
            return Vec::new();
        }
        let (row, cycles) = match point.value("kernel").text() {
            "M" => ("SMP", 3087),
            _ => ("UP", 2533),
        };
        let source = format!("Itanium Table 2: Itanium 2, 1.00 GHz, {row}");
        vec![Stated::value(Quantity::Sidestep, cycles, "0.1", source)]
    }

    fn findings(&self, _: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let of = |what: &'static str| {
            rows.iter()
                .filter(move |row| row.point.value("of").text() == what)
        };
        for row in of(DELIVERY) {
            let kernel = row.point.value("kernel").text();
            let (Some(full), Some(minimal)) =
                (row.quantity(Quantity::Baseline), row.quantity(Quantity::Sidestep))
            else {
                continue;
            };
            let more = full - minimal;
            // The paper's difference, share and unwinding are of no kernel: they are judged once, on that for one CPU.
            let standing = if kernel == "M" {
                Standing::Reading
            } else {
                Standing::Result
            };
            let judge = |agrees: bool| standing.verdict(agrees);
            let share = more.over(minimal).unwrap_or(Number::ZERO) * Number::from(100);
            findings.push(Finding {
                value: Some(more),
                about: format!("what the full state adds, kernel {kernel}"),
                stated: "about 700 cycles on Itanium 2".to_owned(),
                source: "Itanium 5.1.2".to_owned(),
                ours: format!("{} cycles", more.to_decimal(0)),
                verdict: judge((more - Number::from(700)).abs() <= Number::from(70)),
                because: "24 floating-point, 4 general and 5 branch registers through memory four times; a tenth is \
                          granted"
                    .to_owned(),
            });
            findings.push(Finding {
                value: Some(share),
                about: format!("how much slower that is, kernel {kernel}"),
                stated: "23 to 34 percent".to_owned(),
                source: "Itanium 5.1.2".to_owned(),
                ours: format!("{} percent", share.to_decimal(0)),
                verdict: judge(share >= Number::from(23) && share <= Number::from(34)),
                because: "this kernel's delivery is shorter than Linux's, so the same state is a larger share of it"
                    .to_owned(),
            });
            let dump = of(DUMP).find(|row| row.point.value("kernel").text() == kernel);
            let sides = dump.and_then(|row| {
                Some((
                    row.quantity(Quantity::Baseline)?,
                    row.quantity(Quantity::Sidestep)?,
                    row.result.as_ref().ok()?.sidestep.find(DIFFERING)?.value,
                ))
            });
            let Some((with_copy, unwound, differing)) = sides else {
                continue;
            };
            let unwinding = unwound - with_copy;
            let signals = unwinding.over(more).unwrap_or(Number::ZERO);
            findings.push(Finding {
                value: Some(differing),
                about: format!(
                    "registers in core dumps that the unwinder rebuilt otherwise, kernel {kernel}"
                ),
                stated: "they can be reconstructed after the fact".to_owned(),
                source: "Itanium 5.1.2".to_owned(),
                ours: format!(
                    "{differing}, for {} cycles a dump, what {} deliveries save",
                    unwinding.to_decimal(0),
                    signals.to_decimal(1)
                ),
                verdict: judge(differing.is_zero()),
                because:
                    "the unwinder reads the tables of every kernel function between the entry and the dump"
                        .to_owned(),
            });
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::bars(
            "Cycles a signal (Table 2)",
            Axis::new("kernel", "kernel", ""),
            Measure::Value,
            "cycles a signal",
            "cycles",
        )]
    }
}

/// How many registers the core files of one run have otherwise than those of the same processes in another.
fn differing_registers(
    one: &BTreeMap<u64, Vec<u8>>,
    other: &BTreeMap<u64, Vec<u8>>,
) -> Result<usize, PointError> {
    if one.is_empty() || !one.keys().eq(other.keys()) {
        let error = format!(
            "{} processes left a core with the full state, {} with the minimal",
            one.len(),
            other.len()
        );
        return Err(PointError::Failed(error));
    }
    let pairs = one.iter().zip(other.values());
    pairs
        .map(|((process, one), other)| {
            let cores = CoreFile::parse(one).zip(CoreFile::parse(other));
            let (one, other) = cores.ok_or_else(|| {
                PointError::Failed(format!(
                    "the core of process {process} has no registers of Linux/ia64"
                ))
            })?;
            Ok(other.registers_other_than(&one))
        })
        .sum()
}
