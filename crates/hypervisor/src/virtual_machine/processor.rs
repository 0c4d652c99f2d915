//! One virtual processor: entering the guest, leaving it, its clock, its counts.
//!
//! Between runs the processor is in the guest's system state, so that the monitor works on the virtual processor by
//! the architecture's own code; a run exchanges it for the monitor's state, which `prepare` derives
//! from it. The clock counts host cycles; the guest's interval time counter goes along with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_ia64::execution::guard::Guard;
use sidestep_ia64::execution::{Driver, Observer, Permission, Place, Untimed};
use sidestep_ia64::memory::GlobalPurge;
use sidestep_ia64::mmu::entry::TranslationEntry;
use sidestep_ia64::mmu::vhpt::RegionRegister;
use sidestep_ia64::registers::application::{ITC, RSC};
use sidestep_ia64::registers::status::{psr, rsc};
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{
    Exit, PhysicalAddress, PhysicalMemory, Processor, SystemState, TranslationSide, VirtualAddress,
};

use super::compression;
use super::configuration::Virtualization;
use super::core::{Core, Touched};
use super::exit::{ExitCounts, ExitReason};
use super::machine_address::{GUEST_MEMORY_MAX, MachineAddress};
use super::memory::{GuestView, MachineView, RequestPage, RingPage, Shared};
use super::sampling::Sampling;
use super::shadow::{self, ShadowTable};
use crate::costs::HostCosts;
use crate::cycle::Cycle;
use crate::sidecall::page;

/// The region identifier of a guest that addresses physically; guests have those with bit 23 clear.
const PHYSICAL_REGION: u32 = 1 << 23;
/// The page size by which physical addresses are shadowed.
const PHYSICAL_PAGE_LOG2: u32 = 14;
/// The three translation modes.
pub(super) const TRANSLATION: u64 = psr::DT | psr::RT | psr::IT;
/// PSR bits of the guest that hold for its execution as they are; the others are the monitor's.
const GUEST_BITS: u64 = psr::USER_MASK
    | psr::PK
    | psr::DFL
    | psr::DFH
    | psr::SP
    | psr::PP
    | psr::DI
    | psr::SI
    | psr::DB
    | psr::LP
    | psr::TB
    | psr::MC
    | psr::ID
    | psr::DA
    | psr::DD
    | psr::SS
    | psr::ED
    | psr::BN
    | psr::IA;
/// PSR bits that execution changes without an exit.
const CHANGED_BITS: u64 = psr::USER_MASK | psr::ID | psr::DA | psr::DD | psr::ED | psr::IA;
/// PSR bits that decide what a reference may do.
const REFERENCE_BITS: u64 = psr::PK | psr::DB | psr::BE | psr::DA;

/// What a virtual processor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Executes.
    Running,
    /// Waits for an interrupt.
    Waiting,
    /// Polls the status of a request that is being served.
    Polling,
    /// Waits in the monitor for a device that it asked by exit.
    Asking,
    /// Does nothing until another processor starts it.
    Stopped,
}

/// Where a virtual processor's cycles went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CycleAccount {
    /// Executing guest instructions.
    pub guest: u64,
    /// In the monitor.
    pub monitor: u64,
    /// Polling for a sidecore's answer.
    pub polling: u64,
    /// Waiting for an interrupt, or stopped.
    pub idle: u64,
}

/// A virtual processor.
pub struct VirtualProcessor {
    pub(super) index: usize,
    pub(super) owner: usize,
    pub(super) virtualization: Virtualization,
    /// What every handler of its exits touches of the monitor's memory.
    handler_bytes: u64,
    pub(super) processor: Processor,
    /// The monitor's system state while the guest's is in the processor.
    real: SystemState,
    pub(super) shadow: ShadowTable,
    pub(super) requests: Arc<RequestPage>,
    pub(super) rings: Arc<RingPage>,
    attention: Arc<AtomicBool>,
    pub(super) clock: Cycle,
    pub(super) activity: Activity,
    /// The guest's level, where the real one does not tell it.
    pub(super) level: u8,
    pub(super) exits: ExitCounts,
    pub(super) cycles: CycleAccount,
    instructions: u64,
    /// What the last exit filled, if it filled the shadow: a repetition cannot be helped by filling.
    pub(super) filled_last: Option<Filled>,
    /// The served slots that the guest looked at last, and how many instructions it had executed then.
    pub(super) polled_last: (u64, u64),
    /// The region identifier for which the shadow table is pinned.
    pinned: Option<u32>,
    /// What detection sees of it, while its virtual machine is watched.
    pub(super) sampling: Option<Sampling>,
    /// What a debugger wants of it.
    guard: Option<Guard>,
    /// The core that it has, where cores are modelled.
    core: Option<Box<dyn Core>>,
    /// What executes it, where cores are not.
    driver: Box<dyn Driver + Send>,
}

