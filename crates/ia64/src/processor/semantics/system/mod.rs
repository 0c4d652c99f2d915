//! Instructions of the system (manual volume 2, chapters 3 to 6; volume 3, formats M18 to M47, B8, B9, I18).
//!
//! - [`control`](self::control): control registers, PSR, banks, `epc`, `rfi`.
//! - [`translation`](self::translation): region registers, insertions, purges, probes and the page table
//!   instructions.
//! - here: identification, serialisation, `break`, and the indirect register files.

pub(super) mod control;
pub(super) mod translation;

use crate::encoding::IndirectFile;
use crate::fault::{Fault, FaultKind};
use crate::processor::execution::{Flow, MicroOperation, Step};
use crate::processor::{Processor, Raised};
use crate::registers::status::psr;

use super::frequent::{Handler, call};

/// CPUID[4], the features beyond the base architecture: long branch, 16-byte atomic operations, `clz`, and
/// the integer multiplies.
pub(super) const FEATURES: u64 = 1 << 0 | 1 << 2 | 1 << 32 | 1 << 33;

/// The processor identification registers: the vendor's name in two, a serial number, the version (highest
/// register 4, revision 7, model 1, family 0x1f: an Itanium 2, architecture revision 0), the features.
pub const IDENTIFICATION: [u64; 5] = [
    u64::from_le_bytes(*b"GenuineI"),
    u64::from_le_bytes(*b"ntel\0\0\0\0"),
    0,
    0x1f << 24 | 1 << 16 | 7 << 8 | 4,
    FEATURES,
];

pub(super) fn from_indirect_handler(file: IndirectFile) -> Handler {
    call(match file {
        IndirectFile::ProcessorIdentification => identification,
        IndirectFile::DataAccessHint => data_access_hint,
        IndirectFile::MonitorData => from_monitor_data,
        IndirectFile::Region => translation::from_region,
        IndirectFile::ProtectionKey => translation::from_protection_key,
        IndirectFile::DataBreakpoint => from_data_breakpoint,
        IndirectFile::InstructionBreakpoint => from_instruction_breakpoint,
        IndirectFile::MonitorConfiguration => from_monitor_configuration,
        IndirectFile::ModelSpecific => model_specific,
    })
}

pub(super) fn to_indirect_handler(file: IndirectFile) -> Handler {
    call(match file {
        IndirectFile::Region => translation::to_region,
        IndirectFile::ProtectionKey => translation::to_protection_key,
        IndirectFile::DataBreakpoint => to_data_breakpoint,
        IndirectFile::InstructionBreakpoint => to_instruction_breakpoint,
        IndirectFile::MonitorConfiguration => to_monitor_configuration,
        IndirectFile::MonitorData => to_monitor_data,
        IndirectFile::ModelSpecific
        | IndirectFile::ProcessorIdentification
        | IndirectFile::DataAccessHint => model_specific,
    })
}

/// Refuses an instruction of privilege level 0 elsewhere, and to a virtual machine.
fn require_privilege(processor: &mut Processor) -> Result<(), Raised> {
    if processor.privilege_level() != 0 {
        return Err(processor.raise(Fault::privileged_operation()));
    }
    if processor.status & psr::VM != 0 {
        return Err(processor.raise(Fault::new(FaultKind::Virtualization, 0)));
    }
    Ok(())
}

/// The value of general register `register`; raises NaT consumption if it is NaT.
fn source(processor: &mut Processor, register: u8, access: u64) -> Result<u64, Raised> {
    if processor.general.nat(register) {
        return Err(processor.raise(Fault::register_nat_consumption(access)));
    }
    Ok(processor.general.value(register))
}

pub(super) fn break_(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let fault = Fault {
        immediate: operation.immediate,
        ..Fault::new(FaultKind::Break, 0)
    };
    Err(processor.raise(fault))
}

/// Also serialisation: everything takes effect at once here.
pub(super) fn nothing(_: &mut Processor, _: &MicroOperation) -> Step {
    Ok(Flow::Next)
}

