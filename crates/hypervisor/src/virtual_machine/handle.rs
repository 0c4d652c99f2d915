//! From an exit to what is done about it: the one place that decides.
//!
//! The processor is in the guest's state here. A reference that missed is resolved by the virtual processor: either it
//! has a translation, which goes into the shadow, or it has a fault, which it takes. An intercepted instruction is
//! executed by the virtual processor. Device registers are reached the same way, because the guest's physical memory
//! has the devices in it. Incomplete register frames need nothing special: the frame's state belongs to the processor
//! and not to one of its system states, so the guest's handler finds it as the fault left it.

use sidestep_ia64::encoding::{Effects, Instruction, Operation, PurgeScope};
use sidestep_ia64::execution::FetchedInstruction;
use sidestep_ia64::fault::isr;
use sidestep_ia64::memory::GlobalPurge;
use sidestep_ia64::mmu::vhpt::RegionRegister;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Access, Exit, Fault, FaultKind, HostPage, Reference, TranslationSide, VirtualAddress};
use sidestep_machine::machine::hypercall;

use super::compression;
use super::configuration::Virtualization;
use super::exit::ExitReason;
use super::memory::Shared;
use super::processor::{Filled, RunOutcome, VirtualProcessor};
use crate::costs::{Cost, HostCosts};

/// How many instructions are interpreted before the monitor looks up.
const INTERPRETED_MAX: u64 = 64;

/// A page that holds the original of a replaced instruction while it is executed.
#[repr(align(4096))]
struct OriginalPage([u8; PAGE_SIZE]);
const PAGE_SIZE: usize = 4096;

/// Why the guest was left for an instruction.
fn reason_of(fetched: &FetchedInstruction) -> ExitReason {
    match fetched.instruction() {
        Some(instruction) if reads_interruption(instruction) => ExitReason::InterruptionRegister,
        Some(instruction) => ExitReason::of_operation(&instruction.operation),
        None => ExitReason::Privileged,
    }
}

/// Whether an instruction reads a register that an interruption has written.
fn reads_interruption(instruction: &Instruction) -> bool {
    instruction.operation == Operation::MoveFromControl
        && (control::IPSR..=control::IHA).contains(&instruction.cr3())
}

/// What the virtual machine must do itself after an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    /// Nothing.
    Nothing,
    /// The guest calls the monitor; the instruction pointer is at the `break`.
    Call,
    /// The guest cannot go on: it fetches from where no memory is.
    Failure,
}

/// Whether handling a fault needs the page of its instruction.
pub(super) fn needs_page(fault: &Fault) -> bool {
    match fault.kind {
        FaultKind::Virtualization => true,
        FaultKind::GeneralException => fault.isr & isr::EXECUTE == 0,
        _ => is_reference(fault.kind) && access_of(fault.isr) != Access::Execute && !is_fill_fault(fault),
    }
}

/// Whether the register stack engine met the fault between instructions, so that none is to be executed for it.
fn is_fill_fault(fault: &Fault) -> bool {
    fault.isr & isr::REGISTER_STACK != 0
}

/// Whether the fault is one that a translation, or its lack, decides.
fn is_reference(kind: FaultKind) -> bool {
    let is_refused = matches!(
        kind,
        FaultKind::InstructionKeyMiss
            | FaultKind::DataKeyMiss
            | FaultKind::DirtyBit
            | FaultKind::InstructionAccessBit
            | FaultKind::DataAccessBit
            | FaultKind::PageNotPresent
            | FaultKind::KeyPermission
            | FaultKind::InstructionAccessRights
            | FaultKind::DataAccessRights
            | FaultKind::UnsupportedReference
    );
    is_refused || kind.is_translation_missing()
}

/// The access that an ISR describes.
fn access_of(status: u64) -> Access {
    let (reads, writes) = (status & isr::READ != 0, status & isr::WRITE != 0);
    match () {
        () if status & isr::EXECUTE != 0 => Access::Execute,
        () if status & isr::REGISTER_STACK != 0 && writes => Access::RegisterStackWrite,
        () if status & isr::REGISTER_STACK != 0 => Access::RegisterStackRead,
        () if reads && writes => Access::ReadWrite,
        () if writes => Access::Write,
        () => Access::Read,
    }
}

