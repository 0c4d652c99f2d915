//! What transitions cost on the machine that this program runs on, measured, as a table for modelled hosts.
//!
//! ```text
//!   sample     repetition, the median and its interval
//!   core       what one core does alone: system call, page fault, instructions, cache lines
//!   pair       what passes between two cores: a cache line, a wake-up, a signal, a packet, a purge
//!   kvm        leaving a guest, to the kernel and to the program
//!   table      from measurements to a table of costs, each entry with its source
//! ```
//!
//! Every measurement runs on its own: one that this machine cannot do says why and leaves the others alone. Wall-clock
//! time is what is asked for here, and nowhere else in this crate: no result repeats to the byte.
//!
//! Limits: Linux on x86-64. A core's cycle is a tick of its time-stamp counter, which on current processors runs at a
//! constant rate, not at the core's momentary one.

mod core;
mod kvm;
mod pair;
mod sample;
mod table;

use serde::Serialize;
use thiserror::Error;

pub use self::sample::Interval;
pub use self::table::TableError;

/// How much is measured, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Samples of each measurement, of which the median is taken.
    pub samples: usize,
    /// The two cores, by the operating system's numbers.
    pub cores: (usize, usize),
}

/// Fewest samples for which an interval of the median means something.
pub const SAMPLES_MIN: usize = 6;
/// The most samples.
pub const SAMPLES_MAX: usize = 10_000;

/// Why a machine cannot be calibrated at all.
#[derive(Debug, Error)]
pub enum CalibrationError {
    /// A core that this process may not use.
    #[error("core {core} is not among the cores that this process may run on: {allowed}")]
    Core {
        /// The core.
        core: usize,
        /// The cores that it may use.
        allowed: String,
    },
    /// The operating system does not say which cores may be used.
    #[error("the cores that this process may run on cannot be found out")]
    Affinity(#[source] std::io::Error),
    /// Too few or too many samples.
    #[error("{0} samples: {SAMPLES_MIN} to {SAMPLES_MAX} are possible")]
    Samples(usize),
}

/// Why one measurement cannot be done.
#[derive(Debug, Error)]
pub enum Unavailable {
    /// Two cores are needed.
    #[error("two cores are needed, and one was given")]
    OneCore,
    /// The operating system refuses something.
    #[error("{what}: {error}")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        error: std::io::Error,
    },
    /// A virtual machine cannot be made, or stopped for another reason than it should have.
    #[error("{0}")]
    Guest(String),
}

/// Names what was tried when the operating system refuses it.
fn refused<E: Into<std::io::Error>>(what: &'static str) -> impl FnOnce(E) -> Unavailable {
    move |error| Unavailable::Refused {
        what,
        error: error.into(),
    }
}

macro_rules! quantities {
    ($($(#[$doc:meta])* $name:ident = $key:literal, $text:literal, $measure:path;)+) => {
        /// What is measured.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Quantity {
            $($(#[$doc])* $name,)+
        }

        impl Quantity {
            /// Every quantity, in the order in which it is measured.
            pub const ALL: &'static [Quantity] = &[$(Quantity::$name,)+];

            /// Its key in reports.
            pub fn key(self) -> &'static str {
                match self { $(Quantity::$name => $key,)+ }
            }

            /// What it is.
            pub fn description(self) -> &'static str {
                match self { $(Quantity::$name => $text,)+ }
            }

            fn measure(self, options: &Options) -> Result<Interval, Unavailable> {
                match self { $(Quantity::$name => $measure(options),)+ }
            }
        }
    };
}

quantities! {
    /// The time-stamp counter.
    Tick = "tick", "one tick of the time-stamp counter", core::tick;
    /// A cached line.
    CachedLine = "cached-line", "a load that hits the second-level cache", core::cached_line;
    /// A look at memory that does not change.
    Poll = "poll", "a look at a slot where nothing is asked", core::poll;
    /// An indirect branch.
    Branch = "branch", "an indirect call that is not predicted", core::branch;
    /// Reading and changing state in memory.
    Update = "update", "a register in memory, read and changed", core::update;
    /// A system call that does nothing.
    SystemCall = "system-call", "a system call that does nothing", core::system_call;
    /// A signal that a thread sends to itself.
    Signal = "signal", "a signal to the own thread, its handler and the return", core::signal;
    /// The first reference to a page.
    PageFault = "page-fault", "the first store to a page of anonymous memory", core::page_fault;
    /// Two threads in turn on one core.
    ContextSwitch = "context-switch", "from one thread to another on one core, through a pipe", core::context_switch;
    /// A page's protection, changed on one core.
    Purge = "purge", "changing a page's protection, purging the own core's TLB", core::purge;
    /// A small write that reaches the disk.
    Disk = "disk", "a write of 4 kB to a temporary file that has reached its disk", core::disk;
    /// One way of a modified cache line.
    Transfer = "transfer", "a modified cache line from one core to the other", pair::transfer;
    /// One way of a futex.
    Wake = "wake", "waking a thread that sleeps on the other core, with a futex", pair::wake;
    /// One way of a signal.
    RemoteSignal = "remote-signal", "a signal to a thread that executes on the other core", pair::remote_signal;
    /// One way of a datagram.
    Packet = "packet", "a datagram to a thread on the other core, through the loopback interface", pair::packet;
    /// A page's protection, changed on two cores.
    RemotePurge = "remote-purge", "changing a page's protection while both cores use the page", pair::remote_purge;
    /// Leaving a guest for the kernel.
    GuestToKernel = "guest-to-kernel", "an exit that the kernel handles (a hypercall), and the entry", kvm::to_kernel;
    /// Leaving a guest for the program.
    GuestToProgram = "guest-to-program", "an exit that the program handles (a port), and the entry", kvm::to_program;
    /// A guest that halts.
    GuestHalt = "guest-halt", "an exit because the guest halts, and the entry", kvm::halt;
    /// A privileged instruction that hardware virtualises.
    GuestPrivileged = "guest-privileged", "reading CR2 in a guest, no exit where hardware virtualises it", kvm::privileged;
}

/// What became of one measurement.
#[derive(Debug)]
pub struct Measurement {
    /// What was measured.
    pub quantity: Quantity,
    /// Picoseconds an operation, or why there are none.
    pub result: Result<Interval, Unavailable>,
}

impl Serialize for Measurement {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            key: &'a str,
            description: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            picoseconds: Option<Interval>,
            #[serde(skip_serializing_if = "Option::is_none")]
            unavailable: Option<String>,
        }
        Row {
            key: self.quantity.key(),
            description: self.quantity.description(),
            picoseconds: self.result.as_ref().ok().copied(),
            unavailable: self.result.as_ref().err().map(Unavailable::to_string),
        }
        .serialize(serializer)
    }
}

