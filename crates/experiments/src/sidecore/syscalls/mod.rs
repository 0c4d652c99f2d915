//! System calls of a process: made by itself, and handed to somebody else in one of the ways that there are.

mod io_uring;
mod ptrace;
mod seccomp;
mod served;
mod supervised;
mod work;

use std::time::Duration;

use sidestep_hypervisor::calibration::allowed_cores;
use sidestep_lab::{
    About, Axis, Context, Experiment, Figure, Input, Inputs, Measure, Measurement, Metric, Nature, Number,
    Point, PointError, Side,
};
use sidestep_sidecall::sidecore::pin;

use self::work::{BATCH, Operation, SAMPLES, Work};
use crate::failed;
use crate::zerowait::processor_ns;

/// Latency of system calls by each way.
pub struct Syscalls;

/// What each way is measured by: so many samples of so many calls, nanoseconds a call.
type Samples = Vec<u64>;

/// The cores of who calls and of who serves.
#[derive(Clone, Copy)]
struct Cores {
    own: usize,
    other: usize,
}

/// A round of calls.
type Round = fn(&Work, Operation, Cores) -> Result<Samples, PointError>;

/// The ways, and what makes a round by each.
const NAMES: [&str; 7] = [
    "sidecall",
    "broker",
    "eventfd",
    "io-uring",
    "io-uring-polled",
    "seccomp",
    "ptrace",
];
const ROUNDS: [Round; NAMES.len()] = [
    served::by_sidecall,
    served::by_broker,
    served::by_eventfd,
    io_uring::by_calls,
    io_uring::by_polling,
    seccomp::by_notification,
    ptrace::by_stops,
];

