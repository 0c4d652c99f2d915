//! Exact arithmetic on arbitrarily large integers, rounded by definition: the oracle for the register arithmetic.
//!
//! Nothing here shares code or method with the implementation: a value is an integer times a power of two, and a
//! rounding compares the exact value with its two neighbours.

use num_bigint::BigUint;
use proptest::prelude::*;
use sidestep_ia64::float::{
    Class, Control, Flags, FloatRegister, FloatTrap, Precision, Range, Rounded, Rounding,
};

/// `(-1)^negative * magnitude * 2^exponent`.
#[derive(Clone, Debug)]
pub struct Exact {
    pub negative: bool,
    pub magnitude: BigUint,
    pub exponent: i64,
}

impl Exact {
    /// The exact value of a finite register.
    pub fn of(register: FloatRegister) -> Self {
        let exponent = match register.exponent() {
            0 => 0xC001,
            exponent => i64::from(exponent),
        };
        Self {
            negative: register.is_negative(),
            magnitude: BigUint::from(register.significand()),
            exponent: exponent - 0xFFFF - 63,
        }
    }

    pub fn is_zero(&self) -> bool {
        self.magnitude.bits() == 0
    }

    pub fn negated(self, negate: bool) -> Self {
        Self {
            negative: self.negative ^ negate,
            ..self
        }
    }

    pub fn times(&self, other: &Self) -> Self {
        Self {
            negative: self.negative ^ other.negative,
            magnitude: &self.magnitude * &other.magnitude,
            exponent: self.exponent + other.exponent,
        }
    }

    pub fn plus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let left = &self.magnitude << (self.exponent - exponent) as u64;
        let right = &other.magnitude << (other.exponent - exponent) as u64;
        let (negative, magnitude) = if self.negative == other.negative {
            (self.negative, left + right)
        } else if left >= right {
            (self.negative, left - right)
        } else {
            (other.negative, right - left)
        };
        Self {
            negative,
            magnitude,
            exponent,
        }
    }
}

/// The parts of a control that the oracle computes with.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub precision: Precision,
    pub range: Range,
    pub rounding: Rounding,
    pub flush_to_zero: bool,
    pub disabled: Flags,
}

impl Setting {
    pub fn control(&self) -> Control {
        Control::new(
            self.precision,
            self.range,
            self.rounding,
            self.flush_to_zero,
            self.disabled,
        )
    }

    fn exponent_max(&self) -> i64 {
        match self.range {
            Range::Single => 127,
            Range::Double => 1023,
            Range::Extended => 16383,
            Range::Register => 65535,
        }
    }
}

/// A multiple of `2^quantum`: the integer, whether the value was rounded, and whether away from zero.
struct Multiple {
    integer: BigUint,
    inexact: bool,
    away: bool,
}

fn round_to_multiple(value: &Exact, quantum: i64, rounding: Rounding) -> Multiple {
    let shift = quantum - value.exponent;
    if shift <= 0 {
        return Multiple {
            integer: &value.magnitude << (-shift) as u64,
            inexact: false,
            away: false,
        };
    }
    let floor = &value.magnitude >> shift as u64;
    let remainder = &value.magnitude - (&floor << shift as u64);
    let inexact = remainder.bits() != 0;
    let twice = &remainder << 1u32;
    let unit = BigUint::from(1u32) << shift as u64;
    let away = inexact
        && match rounding {
            Rounding::Nearest => twice > unit || (twice == unit && floor.bit(0)),
            Rounding::Down => value.negative,
            Rounding::Up => !value.negative,
            Rounding::Zero => false,
        };
    let integer = if away { floor + 1u32 } else { floor };
    Multiple {
        integer,
        inexact,
        away,
    }
}

/// The register that holds `integer * 2^quantum` with its exponent wrapped to 17 bits; `least` is the exponent below
/// which it stays denormal.
fn encode(negative: bool, integer: &BigUint, quantum: i64, least: Option<i64>) -> FloatRegister {
    let bits = integer.bits() as i64;
    let top = quantum + bits - 1;
    let exponent = least.map_or(top, |least| top.max(least));
    let shift = exponent - quantum;
    let aligned = if shift <= 63 {
        integer << (63 - shift) as u64
    } else {
        integer >> (shift - 63) as u64
    };
    let significand = aligned.iter_u64_digits().next().unwrap_or(0);
    let field = if significand == 0 || (significand >> 63 == 0 && exponent == -16382) {
        0
    } else {
        (exponent + 0xFFFF) & 0x1FFFF
    };
    FloatRegister::new(negative, field as u32, significand)
}