impl VirtualProcessor {
    pub(super) fn new(
        (owner, index): (usize, usize),
        shared: &Arc<Shared>,
        virtualization: Virtualization,
        handler_bytes: u64,
    ) -> VirtualProcessor {
        let shadow = ShadowTable::new();
        let guest: Arc<dyn PhysicalMemory> = Arc::new(GuestView(Arc::clone(shared)));
        let mut processor = Processor::new_system(guest);
        processor.system.control[usize::from(control::LID)] = (index as u64) << 24;
        let attention = processor.attention();
        let requests = Arc::new(RequestPage::new(Arc::clone(&attention)));
        let rings = Arc::new(RingPage::new());
        let mut real = SystemState::new(Arc::new(MachineView {
            owner,
            processor: index,
            shared: Arc::clone(shared),
            table: shadow.memory(),
            requests: Arc::clone(&requests),
            rings: Arc::clone(&rings),
        }));
        real.system.control[usize::from(control::PTA)] = shadow::PAGE_TABLE_ADDRESS;
        let mut created = VirtualProcessor {
            index,
            owner,
            virtualization,
            handler_bytes,
            processor,
            real,
            shadow,
            requests,
            rings,
            attention,
            clock: Cycle::START,
            activity: Activity::Stopped,
            level: 0,
            exits: ExitCounts::default(),
            cycles: CycleAccount::default(),
            instructions: 0,
            filled_last: None,
            polled_last: (0, 0),
            pinned: None,
            sampling: None,
            guard: None,
            core: None,
            driver: Box::new(Untimed),
        };
        created.in_real_state(|processor| processor.set_monitored(true));
        created
    }

    /// Has it read instructions from memory again.
    pub(super) fn forget_instructions(&mut self) {
        self.processor.forget_instructions();
        self.in_real_state(Processor::forget_instructions);
    }

    /// Its number in its virtual machine.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its clock.
    pub fn clock(&self) -> Cycle {
        self.clock
    }

    /// What it does.
    pub fn activity(&self) -> Activity {
        self.activity
    }

    /// The exits so far.
    pub fn exits(&self) -> &ExitCounts {
        &self.exits
    }

    /// Where its cycles went.
    pub fn cycles(&self) -> CycleAccount {
        self.cycles
    }

    /// Guest instructions so far.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// The processor, in the guest's state: what a debugger shows.
    pub fn processor(&self) -> &Processor {
        &self.processor
    }

    /// As [`processor`](Self::processor), to change it.
    pub fn processor_mut(&mut self) -> &mut Processor {
        &mut self.processor
    }

    /// Puts it under a debugger's guard, or takes it from under one; the guard that it had.
    pub fn set_guard(&mut self, guard: Option<Guard>) -> Option<Guard> {
        std::mem::replace(&mut self.guard, guard)
    }

    /// Has a driver execute it.
    pub(crate) fn set_driver(&mut self, driver: Box<dyn Driver + Send>) {
        self.driver = driver;
    }

    /// Gives it a core that is modelled.
    pub(crate) fn give_core(&mut self, mut core: Box<dyn Core>) {
        core.enter(self.owner, self.index);
        self.core = Some(core);
    }

    /// Takes its core, if it has one that is modelled.
    pub(crate) fn take_core(&mut self) -> Option<Box<dyn Core>> {
        self.core.take()
    }

