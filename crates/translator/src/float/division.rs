//! Divisions and square roots that are written as a [sequence](sidestep_ia64::float::division) of steps: the host
//! computes them, and registers stand for the steps that nobody looks at.
//!
//! Behind an approximation (`frcpa`, `frsqrta`) that begins such a sequence it is found out whether the host's quotient
//! is the sequence's: its operands are normal values or integers, results are rounded to nearest, the steps have room
//! for all bits, and the inexact flags are set already. A number that a step takes has to be in its register when it
//! comes to that: it may be loaded between the steps. If all is so the approximation and each step note in their
//! registers which one they are, and the last one delivers the quotient. If not all of them are computed. Either way
//! registers are those of the guest between any two of its instructions.

use std::sync::atomic::{AtomicU64, Ordering};

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F64, I8, I64};
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use sidestep_ia64::Processor;
use sidestep_ia64::encoding::{Instruction, Operation, Signedness};
use sidestep_ia64::float::division::{Quotient, Sequence};
use sidestep_ia64::float::register::EXPONENT_INTEGER;
use sidestep_ia64::float::{Precision as Bits, StatusRegister};
use sidestep_ia64::layout;

use super::arithmetic::{is_usual, multiply_add, narrowed, to_fixed};
use super::{
    DOUBLE, EXPONENT_MASK, Precision, Register, SINGLE, double, is_not_well_above, is_writable, load_words,
    mark_written, read, store_words, write_double, write_integer,
};
use crate::division::{Division, Plan, Run, STEPS_STATUS};
use crate::emitter::{Double, Emitter};

/// Whose the next site is; zero is nobody.
static NEXT_OWNER: AtomicU64 = AtomicU64::new(1);

/// `frcpa` or `frsqrta`, which may begin a division or a root; what it is otherwise emits `approximate`.
pub fn begin(
    emitter: &mut Emitter,
    instruction: &Instruction,
    approximate: impl FnOnce(&mut Emitter, &Instruction),
) {
    let is_emitted = is_writable(instruction.f1()) && instruction.predicate() == 0;
    let plan = match is_emitted && emitter.is_fused() {
        true => Plan::find(instruction, emitter.following()),
        false => None,
    };
    let Some(plan) = plan else {
        return approximate(emitter, instruction);
    };
    // One before it, whose steps are among its own, goes on as it may.
    emitter.division = None;
    let owner = NEXT_OWNER.fetch_add(1, Ordering::Relaxed);
    let kind = if plan.sequence.quotient.is_number() {
        F64
    } else {
        I64
    };
    let run = emitter.run(&plan, emitter.following());
    let is_over = run.end.is_some();
    let [word, ended, quotient, is_approximated] = emitter.merge(
        [I64, I64, kind, I8],
        None,
        |emitter, aside| {
            for &(register, bits) in &run.numbers {
                let differs = is_other(emitter, register, bits);
                emitter.unless(differs, aside);
            }
            let (operands, quotient) = compute(emitter, &plan, instruction, aside);
            let (word, ended) = begin_usual(emitter, &plan, (owner, is_over), operands);
            if !run.writes(instruction.f1()) {
                note_step(emitter, instruction.f1() & 127, word, Sequence::APPROXIMATION);
            }
            note_run(emitter, &run, word);
            if let Some((_, end)) = run.end {
                deliver(emitter, end, quotient);
            }
            [word, ended, quotient, emitter.ins().iconst(I8, 1)]
        },
        |emitter| {
            if emitter.leaves_for_numbers() {
                return begin_with_zero(emitter, &plan, &run, instruction);
            }
            approximate(emitter, instruction);
            let is_approximated = emitter.predicate(instruction.p2());
            emit_run(emitter, &run);
            let none = emitter.constant(0);
            let quotient = match (run.end, kind) {
                (Some((_, end)), _) => delivered(emitter, end),
                (None, F64) => emitter.no_double(),
                (None, _) => none,
            };
            [
                none,
                none,
                quotient,
                is_approximated.expect("not p0, which is no step's"),
            ]
        },
    );
    emitter.set_predicate(instruction.p2(), is_approximated);
    emitter.note_emitted(run.last());
    match run.end {
        Some((_, end)) => note_delivered(emitter, &plan, end, quotient),
        None => {
            emitter.division = Some(Division {
                plan,
                site: site_of(owner),
                word,
                quotient,
                ended,
            });
        }
    }
}

