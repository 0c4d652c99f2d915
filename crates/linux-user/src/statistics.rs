//! `--stats`: what a run came to.

use std::fmt;
use std::ops::{AddAssign, Sub};
use std::path::Path;
use std::time::Duration;

use sidestep_ia64::Processor;

/// Counts of one or more threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Threads counted.
    pub threads: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Registers the register stack engine stored.
    pub spills: u64,
    /// Registers it loaded.
    pub fills: u64,
    /// System calls made.
    pub system_calls: u64,
    /// Signals delivered to handlers.
    pub signals: u64,
}

impl Statistics {
    /// What a processor did.
    pub fn of(processor: &Processor) -> Statistics {
        Statistics {
            threads: 1,
            instructions: processor.instructions_retired(),
            spills: processor.register_stack().spills(),
            fills: processor.register_stack().fills(),
            ..Statistics::default()
        }
    }
}

impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Statistics) {
        self.threads += other.threads;
        self.instructions += other.instructions;
        self.spills += other.spills;
        self.fills += other.fills;
        self.system_calls += other.system_calls;
        self.signals += other.signals;
    }
}

impl Sub for Statistics {
    type Output = Statistics;

    fn sub(self, other: Statistics) -> Statistics {
        Statistics {
            threads: self.threads - other.threads,
            instructions: self.instructions - other.instructions,
            spills: self.spills - other.spills,
            fills: self.fills - other.fills,
            system_calls: self.system_calls - other.system_calls,
            signals: self.signals - other.signals,
        }
    }
}

/// The report printed at the end.
pub struct Report<'a> {
    /// The program.
    pub program: &'a Path,
    /// The sums over all threads.
    pub total: Statistics,
    /// How long the run took.
    pub elapsed: Duration,
    /// Guest pages mapped, and of those touched.
    pub pages: (u64, u64),
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            program,
            total,
            elapsed,
            pages: (mapped, touched),
        } = self;
        let seconds = elapsed.as_secs_f64();
        let rate = if seconds > 0.0 {
            total.instructions as f64 / seconds
        } else {
            0.0
        };
        let process = std::process::id();
        writeln!(
            formatter,
            "process                  {process:>16}  {}",
            program.display()
        )?;
        writeln!(formatter, "instructions retired     {:>16}", total.instructions)?;
        writeln!(formatter, "host seconds             {seconds:>16.3}")?;
        writeln!(formatter, "instructions per second  {rate:>16.0}")?;
        writeln!(formatter, "threads                  {:>16}", total.threads)?;
        writeln!(formatter, "system calls             {:>16}", total.system_calls)?;
        writeln!(formatter, "signals handled          {:>16}", total.signals)?;
        writeln!(formatter, "pages mapped (16 kB)     {mapped:>16}")?;
        writeln!(formatter, "pages touched (16 kB)    {touched:>16}")?;
        writeln!(formatter, "RSE registers spilled    {:>16}", total.spills)?;
        writeln!(formatter, "RSE registers filled     {:>16}", total.fills)
    }
}
