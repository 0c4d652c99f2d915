//! Breakpoints, watchpoints and single steps: an observer that keeps its processor from executing.
//!
//! A [`Guard`] compares the instruction pointer before each stretch of code and the address of each memory reference
//! after it. Code that holds no breakpoint executes block by block. References of the register stack engine and of the
//! VHPT walker are not watched. A step is one instruction; an interruption that it raises ends the step at the
//! handler's first instruction.

use std::collections::BTreeSet;
use std::ops::Range;

use sidestep_ia64::encoding::{FloatFormat, Operation};
use sidestep_ia64::execution::{Observer, Permission, Retired};
use sidestep_ia64::{Exit, Fault, Processor};

use crate::machine::driver::{Driven, Driver};

/// Which accesses a watchpoint is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watch {
    /// Loads.
    Read,
    /// Stores.
    Write,
    /// Both.
    Access,
}

/// A watchpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watchpoint {
    /// The first virtual address.
    pub start: u64,
    /// How many bytes.
    pub size: u64,
    /// What for.
    pub watch: Watch,
}

/// Where processors are to halt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// Addresses of instructions: bundle and slot in one number.
    pub breakpoints: BTreeSet<u64>,
    /// Watched memory.
    pub watchpoints: BTreeSet<Watchpoint>,
}

/// Why a processor halted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// A breakpoint is at the instruction pointer.
    Breakpoint,
    /// The instruction before the instruction pointer made a reference to this watched address.
    Watchpoint(Watchpoint, u64),
    /// The step is done.
    Step,
}

/// How a processor goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Until something is hit.
    Continue,
    /// One instruction.
    Step,
    /// Not at all while others do; its time passes.
    Hold,
}

/// Executes one processor under the points of a debugger.
#[derive(Clone, Debug)]
pub struct Guard {
    points: Points,
    mode: Mode,
    /// The breakpoint that the processor was reported to be at: it counts again once the processor has executed.
    reported: Option<u64>,
    has_stepped: bool,
    hit: Option<Hit>,
}

impl Guard {
    /// For one continuation of the processor, from the breakpoint that was `reported` if it halted at one.
    pub fn new(points: Points, mode: Mode, reported: Option<u64>) -> Guard {
        Guard {
            points,
            mode,
            reported,
            has_stepped: false,
            hit: None,
        }
    }

    /// An instruction was executed for the processor, by somebody else.
    pub fn has_interpreted(&mut self) {
        self.has_stepped = true;
    }

    /// Whether the processor is not to execute while others do.
    pub fn holds(&self) -> bool {
        self.mode == Mode::Hold
    }

    /// Why the processor halted.
    pub fn hit(&self) -> Option<Hit> {
        self.hit
    }

    fn watches(&self, retired: &Retired<'_>) -> Option<Hit> {
        if !retired.executed {
            return None;
        }
        let address = retired.reference?;
        let access = Access::of(retired.instruction.operation)?;
        self.points
            .watchpoints
            .iter()
            .find(|point| {
                let wanted = match point.watch {
                    Watch::Read => access.reads,
                    Watch::Write => access.writes,
                    Watch::Access => true,
                };
                let overlaps = address < point.start.saturating_add(point.size)
                    && point.start < address.saturating_add(access.size);
                wanted && overlaps
            })
            .map(|&point| Hit::Watchpoint(point, address.max(point.start)))
    }
}

impl Observer for Guard {
    fn retired(&mut self, _: &Processor, retired: &Retired<'_>) {
        self.has_stepped = true;
        if !self.points.watchpoints.is_empty() {
            self.hit = self.hit.or_else(|| self.watches(retired));
        }
    }

    fn interrupted(&mut self, _: &Processor, _: &Fault) {
        self.has_stepped = true;
    }

    fn permits(&mut self, processor: &Processor, block: Range<u64>) -> Permission {
        let (ip, slot) = processor.instruction_pointer();
        let reported = self.reported.take();
        let here = ip | u64::from(slot);
        if self.hit.is_none() {
            if self.mode == Mode::Step && self.has_stepped {
                self.hit = Some(Hit::Step);
            } else if reported != Some(here) && self.points.breakpoints.contains(&here) {
                self.hit = Some(Hit::Breakpoint);
            }
        }
        if self.hit.is_some() {
            return Permission::Halt;
        }
        let is_free = self.mode == Mode::Continue
            && self.points.watchpoints.is_empty()
            && self.points.breakpoints.range(block).next().is_none();
        if is_free {
            Permission::Block
        } else {
            Permission::Instruction
        }
    }
}

impl Driver for Guard {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Driven {
        if self.mode == Mode::Hold {
            return Driven::Exit(Exit::Limit);
        }
        let exit = processor.run_observed(limit, self);
        match (self.hit, exit) {
            (Some(_), _) => Driven::Halted,
            (None, Exit::Fault(_)) => {
                // A hypercall is a step as well.
                self.has_stepped = true;
                Driven::Exit(exit)
            }
            (None, exit) => Driven::Exit(exit),
        }
    }
}

/// What an instruction does with memory.
struct Access {
    reads: bool,
    writes: bool,
    size: u64,
}

impl Access {
    fn of(operation: Operation) -> Option<Access> {
        use Operation as O;
        let (reads, writes, size) = match operation {
            O::Load { size, .. } => (true, false, size.bytes()),
            O::LoadSixteen { .. } => (true, false, 16),
            O::LoadFloat { format, .. } => (true, false, float_bytes(format)),
            O::LoadFloatPair { format, .. } => (true, false, 2 * float_bytes(format)),
            O::Store { size, .. } => (false, true, size.bytes()),
            O::StoreSixteen { .. } => (false, true, 16),
            O::StoreFloat { format, .. } => (false, true, float_bytes(format)),
            O::CompareExchange { size, .. } | O::Exchange { size } | O::FetchAdd { size, .. } => {
                (true, true, size.bytes())
            }
            O::CompareExchangeSixteen { .. } => (true, true, 16),
            _ => return None,
        };
        Some(Access {
            reads,
            writes,
            size: u64::from(size),
        })
    }
}

fn float_bytes(format: FloatFormat) -> u32 {
    match format {
        FloatFormat::Single => 4,
        FloatFormat::Double | FloatFormat::Significand => 8,
        FloatFormat::Extended => 10,
        FloatFormat::Register => 16,
    }
}
