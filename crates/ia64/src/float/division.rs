//! Divisions as compilers and their libraries write them: an approximation of the divisor's reciprocal, steps that make
//! it better, and one that delivers the quotient, which is the rounded one, or for integers the one that rounding
//! towards zero makes right. Square roots are written in the same way and stand among them: what is said of a division
//! here, of its dividend and of its quotient, is said of a root, its radicand and itself, too.
//!
//! A back end may compute such a quotient by itself, faster than by its steps. Nobody looks at what the steps leave in
//! their registers, as a rule, but somebody may. So a register can stand for a [step](SEQUENCES) of a division whose
//! operands are kept beside it, and is computed when it is asked for.
//!
//! Sources: what GCC 12 emits and its library has, read from their code. P. Markstein, *IA-64 and Elementary
//! Functions*, and M. Cornea, J. Harrison, P. Tang, *Scientific Computing on Itanium-based Systems*, for why such
//! sequences are right; the tests hold them against the host's quotients.

use std::mem::offset_of;

use super::control::{Control, Flags, Precision, Range, Rounding};
use super::reciprocal::{reciprocal, reciprocal_root};
use super::register::{EXPONENT_INTEGER, FloatRegister};
use super::{multiply, multiply_add};
use crate::encoding::MultiplyAdd;

/// What a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The dividend, or the radicand.
    Dividend,
    /// The divisor.
    Divisor,
    /// The approximation of the divisor's reciprocal, of `frcpa`, or of the root's, of `frsqrta`.
    Approximation,
    /// f1.
    One,
    /// f0 in the addend's place: there is none.
    Nothing,
    /// A number in a register of its own, by its bits as one of single precision.
    Number(u32),
    /// What an earlier step has delivered.
    Step(u8),
}

/// A multiply-add.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What it does.
    pub function: MultiplyAdd,
    /// To how many bits it rounds.
    pub precision: Precision,
    /// What is multiplied.
    pub factors: [Operand; 2],
    /// What is added.
    pub addend: Operand,
}

/// What a sequence is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quotient {
    /// Numbers of double precision; the last step delivers the rounded quotient.
    Double,
    /// Numbers of single precision, as well.
    Single,
    /// Integers of 64 bits: the last step delivers what becomes the quotient by rounding towards zero.
    Integer,
    /// The same for integers of 32 bits.
    ShortInteger,
    /// The rounded square root of a number of double precision.
    Root,
    /// The same in single precision.
    SingleRoot,
}

impl Quotient {
    /// Whether the last step delivers the quotient, which is a number.
    pub fn is_number(self) -> bool {
        match self {
            Quotient::Double | Quotient::Single | Quotient::Root | Quotient::SingleRoot => true,
            Quotient::Integer | Quotient::ShortInteger => false,
        }
    }

    /// Whether it is a square root.
    pub fn is_root(self) -> bool {
        matches!(self, Quotient::Root | Quotient::SingleRoot)
    }
}

/// The steps of a division.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    /// What it is for.
    pub quotient: Quotient,
    /// The steps, in an order in which each finds what it takes.
    pub steps: &'static [Step],
}

use Operand::Step as Of;
use Operand::{Approximation, Dividend, Divisor, Nothing, One};

const fn number(value: f32) -> Operand {
    Operand::Number(value.to_bits())
}

const HALF: Operand = number(0.5);
const THREE_EIGHTHS: Operand = number(0.375);

const fn step(function: MultiplyAdd, factors: [Operand; 2], addend: Operand) -> Step {
    Step {
        function,
        precision: Precision::Extended,
        factors,
        addend,
    }
}

const fn add(factors: [Operand; 2], addend: Operand) -> Step {
    step(MultiplyAdd::Add, factors, addend)
}

/// What is left of an operand less a product.
const fn less(addend: Operand, factors: [Operand; 2]) -> Step {
    step(MultiplyAdd::NegateAdd, factors, addend)
}

const fn to(precision: Precision, step: Step) -> Step {
    Step { precision, ..step }
}

