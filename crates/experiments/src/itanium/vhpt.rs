//! `itanium.vhpt`: Table 1, the two page table formats under lmbench's context switches; and what a TLB refill takes by
//! the hardware walker, by software alone, and through the long format as a software TLB (section 3.2).

use std::time::Duration;

use sidestep_ia64::execution::Untimed;
use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Quantity, Row, Side, Standing, Stated, Verdict,
};

use super::kernel::{Finished, Guest, KernelError, Reading, Run};
use super::timed::{self, Difference};

/// Short against long format, and the three ways of refilling the TLB.
pub struct PageTables;

/// The workloads: the paper's context switches, and refills by two ways against software alone.
const CONTEXT: &str = "context";
const REFILL_WALKER: &str = "refill-walker";
const REFILL_SOFTWARE_TLB: &str = "refill-software-tlb";

/// How each of `baseline` and `sidestep` sets the kernel up.
const SETUPS: [(&str, &str); 4] = [
    ("short", "format=short walker=on"),
    ("long", "format=long walker=on"),
    ("short-software", "format=short walker=off"),
    ("long-software", "format=long walker=off"),
];
const SETUP_NAMES: &[&str] = &[SETUPS[0].0, SETUPS[1].0, SETUPS[2].0, SETUPS[3].0];
const SIDESTEP_NAMES: &[&str] = &[SETUPS[1].0, SETUPS[0].0, SETUPS[2].0, SETUPS[3].0];

/// What is counted.
const EVENTS: &str = "events";
const CYCLES: &str = "cycles";

/// Table 1: working set in kB, kernel, and for each number of processes the long format's performance relative to the
/// short one's. Results: for comparison alone.
const TABLE: &[(i64, &str, [&str; 7])] = &[
    (0, "U", ["0.98", "1.00", "0.95", "0.88", "0.98", "1.44", "1.34"]),
    (0, "M", ["0.94", "0.96", "0.95", "0.96", "1.23", "1.30", "1.27"]),
    (4, "U", ["0.97", "0.99", "0.97", "0.95", "1.17", "1.20", "1.09"]),
    (4, "M", ["0.95", "0.61", "0.78", "0.87", "1.11", "1.13", "1.09"]),
    (8, "U", ["0.99", "0.98", "0.96", "0.97", "1.31", "1.17", "1.08"]),
    (8, "M", ["0.95", "0.91", "0.96", "1.00", "1.29", "1.15", "1.06"]),
    (16, "U", ["0.99", "0.98", "0.96", "0.97", "1.31", "1.17", "1.08"]),
    (16, "M", ["0.95", "0.91", "0.96", "1.00", "1.29", "1.15", "1.06"]),
    (32, "U", ["0.98", "0.99", "1.04", "1.30", "1.04", "1.03", "1.00"]),
    (32, "M", ["0.94", "0.96", "1.00", "1.01", "0.87", "1.00", "1.00"]),
    (64, "U", ["1.00", "0.98", "0.94", "0.94", "1.00", "1.00", "1.00"]),
    (64, "M", ["0.97", "0.98", "1.06", "1.22", "0.94", "0.99", "0.98"]),
];
const TABLE_PROCESSES: [u64; 7] = [2, 4, 8, 16, 32, 64, 96];

/// Instructions after which a point has gone wrong.
const INSTRUCTIONS_MAX: u64 = 4_000_000_000;

