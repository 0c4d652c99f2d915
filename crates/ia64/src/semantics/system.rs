//! Instructions of the system: interruptions raised on purpose, serialisation, identification, probes, and
//! the privileged ones (manual volume 2, chapters 3 to 6).

use crate::address::VirtualAddress;
use crate::encoding::{IndirectFile, Instruction, Operation, ProbeAccess, Source};
use crate::execution::{Execute, Flow, MicroOperation, Step};
use crate::fault::{Access, Fault, FaultKind, isr};
use crate::memory::Refusal;
use crate::processor::{Processor, Raised};
use crate::registers::application::PFS;
use crate::registers::frame::previous_function_state;

/// ISR.code of a fault of `probe`.
const ISR_CODE_PROBE: u64 = 2;
/// ISR.code of a fault of `probe.fault`.
const ISR_CODE_PROBE_FAULT: u64 = 5;

/// CPUID[4], the features beyond the base architecture: long branch, 16-byte atomic operations, `clz`, and
/// the integer multiplies.
pub(super) const FEATURES: u64 = 1 << 0 | 1 << 2 | 1 << 32 | 1 << 33;

/// The processor identification registers: the vendor's name in two, a serial number, the version (highest
/// register 4, revision 7, model 1, family 0x1f: an Itanium 2, architecture revision 0), the features.
const IDENTIFICATION: [u64; 5] = [
    u64::from_le_bytes(*b"GenuineI"),
    u64::from_le_bytes(*b"ntel\0\0\0\0"),
    0,
    0x1f << 24 | 1 << 16 | 7 << 8 | 4,
    FEATURES,
];

/// Chooses the function and operands of a system instruction.
pub(super) fn lower(instruction: &Instruction) -> Option<MicroOperation> {
    let execute: Execute = match instruction.operation {
        Operation::Break => break_,
        Operation::Nop
        | Operation::BranchPredict
        | Operation::BranchPredictIndirect { .. }
        | Operation::MoveToDataAccessHint => nothing,
        Operation::Hint => hint,
        Operation::Serialize { .. } | Operation::SynchronizeInstructionCache => serialize,
        Operation::MoveFromIndirect {
            file: IndirectFile::ProcessorIdentification,
        } => identification,
        Operation::MoveFromIndirect {
            file: IndirectFile::MonitorData,
        } => monitor_data,
        Operation::MoveFromIndirect {
            file: IndirectFile::DataAccessHint,
        } => data_access_hint,
        Operation::Probe { access, level } => match (access, level) {
            (ProbeAccess::Read, Source::Register) => probe_register::<false>,
            (ProbeAccess::Read, Source::Immediate) => probe_immediate::<false>,
            (_, Source::Register) => probe_register::<true>,
            (_, Source::Immediate) => probe_immediate::<true>,
        },
        Operation::ProbeFault {
            access: ProbeAccess::Read,
        } => probe_fault::<true, false>,
        Operation::ProbeFault {
            access: ProbeAccess::Write,
        } => probe_fault::<false, true>,
        Operation::ProbeFault {
            access: ProbeAccess::ReadWrite,
        } => probe_fault::<true, true>,
        Operation::EnterPrivilegedCode => enter_privileged_code,
        Operation::MoveToControl
        | Operation::MoveFromControl
        | Operation::MoveToPsrLower
        | Operation::MoveFromPsr
        | Operation::MoveToIndirect { .. }
        | Operation::MoveFromIndirect { .. }
        | Operation::SetSystemMask
        | Operation::ResetSystemMask
        | Operation::InsertTranslationCache { .. }
        | Operation::InsertTranslationRegister { .. }
        | Operation::PurgeTranslationCache { .. }
        | Operation::PurgeTranslationCacheEntry
        | Operation::PurgeTranslationRegister { .. }
        | Operation::TranslateToPhysical
        | Operation::TranslationAccessKey
        | Operation::ReturnFromInterruption
        | Operation::BankSwitch { .. }
        | Operation::VirtualMachineSwitch { .. } => privileged,
        Operation::TranslationHash => translation_hash,
        Operation::TranslationTag => translation_tag,
        _ => return None,
    };
    Some(super::fields(execute, instruction))
}

fn break_(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let fault = Fault {
        immediate: operation.immediate,
        ..Fault::new(FaultKind::Break, 0)
    };
    Err(processor.raise(fault))
}

fn nothing(_: &mut Processor, _: &MicroOperation) -> Step {
    Ok(Flow::Next)
}

/// `hint @pause` in a spin loop is one on the host as well.
fn hint(_: &mut Processor, operation: &MicroOperation) -> Step {
    if operation.immediate == 0 {
        std::hint::spin_loop();
    }
    Ok(Flow::Next)
}

