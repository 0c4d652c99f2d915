//! Arithmetic: on the host's floating-point unit where it delivers the same value and the guest's status register
//! stays as it is; the multiplication of integers.
//!
//! The host computes where [`StatusRegister::host_controls`] says that it may, every operand is a normal value or a
//! zero of the precision, and the result is a normal value above the smallest exponent: so neither V, D, O nor U can
//! be raised, and the sign of a zero is not asked for. I is set already, or error terms prove that the result is
//! exact. All else is the interpreter's: an operand that is no number is a NaN, and so is the result then. Where the
//! host tells of it by [exceptions](crate::exceptions), operands and results are not looked at: then zeros and
//! infinities are usual as well.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I8, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use sidestep_ia64::encoding::{
    Extremum, FixedPart, FixedRounding, FloatRelation, Instruction, MultiplyAdd, Operation,
    Precision as Completer, Signedness, StatusField,
};
use sidestep_ia64::float::compare::Classes;
use sidestep_ia64::float::register::EXPONENT_INTEGER;
use sidestep_ia64::float::{Precision as Bits, StatusRegister};
use sidestep_ia64::registers::application::FPSR;

use super::{
    DOUBLE, Precision, SIGN_SHIFT, SINGLE, deliver, deliver_integer, deliver_integer_among, deliver_settled,
    double, either, is_not_well_above, is_writable, mark_written, modified, nearest, note_integer_source,
    number, place, significand, store_double, store_words, write_double,
};
use crate::compare;
use crate::emitter::{Double, Emitter};
use crate::memory::targets;
use crate::slots::Slot;

/// Whether the controls of a status field let the host compute and its inexact flag is set: looked at once on a path.
/// `None` where it is known that the controls do.
pub fn is_usual(emitter: &mut Emitter, status: StatusField) -> Option<Value> {
    if emitter.has_host_controls(status) {
        return None;
    }
    if let Some(known) = emitter.known.floats.usual_status(status) {
        return Some(known);
    }
    let (mask, bits) = StatusRegister::host_controls(status);
    let flag = StatusRegister::inexact_flag(status);
    // Emitted code does not change it, so memory has it.
    let fpsr = emitter.load_state(I64, Slot::application(FPSR).offset());
    let looked_at = emitter.constant((mask | flag).cast_signed());
    let controls = emitter.ins().band(fpsr, looked_at);
    let usual = emitter.constant((bits | flag).cast_signed());
    let is_usual = emitter.ins().icmp(IntCC::Equal, controls, usual);
    emitter.known.floats.note_usual_status(status, is_usual);
    Some(is_usual)
}

/// Unless everything [`is_usual`], goes aside where the controls of the status field do not let the host compute, and
/// where `unless_exact` does; in any case where the flag is likely to be set, so that there is less code.
pub(super) fn unless_host_may_not_compute(
    emitter: &mut Emitter,
    (status, is_usual): (StatusField, Option<Value>),
    aside: Block,
    unless_exact: impl FnOnce(&mut Emitter),
) {
    let Some(is_usual) = is_usual else {
        if !emitter.is_inexact(status) {
            unless_exact(emitter);
        }
        return;
    };
    if emitter.is_inexact(status) {
        let is_unusual = emitter.not(is_usual);
        return emitter.unless(is_unusual, aside);
    }
    let [unusual, rest] = [(); 2].map(|()| emitter.builder.create_block());
    emitter.ins().brif(is_usual, rest, &[], unusual, &[]);
    let decide = |emitter: &mut Emitter| {
        let mut rare = None;
        unless_controls(emitter, status, StatusRegister::host_controls(status), &mut rare);
        emitter.unless(rare.expect("the controls decide"), aside);
        unless_exact(emitter);
    };
    emitter.rarely(unusual, decide, rest);
}

/// Makes `rare` true where some bits of the status register are others; answers a value that is not zero where the
/// inexact flag of a status field is set.
pub(super) fn unless_controls(
    emitter: &mut Emitter,
    status: StatusField,
    (mask, bits): (u64, u64),
    rare: &mut Option<Value>,
) -> Value {
    // Emitted code does not change it, so memory has it.
    let fpsr = emitter.load_state(I64, Slot::application(FPSR).offset());
    let mask = emitter.constant(mask.cast_signed());
    let controls = emitter.ins().band(fpsr, mask);
    let bits = emitter.constant(bits.cast_signed());
    let differs = emitter.ins().icmp(IntCC::NotEqual, controls, bits);
    *rare = Some(either(emitter, *rare, differs));
    let flag = emitter.constant(StatusRegister::inexact_flag(status).cast_signed());
    emitter.ins().band(fpsr, flag)
}