impl Experiment for Syscalls {
    fn about(&self) -> About {
        About {
            name: "sidecore.syscalls",
            question: "What does a system call cost that somebody else makes, by sidecall and by what Linux has for it?",
            source: "none: Kumar et al., The Sidecore Approach, has virtual machines; the idea applied to processes",
            setting: "A thread on one core makes system calls; whoever serves them is on another. `sidecall` hands them \
                      to a thread of the process, `broker` to one that trusts nobody and has the files; `eventfd` \
                      wakes a thread that sleeps; `io-uring` is one request a call, `io-uring-polled` with the \
                      kernel's polling thread (SQPOLL); `seccomp` (user notification) and `ptrace` intercept calls \
                      as sandboxes do, which copy paths and bytes and put results. Files are in the page cache, \
                      512 bytes are read and written; `open` closes, too; `lookup` finds a key in a file's table, \
                      by system call in the file, by sidecall in the table that the sidecore has in memory.",
            baseline: "the process makes the system call itself",
            sidestep: "somebody else makes it, in the way of the point",
            metric: Metric::lower("time a call", "ns"),
            nature: Nature::Measured,
            takes: (Duration::from_secs(15), Duration::from_secs(60)),
            reading: "A system call that a process may make is cheapest made by itself, unless what serves it has more \
                      at hand than the kernel (`lookup`). Where a process may not make it, as in a sandbox, `broker`, \
                      `seccomp` and `ptrace` do the same. `core time a call` is that of all threads, the polling ones \
                      included.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::choices("operation", Operation::NAMES)
                .quick("getpid,read")
                .about("what is asked for")
                .source("chosen: what the privileged work of processes is made of")
                .axis(),
            Input::choices("way", &NAMES)
                .about("who makes the system call")
                .source("chosen: what Linux offers")
                .axis(),
            Input::integer("rounds", 10)
                .between(1, 1000)
                .quick("3")
                .about("how often each side makes 512 calls, in turns")
                .source("chosen: enough for a narrow interval"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Ok(inputs.sweep(&["operation", "way"]))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let operation = Operation::of(point.value("operation").text());
        let way = point.value("way").text();
        let round = NAMES.iter().zip(ROUNDS).find(|(name, _)| **name == way);
        let (_, round) = round.ok_or_else(|| failed(format!("no way `{way}`")))?;
        let cores = allowed_cores().map_err(unavailable)?;
        let &[own, other, ..] = cores.as_slice() else {
            let reason = "who serves needs a second core, and this process may use one";
            return Err(PointError::Unavailable(reason.to_owned()));
        };
        let cores = Cores { own, other };
        let work = Work::new().map_err(unavailable)?;
        let mut sides = [Calls::default(), Calls::default()];
        for index in 0..=inputs.count("rounds") {
            // The first warms up; the side that begins alternates.
            let order = if index % 2 == 0 { [0, 1] } else { [1, 0] };
            for side in order {
                if context.cancelled() {
                    return Err(PointError::Cancelled);
                }
                let before = processor_ns() + children_ns();
                // A thread of its own is pinned, so that the caller may run where it could before.
                let samples = std::thread::scope(|scope| {
                    let calls = scope.spawn(|| {
                        pin(cores.own).map_err(unavailable)?;
                        match side {
                            0 => directly(&work, operation),
                            _ => round(&work, operation, cores),
                        }
                    });
                    let samples = calls.join();
                    samples.unwrap_or_else(|_| Err(PointError::Panicked("the calling thread".to_owned())))
                })?;
                if index > 0 {
                    sides[side].samples.extend(samples);
                    sides[side].processor_ns += processor_ns() + children_ns() - before;
                }
            }
        }
        let [direct, served] = sides.map(Calls::side);
        Ok(Measurement::new(direct, served))
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::bars(
            "Latency of system calls that somebody else makes",
            Axis::new("way", "way", ""),
            Measure::Value,
            "time a call",
            "ns",
        )]
    }
}

fn unavailable(error: impl std::fmt::Display) -> PointError {
    PointError::Unavailable(error.to_string())
}

/// Nanoseconds of processes that have ended and were waited for.
fn children_ns() -> u64 {
    // SAFETY: the structure consists of numbers, and the kernel fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

fn directly(work: &Work, operation: Operation) -> Result<Samples, PointError> {
    work::timed(|| work.directly(operation)).map_err(failed)
}

/// The calls of one side.
#[derive(Default)]
struct Calls {
    samples: Samples,
    processor_ns: u64,
}

impl Calls {
    fn side(mut self) -> Side {
        self.samples.sort_unstable();
        let count = self.samples.len();
        let Some(median) = self.samples.get(count / 2) else {
            return Side::absent();
        };
        // Ranks between which the median is with 95 % confidence, whatever the distribution.
        let reach = ((count * 9604 / 10_000).isqrt() + 1).min(count / 2);
        let calls = (count * BATCH) as u64;
        let rank = |rank: usize| Number::ratio(self.samples[rank], 1);
        Side::new(Number::ratio(*median, 1))
            .counter("interval from", rank(count / 2 - reach), "ns")
            .counter("interval to", rank((count / 2 + reach).min(count - 1)), "ns")
            .counter("core time a call", Number::ratio(self.processor_ns, calls), "ns")
    }
}

const _: () = assert!(SAMPLES * BATCH == 512, "as the inputs and the text say");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_opens_and_reads_or_says_that_it_cannot() {
        let cores = allowed_cores().expect("the cores of this process");
        let &[own, other, ..] = cores.as_slice() else {
            tests_need::host(false, "who serves needs a second core");
            return;
        };
        let cores = Cores { own, other };
        let work = Work::new().expect("files");
        for (name, round) in NAMES.iter().zip(ROUNDS) {
            for operation in ["open", "read"] {
                // The thread is pinned by some of them.
                let made = std::thread::scope(|scope| {
                    let calls = scope.spawn(|| round(&work, Operation::of(operation), cores));
                    calls.join().expect("no panic")
                });
                match made {
                    Ok(samples) => assert_eq!(samples.len(), SAMPLES, "{name}, {operation}"),
                    Err(PointError::Unavailable(_)) => {}
                    Err(error) => panic!("{name}, {operation}: {error}"),
                }
            }
        }
    }
}
