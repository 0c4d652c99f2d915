//! One IA-64 processor: its registers and its view of memory, and all that is written as methods of the whole.
//!
//! A [`Processor`] owns all architectural state and nothing else: no globals, no threads. It executes with
//! [`Processor::run`] (in [`execution`](crate::processor::execution)) until something happens that the environment must
//! handle, an [`Exit`](crate::processor::execution::Exit). Several processors share memory by sharing an
//! [`AddressSpace`].

mod access;
mod breakpoints;
mod debugging;
mod environment;
pub mod execution;
mod interruption;
pub mod layout;
mod light_calls;
mod pauses;
pub mod register_stack;
mod semantics;
mod snapshot;
mod translation;
mod virtualization;

pub use execution::{Driver, Exit};
pub use interruption::FruitlessInterruptions;
pub use light_calls::{Gate, LightCalls};
pub use semantics::IDENTIFICATION;
pub use snapshot::{InvalidState, ProcessorState};
pub use virtualization::{Reference, SystemState, TranslationSide};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::address::PhysicalAddress;
use crate::alat::AdvancedLoads;
use crate::fault::Fault;
use crate::float::division::Divisions;
use crate::float::register_file::FloatingRegisters;
use crate::float::{ControlTable, FloatRegister};
use crate::interrupts::Interrupts;
use crate::memory::AddressSpace;
use crate::memory::physical::SharedPhysicalMemory;
use crate::memory::tlb::TranslationCache;
use crate::memory::windows::WindowTable;
use crate::mmu::Mmu;
use crate::mmu::buffer::TranslationBuffer;
use crate::processor::environment::{Environment, SystemMode};
use crate::processor::execution::{BlockCache, Forget};
use crate::processor::pauses::Pauses;
use crate::processor::register_stack::RegisterStack;
use crate::registers::application::{self, Presence};
use crate::registers::frame::FrameMarker;
use crate::registers::general::GeneralRegisters;
use crate::registers::status::psr;
use crate::registers::system::SystemRegisters;

/// A fault was raised: the details wait in the processor, the instruction has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raised;