/// The sequences that are known.
pub const SEQUENCES: [Sequence; 9] = [
    Sequence {
        quotient: Quotient::Double,
        steps: &[
            less(One, [Divisor, Approximation]),
            add([Of(0), Of(0)], Nothing),
            add([Approximation, Of(0)], Approximation),
            add([Of(1), Of(1)], Nothing),
            add([Of(2), Of(1)], Of(2)),
            add([Of(4), Of(3)], Of(4)),
            to(Precision::Double, add([Dividend, Of(5)], Nothing)),
            less(Dividend, [Divisor, Of(6)]),
            to(Precision::Double, add([Of(7), Of(5)], Of(6))),
        ],
    },
    Sequence {
        quotient: Quotient::Single,
        steps: &[
            less(One, [Divisor, Approximation]),
            add([Approximation, Of(0)], Approximation),
            add([Of(1), Of(0)], Approximation),
            to(Precision::Single, add([Dividend, Of(2)], Nothing)),
            less(Dividend, [Of(3), Divisor]),
            to(Precision::Single, add([Of(4), Of(2)], Of(3))),
        ],
    },
    Sequence {
        quotient: Quotient::Integer,
        steps: &[
            less(One, [Divisor, Approximation]),
            add([Dividend, Approximation], Nothing),
            add([Of(0), Of(0)], Nothing),
            add([Of(0), Of(1)], Of(1)),
            add([Of(0), Approximation], Approximation),
            add([Of(2), Of(3)], Of(3)),
            add([Of(2), Of(4)], Of(4)),
            less(Dividend, [Divisor, Of(5)]),
            add([Of(7), Of(6)], Of(5)),
        ],
    },
    Sequence {
        quotient: Quotient::ShortInteger,
        steps: &[
            add([Dividend, Approximation], Nothing),
            less(One, [Divisor, Approximation]),
            add([Of(1), Of(0)], Of(0)),
            add([Of(1), Of(1)], number(1.0 / (1u64 << 34) as f32)),
            add([Of(3), Of(2)], Of(2)),
        ],
    },
    // Of the C library's mathematics.
    Sequence {
        quotient: Quotient::Root,
        steps: &[
            add([HALF, Approximation], Nothing),
            add([Dividend, Approximation], Nothing),
            less(HALF, [Of(1), Of(0)]),
            add([number(2.5), Of(2)], number(1.5)),
            add([Of(2), Of(2)], Nothing),
            add([number(14.4375), Of(2)], number(7.875)),
            add([Of(4), Of(3)], Of(2)),
            add([Of(4), Of(4)], Nothing),
            add([Of(2), Of(5)], number(4.375)),
            add([Of(6), Of(1)], Of(1)),
            add([Of(1), Of(7)], Nothing),
            add([Of(7), Of(8)], Of(6)),
            to(Precision::Double, add([Of(8), Of(10)], Of(9))),
            add([Of(11), Of(0)], Of(0)),
            less(Dividend, [Of(12), Of(12)]),
            to(Precision::Double, add([Of(14), Of(13)], Of(12))),
        ],
    },
    Sequence {
        quotient: Quotient::SingleRoot,
        steps: &[
            add([HALF, Approximation], Nothing),
            add([Dividend, Approximation], Nothing),
            less(HALF, [Of(1), Of(0)]),
            add([HALF, One], One),
            add([Of(3), Of(2)], One),
            add([Of(2), Of(1)], Nothing),
            add([Of(2), Of(0)], Nothing),
            to(Precision::Single, add([Of(4), Of(5)], Of(1))),
            add([Of(4), Of(6)], Of(0)),
            less(Dividend, [Of(7), Of(7)]),
            to(Precision::Single, add([Of(9), Of(8)], Of(7))),
        ],
    },
    // What GCC emits in line, of single precision for throughput and for latency.
    Sequence {
        quotient: Quotient::Root,
        steps: &[
            add([Dividend, Approximation], Nothing),
            add([HALF, Approximation], Nothing),
            less(HALF, [Of(0), Of(1)]),
            add([Of(0), Of(2)], Of(0)),
            add([Of(1), Of(2)], Of(1)),
            less(HALF, [Of(3), Of(4)]),
            add([Of(3), Of(5)], Of(3)),
            add([Of(4), Of(5)], Of(4)),
            less(Dividend, [Of(6), Of(6)]),
            add([Of(8), Of(7)], Of(6)),
            less(Dividend, [Of(9), Of(9)]),
            to(Precision::Double, add([Of(10), Of(7)], Of(9))),
        ],
    },
    Sequence {
        quotient: Quotient::SingleRoot,
        steps: &[
            add([Dividend, Approximation], Nothing),
            less(One, [Of(0), Approximation]),
            add([THREE_EIGHTHS, Of(1)], HALF),
            add([Approximation, Of(1)], Nothing),
            add([Of(3), Of(2)], Approximation),
            to(Precision::Single, add([Dividend, Of(4)], Nothing)),
            add([HALF, Of(4)], Nothing),
            less(Dividend, [Of(5), Of(5)]),
            to(Precision::Single, add([Of(7), Of(6)], Of(5))),
        ],
    },
    Sequence {
        quotient: Quotient::SingleRoot,
        steps: &[
            add([Dividend, Approximation], Nothing),
            add([HALF, Approximation], Nothing),
            less(One, [Of(0), Approximation]),
            add([THREE_EIGHTHS, Of(2)], HALF),
            add([Of(2), Of(0)], Nothing),
            add([Of(2), Of(1)], Nothing),
            to(Precision::Single, add([Of(4), Of(3)], Of(0))),
            add([Of(5), Of(3)], Of(1)),
            less(Dividend, [Of(6), Of(6)]),
            to(Precision::Single, add([Of(8), Of(7)], Of(6))),
        ],
    },
];