/// What was measured on this machine.
#[derive(Debug, Serialize)]
pub struct Calibration {
    /// The processor's name, as it says itself.
    pub processor: String,
    /// The two cores.
    pub cores: (usize, usize),
    /// Samples of each measurement.
    pub samples: usize,
    /// Every quantity in order.
    pub measurements: Vec<Measurement>,
}

impl Calibration {
    /// Measures everything; `progress` is told what comes next. Where this thread runs is as before at the end.
    ///
    /// # Errors
    /// Cores that cannot be used, or numbers out of range.
    pub fn measure(
        options: &Options,
        mut progress: impl FnMut(Quantity),
    ) -> Result<Calibration, CalibrationError> {
        if !(SAMPLES_MIN..=SAMPLES_MAX).contains(&options.samples) {
            return Err(CalibrationError::Samples(options.samples));
        }
        let allowed = allowed_cores()?;
        for core in [options.cores.0, options.cores.1] {
            if !allowed.contains(&core) {
                let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                let allowed = allowed.join(", ");
                return Err(CalibrationError::Core { core, allowed });
            }
        }
        let before = rustix::thread::sched_getaffinity(None).map_err(affinity)?;
        let measurements = Quantity::ALL.iter().map(|quantity| {
            progress(*quantity);
            Measurement {
                quantity: *quantity,
                result: stay_on(options.cores.0).and_then(|()| quantity.measure(options)),
            }
        });
        let measurements = measurements.collect();
        rustix::thread::sched_setaffinity(None, &before).map_err(affinity)?;
        Ok(Calibration {
            processor: processor(),
            cores: options.cores,
            samples: options.samples,
            measurements,
        })
    }

    /// What a quantity came to.
    pub fn get(&self, quantity: Quantity) -> Option<Interval> {
        let found = self
            .measurements
            .iter()
            .find(|found| found.quantity == quantity)?;
        found.result.as_ref().ok().copied()
    }
}

fn affinity(error: rustix::io::Errno) -> CalibrationError {
    CalibrationError::Affinity(error.into())
}

/// The cores that this process may run on.
///
/// # Errors
/// If the operating system does not say.
pub fn allowed_cores() -> Result<Vec<usize>, CalibrationError> {
    let allowed = rustix::thread::sched_getaffinity(None).map_err(affinity)?;
    let count = rustix::thread::CpuSet::MAX_CPU;
    Ok((0..count).filter(|core| allowed.is_set(*core)).collect())
}

/// Keeps this thread on one core.
fn stay_on(core: usize) -> Result<(), Unavailable> {
    let mut only = rustix::thread::CpuSet::new();
    only.set(core);
    rustix::thread::sched_setaffinity(None, &only).map_err(refused("staying on a core"))
}

/// The name of the processor.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split(':').nth(1)).map(str::trim);
    name.unwrap_or("unknown processor").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_can_do_is_measured_and_the_rest_says_why() {
        let cores = allowed_cores().expect("cores");
        let options = Options {
            samples: SAMPLES_MIN,
            cores: (cores[0], *cores.last().expect("a core")),
        };
        let mut told = Vec::new();
        let calibration =
            Calibration::measure(&options, |quantity| told.push(quantity)).expect("a measurement");
        assert_eq!(told, Quantity::ALL);
        for quantity in [
            Quantity::Tick,
            Quantity::SystemCall,
            Quantity::PageFault,
            Quantity::Signal,
        ] {
            let interval = calibration.get(quantity).expect("every machine can do it");
            assert!(interval.low <= interval.median && interval.median <= interval.high);
            assert!(interval.median > 0, "{quantity:?}");
        }
        assert_eq!(
            allowed_cores().expect("cores"),
            cores,
            "the thread may run where it could before"
        );
    }

    #[test]
    fn a_core_that_cannot_be_used_and_too_few_samples_are_refused() {
        let core = allowed_cores().expect("cores")[0];
        let options = Options {
            samples: 10,
            cores: (core, 1023),
        };
        let error = Calibration::measure(&options, |_| ())
            .expect_err("no such core")
            .to_string();
        assert!(error.starts_with("core 1023 is not among the cores"), "{error}");
        let options = Options {
            samples: 1,
            cores: (core, core),
        };
        let error = Calibration::measure(&options, |_| ())
            .expect_err("too few")
            .to_string();
        assert_eq!(error, "1 samples: 6 to 10000 are possible");
    }
}
