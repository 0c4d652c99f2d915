//! Arithmetic that delivers a value: multiply-add, minima and maxima, conversions, approximations, `xma`, and their
//! parallel forms (formats F1, F2, F6 to F8, F10, F11).

use super::super::always;
use super::super::frequent::call;
use super::{Names, Rotating, Static, is_constant};
use crate::encoding::{Extremum, FixedPart, FixedRounding, FloatRelation, Instruction, MultiplyAdd};
use crate::encoding::{ParallelFloatRelation, Precision, Signedness, StatusField};
use crate::fault::Fault;
use crate::float::reciprocal::Approximation;
use crate::float::{self, Control, ControlIndex, FloatFault, FloatRegister, Rounded, Rounding};
use crate::processor::Processor;
use crate::processor::execution::{Execute, Flow, MicroOperation, Step};

/// The controls of a scalar operation whose precision the status field decides.
fn dynamic(status: StatusField) -> ControlIndex {
    ControlIndex::scalar(status, Precision::Dynamic)
}

/// An operation that delivers its result to f1 under the controls that `index` chooses.
fn delivering(execute: Execute, instruction: &Instruction, index: ControlIndex) -> MicroOperation {
    MicroOperation {
        immediate: index.operand(),
        ..super::with_target(execute, instruction)
    }
}

pub(in crate::processor::semantics) fn lower_multiply_add(
    instruction: &Instruction,
    function: MultiplyAdd,
    precision: Precision,
    status: StatusField,
) -> MicroOperation {
    let execute = multiply_add_function::<Scalar>(instruction, function);
    delivering(execute, instruction, ControlIndex::scalar(status, precision))
}

pub(in crate::processor::semantics) fn lower_parallel_multiply_add(
    instruction: &Instruction,
    function: MultiplyAdd,
    status: StatusField,
) -> MicroOperation {
    let execute = multiply_add_function::<Parallel>(instruction, function);
    delivering(execute, instruction, ControlIndex::parallel(status))
}

pub(in crate::processor::semantics) fn lower_extremum(
    instruction: &Instruction,
    select: Extremum,
    status: StatusField,
) -> MicroOperation {
    delivering(extremum_function::<Scalar>(select), instruction, dynamic(status))
}

pub(in crate::processor::semantics) fn lower_parallel_extremum(
    instruction: &Instruction,
    select: Extremum,
    status: StatusField,
) -> MicroOperation {
    let execute = extremum_function::<Parallel>(select);
    delivering(execute, instruction, ControlIndex::parallel(status))
}

pub(in crate::processor::semantics) fn lower_parallel_compare(
    instruction: &Instruction,
    relation: ParallelFloatRelation,
    status: StatusField,
) -> MicroOperation {
    delivering(
        compare_function(relation),
        instruction,
        ControlIndex::parallel(status),
    )
}

pub(in crate::processor::semantics) fn lower_to_fixed(
    instruction: &Instruction,
    signedness: Signedness,
    rounding: FixedRounding,
    status: StatusField,
) -> MicroOperation {
    let execute = conversion_function::<Scalar>(signedness, rounding);
    delivering(execute, instruction, dynamic(status))
}

pub(in crate::processor::semantics) fn lower_parallel_to_fixed(
    instruction: &Instruction,
    signedness: Signedness,
    rounding: FixedRounding,
    status: StatusField,
) -> MicroOperation {
    let execute = conversion_function::<Parallel>(signedness, rounding);
    delivering(execute, instruction, ControlIndex::parallel(status))
}

pub(in crate::processor::semantics) fn lower_from_fixed(instruction: &Instruction) -> MicroOperation {
    delivering(convert_from_fixed, instruction, dynamic(StatusField::S0))
}

pub(in crate::processor::semantics) fn lower_fixed_multiply_add(
    instruction: &Instruction,
    part: FixedPart,
) -> MicroOperation {
    let execute: Execute = match part {
        FixedPart::Low => fixed_multiply_add::<Low>,
        FixedPart::High => fixed_multiply_add::<High>,
        FixedPart::HighUnsigned => fixed_multiply_add::<HighUnsigned>,
    };
    delivering(execute, instruction, dynamic(StatusField::S0))
}

