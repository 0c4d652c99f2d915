//! What a virtual-machine monitor outside the processor needs of it.
//!
//! Under a monitor, a processor executes a guest in its own (*real*) system state: PSR.vm or a lower privilege level,
//! the monitor's region identifiers, translations of the monitor's making. The guest's *virtual* system state is a
//! [`SystemState`]: a second set of everything that system instructions read and change, with the memory that the
//! guest takes for physical. The registers that programs see are not part of it; the guest uses the processor's.
//!
//! - [`Processor::set_monitored`] makes every interruption end [`Processor::run`].
//! - [`Processor::exchange_system_state`] swaps the two states. While they are swapped the processor *is* the
//!   virtual processor: translating, delivering an interruption, or executing an instruction then do what the guest's
//!   own processor would do, by the same code.
//! - [`Processor::fetch_from`] and [`Processor::execute_fetched`] execute one instruction from a given page: an
//!   intercepted one, in the virtual state.
//!
//! Rules. The states are exchanged for as long as an operation takes and then exchanged back; bits of PSR that guests
//! change without help of the monitor are the monitor's to carry over.

use crate::address::{PhysicalAddress, VirtualAddress};
use crate::fault::{Access, Fault};
use crate::interrupts::Interrupts;
use crate::memory::HostPage;
use crate::memory::physical::SharedPhysicalMemory;
use crate::memory::tlb::TranslationCache;
use crate::mmu::Mmu;
use crate::mmu::entry::TranslationEntry;
use crate::processor::environment::{Environment, SystemMode};
use crate::processor::execution::Exit;
use crate::processor::{Processor, pending};
use crate::registers::system::SystemRegisters;
use std::sync::Arc;

/// The system state of a virtual processor.
pub struct SystemState {
    /// The processor status register.
    pub status: u64,
    /// Control, region, protection key, debug and performance-monitor registers.
    pub system: Box<SystemRegisters>,
    environment: Environment,
    translations: Box<TranslationCache>,
}

impl SystemState {
    /// The state after reset, on the memory that the virtual processor takes for physical.
    pub fn new(memory: SharedPhysicalMemory) -> SystemState {
        SystemState {
            status: 0,
            system: Box::default(),
            environment: Environment::System(Box::new(SystemMode::new(memory))),
            translations: Box::default(),
        }
    }

    fn system_mode(&self) -> &SystemMode {
        self.environment.system().expect("a system state")
    }

    /// The external interrupts of the virtual processor.
    pub fn interrupts(&self) -> Arc<Interrupts> {
        Arc::clone(&self.system_mode().interrupts)
    }

    /// Its translations.
    pub fn mmu(&self) -> &Mmu {
        &self.system_mode().mmu
    }
}

/// Where a reference of a virtual processor ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Addresses are physical.
    Physical(PhysicalAddress),
    /// Translated by an entry that permits the access.
    Translated(TranslationEntry),
}

/// Which translations an insertion concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslationSide {
    /// Instruction fetches.
    Instruction,
    /// Data references, and those of the register stack engine.
    Data,
}

impl Processor {
    /// Makes every interruption of a processor in system mode end [`run`](Self::run) as a fault that has changed
    /// nothing; its interval timer and external interrupts rest.
    pub fn set_monitored(&mut self, monitored: bool) {
        if let Some(system) = self.environment.system_mut() {
            system.monitored = monitored;
        }
    }

    /// Runs a monitored processor: nothing is delivered.
    pub(crate) fn run_monitored(
        &mut self,
        end: u64,
        run_until: &mut impl FnMut(&mut Processor, u64) -> Exit,
    ) -> Exit {
        loop {
            match run_until(self, end) {
                // Something was pending before the next block, or a signal that concerns nobody.
                Exit::Attention if !self.wants_attention() => {
                    if let Some(interrupts) = self.interrupts() {
                        interrupts.take_signal();
                    }
                }
                exit => return exit,
            }
        }
    }

    /// Swaps this processor's system state with another one.
    pub fn exchange_system_state(&mut self, other: &mut SystemState) {
        std::mem::swap(&mut self.status, &mut other.status);
        std::mem::swap(&mut self.system, &mut other.system);
        std::mem::swap(&mut self.environment, &mut other.environment);
        std::mem::swap(&mut self.translations, &mut other.translations);
        self.context_changed();
        self.pending |= pending::CODE_PAGE;
    }

    /// Takes an interruption at the instruction pointer: collects its state and goes to its vector.
    pub fn deliver_interruption(&mut self, fault: Fault) {
        self.take_interruption(fault);
    }

    /// Takes the external interrupt that is due, if PSR.i and priorities admit one. Whether it did.
    pub fn deliver_external(&mut self) -> bool {
        let place = self.instruction_pointer();
        self.deliver_external_interrupt();
        self.instruction_pointer() != place
    }

    /// Where a reference ends under the processor's current system state, or the fault that it meets; the fault of the
    /// highest priority, with everything that its handler is to find.
    pub fn resolve_reference(&mut self, address: VirtualAddress, access: Access) -> Result<Reference, Fault> {
        let purpose = self.purpose(access);
        if !purpose.translated {
            // Bit 63 of a physical address chooses the memory attribute.
            return Ok(Reference::Physical(PhysicalAddress(address.0 << 1 >> 1)));
        }
        let entry = self.translation(address, access)?;
        self.check_entry(&entry, address, access, purpose.level)?;
        Ok(Reference::Translated(entry))
    }

    /// Sets a translation register of the data side; false if there is no such register.
    ///
    /// # Panics
    /// If the processor is not in system mode.
    pub fn set_data_translation_register(&mut self, index: usize, entry: TranslationEntry) -> bool {
        let set = self.mmu_mut().data.set_register(index, entry);
        self.translations_changed();
        set
    }

    /// Empties the translation caches; translation registers stay.
    ///
    /// # Panics
    /// If the processor is not in system mode.
    pub fn clear_translation_caches(&mut self) {
        let mmu = self.mmu_mut();
        mmu.instruction.clear_cache();
        mmu.data.clear_cache();
        self.translations_changed();
    }

    /// The host memory that the bundle at the instruction pointer is fetched from, after the current frame is complete.
    pub fn code_page(&mut self) -> Result<HostPage, Fault> {
        let page = self
            .complete_frame()
            .and_then(|()| self.resolve_instructions(self.ip));
        let page = self.outcome(page)?;
        self.pending &= !pending::FRAME_INCOMPLETE;
        self.note_code_page();
        Ok(page)
    }

    /// Forgets what the processor has looked up; to be called when registers that decide on references were changed
    /// from outside.
    pub fn forget_references(&mut self) {
        self.translations_changed();
    }
}
