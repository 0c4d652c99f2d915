//! Integer compares and bit tests, which write two predicates (manual volume 1, section 4.3.3; formats A6 to
//! A8, I16, I17, I30).

use crate::encoding::{BitRelation, CompareSource, CompareWidth, Instruction, PredicateUpdate, Relation};
use crate::processor::Processor;
use crate::processor::execution::{Execute, Flow, MicroOperation, Step};

use super::frequent::{Code, Handler, call, inline};

/// A compare with the operands of its form.
pub(super) fn lower_compare(
    instruction: &Instruction,
    (relation, width, update, first): (Relation, CompareWidth, PredicateUpdate, CompareSource),
) -> MicroOperation {
    let operation = with_targets(
        compare_handler(relation, width, update, first),
        instruction,
        update,
    );
    match first {
        CompareSource::Register => operation,
        CompareSource::Zero => MicroOperation { r2: 0, ..operation },
        CompareSource::Immediate => MicroOperation {
            r2: instruction.immediate as u8,
            ..operation
        },
    }
}

pub(super) fn lower_test_bit(
    instruction: &Instruction,
    relation: BitRelation,
    update: PredicateUpdate,
) -> MicroOperation {
    MicroOperation {
        r4: instruction.position,
        ..with_targets(call(test::<Bit>(relation, update)), instruction, update)
    }
}

pub(super) fn lower_test_nat(
    instruction: &Instruction,
    relation: BitRelation,
    update: PredicateUpdate,
) -> MicroOperation {
    with_targets(call(test::<Nat>(relation, update)), instruction, update)
}

pub(super) fn lower_test_feature(
    instruction: &Instruction,
    relation: BitRelation,
    update: PredicateUpdate,
) -> MicroOperation {
    MicroOperation {
        r4: instruction.immediate as u8,
        ..with_targets(call(test::<Feature>(relation, update)), instruction, update)
    }
}

/// An operation that writes two predicates, which must not be the same.
fn with_targets(handler: Handler, instruction: &Instruction, update: PredicateUpdate) -> MicroOperation {
    let is_unconditional = update == PredicateUpdate::Unconditional;
    let predicate = if is_unconditional {
        0
    } else {
        instruction.predicate()
    };
    if instruction.p1() == instruction.p2() {
        return super::illegal(predicate);
    }
    let operation = if is_unconditional {
        super::always(handler, instruction)
    } else {
        super::fields(handler, instruction)
    };
    MicroOperation {
        immediate: clearing_mask(instruction),
        ..operation
    }
}

/// Chooses the compare for one combination of its completers.
fn compare_handler(
    relation: Relation,
    width: CompareWidth,
    update: PredicateUpdate,
    first: CompareSource,
) -> Handler {
    use Relation as R;
    let is_register = first == CompareSource::Register;
    let frequent = match (width, relation, is_register) {
        _ if update != PredicateUpdate::Normal => None,
        (CompareWidth::DoubleWord, R::Equal, true) => Some(Code::CompareEqual),
        (CompareWidth::DoubleWord, R::Less, true) => Some(Code::CompareLess),
        (CompareWidth::DoubleWord, R::LessUnsigned, true) => Some(Code::CompareLessUnsigned),
        (CompareWidth::DoubleWord, R::Equal, false) => Some(Code::CompareEqualImmediate),
        (CompareWidth::DoubleWord, R::NotEqual, false) => Some(Code::CompareNotEqualImmediate),
        (CompareWidth::DoubleWord, R::Less, false) => Some(Code::CompareLessImmediate),
        (CompareWidth::DoubleWord, R::LessUnsigned, false) => Some(Code::CompareLessUnsignedImmediate),
        (CompareWidth::Word, R::Equal, true) => Some(Code::CompareWordEqual),
        (CompareWidth::Word, R::Less, true) => Some(Code::CompareWordLess),
        (CompareWidth::Word, R::LessUnsigned, true) => Some(Code::CompareWordLessUnsigned),
        (CompareWidth::Word, R::Equal, false) => Some(Code::CompareWordEqualImmediate),
        (CompareWidth::Word, R::Less, false) => Some(Code::CompareWordLessImmediate),
        (CompareWidth::Word, R::LessUnsigned, false) => Some(Code::CompareWordLessUnsignedImmediate),
        _ => None,
    };
    frequent.map_or_else(
        || {
            call(match width {
                CompareWidth::DoubleWord => by_relation::<DoubleWord>(relation, update, first),
                CompareWidth::Word => by_relation::<Word>(relation, update, first),
            })
        },
        inline,
    )
}

/// How a result writes the two predicates.
///
/// A compare's immediate is the mask that clears its targets, p0 excepted, so that p0 stays one whatever is
/// written.
pub(super) trait Update {
    fn update(predicates: u64, operation: &MicroOperation, result: bool) -> u64;
    /// The targets when a source is NaT.
    fn update_nat(predicates: u64, operation: &MicroOperation) -> u64;
    /// Whether the targets are cleared, and nothing else happens, when the qualifying predicate is false.
    const UNCONDITIONAL: bool = false;
}