/// What an arithmetic operation delivers for an exact non-zero value.
pub fn round(value: &Exact, setting: &Setting) -> Rounded {
    let precision = setting.precision as i64;
    let (most, least) = (setting.exponent_max(), 1 - setting.exponent_max());
    let top = value.exponent + value.magnitude.bits() as i64 - 1;
    let quantum = top - precision + 1;
    let unbounded = round_to_multiple(value, quantum, setting.rounding);
    let unbounded_top = quantum + unbounded.integer.bits() as i64 - 1;
    let enabled = |flag: Flags| !setting.disabled.contains(flag);
    let inexact_trap = |flags: Flags, away: bool| {
        if flags.contains(Flags::INEXACT) && enabled(Flags::INEXACT) {
            FloatTrap::INEXACT
                | if away {
                    FloatTrap::MAGNITUDE_INCREASED
                } else {
                    FloatTrap::empty()
                }
        } else {
            FloatTrap::empty()
        }
    };
    let trapped = |flag: Flags, cause: FloatTrap| Rounded {
        value: encode(value.negative, &unbounded.integer, quantum, None),
        flags: flag
            | if unbounded.inexact {
                Flags::INEXACT
            } else {
                Flags::empty()
            },
        trap: cause
            | if unbounded.inexact {
                FloatTrap::INEXACT
            } else {
                FloatTrap::empty()
            }
            | if unbounded.away {
                FloatTrap::MAGNITUDE_INCREASED
            } else {
                FloatTrap::empty()
            },
    };
    if unbounded_top > most {
        if enabled(Flags::OVERFLOW) {
            return trapped(Flags::OVERFLOW, FloatTrap::OVERFLOW);
        }
        let infinite = match setting.rounding {
            Rounding::Nearest => true,
            Rounding::Down => value.negative,
            Rounding::Up => !value.negative,
            Rounding::Zero => false,
        };
        let largest = (BigUint::from(1u32) << precision as u64) - 1u32;
        let flags = Flags::OVERFLOW | Flags::INEXACT;
        return Rounded {
            value: if infinite {
                FloatRegister::infinity(value.negative)
            } else {
                encode(value.negative, &largest, most - precision + 1, None)
            },
            flags,
            trap: inexact_trap(flags, infinite),
        };
    }
    if unbounded_top < least {
        if enabled(Flags::UNDERFLOW) {
            return trapped(Flags::UNDERFLOW, FloatTrap::UNDERFLOW);
        }
        if setting.flush_to_zero {
            let flags = Flags::UNDERFLOW | Flags::INEXACT;
            let value = FloatRegister::zero(value.negative);
            return Rounded {
                value,
                flags,
                trap: inexact_trap(flags, false),
            };
        }
        let quantum = least - precision + 1;
        let tiny = round_to_multiple(value, quantum, setting.rounding);
        let flags = if tiny.inexact {
            Flags::UNDERFLOW | Flags::INEXACT
        } else {
            Flags::empty()
        };
        return Rounded {
            value: encode(value.negative, &tiny.integer, quantum, Some(least)),
            flags,
            trap: inexact_trap(flags, tiny.away),
        };
    }
    let flags = if unbounded.inexact {
        Flags::INEXACT
    } else {
        Flags::empty()
    };
    Rounded {
        value: encode(value.negative, &unbounded.integer, quantum, None),
        flags,
        trap: inexact_trap(flags, unbounded.away),
    }
}

/// The D flag if any operand is unnormal.
pub fn denormal(operands: &[FloatRegister]) -> Flags {
    if operands.iter().any(|operand| operand.class() == Class::Unnormal) {
        Flags::DENORMAL
    } else {
        Flags::empty()
    }
}

/// Significands with long runs of equal bits, few bits, or random ones.
pub fn significands() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => any::<u64>(),
        2 => (any::<u64>(), 0u32..64).prop_map(|(bits, shift)| bits << shift | 1 << 63),
        1 => (0u32..64, 0u32..64).prop_map(|(from, to)| (u64::MAX << from) ^ (u64::MAX << to)),
        2 => (0u32..64, 0u32..64).prop_map(|(from, to)| (u64::MAX << from) ^ (1 << to)),
        1 => any::<u32>().prop_map(|bits| u64::from(bits) << 32 | 1 << 63),
        1 => Just(1 << 63),
        1 => Just(u64::MAX),
        1 => Just(0),
    ]
}

/// Exponents around one another, around the ends of every format, and anywhere.
pub fn exponents() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => (0i32..=160).prop_map(|near| (0xFFFF + near - 80) as u32),
        2 => Just(0xFFFF),
        1 => (0usize..8, -70i32..=70).prop_map(|(format, near)| {
            let end = [0xFF81, 0x1007E, 0xFC01, 0x103FE, 0xC001, 0x13FFE, 1, 0x1FFFE][format];
            (end + near).clamp(0, 0x1FFFF) as u32
        }),
        1 => Just(0),
        1 => 0u32..=0x1FFFF,
    ]
}

/// Any register, with the interesting ones likely; finite if `finite` (NaTVal, infinities and NaNs excluded).
pub fn registers(finite: bool) -> impl Strategy<Value = FloatRegister> {
    (any::<bool>(), exponents(), significands()).prop_map(move |(negative, exponent, significand)| {
        let register = FloatRegister::new(negative, exponent, significand);
        let infinite = register.exponent() == 0x1FFFF;
        if finite && (infinite || register.is_natval()) {
            FloatRegister::new(negative, 0xFFFF, significand)
        } else {
            register
        }
    })
}

/// Every precision, range, rounding mode and set of disabled traps.
pub fn settings() -> impl Strategy<Value = Setting> {
    let precision = prop_oneof![
        Just(Precision::Single),
        Just(Precision::Double),
        Just(Precision::Extended)
    ];
    let range = prop_oneof![
        Just(Range::Single),
        Just(Range::Double),
        Just(Range::Extended),
        Just(Range::Register)
    ];
    let disabled = prop_oneof![Just(Flags::all()), (0u8..64).prop_map(Flags::from_bits_truncate)];
    (precision, range, 0usize..4, any::<bool>(), disabled).prop_map(
        |(precision, range, rounding, flush_to_zero, disabled)| Setting {
            precision,
            range,
            rounding: Rounding::ALL[rounding],
            flush_to_zero,
            disabled,
        },
    )
}
