//! `fcmp` and `fclass`, which write two predicates (formats F4 and F5).

use super::super::compare::write_predicates;
use super::super::frequent::call;
use super::super::{always, illegal};
use super::{Names, Rotating, Static};
use crate::encoding::{FloatRelation, Instruction, Precision, StatusField};
use crate::float::ControlIndex;
use crate::float::compare::{Classes, compare};
use crate::processor::Processor;
use crate::processor::execution::{Execute, Flow, MicroOperation, Step};

pub(in crate::processor::semantics) fn lower_compare(
    instruction: &Instruction,
    relation: FloatRelation,
    unconditional: bool,
    status: StatusField,
) -> MicroOperation {
    let execute = compare_function(instruction, relation, unconditional);
    let controls = ControlIndex::scalar(status, Precision::Dynamic).operand();
    with_targets(execute, instruction, unconditional, controls)
}

pub(in crate::processor::semantics) fn lower_class(
    instruction: &Instruction,
    unconditional: bool,
) -> MicroOperation {
    let execute: Execute = match unconditional {
        false => classify::<false>,
        true => classify::<true>,
    };
    with_targets(execute, instruction, unconditional, instruction.immediate as u64)
}

/// An operation that writes two predicates, which must not be the same.
fn with_targets(
    execute: Execute,
    instruction: &Instruction,
    unconditional: bool,
    immediate: u64,
) -> MicroOperation {
    let predicate = if unconditional { 0 } else { instruction.predicate() };
    if instruction.p1() == instruction.p2() {
        return illegal(predicate);
    }
    MicroOperation {
        predicate,
        immediate,
        ..always(call(execute), instruction)
    }
}

fn compare_function(instruction: &Instruction, relation: FloatRelation, unconditional: bool) -> Execute {
    if super::are_static(&[instruction.f2(), instruction.f3()]) {
        compare_by_names::<Static>(relation, unconditional)
    } else {
        compare_by_names::<Rotating>(relation, unconditional)
    }
}

fn compare_by_names<N: Names>(relation: FloatRelation, unconditional: bool) -> Execute {
    const EQUAL: u8 = FloatRelation::Equal as u8;
    const LESS: u8 = FloatRelation::Less as u8;
    const LESS_OR_EQUAL: u8 = FloatRelation::LessOrEqual as u8;
    const UNORDERED: u8 = FloatRelation::Unordered as u8;
    match (relation, unconditional) {
        (FloatRelation::Equal, false) => float_compare::<N, EQUAL, false>,
        (FloatRelation::Equal, true) => float_compare::<N, EQUAL, true>,
        (FloatRelation::Less, false) => float_compare::<N, LESS, false>,
        (FloatRelation::Less, true) => float_compare::<N, LESS, true>,
        (FloatRelation::LessOrEqual, false) => float_compare::<N, LESS_OR_EQUAL, false>,
        (FloatRelation::LessOrEqual, true) => float_compare::<N, LESS_OR_EQUAL, true>,
        (FloatRelation::Unordered, false) => float_compare::<N, UNORDERED, false>,
        (FloatRelation::Unordered, true) => float_compare::<N, UNORDERED, true>,
    }
}

/// The relation that a constant of [`compare_by_names`] stands for.
const fn relation(constant: u8) -> FloatRelation {
    const RELATIONS: [FloatRelation; 4] = [
        FloatRelation::Equal,
        FloatRelation::Less,
        FloatRelation::LessOrEqual,
        FloatRelation::Unordered,
    ];
    RELATIONS[constant as usize]
}

/// Writes a result and its complement; an unknown result clears both.
#[inline(always)]
fn write_result(processor: &mut Processor, operation: &MicroOperation, result: Option<bool>) {
    write_predicates(processor, operation, result == Some(true), result == Some(false));
}

/// Whether an unconditional operation's predicate is false, which clears both targets.
#[inline(always)]
fn is_annulled<const UNCONDITIONAL: bool>(processor: &mut Processor, operation: &MicroOperation) -> bool {
    if UNCONDITIONAL && !processor.predicate(operation.extra) {
        write_result(processor, operation, None);
        return true;
    }
    false
}

fn float_compare<N: Names, const RELATION: u8, const UNCONDITIONAL: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    if is_annulled::<UNCONDITIONAL>(processor, operation) {
        return Ok(Flow::Next);
    }
    processor.check_floating_enabled(&[operation.r2, operation.r3], 0)?;
    let (f2, f3) = (N::read(processor, operation.r2), N::read(processor, operation.r3));
    match compare(
        f2,
        f3,
        const { relation(RELATION) },
        processor.float_control(operation),
    ) {
        Ok(compared) => {
            processor.raise_flags(operation, compared.flags);
            write_result(processor, operation, compared.holds);
            Ok(Flow::Next)
        }
        Err(fault) => Err(processor.raise_float_fault(fault)),
    }
}

fn classify<const UNCONDITIONAL: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    if is_annulled::<UNCONDITIONAL>(processor, operation) {
        return Ok(Flow::Next);
    }
    processor.check_floating_enabled(&[operation.r2], 0)?;
    let classes = Classes::from_bits_truncate(operation.immediate as u16);
    let member = classes.contain(processor.floating(operation.r2));
    write_result(processor, operation, member);
    Ok(Flow::Next)
}