/// A division whose dividend is zero, or a root of zero, where it is not usual: the approximation is the quotient, and
/// nothing is left to be done. Leaves all else to the interpreter. Answers what [`begin`] does of the division.
fn begin_with_zero(emitter: &mut Emitter, plan: &Plan, run: &Run, instruction: &Instruction) -> [Value; 4] {
    let is_number = plan.sequence.quotient.is_number();
    let target = plan.approximation;
    let unusual = emitter.leave_unusual_later();
    let is_passed_on = run.end.is_none_or(|(_, end)| match is_number {
        true => end.f1() & 127 == target,
        false => end.f2() & 127 == target,
    });
    let zero = match is_passed_on {
        true => zero_quotient(emitter, plan, instruction, unusual),
        false => None,
    };
    let zero = zero.unwrap_or_else(|| {
        let always = emitter.ins().iconst(I8, 1);
        emitter.unless(always, unusual);
        emitter.no_double()
    });
    write_double(emitter, target, zero);
    let none = emitter.constant(0);
    let quotient = match (run.end, is_number) {
        (Some(_), true) => zero,
        (None, true) => emitter.no_double(),
        (Some((_, end)), false) => {
            write_integer(emitter, end.f1(), none);
            none
        }
        (None, false) => none,
    };
    [none, none, quotient, emitter.ins().iconst(I8, 0)]
}

/// The quotient of a zero, with its sign. Goes elsewhere where the dividend is none or the divisor no normal value;
/// `None` where they are not at hand.
fn zero_quotient(
    emitter: &mut Emitter,
    plan: &Plan,
    instruction: &Instruction,
    elsewhere: Block,
) -> Option<Value> {
    let registers = [instruction.f2(), instruction.f3()].map(|register| register & 127);
    let unless_zero = |emitter: &mut Emitter, value| {
        let zero = emitter.ins().f64const(0.0);
        let is_other = emitter.ins().fcmp(FloatCC::NotEqual, value, zero);
        emitter.unless(is_other, elsewhere);
    };
    if plan.sequence.quotient.is_root() {
        let radicand = double(emitter, registers[1]).value;
        unless_zero(emitter, radicand);
        return Some(radicand);
    }
    if registers
        .iter()
        .any(|&register| emitter.known.floats.double(register).is_none())
    {
        return None;
    }
    let [dividend, divisor] = registers.map(|register| double(emitter, register).value);
    unless_zero(emitter, dividend);
    let is_unusual = is_not_well_above(emitter, divisor, DOUBLE);
    emitter.unless(is_unusual, elsewhere);
    Some(emitter.ins().fdiv(dividend, divisor))
}

/// What a division keeps of its operands, and the quotient. Goes aside unless that is the sequence's.
fn compute(
    emitter: &mut Emitter,
    plan: &Plan,
    instruction: &Instruction,
    aside: Block,
) -> ([Value; 2], Value) {
    unless_steps_are_usual(emitter, aside);
    let registers = [instruction.f2(), instruction.f3()];
    match plan.sequence.quotient {
        Quotient::Double | Quotient::Single => divide(emitter, plan, registers, aside),
        Quotient::Integer => divide_integers(emitter, plan, registers, 64, aside),
        Quotient::ShortInteger => divide_integers(emitter, plan, registers, 32, aside),
        Quotient::Root | Quotient::SingleRoot => root(emitter, plan, registers[1], aside),
    }
}

/// Begins a division in its site, and ends it if it is over with that: answers the word of a register that stands for a
/// step of it, less the step's number, and the state of the site when it has come to its end.
fn begin_usual(
    emitter: &mut Emitter,
    plan: &Plan,
    (owner, is_over): (u64, bool),
    operands: [Value; 2],
) -> (Value, Value) {
    let (second, begun, ended) = take_site(emitter, owner, operands);
    let state = if is_over { ended } else { begun };
    emitter.store_state(state, state_of(site_of(owner)));
    let sign = match plan.signedness {
        Signedness::Signed => 0,
        Signedness::Unsigned => layout::STEP_UNSIGNED,
    };
    let of_site = layout::STEP_MARK
        | sign
        | (2 * site_of(owner) as u64) << layout::STEP_DIVISION_SHIFT
        | (plan.number as u64) << layout::STEP_SEQUENCE_SHIFT;
    let second = emitter
        .ins()
        .ishl_imm_u(second, i64::from(layout::STEP_DIVISION_SHIFT));
    (emitter.ins().bor_imm_s(second, of_site.cast_signed()), ended)
}