pub(in crate::processor::semantics) fn lower_reciprocal(
    instruction: &Instruction,
    status: StatusField,
) -> MicroOperation {
    approximation(reciprocal::<Scalar>, instruction, dynamic(status))
}

pub(in crate::processor::semantics) fn lower_reciprocal_root(
    instruction: &Instruction,
    status: StatusField,
) -> MicroOperation {
    approximation(reciprocal_root::<Scalar>, instruction, dynamic(status))
}

pub(in crate::processor::semantics) fn lower_parallel_reciprocal(
    instruction: &Instruction,
    status: StatusField,
) -> MicroOperation {
    approximation(
        reciprocal::<Parallel>,
        instruction,
        ControlIndex::parallel(status),
    )
}

pub(in crate::processor::semantics) fn lower_parallel_reciprocal_root(
    instruction: &Instruction,
    status: StatusField,
) -> MicroOperation {
    approximation(
        reciprocal_root::<Parallel>,
        instruction,
        ControlIndex::parallel(status),
    )
}

/// An operation that writes f1 and p2, and clears p2 when its predicate is false.
fn approximation(execute: Execute, instruction: &Instruction, index: ControlIndex) -> MicroOperation {
    MicroOperation {
        immediate: index.operand(),
        ..always(call(execute), instruction)
    }
}

/// The scalar or the parallel form of the operations that have both.
trait Shape {
    const IS_SCALAR: bool;
    const MULTIPLY_ADD: Fused;
    const MULTIPLY: Product;
    const EXTREMUM: Selection;
    const TO_INTEGER: Conversion;
    const RECIPROCAL: Quotient;
    const RECIPROCAL_ROOT: Root;
}

type Fused = fn(FloatRegister, FloatRegister, FloatRegister, MultiplyAdd, &Control) -> Delivered;
type Product = fn(FloatRegister, FloatRegister, MultiplyAdd, &Control) -> Delivered;
type Selection = fn(FloatRegister, FloatRegister, Extremum, &Control) -> Delivered;
type Conversion = fn(FloatRegister, Signedness, &Control) -> Delivered;
type Quotient = fn(FloatRegister, FloatRegister, &Control) -> Result<Approximation, FloatFault>;
type Root = fn(FloatRegister, &Control) -> Result<Approximation, FloatFault>;
type Delivered = Result<Rounded, FloatFault>;

struct Scalar;
struct Parallel;

impl Shape for Scalar {
    const IS_SCALAR: bool = true;
    const MULTIPLY_ADD: Fused = float::multiply_add;
    const MULTIPLY: Product = float::multiply;
    const EXTREMUM: Selection = float::compare::extremum;
    const TO_INTEGER: Conversion = float::convert::to_integer;
    const RECIPROCAL: Quotient = float::reciprocal::reciprocal;
    const RECIPROCAL_ROOT: Root = float::reciprocal::reciprocal_root;
}

impl Shape for Parallel {
    const IS_SCALAR: bool = false;
    const MULTIPLY_ADD: Fused = float::parallel::multiply_add;
    const MULTIPLY: Product = float::parallel::multiply;
    const EXTREMUM: Selection = float::parallel::extremum;
    const TO_INTEGER: Conversion = float::parallel::to_integers;
    const RECIPROCAL: Quotient = float::parallel::reciprocal;
    const RECIPROCAL_ROOT: Root = float::parallel::reciprocal_root;
}

/// A value known when the function is chosen.
trait Choice<T> {
    const VALUE: T;
}

macro_rules! choices {
    ($type:ident: $($name:ident = $value:expr),+) => {
        $(
            struct $name;
            impl Choice<$type> for $name {
                const VALUE: $type = $value;
            }
        )+
    };
}

choices!(MultiplyAdd: Add = MultiplyAdd::Add, Subtract = MultiplyAdd::Subtract, NegateAdd = MultiplyAdd::NegateAdd);
choices!(FixedPart: Low = FixedPart::Low, High = FixedPart::High, HighUnsigned = FixedPart::HighUnsigned);
choices!(
    Extremum: Minimum = Extremum::Minimum,
    Maximum = Extremum::Maximum,
    AbsoluteMinimum = Extremum::AbsoluteMinimum,
    AbsoluteMaximum = Extremum::AbsoluteMaximum
);
choices!(Signedness: Signed = Signedness::Signed, Unsigned = Signedness::Unsigned);
choices!(
    FloatRelation: Equal = FloatRelation::Equal,
    Less = FloatRelation::Less,
    LessOrEqual = FloatRelation::LessOrEqual,
    Unordered = FloatRelation::Unordered
);