/// An integer that is not zero, as a normal value.
fn of_integer(is_negative: bool, magnitude: u64) -> FloatRegister {
    let shift = magnitude.leading_zeros();
    FloatRegister::new(is_negative, EXPONENT_INTEGER - shift, magnitude << shift)
}

impl Step {
    /// The factors in an order in which it takes these operands, of which `None` is in no known role: that is any
    /// number.
    pub fn takes(&self, [one, other]: [Option<Operand>; 2], addend: Option<Operand>) -> Option<[Operand; 2]> {
        let is = |taken: Operand, given: Option<Operand>| match given {
            Some(given) => given == taken,
            None => matches!(taken, Operand::Number(_)),
        };
        let [first, second] = self.factors;
        let orders = [[first, second], [second, first]];
        let mut orders = orders.into_iter().filter(|_| is(self.addend, addend));
        orders.find(|&[first, second]| is(first, one) && is(second, other))
    }
}

impl Sequence {
    /// The number that the approximation has where a register stands for it: none does for a last step that has it.
    pub const APPROXIMATION: u8 = 15;

    /// The approximation that the steps begin with, of two numbers that are neither zero nor denormal.
    fn approximation(&self, dividend: FloatRegister, divisor: FloatRegister) -> FloatRegister {
        let control = exact(Precision::Extended);
        let approximation = match self.quotient.is_root() {
            true => reciprocal_root(dividend, &control),
            false => reciprocal(dividend, divisor, &control),
        };
        approximation.map_or(FloatRegister::ZERO, |approximation| approximation.result.value)
    }

    /// What a step delivers in the division of two numbers that are neither zero nor denormal, where it rounds to
    /// nearest in the range of the registers.
    ///
    /// # Panics
    /// When there is no such step.
    pub fn step(&self, number: usize, dividend: FloatRegister, divisor: FloatRegister) -> FloatRegister {
        let approximation = self.approximation(dividend, divisor);
        let mut delivered: Vec<FloatRegister> = Vec::new();
        for step in &self.steps[..=number] {
            let value = |operand| match operand {
                Operand::Dividend => dividend,
                Operand::Divisor => divisor,
                Operand::Approximation => approximation,
                Operand::One => FloatRegister::ONE,
                Operand::Nothing => FloatRegister::ZERO,
                Operand::Number(bits) => FloatRegister::from_single(bits),
                Operand::Step(number) => delivered[usize::from(number)],
            };
            let [one, other] = step.factors.map(value);
            let control = exact(step.precision);
            let rounded = match step.addend {
                Operand::Nothing => multiply(one, other, step.function, &control),
                addend => multiply_add(one, other, value(addend), step.function, &control),
            };
            delivered.push(rounded.expect("no condition traps").value);
        }
        delivered[number]
    }
}

