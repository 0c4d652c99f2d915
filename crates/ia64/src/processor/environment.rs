//! What is behind a processor's addresses: an environment that knows virtual memory (a program without a
//! kernel), or the processor's own MMU over physical memory (system mode).

use std::sync::Arc;

use crate::address::VirtualAddress;
use crate::fault::{Access, Fault, FaultKind};
use crate::interrupts::Interrupts;
use crate::memory::physical::SharedPhysicalMemory;
use crate::memory::tlb::TranslationCache;
use crate::memory::windows::WindowTable;
use crate::memory::{AddressSpace, GlobalPurge, HostPage, Refusal};
use crate::mmu::Mmu;
use crate::mmu::entry::TranslationEntry;
use crate::mmu::vhpt::RegionRegister;
use crate::processor::execution::{BLOCK_SIZE_MAX, CodeProperties, HOST_PAGE_LOG2};
use crate::processor::translation::Translated;
use crate::processor::virtualization::TranslationSide;
use crate::processor::{Processor, pending};
use crate::registers::status::psr;

/// Where references go.
pub(crate) enum Environment {
    /// An address space resolves virtual addresses.
    Program(Arc<dyn AddressSpace>),
    /// The MMU translates to physical addresses.
    System(Box<SystemMode>),
}

/// What a processor in system mode has beside its registers.
pub(crate) struct SystemMode {
    pub memory: SharedPhysicalMemory,
    pub mmu: Mmu,
    pub interrupts: Arc<Interrupts>,
    /// The immediate of a `break` at level 0 that is a call to the environment.
    pub hypercall: Option<u64>,
    /// Whether a monitor outside the processor handles its interruptions.
    pub monitored: bool,
    /// Software TLBs of the contexts that are not current, by [`Processor::context`].
    parked: [Option<Box<TranslationCache>>; CONTEXTS],
    current: usize,
    /// What the page that instructions come from means for them.
    pub code: CodeProperties,
}

/// Contexts whose software TLBs are kept apart: physical addressing, and the four privilege levels.
const CONTEXTS: usize = 5;

impl SystemMode {
    pub(crate) fn new(memory: SharedPhysicalMemory) -> SystemMode {
        SystemMode {
            memory,
            mmu: Mmu::default(),
            interrupts: Arc::default(),
            hypercall: None,
            monitored: false,
            parked: [const { None }; CONTEXTS],
            current: 0,
            code: CodeProperties::default(),
        }
    }
}

impl Environment {
    /// Whether the processor is in system mode.
    pub(crate) fn system(&self) -> Option<&SystemMode> {
        match self {
            Environment::System(system) => Some(system),
            Environment::Program(_) => None,
        }
    }

    /// Where data lie in the host's memory under a processor status, as far as they lie there as in the guest's. In
    /// big-endian order, and with data breakpoints, each access is looked at.
    pub(crate) fn windows(&self, status: u64) -> WindowTable {
        let windows = match self {
            Environment::Program(space) if status & (psr::BE | psr::DB) == 0 => space.windows(),
            _ => None,
        };
        windows.into()
    }

    pub(crate) fn system_mut(&mut self) -> Option<&mut SystemMode> {
        match self {
            Environment::System(system) => Some(system),
            Environment::Program(_) => None,
        }
    }

    /// Tells the other processors that instructions at `address` may have changed.
    pub(crate) fn instructions_changed(&self, address: u64) {
        match self {
            Environment::Program(space) => space.instructions_changed(VirtualAddress(address)),
            Environment::System(system) => system.memory.instructions_changed(),
        }
    }

    /// Tells that the block which begins at this host address may be decoded.
    pub(crate) fn instructions_read(&self, host: u64) {
        if let Environment::System(system) = self {
            for page in host >> HOST_PAGE_LOG2..=(host + BLOCK_SIZE_MAX - 1) >> HOST_PAGE_LOG2 {
                system.memory.instructions_read(page);
            }
        }
    }

    /// Whether other processors use the same memory.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Environment::Program(space) => space.is_shared(),
            Environment::System(_) => true,
        }
    }
}