impl VirtualProcessor {
    /// Does what an exit asks for, and charges for it.
    pub(super) fn handle(&mut self, shared: &Shared, costs: &HostCosts, left: RunOutcome) -> Needed {
        let RunOutcome { exit, page } = left;
        let Exit::Fault(fault) = exit else {
            return Needed::Nothing;
        };
        let filled_before = self.filled_last.take();
        self.rings.open(false);
        match fault.kind {
            FaultKind::Break if self.is_call(&fault) => Needed::Call,
            FaultKind::Break if fault.immediate == compression::REPLACEMENT => {
                self.replaced(shared, costs, fault);
                Needed::Nothing
            }
            FaultKind::Virtualization => self.intercepted(costs, page),
            FaultKind::GeneralException if self.is_compressed_privilege(&fault) => {
                self.intercepted(costs, page)
            }
            kind if is_reference(kind) => self.reference(shared, costs, &fault, page, filled_before),
            _ => {
                self.reflect(costs, fault, ExitReason::Reflected);
                Needed::Nothing
            }
        }
    }

    /// Whether a `break` calls the monitor: at the guest's level 0, as on a machine of its own.
    fn is_call(&self, fault: &Fault) -> bool {
        fault.immediate == hypercall::IMMEDIATE && self.processor.privilege_level() == 0
    }

    /// Whether a fault is only that the guest's level 0 is not the real one.
    fn is_compressed_privilege(&self, fault: &Fault) -> bool {
        let code = fault.isr & isr::CODE & 0xf0;
        self.virtualization == Virtualization::RingCompression
            && self.processor.privilege_level() == 0
            && (code == isr::general_exception::PRIVILEGED_OPERATION
                || code == isr::general_exception::PRIVILEGED_REGISTER)
    }

    /// The guest takes an interruption.
    fn reflect(&mut self, costs: &HostCosts, fault: Fault, reason: ExitReason) {
        self.charge(reason, costs.round_trip() + costs.cycles(Cost::Emulate));
        self.processor.deliver_interruption(fault);
    }

    /// Executes one instruction as the virtual processor; its interruption is the guest's.
    fn execute(&mut self, fetched: &FetchedInstruction) {
        if let Err(fault) = self.execute_shadowed(fetched) {
            self.processor.deliver_interruption(fault);
        }
    }

    /// Executes one instruction as the virtual processor, and does to the shadow what it does to the translations that
    /// the shadow is derived from. Global purges are not among that: they reach every processor by the outbox.
    fn execute_shadowed(&mut self, fetched: &FetchedInstruction) -> Result<(), Fault> {
        let instruction = fetched.instruction();
        let purge = instruction.and_then(|instruction| self.local_purge_of(instruction));
        let before = self.processor.system.region;
        let timer = self.processor.ticks_to_timer().unwrap_or(u64::MAX);
        let retired = self.processor.instructions_retired();
        let result = self.processor.execute_fetched(fetched);
        if self.processor.instructions_retired() - retired >= timer {
            // Its own tick was the one that the timer waited for.
            self.request_timer();
        }
        let changes =
            |instruction: &Instruction| instruction.effects().contains(Effects::CHANGES_TRANSLATIONS);
        match instruction
            .filter(|instruction| changes(instruction))
            .map(|changing| changing.operation)
        {
            None => {}
            Some(Operation::InsertTranslationCache { .. } | Operation::InsertTranslationRegister { .. }) => {
                self.shadow_insertion();
            }
            // A range: below, or by the outbox.
            Some(Operation::PurgeTranslationCache { .. }) => {}
            Some(_) => self.clear_shadow(),
        }
        if let Some((address, size_log2)) = purge.filter(|_| result.is_ok()) {
            self.purge_range(address, size_log2);
        }
        // 23 bits of region identifier exist: a guest that sets the last one does not get it.
        const IDENTIFIER_TOP: u64 = 1 << 31;
        if before != self.processor.system.region {
            for register in &mut self.processor.system.region {
                *register &= !IDENTIFIER_TOP;
            }
        }
        result
    }

    /// The range that an instruction purges, if it is `ptc.l`.
    fn local_purge_of(&self, instruction: &Instruction) -> Option<(VirtualAddress, u32)> {
        let is_local = instruction.operation
            == Operation::PurgeTranslationCache {
                scope: PurgeScope::Local,
            };
        let value = |register| self.processor.general.value(register);
        is_local.then(|| {
            let size_log2 = value(instruction.r2()) >> 2 & 63;
            (VirtualAddress(value(instruction.r3())), size_log2 as u32)
        })
    }

