//! The adapter's registers: words of 32 bits, of which some bits can be written (sections 13.4 to 13.7 of the manual).

use serde::{Deserialize, Serialize};

/// Bytes of the space of registers that is used.
const BYTES: u32 = 0x6000;

/// Offsets of registers.
pub mod at {
    pub const CTRL: u32 = 0x0000;
    pub const STATUS: u32 = 0x0008;
    pub const EECD: u32 = 0x0010;
    pub const EERD: u32 = 0x0014;
    pub const MDIC: u32 = 0x0020;
    pub const VET: u32 = 0x0038;
    pub const ICR: u32 = 0x00c0;
    pub const ITR: u32 = 0x00c4;
    pub const ICS: u32 = 0x00c8;
    pub const IMS: u32 = 0x00d0;
    pub const IMC: u32 = 0x00d8;
    pub const RCTL: u32 = 0x0100;
    pub const TCTL: u32 = 0x0400;
    pub const RDBAL: u32 = 0x2800;
    pub const RDBAH: u32 = 0x2804;
    pub const RDLEN: u32 = 0x2808;
    pub const RDH: u32 = 0x2810;
    pub const RDT: u32 = 0x2818;
    pub const TDBAL: u32 = 0x3800;
    pub const TDBAH: u32 = 0x3804;
    pub const TDLEN: u32 = 0x3808;
    pub const TDH: u32 = 0x3810;
    pub const TDT: u32 = 0x3818;
    pub const STATISTICS: u32 = 0x4000;
    pub const RXCSUM: u32 = 0x5000;
    pub const MTA: u32 = 0x5200;
    pub const RAL: u32 = 0x5400;
    pub const RAH: u32 = 0x5404;
    pub const VFTA: u32 = 0x5600;
}

/// Words of the registers of statistics, each of which reads as zero once it was read.
pub const STATISTICS: u32 = 64;
/// Pairs of registers with a hardware address.
pub const ADDRESSES: u32 = 16;
/// Words of the table of multicast hashes.
pub const HASHES: u32 = 128;

/// Bits of registers.
pub mod bit {
    pub const CTRL_RESET: u32 = 1 << 26;
    pub const CTRL_VLAN: u32 = 1 << 30;
    pub const CTRL_PHY_RESET: u32 = 1 << 31;
    /// Full duplex, link up, 1000 Mb/s.
    pub const STATUS_UP: u32 = 1 << 0 | 1 << 1 | 0b10 << 6;
    pub const RCTL_ENABLE: u32 = 1 << 1;
    pub const RCTL_ALL_UNICAST: u32 = 1 << 3;
    pub const RCTL_ALL_MULTICAST: u32 = 1 << 4;
    pub const RCTL_BROADCAST: u32 = 1 << 15;
    pub const RCTL_VLAN_FILTER: u32 = 1 << 18;
    pub const RCTL_LARGE_BUFFERS: u32 = 1 << 25;
    pub const RCTL_STRIP_CHECKSUM: u32 = 1 << 26;
    pub const TCTL_ENABLE: u32 = 1 << 1;
    pub const TCTL_PAD: u32 = 1 << 3;
    pub const RAH_VALID: u32 = 1 << 31;
    pub const MDIC_INTERRUPT: u32 = 1 << 29;
    pub const MDIC_READY: u32 = 1 << 28;
    pub const MDIC_ERROR: u32 = 1 << 30;
}

/// Causes of interrupts.
pub mod cause {
    pub const TRANSMITTED: u32 = 1 << 0;
    pub const TRANSMIT_EMPTY: u32 = 1 << 1;
    pub const RECEIVE_LOW: u32 = 1 << 4;
    pub const RECEIVE_OVERRUN: u32 = 1 << 6;
    pub const RECEIVED: u32 = 1 << 7;
    pub const MANAGEMENT: u32 = 1 << 9;
    pub const ALL: u32 = 0x1_ffff;
}

