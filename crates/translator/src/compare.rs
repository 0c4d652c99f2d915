//! Compares and tests of bits, which write two predicates: what the interpreter's family `compare` does.

use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::encoding::{
    BitRelation, CompareSource, CompareWidth, Instruction, PredicateUpdate, Relation,
};

use crate::emitter::Emitter;

pub fn compare(
    emitter: &mut Emitter,
    instruction: &Instruction,
    (relation, width, update, first): (Relation, CompareWidth, PredicateUpdate, CompareSource),
) {
    let condition = match relation {
        Relation::Equal => IntCC::Equal,
        Relation::NotEqual => IntCC::NotEqual,
        Relation::Less => IntCC::SignedLessThan,
        Relation::LessOrEqual => IntCC::SignedLessThanOrEqual,
        Relation::Greater => IntCC::SignedGreaterThan,
        Relation::GreaterOrEqual => IntCC::SignedGreaterThanOrEqual,
        Relation::LessUnsigned => IntCC::UnsignedLessThan,
    };
    let b = emitter.general(instruction.r3());
    let narrow = |emitter: &mut Emitter, value| match width {
        CompareWidth::DoubleWord => value,
        CompareWidth::Word => emitter.ins().ireduce(I32, value),
    };
    // The host has constants on the other side.
    let swapped = condition.swap_args();
    let result = match first {
        CompareSource::Register => {
            let a = emitter.general(instruction.r2());
            let [a, b] = [a, b].map(|value| narrow(emitter, value));
            emitter.ins().icmp(condition, a, b)
        }
        CompareSource::Zero => {
            let b = narrow(emitter, b);
            emitter.ins().icmp_imm_s(swapped, b, 0)
        }
        CompareSource::Immediate => {
            let b = narrow(emitter, b);
            emitter.ins().icmp_imm_s(swapped, b, instruction.immediate)
        }
    };
    write(emitter, instruction, update, result);
}

pub fn test_bit(
    emitter: &mut Emitter,
    instruction: &Instruction,
    relation: BitRelation,
    update: PredicateUpdate,
) {
    let value = emitter.general(instruction.r3());
    let bit = emitter.constant(1i64 << (instruction.position & 63));
    let bit = emitter.ins().band(value, bit);
    let condition = match relation {
        BitRelation::Zero => IntCC::Equal,
        BitRelation::NotZero => IntCC::NotEqual,
    };
    let result = emitter.ins().icmp_imm_u(condition, bit, 0);
    write(emitter, instruction, update, result);
}

/// Tests a NaT bit, which is clear in a region: its registers have none.
pub fn test_nat(
    emitter: &mut Emitter,
    instruction: &Instruction,
    relation: BitRelation,
    update: PredicateUpdate,
) {
    let result = emitter.constant(i64::from(relation == BitRelation::Zero));
    let result = emitter.ins().icmp_imm_u(IntCC::NotEqual, result, 0);
    write(emitter, instruction, update, result);
}

/// Whether a compare or test may be emitted: one that names a predicate twice is an illegal operation.
pub fn is_legal(instruction: &Instruction) -> bool {
    instruction.p1() != instruction.p2()
}

/// Writes the two targets. No source is NaT.
fn write(emitter: &mut Emitter, instruction: &Instruction, update: PredicateUpdate, result: Value) {
    let (p1, p2) = (instruction.p1(), instruction.p2());
    let executed = emitter.predicate(instruction.predicate());
    match (update, executed) {
        (PredicateUpdate::Normal | PredicateUpdate::Unconditional, None) => {
            emitter.set_complementary(p1, p2, result);
        }
        (PredicateUpdate::Unconditional, Some(condition)) => {
            for (predicate, set) in [(p1, result), (p2, emitter.not(result))] {
                let value = emitter.ins().band(condition, set);
                emitter.set_predicate(predicate, value);
            }
        }
        (PredicateUpdate::Normal, Some(condition)) => {
            for (predicate, set) in [(p1, result), (p2, emitter.not(result))] {
                change(emitter, predicate, |emitter, old| {
                    emitter.ins().select(condition, set, old)
                });
            }
        }
        (PredicateUpdate::And, executed) => {
            // What is not executed clears nothing.
            let stays = match executed {
                Some(condition) => {
                    let not_executed = emitter.not(condition);
                    emitter.ins().bor(result, not_executed)
                }
                None => result,
            };
            for predicate in [p1, p2] {
                change(emitter, predicate, |emitter, old| emitter.ins().band(old, stays));
            }
        }
        (PredicateUpdate::Or | PredicateUpdate::OrAndComplement, executed) => {
            let sets = match executed {
                Some(condition) => emitter.ins().band(condition, result),
                None => result,
            };
            change(emitter, p1, |emitter, old| emitter.ins().bor(old, sets));
            change(emitter, p2, |emitter, old| match update {
                PredicateUpdate::Or => emitter.ins().bor(old, sets),
                _ => emitter.ins().band_not(old, sets),
            });
        }
    }
}

/// Changes a predicate, unless it is the first, which is always true.
fn change(emitter: &mut Emitter, predicate: u8, new: impl FnOnce(&mut Emitter, Value) -> Value) {
    if let Some(old) = emitter.predicate(predicate) {
        let value = new(emitter, old);
        emitter.set_predicate(predicate, value);
    }
}