    /// A privileged instruction.
    fn intercepted(&mut self, costs: &HostCosts, page: Option<HostPage>) -> Needed {
        let page = page.expect("an intercepted instruction comes with its page");
        let fetched = self.processor.fetch_from(&page);
        let reason = reason_of(&fetched);
        if reason == ExitReason::InterruptionRegister && self.virtualization == Virtualization::Hardware {
            self.exits.accelerated += 1;
            self.charge_more(costs.cycles(Cost::Accelerated));
        } else {
            self.charge(reason, costs.round_trip() + costs.cycles(Cost::Emulate));
        }
        self.execute(&fetched);
        Needed::Nothing
    }

    /// A `break` that may stand for a replaced instruction: then that one is executed.
    fn replaced(&mut self, shared: &Shared, costs: &HostCosts, fault: Fault) {
        let ip = VirtualAddress(self.processor.instruction_pointer().0);
        let place = match self.processor.resolve_reference(ip, Access::Execute) {
            Ok(Reference::Physical(physical)) => Some(physical),
            Ok(Reference::Translated(entry)) => Some(entry.physical_address(ip)),
            Err(_) => None,
        };
        let Some(original) = place.and_then(|place| shared.replaced.original(place)) else {
            return self.reflect(costs, fault, ExitReason::Reflected);
        };
        let mut copy = OriginalPage([0; PAGE_SIZE]);
        let offset = ip.0 as usize % PAGE_SIZE;
        copy.0[offset..offset + 16].copy_from_slice(&original.to_bytes());
        let page = HostPage {
            start: ip.aligned_down(PAGE_SIZE.ilog2()),
            size_log2: PAGE_SIZE.ilog2(),
            host: copy.0.as_mut_ptr(),
            readable: true,
            writable: false,
            executable: true,
        };
        let fetched = self.processor.fetch_from(&page);
        let reason = reason_of(&fetched);
        self.charge(reason, costs.round_trip() + costs.cycles(Cost::Emulate));
        self.execute(&fetched);
    }

    /// What the guest has inserted replaces what the shadow has of that page.
    fn shadow_insertion(&mut self) {
        let address = VirtualAddress(self.processor.system.control[usize::from(control::IFA)]);
        let size_log2 = (self.processor.system.control[usize::from(control::ITIR)] >> 2 & 63) as u32;
        self.purge_range(address, size_log2.clamp(12, 61));
    }

    /// Removes a range of the guest's current region from the shadow.
    pub(super) fn purge_range(&mut self, address: VirtualAddress, size_log2: u32) {
        let region = self.processor.system.region[address.region()];
        self.purge_shadow(GlobalPurge {
            address,
            region: RegionRegister(region).identifier(),
            size_log2,
            advanced_loads: true,
        });
    }