/// Has a register stand for a step of a division.
fn note_step(emitter: &mut Emitter, register: u8, word: Value, number: u8) {
    emitter.known.floats.note(register, None);
    let word = emitter.ins().iadd_imm_s(word, i64::from(number));
    let form = emitter.constant(layout::FLOATING_STEP.cast_signed());
    store_words(emitter, register, [word, form]);
    mark_written(emitter, register);
}

/// The site of a division with a number.
fn site_of(owner: u64) -> usize {
    owner as usize % layout::DIVISION_SITES
}

/// Keeps the operands of a division that begins, in its site. Answers which of the site's two it is, and the states of
/// the site now and when it has come to its end.
fn take_site(emitter: &mut Emitter, owner: u64, operands: [Value; 2]) -> (Value, Value, Value) {
    let site = site_of(owner);
    let before = emitter.load_state(I64, state_of(site));
    // It may be another's, or its latest division has not come to its end.
    let owned = (owner << layout::DIVISION_OWNER_SHIFT | layout::DIVISION_IS_ENDED).cast_signed();
    let latest = layout::DIVISION_LATEST.cast_signed();
    let others = emitter.ins().band_imm_s(before, !latest);
    let is_other = emitter.ins().icmp_imm_s(IntCC::NotEqual, others, owned);
    let [other, rest] = [(); 2].map(|()| emitter.builder.create_block());
    emitter.builder.set_cold_block(other);
    emitter.ins().brif(is_other, other, &[], rest, &[]);
    emitter.begin(other);
    emitter.call_preserving(owner, own_site as *const () as i64);
    emitter.ins().jump(rest, &[]);
    emitter.begin(rest);
    // No register stands for a step of the one that is not the latest.
    let chosen = emitter.ins().band_imm_s(before, latest);
    let chosen = emitter.ins().bxor_imm_s(chosen, latest);
    let ended = emitter.ins().bor_imm_s(chosen, owned);
    let begun = emitter
        .ins()
        .bxor_imm_s(ended, layout::DIVISION_IS_ENDED.cast_signed());
    let second = emitter
        .ins()
        .ushr_imm_u(chosen, i64::from(layout::DIVISION_LATEST.trailing_zeros()));
    let distance = emitter.ins().ishl_imm_u(second, 4);
    let processor = emitter.processor();
    let kept = emitter.ins().iadd(processor, distance);
    let flags = emitter.state_memory();
    for (operand, offset) in operands.into_iter().zip([0, 8]) {
        let offset = layout::DIVISION_OPERANDS + site * 32 + offset;
        emitter.ins().store(flags, operand, kept, offset as i32);
    }
    (second, begun, ended)
}

/// Where a site has its state.
fn state_of(site: usize) -> usize {
    layout::DIVISION_STATES + site * 8
}

/// Goes aside unless the steps round to nearest, with room for all bits and their inexact flag set.
fn unless_steps_are_usual(emitter: &mut Emitter, aside: Block) {
    let [of_format, of_range] =
        [Bits::Extended, Bits::Double].map(|bits| StatusRegister::nearest_controls(STEPS_STATUS, bits));
    let flag = StatusRegister::inexact_flag(STEPS_STATUS);
    let usual = (of_format.0 | of_range.0 | flag, of_format.1 | of_range.1 | flag);
    if emitter.is_settled(usual) {
        return;
    }
    let differs = emitter.status_differs(usual);
    emitter.unless(differs, aside);
}

/// Goes aside where the last step does not deliver what the host does.
fn unless_last_is_usual(emitter: &mut Emitter, plan: &Plan, aside: Block) {
    // In the range of the registers it delivers the same.
    if plan.status != STEPS_STATUS {
        let is_unusual = match is_usual(emitter, plan.status) {
            Some(is_usual) => emitter.not(is_usual),
            None if emitter.is_inexact(plan.status) => return,
            None => emitter.ins().iconst(I8, 1),
        };
        emitter.unless(is_unusual, aside);
    }
}