impl Experiment for PageTables {
    fn about(&self) -> About {
        About {
            name: "itanium.vhpt",
            question: "Which page table format costs less when contexts switch, and what does a TLB refill take?",
            source: "Gray et al., Itanium: A System Implementor's Tale, Table 1 and section 3.2",
            setting: "The kernel of guests/ia64/kernel in system mode, 16 kB pages, buffers of 128 entries a side. \
                      workload=context is lmbench's lat_ctx: processes in a ring of pipes pass a token, each reads its \
                      working set; what one process needs for the same by itself is subtracted. Kernel U is built for \
                      one CPU, M for two and runs on two. The two refill workloads read one word each of more pages \
                      than the TLB holds; their baseline is always software alone (short format, walker off). With \
                      count=events a context switch counts its TLB misses, a refill the instructions that the kernel \
                      executes for it.",
            baseline: "the short format with the hardware walker; for refills: software alone",
            sidestep: "the long format with the hardware walker; for refills: the walker on the short format, or on \
                       the long format as a software TLB",
            metric: Metric {
                name: "cycles or events",
                unit: "",
                better: Better::Lower,
            },
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(4), Duration::from_secs(100)),
            reading: "Table 1 is of time: the ratios are of cycles of the pipeline model and stand beside it. With \
                      count=events TLB misses are counted instead, in a fraction of the time: they show where the \
                      TLB pressure is that the paper gives as the reason. Misses of the short format include those on \
                      the pages of the linear table, which the long format does not have; its entries lie apart, which \
                      costs cache misses that events do not show. Kernel M counts both CPUs together, so its \
                      instructions include those of a CPU that waits for a lock; its ring is spread over two TLBs. Its \
                      cycles are those of the CPU that takes the time.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::choices("workload", &[CONTEXT, REFILL_WALKER, REFILL_SOFTWARE_TLB])
                .or("context,refill-walker,refill-software-tlb")
                .about("what runs")
                .source("Itanium 3.2 and 3.4")
                .axis(),
            Input::integers("working-set", &[0, 4, 8, 16, 32, 64])
                .between(0, 1024)
                .quick("0,16")
                .unit("kB")
                .about("what each process reads before it passes the token on")
                .source("Itanium Table 1")
                .axis(),
            Input::choices("kernel", &["U", "M"])
                .or("U,M")
                .about("the uniprocessor kernel, or the one for two CPUs")
                .source("Itanium Table 1")
                .axis(),
            Input::integers("processes", &[2, 4, 8, 16, 32, 64, 96])
                .between(2, 100)
                .quick("2,16,64")
                .about("how many processes are in the ring")
                .source("Itanium Table 1")
                .axis(),
            Input::integer("passes", 4)
                .between(1, 10_000)
                .quick("2")
                .about("how often the token goes round while it is counted")
                .source("chosen: the count repeats from the second round on"),
            Input::integer("refill-pages", 400)
                .between(8, 4000)
                .unit("pages")
                .about("how many pages the refill workloads read in turn")
                .source("chosen: three times what the TLB holds"),
            Input::choice("baseline", SETUP_NAMES)
                .about("the kernel of the baseline under workload=context")
                .source("Itanium Table 1: the short format"),
            Input::choice("sidestep", SIDESTEP_NAMES)
                .about("the kernel of the sidestep under workload=context")
                .source("Itanium Table 1: the long format"),
            Input::choice("count", &[CYCLES, EVENTS])
                .about("what a side's value is: cycles of the pipeline model, or events, which take a fraction of the time")
                .source("Itanium Table 1 and 3.2 are of time"),
            Input::switch("superpages", false)
                .about("whether the sidestep maps working sets by pages of 64 kB")
                .source("Itanium 3.3"),
            Input::choice("sharing", &["off", "region", "key"])
                .about(
                    "what the sidestep's processes share in the TLB: nothing, the program's text by a common region \
                     identifier, or that under protection keys",
                )
                .source("Itanium 3.1"),
        ];
        inputs.extend(timed::inputs());
        inputs
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let long = inputs.text("sidestep").starts_with("long");
        if inputs.text("sharing") == "key" && !long {
            return Err(
                "sharing=key needs sidestep=long: the short format has one key for a whole region".to_owned(),
            );
        }
        let mut points = Vec::new();
        for workload in inputs.texts("workload") {
            let point = |set: i64, kernel: &str, processes: i64| {
                Point::new()
                    .at("workload", workload)
                    .at("working-set", set)
                    .at("kernel", kernel)
                    .at("processes", processes)
            };
            if workload != CONTEXT {
                points.push(point(0, "U", 1));
                continue;
            }
            for set in inputs.integers("working-set") {
                for kernel in inputs.texts("kernel") {
                    for processes in inputs.integers("processes") {
                        points.push(point(set, kernel, processes));
                    }
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
        let workload = point.value("workload").text();
        let switches = format!(
            "superpages={} sharing={}",
            if inputs.switch("superpages") { "on" } else { "off" },
            inputs.text("sharing"),
        );
        if workload == CONTEXT {
            let baseline = switch(inputs, point, setup(inputs.text("baseline")), "", context)?;
            let sidestep = switch(inputs, point, setup(inputs.text("sidestep")), &switches, context)?;
            return Ok(Measurement::new(baseline, sidestep));
        }
        let way = if workload == REFILL_WALKER {
            "short"
        } else {
            "long"
        };
        let baseline = refill(inputs, setup("short-software"), context)?;
        let sidestep = refill(inputs, setup(way), context)?;
        Ok(Measurement::new(baseline, sidestep))
    }

    fn stated(&self, inputs: &Inputs, point: &Point) -> Vec<Stated> {
        let papers = inputs.text("count") == CYCLES
            && (inputs.text("baseline"), inputs.text("sidestep")) == (SETUPS[0].0, SETUPS[1].0)
            && inputs.text("sharing") == "off"
            && !inputs.switch("superpages");
        if !papers || point.value("workload").text() != CONTEXT {
            return Vec::new();
        }
        let place = (point.value("working-set").integer(), point.value("kernel").text());
        let row = TABLE.iter().find(|row| (row.0, row.1) == place);
        let processes = point.value("processes").count();
        let column = TABLE_PROCESSES.iter().position(|other| *other == processes);
        let (Some(row), Some(column)) = (row, column) else {
            return Vec::new();
        };
        let source = format!("Itanium Table 1: {} kB, {}, {processes} processes", row.0, row.1);
        vec![Stated::value(
            Quantity::Ratio,
            Number::decimal(row.2[column]),
            "0.1",
            source,
        )]
    }

    fn findings(&self, inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let is_cycles = inputs.text("count") == CYCLES;
        let mut findings: Vec<Finding> = ["U", "M"]
            .iter()
            .filter_map(|kernel| skill(kernel, rows))
            .collect();
        let refill = rows
            .iter()
            .find(|row| row.point.value("workload").text() == REFILL_WALKER);
        findings.extend(
            refill
                .and_then(Row::measurement)
                .map(|measurement| refills(measurement, is_cycles)),
        );
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let processes = Axis::new("processes", "processes", "").logarithmic();
        vec![
            Figure::lines(
                "Data TLB misses a context switch",
                processes,
                Measure::Counter("data TLB misses"),
                "data TLB misses",
                "",
            )
            .split_by(&["workload", "kernel", "working-set"]),
        ]
    }
}

/// How near a kernel's cells of Table 1 come, beside a constant 1.00 as the predictor to beat.
fn skill(kernel: &str, rows: &[Row]) -> Option<Finding> {
    let cells: Vec<(Number, &Stated)> = (rows.iter())
        .filter(|row| row.point.value("kernel").text() == kernel)
        .filter_map(|row| Some((row.quantity(Quantity::Ratio)?, row.statement(Quantity::Ratio)?)))
        .collect();
    if cells.is_empty() {
        return None;
    }
    let count = cells.len() as u64;
    let (ours, constant) = (
        Nearness::of(cells.iter().copied()),
        Nearness::of(cells.iter().map(|(_, stated)| (Number::ONE, *stated))),
    );
    let beats = ours.mean_square < constant.mean_square;
    Some(Finding {
        about: format!("Table 1 on kernel {kernel}, beside a constant 1.00"),
        stated: format!("{count} cells"),
        source: "Itanium Table 1; the comparison is ours".to_owned(),
        ours: format!(
            "{}: {ours} of {count}, the constant {constant}",
            if beats { "skill" } else { "no skill" }
        ),
        value: Some(ours.mean_square),
        // The cells are judged.
        verdict: Verdict::OtherReading,
        because: "the number of cells within a tenth, and the root of the mean square difference".to_owned(),
    })
}

/// How near a predictor comes to stated cells.
struct Nearness {
    within: usize,
    mean_square: Number,
}

impl Nearness {
    fn of<'a>(cells: impl Iterator<Item = (Number, &'a Stated)> + Clone) -> Nearness {
        let square = |(ours, stated): (Number, &Stated)| {
            // A thousandth is precise enough, and keeps a sum of fractions within its bits.
            let thousandths = ((ours - stated.number()) * Number::from(1000)).to_decimal(0);
            let difference = Number::decimal(&thousandths) * Number::ratio(1, 1000);
            difference * difference
        };
        let count = cells.clone().count().max(1);
        Nearness {
            within: cells
                .clone()
                .filter(|(ours, stated)| stated.agrees(*ours))
                .count(),
            mean_square: cells.map(square).sum::<Number>() * Number::ratio(1, count as u64),
        }
    }
}