/// Rounding to nearest in the range of the registers, with no condition trapping.
fn exact(precision: Precision) -> Control {
    Control::new(precision, Range::Register, Rounding::Nearest, false, Flags::all())
}

/// The operands of the divisions that registers stand for steps of.
///
/// A back end gives each division in its code a number, and with it a [site](Divisions::SITES). A site keeps the
/// operands of two: of the latest division, and of the one before it, which registers may still stand for steps of
/// until the latest has come to its end and overwritten all of them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Divisions {
    /// By site: whose it is, which of the two is the latest, and whether that has come to its end.
    states: [u64; Divisions::SITES],
    /// The dividend and the divisor, as doubles or integers; of a root the radicand twice.
    operands: [[u64; 2]; 2 * Divisions::SITES],
}

impl Divisions {
    pub(crate) const SITES: usize = 32;
    pub(crate) const STATES: usize = offset_of!(Divisions, states);
    pub(crate) const OPERANDS: usize = offset_of!(Divisions, operands);
    /// In a site's state: the latest has come to its end; and which of the two it is.
    pub(crate) const IS_ENDED: u64 = 1;
    pub(crate) const LATEST: u64 = 1 << 1;
    /// Where a state has the number of whose the site is.
    pub(crate) const OWNER_SHIFT: u32 = 2;
    /// In the first word of a register that stands for a step, or for the approximation: its number, the sequence,
    /// whether integers have no sign, and from where on the site and which of its two divisions. With that the first
    /// word is not zero, and no significand of a normal value.
    pub(crate) const SEQUENCE_SHIFT: u32 = 4;
    pub(crate) const UNSIGNED: u64 = 1 << 8;
    pub(crate) const DIVISION_SHIFT: u32 = 9;
    pub(crate) const MARK: u64 = 1 << 32;

    pub(crate) fn new() -> Divisions {
        Divisions {
            states: [0; Divisions::SITES],
            operands: [[0; 2]; 2 * Divisions::SITES],
        }
    }

    /// The step that a register's first word stands for.
    #[cold]
    #[inline(never)]
    pub(crate) fn step(&self, word: u64) -> FloatRegister {
        let field = |shift: u32, bits: u32| (word >> shift) as usize & ((1 << bits) - 1);
        let division = field(Divisions::DIVISION_SHIFT, (2 * Divisions::SITES).ilog2());
        let sequence = &SEQUENCES[field(Divisions::SEQUENCE_SHIFT, 4)];
        let operand = |bits: u64| match sequence.quotient.is_number() {
            true => FloatRegister::from_double(bits),
            false => {
                let is_negative = word & Divisions::UNSIGNED == 0 && bits.cast_signed() < 0;
                of_integer(is_negative, if is_negative { bits.wrapping_neg() } else { bits })
            }
        };
        let [dividend, divisor] = self.operands[division].map(operand);
        match field(0, Divisions::SEQUENCE_SHIFT) {
            number if number == usize::from(Sequence::APPROXIMATION) => {
                sequence.approximation(dividend, divisor)
            }
            number => sequence.step(number, dividend, divisor),
        }
    }

    /// Whether a register's first word stands for a step of one of a site's divisions.
    pub(crate) fn is_of_site(word: u64, site: usize) -> bool {
        (word >> Divisions::DIVISION_SHIFT) as usize % (2 * Divisions::SITES) / 2 == site
    }

