//! Calls and returns: where control goes is known or at hand, and the frame is changed in line; where something is
//! unusual, by a function of the processor's.

use sidestep_ia64::encoding::{Instruction, Target};
use sidestep_ia64::{Gate, Processor};

use crate::emitter::Emitter;

/// `br.call`: one through the gate page may be a light-weight call of the kernel.
pub fn call(emitter: &mut Emitter, instruction: &Instruction, target: Target) {
    let (register, link) = (instruction.b2(), instruction.b1());
    if target == Target::Indirect && link == Gate::LINK {
        return emitter.perform(Some(instruction));
    }
    if target == Target::Indirect {
        let condition = emitter.predicate(instruction.predicate());
        return emitter.branch(condition, |emitter| emitter.call_by(register, link));
    }
    let offset = emitter.bundle_offset().wrapping_add(instruction.immediate);
    let condition = emitter.predicate(instruction.predicate());
    emitter.branch(condition, |emitter| emitter.call_to(offset, link));
}

/// `br.ret`.
pub fn return_(emitter: &mut Emitter, instruction: &Instruction) {
    let condition = emitter.predicate(instruction.predicate());
    emitter.branch(condition, |emitter| emitter.return_by(instruction.b2()));
}

/// Changes the frame as a call does, for emitted code.
///
/// # Safety
/// The processor is the one that the code was entered with, and nobody else uses it.
pub unsafe extern "C" fn begin_call(processor: *mut Processor) {
    // SAFETY: as the caller says.
    let processor = unsafe { &mut *processor };
    processor.find_frame();
    processor.begin_call();
}

/// Changes the frame as a return does, for emitted code.
///
/// # Safety
/// As [`begin_call`].
pub unsafe extern "C" fn finish_call(processor: *mut Processor) {
    // SAFETY: as the caller says.
    let processor = unsafe { &mut *processor };
    processor.find_frame();
    processor.finish_call();
}