    /// The monitor touches memory on its core.
    pub(super) fn touch(&mut self, touch: impl FnOnce(&Touched, &mut dyn Core)) {
        if let Some(core) = &mut self.core {
            touch(
                &Touched::of(self.owner, self.index, self.handler_bytes),
                &mut **core,
            );
        }
    }

    /// The monitor touches the entry of the shadow table for an address on its core.
    pub(super) fn touch_shadow(&mut self, address: VirtualAddress) {
        let offset = ShadowTable::offset(address, self.shadow_region(address));
        self.touch(|touched, core| touched.shadow_entry(core, offset));
    }

    /// Whether a debugger has halted it.
    pub(super) fn is_halted(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.hit().is_some())
    }

    /// Whether a debugger keeps it from executing while others do.
    pub(super) fn is_held(&self) -> bool {
        self.guard.as_ref().is_some_and(Guard::holds)
    }

    /// Whether a debugger halts it before the next instruction, which the monitor would interpret.
    pub(super) fn halts(&mut self) -> bool {
        let (ip, slot) = self.processor.instruction_pointer();
        let Some(guard) = &mut self.guard else {
            return false;
        };
        guard.permits(Place { ip, slot }, ip..ip + 16) == Permission::Halt
    }

    /// The monitor has interpreted an instruction.
    pub(super) fn interpreted(&mut self) {
        if let Some(guard) = &mut self.guard {
            guard.has_interpreted();
        }
    }

    pub(super) fn in_real_state<T>(&mut self, work: impl FnOnce(&mut Processor) -> T) -> T {
        self.processor.exchange_system_state(&mut self.real);
        let result = work(&mut self.processor);
        self.processor.exchange_system_state(&mut self.real);
        result
    }

    /// Lets the clock go on while no guest instruction executes.
    pub(super) fn advance(&mut self, cycles: u64) {
        self.clock += cycles;
        self.processor.advance_clock(cycles);
    }

    /// The monitor works for so many cycles.
    pub(super) fn charge(&mut self, reason: ExitReason, cycles: u64) {
        self.touch(|touched, core| touched.transition(core));
        self.exits.note(reason, cycles);
        self.cycles.monitor += cycles;
        self.advance(cycles);
    }

    /// The monitor works for so many cycles, as part of an exit that was noted already.
    pub(super) fn charge_more(&mut self, cycles: u64) {
        self.cycles.monitor += cycles;
        self.advance(cycles);
    }

    /// Lets time pass in idleness up to `until`, or up to the guest's timer.
    pub(super) fn idle(&mut self, until: Cycle) {
        let timer_ticks = self.processor.ticks_to_timer().unwrap_or(u64::MAX);
        let passed = until.since(self.clock).min(timer_ticks);
        self.cycles.idle += passed;
        self.advance(passed);
    }

    /// Polls for an answer up to `time`.
    pub(super) fn poll_until(&mut self, time: Cycle) {
        let waited = time.since(self.clock);
        self.cycles.polling += waited;
        self.advance(waited);
    }

    /// Does nothing up to `time`, whatever the guest's timer says.
    pub(super) fn wait_until(&mut self, time: Cycle) {
        let waited = time.since(self.clock);
        self.cycles.idle += waited;
        self.advance(waited);
    }

    /// The translation mode as one answer: virtual, physical, or not the same for all references.
    pub(super) fn is_split(&self) -> bool {
        !matches!(self.processor.status & TRANSLATION, 0 | TRANSLATION)
    }

    fn is_physical(&self) -> bool {
        self.processor.status & TRANSLATION == 0
    }

    /// The region register under which an address is shadowed.
    pub(super) fn shadow_region(&self, address: VirtualAddress) -> RegionRegister {
        if self.is_physical() {
            return RegionRegister(u64::from(PHYSICAL_REGION) << 8 | u64::from(PHYSICAL_PAGE_LOG2) << 2 | 1);
        }
        let guest = RegionRegister(self.processor.system.region[address.region()]);
        let size_log2 = if guest.is_valid() {
            guest.size_log2()
        } else {
            PHYSICAL_PAGE_LOG2
        };
        let identifier = guest.identifier() & !PHYSICAL_REGION;
        RegionRegister(u64::from(identifier) << 8 | u64::from(size_log2) << 2 | 1)
    }

    /// Makes the monitor's state fit the guest's.
    fn prepare(&mut self) {
        let guest = self.processor.status;
        let mut status = guest & GUEST_BITS | psr::IC | psr::I | TRANSLATION;
        let level = self.processor.privilege_level();
        status |= match self.virtualization {
            Virtualization::Hardware => psr::VM | u64::from(level) << psr::CPL_SHIFT,
            Virtualization::RingCompression => {
                self.level = level;
                u64::from(compression::real_level(level)) << psr::CPL_SHIFT
            }
        };
        let mut changed = (self.real.status ^ status) & REFERENCE_BITS != 0;
        let mut resized = false;
        for region in 0..8 {
            let wanted = self.shadow_region(VirtualAddress((region as u64) << 61)).0;
            let register = &mut self.real.system.region[region];
            if *register != wanted {
                let same = RegionRegister(*register).identifier() == RegionRegister(wanted).identifier();
                resized |= same && *register != 0;
                *register = wanted;
                changed = true;
            }
        }
        if resized {
            // Pages of another size hash elsewhere: the old ones could come back unnoticed.
            self.shadow.clear();
        }
        if self.real.system.protection_key != self.processor.system.protection_key {
            self.real.system.protection_key = self.processor.system.protection_key;
            changed = true;
        }
        if guest & psr::DB != 0 {
            self.real.system.data_breakpoint = self.processor.system.data_breakpoint;
            self.real.system.instruction_breakpoint = self.processor.system.instruction_breakpoint;
        }
        self.real.status = status;
        let holder = RegionRegister(self.real.system.region[7]).identifier();
        let pin = self.pinned != Some(holder);
        if changed || pin || resized {
            let entry = ShadowTable::pinned(self.owner, self.index, holder);
            self.in_real_state(|processor| {
                if resized {
                    processor.clear_translation_caches();
                }
                if pin {
                    assert!(
                        processor.set_data_translation_register(0, entry),
                        "register 0 exists"
                    );
                }
                processor.forget_references();
            });
            self.pinned = Some(holder);
        }
    }

    /// Executes the guest for at most `cycles`. The processor is left in the guest's state. With an intercepted
    /// instruction comes the page that it was fetched from.
    pub(super) fn run(&mut self, costs: &HostCosts, cycles: u64) -> RunOutcome {
        self.prepare();
        let timer_ticks = self.processor.ticks_to_timer().unwrap_or(u64::MAX);
        // Without a modelled core an instruction is a tick of the timer; with one, a cycle.
        let instructions = costs.instructions_in(cycles).clamp(1, timer_ticks.max(1));
        let cycles = cycles.clamp(1, timer_ticks.max(1));
        self.attention.store(false, Ordering::Relaxed);
        let stack_level = self.stack_level();
        self.set_stack_level(compression::real_level(stack_level));
        self.processor.exchange_system_state(&mut self.real);
        let before = self.processor.instructions_retired();
        let (exit, elapsed) = match (&mut self.guard, &mut self.core) {
            (Some(guard), _) => (guard.run(&mut self.processor, instructions), None),
            (None, Some(core)) => {
                let (exit, elapsed) = core.run(&mut self.processor, cycles);
                (exit, Some(elapsed))
            }
            (None, None) => (self.driver.run(&mut self.processor, instructions), None),
        };
        let exit = match exit {
            Exit::Halted => Exit::Limit,
            exit => exit,
        };
        let needs_page = matches!(exit, Exit::Fault(fault) if super::handle::needs_page(&fault));
        let page = needs_page.then(|| self.processor.code_page());
        self.processor.exchange_system_state(&mut self.real);
        self.set_stack_level(compression::guest_level(self.stack_level(), stack_level));
        let retired = self.processor.instructions_retired() - before;
        self.collect_status();
        match elapsed {
            Some(elapsed) => self.spent(elapsed, retired, timer_ticks),
            None => self.executed(costs, retired, timer_ticks),
        }
        match page {
            Some(Err(fault)) => RunOutcome {
                exit: Exit::Fault(fault),
                page: None,
            },
            Some(Ok(page)) => RunOutcome {
                exit,
                page: Some(page),
            },
            None => RunOutcome { exit, page: None },
        }
    }

    /// The level at which the register stack engine refers to memory (RSC.pl).
    fn stack_level(&self) -> u8 {
        (self.processor.application(RSC) >> rsc::PRIVILEGE_SHIFT & 3) as u8
    }

    /// Has it refer at another level, where levels are moved down: never at the monitor's, whatever the guest's is.
    fn set_stack_level(&mut self, level: u8) {
        if self.virtualization == Virtualization::RingCompression {
            let others = self.processor.application(RSC) & !(3 << rsc::PRIVILEGE_SHIFT);
            self.processor
                .set_application(RSC, others | u64::from(level) << rsc::PRIVILEGE_SHIFT);
        }
    }

    /// Takes over what execution changed in PSR without an exit.
    pub(super) fn collect_status(&mut self) {
        let real = self.real.status;
        let level = (real >> psr::CPL_SHIFT & 3) as u8;
        let level = match self.virtualization {
            Virtualization::Hardware => level,
            Virtualization::RingCompression => compression::guest_level(level, self.level),
        };
        let status = self.processor.status;
        self.processor.status =
            status & !(CHANGED_BITS | psr::CPL) | real & CHANGED_BITS | u64::from(level) << psr::CPL_SHIFT;
    }

    /// Accounts for guest instructions that take what the table says, a tick of each having been counted already.
    pub(super) fn executed(&mut self, costs: &HostCosts, retired: u64, timer_ticks: u64) {
        let cycles = costs.instructions(self.instructions + retired) - costs.instructions(self.instructions);
        let offset = self.processor.application(ITC);
        let drift = cycles.wrapping_sub(retired);
        self.processor.set_application(ITC, offset.wrapping_add(drift));
        self.spent(cycles, retired, timer_ticks);
    }

    /// Accounts for the cycles that guest instructions took, which the interval time counter shows; its timer was due
    /// in `timer_ticks` of them.
    fn spent(&mut self, cycles: u64, retired: u64, timer_ticks: u64) {
        self.instructions += retired;
        self.clock += cycles;
        self.cycles.guest += cycles;
        if cycles >= timer_ticks {
            self.request_timer();
        }
    }

    /// The interval timer has reached its match: requests its interrupt, unless the guest has masked it.
    pub(super) fn request_timer(&self) {
        let vector = self.processor.system.control[usize::from(control::ITV)];
        const MASKED: u64 = 1 << 16;
        if vector & MASKED == 0
            && let Some(interrupts) = self.processor.interrupts()
        {
            interrupts.request(vector as u8);
        }
    }

    /// Enters a translation of the guest into the shadow: the piece of it around `address` that the shadow can hold.
    /// Returns how many cache lines of tables were touched; `None` if the page is no memory of the guest.
    pub(super) fn fill(
        &mut self,
        shared: &Shared,
        address: VirtualAddress,
        side: TranslationSide,
        guest: Option<&TranslationEntry>,
    ) -> Option<u64> {
        let region = self.shadow_region(address);
        let untranslated = PhysicalAddress(address.0 << 1 >> 1);
        let physical = guest.map_or(untranslated, |entry| entry.physical_address(address));
        let holder = shared.memory.region(physical)?;
        if physical >= GUEST_MEMORY_MAX {
            return None;
        }
        let windows = [
            (
                self.requests.page.address(),
                MachineAddress::of_window(self.owner, self.index),
            ),
            (
                self.rings.page.address(),
                MachineAddress::of_rings(self.owner, self.index),
            ),
        ];
        let most = guest
            .map_or(PHYSICAL_PAGE_LOG2, |entry| entry.size_log2)
            .min(region.size_log2());
        let fits = |size_log2: u32| {
            let first = physical.aligned_down(size_log2);
            let has_window = (windows.iter())
                .any(|(page, _)| page.is_some_and(|page| page.aligned_down(size_log2) == first));
            // Code is scanned piece by piece, and what lies beside replaced code is not to exit at every store.
            let is_apart = self.virtualization == Virtualization::Hardware
                || size_log2 <= compression::PIECE_LOG2
                || side == TranslationSide::Data && !shared.replaced.concerns(first, size_log2);
            first >= holder.start
                && first + (1 << size_log2) <= holder.start + holder.size
                && (size_log2 == 12 || !has_window)
                && is_apart
        };
        let sizes = sidestep_ia64::mmu::entry::PAGE_SIZES_LOG2;
        let size_log2 = sizes
            .into_iter()
            .rev()
            .find(|size| *size <= most && fits(*size))?;
        let first = physical.aligned_down(size_log2);
        let window = (windows.into_iter()).find(|(page, _)| *page == Some(first) && size_log2 == 12);
        let machine = match window {
            Some((_, window)) => window,
            None => MachineAddress::of_guest(self.owner, first),
        };
        let entry = TranslationEntry {
            page: address.aligned_down(size_log2),
            region: region.identifier(),
            size_log2,
            physical: machine.on_hardware(),
            ..guest.copied().unwrap_or(PHYSICAL_PAGE)
        };
        let entry = match self.virtualization {
            Virtualization::Hardware => entry,
            Virtualization::RingCompression => {
                let mut entry = compression::compressed(entry);
                match side {
                    TranslationSide::Instruction => {
                        shared.replaced.scan(&shared.memory, first, size_log2);
                    }
                    // Stores to replaced code exit by the dirty bit.
                    TranslationSide::Data => entry.dirty &= !shared.replaced.concerns(first, size_log2),
                }
                entry
            }
        };
        let in_table = size_log2 == region.size_log2() && side == TranslationSide::Data;
        if in_table {
            self.shadow.insert(region, &entry, window.is_none());
        }
        self.in_real_state(|processor| processor.insert_translation(side, entry));
        // The guest's entry and the shadow's; both lie in one line each.
        Some(if in_table { 2 } else { 1 })
    }

    /// Removes what the shadow has of a range of the guest's addresses.
    pub(super) fn purge_shadow(&mut self, purge: GlobalPurge) {
        let identifier = purge.region & !PHYSICAL_REGION;
        let page_size = self.shadow_region(purge.address).size_log2();
        let region = RegionRegister(u64::from(identifier) << 8 | u64::from(page_size) << 2 | 1);
        self.shadow.purge(purge.address, region, purge.size_log2);
        let purge = GlobalPurge {
            region: identifier,
            ..purge
        };
        self.in_real_state(|processor| processor.purge_translations(purge));
    }

    /// Does a global purge that another processor of the guest has asked for: on the guest's translations and the
    /// shadow's.
    pub(super) fn purge_from_outside(&mut self, purge: GlobalPurge) {
        self.processor.purge_translations(purge);
        self.purge_shadow(purge);
    }

    /// Empties shadow and TLB.
    pub(super) fn clear_shadow(&mut self) {
        self.shadow.clear();
        self.in_real_state(Processor::clear_translation_caches);
    }

    /// The guest has put its request page at a guest-physical address, or moved it.
    pub(super) fn set_request_page(&mut self, address: PhysicalAddress) {
        assert!(address.0.is_multiple_of(page::SIZE), "the call has checked it");
        self.requests.page.set_address(Some(address));
        self.clear_shadow();
    }

    /// The guest has put the counts of its interface's rings at a guest-physical address, or has them no longer.
    pub(super) fn set_ring_page(&mut self, address: Option<PhysicalAddress>) {
        self.rings.page.set_address(address);
        self.clear_shadow();
    }
}

/// An instruction and the address for which the shadow was filled.
pub(super) type Filled = ((u64, u8), VirtualAddress);

/// How a run ended.
pub(super) struct RunOutcome {
    pub exit: Exit,
    /// The page of an instruction that was intercepted.
    pub page: Option<sidestep_ia64::HostPage>,
}

/// What physical addressing permits: everything.
const PHYSICAL_PAGE: TranslationEntry =
    TranslationEntry::permissive(VirtualAddress(0), PhysicalAddress(0), PHYSICAL_PAGE_LOG2, 0);
