//! Compares and tests of bits, which write two predicates: what the interpreter's family `compare` does.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::encoding::{
    BitRelation, CompareSource, CompareWidth, Instruction, PredicateUpdate, Relation,
};

use crate::emitter::Emitter;
use crate::slots::Slot;

pub fn compare(
    emitter: &mut Emitter,
    instruction: &Instruction,
    (relation, width, update, first): (Relation, CompareWidth, PredicateUpdate, CompareSource),
) {
    let is_signed = !matches!(
        relation,
        Relation::Equal | Relation::NotEqual | Relation::LessUnsigned
    );
    let condition = match relation {
        Relation::Equal => IntCC::Equal,
        Relation::NotEqual => IntCC::NotEqual,
        Relation::Less => IntCC::SignedLessThan,
        Relation::LessOrEqual => IntCC::SignedLessThanOrEqual,
        Relation::Greater => IntCC::SignedGreaterThan,
        Relation::GreaterOrEqual => IntCC::SignedGreaterThanOrEqual,
        Relation::LessUnsigned => IntCC::UnsignedLessThan,
    };
    let a = match first {
        CompareSource::Register => emitter.general(instruction.r2()),
        CompareSource::Zero => emitter.constant(0),
        CompareSource::Immediate => emitter.constant(instruction.immediate),
    };
    let b = emitter.general(instruction.r3());
    let [a, b] = match width {
        CompareWidth::DoubleWord => [a, b],
        CompareWidth::Word => [a, b].map(|value| emitter.extend(value, 4, is_signed)),
    };
    let result = emitter.ins().icmp(condition, a, b);
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
    let word = emitter.get(Slot::PREDICATES);
    let cleared = without_targets(emitter, instruction);
    let (written, otherwise) = match update {
        PredicateUpdate::Normal => (with_result(emitter, instruction, cleared, result), word),
        PredicateUpdate::Unconditional => (with_result(emitter, instruction, cleared, result), cleared),
        PredicateUpdate::And => (emitter.ins().select(result, word, cleared), word),
        PredicateUpdate::Or => {
            let both = emitter.constant(both_targets(instruction));
            let set = emitter.ins().bor(word, both);
            (emitter.ins().select(result, set, word), word)
        }
        PredicateUpdate::OrAndComplement => {
            let first = emitter.constant(1i64 << p1);
            let set = emitter.ins().bor(cleared, first);
            (emitter.ins().select(result, set, word), word)
        }
    };
    let word = match executed {
        None => written,
        Some(condition) => emitter.ins().select(condition, written, otherwise),
    };
    let known = match (update, executed) {
        (PredicateUpdate::Normal | PredicateUpdate::Unconditional, None) => {
            let complement = emitter.ins().icmp_imm_u(IntCC::Equal, result, 0);
            [(p1, Some(result)), (p2, Some(complement))]
        }
        (PredicateUpdate::Unconditional, Some(condition)) => {
            let complement = emitter.ins().icmp_imm_u(IntCC::Equal, result, 0);
            let [first, second] = [result, complement].map(|value| emitter.ins().band(condition, value));
            [(p1, Some(first)), (p2, Some(second))]
        }
        _ => [(p1, None), (p2, None)],
    };
    emitter.set_predicates(word, known);
}

/// Writes the two targets of a comparison that is executed: its result, and the opposite.
pub fn write_complementary(emitter: &mut Emitter, instruction: &Instruction, result: Value) {
    let cleared = without_targets(emitter, instruction);
    let word = with_result(emitter, instruction, cleared, result);
    emitter.set(Slot::PREDICATES, word);
}

/// The bits of the two targets in the word of predicates. The first predicate is no target: it is always true.
fn both_targets(instruction: &Instruction) -> i64 {
    (1i64 << instruction.p1() | 1i64 << instruction.p2()) & !1
}

/// The word of predicates with the two targets clear.
fn without_targets(emitter: &mut Emitter, instruction: &Instruction) -> Value {
    let word = emitter.get(Slot::PREDICATES);
    let others = emitter.constant(!both_targets(instruction));
    emitter.ins().band(word, others)
}

/// A word of predicates that has the two targets clear, with the one set that a result chooses.
fn with_result(emitter: &mut Emitter, instruction: &Instruction, cleared: Value, result: Value) -> Value {
    let [first, second] =
        [instruction.p1(), instruction.p2()].map(|predicate| emitter.constant(1i64 << predicate));
    let set = emitter.ins().select(result, first, second);
    emitter.ins().bor(cleared, set)
}