/// Registers of statistics, by their number.
pub mod statistic {
    pub const MISSED: u32 = 0x10 / 4;
    /// Received frames by size: 64 bytes, and to 127, 255, 511, 1023 and 1522.
    pub const RECEIVED_BY_SIZE: u32 = 0x5c / 4;
    pub const RECEIVED: u32 = 0x74 / 4;
    pub const RECEIVED_BROADCAST: u32 = 0x78 / 4;
    pub const RECEIVED_MULTICAST: u32 = 0x7c / 4;
    pub const TRANSMITTED: u32 = 0x80 / 4;
    /// Of 64 bits.
    pub const RECEIVED_BYTES: u32 = 0x88 / 4;
    /// Of 64 bits.
    pub const TRANSMITTED_BYTES: u32 = 0x90 / 4;
    pub const NO_BUFFER: u32 = 0xa0 / 4;
    /// Of 64 bits.
    pub const TOTAL_RECEIVED_BYTES: u32 = 0xc0 / 4;
    /// Of 64 bits.
    pub const TOTAL_TRANSMITTED_BYTES: u32 = 0xc8 / 4;
    pub const TOTAL_RECEIVED: u32 = 0xd0 / 4;
    pub const TOTAL_TRANSMITTED: u32 = 0xd4 / 4;
    pub const TRANSMITTED_BY_SIZE: u32 = 0xd8 / 4;
    pub const TRANSMITTED_MULTICAST: u32 = 0xf0 / 4;
    pub const TRANSMITTED_BROADCAST: u32 = 0xf4 / 4;
    pub const SEGMENTED: u32 = 0xf8 / 4;
}

/// Registers that are alike and follow each other.
struct Row {
    start: u32,
    words: u32,
    /// Which bits can be written.
    writable: u32,
    /// After a reset.
    value: u32,
}

const fn row(start: u32, words: u32, writable: u32, value: u32) -> Row {
    Row {
        start,
        words,
        writable,
        value,
    }
}

const ALL: u32 = u32::MAX;

/// Every register that keeps something; all others read as zero.
const ROWS: &[Row] = &[
    // Full duplex, 1000 Mb/s.
    row(at::CTRL, 1, !(bit::CTRL_RESET | bit::CTRL_PHY_RESET), 0x201),
    row(at::STATUS, 1, 0, bit::STATUS_UP),
    row(at::EERD, 1, 0, 0),
    row(0x0018, 1, ALL, 0), // extended control
    row(at::MDIC, 1, 0, bit::MDIC_READY),
    row(0x0028, 3, ALL, 0), // addresses and type of flow control
    row(at::VET, 1, 0xffff, 0x8100),
    row(at::ICR, 1, 0, 0),
    row(at::ITR, 1, 0xffff, 0),
    row(at::IMS, 1, 0, 0),
    row(at::RCTL, 1, ALL, 0),
    row(0x0170, 1, 0xffff, 0), // timer of flow control
    row(0x0178, 1, ALL, 0),    // word of negotiation
    row(at::TCTL, 1, ALL, 0),
    row(0x0410, 1, ALL, 0),         // gaps between frames
    row(0x0458, 1, ALL, 0),         // adaptive spacing
    row(0x0e00, 1, ALL, 0),         // lights
    row(0x1000, 1, ALL, 0x10_0030), // packet buffer: 48 kB to receive, 16 kB to transmit
    row(0x2160, 1, ALL, 0),         // thresholds of flow control
    row(0x2168, 1, ALL, 0),
    row(at::RDBAL, 1, !0xf, 0),
    row(at::RDBAH, 1, ALL, 0),
    row(at::RDLEN, 1, 0xf_ff80, 0),
    row(at::RDH, 1, 0xffff, 0),
    row(at::RDT, 1, 0xffff, 0),
    row(0x2820, 1, 0xffff, 0), // delay of interrupts
    row(0x2828, 1, ALL, 0),    // thresholds of descriptors
    row(0x282c, 1, 0xffff, 0),
    row(0x2c00, 1, 0xfff, 0), // small packets
    row(0x3000, 1, ALL, 0),
    row(at::TDBAL, 1, !0xf, 0),
    row(at::TDBAH, 1, ALL, 0),
    row(at::TDLEN, 1, 0xf_ff80, 0),
    row(at::TDH, 1, 0xffff, 0),
    row(at::TDT, 1, 0xffff, 0),
    row(0x3820, 1, 0xffff, 0),
    row(0x3828, 1, ALL, 0),
    row(0x382c, 1, 0xffff, 0),
    row(0x3830, 1, ALL, 0),
    row(at::STATISTICS, STATISTICS, 0, 0),
    row(at::RXCSUM, 1, 0x7ff, 0),
    row(at::MTA, HASHES, ALL, 0),
    row(at::RAL, 2 * ADDRESSES, ALL, 0),
    row(at::VFTA, 128, ALL, 0),
    row(0x5800, 1, ALL, 0), // waking up and management
    row(0x5808, 1, ALL, 0),
    row(0x5820, 1, ALL, 0),
    row(0x5838, 10, ALL, 0),
    row(0x5a00, 32, ALL, 0),
];

