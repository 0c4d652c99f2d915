//! Control registers, the processor status register, register banks, and the changes of privilege.

use crate::encoding::Instruction;
use crate::fault::{Fault, FaultKind};
use crate::mmu::vhpt::PageTableAddress;
use crate::processor::execution::{Flow, MicroOperation, Step};
use crate::processor::{Processor, Raised, pending};
use crate::registers::application::PFS;
use crate::registers::frame::{FrameMarker, previous_function_state};
use crate::registers::status::psr;
use crate::registers::system::{control, is_control_register};

use super::super::frequent::{Handler, call};
use super::super::{fields, illegal};
use super::{require_privilege, source};

/// IFS.v: the frame in IFS is valid.
const IFS_VALID: u64 = 1 << 63;
/// PSR bits that `mov psr.l` may write: the lower half.
const LOWER: u64 = 0xffff_ffff;
/// Bits of PSR that exist in its lower half.
const LOWER_IMPLEMENTED: u64 = psr::USER_MASK
    | psr::IC
    | psr::I
    | psr::PK
    | psr::DT
    | psr::DFL
    | psr::DFH
    | psr::SP
    | psr::PP
    | psr::DI
    | psr::SI
    | psr::DB
    | psr::LP
    | psr::TB
    | psr::RT;
/// PSR bits that `mov = psr` shows: the lower half, mc and it.
const READABLE: u64 = LOWER | psr::MC | psr::IT;

/// A move from or to a control register, which must exist.
pub(in crate::processor::semantics) fn lower_control(
    instruction: &Instruction,
    handler: Handler,
) -> MicroOperation {
    match is_control_register(instruction.cr3()) {
        true => fields(handler, instruction),
        false => illegal(instruction.predicate()),
    }
}

pub(in crate::processor::semantics) fn bank_switch_handler(bank: u8) -> Handler {
    match bank {
        0 => call(bank_switch::<0>),
        _ => call(bank_switch::<1>),
    }
}

pub(in crate::processor::semantics) fn virtual_machine_switch_handler(enter: bool) -> Handler {
    match enter {
        true => call(virtual_machine_switch::<true>),
        false => call(virtual_machine_switch::<false>),
    }
}

pub(in crate::processor::semantics) fn from_control(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    require_privilege(processor)?;
    let register = operation.r3;
    let is_collected = (control::IPSR..=control::IHA).contains(&register);
    if is_collected && processor.status & psr::IC != 0 {
        return Err(processor.raise(Fault::illegal_operation()));
    }
    let value = match register {
        control::IVR => processor.accept_interrupt(),
        control::EOI => 0,
        control::IRR_0..=71 => processor.interrupts().map_or(0, |interrupts| {
            interrupts.requests(usize::from(register - control::IRR_0))
        }),
        _ => processor.system.control[usize::from(register)],
    };
    processor.general.set(operation.r1, value);
    Ok(Flow::Next)
}

pub(in crate::processor::semantics) fn to_control(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    require_privilege(processor)?;
    let value = source(processor, operation.r2, 0)?;
    let register = operation.r3;
    let is_collected = (control::IPSR..=control::IHA).contains(&register);
    let is_read_only = matches!(register, control::IVR | control::IRR_0..=71);
    if is_read_only || is_collected && processor.status & psr::IC != 0 {
        return Err(processor.raise(Fault::illegal_operation()));
    }
    let is_valid = match register {
        control::PTA => PageTableAddress(value).is_valid(),
        control::DCR => value & !0x7f07 == 0,
        control::ITIR => value & 3 == 0 && value >> 32 == 0,
        // Bits 3 to 0 are ignored: kernels write vectors.
        control::TPR => value & !(1 << 16 | 0xffff) == 0,
        _ => true,
    };
    if !is_valid {
        return Err(processor.raise(Fault::reserved_register_field()));
    }
    let slot = &mut processor.system.control[usize::from(register)];
    match register {
        control::EOI => processor.end_interrupt(),
        control::IVA => *slot = value & !0x7fff,
        control::TPR => {
            *slot = value;
            processor.signal_interrupts();
        }
        control::ITM => {
            *slot = value;
            processor.timer_set(operation.retired);
        }
        _ => *slot = value,
    }
    Ok(Flow::Next)
}