    /// A reference that the monitor's translations do not permit.
    fn reference(
        &mut self,
        shared: &Shared,
        costs: &HostCosts,
        fault: &Fault,
        page: Option<HostPage>,
        filled_before: Option<Filled>,
    ) -> Needed {
        let access = access_of(fault.isr);
        let address = fault.address;
        if fault.kind == FaultKind::PageNotPresent && self.give_back(costs, address) {
            return Needed::Nothing;
        }
        if fault.isr & (isr::NON_ACCESS | isr::SPECULATIVE) != 0
            && let Some(page) = page
        {
            // The virtual processor knows what a probe answers and which faults are deferred; what it answers from may
            // go into the shadow at the next reference.
            return self.interpret_one(costs, page, ExitReason::ShadowFill);
        }
        let (reference, entry) = match self.processor.resolve_reference(address, access) {
            Err(own) => {
                let kept = fault.isr & !isr::CODE;
                let own = Fault {
                    isr: own.isr & isr::CODE | kept,
                    ..own
                };
                self.reflect(costs, own, ExitReason::PageFault);
                return Needed::Nothing;
            }
            Ok(Reference::Physical(physical)) => (physical, None),
            Ok(Reference::Translated(entry)) => (entry.physical_address(address), Some(entry)),
        };
        if fault.kind == FaultKind::UnsupportedReference
            && access.writes()
            && self.rings.holds(reference)
            && self.store_to_rings(costs, page)
        {
            return Needed::Nothing;
        }
        let side = match access {
            Access::Execute => TranslationSide::Instruction,
            _ => TranslationSide::Data,
        };
        let place = (self.processor.instruction_pointer(), address);
        if filled_before == Some(place)
            && let Some(page) = page
        {
            // The entry is there and does not suffice: the real levels grant less than the guest's, or the page holds
            // replaced instructions, of which none may be left unnoticed.
            let needed = self.interpret_one(costs, page, ExitReason::Interpreted);
            if access.writes() && self.virtualization == Virtualization::RingCompression {
                self.clear_shadow();
            }
            return needed;
        }
        match self.fill(shared, address, side, entry.as_ref()) {
            Some(lines) => {
                self.filled_last = Some(place);
                self.touch_shadow(address);
                let work = lines * costs.cycles(Cost::CacheLine);
                self.charge(ExitReason::ShadowFill, costs.round_trip() + work);
                if side == TranslationSide::Data {
                    self.note_fill(costs, reference);
                }
                Needed::Nothing
            }
            None if access == Access::Execute || shared.memory.region(reference).is_some() => Needed::Failure,
            None => match page {
                Some(page) if shared.is_doorbell(reference) => {
                    let fetched = self.processor.fetch_from(&page);
                    self.execute(&fetched);
                    Needed::Nothing
                }
                Some(page) => self.interpret_one(costs, page, ExitReason::Device),
                // The register stack in a device: the machine has no meaning for it.
                None => Needed::Failure,
            },
        }
    }

    /// Lets the guest make a store to the page that its card polls, alone and at its time; it costs what a store to
    /// memory costs. The register stack engine's stores have no instruction: then the next run makes them.
    fn store_to_rings(&mut self, costs: &HostCosts, page: Option<HostPage>) -> bool {
        self.rings.open(true);
        let Some(page) = page else {
            return true;
        };
        let fetched = self.processor.fetch_from(&page);
        let before = self.processor.instructions_retired();
        let stored = self.in_real_state(|processor| processor.execute_fetched(&fetched));
        self.rings.open(false);
        self.collect_status();
        let retired = self.processor.instructions_retired() - before;
        self.executed(costs, retired, u64::MAX);
        stored.is_ok()
    }

    fn interpret_one(&mut self, costs: &HostCosts, page: HostPage, reason: ExitReason) -> Needed {
        self.charge(reason, costs.round_trip() + costs.cycles(Cost::Emulate));
        let fetched = self.processor.fetch_from(&page);
        self.execute(&fetched);
        Needed::Nothing
    }

    /// Interprets the guest as long as its references are translated differently from each other.
    pub(super) fn interpret(&mut self, shared: &Shared, costs: &HostCosts) -> Needed {
        let mut count = 0;
        let before = self.processor.instructions_retired();
        let mut needed = Needed::Nothing;
        while self.is_split() && count < INTERPRETED_MAX && needed == Needed::Nothing {
            if self.halts() {
                break;
            }
            count += 1;
            let outcome = match self.processor.code_page() {
                Ok(page) => {
                    let fetched = self.processor.fetch_from(&page);
                    self.execute_shadowed(&fetched)
                }
                Err(fault) => Err(fault),
            };
            match outcome {
                Ok(()) => {}
                Err(fault) if fault.kind == FaultKind::Break && self.is_call(&fault) => needed = Needed::Call,
                Err(fault)
                    if fault.kind == FaultKind::Break && fault.immediate == compression::REPLACEMENT =>
                {
                    self.replaced(shared, costs, fault);
                }
                Err(fault) => self.processor.deliver_interruption(fault),
            }
            self.interpreted();
        }
        if count == 0 {
            return needed;
        }
        self.exits.note(ExitReason::Interpreted, costs.round_trip());
        let retired = self.processor.instructions_retired() - before;
        self.executed(costs, retired, u64::MAX);
        self.charge_more(costs.round_trip() + count * costs.cycles(Cost::Emulate));
        needed
    }

    /// Lets the guest take the external interrupt that is due.
    pub(super) fn inject(&mut self) {
        if self.processor.status & psr::I != 0 && self.processor.has_deliverable_interrupt() {
            self.processor.deliver_external();
        }
    }
}