impl std::fmt::Display for Nearness {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let millionths = (self.mean_square * Number::from(1_000_000)).to_decimal(0);
        let root = millionths.parse::<u64>().map_or(0, u64::isqrt);
        write!(
            formatter,
            "{} (RMSE {})",
            self.within,
            Number::ratio(root, 1000u64).to_fixed(3)
        )
    }
}

/// A refill of the TLB by software alone and by the walker, beside Linux's average.
fn refills(measurement: &Measurement, is_cycles: bool) -> Finding {
    let value = |side: &Side| side.value.map_or_else(String::new, |value| value.to_decimal(1));
    let near = |side: &Side, stated: i64| {
        let ours = side.value.unwrap_or(Number::ZERO);
        (ours - Number::from(stated)).abs() <= Number::ratio(stated, 10)
    };
    let (unit, standing, because) = match is_cycles {
        true => (
            "cycles",
            Standing::Result,
            "these pages are read in turn, more than the TLB holds, and their entries stay in the second-level cache; \
             Linux's average is over what it ran",
        ),
        false => (
            "instructions of the kernel",
            Standing::Unjudged,
            "instructions are not cycles: the interruption and the return from it, which flush the pipeline, are not \
             among them",
        ),
    };
    Finding {
        about: "a refill by software alone against one by the walker".to_owned(),
        stated: "around 160 cycles without the walker, 45 with it, in Linux".to_owned(),
        source: "Itanium 3.2".to_owned(),
        ours: format!(
            "{} {unit} without the walker, {} with it",
            value(&measurement.baseline),
            value(&measurement.sidestep)
        ),
        value: measurement.baseline.value,
        verdict: standing.verdict(near(&measurement.baseline, 160) && near(&measurement.sidestep, 45)),
        because: because.to_owned(),
    }
}