pub(in crate::processor::semantics) fn from_status(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    require_privilege(processor)?;
    processor.general.set(operation.r1, processor.status & READABLE);
    Ok(Flow::Next)
}

pub(in crate::processor::semantics) fn to_lower(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    require_privilege(processor)?;
    let value = source(processor, operation.r2, 0)?;
    if value & LOWER & !LOWER_IMPLEMENTED != 0 {
        return Err(processor.raise(Fault::reserved_register_field()));
    }
    processor.change_status(processor.status & !LOWER | value & LOWER);
    Ok(Flow::Next)
}

pub(in crate::processor::semantics) fn set_system_mask(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    change_system_mask(processor, operation, u64::MAX)
}

pub(in crate::processor::semantics) fn reset_system_mask(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    change_system_mask(processor, operation, 0)
}

fn change_system_mask(processor: &mut Processor, operation: &MicroOperation, value: u64) -> Step {
    require_privilege(processor)?;
    let mask = operation.immediate & psr::SYSTEM_MASK;
    if mask & !LOWER_IMPLEMENTED != 0 {
        return Err(processor.raise(Fault::reserved_register_field()));
    }
    processor.change_status(processor.status & !mask | value & mask);
    Ok(Flow::Next)
}

fn bank_switch<const BANK: u8>(processor: &mut Processor, _: &MicroOperation) -> Step {
    require_privilege(processor)?;
    processor.select_bank(BANK);
    Ok(Flow::Next)
}

/// `epc`: promotes to the level of a gate page, or leaves the level as it is.
pub(in crate::processor::semantics) fn enter_privileged_code(
    processor: &mut Processor,
    _: &MicroOperation,
) -> Step {
    let previous = processor.application(PFS) >> previous_function_state::PRIVILEGE_SHIFT;
    let level = processor.privilege_level();
    if previous < u64::from(level) {
        return Err(processor.raise(Fault::illegal_operation()));
    }
    let gate = processor.environment.system().map_or(Some(level), |system| {
        // Without instruction translation every page is a gate to level 0.
        if processor.status & psr::IT == 0 {
            Some(0)
        } else {
            system.code.gate_level
        }
    });
    if let Some(gate) = gate
        && gate < level
    {
        processor.set_privilege_level(gate);
    }
    Ok(Flow::Next)
}

/// `rfi`: PSR, the instruction pointer, and the frame if IFS holds one.
pub(in crate::processor::semantics) fn return_from_interruption(
    processor: &mut Processor,
    _: &MicroOperation,
) -> Step {
    require_privilege(processor)?;
    let registers = &processor.system.control;
    let status = registers[usize::from(control::IPSR)];
    let ip = registers[usize::from(control::IIP)] & !15;
    let function = registers[usize::from(control::IFS)];
    if status & psr::IS != 0 {
        return Err(processor.raise(Fault::illegal_operation()));
    }
    let slot = (status >> psr::RI_SHIFT & 3).min(2);
    processor.target = ip | slot;
    processor.select_bank(u8::from(status & psr::BN != 0));
    processor.change_status(status & !psr::RI);
    processor.pending |= pending::CODE_CONTEXT;
    processor.suspend_fill(false);
    if function & IFS_VALID != 0 {
        let marker = FrameMarker::from_bits(function);
        if let Err(Raised) = processor.return_frame(marker, marker.size) {
            // The return itself is complete; the fill goes on, and faults again, at the target.
            processor.raised = None;
            processor.pending |= pending::FRAME_INCOMPLETE;
        }
    }
    Ok(Flow::Branch)
}

/// `vmsw`: enters or leaves virtual machine mode, on a gate page or at level 0.
fn virtual_machine_switch<const ENTER: bool>(processor: &mut Processor, _: &MicroOperation) -> Step {
    let allowed = processor.privilege_level() == 0
        && (processor.status & psr::VM == 0
            || processor
                .environment
                .system()
                .is_some_and(|system| system.code.gate_level.is_some()));
    if !allowed {
        let fault = if processor.privilege_level() != 0 {
            Fault::privileged_operation()
        } else {
            Fault::new(FaultKind::Virtualization, 0)
        };
        return Err(processor.raise(fault));
    }
    let status = processor.status & !psr::VM | if ENTER { psr::VM } else { 0 };
    processor.change_status(status);
    Ok(Flow::Next)
}