impl Processor {
    /// Finds what is behind a guest address for an access.
    pub(crate) fn locate(&mut self, address: u64, access: Access) -> Result<Translated, Fault> {
        let address = VirtualAddress(address);
        match &self.environment {
            Environment::Program(space) => match space.resolve(address, access) {
                Ok(page) => Ok(Translated::Memory(page)),
                Err(refusal) => Err(refused(refusal, access, address)),
            },
            Environment::System(_) => self.translate(address, access, self.purpose(access)),
        }
    }

    /// The MMU; there is one in system mode only.
    pub(crate) fn mmu_mut(&mut self) -> &mut Mmu {
        &mut self.environment.system_mut().expect("system mode").mmu
    }

    /// Physical memory; there is one in system mode only.
    pub(crate) fn physical_memory(&self) -> &SharedPhysicalMemory {
        &self.environment.system().expect("system mode").memory
    }

    /// Whether the code page defers speculative faults.
    pub(crate) fn fetches_with_deferral(&self) -> bool {
        self.environment
            .system()
            .is_some_and(|system| system.code.deferral)
    }

    /// Notes what the page of the instruction pointer means for its instructions.
    pub(crate) fn note_code_page(&mut self) -> CodeProperties {
        let translated = self.status & psr::IT != 0;
        let ip = VirtualAddress(self.ip);
        let region = self.region_register(ip).identifier();
        let Environment::System(system) = &mut self.environment else {
            return CodeProperties::default();
        };
        let entry = if translated {
            system.mmu.instruction.find(ip, region)
        } else {
            None
        };
        system.code = CodeProperties {
            deferral: entry.is_some_and(|entry| entry.deferral),
            gate_level: entry.and_then(TranslationEntry::gate_level),
        };
        system.code
    }

    /// Makes `break immediate` at privilege level 0 end [`Processor::run`] instead of interrupting the guest.
    /// A program's processor has no such calls: all its `break`s end `run`.
    pub fn set_hypercall(&mut self, immediate: u64) {
        if let Environment::System(system) = &mut self.environment {
            system.hypercall = Some(immediate);
        }
    }

    /// Whether a fault is a call to the environment.
    pub(crate) fn is_hypercall(&self, fault: &Fault) -> bool {
        fault.kind == FaultKind::Break
            && self.privilege_level() == 0
            && self
                .environment
                .system()
                .is_some_and(|system| system.hypercall == Some(fault.immediate))
    }

    /// Which software TLB serves data references now.
    fn context(&self) -> usize {
        if self.status & psr::DT == 0 {
            0
        } else {
            1 + usize::from(self.privilege_level())
        }
    }

    /// Switches to the software TLB of the current context; to be called when PSR.dt or PSR.cpl has changed.
    pub(crate) fn context_changed(&mut self) {
        let context = self.context();
        let Environment::System(system) = &mut self.environment else {
            return;
        };
        if system.current != context {
            let next = system.parked[context].take().unwrap_or_default();
            let previous = std::mem::replace(&mut self.translations, next);
            system.parked[system.current] = Some(previous);
            system.current = context;
        }
    }

    /// Forgets what the software TLBs know; to be called when a translation or a right to use one has changed.
    pub(crate) fn translations_changed(&mut self) {
        self.flush_data_translations();
        if let Environment::System(system) = &mut self.environment {
            for parked in system.parked.iter_mut().flatten() {
                parked.flush();
            }
        }
        self.pending |= pending::CODE_PAGE;
    }

    /// Forgets what the software TLBs know of one region; to be called when its identifier has changed.
    pub(crate) fn region_changed(&mut self, region: usize) {
        self.translations.forget_region(region);
        if let Environment::System(system) = &mut self.environment {
            for parked in system.parked.iter_mut().flatten() {
                parked.forget_region(region);
            }
        }
        self.stale_code_regions |= 1 << region;
        self.pending |= pending::CODE_CONTEXT;
    }