pub(super) struct Normal;
pub(super) struct Unconditional;
pub(super) struct And;
pub(super) struct Or;
pub(super) struct OrAndComplement;

/// Writes both predicate targets of an operation whose immediate is no clearing mask.
#[inline(always)]
pub(super) fn write_predicates(
    processor: &mut Processor,
    operation: &MicroOperation,
    first: bool,
    second: bool,
) {
    processor.set_predicate(operation.p1, first);
    processor.set_predicate(operation.p2, second);
}

/// The mask that clears both targets but p0.
fn clearing_mask(instruction: &Instruction) -> u64 {
    !(1 << instruction.p1() | 1 << instruction.p2()) | 1
}

/// p1 becomes the result, p2 its complement.
#[inline(always)]
fn complementary(predicates: u64, operation: &MicroOperation, result: bool) -> u64 {
    let set = if result { operation.p1 } else { operation.p2 };
    predicates & operation.immediate | 1 << (set & 63)
}

impl Update for Normal {
    #[inline(always)]
    fn update(predicates: u64, operation: &MicroOperation, result: bool) -> u64 {
        complementary(predicates, operation, result)
    }
    fn update_nat(predicates: u64, operation: &MicroOperation) -> u64 {
        predicates & operation.immediate
    }
}

impl Update for Unconditional {
    #[inline(always)]
    fn update(predicates: u64, operation: &MicroOperation, result: bool) -> u64 {
        complementary(predicates, operation, result)
    }
    fn update_nat(predicates: u64, operation: &MicroOperation) -> u64 {
        predicates & operation.immediate
    }
    const UNCONDITIONAL: bool = true;
}

impl Update for And {
    #[inline(always)]
    fn update(predicates: u64, operation: &MicroOperation, result: bool) -> u64 {
        if result {
            predicates
        } else {
            predicates & operation.immediate
        }
    }
    fn update_nat(predicates: u64, operation: &MicroOperation) -> u64 {
        predicates & operation.immediate
    }
}

impl Update for Or {
    #[inline(always)]
    fn update(predicates: u64, operation: &MicroOperation, result: bool) -> u64 {
        if result {
            predicates | !operation.immediate
        } else {
            predicates
        }
    }
    fn update_nat(predicates: u64, _: &MicroOperation) -> u64 {
        predicates
    }
}

impl Update for OrAndComplement {
    #[inline(always)]
    fn update(predicates: u64, operation: &MicroOperation, result: bool) -> u64 {
        if result {
            predicates & operation.immediate | 1 << (operation.p1 & 63)
        } else {
            predicates
        }
    }
    fn update_nat(predicates: u64, _: &MicroOperation) -> u64 {
        predicates
    }
}

/// The operand width of a compare.
pub(super) trait Width {
    fn signed(value: u64) -> i64;
    fn unsigned(value: u64) -> u64;
}

pub(super) struct Word;
pub(super) struct DoubleWord;

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
pub(super) trait Relate {
    fn relate<W: Width>(a: u64, b: u64) -> bool;
}

macro_rules! relations {
    ($($name:ident = |$width:ident, $a:ident, $b:ident| $result:expr;)+) => {$(
        pub(super) struct $name;
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

/// The function for one combination of completers.
fn by_relation<W: Width>(relation: Relation, update: PredicateUpdate, first: CompareSource) -> Execute {
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

#[inline(always)]
pub(super) fn compare_registers<W: Width, R: Relate, U: Update>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    let registers = &processor.general;
    let result = R::relate::<W>(registers.value(operation.r2), registers.value(operation.r3));
    let nat = registers.any_nat() && (registers.nat(operation.r2) || registers.nat(operation.r3));
    Ok(finish::<U>(processor, operation, result, nat))
}

/// The first operand is the immediate, which fits in `r2`; it is zero for a compare with r0.
#[inline(always)]
pub(super) fn compare_immediate<W: Width, R: Relate, U: Update>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    let registers = &processor.general;
    let result = R::relate::<W>(operation.r2 as i8 as u64, registers.value(operation.r3));
    let nat = registers.any_nat() && registers.nat(operation.r3);
    Ok(finish::<U>(processor, operation, result, nat))
}

/// Writes the targets, or clears them if the operation is unconditional and its predicate false.
#[inline(always)]
fn finish<U: Update>(processor: &mut Processor, operation: &MicroOperation, result: bool, nat: bool) -> Flow {
    processor.predicates = if U::UNCONDITIONAL && !processor.predicate(operation.extra) {
        processor.predicates & operation.immediate
    } else if nat {
        U::update_nat(processor.predicates, operation)
    } else {
        U::update(processor.predicates, operation, result)
    };
    Flow::Next
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
    let (bit, nat) = S::bit(processor, operation);
    Ok(finish::<U>(processor, operation, bit == WANTED, nat))
}