/// The architectural state of one processor, and the memory it runs on.
///
/// What every instruction or block touches comes first, in a fixed order, so that a back end that emits code for the
/// host finds it: see [`layout`](crate::processor::layout).
#[repr(C)]
pub struct Processor {
    /// Address of the bundle where execution goes on.
    pub(crate) ip: u64,
    /// Instructions retired so far.
    pub(crate) retired: u64,
    /// Predicate registers as instructions of the current rotation see them; bit 0 is always one.
    pub predicates: u64,
    /// The processor status register.
    pub status: u64,
    /// While a block runs: the address of its first bundle.
    pub(crate) block_start: u64,
    /// Where the branch that was just taken goes.
    pub(crate) target: u64,
    /// What must be done before the next block; bits of [`pending`].
    pub(crate) pending: u32,
    /// Slot within the bundle where execution goes on.
    pub(crate) slot: u8,
    /// Regions whose instruction addresses may be translated otherwise than before, one bit each.
    pub(crate) stale_code_regions: u8,
    pub(crate) translations: Box<TranslationCache>,
    /// The current frame marker.
    pub frame: FrameMarker,
    /// Branch registers.
    pub branch: [u64; 8],
    /// The last bundle of the block that was left last, which interruptions ask for: a back end need not keep it for
    /// programs, which have none.
    pub(crate) completed: u64,
    /// General registers of the current frame, with NaT bits.
    pub general: GeneralRegisters,
    /// f0 to f127 before rotation.
    pub(crate) floating: FloatingRegisters,
    /// Application registers by number, but for those of the register stack engine.
    pub(crate) application: [u64; 128],
    /// What the back end that runs keeps with the processor.
    pub(crate) of_back_end: [u64; layout::OF_BACK_END_WORDS],
    /// Where data lie in the host's memory, as far as they lie there as in the guest's.
    pub(crate) windows: WindowTable,
    /// Whether others may write memory, as it was when this was asked last; zero for nobody.
    pub(crate) is_shared: u64,
    pub(crate) advanced_loads: AdvancedLoads,
    /// The FPSR's controls, decoded.
    pub(crate) float_controls: ControlTable,
    pub(crate) register_stack: RegisterStack,
    /// The operands of the divisions that floating-point registers stand for steps of.
    pub(crate) divisions: Divisions,
    /// Control, region, protection key, debug and performance-monitor registers.
    pub system: Box<SystemRegisters>,
    pub(crate) environment: Environment,
    pub(crate) blocks: BlockCache,
    /// The fault that the last `Raised` stands for.
    pub(crate) raised: Option<Fault>,
    /// Whether the interval timer's match was ahead when this was looked at last, and has not been noticed since.
    pub(crate) awaits_timer: bool,
    /// The interruption that was taken last, until an observer is told.
    pub(crate) interruption: Option<Fault>,
    /// Bundle and slot of the last instruction that trapped.
    pub(crate) trapped: (u64, u8),
    /// The interruptions that nothing came of.
    fruitless: FruitlessInterruptions,
    /// Host pages whose instructions this processor has changed, by number.
    pub(crate) changed_code: Vec<u64>,
    /// Whether an observer wants to know of data translations as they were before the walker inserts one, and these.
    keeps_before_walk: bool,
    before_walk: Option<Box<TranslationBuffer>>,
    /// The entry of the VHPT that held what the walker inserted last.
    walker_inserted: PhysicalAddress,
    /// The entry that the walker has read for the translation that was missing last, and that did not hold it.
    walked_in_vain: Option<PhysicalAddress>,
    /// How long it has been waiting in a loop.
    pauses: Pauses,
    attention: Arc<AtomicBool>,
    /// Who serves a program's light-weight calls.
    light_calls: Option<Arc<dyn LightCalls>>,
    /// Where the gate is by which it makes them, in a run in which it is open.
    gate: u64,
}

/// Work that an instruction leaves for the execution loop.
pub(crate) mod pending {
    /// Instructions may have been overwritten: decoded blocks are stale.
    pub const CODE_CHANGED: u32 = 1 << 0;
    /// The current frame lacks registers that a fault kept from being filled.
    pub const FRAME_INCOMPLETE: u32 = 1 << 1;
    /// The translation of instruction addresses may have changed.
    pub const CODE_PAGE: u32 = 1 << 2;
    /// The interval timer was set anew.
    pub const TIMER: u32 = 1 << 3;
    /// A branch has gone to a less privileged level.
    pub const DEMOTED: u32 = 1 << 4;
    /// Instructions are fetched under other rules than before.
    pub const CODE_CONTEXT: u32 = 1 << 5;
}

impl Processor {
    /// A processor that runs a program without a kernel, on an environment that knows virtual memory; at
    /// address zero, with an empty register frame.
    pub fn new(space: Arc<dyn AddressSpace>) -> Processor {
        Processor::with_environment(Environment::Program(space))
    }

    /// A processor in system mode as after reset: physical addressing, privilege level 0, at address zero.
    pub fn new_system(memory: SharedPhysicalMemory) -> Processor {
        Processor::with_environment(Environment::System(Box::new(SystemMode::new(memory))))
    }

