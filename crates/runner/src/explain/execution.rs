//! Running a piece of code by itself, for the dynamic table.
//!
//! The code runs on a processor in system mode at privilege level 0 with translation on. Wherever it refers to there is
//! memory: the file's contents, and zeros elsewhere; the environment maps pages on demand, which costs nothing. It
//! starts as a called function does, with a frame of eight inputs, a stack and a backing store, and returns to an
//! address of its own, which ends the run; so does anything that would interrupt the processor.

use std::collections::BTreeMap;
use std::ops::Range;

use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::{
    Dynamic, Event, Observer, PerformanceRegisters, Permission, Place, Translation,
};
use sidestep_ia64::mmu::entry::TranslationEntry;
use sidestep_ia64::registers::application::{BSPSTORE, RSC};
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::{Exit, Fault, FaultKind, PhysicalAddress, Processor, TranslationSide, VirtualAddress};
use sidestep_itanium2::{Group, Parameters, Pipeline};
use sidestep_machine::{GuestMemory, Machine, MachineBuilder, MemoryRange};

/// Where a function returns to.
pub const RETURN: u64 = 0x7ffe_0000_0000;
/// The stack, downwards from the middle, and the backing store, upwards from there.
pub const STACK: u64 = 0x7fff_0000_0000;
/// Pages of the code: 16 kB, as those of Linux.
const PAGE_LOG2: u32 = 14;
const PAGE: u64 = 1 << PAGE_LOG2;
/// The memory that pages are taken from.
const MEMORY: u64 = 64 << 20;
/// Inputs of a function in registers.
const INPUTS: u32 = 8;
/// The scratch area above the stack pointer.
const SCRATCH: u64 = 16;
/// A backing store for two register files.
const BACKING_STORE: u64 = 2 * PAGE;

/// The state and memory that the code starts with.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Where it begins.
    pub entry: u64,
    /// The file's segments: address and contents.
    pub segments: Vec<(u64, Vec<u8>)>,
    /// Registers by name, and their values.
    pub registers: Vec<(Register, u64)>,
    /// Words of memory: address and value.
    pub words: Vec<(u64, u64)>,
}

/// A register that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// `r1` to `r39`; from `r32` on the function's inputs.
    General(u8),
    /// `p1` to `p63`.
    Predicate(u8),
    /// `b0` to `b7`.
    Branch(u8),
    /// `ar.k0` and the others, by number.
    Application(u8),
}

/// What happened to an instruction that retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Whether its predicate was on.
    pub executed: bool,
    /// The address that it referred to.
    pub reference: Option<u64>,
    /// Where a taken branch went.
    pub taken: Option<u64>,
}

/// A run.
pub struct Ran {
    /// The cycles.
    pub groups: Vec<Group>,
    /// What each instruction did, in the order of the groups.
    pub effects: Vec<Effect>,
    /// Why it ended.
    pub end: Ending,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The function returned.
    Returned,
    /// The instruction at an address would interrupt the processor.
    Interruption(Fault, u64),
    /// As many instructions retired as may.
    Limit,
    /// More memory was referred to than there is.
    Memory,
}

/// Runs the code once for each of `warm` passes and once more for the table, each from the same start, of at most
/// `limit` instructions; caches, translation buffers and branch prediction are kept from one to the next.
pub fn run(start: &Start, parameters: &Parameters, warm: u32, limit: u64) -> Ran {
    let mut watch = Watch {
        pipeline: Pipeline::new(parameters.clone()),
        effects: Vec::new(),
        is_over: false,
    };
    for _ in 0..warm {
        watch.once(start, limit);
        watch.pipeline.rest(super::REST);
        watch.pipeline.detach();
    }
    watch.effects.clear();
    watch.pipeline.enable_timeline();
    let end = watch.once(start, limit);
    Ran {
        groups: watch.pipeline.take_timeline(),
        effects: watch.effects,
        end,
    }
}

/// A pipeline that notes what instructions do, and ends at the return.
struct Watch {
    pipeline: Pipeline,
    effects: Vec<Effect>,
    is_over: bool,
}

impl Observer for Watch {
    type Static = <Pipeline as Observer>::Static;

    fn version(&self) -> u64 {
        self.pipeline.version()
    }

    fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> Self::Static {
        self.pipeline.decode(instruction, slot)
    }

    fn retired(&mut self, known: &Self::Static, dynamic: &Dynamic<'_>) {
        self.effects.push(Effect {
            executed: dynamic.executed,
            reference: dynamic.reference,
            taken: dynamic.taken,
        });
        self.pipeline.retired(known, dynamic);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.pipeline.event(event);
    }

    fn counters_used(
        &mut self,
        known: &Self::Static,
        place: Place,
        executed: bool,
        memory: &dyn Translation,
        registers: &mut PerformanceRegisters,
    ) {
        self.pipeline
            .counters_used(known, place, executed, memory, registers);
    }