fn setup(name: &str) -> &'static str {
    let found = SETUPS.iter().find(|(setup, _)| *setup == name);
    found.expect("the inputs offer no other").1
}

fn run(
    processors: usize,
    parameters: String,
    inputs: &Inputs,
    context: &Context,
) -> Result<Finished, PointError> {
    let guest = Guest::Kernel(processors);
    if inputs.text("count") == CYCLES {
        return timed::run(guest, parameters, inputs, context);
    }
    let run = Run {
        guest,
        parameters,
        memory_mb: 512,
        instructions_max: INSTRUCTIONS_MAX,
        quantum_ticks: guest.quantum_ticks(),
        keeps_dumps: false,
    };
    run.run(&mut vec![Untimed; processors], &|| context.cancelled())
        .map_err(KernelError::into_point_error)
}

/// A side of workload=context.
fn switch(
    inputs: &Inputs,
    point: &Point,
    setup: &str,
    switches: &str,
    context: &Context,
) -> Result<Side, PointError> {
    let processors = if point.value("kernel").text() == "M" { 2 } else { 1 };
    let processes = point.value("processes").count();
    let passes = inputs.count("passes");
    let set = point.value("working-set").count();
    let parameters = format!("{setup} {switches} program=context {processes} {set} {passes}");
    let finished = run(processors, parameters, inputs, context)?;
    let (alone, ring) = (finished.between(1, 2), finished.between(3, 4));
    let side = side(inputs, misses, &alone, &ring, processes * passes);
    // A processor that waits for the other one spins, for as many instructions as it happens to wait. In cycles they
    // are among the counters already.
    let side = if processors == 1 && inputs.text("count") != CYCLES {
        side.count(
            "instructions",
            each(alone.instructions, ring.instructions, processes * passes),
        )
    } else {
        side
    };
    Ok(side.traced(finished.timeline(timed::processor(inputs).megahertz, context)))
}

/// A side of a refill workload: the instructions that each read takes beyond those of a read that needs no refill.
fn refill(inputs: &Inputs, setup: &str, context: &Context) -> Result<Side, PointError> {
    let (pages, passes) = (inputs.count("refill-pages"), inputs.count("passes"));
    let finished = run(
        1,
        format!("{setup} program=refill {pages} {passes}"),
        inputs,
        context,
    )?;
    let (alone, all) = (finished.between(1, 2), finished.between(3, 4));
    let side = side(
        inputs,
        |reading| reading.instructions,
        &alone,
        &all,
        pages * passes,
    );
    Ok(side.traced(finished.timeline(timed::processor(inputs).megahertz, context)))
}

fn misses(reading: &Reading) -> u64 {
    reading.events.data_misses + reading.events.instruction_misses
}

/// What each of `operations` takes beyond what is there alone.
fn each(alone: u64, together: u64, operations: u64) -> Number {
    Number::ratio(i128::from(together) - i128::from(alone), i128::from(operations))
}

/// A side whose value is what each of `operations` takes beyond what is there alone: cycles if they are wanted, else
/// `events`; with the events behind it, and the tree of bubbles.
fn side(
    inputs: &Inputs,
    events: fn(&Reading) -> u64,
    before: &Reading,
    after: &Reading,
    operations: u64,
) -> Side {
    let each = |alone, together| each(alone, together, operations);
    let side = if inputs.text("count") == CYCLES {
        let difference = Difference {
            empty: before,
            full: after,
            operations,
        };
        difference.side("A context switch")
    } else {
        Side::new(each(events(before), events(after)))
    };
    let of = |count: fn(&Reading) -> u64| each(count(before), count(after));
    side.count("data TLB misses", of(|reading| reading.events.data_misses))
        .count(
            "instruction TLB misses",
            of(|reading| reading.events.instruction_misses),
        )
        .count("walker reads", of(|reading| reading.events.walker_reads))
        .count("walker hits", of(|reading| reading.events.walker_hits))
        .count(
            "insertions by software",
            of(|reading| reading.events.software_insertions),
        )
        .count("purges", of(|reading| reading.events.purges))
}
