//! What may watch a processor: a timing model, a trace, a debugger, a checker against another emulator.
//!
//! An [`Observer`] says once of every instruction, when a block is decoded, what it wants to know of it again: that is
//! kept in the block. When the instruction has retired it gets this back with what only happens at run time, the
//! [`Dynamic`] facts; what else changed is told by [`Event`]s, as values. It never sees the processor, so that a
//! recording can stand in for one. The events of an instruction come before it retires.
//!
//! [`Processor::run`] is a run with the observer `()`, which looks at nothing and costs nothing.

use std::ops::Range;

use super::gathering::{Gathered, Together};
use super::kind::Detail;
use crate::address::{PhysicalAddress, VirtualAddress};
use crate::alat;
use crate::encoding::{DecodedSlot, Instruction};
use crate::fault::Fault;
use crate::float::FloatRegister;
use crate::mmu::buffer::TranslationBuffer;
use crate::mmu::entry::MemoryAttribute;
use crate::processor::Processor;
use crate::processor::virtualization::TranslationSide;
use crate::registers::frame::FrameMarker;
use crate::registers::status::psr;
use crate::registers::system::{SystemRegisters, control};

/// Watches what a processor executes.
pub trait Observer {
    /// What it keeps of an instruction with the decoded block.
    type Static: Send + Sync + 'static;

    /// What its blocks hold.
    const DETAIL: Detail = Detail::Everything;

    /// Whether [`Observer::inspect`] is called.
    const INSPECTS: bool = false;

    /// Tells observers of one type apart whose [`Observer::decode`] answers differently: blocks are kept for each.
    fn version(&self) -> u64 {
        0
    }

    /// Called before the instructions of another block are decoded.
    fn begins_block(&mut self) {}

    /// Called when an instruction is decoded, before it is ever executed.
    fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> Self::Static;

    /// Called after an instruction has retired, in order.
    fn retired(&mut self, known: &Self::Static, dynamic: &Dynamic<'_>);

    /// Whether it takes what the instructions of a block do together, by [`Observer::retired_together`] and not by
    /// [`Observer::retired`] and events: asked before each block that it follows and that suits. `identity` tells the
    /// block apart.
    #[inline]
    fn gathers(&mut self, identity: u64) -> bool {
        let _ = identity;
        false
    }

    /// Whether it is told of an instruction by itself wherever others of its block are gathered, and of those behind
    /// it: asked once when it was decoded.
    #[inline]
    fn stands_apart(&self, known: &Self::Static) -> bool {
        let _ = known;
        false
    }

    /// Called behind the last instruction of a block that was gathered, before anything else happens.
    fn retired_together(&mut self, together: &Together<'_, Self::Static>)
    where
        Self: Sized,
    {
        together.tell_each(self);
    }

    /// Called after [`Observer::retired`], with the registers as the instruction left them, if
    /// [`Observer::INSPECTS`]: for traces and checkers.
    fn inspect(&mut self, known: &Self::Static, dynamic: &Dynamic<'_>, registers: Registers<'_>) {
        let _ = (known, dynamic, registers);
    }

    /// Called with everything else that happens.
    fn event(&mut self, event: &Event<'_>) {
        let _ = event;
    }

    /// Called before an instruction that reads or writes a performance monitor register or a time counter, if its
    /// predicate is on or not: whoever counts brings the registers up to date.
    fn counters_used(
        &mut self,
        known: &Self::Static,
        place: Place,
        executed: bool,
        memory: &dyn Translation,
        registers: &mut PerformanceRegisters,
    ) {
        let _ = (known, place, executed, memory, registers);
    }

    /// By how many cycles, in two's complement, time has passed beyond the one of each retired instruction since the
    /// last call; `None` where the number of instructions is the time. Asked for where a stretch of a run ends and
    /// before a time counter is used.
    fn clock(&mut self) -> Option<u64> {
        None
    }

    /// The vector of an interrupt to request, such as that of a counter's overflow. Asked for before each block.
    fn interrupt(&mut self) -> Option<u8> {
        None
    }

    /// Called before execution goes on at a place, in the bundles at the addresses `block`.
    fn permits(&mut self, place: Place, block: Range<u64>) -> Permission {
        let _ = (place, block);
        Permission::Block
    }

    /// Whether it has to be told of what is executed next: asked before each block that it permits. A block that it
    /// does not follow is executed as if nobody watched, which is quicker. `last` is what it keeps of the block's last
    /// instruction, which was decoded when it had seen all of them; `None` for an illegal operation.
    #[inline]
    fn follows(&mut self, place: Place, last: Option<&Self::Static>, registers: Registers<'_>) -> bool {
        let _ = (place, last, registers);
        true
    }
}

/// Looks at nothing.
impl Observer for () {
    type Static = ();
    const DETAIL: Detail = Detail::Effects;

    fn decode(&mut self, _: &Instruction, _: &DecodedSlot) {}

    fn retired(&mut self, (): &(), _: &Dynamic<'_>) {}
}

/// Where an instruction stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The virtual address of its bundle.
    pub ip: u64,
    /// Its slot: 0 to 2.
    pub slot: u8,
}

/// What is known of an instruction only once it has run.
#[derive(Clone, Copy)]
pub struct Dynamic<'a> {
    /// Where it stands.
    pub place: Place,
    /// Whether its qualifying predicate was true.
    pub executed: bool,
    /// The virtual address of its memory reference, from the register before the update; `None` for no reference.
    pub reference: Option<u64>,
    /// Where a taken branch went: bundle, with the slot in the low bits.
    pub taken: Option<u64>,
    /// What answers for physical addresses.
    pub memory: &'a dyn Translation,
}

/// Bit 63 of a physical address says that what is there is not cached, as in references that are not translated.
pub const UNCACHEABLE: u64 = 1 << 63;

/// Tells where virtual addresses lie in physical memory, without any effect.
pub trait Translation {
    /// The physical address behind a virtual one under the translations that hold, with [`UNCACHEABLE`] where it is;
    /// the virtual one where there is none, and without a kernel.
    fn physical(&self, side: TranslationSide, address: u64) -> u64;
}

/// Memory in which every address lies where it says: that of listings and of programs without a kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untranslated;

impl Translation for Untranslated {
    fn physical(&self, _: TranslationSide, address: u64) -> u64 {
        address
    }
}

impl Translation for Processor {
    fn physical(&self, side: TranslationSide, address: u64) -> u64 {
        let Some(mmu) = self.mmu() else {
            return address;
        };
        match side {
            TranslationSide::Data => self.physical_data(&mmu.data, address),
            TranslationSide::Instruction => self.physical_by(psr::IT, &mmu.instruction, address),
        }
    }
}

impl Processor {
    /// The physical address behind a virtual one of data under the translations of a buffer.
    pub(super) fn physical_data(&self, buffer: &TranslationBuffer, address: u64) -> u64 {
        self.physical_by(psr::DT, buffer, address)
    }

