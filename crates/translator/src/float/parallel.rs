//! Parallel operations: two numbers of single precision in the halves of a significand, which a register holds as an
//! integer.
//!
//! The host computes each half where it would compute a scalar of single precision; where it does not for one of them,
//! both are the interpreter's, which unites their flags.

use cranelift_codegen::ir::types::{F32, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use sidestep_ia64::encoding::{FloatMix, Instruction, MultiplyAdd, StatusField};

use super::arithmetic::{is_usual, unless_exact, unless_host_may_not_compute, unless_unusual_result};
use super::memory::in_memory;
use super::{SINGLE, deliver_integer, is_writable, significand};
use crate::emitter::Emitter;
use crate::memory::targets;

/// Where the high half of a significand begins.
const HALF: i64 = 32;

/// `fpma`, `fpms`, `fpnma`: f0 as the addend is no addend.
pub fn multiply_add(
    emitter: &mut Emitter,
    instruction: &Instruction,
    function: MultiplyAdd,
    status: StatusField,
) {
    // By the software conventions the second status field has the range of the registers, in which the host does not
    // compute.
    if !is_writable(instruction.f1()) || !emitter.is_fused() || status == StatusField::S1 {
        return emitter.perform(Some(instruction));
    }
    let adds = instruction.f2() & 127 != 0;
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let mut rare = None;
        let factors =
            [instruction.f3(), instruction.f4()].map(|register| significand(emitter, register, &mut rare));
        let addend = adds.then(|| significand(emitter, instruction.f2(), &mut rare));
        let is_usual = is_usual(emitter, status);
        deliver_integer(emitter, instruction, rare, |emitter, aside| {
            let halves = [true, false].map(|is_high| {
                let mut number = |both, negates: bool| {
                    let number = half(emitter, both, is_high, aside);
                    if negates {
                        emitter.ins().fneg(number)
                    } else {
                        number
                    }
                };
                let a = number(factors[0], function == MultiplyAdd::NegateAdd);
                let b = number(factors[1], false);
                let c = addend.map(|both| number(both, function == MultiplyAdd::Subtract));
                (a, b, c)
            });
            let halves = halves.map(|(a, b, c)| {
                let result = match c {
                    Some(c) => emitter.ins().fma(a, b, c),
                    None => emitter.ins().fmul(a, b),
                };
                ((a, Some(b), c), result)
            });
            unless_host_may_not_compute(emitter, (status, is_usual), aside, |emitter| {
                for (operands, result) in halves {
                    unless_exact(emitter, operands, result, SINGLE, aside);
                }
            });
            let [high, low] = halves.map(|((a, b, c), result)| {
                let operands = [Some(a), b, c].into_iter().flatten();
                unless_unusual_result(emitter, result, operands, SINGLE, aside);
                result
            });
            pair(emitter, high, low)
        });
    });
}

/// `fpack`.
pub fn pack(emitter: &mut Emitter, instruction: &Instruction) {
    if !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        deliver_integer(emitter, instruction, None, |emitter, aside| {
            let [high, low] = [instruction.f2(), instruction.f3()]
                .map(|register| in_memory(emitter, register, SINGLE, aside));
            pair(emitter, high, low)
        });
    });
}

/// `fmix`.
pub fn mix(emitter: &mut Emitter, instruction: &Instruction, mix: FloatMix) {
    if !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let mut rare = None;
        let [left, right] =
            [instruction.f2(), instruction.f3()].map(|register| significand(emitter, register, &mut rare));
        deliver_integer(emitter, instruction, rare, |emitter, _| {
            let high = match mix {
                FloatMix::Left | FloatMix::LeftRight => emitter.ins().ushr_imm_u(left, HALF),
                FloatMix::Right => left,
            };
            let low = match mix {
                FloatMix::Left => emitter.ins().ushr_imm_u(right, HALF),
                FloatMix::Right | FloatMix::LeftRight => right,
            };
            pair(emitter, high, low)
        });
    });
}

/// A half of a significand as a number. Goes aside where that is neither a normal value nor a zero.
fn half(emitter: &mut Emitter, pair: Value, is_high: bool, aside: Block) -> Value {
    let bits = match is_high {
        true => emitter.ins().ushr_imm_u(pair, HALF),
        false => emitter.extend(pair, 4, false),
    };
    SINGLE.unless_double(emitter, bits, aside);
    let bits = emitter.ins().ireduce(I32, bits);
    emitter.ins().bitcast(F32, MemFlagsData::new(), bits)
}

/// A significand of two halves: numbers of single precision, or words whose low bits count.
fn pair(emitter: &mut Emitter, high: Value, low: Value) -> Value {
    let [high, low] = [high, low].map(|half| {
        let bits = emitter.bits(half, I32);
        emitter.ins().uextend(I64, bits)
    });
    let high = emitter.ins().ishl_imm_u(high, HALF);
    emitter.ins().bor(high, low)
}
