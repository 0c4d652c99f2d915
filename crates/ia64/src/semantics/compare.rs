//! Integer compares and bit tests, which write two predicates (manual volume 1, section 4.3.3; formats A6 to
//! A8, I16, I17, I30).

use crate::encoding::{
    BitRelation, CompareSource, CompareWidth, Instruction, Operation, PredicateUpdate, Relation,
};
use crate::execution::{Execute, Flow, MicroOperation, Step};
use crate::processor::Processor;

/// Chooses the function and operands of a compare or test.
pub(super) fn lower(instruction: &Instruction) -> Option<MicroOperation> {
    let (execute, update, extra_register) = match instruction.operation {
        Operation::Compare {
            relation,
            width,
            update,
            first,
        } => {
            let execute = match width {
                CompareWidth::DoubleWord => compare::<DoubleWord>(relation, update, first),
                CompareWidth::Word => compare::<Word>(relation, update, first),
            };
            (execute, update, None)
        }
        Operation::TestBit { relation, update } => {
            (test::<Bit>(relation, update), update, Some(instruction.position))
        }
        Operation::TestNat { relation, update } => (test::<Nat>(relation, update), update, None),
        Operation::TestFeature { relation, update } => (test::<Feature>(relation, update), update, None),
        _ => return None,
    };
    if instruction.p1() == instruction.p2() {
        let predicate = if update == PredicateUpdate::Unconditional {
            0
        } else {
            instruction.predicate()
        };
        return Some(super::illegal(predicate));
    }
    let mut operation = if update == PredicateUpdate::Unconditional {
        super::always(execute, instruction)
    } else {
        super::fields(execute, instruction)
    };
    if let Some(position) = extra_register {
        operation.r4 = position;
    }
    Some(operation)
}

/// How a result writes the two predicates.
trait Update {
    fn update(processor: &mut Processor, operation: &MicroOperation, result: bool, nat: bool);
    /// Whether the targets are cleared, and nothing else happens, when the qualifying predicate is false.
    const UNCONDITIONAL: bool = false;
}

struct Normal;
struct Unconditional;
struct And;
struct Or;
struct OrAndComplement;

/// Writes both predicates; p0 stays one.
#[inline(always)]
pub(super) fn write_predicates(
    processor: &mut Processor,
    operation: &MicroOperation,
    first: bool,
    second: bool,
) {
    let (p1, p2) = (operation.p1 & 63, operation.p2 & 63);
    let cleared = processor.predicates & !(1 << p1 | 1 << p2);
    processor.predicates = cleared | u64::from(first) << p1 | u64::from(second) << p2 | 1;
}

impl Update for Normal {
    #[inline(always)]
    fn update(processor: &mut Processor, operation: &MicroOperation, result: bool, nat: bool) {
        write_predicates(processor, operation, result & !nat, !result & !nat);
    }
}

impl Update for Unconditional {
    #[inline(always)]
    fn update(processor: &mut Processor, operation: &MicroOperation, result: bool, nat: bool) {
        write_predicates(processor, operation, result & !nat, !result & !nat);
    }
    const UNCONDITIONAL: bool = true;
}

impl Update for And {
    #[inline(always)]
    fn update(processor: &mut Processor, operation: &MicroOperation, result: bool, nat: bool) {
        if nat || !result {
            write_predicates(processor, operation, false, false);
        }
    }
}

impl Update for Or {
    #[inline(always)]
    fn update(processor: &mut Processor, operation: &MicroOperation, result: bool, nat: bool) {
        if result && !nat {
            write_predicates(processor, operation, true, true);
        }
    }
}

impl Update for OrAndComplement {
    #[inline(always)]
    fn update(processor: &mut Processor, operation: &MicroOperation, result: bool, nat: bool) {
        if result && !nat {
            write_predicates(processor, operation, true, false);
        }
    }
}

/// The operand width of a compare.
trait Width {
    fn signed(value: u64) -> i64;
    fn unsigned(value: u64) -> u64;
}

struct Word;
struct DoubleWord;

impl Width for Word {
    #[inline(always)]
    fn signed(value: u64) -> i64 {
        i64::from(value as i32)
    }
    #[inline(always)]
    fn unsigned(value: u64) -> u64 {
        u64::from(value as u32)
    }
}

impl Width for DoubleWord {
    #[inline(always)]
    fn signed(value: u64) -> i64 {
        value as i64
    }
    #[inline(always)]
    fn unsigned(value: u64) -> u64 {
        value
    }
}

/// A relation between two operands.
trait Relate {
    fn relate<W: Width>(a: u64, b: u64) -> bool;
}

macro_rules! relations {
    ($($name:ident = |$width:ident, $a:ident, $b:ident| $result:expr;)+) => {$(
        struct $name;
        impl Relate for $name {
            #[inline(always)]
            fn relate<$width: Width>($a: u64, $b: u64) -> bool {
                $result
            }
        }
    )+};
}

relations! {
    Equal = |W, a, b| W::unsigned(a) == W::unsigned(b);
    NotEqual = |W, a, b| W::unsigned(a) != W::unsigned(b);
    Less = |W, a, b| W::signed(a) < W::signed(b);
    LessOrEqual = |W, a, b| W::signed(a) <= W::signed(b);
    Greater = |W, a, b| W::signed(a) > W::signed(b);
    GreaterOrEqual = |W, a, b| W::signed(a) >= W::signed(b);
    LessUnsigned = |W, a, b| W::unsigned(a) < W::unsigned(b);
}

