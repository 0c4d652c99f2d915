//! `itanium.syscall`: Table 3, system calls by `break` and by `epc`.

use std::time::Duration;

use sidestep_itanium2::parameters::Cost;
use sidestep_lab::{
    About, Axis, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric, Nature,
    Number, Point, PointError, Quantity, Row, Side, Standing, Stated, Verdict,
};

use super::kernel::Guest;
use super::timed::{self, Difference};

/// The two ways into the kernel.
pub struct SystemCalls;

/// The call whose answer the library keeps. By `break` it is `getpid`.
const KEPT: &str = "getpid-kept";

/// The kernel whose numbers are judged.
const JUDGED_KERNEL: &str = "U";

/// Table 3: call, link, cycles by `break`, by `epc`. Results: for comparison alone.
const TABLE: &[(&str, &str, i64, i64)] = &[
    ("getpid", "dynamic", 294, 18),
    ("getppid", "dynamic", 299, 77),
    ("gettimeofday", "dynamic", 442, 174),
    ("getpid", "static", 287, 12),
    ("getppid", "static", 290, 54),
    ("gettimeofday", "static", 432, 153),
];

/// A cell of Table 3: call, link, and the way as a quantity of its row.
type Cell = (&'static str, &'static str, Quantity);

/// Pairs of cells whose difference holds neither the loop around a call nor what else was measured with both.
const DIFFERENCES: &[(&str, Cell, Cell)] = {
    use Quantity::{Baseline, Sidestep};
    &[
        (
            "what gettimeofday does more than getppid, by break, static",
            ("gettimeofday", "static", Baseline),
            ("getppid", "static", Baseline),
        ),
        (
            "the same by epc, static",
            ("gettimeofday", "static", Sidestep),
            ("getppid", "static", Sidestep),
        ),
        (
            "the same by epc, dynamic",
            ("gettimeofday", "dynamic", Sidestep),
            ("getppid", "dynamic", Sidestep),
        ),
        (
            "what epc saves getppid, static",
            ("getppid", "static", Baseline),
            ("getppid", "static", Sidestep),
        ),
        (
            "what epc saves gettimeofday, static",
            ("gettimeofday", "static", Baseline),
            ("gettimeofday", "static", Sidestep),
        ),
        (
            "what the import stub adds to getppid by break",
            ("getppid", "dynamic", Baseline),
            ("getppid", "static", Baseline),
        ),
        (
            "what the import stub adds to getppid by epc",
            ("getppid", "dynamic", Sidestep),
            ("getppid", "static", Sidestep),
        ),
    ]
};

/// What the paper has of a cell.
fn printed((call, link, way): Cell) -> i64 {
    let row = TABLE.iter().find(|row| row.0 == call && row.1 == link);
    let (_, _, by_break, by_epc) = row.expect("differences are of the table's rows");
    if way == Quantity::Baseline {
        *by_break
    } else {
        *by_epc
    }
}

/// Differences between the table's cells, on the kernel that is judged: readings of cells that are judged themselves.
fn differences(rows: &[Row]) -> Vec<Finding> {
    let ours = |(call, link, way): Cell| {
        let is = |row: &&Row, axis: &str, value: &str| row.point.value(axis).text() == value;
        rows.iter()
            .filter(|row| is(row, "kernel", JUDGED_KERNEL) && is(row, "link", link))
            .find(|row| is(row, "call", call))?
            .quantity(way)
    };
    let finding = |(about, of, less): &(&str, Cell, Cell)| {
        let (more, stated) = (ours(*of)? - ours(*less)?, printed(*of) - printed(*less));
        let beside = (more - Number::from(stated)).abs() * Number::from(10);
        let agrees = beside <= Number::from(stated);
        Some(Finding {
            value: Some(more),
            about: format!("{about}, kernel {JUDGED_KERNEL}"),
            stated: format!("{stated} cycles"),
            source: "Itanium Table 3, by difference".to_owned(),
            ours: format!("{} cycles", more.to_decimal(1)),
            verdict: Standing::Reading.verdict(agrees),
            because: format!(
                "the loop around the call, and what else was measured with both, is in neither; {} a tenth",
                if agrees { "within" } else { "not within" }
            ),
        })
    };
    DIFFERENCES.iter().filter_map(finding).collect()
}

