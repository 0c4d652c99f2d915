//! Breakpoints, watchpoints and single steps: an observer that keeps its processor from executing.
//!
//! A [`Guard`] compares the instruction pointer before each stretch of code and the address of each memory reference
//! after it. Code that holds no breakpoint executes block by block. References of the register stack engine and of the
//! VHPT walker are not watched. A step is one instruction; an interruption that it raises ends the step at the
//! handler's first instruction.

use std::collections::BTreeSet;
use std::ops::Range;

use super::driver::Driver;
use super::observer::{Dynamic, Event, Observer, Permission, Place};
use super::run::Exit;
use crate::encoding::{DecodedSlot, Instruction, MemoryAccess};
use crate::processor::Processor;

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

    fn watches(&self, access: MemoryAccess, address: u64) -> Option<Hit> {
        self.points
            .watchpoints
            .iter()
            .find(|point| {
                let wanted = match point.watch {
                    Watch::Read => access.reads(),
                    Watch::Write => access.writes(),
                    Watch::Access => true,
                };
                let overlaps = address < point.start.saturating_add(point.size)
                    && point.start < address.saturating_add(access.bytes.into());
                wanted && overlaps
            })
            .map(|&point| Hit::Watchpoint(point, address.max(point.start)))
    }
}

impl Observer for Guard {
    /// What a watchpoint has to know.
    type Static = Option<MemoryAccess>;

    fn decode(&mut self, instruction: &Instruction, _: &DecodedSlot) -> Option<MemoryAccess> {
        let access = instruction.operation.memory_access();
        access.filter(|access| access.reads() || access.writes())
    }

    fn retired(&mut self, access: &Option<MemoryAccess>, dynamic: &Dynamic<'_>) {
        self.has_stepped = true;
        if let (false, Some(access), Some(address)) =
            (self.points.watchpoints.is_empty(), access, dynamic.reference)
        {
            self.hit = self.hit.or_else(|| self.watches(*access, address));
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Event::Interrupted(_) = event {
            self.has_stepped = true;
        }
    }

    fn permits(&mut self, Place { ip, slot }: Place, block: Range<u64>) -> Permission {
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
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        if self.mode == Mode::Hold {
            return Exit::Limit;
        }
        if self.mode == Mode::Continue && self.points == Points::default() {
            self.reported = None;
            return processor.run(limit);
        }
        let exit = processor.run_observed(limit, self);
        if self.hit.is_some() {
            return Exit::Halted;
        }
        // A hypercall is a step as well.
        self.has_stepped |= matches!(exit, Exit::Fault(_));
        exit
    }
}
