//! Region and protection key registers, insertions and purges of translations, probes, and the instructions
//! that show the page table.

use crate::address::VirtualAddress;
use crate::encoding::{ProbeAccess, PurgeScope, Side, Source};
use crate::fault::{Access, Fault, FaultKind, isr};
use crate::memory::GlobalPurge;
use crate::mmu::entry::TranslationEntry;
use crate::mmu::vhpt::{PageTableAddress, RegionRegister, hash, tag};
use crate::processor::execution::{Flow, MicroOperation, Step};
use crate::processor::translation::Purpose;
use crate::processor::virtualization::TranslationSide;
use crate::processor::{Processor, Raised};
use crate::registers::status::psr;
use crate::registers::system::control;

use super::super::frequent::{Handler, call};
use super::{require_privilege, source};

/// ISR.code of a fault of `tpa`.
const ISR_CODE_TRANSLATE: u64 = 0;
/// ISR.code of a fault of `probe`.
const ISR_CODE_PROBE: u64 = 2;
/// ISR.code of a fault of `tak`.
const ISR_CODE_KEY: u64 = 3;
/// ISR.code of a fault of `probe.fault`.
const ISR_CODE_PROBE_FAULT: u64 = 5;

pub(in crate::processor::semantics) fn insert_cache_handler(side: Side) -> Handler {
    call(match side {
        Side::Data => insert_cache::<false>,
        Side::Instruction => insert_cache::<true>,
    })
}

pub(in crate::processor::semantics) fn insert_register_handler(side: Side) -> Handler {
    call(match side {
        Side::Data => insert_register::<false>,
        Side::Instruction => insert_register::<true>,
    })
}

pub(in crate::processor::semantics) fn purge_cache_handler(scope: PurgeScope) -> Handler {
    call(match scope {
        PurgeScope::Local => purge_local,
        PurgeScope::Global => purge_global::<false>,
        PurgeScope::GlobalAlat => purge_global::<true>,
    })
}

pub(in crate::processor::semantics) fn purge_register_handler(side: Side) -> Handler {
    call(match side {
        Side::Data => purge_register::<false>,
        Side::Instruction => purge_register::<true>,
    })
}

pub(in crate::processor::semantics) fn probe_handler(access: ProbeAccess, level: Source) -> Handler {
    call(match (access, level) {
        (ProbeAccess::Read, Source::Register) => probe::<false, true>,
        (ProbeAccess::Read, Source::Immediate) => probe::<false, false>,
        (ProbeAccess::Write | ProbeAccess::ReadWrite, Source::Register) => probe::<true, true>,
        (ProbeAccess::Write | ProbeAccess::ReadWrite, Source::Immediate) => probe::<true, false>,
    })
}

pub(in crate::processor::semantics) fn probe_fault_handler(access: ProbeAccess) -> Handler {
    call(match access {
        ProbeAccess::Read => probe_fault::<true, false>,
        ProbeAccess::Write => probe_fault::<false, true>,
        ProbeAccess::ReadWrite => probe_fault::<true, true>,
    })
}

/// The region register that the virtual address in r3 chooses.
pub(super) fn from_region(processor: &mut Processor, operation: &MicroOperation) -> Step {
    require_privilege(processor)?;
    let address = source(processor, operation.r3, 0)?;
    processor
        .general
        .set(operation.r1, processor.region_register(VirtualAddress(address)).0);
    Ok(Flow::Next)
}

pub(super) fn to_region(processor: &mut Processor, operation: &MicroOperation) -> Step {
    require_privilege(processor)?;
    let address = source(processor, operation.r3, 0)?;
    let value = source(processor, operation.r2, 0)?;
    if !RegionRegister(value).is_valid() {
        return Err(processor.raise(Fault::reserved_register_field()));
    }
    let region = VirtualAddress(address).region();
    if processor.system.region[region] != value {
        processor.system.region[region] = value;
        processor.region_changed(region);
    }
    Ok(Flow::Next)
}

pub(super) fn from_protection_key(processor: &mut Processor, operation: &MicroOperation) -> Step {
    require_privilege(processor)?;
    let index = (source(processor, operation.r3, 0)? & 0xff) as usize;
    let Some(&value) = processor.system.protection_key.get(index) else {
        return Err(processor.raise(Fault::reserved_register_field()));
    };
    processor.general.set(operation.r1, value);
    Ok(Flow::Next)
}