fn find(offset: u32) -> Option<&'static Row> {
    ROWS.iter()
        .find(|row| (row.start..row.start + 4 * row.words).contains(&offset))
}

/// The values of all registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registers(Vec<u32>);

impl Registers {
    /// After a reset.
    pub fn new() -> Registers {
        let mut words = vec![0; (BYTES / 4) as usize];
        for row in ROWS {
            words[(row.start / 4) as usize..][..row.words as usize].fill(row.value);
        }
        Registers(words)
    }

    /// Whether these are so many as there are.
    pub fn is_sound(&self) -> bool {
        self.0.len() == (BYTES / 4) as usize
    }

    /// The value of a register; zero where there is none.
    pub fn get(&self, offset: u32) -> u32 {
        self.0.get((offset / 4) as usize).copied().unwrap_or(0)
    }

    /// Whether a bit is set.
    pub fn has(&self, offset: u32, bit: u32) -> bool {
        self.get(offset) & bit != 0
    }

    /// Sets a register, as the adapter itself does.
    pub fn set(&mut self, offset: u32, value: u32) {
        if let Some(word) = self.0.get_mut((offset / 4) as usize) {
            *word = value;
        }
    }

    /// Stores to a register, as far as a driver can.
    pub fn store(&mut self, offset: u32, value: u32) {
        if let Some(row) = find(offset) {
            let kept = self.get(offset) & !row.writable;
            self.set(offset, kept | value & row.writable);
        }
    }

    /// An address of 64 bits in two registers.
    pub fn address(&self, low: u32, high: u32) -> u64 {
        u64::from(self.get(high)) << 32 | u64::from(self.get(low))
    }

    /// Counts one for a statistic, which stays at its largest value.
    pub fn count(&mut self, statistic: u32) {
        let offset = at::STATISTICS + 4 * statistic;
        self.set(offset, self.get(offset).saturating_add(1));
    }

    /// Adds to a statistic of 64 bits.
    pub fn count_bytes(&mut self, statistic: u32, bytes: u64) {
        let low = at::STATISTICS + 4 * statistic;
        let sum = self.address(low, low + 4).saturating_add(bytes);
        self.set(low, sum as u32);
        self.set(low + 4, (sum >> 32) as u32);
    }

    /// Reads a statistic, which begins anew.
    pub fn take(&mut self, offset: u32) -> u32 {
        let value = self.get(offset);
        self.set(offset, 0);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_do_not_meet() {
        let mut sorted: Vec<_> = ROWS
            .iter()
            .map(|row| (row.start, row.start + 4 * row.words))
            .collect();
        sorted.sort_unstable();
        assert!(sorted.is_sorted_by(|before, after| before.1 <= after.0));
        assert!(sorted.iter().all(|&(start, end)| start % 4 == 0 && end <= BYTES));
    }

    #[test]
    fn only_what_can_be_written_is() {
        let mut registers = Registers::new();
        for offset in (0..2 * BYTES).step_by(4) {
            registers.store(offset, u32::MAX);
            let written = registers.get(offset);
            let row = find(offset);
            assert_eq!(
                written,
                row.map_or(0, |row| row.writable | row.value),
                "{offset:#x}"
            );
        }
        registers.count_bytes(statistic::RECEIVED_BYTES, (1 << 33) + 5);
        assert_eq!(registers.take(at::STATISTICS + 0x8c), 2);
        assert_eq!(registers.take(at::STATISTICS + 0x88), 5);
        assert_eq!(registers.take(at::STATISTICS + 0x88), 0);
    }
}