    fn physical_by(&self, translates: u64, buffer: &TranslationBuffer, address: u64) -> u64 {
        if self.status & translates == 0 {
            return address;
        }
        let virtual_address = VirtualAddress(address);
        let region = self.region_register(virtual_address).identifier();
        let entry = buffer.find(virtual_address, region);
        let Some(entry) = entry else {
            return address & !UNCACHEABLE;
        };
        let is_cached = entry.attribute == MemoryAttribute::WriteBack;
        entry.physical_address(virtual_address).0 | if is_cached { 0 } else { UNCACHEABLE }
    }
}

/// How far the processor may execute before it asks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// All of the bundles it asked for.
    Block,
    /// One instruction.
    Instruction,
    /// Not at all: the run ends with [`Exit::Halted`](super::Exit::Halted).
    Halt,
}

/// Something that happened beside an instruction's retiring.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A run begins; since the last one anything may have changed.
    Resumed(&'a State),
    /// The processor status register was written, or may have been. Its floating-point modified bits are not told of.
    Status(u64),
    /// A region register was written.
    Region {
        /// Which.
        index: usize,
        /// Its value.
        value: u64,
    },
    /// A branch register was written.
    Branch {
        /// Which.
        index: usize,
        /// Its value.
        value: u64,
    },
    /// The frame, its names or the register stack may have changed.
    Frame(Frame),
    /// What has happened to advanced loads so far.
    AdvancedLoads(alat::Events),
    /// The VHPT walker has inserted a translation.
    Walk {
        /// How many it has inserted so far.
        insertions: u64,
        /// Where the entry lies that it read for the last of them.
        entry: PhysicalAddress,
    },
    /// A register that decides what is monitored was written.
    PerformanceMonitor(&'a PerformanceRegisters),
    /// The processor has taken an interruption in system mode: it is at the handler.
    Interrupted(&'a Interruption),
}

/// What an observer may know of the processor where a run begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Whether there is a kernel: addresses are translated as PSR says, and interruptions are taken.
    pub is_system: bool,
    /// The processor status register.
    pub status: u64,
    /// The region registers.
    pub regions: [u64; 8],
    /// The branch registers.
    pub branch: [u64; 8],
    /// The frame and the register stack.
    pub frame: Frame,
    /// What has happened to advanced loads so far.
    pub advanced_loads: alat::Events,
    /// Translations that the VHPT walker has inserted so far.
    pub walker_insertions: u64,
    /// Where the entry of the VHPT lies that it read for the last of them.
    pub walker_entry: PhysicalAddress,
    /// The registers of the performance monitor.
    pub performance: PerformanceRegisters,
}

impl State {
    /// The current privilege level, 0 (most privileged) to 3.
    #[inline]
    pub fn privilege_level(&self) -> u8 {
        (self.status >> psr::CPL_SHIFT & 3) as u8
    }

    fn of(processor: &Processor) -> State {
        State {
            is_system: processor.mmu().is_some(),
            status: processor.status,
            regions: processor.system.region,
            branch: processor.branch,
            frame: Frame::of(processor),
            advanced_loads: processor.advanced_load_events(),
            walker_insertions: walker_insertions(processor),
            walker_entry: processor.walker_inserted,
            performance: PerformanceRegisters::of(&processor.system),
        }
    }
}

/// The current frame, and where the register stack lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Sizes and rename bases.
    pub marker: FrameMarker,
    /// How many registers lie below the frame; names a stacked register across calls.
    pub depth: u64,
    /// Registers stored to the backing store so far, without NaT collections.
    pub spills: u64,
    /// Registers loaded from the backing store so far, without NaT collections.
    pub fills: u64,
    /// BSPSTORE: where the next register will be stored.
    pub store_pointer: u64,
    /// BSP: where the frame's first register belongs in memory.
    pub backing_store_pointer: u64,
}