/// Writing a valid key invalidates another register that holds it.
pub(super) fn to_protection_key(processor: &mut Processor, operation: &MicroOperation) -> Step {
    require_privilege(processor)?;
    let index = (source(processor, operation.r3, 0)? & 0xff) as usize;
    let value = source(processor, operation.r2, 0)?;
    if index >= processor.system.protection_key.len() || value & 0xf0 != 0 || value >> 32 != 0 {
        return Err(processor.raise(Fault::reserved_register_field()));
    }
    const VALID: u64 = 1;
    if value & VALID != 0 {
        for register in &mut processor.system.protection_key {
            if *register >> 8 == value >> 8 {
                *register &= !VALID;
            }
        }
    }
    processor.system.protection_key[index] = value;
    processor.translations_changed();
    Ok(Flow::Next)
}

/// The translation that IFA, ITIR and r2 describe, for an insertion.
fn inserted(processor: &mut Processor, operation: &MicroOperation) -> Result<TranslationEntry, Raised> {
    require_privilege(processor)?;
    if processor.status & psr::IC != 0 {
        return Err(processor.raise(Fault::illegal_operation()));
    }
    let pte = source(processor, operation.r2, 0)?;
    let address = VirtualAddress(processor.system.control[usize::from(control::IFA)]);
    let itir = processor.system.control[usize::from(control::ITIR)];
    let region = processor.region_register(address).identifier();
    TranslationEntry::new(address, region, pte, itir)
        .map_err(|_| processor.raise(Fault::reserved_register_field()))
}

fn insert_cache<const INSTRUCTION: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let entry = inserted(processor, operation)?;
    let mmu = processor.system_mmu()?;
    mmu.events.software_insertions += 1;
    let side = if INSTRUCTION {
        TranslationSide::Instruction
    } else {
        TranslationSide::Data
    };
    processor.insert_translation(side, entry);
    Ok(Flow::Next)
}

fn insert_register<const INSTRUCTION: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let entry = inserted(processor, operation)?;
    let index = (source(processor, operation.r3, 0)? & 0xff) as usize;
    let mmu = processor.system_mmu()?;
    let buffer = if INSTRUCTION {
        &mut mmu.instruction
    } else {
        &mut mmu.data
    };
    if !buffer.set_register(index, entry) {
        return Err(processor.raise(Fault::reserved_register_field()));
    }
    processor.translations_changed();
    Ok(Flow::Next)
}

/// The page that a purge names: address in r3, size in bits 7 to 2 of r2.
fn purged(processor: &mut Processor, operation: &MicroOperation) -> Result<GlobalPurge, Raised> {
    require_privilege(processor)?;
    let address = VirtualAddress(source(processor, operation.r3, 0)?);
    let size_log2 = (source(processor, operation.r2, 0)? >> 2 & 63) as u32;
    if !(12..=61).contains(&size_log2) {
        return Err(processor.raise(Fault::reserved_register_field()));
    }
    let region = processor.region_register(address).identifier();
    Ok(GlobalPurge {
        address,
        region,
        size_log2,
        advanced_loads: false,
    })
}

fn purge_local(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let purge = purged(processor, operation)?;
    processor.system_mmu()?;
    processor.purge_translations(purge);
    Ok(Flow::Next)
}

fn purge_global<const ADVANCED_LOADS: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let purge = GlobalPurge {
        advanced_loads: ADVANCED_LOADS,
        ..purged(processor, operation)?
    };
    processor.system_mmu()?;
    processor.purge_translations(purge);
    for others in processor.physical_memory().purge_others(purge) {
        processor.purge_translations(others);
    }
    Ok(Flow::Next)
}

/// `ptc.e` empties the whole cache, in one step for any address.
pub(in crate::processor::semantics) fn purge_everything(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    require_privilege(processor)?;
    source(processor, operation.r3, 0)?;
    processor.system_mmu()?.events.purges += 1;
    processor.empty_translation_caches();
    Ok(Flow::Next)
}

fn purge_register<const INSTRUCTION: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let purge = purged(processor, operation)?;
    let mmu = processor.system_mmu()?;
    mmu.events.purges += 1;
    let buffer = if INSTRUCTION {
        &mut mmu.instruction
    } else {
        &mut mmu.data
    };
    buffer.purge_all(purge.address, purge.region, purge.size_log2);
    processor.translations_changed();
    Ok(Flow::Next)
}

/// `probe`: whether an access at a privilege level, no more privileged than the current one, is permitted.
fn probe<const WRITE: bool, const REGISTER: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    let non_access = isr::NON_ACCESS | ISR_CODE_PROBE;
    let address = source(processor, operation.r3, non_access)?;
    let level = if REGISTER {
        source(processor, operation.r2, non_access)?
    } else {
        operation.immediate
    };
    let level = (level & 3).max(u64::from(processor.privilege_level())) as u8;
    let access = if WRITE { Access::Write } else { Access::Read };
    let allowed = match processor.probe(VirtualAddress(address), access, level) {
        Ok(()) => true,
        Err(fault) if is_refusal(fault.kind) => false,
        Err(fault) => {
            return Err(processor.raise(Fault {
                isr: fault.isr | non_access,
                ..fault
            }));
        }
    };
    processor.general.set(operation.r1, u64::from(allowed));
    Ok(Flow::Next)
}

