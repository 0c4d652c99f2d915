//! What watching costs the watched program.

use std::path::Path;
use std::time::{Duration, Instant};

use sidestep_gang_linux::journal::{self, Change, Journal};
use sidestep_gang_linux::process::{self, ThreadName};
use sidestep_gang_linux::watch::{WatchSettings, Watcher};
use sidestep_gang_linux::workload::{PROGRESS_VARIABLE, Progress};

use super::PAPER;
use super::host::{own_command, with_causes};
use crate::comparison::Row;
use crate::experiment::{About, Better, Context, Experiment, Metric, Nature, Point, PointError};
use crate::input::{Input, Inputs, Value};
use crate::measurement::{Measurement, Side};
use crate::number::Number;
use crate::paper::{Finding, Quantity, Verdict};
use crate::timeline::Rounds;

/// What watching costs.
pub struct Watch;

impl Experiment for Watch {
    fn about(&self) -> About {
        About {
            name: "gang.watch",
            question: "What does it cost a program to be watched for shared memory?",
            source: "none: beyond Busse et al., Partial Coscheduling (2015), which cites a low overhead (section 2.2)",
            setting: "A kernel after the NAS Parallel Benchmarks with two threads runs for the whole point; it is watched in \
                      every second epoch, at the kernel's default rate.",
            baseline: "not watched",
            sidestep: "watched: pages are made to fault, every fault is reported and counted",
            metric: Metric {
                name: "time on a core for a step",
                unit: "ns",
                better: Better::Lower,
            },
            nature: Nature::Measured,
            takes: (Duration::from_secs(20), Duration::from_secs(390)),
            reading: "Time on a core includes the faults, which happen in the program's own time. A ratio of 0.97 is a cost \
                      of three percent. The watcher's own time is a counter of its own.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::choices("programs", &["ep", "is", "cg", "mg"])
                .quick("mg")
                .about("what is watched")
                .source("Partial Coscheduling, Table 1")
                .axis(),
            Input::durations("settling", &[0, 60_000_000_000])
                .lasting(0, 3_600_000_000_000)
                .quick("0ns")
                .about(
                    "how long it is watched before it is measured, while nothing changes in what it shares",
                )
                .source("chosen: none, and as long as the kernel takes to scan at its slowest")
                .axis(),
            Input::duration("epoch", 2_000_000_000)
                .lasting(200_000_000, 60_000_000_000)
                .about("how long it is watched and not watched in turn")
                .source("chosen: two scans at the kernel's default rate"),
            Input::integer("pairs", 4)
                .between(1, 1000)
                .about("pairs of epochs")
                .source("chosen"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let mut points = Vec::new();
        for program in inputs.texts("programs") {
            for ns in inputs.durations_ns("settling") {
                points.push(
                    Point::new()
                        .at("program", program)
                        .at("settling", Value::Duration { ns }),
                );
            }
        }
        Ok(points)
    }

    fn findings(&self, _: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let worst = |settled: bool| {
            let ratios = rows
                .iter()
                .filter(|row| (row.point.value("settling").duration_ns() > 0) == settled)
                .filter_map(|row| Some((row.quantity(Quantity::Ratio)?, row)));
            ratios.min_by_key(|(ratio, _)| *ratio)
        };
        let bounds = [
            ("from its start on", false, "0.97"),
            ("when nothing changes", true, "0.99"),
        ];
        let finding = |(when, settled, least): (&str, bool, &str)| {
            let (ratio, row) = worst(settled)?;
            let cost = Number::from(100) * (Number::ONE - ratio);
            Some(Finding {
                about: format!("the cost of being watched {when}, of the dearest program"),
                stated: "a low overhead".to_owned(),
                source: format!("{PAPER}, section 2.2"),
                ours: format!("{} % ({})", cost.to_decimal(2), row.point.value("program")),
                verdict: match ratio >= Number::decimal(least) {
                    true => Verdict::Holds,
                    false => Verdict::Differs,
                },
                because: format!("a ratio of {least} or more counts as low"),
            })
        };
        bounds.into_iter().filter_map(finding).collect()
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let unavailable =
            |error: sidestep_gang_linux::HostError| PointError::Unavailable(with_causes(&error));
        let (mut journal, _) = Journal::open(Path::new(journal::FOLDER)).map_err(unavailable)?;
        let progress = journal.path().with_extension("watch.progress");
        let result = paired(inputs, point, &mut journal, &progress, context);
        // A count that was never written is as good as removed.
        let _ = std::fs::remove_file(&progress);
        journal.close().map_err(unavailable)?;
        result
    }
}

/// What a program did in the epochs of one kind.
#[derive(Default)]
struct Sum {
    steps: u64,
    ran_ns: u64,
}

fn paired(
    inputs: &Inputs,
    point: &Point,
    journal: &mut Journal,
    progress: &Path,
    context: &Context<'_>,
) -> Result<Measurement, PointError> {
    let unavailable = |error: sidestep_gang_linux::HostError| PointError::Unavailable(with_causes(&error));
    let words = [
        "gang",
        "workload",
        point.value("program").text(),
        "--threads",
        "2",
        "--seconds",
        "86400",
    ];
    let mut child = std::process::Command::new(own_command()?)
        .args(words)
        .env(PROGRESS_VARIABLE, progress)
        .stdout(std::process::Stdio::null())
        .spawn()
        .map_err(|error| PointError::Failed(format!("cannot start the kernel: {error}")))?;
    let process = child.id() as i32;
    let measured = (|| {
        journal.note(&Change::Started { process }).map_err(unavailable)?;
        let epoch = Duration::from_nanos(inputs.duration_ns("epoch"));
        let settling = Duration::from_nanos(point.value("settling").duration_ns());
        let [mut first, mut second] = Rounds::of_both_sides(context);
        let (mut plain, mut watched, mut faults) = (Sum::default(), Sum::default(), 0);
        let mut watch = |length: Duration, sum: &mut Sum| {
            let watcher =
                Watcher::start(journal, &[process], WatchSettings::default()).map_err(unavailable)?;
            run_epoch(length, Some(watcher), process, progress, sum, context)
        };
        if !settling.is_zero() {
            second.note("settling", || watch(settling, &mut Sum::default()))?;
        }
        for _ in 0..inputs.count("pairs") {
            faults += second.note("watched", || watch(epoch, &mut watched))?;
            first.note("not watched", || {
                run_epoch(epoch, None, process, progress, &mut plain, context)
            })?;
        }
        let step_ns = |sum: &Sum| Number::from(sum.ran_ns).over(Number::from(sum.steps));
        match (step_ns(&plain), step_ns(&watched)) {
            (Some(plain), Some(watched)) => Ok(Measurement::new(
                first.explain(Side::new(plain)),
                second.explain(Side::new(watched).count("faults", faults)),
            )),
            _ => Err(PointError::Failed(
                "the kernel finished no step; is the host too busy?".to_owned(),
            )),
        }
    })();
    let _ = child.kill();
    let _ = child.wait();
    measured
}

fn run_epoch(
    length: Duration,
    mut watcher: Option<Watcher>,
    process: i32,
    progress: &Path,
    sum: &mut Sum,
    context: &Context<'_>,
) -> Result<u64, PointError> {
    let ran_ns = || {
        let threads = process::threads(process).into_iter();
        let names = threads.filter_map(|thread| ThreadName::of(process, thread));
        names
            .filter_map(|name| name.run_and_wait_ns())
            .map(|(ran_ns, _)| ran_ns)
            .sum::<u64>()
    };
    let before = (Progress::read(progress), ran_ns());
    let began = Instant::now();
    while began.elapsed() < length {
        std::thread::sleep(Duration::from_millis(50));
        if let Some(watcher) = &mut watcher {
            watcher.poll();
        }
        if context.cancelled() {
            return Err(PointError::Cancelled);
        }
    }
    let after = (Progress::read(progress), ran_ns());
    sum.steps += after.0 - before.0;
    sum.ran_ns += after.1.saturating_sub(before.1);
    Ok(watcher.map_or(0, |watcher| watcher.snapshot().faults))
}