/// f0 as the addend is no addend: the product alone is rounded. f1 as the multiplier of a scalar operation is 1.0.
fn multiply_add_function<S: Shape>(instruction: &Instruction, function: MultiplyAdd) -> Execute {
    let registers = [
        instruction.f1(),
        instruction.f2(),
        instruction.f3(),
        instruction.f4(),
    ];
    if super::are_static(&registers) {
        multiply_add_by_names::<S, Static>(instruction, function)
    } else {
        multiply_add_by_names::<S, Rotating>(instruction, function)
    }
}

fn multiply_add_by_names<S: Shape, N: Names>(instruction: &Instruction, function: MultiplyAdd) -> Execute {
    fn by_operands<S: Shape, N: Names, F: Choice<MultiplyAdd>>(instruction: &Instruction) -> Execute {
        match (instruction.f2(), instruction.f4()) {
            (0, _) => multiply::<S, N, F>,
            (_, 1) if S::IS_SCALAR => add::<N, F>,
            _ => multiply_add::<S, N, F>,
        }
    }
    match function {
        MultiplyAdd::Add => by_operands::<S, N, Add>(instruction),
        MultiplyAdd::Subtract => by_operands::<S, N, Subtract>(instruction),
        MultiplyAdd::NegateAdd => by_operands::<S, N, NegateAdd>(instruction),
    }
}

fn multiply_add<S: Shape, N: Names, F: Choice<MultiplyAdd>>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    processor.check_floating_enabled(&[operation.r1, operation.r2, operation.r3, operation.r4], 0)?;
    let (f3, f4) = (N::read(processor, operation.r3), N::read(processor, operation.r4));
    let f2 = N::read(processor, operation.r2);
    let result = (S::MULTIPLY_ADD)(f3, f4, f2, F::VALUE, processor.float_control(operation));
    processor.deliver::<N>(operation, result)
}

fn add<N: Names, F: Choice<MultiplyAdd>>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.check_floating_enabled(&[operation.r1, operation.r2, operation.r3], 0)?;
    let (f3, f2) = (N::read(processor, operation.r3), N::read(processor, operation.r2));
    let result = float::add(f3, f2, F::VALUE, processor.float_control(operation));
    processor.deliver::<N>(operation, result)
}

fn multiply<S: Shape, N: Names, F: Choice<MultiplyAdd>>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    processor.check_floating_enabled(&[operation.r1, operation.r3, operation.r4], 0)?;
    let (f3, f4) = (N::read(processor, operation.r3), N::read(processor, operation.r4));
    let result = (S::MULTIPLY)(f3, f4, F::VALUE, processor.float_control(operation));
    processor.deliver::<N>(operation, result)
}

fn extremum_function<S: Shape>(select: Extremum) -> Execute {
    match select {
        Extremum::Minimum => extremum::<S, Minimum>,
        Extremum::Maximum => extremum::<S, Maximum>,
        Extremum::AbsoluteMinimum => extremum::<S, AbsoluteMinimum>,
        Extremum::AbsoluteMaximum => extremum::<S, AbsoluteMaximum>,
    }
}

fn extremum<S: Shape, E: Choice<Extremum>>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.check_floating_enabled(&[operation.r1, operation.r2, operation.r3], 0)?;
    let [f2, f3] = [operation.r2, operation.r3].map(|register| processor.floating(register));
    let result = (S::EXTREMUM)(f2, f3, E::VALUE, processor.float_control(operation));
    processor.deliver::<Rotating>(operation, result)
}