/// Whether a fault means that the page is there but not for this access, which `probe` answers with 0.
fn is_refusal(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::DataAccessRights
            | FaultKind::KeyPermission
            | FaultKind::DirtyBit
            | FaultKind::DataAccessBit
    )
}

/// `probe.fault`: raises the faults that the access would.
fn probe_fault<const READ: bool, const WRITE: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    let non_access = isr::NON_ACCESS | ISR_CODE_PROBE_FAULT;
    let address = source(processor, operation.r3, non_access)?;
    let level = (operation.immediate & 3).max(u64::from(processor.privilege_level())) as u8;
    let access = match (READ, WRITE) {
        (true, true) => Access::ReadWrite,
        (false, _) => Access::Write,
        (true, false) => Access::Read,
    };
    let probed = processor.probe(VirtualAddress(address), access, level);
    let watched = probed.and_then(|()| {
        let checked = processor.check_data_breakpoints(address, 1, access);
        processor.outcome(checked)
    });
    match watched {
        Ok(()) => Ok(Flow::Next),
        Err(fault) => Err(processor.raise(Fault {
            isr: fault.isr | non_access,
            ..fault
        })),
    }
}

pub(in crate::processor::semantics) fn translation_hash(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    page_table(processor, operation, |address, region, table| {
        hash(address, region, table).0
    })
}

pub(in crate::processor::semantics) fn translation_tag(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    page_table(processor, operation, |address, region, _| tag(address, region))
}

/// `thash` and `ttag`: unprivileged, but intercepted in a virtual machine; the result of a NaT is NaT.
fn page_table(
    processor: &mut Processor,
    operation: &MicroOperation,
    function: fn(VirtualAddress, RegionRegister, PageTableAddress) -> u64,
) -> Step {
    if processor.status & psr::VM != 0 {
        return Err(processor.raise(Fault::new(FaultKind::Virtualization, 0)));
    }
    let address = VirtualAddress(processor.general.value(operation.r3));
    let nat = processor.general.nat(operation.r3);
    let table = PageTableAddress(processor.system.control[usize::from(control::PTA)]);
    let result = function(address, processor.region_register(address), table);
    processor.general.set_with_nat(operation.r1, result, nat);
    Ok(Flow::Next)
}

pub(in crate::processor::semantics) fn translate_to_physical(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    require_privilege(processor)?;
    let non_access = isr::NON_ACCESS | ISR_CODE_TRANSLATE;
    let address = VirtualAddress(source(processor, operation.r3, non_access)?);
    processor.system_mmu()?;
    let entry = processor.translation(address, Access::Read);
    let present = entry.and_then(|entry| {
        if entry.present {
            Ok(entry)
        } else {
            Err(Fault::reference(FaultKind::PageNotPresent, Access::Read, address))
        }
    });
    match present {
        Ok(entry) => processor
            .general
            .set(operation.r1, entry.physical_address(address).0),
        Err(fault) => {
            let isr = fault.isr & !Access::Read.isr() | non_access;
            return Err(processor.raise(Fault { isr, ..fault }));
        }
    }
    Ok(Flow::Next)
}

/// `tak`: the protection key of a page, or 1 if there is no translation.
pub(in crate::processor::semantics) fn translation_access_key(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    require_privilege(processor)?;
    let address = VirtualAddress(source(processor, operation.r3, isr::NON_ACCESS | ISR_CODE_KEY)?);
    processor.system_mmu()?;
    const NO_KEY: u64 = 1;
    let key = match processor.translation(address, Access::Read) {
        Ok(entry) if entry.present => u64::from(entry.key) << 8,
        _ => NO_KEY,
    };
    processor.general.set(operation.r1, key);
    Ok(Flow::Next)
}

impl Processor {
    /// Whether an access at `level` would be permitted; the fault that it would meet otherwise.
    fn probe(&mut self, address: VirtualAddress, access: Access, level: u8) -> Result<(), Fault> {
        if self.environment.system().is_none() {
            return self.locate(address.0, access).map(|_| ());
        }
        let translated = self.status & psr::DT != 0;
        self.translate(address, access, Purpose { translated, level })
            .map(|_| ())
    }

    /// The MMU; translations are an illegal operation where the environment translates.
    fn system_mmu(&mut self) -> Result<&mut crate::mmu::Mmu, Raised> {
        if self.environment.system().is_none() {
            return Err(self.raise(Fault::illegal_operation()));
        }
        Ok(self.mmu_mut())
    }
}
