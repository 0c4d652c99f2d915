//! The file of floating-point registers.
//!
//! A back end that computes with the host's doubles keeps them there as they are, and one that computes quotients by
//! itself notes which [step](super::division) of a division a register would have. So a register stands in its file
//! as its spill image, as a number of double precision or as a step, and becomes an image when somebody asks. Which of
//! them it is decides nothing that a guest could see.

use super::division::Divisions;
use super::register::FloatRegister;

/// f0 to f127 before rotation.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct FloatingRegisters([Entry; 128]);

/// A register.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Entry {
    /// The significand, the bits of a double, or which step of which division.
    bits: u64,
    /// The word of sign and exponent, [`FloatingRegisters::DOUBLE`] or [`FloatingRegisters::STEP`].
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
    /// The same where the first word says which step of which division it is.
    pub(crate) const STEP: u64 = 1 << 19;

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
    pub(crate) fn get(&self, index: usize, divisions: &Divisions) -> FloatRegister {
        let Entry { bits, form } = self.0[index];
        if form >= FloatingRegisters::DOUBLE {
            return of_another_form(bits, form, divisions);
        }
        FloatRegister::from_image(bits, form)
    }

    /// Makes an image of a register.
    ///
    /// # Panics
    /// As [`FloatingRegisters::get`].
    pub(crate) fn settle(&mut self, index: usize, divisions: &Divisions) {
        self.set(index, self.get(index, divisions));
    }

    /// Makes images of the registers that stand for steps of a site's divisions.
    pub(crate) fn settle_site(&mut self, site: usize, divisions: &Divisions) {
        for index in 0..self.0.len() {
            let Entry { bits, form } = self.0[index];
            if form == FloatingRegisters::STEP && Divisions::is_of_site(bits, site) {
                self.settle(index, divisions);
            }
        }
    }

    /// Makes images of the doubles that are denormal.
    pub(crate) fn settle_denormals(&mut self, divisions: &Divisions) {
        const FRACTION_BITS: u32 = 52;
        for index in 0..self.0.len() {
            let Entry { bits, form } = self.0[index];
            let magnitude = bits << 1;
            let is_denormal = magnitude != 0 && magnitude >> (FRACTION_BITS + 1) == 0;
            if form == FloatingRegisters::DOUBLE && is_denormal {
                self.settle(index, divisions);
            }
        }
    }

    /// All of them.
    pub(crate) fn images(&self, divisions: &Divisions) -> [FloatRegister; 128] {
        std::array::from_fn(|index| self.get(index, divisions))
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
fn of_another_form(bits: u64, form: u64, divisions: &Divisions) -> FloatRegister {
    match form {
        FloatingRegisters::DOUBLE => FloatRegister::from_double(bits),
        _ => divisions.step(bits),
    }
}

impl From<[FloatRegister; 128]> for FloatingRegisters {
    fn from(registers: [FloatRegister; 128]) -> FloatingRegisters {
        FloatingRegisters(registers.map(Entry::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_is_the_register_that_loading_it_gives() {
        let (mut file, divisions) = (FloatingRegisters::new(), Divisions::new());
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
                file.get(index + 2, &divisions),
                FloatRegister::from_double(value.to_bits()),
                "{value}"
            );
        }
        let images = file.images(&divisions);
        assert_eq!(FloatingRegisters::from(images).images(&divisions), images);
        file.set(2, FloatRegister::NATVAL);
        assert_eq!(file.get(2, &divisions), FloatRegister::NATVAL);
    }
}