/// A number, twice, and its square root as a double. Goes aside where it is no positive normal value of the precision,
/// and where the host may not compute.
fn root(emitter: &mut Emitter, plan: &Plan, register: u8, aside: Block) -> ([Value; 2], Value) {
    let is_single = plan.sequence.quotient == Quotient::SingleRoot;
    let precision = if is_single { SINGLE } else { DOUBLE };
    let radicand = double(emitter, register);
    let number = narrowed_or_aside(emitter, radicand, precision, aside);
    let is_unusual = is_not_well_above(emitter, number, precision);
    emitter.unless(is_unusual, aside);
    let bits = emitter.bits(radicand.value, I64);
    let is_negative = emitter.ins().icmp_imm_s(IntCC::SignedLessThan, bits, 0);
    emitter.unless(is_negative, aside);
    unless_last_is_usual(emitter, plan, aside);
    let root = emitter.ins().sqrt(number);
    let root = match is_single {
        true => emitter.ins().fpromote(F64, root),
        false => root,
    };
    ([bits; 2], root)
}

/// Two numbers, and the quotient as a double. Goes aside where they or the quotient are no normal values of the
/// precision, and where the host may not compute.
fn divide(emitter: &mut Emitter, plan: &Plan, registers: [u8; 2], aside: Block) -> ([Value; 2], Value) {
    let is_single = plan.sequence.quotient == Quotient::Single;
    let precision = if is_single { SINGLE } else { DOUBLE };
    let doubles = registers.map(|register| double(emitter, register));
    unless_last_is_usual(emitter, plan, aside);
    // What stands for no double is a NaN, whose exponent is at an end as well.
    let numbers = doubles.map(|double| narrowed_or_aside(emitter, double, precision, aside));
    let quotient = emitter.ins().fdiv(numbers[0], numbers[1]);
    for number in [numbers[0], numbers[1], quotient] {
        let is_unusual = is_not_well_above(emitter, number, precision);
        emitter.unless(is_unusual, aside);
    }
    let quotient = match is_single {
        true => emitter.ins().fpromote(F64, quotient),
        false => quotient,
    };
    let operands = doubles.map(|double| emitter.bits(double.value, I64));
    (operands, quotient)
}

/// A double in the host's type of a precision. Goes aside where that does not hold it.
fn narrowed_or_aside(emitter: &mut Emitter, double: Double, precision: Precision, aside: Block) -> Value {
    let mut rare = None;
    let number = narrowed(emitter, double, precision, &mut rare);
    if let Some(rare) = rare {
        emitter.unless(rare, aside);
    }
    number
}

/// Two integers, and their quotient, rounded towards zero. Goes aside where they are not integers of so many bits
/// beside their sign, and where one of them is zero.
fn divide_integers(
    emitter: &mut Emitter,
    plan: &Plan,
    registers: [u8; 2],
    bits: u32,
    aside: Block,
) -> ([Value; 2], Value) {
    let integers = registers.map(|register| integer_of(emitter, register, plan.signedness, bits, aside));
    let [dividend, divisor] = integers.map(|(_, magnitude)| magnitude);
    let operands = integers.map(|(integer, _)| integer);
    let quotient = emitter.ins().udiv(dividend, divisor);
    let quotient = match plan.signedness {
        Signedness::Unsigned => quotient,
        Signedness::Signed => {
            let signs = emitter.ins().bxor(operands[0], operands[1]);
            let is_negative = emitter.ins().icmp_imm_s(IntCC::SignedLessThan, signs, 0);
            let negated = emitter.ins().ineg(quotient);
            emitter.ins().select(is_negative, negated, quotient)
        }
    };
    (operands, quotient)
}