impl Frame {
    fn of(processor: &Processor) -> Frame {
        let stack = processor.register_stack();
        Frame {
            marker: processor.frame,
            depth: stack.depth(),
            spills: stack.spills(),
            fills: stack.fills(),
            store_pointer: stack.store_pointer(),
            backing_store_pointer: stack.backing_store_pointer(),
        }
    }
}

/// An interruption that was taken, with what the processor has collected of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// What it was.
    pub fault: Fault,
    /// CR.IIP: the bundle that was interrupted.
    pub ip: u64,
    /// CR.IPSR: PSR as it was interrupted.
    pub status: u64,
    /// CR.ISR.
    pub interruption_status: u64,
    /// Where the handler begins.
    pub handler: u64,
    /// The entry of the VHPT that the walker read in vain, where a translation was missing and it read one.
    pub walked: Option<PhysicalAddress>,
}

/// Performance monitor registers that an observer may look at.
pub const PERFORMANCE_REGISTERS: usize = 32;

/// The registers that decide what is monitored, and those that hold what was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerformanceRegisters {
    /// PMC0 and on.
    pub configuration: [u64; PERFORMANCE_REGISTERS],
    /// PMD0 and on.
    pub data: [u64; PERFORMANCE_REGISTERS],
    /// IBR0 to IBR7.
    pub instruction_breakpoint: [u64; 8],
    /// DBR0 to DBR7.
    pub data_breakpoint: [u64; 8],
    /// CR.PMV: the vector of an overflow.
    pub vector: u64,
}

impl PerformanceRegisters {
    /// Those of a processor.
    pub fn of(system: &SystemRegisters) -> PerformanceRegisters {
        let first = |registers: &[u64; 256]| std::array::from_fn(|index| registers[index]);
        PerformanceRegisters {
            configuration: first(&system.performance_configuration),
            data: first(&system.performance_data),
            instruction_breakpoint: system.instruction_breakpoint,
            data_breakpoint: system.data_breakpoint,
            vector: system.control[usize::from(control::PMV)],
        }
    }

    /// Puts back what an observer may change: configuration and data.
    fn put(&self, system: &mut SystemRegisters) {
        system.performance_configuration[..PERFORMANCE_REGISTERS].copy_from_slice(&self.configuration);
        system.performance_data[..PERFORMANCE_REGISTERS].copy_from_slice(&self.data);
    }
}

/// The registers of a processor, to be read.
#[derive(Clone, Copy)]
pub struct Registers<'a>(&'a Processor);