/// Chooses the compare for one combination of its completers.
fn compare<W: Width>(relation: Relation, update: PredicateUpdate, first: CompareSource) -> Execute {
    fn by_update<W: Width, R: Relate>(update: PredicateUpdate, first: CompareSource) -> Execute {
        match update {
            PredicateUpdate::Normal => by_source::<W, R, Normal>(first),
            PredicateUpdate::Unconditional => by_source::<W, R, Unconditional>(first),
            PredicateUpdate::And => by_source::<W, R, And>(first),
            PredicateUpdate::Or => by_source::<W, R, Or>(first),
            PredicateUpdate::OrAndComplement => by_source::<W, R, OrAndComplement>(first),
        }
    }
    fn by_source<W: Width, R: Relate, U: Update>(first: CompareSource) -> Execute {
        match first {
            CompareSource::Register => compare_registers::<W, R, U>,
            CompareSource::Zero | CompareSource::Immediate => compare_immediate::<W, R, U>,
        }
    }
    match relation {
        Relation::Equal => by_update::<W, Equal>(update, first),
        Relation::NotEqual => by_update::<W, NotEqual>(update, first),
        Relation::Less => by_update::<W, Less>(update, first),
        Relation::LessOrEqual => by_update::<W, LessOrEqual>(update, first),
        Relation::Greater => by_update::<W, Greater>(update, first),
        Relation::GreaterOrEqual => by_update::<W, GreaterOrEqual>(update, first),
        Relation::LessUnsigned => by_update::<W, LessUnsigned>(update, first),
    }
}

fn compare_registers<W: Width, R: Relate, U: Update>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    if is_annulled::<U>(processor, operation) {
        return Ok(Flow::Next);
    }
    let registers = &processor.general;
    let result = R::relate::<W>(registers.value(operation.r2), registers.value(operation.r3));
    let nat = registers.any_nat() && (registers.nat(operation.r2) || registers.nat(operation.r3));
    U::update(processor, operation, result, nat);
    Ok(Flow::Next)
}

/// The first operand is the immediate, which is zero for a compare with r0.
fn compare_immediate<W: Width, R: Relate, U: Update>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    if is_annulled::<U>(processor, operation) {
        return Ok(Flow::Next);
    }
    let registers = &processor.general;
    let result = R::relate::<W>(operation.immediate, registers.value(operation.r3));
    let nat = registers.any_nat() && registers.nat(operation.r3);
    U::update(processor, operation, result, nat);
    Ok(Flow::Next)
}

/// Clears the targets of an unconditional operation whose qualifying predicate is false.
#[inline(always)]
fn is_annulled<U: Update>(processor: &mut Processor, operation: &MicroOperation) -> bool {
    let annulled = U::UNCONDITIONAL && !processor.predicate(operation.extra);
    if annulled {
        write_predicates(processor, operation, false, false);
    }
    annulled
}

/// What a test looks at: the bit, and whether the source was NaT.
trait Subject {
    fn bit(processor: &Processor, operation: &MicroOperation) -> (bool, bool);
}

struct Bit;
struct Nat;
struct Feature;

impl Subject for Bit {
    #[inline(always)]
    fn bit(processor: &Processor, operation: &MicroOperation) -> (bool, bool) {
        let registers = &processor.general;
        (
            registers.value(operation.r3) >> (operation.r4 & 63) & 1 != 0,
            registers.nat(operation.r3),
        )
    }
}

impl Subject for Nat {
    #[inline(always)]
    fn bit(processor: &Processor, operation: &MicroOperation) -> (bool, bool) {
        (processor.general.nat(operation.r3), false)
    }
}

impl Subject for Feature {
    fn bit(_: &Processor, operation: &MicroOperation) -> (bool, bool) {
        (
            super::system::FEATURES >> (operation.immediate & 63) & 1 != 0,
            false,
        )
    }
}

/// Chooses the test for one combination of its completers.
fn test<S: Subject>(relation: BitRelation, update: PredicateUpdate) -> Execute {
    fn by_relation<S: Subject, U: Update>(relation: BitRelation) -> Execute {
        match relation {
            BitRelation::Zero => test_bit::<S, U, false>,
            BitRelation::NotZero => test_bit::<S, U, true>,
        }
    }
    match update {
        PredicateUpdate::Normal => by_relation::<S, Normal>(relation),
        PredicateUpdate::Unconditional => by_relation::<S, Unconditional>(relation),
        PredicateUpdate::And => by_relation::<S, And>(relation),
        PredicateUpdate::Or => by_relation::<S, Or>(relation),
        PredicateUpdate::OrAndComplement => by_relation::<S, OrAndComplement>(relation),
    }
}

fn test_bit<S: Subject, U: Update, const WANTED: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    if is_annulled::<U>(processor, operation) {
        return Ok(Flow::Next);
    }
    let (bit, nat) = S::bit(processor, operation);
    U::update(processor, operation, bit == WANTED, nat);
    Ok(Flow::Next)
}