/// The integer that a register has as a number, and its magnitude. Goes aside where that is zero, no integer, or one of
/// more bits.
fn integer_of(
    emitter: &mut Emitter,
    register: u8,
    signedness: Signedness,
    bits: u32,
    aside: Block,
) -> (Value, Value) {
    let register = register & 127;
    let magnitude_bits = match signedness {
        Signedness::Unsigned => bits,
        Signedness::Signed => bits.min(63),
    };
    let floats = &emitter.known.floats;
    let (integer, magnitude, is_negative) = match (floats.converted(register), floats.double(register)) {
        (Some(integer), _) => {
            let is_negative = emitter.ins().icmp_imm_s(IntCC::SignedLessThan, integer, 0);
            (integer, emitter.ins().iabs(integer), is_negative)
        }
        (None, Some(Double { value, .. })) => {
            let integer = emitter.ins().fcvt_to_sint_sat(I64, value);
            let back = emitter.ins().fcvt_from_sint(F64, integer);
            let differs = emitter.ins().fcmp(FloatCC::NotEqual, back, value);
            emitter.unless(differs, aside);
            // Those above are saturated, to what is no double.
            let last = emitter.ins().icmp_imm_s(IntCC::Equal, integer, i64::MAX);
            emitter.unless(last, aside);
            let is_negative = emitter.ins().icmp_imm_s(IntCC::SignedLessThan, integer, 0);
            (integer, emitter.ins().iabs(integer), is_negative)
        }
        (None, None) => {
            let Register {
                significand,
                sign_exponent,
            } = read(emitter, register);
            let is_unnormal = emitter
                .ins()
                .icmp_imm_s(IntCC::SignedGreaterThanOrEqual, significand, 0);
            emitter.unless(is_unnormal, aside);
            let exponent = emitter.ins().band_imm_u(sign_exponent, EXPONENT_MASK);
            let last = emitter.constant(i64::from(EXPONENT_INTEGER));
            let below = emitter.ins().isub(last, exponent);
            let is_outside = emitter.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, below, 63);
            emitter.unless(is_outside, aside);
            let magnitude = emitter.ins().ushr(significand, below);
            let kept = emitter.ins().ishl(magnitude, below);
            let differs = emitter.ins().icmp(IntCC::NotEqual, kept, significand);
            emitter.unless(differs, aside);
            let is_negative = emitter.ins().icmp(IntCC::NotEqual, sign_exponent, exponent);
            let negated = emitter.ins().ineg(magnitude);
            let integer = emitter.ins().select(is_negative, negated, magnitude);
            (integer, magnitude, is_negative)
        }
    };
    if signedness == Signedness::Unsigned {
        emitter.unless(is_negative, aside);
    }
    if magnitude_bits < 64 {
        let is_large = emitter.ins().ushr_imm_u(magnitude, i64::from(magnitude_bits));
        emitter.unless(is_large, aside);
    }
    let is_zero = emitter.ins().icmp_imm_u(IntCC::Equal, integer, 0);
    emitter.unless(is_zero, aside);
    (integer, magnitude)
}

/// An instruction that may be a step of a division; what it is otherwise emits `otherwise`.
pub fn step(emitter: &mut Emitter, otherwise: impl FnOnce(&mut Emitter)) {
    let index = emitter.index();
    let Some(mut division) = emitter.division.take() else {
        return otherwise(emitter);
    };
    if !division.plan.is_part(index) {
        otherwise(emitter);
        emitter.division = Some(division);
        return;
    }
    // At hand on either way.
    let is_approximated = emitter.predicate(division.plan.predicate);
    let run = emitter.run(&division.plan, emitter.remaining());
    for &(register, bits) in &run.numbers {
        let differs = is_other(emitter, register, bits);
        let none = emitter.constant(0);
        division.word = emitter.ins().select(differs, none, division.word);
    }
    let is_usual = emitter.is_set(division.word);
    let is_rare = emitter.not(is_usual);
    match run.end {
        None => {
            emitter.merge(
                [],
                Some(is_rare),
                |emitter, _| {
                    note_run(emitter, &run, division.word);
                    []
                },
                |emitter| {
                    match emitter.leaves_for_numbers() {
                        true => leave_unless_done(emitter, is_approximated),
                        false => emit_run(emitter, &run),
                    }
                    []
                },
            );
            emitter.division = Some(division);
        }
        Some((last, end)) => {
            let kind = emitter.builder.func.dfg.value_type(division.quotient);
            let [quotient] = emitter.merge(
                [kind],
                Some(is_rare),
                |emitter, _| {
                    note_run(emitter, &run, division.word);
                    deliver(emitter, end, division.quotient);
                    emitter.store_state(division.ended, state_of(division.site));
                    [division.quotient]
                },
                |emitter| {
                    if !emitter.leaves_for_numbers() {
                        emit_run(emitter, &run);
                        return [delivered(emitter, end)];
                    }
                    leave_unless_done(emitter, is_approximated);
                    emitter.begin_operation(last);
                    [passed_on(emitter, end)]
                },
            );
            note_delivered(emitter, &division.plan, end, quotient);
        }
    }
    emitter.note_emitted(run.last());
}