/// `hint @pause` in a spin loop is one on the host as well. A loop that goes on gives the host's core away: the
/// processor that it waits for may have none.
pub(super) fn hint(processor: &mut Processor, operation: &MicroOperation) -> Step {
    if operation.immediate == 0 {
        match processor.pauses.is_long(processor.retired) {
            true => std::thread::yield_now(),
            false => std::hint::spin_loop(),
        }
    }
    Ok(Flow::Next)
}

fn identification(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let index = source(processor, operation.r3, 0)? & 0xff;
    if processor.status & psr::VM != 0 {
        return Err(processor.raise(Fault::new(FaultKind::Virtualization, 0)));
    }
    let Some(&value) = IDENTIFICATION.get(index as usize) else {
        return Err(processor.raise(Fault::reserved_register_field()));
    };
    processor.general.set(operation.r1, value);
    Ok(Flow::Next)
}

/// Data access hints are not kept: each register reads as its default, zero.
fn data_access_hint(processor: &mut Processor, operation: &MicroOperation) -> Step {
    source(processor, operation.r3, 0)?;
    processor.general.set(operation.r1, 0);
    Ok(Flow::Next)
}

/// There are no model-specific registers.
fn model_specific(processor: &mut Processor, _: &MicroOperation) -> Step {
    require_privilege(processor)?;
    Err(processor.raise(Fault::reserved_register_field()))
}

/// PMC.pm: only privilege level 0 sees and controls the monitor.
const PRIVILEGED_MONITOR: u64 = 1 << 6;
/// The generic monitors are PMC/PMD4 and up; those below are overflow status.
const FIRST_MONITOR: usize = 4;

/// Reads of monitors are unprivileged; those of privileged monitors, and all where PSR.sp secures them, are zero for
/// programs.
fn from_monitor_data(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let index = (source(processor, operation.r3, 0)? & 0xff) as usize;
    let is_secured = processor.status & psr::SP != 0
        || index >= FIRST_MONITOR
            && processor.system.performance_configuration[index] & PRIVILEGED_MONITOR != 0;
    let value = if is_secured && processor.privilege_level() != 0 {
        0
    } else {
        processor.system.performance_data[index]
    };
    processor.general.set(operation.r1, value);
    Ok(Flow::Next)
}

/// Moves between general registers and a file whose registers hold any value.
macro_rules! plain_files {
    ($($from:ident, $to:ident = $file:ident;)+) => {$(
        fn $from(processor: &mut Processor, operation: &MicroOperation) -> Step {
            require_privilege(processor)?;
            let index = source(processor, operation.r3, 0)? & 0xff;
            let Some(&value) = processor.system.$file.get(index as usize) else {
                return Err(processor.raise(Fault::reserved_register_field()));
            };
            processor.general.set(operation.r1, value);
            Ok(Flow::Next)
        }

        fn $to(processor: &mut Processor, operation: &MicroOperation) -> Step {
            require_privilege(processor)?;
            let index = source(processor, operation.r3, 0)? & 0xff;
            let value = source(processor, operation.r2, 0)?;
            let Some(register) = processor.system.$file.get_mut(index as usize) else {
                return Err(processor.raise(Fault::reserved_register_field()));
            };
            *register = value;
            Ok(Flow::Next)
        }
    )+};
}

plain_files! {
    from_data_breakpoint, to_data_breakpoint = data_breakpoint;
    from_instruction_breakpoint, to_instruction_breakpoint = instruction_breakpoint;
    from_monitor_configuration, to_monitor_configuration = performance_configuration;
}

fn to_monitor_data(processor: &mut Processor, operation: &MicroOperation) -> Step {
    require_privilege(processor)?;
    let index = source(processor, operation.r3, 0)? & 0xff;
    let value = source(processor, operation.r2, 0)?;
    processor.system.performance_data[index as usize] = value;
    Ok(Flow::Next)
}