    /// Inserts a translation into the cache of one side; what it replaces is forgotten everywhere.
    ///
    /// # Panics
    /// If the processor is not in system mode.
    pub fn insert_translation(&mut self, side: TranslationSide, entry: TranslationEntry) {
        self.change_caches(|mmu, removed| match side {
            TranslationSide::Instruction => mmu.instruction.insert(entry, |entry| removed(side, entry)),
            TranslationSide::Data => mmu.data.insert(entry, |entry| removed(side, entry)),
        });
    }

    /// Empties this processor's translation caches, as `ptc.e` does.
    ///
    /// # Panics
    /// If the processor is not in system mode.
    pub fn empty_translation_caches(&mut self) {
        let Environment::System(system) = &mut self.environment else {
            panic!("system mode");
        };
        system.mmu.instruction.clear_cache();
        system.mmu.data.clear_cache();
        self.translations_changed();
    }

    /// Purges a range from this processor's translation caches, as `ptc.l` does and a global purge of another
    /// processor.
    pub fn purge_translations(&mut self, purge: GlobalPurge) {
        let GlobalPurge {
            address,
            region,
            size_log2,
            advanced_loads,
        } = purge;
        self.change_caches(|mmu, removed| {
            mmu.events.purges += 1;
            mmu.instruction.purge_cache(address, region, size_log2, |entry| {
                removed(TranslationSide::Instruction, entry)
            });
            mmu.data.purge_cache(address, region, size_log2, |entry| {
                removed(TranslationSide::Data, entry)
            });
        });
        if advanced_loads {
            self.advanced_loads.clear();
        }
    }

    /// Changes the translation caches and forgets what has been looked up in the entries that this removes.
    fn change_caches(
        &mut self,
        change: impl FnOnce(&mut Mmu, &mut dyn FnMut(TranslationSide, &TranslationEntry)),
    ) {
        let Environment::System(system) = &mut self.environment else {
            panic!("system mode");
        };
        let SystemMode { mmu, parked, .. } = &mut **system;
        let (translations, pending) = (&mut self.translations, &mut self.pending);
        let stale_code_regions = &mut self.stale_code_regions;
        let regions = &self.system.region;
        change(mmu, &mut |side, entry| {
            if side == TranslationSide::Instruction {
                *stale_code_regions |= 1 << entry.page.region();
                *pending |= pending::CODE_CONTEXT;
                return;
            }
            // An entry of another region identifier was not in use.
            let region = RegionRegister(regions[entry.page.region()]);
            if region.identifier() == entry.region {
                translations.forget(entry.page.0, entry.size_log2);
                for parked in parked.iter_mut().flatten() {
                    parked.forget(entry.page.0, entry.size_log2);
                }
            }
        });
    }

    /// Forgets every software TLB, of whatever memory, and uses that of the current context.
    pub(crate) fn restart_translations(&mut self) {
        let context = self.context();
        self.flush_data_translations();
        if let Environment::System(system) = &mut self.environment {
            system.parked = [const { None }; CONTEXTS];
            system.current = context;
        }
        self.pending |= pending::CODE_PAGE;
    }

    /// Whether references of the register stack engine follow the rules of data references, so that the same
    /// software TLB serves them.
    pub(crate) fn shares_data_context(&self) -> bool {
        match self.environment {
            Environment::Program(_) => true,
            Environment::System(_) => self.purpose(Access::RegisterStackRead) == self.purpose(Access::Read),
        }
    }
}

/// The fault for an address space's refusal.
fn refused(refusal: Refusal, access: Access, address: VirtualAddress) -> Fault {
    let kind = match (refusal, access) {
        (Refusal::NotPresent, _) => FaultKind::PageNotPresent,
        (Refusal::AccessRights, Access::Execute) => FaultKind::InstructionAccessRights,
        (Refusal::AccessRights, _) => FaultKind::DataAccessRights,
        (Refusal::Unimplemented, _) => {
            let mut fault = Fault::reserved_register_field();
            fault.isr |= access.isr();
            fault.address = address;
            return fault;
        }
    };
    Fault::reference(kind, access, address)
}

/// A page that may not be executed, for the fault of a fetch.
pub(crate) fn not_executable(page: &HostPage, address: u64) -> Option<Fault> {
    (!page.executable).then(|| refused(Refusal::AccessRights, Access::Execute, VirtualAddress(address)))
}