/// Leaves the block to the interpreter where a division that is not usual has begun with an approximation: else that is
/// its quotient.
fn leave_unless_done(emitter: &mut Emitter, is_approximated: Option<Value>) {
    let unusual = emitter.leave_unusual_later();
    let is_approximated = is_approximated.expect("not p0, which is no step's");
    emitter.unless(is_approximated, unusual);
}

/// The quotient at the end of a division that has none but its approximation, of what the last instruction delivers.
fn passed_on(emitter: &mut Emitter, end: &Instruction) -> Value {
    if !matches!(end.operation, Operation::ConvertToFixed { .. }) {
        return double(emitter, end.f1()).value;
    }
    emitter.perform_aside(end);
    let (words, _) = load_words(emitter, end.f1() & 127);
    words.significand
}

/// Whether a register does not hold the number with such bits in single precision.
fn is_other(emitter: &mut Emitter, register: u8, bits: u32) -> Value {
    let held = double(emitter, register).value;
    let number = emitter.ins().f64const(f64::from(f32::from_bits(bits)));
    emitter.ins().fcmp(FloatCC::NotEqual, held, number)
}

/// Has registers stand for the steps of a run that nobody has computed.
fn note_run(emitter: &mut Emitter, run: &Run, word: Value) {
    for (register, number) in run.kept() {
        note_step(emitter, register, word, number);
    }
}

/// Emits the instructions of a run one by one.
fn emit_run(emitter: &mut Emitter, run: &Run) {
    let steps = run.steps.iter().map(|&(index, step, _)| (index, step));
    for (index, instruction) in steps.chain(run.end) {
        emitter.begin_operation(index);
        match instruction.operation {
            Operation::FloatMultiplyAdd {
                function,
                precision,
                status,
            } => multiply_add(emitter, instruction, function, precision, status),
            Operation::ConvertToFixed {
                signedness,
                rounding,
                status,
            } => to_fixed(emitter, instruction, signedness, rounding, status),
            _ => unreachable!("no step is another operation"),
        }
    }
}

/// Writes the quotient to the register that an instruction delivers it to.
fn deliver(emitter: &mut Emitter, end: &Instruction, quotient: Value) {
    let register = end.f1() & 127;
    match emitter.builder.func.dfg.value_type(quotient) {
        F64 => write_double(emitter, register, quotient),
        _ => write_integer(emitter, register, quotient),
    }
}

/// What an instruction that was emitted for itself has delivered.
fn delivered(emitter: &mut Emitter, end: &Instruction) -> Value {
    let register = end.f1() & 127;
    match end.operation {
        Operation::ConvertToFixed { .. } => emitter.known.floats.integer(register).expect("it was delivered"),
        _ => double(emitter, register).value,
    }
}

/// Notes the quotient that an instruction has delivered. Where the approximation was all of it, another register than
/// that one's is what it was before, a number of any precision.
fn note_delivered(emitter: &mut Emitter, plan: &Plan, end: &Instruction, value: Value) {
    let register = end.f1() & 127;
    if !plan.sequence.quotient.is_number() {
        return emitter.known.floats.note_integer(register, value);
    }
    let is_single = matches!(plan.sequence.quotient, Quotient::Single | Quotient::SingleRoot);
    let is_single = is_single && register == plan.approximation;
    emitter
        .known
        .floats
        .note(register, Some(Double { value, is_single }));
}

/// Gives a site to a division, for emitted code.
///
/// # Safety
/// The processor is the one that the code was entered with, and nobody else uses it.
unsafe extern "C" fn own_site(processor: *mut Processor, owner: u64) -> i64 {
    // SAFETY: as the caller says.
    unsafe { &mut *processor }.own_division_site(owner);
    0
}

/// Makes an image of a register, for emitted code.
///
/// # Safety
/// As [`own_site`].
pub(super) unsafe extern "C" fn settle(processor: *mut Processor, register: u64) -> i64 {
    // SAFETY: as the caller says.
    unsafe { &mut *processor }.settle_floating(register as usize);
    0
}
