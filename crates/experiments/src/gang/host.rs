//! The paper's scenarios scaled down to two cores of this machine, with unmodified processes as virtual machines.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sidestep_gang::Selection;
use sidestep_gang_linux::control::{Kind, Report, RunSettings, SetSource, Target, run};
use sidestep_gang_linux::journal;
use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Quantity, Row, Side, Stated, Timeline, Verdict,
};
use sidestep_runner::causes::with_causes;

use super::PAPER;
use super::scenario::factor_of_the_paper;

/// Coscheduling on this host.
pub struct Host;

const PROGRAMS: &[&str] = &[
    "bt", "cg", "ep", "ft", "is", "lu", "mg", "sp", "ua", "xz", "pigz", "zstd",
];

/// Kernels that this command has itself.
const OWN: &[&str] = &["cg", "ep", "is", "mg"];

/// Threaded programs from Debian packages: name, package, and how they compress to the standard output with as many
/// threads as follow the last word.
const COMPRESSORS: &[(&str, &str, &str)] = &[
    ("xz", "xz-utils", "xz -5 --block-size=1MiB -c -T"),
    ("pigz", "pigz", "pigz -9 -c -p"),
    ("zstd", "zstd", "zstd -q -12 -c -T"),
];
const LOADS: &[&str] = &["single", "double", "quad", "parallel"];
const POLICIES: &[&str] = &["given", "automatic", "automatic-no-factor", "none"];

