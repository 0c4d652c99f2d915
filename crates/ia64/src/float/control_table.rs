//! Decoded controls, kept until the FPSR fields they come from change.

use super::control::{Completer, Control};
use super::status::StatusRegister;
use crate::encoding::{Precision, StatusField};

/// Which control of the table an instruction uses: its status field and its precision completer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ControlIndex(u8);

impl ControlIndex {
    /// Of a scalar operation with a precision completer.
    pub const fn scalar(status: StatusField, precision: Precision) -> Self {
        let completer = match precision {
            Precision::Single => Completer::Single,
            Precision::Double => Completer::Double,
            Precision::Dynamic => Completer::Dynamic,
        };
        Self::new(status, completer)
    }

    /// Of a parallel operation.
    pub const fn parallel(status: StatusField) -> Self {
        Self::new(status, Completer::Parallel)
    }

    const fn new(status: StatusField, completer: Completer) -> Self {
        Self((completer as u8) << 2 | status as u8)
    }

    /// The index as an operand of an operation.
    pub const fn operand(self) -> u64 {
        self.0 as u64
    }

    /// The index from an operand.
    #[inline(always)]
    pub const fn from_operand(operand: u64) -> Self {
        Self(operand as u8 & 15)
    }

    /// Its status field.
    #[inline(always)]
    pub const fn status(self) -> StatusField {
        match self.0 & 3 {
            0 => StatusField::S0,
            1 => StatusField::S1,
            2 => StatusField::S2,
            _ => StatusField::S3,
        }
    }

    const fn completer(self) -> Completer {
        match self.0 >> 2 & 3 {
            0 => Completer::Single,
            1 => Completer::Double,
            2 => Completer::Dynamic,
            _ => Completer::Parallel,
        }
    }
}

/// A control and the bits of the FPSR it was decoded from.
#[derive(Clone, Copy, Debug)]
struct Entry {
    control: Control,
    /// The bits that matter.
    mask: u64,
    /// Their value.
    bits: u64,
}

/// The controls of all status fields and completers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlTable([Entry; 16]);

impl ControlTable {
    /// The controls of one value of the FPSR.
    pub fn new(fpsr: u64) -> Self {
        let entry = |index: u8| {
            let index = ControlIndex(index);
            Entry {
                control: StatusRegister::from_bits(fpsr).control(index.status(), index.completer()),
                mask: StatusRegister::control_bits(index.status()),
                bits: fpsr & StatusRegister::control_bits(index.status()),
            }
        };
        Self(std::array::from_fn(|index| entry(index as u8)))
    }

    /// The control that an index means under the present value of the FPSR.
    #[inline(always)]
    pub fn get(&mut self, fpsr: u64, index: ControlIndex) -> &Control {
        let entry = &mut self.0[usize::from(index.0 & 15)];
        if fpsr & entry.mask != entry.bits {
            entry.decode(fpsr, index);
        }
        &entry.control
    }
}

impl Entry {
    #[cold]
    fn decode(&mut self, fpsr: u64, index: ControlIndex) {
        self.control = StatusRegister::from_bits(fpsr).control(index.status(), index.completer());
        self.bits = fpsr & self.mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_follows_its_own_fields_of_the_register() {
        let mut fpsr = StatusRegister::LINUX;
        let mut table = ControlTable::new(fpsr.bits());
        for _ in 0..2 {
            for status in [StatusField::S0, StatusField::S1, StatusField::S2, StatusField::S3] {
                for completer in [
                    Completer::Single,
                    Completer::Double,
                    Completer::Dynamic,
                    Completer::Parallel,
                ] {
                    let index = ControlIndex::new(status, completer);
                    assert_eq!(index, ControlIndex::from_operand(index.operand()));
                    assert_eq!(*table.get(fpsr.bits(), index), fpsr.control(status, completer));
                }
            }
            fpsr.set_controls(StatusField::S2, 0, 0x34).unwrap_err();
            fpsr.set_controls(StatusField::S2, 0, 0x38).unwrap();
            fpsr = StatusRegister::new(fpsr.bits() & !0x21).unwrap();
        }
    }
}