    fn permits(&mut self, _: Place, block: Range<u64>) -> Permission {
        self.is_over = block.start == RETURN;
        match self.is_over {
            true => Permission::Halt,
            false => Permission::Block,
        }
    }
}

impl Watch {
    /// One pass.
    fn once(&mut self, start: &Start, limit: u64) -> Ending {
        self.is_over = false;
        let mut ground = Ground::new(start);
        let mut left = limit;
        loop {
            let before = ground.processor().instructions_retired();
            let exit = ground.processor().run_observed(left, self);
            left -= ground.processor().instructions_retired() - before;
            match exit {
                _ if self.is_over => return Ending::Returned,
                Exit::Limit => return Ending::Limit,
                Exit::Fault(fault) => match ground.map_missing(&fault) {
                    Mapped::Yes => {}
                    Mapped::Full => return Ending::Memory,
                    Mapped::NotMissing => {
                        return Ending::Interruption(fault, ground.processor().instruction_pointer().0);
                    }
                },
                Exit::Attention | Exit::Halted => {}
            }
        }
    }
}

/// A machine of one processor, and what is in its memory.
struct Ground<'a> {
    machine: Machine,
    start: &'a Start,
    /// Physical pages by virtual page.
    pages: BTreeMap<u64, u64>,
}

enum Mapped {
    Yes,
    Full,
    NotMissing,
}

impl Ground<'_> {
    fn new(start: &Start) -> Ground<'_> {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, MEMORY)]).expect("one range of memory");
        let mut ground = Ground {
            machine: MachineBuilder::new(memory, 1).build(),
            start,
            pages: BTreeMap::new(),
        };
        ground.begin();
        ground
    }

    fn processor(&mut self) -> &mut Processor {
        &mut self.machine.cpus[0].processor
    }

    /// The state of a function that has just been called.
    fn begin(&mut self) {
        for address in (0..BACKING_STORE).step_by(PAGE as usize) {
            self.map(STACK + address, TranslationSide::Data);
        }
        let processor = &mut self.machine.cpus[0].processor;
        processor.set_monitored(true);
        processor.set_status(psr::IC | psr::DT | psr::RT | psr::IT | psr::BN);
        processor.set_application(RSC, 0);
        processor.set_application(BSPSTORE, STACK + BACKING_STORE / 2);
        processor
            .resume_frame(FrameMarker {
                size: INPUTS,
                locals: INPUTS,
                ..FrameMarker::default()
            })
            .expect("the backing store is mapped");
        processor.set_application(RSC, 3);
        processor.branch[0] = RETURN;
        processor.general.set(12, STACK - SCRATCH);
        for (register, value) in &self.start.registers {
            match *register {
                Register::General(number) => processor.general.set(number, *value),
                Register::Predicate(number) => processor.set_predicate(number, *value != 0),
                Register::Branch(number) => processor.branch[usize::from(number)] = *value,
                Register::Application(number) => processor.set_application(number, *value),
            }
        }
        processor.set_instruction_pointer(self.start.entry, 0);
    }

    /// Maps the page that a reference or fetch missed.
    fn map_missing(&mut self, fault: &Fault) -> Mapped {
        let side = match fault.kind {
            FaultKind::AlternateInstructionTlb | FaultKind::InstructionTlb => TranslationSide::Instruction,
            FaultKind::AlternateDataTlb | FaultKind::DataTlb => TranslationSide::Data,
            _ => return Mapped::NotMissing,
        };
        match self.map(fault.address.0, side) {
            true => Mapped::Yes,
            false => Mapped::Full,
        }
    }

    /// Whether there was memory for the page.
    fn map(&mut self, address: u64, side: TranslationSide) -> bool {
        let page = address & !(PAGE - 1);
        let next = self.pages.len() as u64 * PAGE;
        let physical = *self.pages.entry(page).or_insert(next);
        if physical >= MEMORY {
            return false;
        }
        if physical == next {
            self.fill(page, physical);
        }
        let processor = self.processor();
        let region = (processor.system.region[VirtualAddress(page).region()] >> 8) as u32 & 0xff_ffff;
        let entry =
            TranslationEntry::permissive(VirtualAddress(page), PhysicalAddress(physical), PAGE_LOG2, region);
        processor.insert_translation(side, entry);
        true
    }

    /// What the file and the user say that a page holds.
    fn fill(&self, page: u64, physical: u64) {
        let write = |address: u64, bytes: &[u8]| {
            self.machine
                .platform()
                .memory
                .write(PhysicalAddress(address), bytes)
                .expect("a page of memory");
        };
        for (address, bytes) in &self.start.segments {
            let end = address.saturating_add(bytes.len() as u64);
            let (from, to) = (page.max(*address), page.saturating_add(PAGE).min(end));
            if from < to {
                let part = (from - address) as usize..(to - address) as usize;
                write(physical + (from - page), &bytes[part]);
            }
        }
        for (address, value) in &self.start.words {
            if address & !(PAGE - 1) == page {
                write(physical + (address - page), &value.to_le_bytes());
            }
        }
    }
}