impl Experiment for Host {
    fn about(&self) -> About {
        About {
            name: "gang.host",
            question: "What does partial coscheduling gain on this machine, for real programs on a stock kernel?",
            source: "Busse et al., Partial Coscheduling (2015), Figures 6 and 7, scaled down to this host",
            setting: "Two processes stand for the virtual machines, VM1 with two threads, VM2 with one. VM1 runs two \
                      independent one-thread jobs (double) or four (quad), one two-thread job (parallel), or one \
                      one-thread job beside an idle thread (single). Programs are kernels after the NAS Parallel \
                      Benchmarks (class S, results verified, barriers that spin and then yield): EP, IS, CG and MG of \
                      this command, or all nine where `benchmarks` names them; and xz, pigz and zstd. \
                      Policy and baseline take turns in epochs of one run.",
            baseline: "full coscheduling: all threads of a process at once, cores it does not use stay empty",
            sidestep: "the policy of the point, in the epochs between",
            metric: Metric {
                name: "time of a step of both machines",
                unit: "ns",
                better: Better::Lower,
            },
            nature: Nature::Measured,
            takes: (Duration::from_secs(80), Duration::from_secs(7200)),
            reading: "In quad, of three slots VM1 takes two and VM2 half a one, so a fifth is there to gain. Only pairs of \
                      neighbouring epochs are compared, so a disturbance that lasts longer than an epoch hits both \
                      sides. `gain low` and `gain high` bound the mean gain with 95 % confidence. Programs \
                      other than our kernels count no steps; for them time on a core stands for progress, in \
                      nanoseconds for one second. Other load on the machine lowers every gain.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::choices("programs", PROGRAMS)
                .quick("ep,cg")
                .about("what both machines run")
                .source("Partial Coscheduling, Table 1; threaded programs from Debian packages")
                .axis(),
            Input::file("benchmarks")
                .about("the program that `guests/npb/build` has made, which then runs instead of this command's kernels")
                .source("Partial Coscheduling, Table 1"),
            Input::choices("loads", LOADS)
                .quick("double")
                .about("what VM1 runs")
                .source("Partial Coscheduling 4, Figure 5, a quarter of the size; quad in parts of the host's size")
                .axis(),
            Input::choices("policies", POLICIES)
                .quick("given")
                .about("what is held against full coscheduling")
                .source("Partial Coscheduling 4")
                .axis(),
            Input::duration("epoch", 2_000_000_000)
                .lasting(200_000_000, 60_000_000_000)
                .about("how long policy and baseline rule in turn")
                .source("chosen: forty slots"),
            Input::integer("pairs", 4)
                .between(2, 1000)
                .quick("3")
                .about("pairs of epochs")
                .source("chosen: enough for an interval"),
            Input::integer("nice", -20)
                .between(-20, 19)
                .about("the niceness of both programs")
                .source("chosen: so that other load on the machine decides as little as possible"),
            Input::duration("slot", 50_000_000)
                .lasting(1_000_000, 1_000_000_000)
                .about("the length of a slot")
                .source("chosen: a hundred times what changing slots takes"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let mut points = Vec::new();
        for program in inputs.texts("programs") {
            for load in inputs.texts("loads") {
                for policy in inputs.texts("policies") {
                    points.push(
                        Point::new()
                            .at("program", program)
                            .at("load", load)
                            .at("policy", policy),
                    );
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
        let (program, load) = (point.value("program").text(), point.value("load").text());
        let targets = targets(program, inputs.text("benchmarks"), load, inputs.integer("nice"))?;
        let epoch = Duration::from_nanos(inputs.duration_ns("epoch"));
        let pairs = u32::try_from(inputs.count("pairs")).expect("bounds below a thousand");
        let settings = RunSettings {
            kind: kind(point.value("policy").text(), load),
            baseline: Some(Kind::Full),
            epoch,
            slot: Duration::from_nanos(inputs.duration_ns("slot")),
            reevaluation: Duration::from_secs(5),
            // The last epoch ends when the one after it begins.
            limit: Some(epoch * (2 * pairs) + epoch / 10),
            ends_at_limit: true,
            other_users: false,
        };
        let folder = Path::new(journal::FOLDER);
        let (report, _) = run(folder, &targets, &settings, &|| context.cancelled())
            .map_err(|error| PointError::Unavailable(with_causes(&error)))?;
        if context.cancelled() {
            return Err(PointError::Cancelled);
        }
        measurement(&report, context)
    }

    fn stated(&self, _inputs: &Inputs, point: &Point) -> Vec<Stated> {
        let text = |key: &str| point.value(key).text();
        match (text("program"), text("load"), text("policy")) {
            (program, ..) if compressor(program).is_some() => Vec::new(),
            (_, "double", "given") => {
                let source = "Partial Coscheduling 5: 33 % expected";
                vec![Stated::value(Quantity::Ratio, Number::ratio(4, 3), "0.1", source)]
            }
            (_, "single", "given") => {
                vec![Stated::at_most(
                    Quantity::Ratio,
                    Number::decimal("2.05"),
                    "Partial Coscheduling 5: 100 % in theory",
                )]
            }
            _ => Vec::new(),
        }
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let is_double = |row: &&Row| {
            row.point.value("load").text() == "double" && row.point.value("policy").text() == "given"
        };
        let ratios: Vec<Number> = rows
            .iter()
            .filter(is_double)
            .filter_map(|row| row.quantity(Quantity::Ratio))
            .collect();
        let Some(mean) = mean(&ratios) else {
            return Vec::new();
        };
        let holds = (mean - Number::ratio(4, 3)).abs() <= Number::decimal("0.1333");
        vec![Finding {
            value: None,
            about: "double with given sets, mean of the programs".to_owned(),
            stated: "a third over full coscheduling is expected".to_owned(),
            source: format!("{PAPER}, section 5"),
            ours: format!("{} times faster", mean.to_decimal(3)),
            verdict: Verdict::of(holds),
            because: "full coscheduling leaves one of two cores empty in every second slot".to_owned(),
        }]
    }

    fn figures(&self) -> Vec<Figure> {
        let program = Axis::new("program", "program", "");
        vec![
            Figure::bars(
                "Gain over full coscheduling on this host",
                program,
                Measure::Ratio,
                "times faster",
                "",
            )
            .split_by(&["load", "policy"]),
        ]
    }
}

/// The mean of measured ratios, each to a millionth.
fn mean(ratios: &[Number]) -> Option<Number> {
    let sum: Number = ratios.iter().map(|ratio| ratio.rounded(6)).sum();
    sum.over(Number::from(ratios.len()))
}

fn kind(policy: &str, load: &str) -> Kind {
    match policy {
        "given" if load == "parallel" => Kind::Partial(SetSource::Programs),
        "given" => Kind::Partial(SetSource::Singles),
        "automatic" => Kind::Partial(SetSource::Automatic(factor_of_the_paper())),
        "automatic-no-factor" => Kind::Partial(SetSource::Automatic(Selection::Modularity)),
        "none" => Kind::Free,
        other => unreachable!("{other} is not a policy"),
    }
}

/// The commands that stand for the two machines.
fn targets(program: &str, benchmarks: &str, load: &str, nice: i64) -> Result<Vec<Target>, PointError> {
    let (jobs, threads, idle) = match load {
        "single" => (1, 1, 1),
        "double" => (2, 1, 0),
        "quad" => (4, 1, 0),
        _ => (1, 2, 0),
    };
    let command = |jobs: usize, threads: usize, idle: usize| match compressor(program) {
        Some(compressor) => compress(compressor, jobs * threads + idle),
        None if benchmarks.is_empty() => kernels(program, jobs, threads, idle),
        None => instances(program, benchmarks, jobs, threads),
    };
    let niced = |words: Vec<String>| {
        let nice = ["nice".to_owned(), "-n".to_owned(), nice.to_string()];
        Target::Command(nice.into_iter().chain(words).collect())
    };
    Ok(vec![
        niced(command(jobs, threads, idle)?),
        niced(command(1, 1, 0)?),
    ])
}

/// Instances of a benchmark for longer than any point lasts. An idle thread has no place in them, and needs none: the
/// core that it would keep from others full coscheduling keeps in any case.
fn instances(kernel: &str, benchmarks: &str, jobs: usize, threads: usize) -> Result<Vec<String>, PointError> {
    if !Path::new(benchmarks).is_file() {
        return Err(PointError::Unavailable(format!(
            "input `benchmarks`: `{benchmarks}` is no file; expected the program `npb` that guests/npb/build makes"
        )));
    }
    let threads = threads.to_string();
    let words = [kernel, "S", "--threads", &threads, "--rounds", "1000000"].map(str::to_owned);
    let instances = vec![words.to_vec(); jobs].join(&"+".to_owned());
    // They say after each round what they have verified.
    let quiet = ["sh", "-c", "exec \"$0\" \"$@\" > /dev/null", benchmarks].map(str::to_owned);
    Ok(quiet.into_iter().chain(instances).collect())
}

/// A kernel for longer than any point lasts; it is asked to end.
fn kernels(kernel: &str, jobs: usize, threads: usize, idle: usize) -> Result<Vec<String>, PointError> {
    if !OWN.contains(&kernel) {
        return Err(PointError::Unavailable(format!(
            "{kernel} is none of this command's kernels; build them all with guests/npb/build and name the program \
             with --set benchmarks=guests/npb/bin/npb"
        )));
    }
    let own = own_command()?;
    let (jobs, threads, idle) = (jobs.to_string(), threads.to_string(), idle.to_string());
    let words = [
        "gang",
        "workload",
        kernel,
        "--class",
        "s",
        "--jobs",
        &jobs,
        "--threads",
        &threads,
        "--idle",
        &idle,
        "--seconds",
        "86400",
    ];
    let own = own.to_string_lossy().into_owned();
    Ok(std::iter::once(own).chain(words.map(str::to_owned)).collect())
}

fn compressor(program: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    COMPRESSORS.iter().find(|(name, ..)| *name == program)
}

/// A program that compresses this command over and over.
fn compress(
    &(name, package, command): &(&str, &str, &str),
    threads: usize,
) -> Result<Vec<String>, PointError> {
    let is_there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    if !is_there {
        return Err(PointError::Unavailable(format!(
            "{name} is not installed (Debian package {package})"
        )));
    }
    let input = own_command()?;
    let script = format!(
        "trap 'kill $!; exit 0' TERM; while :; do {command}{threads} < '{}' > /dev/null & wait $!; done",
        input.display()
    );
    Ok(["sh", "-c", &script].map(str::to_owned).to_vec())
}

/// The `sidestep` command, which has the kernels.
pub(super) fn own_command() -> Result<PathBuf, PointError> {
    let own = std::env::current_exe()
        .map_err(|error| PointError::Unavailable(format!("cannot find this program's file: {error}")))?;
    if own.file_name().is_none_or(|name| name != "sidestep") {
        let reason = format!(
            "the kernels are in the `sidestep` command, and this is {}",
            own.display()
        );
        return Err(PointError::Unavailable(reason));
    }
    Ok(own)
}

fn measurement(report: &Report, context: &Context) -> Result<Measurement, PointError> {
    let Some(gain) = report.gain else {
        let reason = "fewer than two pairs of epochs had progress of every program".to_owned();
        return Err(PointError::Failed(reason));
    };
    // A step's time of both programs together, or a second of core time where steps are not counted.
    let (mut ours, mut baseline) = (0.0, 0.0);
    for program in &report.programs {
        let step_ns = 1e9
            / program
                .steps_per_second
                .unwrap_or(program.cores_used)
                .max(f64::MIN_POSITIVE);
        ours += step_ns;
        baseline += step_ns * program.speedup.map_or(1.0, |speedup| speedup.mean);
    }
    let thousandths = |value: f64| Number::ratio((value * 1000.0).round() as i64, 1000);
    let side = |value: f64| Side::new(value.round() as i64);
    let sidestep = side(ours)
        .count("gain", thousandths(gain.mean))
        .count("gain low", thousandths(gain.low))
        .count("gain high", thousandths(gain.high))
        .count("pairs of epochs", gain.pairs)
        .count("fairness", thousandths(report.fairness))
        .counter("cores idle", thousandths(report.idle * 100.0), "%")
        .counter("controller", thousandths(report.overhead * 100.0), "% of a core")
        .counter("change of slots", thousandths(report.switch_us), "us");
    let (mut side_of_baseline, mut sidestep) = (side(baseline), sidestep);
    if context.trace {
        side_of_baseline = side_of_baseline.traced(epochs(report, true));
        sidestep = sidestep.traced(epochs(report, false));
    }
    Ok(Measurement::new(side_of_baseline, sidestep))
}

/// When the epochs of one side ran.
fn epochs(report: &Report, of_baseline: bool) -> Timeline {
    let mut timeline = Timeline::default();
    let track = timeline.track(if of_baseline { "baseline" } else { "policy" });
    let mut start_ns = 0;
    for (number, &(is_baseline, seconds)) in report.epochs.iter().enumerate() {
        let duration_ns = (seconds * 1e9) as u64;
        if is_baseline == of_baseline {
            timeline.span(track, format!("epoch {number}"), start_ns, duration_ns);
        }
        start_ns += duration_ns;
    }
    timeline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_many_measured_ratios_is_found() {
        // Times of nine programs, whose ratios have no common denominator within 128 bits.
        let sidestep: [u64; 9] = [
            1_698_475, 3_325_597, 562_227, 26_611_442, 147_280, 630_427, 708_939, 561_801, 6_779_954,
        ];
        let ratios = sidestep.map(|time| Number::ratio(time * 4 / 3 + 1, time));
        let mean = mean(&ratios).expect("some ratios");
        assert_eq!(mean.to_decimal(3), "1.333");
        assert_eq!(super::mean(&[]), None);
    }
}