/// Goes aside where `is_exact` answers false, unless it does not matter whether a result is exact.
fn unless_inexact(
    emitter: &mut Emitter,
    does_not_matter: Value,
    aside: Block,
    is_exact: impl FnOnce(&mut Emitter, &mut Option<Value>) -> Value,
) {
    let [check, rest] = [(); 2].map(|()| emitter.builder.create_block());
    emitter.ins().brif(does_not_matter, rest, &[], check, &[]);
    emitter.begin(check);
    let mut rare = None;
    let is_exact = is_exact(emitter, &mut rare);
    let is_inexact = emitter.ins().icmp_imm_u(IntCC::Equal, is_exact, 0);
    let rare = either(emitter, rare, is_inexact);
    emitter.ins().brif(rare, aside, &[], rest, &[]);
    emitter.begin(rest);
}

/// Makes `rare` true where a value's exponent is not in the middle quarter of its range, in which the error terms of
/// products and sums have room.
fn unless_in_the_middle(emitter: &mut Emitter, value: Value, precision: Precision, rare: &mut Option<Value>) {
    let bits = emitter.ins().bitcast(precision.host, MemFlagsData::new(), value);
    let exponent = emitter.ins().ushr_imm_u(bits, precision.fraction_bits);
    let exponent = emitter.ins().band_imm_u(exponent, precision.special());
    let half = 1 << (precision.exponent_bits - 3);
    let lowest = (precision.special() >> 1) - half;
    let exponent = emitter.ins().iadd_imm_s(exponent, -lowest);
    let is_outside = emitter
        .ins()
        .icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, exponent, 2 * half);
    *rare = Some(either(emitter, *rare, is_outside));
}

/// Goes aside where a rounded result of numbers, `a * b + c` of those that there are, is not the precise one. What it
/// has more than the addend has to be the product then, and what it has more than that the addend: where it is not the
/// sum, one of the two is not so (Dekker's error term).
pub(super) fn unless_exact(
    emitter: &mut Emitter,
    (a, b, c): (Value, Option<Value>, Option<Value>),
    result: Value,
    precision: Precision,
    aside: Block,
) {
    let product = c.map_or(result, |c| emitter.ins().fsub(result, c));
    match b {
        Some(b) => unless_product(emitter, (a, b), product, precision, aside),
        None => unless_same(emitter, product, a, aside),
    }
    if let Some(c) = c {
        let rest = emitter.ins().fsub(result, product);
        unless_same(emitter, rest, c, aside);
    }
}

/// Goes aside where two numbers are not the same; where one is none is seen elsewhere.
fn unless_same(emitter: &mut Emitter, one: Value, other: Value, aside: Block) {
    let differ = emitter.ins().fcmp(FloatCC::OrderedNotEqual, one, other);
    emitter.unless(differ, aside);
}

/// Goes aside where a value is not the product of two others.
fn unless_product(
    emitter: &mut Emitter,
    (a, b): (Value, Value),
    product: Value,
    precision: Precision,
    aside: Block,
) {
    let negated = emitter.ins().fneg(product);
    let error = emitter.ins().fma(a, b, negated);
    let zero = precision.zero(emitter);
    unless_same(emitter, error, zero, aside);
    // The error has twice as many bits as the product, and has to be none that the format is too small for.
    let bits = emitter
        .ins()
        .bitcast(precision.host, MemFlagsData::new(), product);
    let exponent = emitter
        .ins()
        .band_imm_u(bits, precision.special() << precision.fraction_bits);
    let lowest = 2 * (precision.fraction_bits + 1) + 1;
    let is_small = emitter.ins().icmp_imm_u(
        IntCC::UnsignedLessThan,
        exponent,
        lowest << precision.fraction_bits,
    );
    let [small, rest] = [(); 2].map(|()| emitter.builder.create_block());
    emitter.builder.set_cold_block(small);
    emitter.ins().brif(is_small, small, &[], rest, &[]);
    emitter.begin(small);
    let [is_a, is_b] = [a, b].map(|value| emitter.ins().fcmp(FloatCC::NotEqual, value, zero));
    let is_no_zero = emitter.ins().band(is_a, is_b);
    emitter.back_unless(is_no_zero, aside, rest);
    emitter.begin(rest);
}

