//! The transceiver at the cable (PHY), as the Marvell 88E1011 that drivers expect: its link is up at 1000 Mb/s, and
//! negotiation is over as soon as it begins.

use serde::{Deserialize, Serialize};

/// Where it is on the management bus.
pub const ADDRESS: u32 = 1;
const REGISTERS: usize = 32;

const CONTROL: usize = 0;
const CONTROL_RESET: u16 = 1 << 15;
const CONTROL_RESTART: u16 = 1 << 9;

/// Registers after a reset: number, value, whether a driver can write it (IEEE 802.3 clause 22, and the maker's own
/// from 16 on).
const AFTER_RESET: [(usize, u16, bool); 14] = [
    // Negotiates, full duplex, 1000 Mb/s.
    (CONTROL, 0x1140, true),
    // Everything below 1000 Mb/s as well; negotiation complete; link up.
    (1, 0x796d, false),
    (2, 0x0141, false),
    (3, 0x0c20, false),
    // Offered here, and at the other end.
    (4, 0x0de1, true),
    (5, 0x45e1, false),
    (6, 0x0001, false),
    (9, 0x0e00, true),
    (10, 0x3c00, false),
    (15, 0x3000, false),
    (16, 0x0068, true),
    // 1000 Mb/s, full duplex, resolved, up.
    (17, 0xac00, false),
    (18, 0x0000, true),
    (20, 0x0c60, true),
];

/// Its registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transceiver([u16; REGISTERS]);

impl Transceiver {
    /// After a reset.
    pub fn new() -> Transceiver {
        let mut registers = [0; REGISTERS];
        for (number, value, _) in AFTER_RESET {
            registers[number] = value;
        }
        Transceiver(registers)
    }

    /// The value of a register; the highest bits of its number do not count.
    pub fn load(&self, number: u32) -> u16 {
        self.0[number as usize % REGISTERS]
    }

    /// Stores to a register, if that can be written.
    pub fn store(&mut self, number: u32, value: u16) {
        let number = number as usize % REGISTERS;
        if number == CONTROL && value & CONTROL_RESET != 0 {
            *self = Transceiver::new();
            return;
        }
        let kept = if number == CONTROL {
            !CONTROL_RESTART
        } else {
            u16::MAX
        };
        let is_writable = |&(row, _, is_writable): &(usize, u16, bool)| row == number && is_writable;
        if AFTER_RESET.iter().any(is_writable) {
            self.0[number] = value & kept;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_is_up_whatever_is_written() {
        let mut transceiver = Transceiver::new();
        for number in 0..64 {
            transceiver.store(number, 0x7fff);
        }
        assert_eq!(transceiver.load(0), 0x7fff & !CONTROL_RESTART);
        assert_eq!(transceiver.load(1), 0x796d);
        assert_eq!((transceiver.load(2), transceiver.load(3)), (0x0141, 0x0c20));
        assert_eq!(transceiver.load(4), 0x7fff);
        transceiver.store(0, CONTROL_RESET);
        assert_eq!(transceiver, Transceiver::new());
    }
}
