//! What watching costs the watched program.

use std::path::Path;
use std::time::{Duration, Instant};

use sidestep_gang_linux::changed::Changed;
use sidestep_gang_linux::journal::{self, Change, Journal};
use sidestep_gang_linux::process;
use sidestep_gang_linux::setting::{self, AUTOGROUP};
use sidestep_gang_linux::watch::{WatchSettings, Watcher};
use sidestep_gang_linux::workload::{PROGRESS_VARIABLE, ProgressFile};
use sidestep_lab::statistics::median;
use sidestep_lab::{
    About, Better, Context, Experiment, Finding, Input, Inputs, Measurement, Metric, Nature, Number, Point,
    PointError, Quantity, Rounds, Row, Side, Value, Verdict,
};
use sidestep_runner::causes::with_causes;

use super::PAPER;
use super::host::own_command;

/// What watching costs.
pub struct Watch;

impl Experiment for Watch {
    fn about(&self) -> About {
        About {
            name: "gang.watch",
            question: "What does it cost a program to be watched for shared memory?",
            source: "none: beyond Busse et al., Partial Coscheduling (2015), which cites a low overhead (section 2.2)",
            setting: "A kernel after the NAS Parallel Benchmarks (class W) with two threads, which begins new ones for \
                      each of its runs, or two threads that use pages of a pair or of their own and never change, run \
                      for the whole point, watched and not watched in turn, at the kernel's default rate. Without \
                      settling the watcher is started anew for each watched epoch and never rests; with it, where \
                      threads never change, one watcher has watched so long before, and an epoch lasts one look and \
                      the longest rest.",
            baseline: "not watched",
            sidestep: "watched: pages are made to fault, every fault is reported and counted",
            metric: Metric {
                name: "time on a core for a step",
                unit: "ns",
                better: Better::Lower,
            },
            nature: Nature::Measured,
            takes: (Duration::from_secs(90), Duration::from_secs(900)),
            reading: "Time on a core is that of all the program's threads, those that ended too. It includes faults \
                      and scans, which happen in the program's own time, but not what other programs take; and the \
                      program has the lowest niceness, so that its threads seldom spin for one that others displaced. \
                      A ratio of 0.97 is a cost of three percent. What elapsed time says, and time in the kernel \
                      alone, stands among the counters, and so does what the watcher itself ran. Each watched epoch is \
                      held against the one beside it, and which of the two is first alternates. The watcher keeps an \
                      account of what it costs and stays within a share of 1.5 % by it; what the account said at the \
                      end is among the counters.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::choices("programs", &["ep", "is", "cg", "mg", "pairs", "nobody"])
                .quick("mg,nobody")
                .about("what is watched: a kernel, or threads that share pages in a pattern")
                .source("Partial Coscheduling, Table 1; the patterns chosen as what never changes")
                .axis(),
            Input::durations("settling", &[0, 5_000_000_000])
                .lasting(0, 3_600_000_000_000)
                .about(
                    "how long it is watched before it is measured, while nothing changes in what it shares",
                )
                .source("chosen: none, and somewhat longer than it takes until rests are longest")
                .axis(),
            Input::duration("epoch", 2_000_000_000)
                .lasting(200_000_000, 60_000_000_000)
                .about("how long it is watched and not watched in turn, where nothing is to settle")
                .source("chosen: two scans at the kernel's default rate"),
            Input::duration("look", 200_000_000)
                .lasting(100_000_000, 60_000_000_000)
                .about("how long a look lasts, where it is to settle; the longest rest is eight of them")
                .source("chosen: short beside the watcher's default of 5 s, so that a point takes a minute and not half an hour"),
            Input::integer("nice", -20)
                .between(-20, 19)
                .about("the niceness of what is watched")
                .source("chosen: so that other load on the machine decides as little as possible"),
            Input::integer("pairs", 4)
                .quick("2")
                .between(1, 100)
                .about("pairs of epochs in each repetition")
                .source("chosen: both orders; the repetitions give the interval"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let mut points = Vec::new();
        for program in inputs.texts("programs") {
            let may_settle = CONSTANT.contains(&program);
            for ns in inputs
                .durations_ns("settling")
                .into_iter()
                .filter(|&ns| ns == 0 || may_settle)
            {
                points.push(
                    Point::new()
                        .at("program", program)
                        .at("settling", Value::Duration { ns }),
                );
            }
        }
        if points.is_empty() {
            return Err(format!(
                "kernels begin new threads for each of their runs, so with them nothing settles; expected \
                 settling=0ns, or programs={}",
                CONSTANT.join(",")
            ));
        }
        Ok(points)
    }

    fn findings(&self, _: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let bounds = [
            ("from its start on", false, "0.97"),
            ("when nothing changes", true, "0.99"),
        ];
        let finding = |(when, settled, least): (&str, bool, &str)| {
            let (ratio, row) = rows
                .iter()
                .filter(|row| (row.point.value("settling").duration_ns() > 0) == settled)
                .filter_map(|row| Some((row.quantity(Quantity::Ratio)?, row)))
                .min_by_key(|(ratio, _)| *ratio)?;
            let cost = |ratio: Number| (Number::from(100) * (Number::ONE - ratio)).to_decimal(2);
            let interval = row.spread.and_then(|spread| spread.ratio).map_or_else(
                || "measured once".to_owned(),
                |ratio| format!("{} to {} %", cost(ratio.high), cost(ratio.low)),
            );
            Some(Finding {
                value: None,
                about: format!("the cost of being watched {when}, of the dearest program"),
                stated: "a low overhead".to_owned(),
                source: format!("{PAPER}, section 2.2"),
                ours: format!("{} % ({}; {interval})", cost(ratio), row.point.value("program")),
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
        let result = paired(inputs, point, &mut journal, context);
        journal.close().map_err(unavailable)?;
        result
    }
}

/// Programs whose threads never change.
const CONSTANT: [&str; 2] = ["pairs", "nobody"];

fn paired(
    inputs: &Inputs,
    point: &Point,
    journal: &mut Journal,
    context: &Context<'_>,
) -> Result<Measurement, PointError> {
    let unavailable = |error: sidestep_gang_linux::HostError| PointError::Unavailable(with_causes(&error));
    // Where the kernel groups threads by session, niceness counts within a session only.
    let autogroup = Path::new(AUTOGROUP);
    let _ungrouped = match setting::read(autogroup).as_deref() {
        Ok("1") => Changed::to(journal, autogroup, "0").map_err(unavailable)?,
        _ => None,
    };
    let (own, nice) = (own_command()?, inputs.integer("nice").to_string());
    let arguments = [
        "gang",
        "workload",
        point.value("program").text(),
        "--class",
        "w",
        "--threads",
        "2",
        "--seconds",
        "86400",
    ];
    let progress = ProgressFile::new().map_err(unavailable)?;
    let mut child = std::process::Command::new("nice")
        .args(["-n", &nice])
        .arg(own)
        .args(arguments)
        .env(PROGRESS_VARIABLE, progress.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .map_err(|error| PointError::Failed(format!("cannot start the kernel: {error}")))?;
    let program = Program {
        process: child.id() as i32,
        progress: &progress,
    };
    let measured = (|| {
        journal
            .note(&Change::Started {
                process: program.process,
            })
            .map_err(unavailable)?;
        let settling = Duration::from_nanos(point.value("settling").duration_ns());
        let look = Duration::from_nanos(inputs.duration_ns("look"));
        let mut start = |look| {
            let settings = WatchSettings {
                look,
                ..WatchSettings::default()
            };
            Watcher::start(journal, &[program.process], settings).map_err(unavailable)
        };
        let [mut first, mut second] = Rounds::of_both_sides(context);
        let (epoch, mut settled) = if settling.is_zero() {
            (Duration::from_nanos(inputs.duration_ns("epoch")), None)
        } else {
            let mut watcher = start(look)?;
            second.note("settling", || {
                program.epoch(settling, Some(&mut watcher), context)
            })?;
            (look * LOOKS_A_CYCLE, Some(watcher))
        };
        let mut pairs = Vec::new();
        let mut account = Account::default();
        for pair in 0..inputs.count("pairs") {
            let mut one = |is_watched: bool| match (is_watched, &mut settled) {
                (true, Some(watcher)) => {
                    second.note("watched", || program.epoch(epoch, Some(watcher), context))
                }
                (true, None) => {
                    let mut watcher = start(Duration::ZERO)?;
                    let step =
                        second.note("watched", || program.epoch(epoch, Some(&mut watcher), context))?;
                    account.add(&watcher);
                    Ok(step)
                }
                (false, settled) => {
                    if let Some(watcher) = settled {
                        watcher.set_aside(true).map_err(unavailable)?;
                    }
                    first.note("not watched", || program.epoch(epoch, None, context))
                }
            };
            // Which is first alternates, so that a host that becomes slower or faster favours neither.
            pairs.push(if pair % 2 == 0 {
                let watched = one(true)?;
                (one(false)?, watched)
            } else {
                (one(false)?, one(true)?)
            });
        }
        if let Some(watcher) = &settled {
            account.add(watcher);
        }
        sides(&pairs, &account)
            .map(|[plain, watched]| Measurement::new(first.explain(plain), second.explain(watched)))
    })();
    let _ = child.kill();
    let _ = child.wait();
    measured
}

/// One look and the longest rest.
const LOOKS_A_CYCLE: u32 = 9;

/// A measured number to a millionth: exact ratios of long counts outgrow 128 bits when they are averaged.
fn rounded(number: Number) -> Number {
    Number::decimal(&number.to_decimal(6))
}

/// What watchers said of themselves.
#[derive(Default)]
struct Account {
    faults: u64,
    /// In thousandths of the programs' time, of each watcher.
    costs_permille: Vec<Number>,
}

impl Account {
    fn add(&mut self, watcher: &Watcher) {
        let snapshot = watcher.snapshot();
        self.faults += snapshot.faults;
        self.costs_permille
            .push(Number::decimal(&format!("{:.3}", snapshot.cost_permille)));
    }
}

/// What a step took in an epoch, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// On a core.
    ran: Number,
    /// Of that in the kernel, as sampled at the clock's ticks.
    in_kernel: Number,
    elapsed: Number,
    /// What the watcher ran meanwhile, for each step of the program.
    watcher: Number,
}

/// The median of what pairs of epochs, not watched and watched, say.
fn median_of(pairs: &[(Step, Step)], number: impl Fn(&(Step, Step)) -> Option<Number>) -> Option<Number> {
    let numbers: Option<Vec<Number>> = pairs.iter().map(number).collect();
    Some(rounded(median(&numbers?)?.value))
}

/// Both sides of pairs of epochs: nanoseconds on a core for a step not watched and watched.
fn sides(pairs: &[(Step, Step)], account: &Account) -> Result<[Side; 2], PointError> {
    let none = || PointError::Failed("the program finished no step; is the host too busy?".to_owned());
    let percent = |part: Number| Number::from(100) * part;
    let cost = |of: fn(&Step) -> Number| {
        let ratio = median_of(pairs, |(plain, watched)| of(plain).over(of(watched)).map(rounded))?;
        Some(percent(Number::ONE - ratio))
    };
    let in_kernel = |of: fn(&(Step, Step)) -> Step| {
        median_of(pairs, |pair| {
            of(pair).in_kernel.over(of(pair).ran).map(percent).map(rounded)
        })
    };
    let plain = median_of(pairs, |(plain, _)| Some(plain.ran)).ok_or_else(none)?;
    let on_core = cost(|step| step.ran).ok_or_else(none)?;
    let ratio = Number::ONE - on_core * Number::ratio(1, 100);
    let watched = rounded(plain.over(ratio).ok_or_else(none)?);
    let watcher = median_of(pairs, |(_, watched)| {
        watched.watcher.over(watched.ran).map(percent).map(rounded)
    });
    let counters = [
        ("cost", Some(on_core)),
        ("cost in elapsed time", cost(|step| step.elapsed)),
        ("in the kernel", in_kernel(|pair| pair.1)),
        ("the watcher itself", watcher),
        (
            "cost by the watcher's account",
            median(&account.costs_permille).map(|own| own.value * Number::ratio(1, 10)),
        ),
    ];
    let mut side = Side::new(watched);
    for (name, value) in counters {
        side = side.counter(name, value.ok_or_else(none)?, "%");
    }
    let plain = Side::new(plain).counter("in the kernel", in_kernel(|pair| pair.0).ok_or_else(none)?, "%");
    Ok([plain, side.count("faults", account.faults)])
}

/// The program that is watched.
struct Program<'a> {
    process: i32,
    /// Where it counts its steps.
    progress: &'a ProgressFile,
}

/// What is read at both ends of an epoch.
struct Count {
    steps: u64,
    ran_ns: u64,
    in_kernel_ns: u64,
    watcher_ns: u64,
    at: Instant,
}

impl Program<'_> {
    fn count(&self) -> Result<Count, PointError> {
        let gone = || PointError::Failed("the program that is watched has ended".to_owned());
        Ok(Count {
            steps: self.progress.steps(),
            ran_ns: process::ran_ns(self.process).ok_or_else(gone)?,
            in_kernel_ns: process::in_kernel_ns(self.process).ok_or_else(gone)?,
            watcher_ns: process::ran_ns(0).expect("this process runs"),
            at: Instant::now(),
        })
    }

    /// Lets it run, watched or not.
    fn epoch(
        &self,
        length: Duration,
        mut watcher: Option<&mut Watcher>,
        context: &Context<'_>,
    ) -> Result<Step, PointError> {
        let before = self.count()?;
        while before.at.elapsed() < length {
            std::thread::sleep(Duration::from_millis(50));
            if let Some(watcher) = &mut watcher {
                watcher.poll();
            }
            if context.cancelled() {
                return Err(PointError::Cancelled);
            }
        }
        let now = self.count()?;
        let steps = Number::from(now.steps - before.steps);
        let a_step =
            |now: u64, before: u64| Number::from(now.saturating_sub(before)).over(steps).map(rounded);
        let elapsed_ns = u64::try_from((now.at - before.at).as_nanos()).unwrap_or(u64::MAX);
        let step = || {
            Some(Step {
                ran: a_step(now.ran_ns, before.ran_ns)?,
                in_kernel: a_step(now.in_kernel_ns, before.in_kernel_ns)?,
                elapsed: a_step(elapsed_ns, 0)?,
                watcher: a_step(now.watcher_ns, before.watcher_ns)?,
            })
        };
        step().ok_or_else(|| {
            PointError::Failed("the program finished no step; is the host too busy?".to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_the_median_of_the_pairs() {
        let step = |ran: u64, in_kernel: u64| Step {
            ran: Number::from(ran),
            in_kernel: Number::from(in_kernel),
            elapsed: Number::from(2 * ran),
            watcher: Number::from(1u64),
        };
        let pairs: Vec<(Step, Step)> = [100, 102, 125]
            .into_iter()
            .map(|watched| (step(100, 3), step(watched, 5)))
            .collect();
        let account = Account {
            faults: 7,
            costs_permille: vec![Number::from(12u64)],
        };
        let Ok([plain, watched]) = sides(&pairs, &account) else {
            panic!("pairs have a median")
        };
        assert_eq!(plain.value, Some(Number::from(100u64)));
        let of = |side: &Side, name| side.find(name).map(|counter| counter.value.to_decimal(1));
        assert_eq!(of(&watched, "cost").as_deref(), Some("2"));
        assert_eq!(of(&watched, "cost in elapsed time").as_deref(), Some("2"));
        assert_eq!(
            of(&watched, "cost by the watcher's account").as_deref(),
            Some("1.2")
        );
        assert_eq!(of(&plain, "in the kernel").as_deref(), Some("3"));
        assert_eq!(of(&watched, "in the kernel").as_deref(), Some("4.9"));
        assert!(sides(&[], &account).is_err());
    }
}