    fn with_environment(environment: Environment) -> Processor {
        let windows = environment.windows(0);
        let is_shared = environment.is_shared().into();
        let mut application = [0; 128];
        application[usize::from(application::FPSR)] = FPSR_RESET;
        Processor {
            general: GeneralRegisters::new(),
            predicates: 1,
            branch: [0; 8],
            completed: 0,
            frame: FrameMarker::default(),
            status: 0,
            system: Box::default(),
            application,
            floating: FloatingRegisters::new(),
            divisions: Divisions::new(),
            float_controls: ControlTable::new(FPSR_RESET),
            register_stack: RegisterStack::new(),
            advanced_loads: AdvancedLoads::default(),
            translations: Box::default(),
            environment,
            blocks: BlockCache::default(),
            ip: 0,
            slot: 0,
            block_start: 0,
            target: 0,
            raised: None,
            awaits_timer: false,
            interruption: None,
            fruitless: FruitlessInterruptions::default(),
            retired: 0,
            trapped: (0, 0),
            of_back_end: [0; layout::OF_BACK_END_WORDS],
            windows,
            is_shared,
            pending: 0,
            stale_code_regions: 0,
            changed_code: Vec::new(),
            keeps_before_walk: false,
            before_walk: None,
            walker_inserted: PhysicalAddress::default(),
            walked_in_vain: None,
            pauses: Pauses::default(),
            attention: Arc::default(),
            light_calls: None,
            gate: light_calls::NO_GATE,
        }
    }

    /// A processor with the same architectural state on another memory; it starts with cold translations.
    pub fn duplicate(&self, space: Arc<dyn AddressSpace>) -> Processor {
        let environment = Environment::Program(space);
        Processor {
            windows: environment.windows(self.status),
            is_shared: environment.is_shared().into(),
            general: self.general.clone(),
            system: self.system.clone(),
            register_stack: self.register_stack.clone(),
            advanced_loads: AdvancedLoads::default(),
            translations: Box::default(),
            environment,
            blocks: BlockCache::default(),
            raised: None,
            interruption: None,
            fruitless: FruitlessInterruptions::default(),
            retired: 0,
            changed_code: Vec::new(),
            before_walk: None,
            attention: Arc::default(),
            light_calls: None,
            gate: light_calls::NO_GATE,
            ..*self
        }
    }

    /// The memory that a program's processor runs on; `None` in system mode.
    pub fn address_space(&self) -> Option<&Arc<dyn AddressSpace>> {
        match &self.environment {
            Environment::Program(space) => Some(space),
            Environment::System(_) => None,
        }
    }

    /// The address of the bundle and the slot where execution goes on.
    pub fn instruction_pointer(&self) -> (u64, u8) {
        (self.ip, self.slot)
    }

    /// Sets where execution goes on.
    pub fn set_instruction_pointer(&mut self, ip: u64, slot: u8) {
        self.ip = ip & !15;
        self.slot = slot.min(2);
    }

    /// Steps over the instruction at the instruction pointer, which an environment has handled.
    pub fn skip_instruction(&mut self) {
        if self.slot >= 2 {
            self.ip = self.ip.wrapping_add(16);
            self.slot = 0;
        } else {
            self.slot += 1;
        }
    }

    /// Bundle and slot of the instruction that raised the last trap; a trap leaves the instruction pointer
    /// behind it.
    pub fn trapped_instruction(&self) -> (u64, u8) {
        self.trapped
    }

    /// Instructions retired so far, predicated-off ones and `nop`s included.
    pub fn instructions_retired(&self) -> u64 {
        self.retired
    }

    /// The floating-point register `register` as the current rotation names it.
    #[inline(always)]
    pub fn floating(&self, register: u8) -> FloatRegister {
        self.floating.get(self.floating_index(register), &self.divisions)
    }

    /// Makes a spill image of a floating-point register, by its number without rotation, whatever a back end has noted
    /// of it.
    pub fn settle_floating(&mut self, index: usize) {
        self.floating.settle(index, &self.divisions);
    }

    /// Makes images of the floating-point registers that a back end has left as doubles and that are denormal.
    pub fn settle_denormals(&mut self) {
        self.floating.settle_denormals(&self.divisions);
    }

    /// Gives a [site](layout::DIVISION_SITES) to the division of a back end's that has a number: no register stands for
    /// a step of another's from there any more.
    pub fn own_division_site(&mut self, owner: u64) {
        let site = owner as usize % Divisions::SITES;
        self.floating.settle_site(site, &self.divisions);
        self.divisions.own(site, owner);
    }

