//! Moves between general registers and the branch and application registers that programs use all the time.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::encoding::{Instruction, Source, Unit};
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::{
    self, CCV, EC, FPSR, KERNEL_0, KERNEL_7, LC, PFS, Presence, UNAT,
};
use sidestep_ia64::registers::frame::previous_function_state::IMPLEMENTED;

use crate::emitter::Emitter;
use crate::slots::Slot;

pub fn to_branch(emitter: &mut Emitter, instruction: &Instruction) {
    let value = emitter.general(instruction.r2());
    emitter.set_under(instruction.predicate(), Slot::branch(instruction.b1()), value);
}

pub fn from_branch(emitter: &mut Emitter, instruction: &Instruction) {
    let value = emitter.get(Slot::branch(instruction.b2()));
    emitter.set_under(instruction.predicate(), Slot::general(instruction.r1()), value);
}

pub fn from_ip(emitter: &mut Emitter, instruction: &Instruction) {
    let offset = emitter.bundle_offset();
    let value = emitter.address(offset);
    emitter.set_under(instruction.predicate(), Slot::general(instruction.r1()), value);
}

/// Whether the word of predicates is rotated.
fn is_renamed(emitter: &mut Emitter) -> Value {
    let base = emitter.load_state(I32, layout::FRAME_RENAME_PREDICATE);
    emitter.ins().icmp_imm_u(IntCC::NotEqual, base, 0)
}

pub fn from_predicates(emitter: &mut Emitter, instruction: &Instruction) {
    let word = emitter.predicate_word();
    let target = Slot::general(instruction.r1());
    emitter.under(
        instruction.predicate(),
        [target].into_iter().collect(),
        |emitter| {
            let rare = is_renamed(emitter);
            emitter.in_line(instruction, rare, |emitter, _| emitter.set(target, word));
        },
    );
}

/// The predicates of a mask, from a register; or the rotating ones, from an immediate.
pub fn to_predicates(emitter: &mut Emitter, instruction: &Instruction, source: Source) {
    let word = emitter.predicate_word();
    let (value, mask) = match source {
        Source::Register => (emitter.general(instruction.r2()), instruction.immediate & !1),
        Source::Immediate => (emitter.constant(instruction.immediate), !0xffff),
    };
    let others = emitter.ins().band_imm_s(word, !mask);
    let written = emitter.ins().band_imm_s(value, mask);
    let written = emitter.ins().bor(others, written);
    let rare = is_renamed(emitter);
    let executed = emitter.predicate(instruction.predicate());
    emitter.replace_predicates((executed, rare), (written, word));
}

/// Whether the register exists and the unit may name it.
fn is_legal(instruction: &Instruction) -> bool {
    let register = instruction.ar3();
    application::presence(register) == Presence::Present
        && application::belongs_to_memory_unit(register) == (instruction.unit == Unit::M)
}

pub fn from_application(emitter: &mut Emitter, instruction: &Instruction) {
    let register = instruction.ar3();
    match register {
        KERNEL_0..=KERNEL_7 | CCV | UNAT | FPSR | PFS | LC | EC if is_legal(instruction) => {
            let value = emitter.get(Slot::application(register));
            emitter.set_under(instruction.predicate(), Slot::general(instruction.r1()), value);
        }
        _ => emitter.perform(Some(instruction)),
    }
}

pub fn to_application(emitter: &mut Emitter, instruction: &Instruction, source: Source) {
    let register = instruction.ar3();
    match register {
        CCV | UNAT | LC | EC if is_legal(instruction) => {
            let mut value = match source {
                Source::Register => emitter.general(instruction.r2()),
                Source::Immediate => emitter.constant(instruction.immediate),
            };
            if register == EC {
                value = emitter.ins().band_imm_u(value, 0x3f);
            }
            emitter.set_under(instruction.predicate(), Slot::application(register), value);
        }
        PFS if is_legal(instruction) && source == Source::Register => {
            let target = Slot::application(PFS);
            emitter.under(
                instruction.predicate(),
                [target].into_iter().collect(),
                |emitter| {
                    let value = emitter.general(instruction.r2());
                    // A bit that does not exist is a fault.
                    let rare = emitter.ins().band_imm_s(value, !IMPLEMENTED.cast_signed());
                    emitter.in_line(instruction, rare, |emitter, _| emitter.set(target, value));
                },
            );
        }
        _ => emitter.perform(Some(instruction)),
    }
}