/// Everything takes effect at once here, so that only decoded instructions need a look.
fn serialize(_: &mut Processor, _: &MicroOperation) -> Step {
    Ok(Flow::Next)
}

/// The register number in r3; raises NaT consumption if it is NaT.
fn index(processor: &mut Processor, operation: &MicroOperation) -> Result<usize, Raised> {
    if processor.general.nat(operation.r3) {
        return Err(processor.raise(Fault::register_nat_consumption(0)));
    }
    Ok((processor.general.value(operation.r3) & 0xff) as usize)
}

fn identification(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let index = index(processor, operation)?;
    let Some(&value) = IDENTIFICATION.get(index) else {
        return Err(processor.raise(Fault::reserved_register_field()));
    };
    processor.general.set(operation.r1, value);
    Ok(Flow::Next)
}

/// Performance monitors do not count yet: a user-readable one reads as the system left it.
fn monitor_data(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let index = index(processor, operation)?;
    let value = processor.system.performance_data[index];
    processor.general.set(operation.r1, value);
    Ok(Flow::Next)
}

/// Data access hints are not kept: each register reads as its default, zero.
fn data_access_hint(processor: &mut Processor, operation: &MicroOperation) -> Step {
    index(processor, operation)?;
    processor.general.set(operation.r1, 0);
    Ok(Flow::Next)
}

fn probe_register<const WRITE: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    if processor.general.nat(operation.r2) {
        return Err(processor.raise(Fault::register_nat_consumption(isr::NON_ACCESS | ISR_CODE_PROBE)));
    }
    probe::<WRITE>(processor, operation)
}

fn probe_immediate<const WRITE: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    probe::<WRITE>(processor, operation)
}

/// `probe`: whether the access would be allowed. Less privileged levels than the current one see the same
/// pages here: the address space knows one set of rights.
fn probe<const WRITE: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    if processor.general.nat(operation.r3) {
        return Err(processor.raise(Fault::register_nat_consumption(isr::NON_ACCESS | ISR_CODE_PROBE)));
    }
    let address = processor.general.value(operation.r3);
    let access = if WRITE { Access::Write } else { Access::Read };
    let allowed = match processor.space.resolve(VirtualAddress(address), access) {
        Ok(_) => true,
        Err(Refusal::AccessRights) => false,
        Err(_) => {
            let fault = Fault::reference(FaultKind::PageNotPresent, access, address);
            return Err(processor.raise(Fault {
                isr: fault.isr | isr::NON_ACCESS | ISR_CODE_PROBE,
                ..fault
            }));
        }
    };
    processor.general.set(operation.r1, u64::from(allowed));
    Ok(Flow::Next)
}

/// `probe.fault`: raises the faults that the access would.
fn probe_fault<const READ: bool, const WRITE: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    if processor.general.nat(operation.r3) {
        return Err(processor.raise(Fault::register_nat_consumption(
            isr::NON_ACCESS | ISR_CODE_PROBE_FAULT,
        )));
    }
    let access = match (READ, WRITE) {
        (true, true) => Access::ReadWrite,
        (false, _) => Access::Write,
        (true, false) => Access::Read,
    };
    match processor.resolve(processor.general.value(operation.r3), access) {
        Ok(_) => Ok(Flow::Next),
        Err(Raised) => {
            let fault = processor.take_fault();
            Err(processor.raise(Fault {
                isr: fault.isr | isr::NON_ACCESS | ISR_CODE_PROBE_FAULT,
                ..fault
            }))
        }
    }
}

/// `epc` outside a gate page: the privilege level stays.
fn enter_privileged_code(processor: &mut Processor, _: &MicroOperation) -> Step {
    let previous = processor.application(PFS) >> previous_function_state::PRIVILEGE_SHIFT;
    if previous < u64::from(processor.privilege_level()) {
        return Err(processor.raise(Fault::illegal_operation()));
    }
    Ok(Flow::Next)
}

/// `thash` without a page table of the system: the region's base of an empty short-format table.
fn translation_hash(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let address = processor.general.value(operation.r3);
    let nat = processor.general.nat(operation.r3);
    processor
        .general
        .set_with_nat(operation.r1, VirtualAddress(address).region_base(), nat);
    Ok(Flow::Next)
}

/// `ttag` without a page table of the system: the virtual page number within the region.
fn translation_tag(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let address = processor.general.value(operation.r3);
    let nat = processor.general.nat(operation.r3);
    processor
        .general
        .set_with_nat(operation.r1, VirtualAddress(address).offset() >> 12, nat);
    Ok(Flow::Next)
}

/// Instructions of privilege level 0.
fn privileged(processor: &mut Processor, _: &MicroOperation) -> Step {
    let fault = if processor.privilege_level() == 0 {
        Fault::illegal_operation()
    } else {
        Fault::privileged_operation()
    };
    Err(processor.raise(fault))
}