    /// Gives a site to a division that is to begin there.
    pub(crate) fn own(&mut self, site: usize, owner: u64) {
        self.states[site] = owner << Divisions::OWNER_SHIFT | Divisions::IS_ENDED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::Signedness;
    use proptest::prelude::*;

    #[test]
    fn no_register_stands_for_a_step_with_the_number_of_the_approximation() {
        for Sequence { quotient, steps } in SEQUENCES {
            // The last one delivers the quotient, if that is a number.
            let noted = steps.len() - usize::from(quotient.is_number());
            assert!(noted <= usize::from(Sequence::APPROXIMATION), "{quotient:?}");
        }
    }

    fn sequence(quotient: Quotient) -> &'static Sequence {
        let sequence = SEQUENCES.iter().find(|sequence| sequence.quotient == quotient);
        sequence.expect("a sequence")
    }

    /// What the last step delivers; of numbers without going back to the range of doubles or singles, which the
    /// quotients of these tests do not leave.
    fn last(quotient: Quotient, operands: [FloatRegister; 2]) -> FloatRegister {
        let sequence = sequence(quotient);
        sequence.step(sequence.steps.len() - 1, operands[0], operands[1])
    }

    fn of_doubles(dividend: f64, divisor: f64) -> FloatRegister {
        let operands = [dividend, divisor].map(|number| FloatRegister::from_double(number.to_bits()));
        last(Quotient::Double, operands)
    }

    fn rounded_towards_zero(quotient: Quotient, operands: [i128; 2]) -> i128 {
        use crate::float::convert::to_integer;
        let control = Control::new(
            Precision::Extended,
            Range::Register,
            Rounding::Zero,
            false,
            Flags::all(),
        );
        let registers =
            operands.map(|integer| of_integer(integer < 0, u64::try_from(integer.unsigned_abs()).unwrap()));
        let quotient = last(quotient, registers);
        let magnitude = quotient.negated_if(quotient.is_negative());
        let integer = to_integer(magnitude, Signedness::Unsigned, &control).expect("no condition traps");
        let magnitude = i128::from(integer.value.significand());
        if quotient.is_negative() {
            -magnitude
        } else {
            magnitude
        }
    }

    /// Doubles around one, most of them with few ones or zeros among their bits or near such.
    fn doubles() -> impl Strategy<Value = f64> {
        let fraction = prop_oneof![
            2 => any::<u64>(),
            1 => (0u32..52, 0u32..52).prop_map(|(from, to)| (u64::MAX << from) ^ (u64::MAX << to)),
            1 => (0u64..16).prop_map(|low| low),
            1 => (0u64..16).prop_map(|low| !low),
        ];
        (any::<bool>(), 1023 - 500u64..1023 + 500, fraction).prop_map(|(sign, exponent, fraction)| {
            f64::from_bits(u64::from(sign) << 63 | exponent << 52 | fraction & ((1 << 52) - 1))
        })
    }

    fn integers(bits: u32) -> impl Strategy<Value = i128> {
        (any::<bool>(), any::<u64>(), 0..bits).prop_map(move |(sign, value, shift)| {
            let value = i128::from((value >> (64 - bits) >> shift).max(1));
            if sign { -value } else { value }
        })
    }