/// A double in the host's type of a precision; `rare` becomes true where it does not hold the value.
pub(super) fn narrowed(
    emitter: &mut Emitter,
    double: Double,
    precision: Precision,
    rare: &mut Option<Value>,
) -> Value {
    if precision.fraction_bits == DOUBLE.fraction_bits {
        return double.value;
    }
    let narrow = emitter.ins().fdemote(F32, double.value);
    if !double.is_single {
        let wide = emitter.ins().fpromote(F64, narrow);
        let differs = emitter.ins().fcmp(FloatCC::NotEqual, wide, double.value);
        *rare = Some(either(emitter, *rare, differs));
    }
    narrow
}

/// Goes aside where a result is neither a normal value above the smallest exponent nor a zero that has not been
/// rounded: one of operands that are zeros or values in the middle.
pub(super) fn unless_unusual_result(
    emitter: &mut Emitter,
    result: Value,
    operands: impl Iterator<Item = Value>,
    precision: Precision,
    aside: Block,
) {
    let is_unusual = is_not_well_above(emitter, result, precision);
    let [check, rest] = [(); 2].map(|()| emitter.builder.create_block());
    emitter.builder.set_cold_block(check);
    emitter.ins().brif(is_unusual, check, &[], rest, &[]);
    emitter.begin(check);
    let zero = emitter.ins().fsub(result, result);
    let mut rare = emitter.ins().fcmp(FloatCC::NotEqual, result, zero);
    for operand in operands {
        let mut is_outside = None;
        unless_in_the_middle(emitter, operand, precision, &mut is_outside);
        let zero = emitter.ins().fsub(operand, operand);
        let is_number = emitter.ins().fcmp(FloatCC::NotEqual, operand, zero);
        let is_other = is_outside.map_or(is_number, |is_outside| emitter.ins().band(is_outside, is_number));
        rare = emitter.ins().bor(rare, is_other);
    }
    emitter.back_unless(rare, aside, rest);
    emitter.begin(rest);
}

/// A product of f0 and f1, which are constants: a zero or a one under any controls.
fn multiply_constants(emitter: &mut Emitter, instruction: &Instruction, function: MultiplyAdd) {
    let factors = [instruction.f3(), instruction.f4()].map(|register| f64::from(register & 127));
    let product = match function {
        MultiplyAdd::NegateAdd => -(factors[0] * factors[1]),
        MultiplyAdd::Add | MultiplyAdd::Subtract => factors[0] * factors[1],
    };
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let value = emitter.ins().f64const(product);
        let register = instruction.f1() & 127;
        write_double(emitter, register, value);
        let is_single = true;
        emitter
            .known
            .floats
            .note(register, Some(Double { value, is_single }));
    });
}

/// Whether a multiply-add is emitted as the host's, under controls that are settled, with a look for exceptions behind.
pub fn looks_for_exceptions(emitter: &Emitter, instruction: &Instruction) -> bool {
    let Operation::FloatMultiplyAdd {
        precision: Completer::Single | Completer::Double,
        status,
        ..
    } = instruction.operation
    else {
        return false;
    };
    let operands = [instruction.f2(), instruction.f3(), instruction.f4()];
    let is_extended = |register: u8| emitter.known.floats.is_extended(register & 127);
    status != StatusField::S1
        && emitter.has_exceptions()
        && emitter.has_host_controls(status)
        && emitter.is_fused()
        && is_writable(instruction.f1())
        && !are_constants(instruction)
        && !operands.into_iter().any(is_extended)
}

/// Whether a multiply-add has no operands but f0 and f1.
fn are_constants(instruction: &Instruction) -> bool {
    let factors = [instruction.f3(), instruction.f4()];
    instruction.f2() & 127 == 0 && !factors.iter().any(|register| is_writable(register & 127))
}

