//! Moves between general registers and branch, predicate, application and user mask registers (manual volume
//! 3, formats I21 to I28, M29 to M31, M35, M36).

use crate::encoding::{Instruction, Source, Unit};
use crate::fault::Fault;
use crate::float::StatusRegister;
use crate::processor::execution::{Flow, MicroOperation, Step};
use crate::processor::{Processor, Raised};
use crate::registers::application::{self, Presence};
use crate::registers::frame::previous_function_state;
use crate::registers::predicate;
use crate::registers::status::{psr, rsc};

use super::frequent::{Handler, call};

/// A move from or to an application register; reserved registers, and those of the other unit, are illegal operations.
pub(super) fn lower_application(instruction: &Instruction, handler: Handler) -> MicroOperation {
    let register = instruction.ar3();
    let belongs = match application::presence(register) {
        Presence::Ignored => true,
        Presence::Reserved => false,
        Presence::Present => application::belongs_to_memory_unit(register) == (instruction.unit == Unit::M),
    };
    match belongs {
        true => super::fields(handler, instruction),
        false => super::illegal(instruction.predicate()),
    }
}

pub(super) fn to_application_handler(instruction: &Instruction, value: Source) -> Handler {
    call(match (value, instruction.ar3()) {
        (Source::Register, application::PFS) => to_previous_function_state,
        (Source::Register, application::CCV | application::UNAT | application::LC) => to_plain_application,
        (Source::Register, _) => to_application,
        (Source::Immediate, _) => to_application_immediate,
    })
}

pub(super) fn from_application_handler(instruction: &Instruction) -> Handler {
    call(match instruction.ar3() {
        application::KERNEL_0..=application::KERNEL_7
        | application::CCV
        | application::UNAT
        | application::FPSR
        | application::PFS
        | application::LC
        | application::EC => from_plain_application,
        _ => from_application,
    })
}

/// The value of r2; raises NaT consumption if it is NaT.
#[inline(always)]
fn source(processor: &mut Processor, operation: &MicroOperation) -> Result<u64, Raised> {
    if processor.general.any_nat() && processor.general.nat(operation.r2) {
        return Err(processor.raise(Fault::register_nat_consumption(0)));
    }
    Ok(processor.general.value(operation.r2))
}

#[inline(always)]
pub(super) fn to_branch(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.branch[usize::from(operation.r1 & 7)] = source(processor, operation)?;
    Ok(Flow::Next)
}

#[inline(always)]
pub(super) fn from_branch(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor
        .general
        .set(operation.r1, processor.branch[usize::from(operation.r2 & 7)]);
    Ok(Flow::Next)
}

/// The moves of all predicates see them unrotated: rotate back, apply, rotate again.
fn with_unrotated(processor: &mut Processor, change: impl FnOnce(u64) -> u64) {
    let base = processor.frame.rename_predicate;
    let unrotated = predicate::rotate_up(processor.predicates, base);
    processor.predicates = predicate::rotate_up(change(unrotated) | 1, (48 - base) % 48);
}

pub(super) fn to_predicates(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let value = source(processor, operation)?;
    let mask = operation.immediate;
    with_unrotated(processor, |predicates| predicates & !mask | value & mask);
    Ok(Flow::Next)
}

pub(super) fn to_rotating_predicates(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let rotating = !0xffff;
    with_unrotated(processor, |predicates| {
        predicates & !rotating | operation.immediate & rotating
    });
    Ok(Flow::Next)
}

pub(super) fn from_predicates(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let unrotated = predicate::rotate_up(processor.predicates, processor.frame.rename_predicate);
    processor.general.set(operation.r1, unrotated);
    Ok(Flow::Next)
}

pub(super) fn from_ip(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor
        .general
        .set(operation.r1, processor.bundle_address(operation));
    Ok(Flow::Next)
}

/// Application registers that anyone may read at any time.
pub(super) fn from_plain_application(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.general.set(
        operation.r1,
        processor.application[usize::from(operation.r3 & 127)],
    );
    Ok(Flow::Next)
}