    /// Writes a floating-point register and notes the write in PSR.mfl or PSR.mfh; f0 and f1 are constants.
    #[inline(always)]
    pub fn set_floating(&mut self, register: u8, value: FloatRegister) {
        let index = self.floating_index(register);
        assert!(index > 1, "f0 and f1 are constants");
        self.floating.set(index, value);
        self.status |= if index < 32 { psr::MFL } else { psr::MFH };
    }

    /// The number of a floating-point register without rotation.
    #[inline(always)]
    pub(crate) fn floating_index(&self, register: u8) -> usize {
        let register = usize::from(register & 127);
        if register < 32 {
            return register;
        }
        let rotated = register + self.frame.rename_floating as usize;
        if rotated < 128 { rotated } else { rotated - 96 }
    }

    /// The predicate register `register`.
    #[inline(always)]
    pub fn predicate(&self, register: u8) -> bool {
        self.predicates >> (register & 63) & 1 != 0
    }

    /// Writes a predicate register; p0 stays one.
    #[inline(always)]
    pub fn set_predicate(&mut self, register: u8, value: bool) {
        let register = register & 63;
        self.predicates = (self.predicates & !(1 << register) | u64::from(value) << register) | 1;
    }

    /// An application register, as the program reads it; reserved ones read as zero.
    pub fn application(&self, register: u8) -> u64 {
        match register {
            application::RSC => self.register_stack.configuration(),
            application::BSP => self.register_stack.backing_store_pointer(),
            application::BSPSTORE => self.register_stack.store_pointer(),
            application::RNAT => self.register_stack.collection(),
            _ => self.application[usize::from(register & 127)],
        }
    }

    /// Writes an application register without the checks of a guest's move; BSP and reserved ones ignore it.
    pub fn set_application(&mut self, register: u8, value: u64) {
        match register {
            application::RSC => self.register_stack.set_configuration(value),
            application::BSPSTORE => self.register_stack.set_store_pointer(value),
            application::RNAT => self.register_stack.set_collection(value),
            application::BSP => {}
            application::EC => self.application[usize::from(register)] = value & 0x3f,
            _ if application::presence(register) == Presence::Present => {
                self.application[usize::from(register)] = value;
            }
            _ => {}
        }
    }

    /// The register stack engine.
    pub fn register_stack(&self) -> &RegisterStack {
        &self.register_stack
    }

    /// The register stack engine, for an environment that switches stacks.
    pub fn register_stack_mut(&mut self) -> &mut RegisterStack {
        &mut self.register_stack
    }

    /// Forgets every advanced load, as an environment must when it has written guest memory itself.
    pub fn forget_advanced_loads(&mut self) {
        self.advanced_loads.clear();
    }

    /// Forgets the advanced loads of `size` bytes, at most 16, at an address.
    pub fn forget_advanced_loads_of(&mut self, address: u64, size: u64) {
        self.advanced_loads.invalidate(address, size);
    }

    /// Has what would give way to an advanced load to a static register forgotten, for a back end that remembers that
    /// load itself beside so many others. The register is named by its tag: those of floating-point registers begin at
    /// [`layout::ADVANCED_FLOATING_TAGS`].
    pub fn make_room_for_advanced_load(&mut self, tag: u8, others: usize) {
        self.advanced_loads
            .make_room(crate::alat::Target::of_static(tag), others);
    }

    /// Remembers an advanced load of `size` bytes, at most 16, to a static register, by its tag as above.
    pub fn remember_advanced_load(&mut self, tag: u8, address: u64, size: u64) {
        self.advanced_loads
            .insert(crate::alat::Target::of_static(tag), address, size);
    }

    /// What has happened to advanced loads, for whoever counts it.
    pub fn advanced_load_events(&self) -> crate::alat::Events {
        self.advanced_loads.events()
    }

    /// The current privilege level, 0 (most privileged) to 3.
    #[inline(always)]
    pub fn privilege_level(&self) -> u8 {
        (self.status >> psr::CPL_SHIFT & 3) as u8
    }