impl<'a> Registers<'a> {
    pub(crate) fn new(processor: &'a Processor) -> Registers<'a> {
        Registers(processor)
    }

    /// A general register of the current frame, with its NaT bit.
    pub fn general(&self, register: u8) -> (u64, bool) {
        (self.0.general.value(register), self.0.general.nat(register))
    }

    /// A floating-point register, as the current rotation names it.
    pub fn floating(&self, register: u8) -> FloatRegister {
        self.0.floating(register)
    }

    /// The predicate registers, as the current rotation names them.
    pub fn predicates(&self) -> u64 {
        self.0.predicates
    }

    /// The branch registers.
    pub fn branch(&self) -> [u64; 8] {
        self.0.branch
    }

    /// How many registers of the register stack lie below the current frame; names a stacked register across calls.
    pub fn depth(&self) -> u64 {
        self.0.register_stack().depth()
    }

    /// The current frame marker.
    pub fn frame(&self) -> FrameMarker {
        self.0.frame
    }

    /// An application register, as a program reads it; reserved ones read as zero.
    pub fn application(&self, register: u8) -> u64 {
        self.0.application(register)
    }

    /// The processor status register.
    pub fn status(&self) -> u64 {
        self.0.status
    }

    /// The registers of system software.
    pub fn system(&self) -> &'a SystemRegisters {
        &self.0.system
    }
}

/// Translations that the VHPT walker has inserted so far.
#[inline(always)]
fn walker_insertions(processor: &Processor) -> u64 {
    processor.mmu().map_or(0, |mmu| mmu.events.walker_hits)
}

impl Processor {
    pub(super) fn observed_frame(&self) -> Frame {
        Frame::of(self)
    }

    pub(super) fn observed_performance(&self) -> PerformanceRegisters {
        PerformanceRegisters::of(&self.system)
    }
}

/// What the loop tells an observer, and from what it knows that there is something to tell.
pub(crate) struct Watch<'o, O> {
    pub observer: &'o mut O,
    walker_insertions: u64,
    /// Room for what a block's instructions do, once there was one that was gathered.
    pub gathered: Option<Box<Gathered>>,
}

impl<'o, O: Observer> Watch<'o, O> {
    /// Begins a run.
    pub(crate) fn new(observer: &'o mut O, processor: &Processor) -> Watch<'o, O> {
        if O::DETAIL == Detail::Everything {
            observer.event(&Event::Resumed(&State::of(processor)));
        }
        Watch {
            observer,
            walker_insertions: walker_insertions(processor),
            gathered: None,
        }
    }

    /// Tells of an interruption that was taken.
    pub(crate) fn interrupted(&mut self, processor: &mut Processor) {
        let fault = processor.interruption.take();
        if O::DETAIL == Detail::Effects {
            return;
        }
        let Some(fault) = fault else { return };
        let control = |register: u8| processor.system.control[usize::from(register)];
        let interruption = Interruption {
            fault,
            ip: control(control::IIP),
            status: control(control::IPSR),
            interruption_status: control(control::ISR),
            handler: processor.ip,
            walked: processor
                .walked_in_vain
                .filter(|_| fault.kind.is_translation_missing()),
        };
        self.walks(processor);
        self.observer.event(&Event::Status(processor.status));
        self.observer.event(&Event::Frame(Frame::of(processor)));
        self.observer.event(&Event::Interrupted(&interruption));
    }

    /// Tells what completing a frame and finding a page has changed.
    pub(crate) fn prepared(&mut self, processor: &Processor) {
        if O::DETAIL == Detail::Everything {
            self.walks(processor);
            self.observer.event(&Event::Frame(Frame::of(processor)));
        }
    }

    /// Tells of insertions by the walker since the last call.
    #[inline(always)]
    pub(crate) fn walks(&mut self, processor: &Processor) {
        let insertions = walker_insertions(processor);
        if insertions != self.walker_insertions {
            self.walker_insertions = insertions;
            let entry = processor.walker_inserted;
            self.observer.event(&Event::Walk { insertions, entry });
        }
    }

    /// Has the observer bring counters up to date before an instruction uses them.
    #[cold]
    pub(crate) fn counters_used(
        &mut self,
        processor: &mut Processor,
        known: &O::Static,
        place: Place,
        executed: bool,
    ) {
        let mut registers = PerformanceRegisters::of(&processor.system);
        self.observer
            .counters_used(known, place, executed, processor, &mut registers);
        registers.put(&mut processor.system);
        self.synchronize_clock(processor);
    }

    /// Moves the interval time counter on to the observer's time.
    pub(crate) fn synchronize_clock(&mut self, processor: &mut Processor) {
        if let Some(cycles) = self.observer.clock() {
            processor.advance_interval_time(cycles);
        }
    }
}