fn compare_function(relation: ParallelFloatRelation) -> Execute {
    match relation {
        ParallelFloatRelation::Equal => compare::<Equal, false>,
        ParallelFloatRelation::Less => compare::<Less, false>,
        ParallelFloatRelation::LessOrEqual => compare::<LessOrEqual, false>,
        ParallelFloatRelation::Unordered => compare::<Unordered, false>,
        ParallelFloatRelation::NotEqual => compare::<Equal, true>,
        ParallelFloatRelation::NotLess => compare::<Less, true>,
        ParallelFloatRelation::NotLessOrEqual => compare::<LessOrEqual, true>,
        ParallelFloatRelation::Ordered => compare::<Unordered, true>,
    }
}

fn compare<R: Choice<FloatRelation>, const NEGATED: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    processor.check_floating_enabled(&[operation.r1, operation.r2, operation.r3], 0)?;
    let (f2, f3) = (processor.floating(operation.r2), processor.floating(operation.r3));
    let result = float::parallel::compare(f2, f3, R::VALUE, NEGATED, processor.float_control(operation));
    processor.deliver::<Rotating>(operation, result)
}

fn conversion_function<S: Shape>(signedness: Signedness, rounding: FixedRounding) -> Execute {
    match (signedness, rounding) {
        (Signedness::Signed, FixedRounding::Dynamic) => convert_to_fixed::<S, Signed, false>,
        (Signedness::Signed, FixedRounding::Truncate) => convert_to_fixed::<S, Signed, true>,
        (Signedness::Unsigned, FixedRounding::Dynamic) => convert_to_fixed::<S, Unsigned, false>,
        (Signedness::Unsigned, FixedRounding::Truncate) => convert_to_fixed::<S, Unsigned, true>,
    }
}

fn convert_to_fixed<S: Shape, K: Choice<Signedness>, const TRUNCATE: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    processor.check_floating_enabled(&[operation.r1, operation.r2], 0)?;
    let value = processor.floating(operation.r2);
    let control = processor.float_control(operation);
    let result = if TRUNCATE {
        (S::TO_INTEGER)(value, K::VALUE, &control.with_rounding(Rounding::Zero))
    } else {
        (S::TO_INTEGER)(value, K::VALUE, control)
    };
    processor.deliver::<Rotating>(operation, result)
}

fn convert_from_fixed(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.check_floating_enabled(&[operation.r1, operation.r2], 0)?;
    let value = float::convert::from_signed_integer(processor.floating(operation.r2));
    processor.set_floating(operation.r1, value);
    Ok(Flow::Next)
}

fn fixed_multiply_add<P: Choice<FixedPart>>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.check_floating_enabled(&[operation.r1, operation.r2, operation.r3, operation.r4], 0)?;
    let [f3, f4, f2] =
        [operation.r3, operation.r4, operation.r2].map(|register| processor.floating(register));
    processor.set_floating(
        operation.r1,
        float::integer::multiply_add_integers(f3, f4, f2, P::VALUE),
    );
    Ok(Flow::Next)
}

fn reciprocal<S: Shape>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    approximate(
        processor,
        operation,
        &[operation.r1, operation.r2, operation.r3],
        |processor| {
            let [f2, f3] = [operation.r2, operation.r3].map(|register| processor.floating(register));
            (S::RECIPROCAL)(f2, f3, processor.float_control(operation))
        },
    )
}

fn reciprocal_root<S: Shape>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    approximate(processor, operation, &[operation.r1, operation.r3], |processor| {
        let radicand = processor.floating(operation.r3);
        (S::RECIPROCAL_ROOT)(radicand, processor.float_control(operation))
    })
}

/// Runs an approximation on `registers`, the first of them its target; its own predicate is in `extra`.
#[inline(always)]
fn approximate(
    processor: &mut Processor,
    operation: &MicroOperation,
    registers: &[u8],
    compute: impl FnOnce(&mut Processor) -> Result<Approximation, FloatFault>,
) -> Step {
    if !processor.predicate(operation.extra) {
        processor.set_predicate(operation.p2, false);
        return Ok(Flow::Next);
    }
    if is_constant(operation.r1) {
        return Err(processor.raise(Fault::illegal_operation()));
    }
    processor.check_floating_enabled(registers, 0)?;
    match compute(processor) {
        Ok(Approximation { result, predicate }) => {
            processor.set_predicate(operation.p2, predicate);
            processor.deliver::<Rotating>(operation, Ok(result))
        }
        Err(fault) => Err(processor.raise_float_fault(fault)),
    }
}