fn from_application(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let value = match operation.r3 {
        application::BSPSTORE | application::RNAT if !processor.register_stack.is_enforced_lazy() => {
            return Err(processor.raise(Fault::illegal_operation()));
        }
        application::ITC | application::RUC => {
            if processor.status & psr::SI != 0 && processor.privilege_level() != 0 {
                return Err(processor.raise(Fault::privileged_register()));
            }
            let retired = processor.retired.wrapping_add(u64::from(operation.retired));
            processor.application[usize::from(operation.r3)].wrapping_add(retired)
        }
        register => processor.application(register),
    };
    processor.general.set(operation.r1, value);
    Ok(Flow::Next)
}

fn to_application(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let value = source(processor, operation)?;
    write_application(processor, operation, value)
}

/// Application registers that anyone may write with any value.
pub(super) fn to_plain_application(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.application[usize::from(operation.r3 & 127)] = source(processor, operation)?;
    Ok(Flow::Next)
}

/// PFS, which every function restores.
pub(super) fn to_previous_function_state(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let value = source(processor, operation)?;
    if value & !previous_function_state::IMPLEMENTED != 0 {
        return Err(processor.raise(Fault::reserved_register_field()));
    }
    processor.application[usize::from(application::PFS)] = value;
    Ok(Flow::Next)
}

fn to_application_immediate(processor: &mut Processor, operation: &MicroOperation) -> Step {
    write_application(processor, operation, operation.immediate)
}

fn write_application(processor: &mut Processor, operation: &MicroOperation, value: u64) -> Step {
    let register = operation.r3;
    let level = processor.privilege_level();
    let fault = match register {
        application::BSP => Some(Fault::illegal_operation()),
        application::BSPSTORE | application::RNAT if !processor.register_stack.is_enforced_lazy() => {
            Some(Fault::illegal_operation())
        }
        application::KERNEL_0..=application::KERNEL_7 | application::ITC | application::RUC if level != 0 => {
            Some(Fault::privileged_register())
        }
        application::RSC if value & !rsc::IMPLEMENTED != 0 => Some(Fault::reserved_register_field()),
        application::FPSR if StatusRegister::new(value).is_err() => Some(Fault::reserved_register_field()),
        _ => None,
    };
    if let Some(fault) = fault {
        return Err(processor.raise(fault));
    }
    let value = match register {
        application::RSC => {
            // The register stack is never more privileged than the code that configures it.
            let privilege = (value >> rsc::PRIVILEGE_SHIFT & 3).max(u64::from(level));
            value & !(3 << rsc::PRIVILEGE_SHIFT) | privilege << rsc::PRIVILEGE_SHIFT
        }
        application::ITC | application::RUC => {
            value.wrapping_sub(processor.retired.wrapping_add(u64::from(operation.retired)))
        }
        _ => value,
    };
    processor.set_application(register, value);
    if register == application::ITC {
        processor.timer_set(operation.retired);
    }
    Ok(Flow::Next)
}

pub(super) fn from_user_mask(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor
        .general
        .set(operation.r1, processor.status & psr::USER_MASK);
    Ok(Flow::Next)
}

pub(super) fn to_user_mask(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let value = source(processor, operation)?;
    if value & 0xff & !psr::USER_MASK != 0 {
        return Err(processor.raise(Fault::reserved_register_field()));
    }
    processor.change_user_mask(psr::USER_MASK, value);
    Ok(Flow::Next)
}

pub(super) fn set_user_mask(processor: &mut Processor, operation: &MicroOperation) -> Step {
    change_user_mask(processor, operation, u64::MAX)
}

pub(super) fn reset_user_mask(processor: &mut Processor, operation: &MicroOperation) -> Step {
    change_user_mask(processor, operation, 0)
}

fn change_user_mask(processor: &mut Processor, operation: &MicroOperation, value: u64) -> Step {
    if operation.immediate & !psr::USER_MASK != 0 {
        return Err(processor.raise(Fault::reserved_register_field()));
    }
    processor.change_user_mask(operation.immediate, value);
    Ok(Flow::Next)
}

impl Processor {
    /// Changes the user mask bits in `mask`, as far as the program may change them.
    fn change_user_mask(&mut self, mask: u64, value: u64) {
        let secure = self.status & psr::SP != 0;
        let mask = mask
            & if secure {
                psr::USER_MASK & !psr::UP
            } else {
                psr::USER_MASK
            };
        let before = self.status;
        self.status = before & !mask | value & mask;
        if (before ^ self.status) & psr::BE != 0 {
            // The software TLBs serve little-endian data only, also those of other privilege levels, which `epc` can
            // reach.
            self.translations_changed();
        }
    }
}
