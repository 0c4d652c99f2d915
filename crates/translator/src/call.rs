//! Direct calls, and the returns of programs: where control goes is known or at hand, and the frame is changed by a
//! function of the processor's, without the detour of an operation that is performed.

use sidestep_ia64::Processor;
use sidestep_ia64::encoding::{Instruction, Target};

use crate::emitter::Emitter;

/// `br.call`: an indirect one may be a light-weight call of the kernel.
pub fn call(emitter: &mut Emitter, instruction: &Instruction, target: Target) {
    if target == Target::Indirect {
        return emitter.perform(Some(instruction));
    }
    let offset = emitter.bundle_offset().wrapping_add(instruction.immediate);
    let condition = emitter.predicate(instruction.predicate());
    emitter.branch(condition, |emitter| emitter.call_to(offset, instruction.b1()));
}

/// `br.ret`: in system mode it may change the privilege level.
pub fn return_(emitter: &mut Emitter, instruction: &Instruction) {
    if emitter.is_system() {
        return emitter.perform(Some(instruction));
    }
    let condition = emitter.predicate(instruction.predicate());
    emitter.branch(condition, |emitter| emitter.return_by(instruction.b2()));
}

/// Changes the frame as a call does, for emitted code.
///
/// # Safety
/// The processor is the one that the code was entered with, and nobody else uses it.
pub unsafe extern "C" fn begin_call(processor: *mut Processor) {
    // SAFETY: as the caller says.
    unsafe { &mut *processor }.begin_call();
}

/// Changes the frame as a return by a branch register does, for emitted code, and answers where it goes.
///
/// # Safety
/// As [`begin_call`].
pub unsafe extern "C" fn finish_call(processor: *mut Processor, register: u64) -> u64 {
    // SAFETY: as the caller says.
    unsafe { &mut *processor }.finish_call(register as u8)
}