impl Experiment for SystemCalls {
    fn about(&self) -> About {
        About {
            name: "itanium.syscall",
            question: "What does a system call cost by an exception, and what by a gate page?",
            source: "Gray et al., Itanium: A System Implementor's Tale, section 5.2 and Table 3",
            setting: "A program of the kernel in guests/ia64/kernel calls a C library's function in a loop; what is \
                      counted is the loop, divided by its rounds. The function is linked statically, or reached \
                      through an import stub as one of a shared library. By break the kernel switches stacks, saves \
                      what a call does not destroy, dispatches to C and returns by rfi; by epc the gate page's \
                      assembly answers on the program's own stacks. getpid-kept is a library's getpid that asks the \
                      kernel once and keeps the answer. U is the kernel for one CPU, M that for two, of which one is \
                      idle: its time must not go back between CPUs. The machine runs with the pipeline model: its \
                      cycles are the kernel's time.",
            baseline: "break: an exception",
            sidestep: "epc: a call to a gate page",
            metric: Metric::lower("cycles a call", "cycles"),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(1)),
            reading: "The kernel does what Linux 2.6.9 does on both paths, in code of its own. The paper does not say \
                      on which kernel it measured, nor how its loop and its library looked; each cell is judged once, \
                      on the kernel for one CPU, and that for two is another reading. \
                      Its 12 cycles of getpid by epc are as many as the read of the kernel register with the current \
                      task takes alone, before any call and return, and its library was of the time when libraries \
                      began to keep the answer: its cell is judged by the call, and read a second time as \
                      getpid-kept.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::choices("kernel", &["U", "M"])
                .or("U,M")
                .about("the uniprocessor kernel, or the one for two CPUs")
                .source("Itanium Table 2; Table 3 does not say which")
                .axis(),
            Input::choices("call", &["getpid", KEPT, "getppid", "gettimeofday"])
                .or("getpid,getpid-kept,getppid,gettimeofday")
                .about("the system call; getpid-kept: by epc the library answers what it kept")
                .source("Itanium Table 3")
                .axis(),
            Input::choices("link", &["static", "dynamic"])
                .or("static,dynamic")
                .about("how the program reaches the C library's function")
                .source("Itanium Table 3")
                .axis(),
            Input::integer("calls", 400)
                .between(1, 1_000_000)
                .about("how many calls are counted, after 20 that warm up the caches")
                .source("chosen: the cycles of a call repeat"),
        ];
        inputs.extend(timed::inputs());
        inputs
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let mut points = Vec::new();
        for kernel in inputs.texts("kernel") {
            for link in inputs.texts("link") {
                for call in inputs.texts("call") {
                    let point = Point::new().at("kernel", kernel);
                    points.push(point.at("link", link).at("call", call));
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
        let measure = |way: &str| -> Result<Side, PointError> {
            let (call, link) = (point.value("call").text(), point.value("link").text());
            let processors = if point.value("kernel").text() == "M" { 2 } else { 1 };
            let calls = inputs.count("calls");
            let parameters = format!("program=calls {call} {way} {link} {calls}");
            let title = format!("A {call} by {way}");
            let side = |difference: &Difference<'_>| difference.side(&title);
            timed::measure(
                Guest::Kernel(processors),
                parameters,
                calls,
                (inputs, context),
                side,
            )
        };
        Ok(Measurement::new(measure("break")?, measure("epc")?))
    }

    fn stated(&self, _: &Inputs, point: &Point) -> Vec<Stated> {
        let (call, link) = (point.value("call").text(), point.value("link").text());
        let printed = if call == KEPT { "getpid" } else { call };
        let row = TABLE.iter().find(|row| row.0 == printed && row.1 == link);
        let (_, _, by_break, by_epc) = row.expect("the inputs offer the table's rows");
        let source = format!("Itanium Table 3: {printed}(), {link}");
        // The paper does not say on which kernel it measured: its cells are judged once, on the kernel for one CPU.
        let is_judged = point.value("kernel").text() == JUDGED_KERNEL;
        let standing = if is_judged {
            Standing::Result
        } else {
            Standing::Reading
        };
        let by_break = Stated::value(Quantity::Baseline, *by_break, "0.1", source.clone()).standing(standing);
        let by_epc = Stated::value(Quantity::Sidestep, *by_epc, "0.1", source);
        match call {
            // What a library keeps is no call of the kernel.
            KEPT => vec![by_epc.standing(Standing::Reading)],
            _ => vec![by_break, by_epc.standing(standing)],
        }
    }

    fn findings(&self, inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let mut findings = differences(rows);
        let least = rows
            .iter()
            .filter(|row| row.point.value("call").text() == "gettimeofday")
            .filter_map(|row| row.quantity(Quantity::Ratio))
            .min();
        let Some(least) = least else { return findings };
        findings.push(Finding {
            value: Some(least),
            about: "gain of the most complicated call".to_owned(),
            stated: "close to a factor of three".to_owned(),
            source: "Itanium 5.2.1".to_owned(),
            ours: format!("a factor of {}", least.to_decimal(2)),
            // The cells that it is the quotient of are judged.
            verdict: Verdict::OtherReading,
            because: format!(
                "Table 3's own cells give 2.54 and 2.82; both ways read the interval time counter, {} cycles; by break the interruption, rfi and the switch of \
                 the register stack come on top",
                timed::processor(inputs).cost(Cost::FromTimer)
            ),
        });
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::bars(
                "Cycles a system call (Table 3)",
                Axis::new("call", "system call", ""),
                Measure::Value,
                "cycles a call",
                "cycles",
            )
            .split_by(&["kernel", "link"]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_of_cells_that_the_paper_printed_apart() {
        let stated = DIFFERENCES
            .iter()
            .map(|(_, of, less)| printed(*of) - printed(*less));
        assert_eq!(stated.collect::<Vec<_>>(), [142, 99, 97, 236, 279, 9, 23]);
        assert!(
            differences(&[]).is_empty(),
            "what was not measured has no difference"
        );
    }
}