    /// `FLOAT_TEST_CASES` sets the number of random cases.
    fn cases() -> ProptestConfig {
        let cases = std::env::var("FLOAT_TEST_CASES").ok();
        ProptestConfig {
            cases: cases.and_then(|text| text.parse().ok()).unwrap_or(2_000),
            failure_persistence: None,
            ..ProptestConfig::default()
        }
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn steps_of_double_precision_end_with_the_rounded_quotient(
            dividend in doubles(), divisor in doubles(), nearby in -2i64..3,
        ) {
            let quotient = of_doubles(dividend, divisor);
            prop_assert_eq!(quotient, FloatRegister::from_double((dividend / divisor).to_bits()));
            // A dividend whose quotient is near a double, or near the middle of two.
            let product = dividend * divisor;
            let near = f64::from_bits(product.to_bits().wrapping_add_signed(nearby));
            let quotient = of_doubles(near, divisor);
            prop_assert_eq!(quotient, FloatRegister::from_double((near / divisor).to_bits()));
        }

        #[test]
        fn steps_of_single_precision_end_with_the_rounded_quotient(
            dividend in doubles(), divisor in doubles(), nearby in -2i32..3,
        ) {
            let narrow = |number: f64| (number.signum() * number.abs().powf(0.06)) as f32;
            let (dividend, divisor) = (narrow(dividend), narrow(divisor));
            let near = f32::from_bits((dividend * divisor).to_bits().wrapping_add_signed(nearby));
            for dividend in [dividend, near] {
                let operands = [dividend, divisor].map(|number| FloatRegister::from_single(number.to_bits()));
                let quotient = last(Quotient::Single, operands);
                prop_assert_eq!(quotient, FloatRegister::from_single((dividend / divisor).to_bits()));
            }
        }

        #[test]
        fn steps_of_roots_end_with_the_rounded_root(number in doubles(), nearby in -2i64..3) {
            let number = number.abs();
            // One whose root is near a double, or near the middle of two.
            let near = f64::from_bits((number * number).to_bits().wrapping_add_signed(nearby));
            for sequence in SEQUENCES.iter().filter(|sequence| sequence.quotient == Quotient::Root) {
                for radicand in [number, near] {
                    let register = FloatRegister::from_double(radicand.to_bits());
                    let root = sequence.step(sequence.steps.len() - 1, register, register);
                    prop_assert_eq!(root, FloatRegister::from_double(radicand.sqrt().to_bits()));
                }
            }
            let number = number.powf(0.06) as f32;
            let near = f32::from_bits((number * number).to_bits().wrapping_add_signed(nearby as i32));
            for sequence in SEQUENCES.iter().filter(|sequence| sequence.quotient == Quotient::SingleRoot) {
                for radicand in [number, near] {
                    let register = FloatRegister::from_single(radicand.to_bits());
                    let root = sequence.step(sequence.steps.len() - 1, register, register);
                    prop_assert_eq!(root, FloatRegister::from_single(radicand.sqrt().to_bits()));
                }
            }
        }

        #[test]
        fn steps_of_integers_end_with_the_quotient_towards_zero(
            dividend in integers(64), divisor in integers(64), quotient in integers(64), nearby in -2i128..3,
        ) {
            for dividend in [dividend, divisor.saturating_mul(quotient) + nearby] {
                if dividend != 0 && dividend.unsigned_abs() < 1 << 64 {
                    let rounded = rounded_towards_zero(Quotient::Integer, [dividend, divisor]);
                    prop_assert_eq!(rounded, dividend / divisor);
                }
            }
        }

        #[test]
        fn steps_of_short_integers_end_with_the_quotient_towards_zero(
            dividend in integers(32), divisor in integers(32), quotient in integers(32), nearby in -2i128..3,
        ) {
            for dividend in [dividend, divisor * quotient + nearby] {
                if dividend != 0 && dividend.unsigned_abs() < 1 << 32 {
                    let rounded = rounded_towards_zero(Quotient::ShortInteger, [dividend, divisor]);
                    prop_assert_eq!(rounded, dividend / divisor);
                }
            }
        }
    }

    #[test]
    fn a_register_stands_for_the_step_that_its_word_names() {
        let mut divisions = Divisions::new();
        let site = 5;
        divisions.operands[2 * site + 1] = [355.0f64, 113.0].map(f64::to_bits);
        let word = Divisions::MARK
            | (2 * site as u64 + 1) << Divisions::DIVISION_SHIFT
            | 1 << Divisions::SEQUENCE_SHIFT
            | 3;
        assert!(Divisions::is_of_site(word, site) && !Divisions::is_of_site(word, site + 1));
        let [dividend, divisor] =
            [355.0f64, 113.0].map(|number| FloatRegister::from_double(number.to_bits()));
        assert_eq!(divisions.step(word), SEQUENCES[1].step(3, dividend, divisor));
        let approximation = reciprocal(dividend, divisor, &exact(Precision::Extended));
        let approximation = approximation.expect("no condition traps");
        assert_eq!(
            divisions.step(word | u64::from(Sequence::APPROXIMATION)),
            approximation.result.value
        );
    }
}