/// `fma`, `fms`, `fnma`: f0 as the addend is no addend, f1 as the multiplier no factor.
pub fn multiply_add(
    emitter: &mut Emitter,
    instruction: &Instruction,
    function: MultiplyAdd,
    completer: Completer,
    status: StatusField,
) {
    if are_constants(instruction) && is_writable(instruction.f1()) {
        return multiply_constants(emitter, instruction, function);
    }
    // By the software conventions the second status field has the range of the registers.
    let precision = match (completer, status) {
        (Completer::Dynamic, _) => {
            return nearest::multiply_add(emitter, instruction, function, Bits::Extended, status);
        }
        (Completer::Double, StatusField::S1) => {
            return nearest::multiply_add(emitter, instruction, function, Bits::Double, status);
        }
        (Completer::Single, StatusField::S1) => {
            return nearest::multiply_add(emitter, instruction, function, Bits::Single, status);
        }
        (Completer::Double, _) => DOUBLE,
        (Completer::Single, _) => SINGLE,
    };
    let [f2, f3, f4] = [instruction.f2(), instruction.f3(), instruction.f4()].map(|register| register & 127);
    if !is_writable(instruction.f1()) || !emitter.is_fused() {
        return emitter.perform(Some(instruction));
    }
    // The last step of a division.
    let is_extended = |&register: &u8| emitter.known.floats.is_extended(register);
    if [f2, f3, f4].iter().any(is_extended) {
        let (bits, is_single) = match completer {
            Completer::Single => (Bits::Single, true),
            _ => (Bits::Double, false),
        };
        return nearest::last_multiply_add(
            emitter,
            instruction,
            function,
            (bits, is_single, precision),
            status,
        );
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let mut rare = None;
        // What is neither multiplied nor added the host does not look at.
        let is_moved = f4 == 1 && f2 == 0;
        let mut operand = |emitter: &mut Emitter, register| {
            let double = match is_moved {
                true => number(emitter, register, &mut rare),
                false => double(emitter, register),
            };
            narrowed(emitter, double, precision, &mut rare)
        };
        let a = operand(emitter, f3);
        let b = (f4 != 1).then(|| operand(emitter, f4));
        let c = (f2 != 0).then(|| operand(emitter, f2));
        // Where the host multiplies and adds it changes signs as well. What looks at the sum does so for itself.
        let signed = |emitter: &mut Emitter| {
            let negated = |emitter: &mut Emitter, value, negates: bool| match negates {
                true => emitter.ins().fneg(value),
                false => value,
            };
            let a = negated(emitter, a, function == MultiplyAdd::NegateAdd);
            let c = c.map(|c| negated(emitter, c, function == MultiplyAdd::Subtract));
            (a, b, c)
        };
        let is_usual = is_usual(emitter, status);
        deliver_settled(
            emitter,
            instruction,
            (completer == Completer::Single, is_usual.is_none()),
            rare,
            |emitter, aside| {
                let result = match (b, c, function) {
                    (None, Some(c), MultiplyAdd::Subtract) => emitter.ins().fsub(a, c),
                    (None, Some(c), MultiplyAdd::NegateAdd) => emitter.ins().fsub(c, a),
                    _ => match signed(emitter) {
                        (a, None, None) => a,
                        (a, Some(b), None) => emitter.ins().fmul(a, b),
                        (a, None, Some(c)) => emitter.ins().fadd(a, c),
                        (a, Some(b), Some(c)) => emitter.ins().fma(a, b, c),
                    },
                };
                unless_host_may_not_compute(emitter, (status, is_usual), aside, |emitter| {
                    let operands = signed(emitter);
                    unless_exact(emitter, operands, result, precision, aside);
                });
                let operands = [Some(a), b, c].into_iter().flatten();
                match looks_for_exceptions(emitter, instruction) {
                    true => emitter.unless_exception(aside),
                    false => unless_unusual_result(emitter, result, operands, precision, aside),
                }
                let value = match completer {
                    Completer::Single => emitter.ins().fpromote(F64, result),
                    _ => result,
                };
                if is_usual.is_none() && !is_moved {
                    emitter.note_number(value);
                }
                value
            },
        );
    });
}

/// `fcmp` of numbers, which raises nothing.
pub fn compare(
    emitter: &mut Emitter,
    instruction: &Instruction,
    relation: FloatRelation,
    unconditional: bool,
) {
    let condition = match relation {
        FloatRelation::Equal => FloatCC::Equal,
        FloatRelation::Less => FloatCC::LessThan,
        FloatRelation::LessOrEqual => FloatCC::LessThanOrEqual,
        FloatRelation::Unordered => FloatCC::Unordered,
    };
    if !compare::is_legal(instruction) {
        return emitter.perform(Some(instruction));
    }
    let executed = emitter.predicate(instruction.predicate());
    let mut rare = None;
    let [a, b] =
        [instruction.f2(), instruction.f3()].map(|register| number(emitter, register, &mut rare).value);
    // The host raises an exception where one is none.
    emitter.compare_numbers(instruction, unconditional, (executed, rare), |emitter| {
        emitter.ins().fcmp(condition, a, b)
    });
}

