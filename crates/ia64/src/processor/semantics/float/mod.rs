//! Floating-point operations on a processor: registers, status fields, faults and traps around the arithmetic of
//! [`crate::float`].
//!
//! Every operation checks, in this order: a constant register as target (an illegal operation, found when it is
//! lowered), disabled registers, then what the arithmetic itself finds. A fault leaves everything as it was; a trap
//! comes after the target and the flags have been written.

pub(super) mod arithmetic;
pub(super) mod compare;
pub(super) mod memory;
pub(super) mod moves;

use crate::encoding::{Instruction, StatusField};
use crate::fault::{Fault, FaultKind};
use crate::float::{
    Control, ControlIndex, Flags, FloatFault, FloatRegister, FloatTrap, Rounded, StatusRegister,
};
use crate::processor::execution::{Execute, Flow, MicroOperation, Step};
use crate::processor::{Processor, Raised};
use crate::registers::application::FPSR;
use crate::registers::status::psr;

use super::frequent::call;

/// An operation that writes f1: illegal if that is a constant register.
fn with_target(execute: Execute, instruction: &Instruction) -> MicroOperation {
    if is_constant(instruction.f1()) {
        return super::illegal(instruction.predicate());
    }
    super::fields(call(execute), instruction)
}

/// Whether a register is f0 or f1, which cannot be written.
const fn is_constant(register: u8) -> bool {
    register < 2
}

/// How an operation finds its registers.
trait Names {
    fn read(processor: &Processor, register: u8) -> FloatRegister;
    fn write(processor: &mut Processor, register: u8, value: FloatRegister);
}

/// All of them are below f32, which do not rotate.
struct Static;

/// Some of them may rotate.
struct Rotating;

impl Names for Static {
    #[inline(always)]
    fn read(processor: &Processor, register: u8) -> FloatRegister {
        processor
            .floating
            .get(usize::from(register & 31), &processor.divisions)
    }
    /// The target is no constant: [`with_target`] has seen to that.
    #[inline(always)]
    fn write(processor: &mut Processor, register: u8, value: FloatRegister) {
        processor.floating.set(usize::from(register & 31), value);
        processor.status |= psr::MFL;
    }
}

impl Names for Rotating {
    #[inline(always)]
    fn read(processor: &Processor, register: u8) -> FloatRegister {
        processor.floating(register)
    }
    #[inline(always)]
    fn write(processor: &mut Processor, register: u8, value: FloatRegister) {
        processor.set_floating(register, value);
    }
}

/// Whether none of the registers rotates.
fn are_static(registers: &[u8]) -> bool {
    registers.iter().all(|register| *register < 32)
}

/// ISR.code of a disabled floating-point register fault: a register of f2 to f31, one of f32 to f127.
const DISABLED_LOW: u64 = 1;
const DISABLED_HIGH: u64 = 2;

impl Processor {
    /// Raises the disabled floating-point register fault if one of `registers` is disabled; `access` goes into the
    /// ISR.
    #[inline(always)]
    fn check_floating_enabled(&mut self, registers: &[u8], access: u64) -> Result<(), Raised> {
        if self.status & (psr::DFL | psr::DFH) == 0 {
            return Ok(());
        }
        self.check_each_floating_enabled(registers, access)
    }

    #[cold]
    fn check_each_floating_enabled(&mut self, registers: &[u8], access: u64) -> Result<(), Raised> {
        let mut code = 0;
        for register in registers {
            code |= match register & 127 {
                0 | 1 => 0,
                2..32 if self.status & psr::DFL != 0 => DISABLED_LOW,
                32.. if self.status & psr::DFH != 0 => DISABLED_HIGH,
                _ => 0,
            };
        }
        if code == 0 {
            return Ok(());
        }
        Err(self.raise(Fault::new(FaultKind::DisabledFloatingPoint, access | code)))
    }

    /// The control whose index is the operation's immediate.
    #[inline(always)]
    fn float_control(&mut self, operation: &MicroOperation) -> &Control {
        let fpsr = self.application[usize::from(FPSR)];
        self.float_controls
            .get(fpsr, ControlIndex::from_operand(operation.immediate))
    }

    /// Adds to the flags of the status field that the operation's immediate names.
    #[inline(always)]
    fn raise_flags(&mut self, operation: &MicroOperation, flags: Flags) {
        let status = ControlIndex::from_operand(operation.immediate).status();
        self.with_fpsr(|fpsr| fpsr.raise(status, flags));
    }

    /// Changes the FPSR.
    #[inline(always)]
    fn with_fpsr<T>(&mut self, change: impl FnOnce(&mut StatusRegister) -> T) -> T {
        let mut fpsr = StatusRegister::from_bits(self.application[usize::from(FPSR)]);
        let answer = change(&mut fpsr);
        self.application[usize::from(FPSR)] = fpsr.bits();
        answer
    }

    #[cold]
    fn raise_float_fault(&mut self, fault: FloatFault) -> Raised {
        self.raise(Fault::new(
            FaultKind::FloatingPointFault,
            u64::from(fault.isr_code),
        ))
    }

    #[cold]
    fn raise_float_trap(&mut self, trap: FloatTrap) -> Raised {
        self.raise(Fault::new(FaultKind::FloatingPointTrap, trap.isr_code()))
    }

    /// Writes an arithmetic result to f1 and its flags to the status field; raises its trap or its fault.
    #[inline(always)]
    fn deliver<N: Names>(&mut self, operation: &MicroOperation, result: Result<Rounded, FloatFault>) -> Step {
        match result {
            Ok(rounded) => {
                N::write(self, operation.r1, rounded.value);
                self.raise_flags(operation, rounded.flags);
                if !rounded.trap.is_empty() {
                    return Err(self.raise_float_trap(rounded.trap));
                }
                Ok(Flow::Next)
            }
            Err(fault) => Err(self.raise_float_fault(fault)),
        }
    }
}

/// The status field in an operation's `extra`.
fn status_operand(operation: &MicroOperation) -> StatusField {
    ControlIndex::from_operand(u64::from(operation.extra)).status()
}
