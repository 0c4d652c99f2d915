//! The file of floating-point registers.
//!
//! A back end that computes with the host's doubles keeps them there as they are: a register stands in its file either
//! as its spill image or as a number of double precision, and becomes an image when somebody asks. Which of the two
//! it is decides nothing that a guest could see.

use super::register::FloatRegister;

/// f0 to f127 before rotation.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct FloatingRegisters([Entry; 128]);

/// A register.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Entry {
    /// The significand, or the bits of a double.
    bits: u64,
    /// The word of sign and exponent, or [`FloatingRegisters::DOUBLE`].
    form: u64,
}

impl From<FloatRegister> for Entry {
    #[inline(always)]
    fn from(register: FloatRegister) -> Entry {
        Entry {
            bits: register.significand(),
            form: register.sign_exponent(),
        }
    }
}

impl FloatingRegisters {
    /// In the second word of a register: the first has the bits of a double, and the register is what loading them
    /// gives. No word of sign and exponent is this.
    pub(crate) const DOUBLE: u64 = 1 << 18;

    /// f0 and f1 as they always are, the others zero.
    pub(crate) fn new() -> FloatingRegisters {
        let mut registers = [FloatRegister::ZERO; 128];
        registers[1] = FloatRegister::ONE;
        FloatingRegisters::from(registers)
    }

    /// A register.
    ///
    /// # Panics
    /// There are 128.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> FloatRegister {
        let Entry { bits, form } = self.0[index];
        if form & FloatingRegisters::DOUBLE != 0 {
            return of_double(bits);
        }
        FloatRegister::from_image(bits, form)
    }

    /// Changes a register.
    ///
    /// # Panics
    /// As [`FloatingRegisters::get`].
    #[inline(always)]
    pub(crate) fn set(&mut self, index: usize, value: FloatRegister) {
        self.0[index] = value.into();
    }
}

/// An interpreter has none of them, so its operations are not to grow by this.
#[cold]
#[inline(never)]
fn of_double(bits: u64) -> FloatRegister {
    FloatRegister::from_double(bits)
}

impl From<[FloatRegister; 128]> for FloatingRegisters {
    fn from(registers: [FloatRegister; 128]) -> FloatingRegisters {
        FloatingRegisters(registers.map(Entry::from))
    }
}

impl From<&FloatingRegisters> for [FloatRegister; 128] {
    fn from(registers: &FloatingRegisters) -> [FloatRegister; 128] {
        std::array::from_fn(|index| registers.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_is_the_register_that_loading_it_gives() {
        let mut file = FloatingRegisters::new();
        let loaded = [
            0.0,
            -0.0,
            1.5,
            -f64::MAX,
            f64::MIN_POSITIVE,
            f64::INFINITY,
            f64::NAN,
        ];
        for (index, value) in loaded.iter().enumerate() {
            file.0[index + 2] = Entry {
                bits: value.to_bits(),
                form: FloatingRegisters::DOUBLE,
            };
        }
        for (index, value) in loaded.iter().enumerate() {
            assert_eq!(
                file.get(index + 2),
                FloatRegister::from_double(value.to_bits()),
                "{value}"
            );
        }
        let images: [FloatRegister; 128] = (&file).into();
        assert_eq!(
            <[FloatRegister; 128]>::from(&FloatingRegisters::from(images)),
            images
        );
        file.set(2, FloatRegister::NATVAL);
        assert_eq!(file.get(2), FloatRegister::NATVAL);
    }
}