/// `fmin`, `fmax`, `famin`, `famax` of numbers, which raise nothing: f3 where none is the one that is wanted.
pub fn extremum(emitter: &mut Emitter, instruction: &Instruction, select: Extremum) {
    if !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let mut rare = None;
        let [a, b] =
            [instruction.f2(), instruction.f3()].map(|register| number(emitter, register, &mut rare));
        let condition = match select {
            Extremum::Minimum | Extremum::AbsoluteMinimum => FloatCC::LessThan,
            Extremum::Maximum | Extremum::AbsoluteMaximum => FloatCC::GreaterThan,
        };
        let is_single = a.is_single && b.is_single;
        deliver(emitter, instruction, is_single, rare, |emitter, _| {
            let [one, other] = [a, b].map(|Double { value, .. }| match select {
                Extremum::Minimum | Extremum::Maximum => value,
                Extremum::AbsoluteMinimum | Extremum::AbsoluteMaximum => emitter.ins().fabs(value),
            });
            let is_first = emitter.ins().fcmp(condition, one, other);
            emitter.ins().select(is_first, a.value, b.value)
        });
    });
}

/// `fclass` of numbers: a sign and a class that are asked for.
pub fn classify(emitter: &mut Emitter, instruction: &Instruction, unconditional: bool) {
    if !compare::is_legal(instruction) {
        return emitter.perform(Some(instruction));
    }
    let executed = emitter.predicate(instruction.predicate());
    let mut rare = None;
    let value = number(emitter, instruction.f2(), &mut rare).value;
    let bits = emitter.ins().bitcast(I64, MemFlagsData::new(), value);
    let magnitude = emitter.ins().ishl_imm_u(bits, 1);
    let is_negative = emitter.ins().icmp_imm_s(IntCC::SignedLessThan, bits, 0);
    let is_positive = emitter.not(is_negative);
    let is_zero = emitter.ins().icmp_imm_u(IntCC::Equal, magnitude, 0);
    let infinity = emitter.constant(f64::INFINITY.to_bits().cast_signed() << 1);
    let is_infinite = emitter.ins().icmp(IntCC::Equal, magnitude, infinity);
    let is_other = emitter.ins().bor(is_zero, is_infinite);
    let is_normal = emitter.not(is_other);
    let wanted = Classes::from_bits_truncate(instruction.immediate as u16);
    let mut any = |classes: &[(Classes, Value)]| {
        let none = emitter.ins().iconst(I8, 0);
        let asked = classes.iter().filter(|(class, _)| wanted.contains(*class));
        asked.fold(none, |any, (_, is_one)| emitter.ins().bor(any, *is_one))
    };
    let sign = any(&[(Classes::POSITIVE, is_positive), (Classes::NEGATIVE, is_negative)]);
    let class = any(&[
        (Classes::ZERO, is_zero),
        (Classes::NORMAL, is_normal),
        (Classes::INFINITY, is_infinite),
    ]);
    let result = emitter.ins().band(sign, class);
    emitter.compare_numbers(instruction, unconditional, (executed, rare), |_| result);
}

/// `fcvt.fx` and `fcvt.fxu` of numbers that a signed integer holds.
pub fn to_fixed(
    emitter: &mut Emitter,
    instruction: &Instruction,
    signedness: Signedness,
    rounding: FixedRounding,
    status: StatusField,
) {
    if !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        if emitter.known.floats.double(instruction.f2() & 127).is_none() {
            return nearest::to_fixed(emitter, instruction, signedness, rounding, status);
        }
        let mut rare = None;
        let controls = StatusRegister::conversion_controls(status, rounding);
        let is_known_inexact = unless_controls(emitter, status, controls, &mut rare);
        let value = number(emitter, instruction.f2(), &mut rare).value;
        let end = emitter.ins().f64const(-(i64::MIN as f64));
        let first = match signedness {
            Signedness::Signed => emitter.ins().f64const(i64::MIN as f64),
            Signedness::Unsigned => emitter.ins().f64const(0.0),
        };
        let is_beyond = emitter.ins().fcmp(FloatCC::GreaterThanOrEqual, value, end);
        let is_below = emitter.ins().fcmp(FloatCC::LessThan, value, first);
        let is_outside = emitter.ins().bor(is_beyond, is_below);
        let rare = either(emitter, rare, is_outside);
        deliver_integer(emitter, instruction, Some(rare), |emitter, aside| {
            let integer = match rounding {
                FixedRounding::Truncate => value,
                FixedRounding::Dynamic => emitter.ins().nearest(value),
            };
            let fixed = emitter.ins().fcvt_to_sint_sat(I64, integer);
            unless_inexact(emitter, is_known_inexact, aside, |emitter, _| {
                let back = emitter.ins().fcvt_from_sint(F64, fixed);
                emitter.ins().fcmp(FloatCC::Equal, back, value)
            });
            fixed
        });
    });
}

