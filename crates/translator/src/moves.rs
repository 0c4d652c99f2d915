//! Moves between general registers and the branch and application registers that programs use all the time.

use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::encoding::{Instruction, Source, Unit};
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::{
    self, CCV, EC, FPSR, KERNEL_0, KERNEL_7, LC, PFS, Presence, UNAT,
};
use sidestep_ia64::registers::frame::ROTATING_PREDICATES;
use sidestep_ia64::registers::frame::previous_function_state::IMPLEMENTED;

use crate::emitter::{Emitter, FIRST_ROTATING_PREDICATE};
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

/// The rotating predicates in the word of all.
const ROTATING: i64 = !0 << FIRST_ROTATING_PREDICATE;

/// How far the rotating predicates of the word are rotated, and how many places are left of a whole turn.
fn rotation(emitter: &mut Emitter) -> [Value; 2] {
    let base = emitter.load_state(I32, layout::FRAME_RENAME_PREDICATE);
    let base = emitter.ins().uextend(I64, base);
    let all = emitter.constant(i64::from(ROTATING_PREDICATES));
    [base, emitter.ins().isub(all, base)]
}

/// A word of predicates with the rotating ones rotated up by one number of places and down by another, which are as
/// many as there are together.
fn rotated(emitter: &mut Emitter, word: Value, up: Value, down: Value) -> Value {
    let first = i64::from(FIRST_ROTATING_PREDICATE);
    let rotating = emitter.ins().ushr_imm_u(word, first);
    let [high, low] = [
        emitter.ins().ishl(rotating, up),
        emitter.ins().ushr(rotating, down),
    ];
    let rotated = emitter.ins().bor(high, low);
    let rotated = emitter.ins().ishl_imm_u(rotated, first);
    let fixed = emitter.ins().band_imm_s(word, !ROTATING);
    emitter.ins().bor(fixed, rotated)
}

/// All predicates as if nothing were rotated.
pub fn from_predicates(emitter: &mut Emitter, instruction: &Instruction) {
    let word = emitter.predicate_word();
    let [base, rest] = rotation(emitter);
    let unrotated = rotated(emitter, word, base, rest);
    emitter.set_under(
        instruction.predicate(),
        Slot::general(instruction.r1()),
        unrotated,
    );
}

/// The predicates of a mask, from a register; or the rotating ones, from an immediate. The rotating ones are written as
/// if nothing were rotated: all of them, or none.
pub fn to_predicates(emitter: &mut Emitter, instruction: &Instruction, source: Source) {
    let word = emitter.predicate_word();
    let (mut value, mask) = match source {
        Source::Register => (emitter.general(instruction.r2()), instruction.immediate & !1),
        Source::Immediate => (emitter.constant(instruction.immediate), ROTATING),
    };
    if mask & ROTATING != 0 {
        let [base, rest] = rotation(emitter);
        value = rotated(emitter, value, rest, base);
    }
    let others = emitter.ins().band_imm_s(word, !mask);
    let written = emitter.ins().band_imm_s(value, mask);
    let written = emitter.ins().bor(others, written);
    emitter.replace_predicates(instruction.predicate(), written, word);
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