    /// Sets the current privilege level.
    pub fn set_privilege_level(&mut self, level: u8) {
        self.change_status(self.status & !psr::CPL | u64::from(level & 3) << psr::CPL_SHIFT);
    }

    /// Resumes in the frame `marker`, all of whose registers were pushed by [`Processor::cover_frame`], as
    /// `rfi` does. Fails when the backing store cannot be read; the frame is then incomplete.
    pub fn resume_frame(&mut self, marker: FrameMarker) -> Result<(), Fault> {
        let filled = self.return_frame(marker, marker.size);
        self.outcome(filled)
    }

    /// Stores every dirty register of the callers to the backing store.
    pub fn flush_stack(&mut self) -> Result<(), Fault> {
        let flushed = self.flush_register_stack();
        self.outcome(flushed)
    }

    /// Forgets all translations and decoded instructions; needed after guest memory was unmapped, replaced or
    /// protected.
    pub fn flush_translations(&mut self) {
        self.flush_data_translations();
        self.blocks.flush();
        self.pending |= pending::CODE_PAGE;
    }

    /// Forgets all decoded instructions; needed after another processor or a device has changed some.
    pub fn forget_instructions(&mut self) {
        self.pending |= pending::CODE_CHANGED;
    }

    /// Forgets the decoded instructions of a page of the host's memory, by its number; needed after a device has
    /// written there.
    pub fn forget_instructions_of(&mut self, page: u64) {
        self.changed_code.push(page);
        self.pending |= pending::CODE_CONTEXT;
    }

    /// Finds the frame's registers where a back end has put them by changing
    /// [`GENERAL_BASE`](crate::layout::GENERAL_BASE).
    #[inline(always)]
    pub fn find_frame(&mut self) {
        self.general.find_places();
    }

    /// Forgets all translations but keeps decoded instructions: enough after a change that left the memory
    /// behind every executable page as it was.
    pub fn flush_data_translations(&mut self) {
        self.translations.flush();
        self.windows = self.environment.windows(self.status);
        self.is_shared = self.environment.is_shared().into();
    }

    /// Whether memory may be touched where [`layout::WINDOW_DIFFERENCES`] lead.
    pub fn has_windows(&self) -> bool {
        self.windows.is_open()
    }

    /// A flag that makes [`Processor::run`] return at the next block boundary once it is set. It may be set
    /// by other threads and by signal handlers; `run` leaves it set.
    pub fn attention(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.attention)
    }

    /// The external interrupts of a processor in system mode, for devices and other processors to request.
    pub fn interrupts(&self) -> Option<Arc<Interrupts>> {
        self.environment
            .system()
            .map(|system| Arc::clone(&system.interrupts))
    }

    /// The translations of a processor in system mode.
    pub fn mmu(&self) -> Option<&Mmu> {
        self.environment.system().map(|system| &system.mmu)
    }

    #[inline(always)]
    pub(crate) fn attention_flag(&self) -> &AtomicBool {
        &self.attention
    }

    #[inline(always)]
    pub(crate) fn wants_attention(&self) -> bool {
        self.attention.load(Ordering::Relaxed)
    }

    /// Notes a fault; the returned token travels up to the engine.
    #[cold]
    pub(crate) fn raise(&mut self, fault: Fault) -> Raised {
        self.raised = Some(fault);
        Raised
    }

    /// Turns a `Raised` into the fault it stands for.
    pub(crate) fn outcome<T>(&mut self, result: Result<T, Raised>) -> Result<T, Fault> {
        result.map_err(|Raised| self.take_fault())
    }

    /// The fault that the last `Raised` stands for.
    pub(crate) fn take_fault(&mut self) -> Fault {
        self.raised.take().expect("a fault was raised")
    }
}

/// A processor can move to the host thread that is to run it.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Processor>();
};

/// FPSR after reset: all traps disabled, double-extended precision, round to nearest.
const FPSR_RESET: u64 = 0x0009_804c_0270_033f;