/// `fcvt.xf`: a double where one surely holds the integer.
pub fn from_fixed(emitter: &mut Emitter, instruction: &Instruction) {
    if !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    let register = instruction.f1() & 127;
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let mut rare = None;
        let fixed = significand(emitter, instruction.f2(), &mut rare);
        let [value, integer] = emitter.merge(
            [F64, I64],
            rare,
            |emitter, _| [convert(emitter, register, fixed), fixed],
            |emitter| {
                let delivered = emitter.deliver_aside(instruction, false);
                // What the function has looked at is not at hand.
                [delivered, emitter.constant(0)]
            },
        );
        let is_single = false;
        emitter.note_delivered(register, Double { value, is_single });
        emitter.known.floats.note_converted(register, integer);
        emitter.known.floats.mark(modified(register));
    });
}

/// Writes an integer to a register as a number: a double, which memory may get late, where one surely holds it.
/// Answers that, or none.
fn convert(emitter: &mut Emitter, register: u8, integer: Value) -> Value {
    /// Integers up to it, in magnitude, are doubles.
    const END: i64 = 1 << 53;
    let moved = emitter.ins().iadd_imm_s(integer, END);
    let is_long = emitter
        .ins()
        .icmp_imm_s(IntCC::UnsignedGreaterThan, moved, 2 * END);
    // Either way finds it.
    place(emitter, register);
    let [long, short, join] = [(); 3].map(|()| emitter.builder.create_block());
    let converted = emitter.builder.append_block_param(join, F64);
    emitter.builder.set_cold_block(long);
    emitter.ins().brif(is_long, long, &[], short, &[]);
    emitter.begin(long);
    let magnitude = emitter.ins().iabs(integer);
    let shift = emitter.ins().clz(magnitude);
    let significand = emitter.ins().ishl(magnitude, shift);
    let last = emitter.constant(i64::from(EXPONENT_INTEGER));
    let exponent = emitter.ins().isub(last, shift);
    let sign = emitter.ins().ushr_imm_u(integer, 63);
    let sign = emitter.ins().ishl_imm_u(sign, SIGN_SHIFT);
    let sign_exponent = emitter.ins().bor(sign, exponent);
    store_words(emitter, register, [significand, sign_exponent]);
    let none = emitter.no_double();
    emitter.ins().jump(join, &[none.into()]);
    emitter.begin(short);
    let value = emitter.ins().fcvt_from_sint(F64, integer);
    if !emitter.may_be_late(register) {
        store_double(emitter, register, value);
    }
    emitter.ins().jump(join, &[value.into()]);
    emitter.begin(join);
    emitter.known.floats.note(register, None);
    emitter.known.floats.note_stored(register & 127, false);
    mark_written(emitter, register);
    converted
}

/// `xma`: the addend is unsigned.
pub fn fixed_multiply_add(emitter: &mut Emitter, instruction: &Instruction, part: FixedPart) {
    if !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        // Many a product is computed in two halves, and one factor multiplies a whole row: what was looked at once is
        // an integer from then on. An addend is often a zero of another form, which is gone with the first sum.
        let mut others = None;
        let factors = [instruction.f3(), instruction.f4()];
        let [a, b] = factors.map(|register| significand(emitter, register, &mut others));
        let mut rare = others;
        let c = significand(emitter, instruction.f2(), &mut rare);
        deliver_integer_among(emitter, instruction, (rare, others), |emitter, _| {
            let low = emitter.ins().imul(a, b);
            let sum = emitter.ins().iadd(low, c);
            match part {
                FixedPart::Low => sum,
                FixedPart::High | FixedPart::HighUnsigned => {
                    let high = match part {
                        FixedPart::High => emitter.ins().smulhi(a, b),
                        _ => emitter.ins().umulhi(a, b),
                    };
                    let carry = emitter.ins().icmp(IntCC::UnsignedLessThan, sum, c);
                    let carry = emitter.ins().uextend(I64, carry);
                    emitter.ins().iadd(high, carry)
                }
            }
        });
        for (register, value) in factors.into_iter().zip([a, b]) {
            note_integer_source(emitter, instruction, register, value);
        }
    });
}
