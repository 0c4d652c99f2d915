//! The system abstraction layer: its system table, and the procedures that kernels call.
//!
//! Errors have no records here, since nothing breaks.

use super::efi::guid;
use crate::machine::timeline::TICKS_PER_SECOND;
use crate::pci::{Address, Bus};

/// The vector that wakes a processor from the rendezvous.
pub const WAKEUP_VECTOR: u8 = 0xf2;

const NOT_IMPLEMENTED: u64 = -1i64 as u64;
const INVALID_ARGUMENT: u64 = -2i64 as u64;
const ERROR: u64 = -3i64 as u64;
const NO_INFORMATION: u64 = -5i64 as u64;

/// The numbers of the procedures.
mod index {
    pub const SET_VECTORS: u64 = 0x0100_0000;
    pub const GET_STATE_INFO: u64 = 0x0100_0001;
    pub const GET_STATE_INFO_SIZE: u64 = 0x0100_0002;
    pub const CLEAR_STATE_INFO: u64 = 0x0100_0003;
    pub const MC_RENDEZ: u64 = 0x0100_0004;
    pub const MC_SET_PARAMS: u64 = 0x0100_0005;
    pub const REGISTER_PHYSICAL_ADDR: u64 = 0x0100_0006;
    pub const CACHE_FLUSH: u64 = 0x0100_0008;
    pub const CACHE_INIT: u64 = 0x0100_0009;
    pub const PCI_CONFIG_READ: u64 = 0x0100_0010;
    pub const PCI_CONFIG_WRITE: u64 = 0x0100_0011;
    pub const FREQ_BASE: u64 = 0x0100_0012;
    pub const PHYSICAL_ID_INFO: u64 = 0x0100_0013;
    pub const UPDATE_PAL: u64 = 0x0100_0020;
}

/// What a procedure does beyond returning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Processors in the rendezvous go on here, with this global pointer, when they are woken.
    SetRendezvous {
        /// Physical address of the first instruction.
        entry: u64,
        /// The global pointer.
        global_pointer: u64,
    },
}

/// The vector of [`index::SET_VECTORS`] for the rendezvous.
const VECTOR_RENDEZVOUS: u64 = 2;

/// What procedure `procedure`, called by processor `processor`, returns (a status and up to three results) and does.
pub fn call(procedure: u64, arguments: [u64; 7], processor: u64, pci: &Bus) -> ([u64; 4], Effect) {
    use index::*;
    let result = |values| (values, Effect::None);
    match procedure {
        SET_VECTORS => match arguments[0] {
            0 | 1 => result([0; 4]),
            VECTOR_RENDEZVOUS => {
                let effect = Effect::SetRendezvous {
                    entry: arguments[1],
                    global_pointer: arguments[2],
                };
                ([0; 4], effect)
            }
            _ => result([INVALID_ARGUMENT, 0, 0, 0]),
        },
        GET_STATE_INFO => result([NO_INFORMATION, 0, 0, 0]),
        // Room for the largest record a kernel may expect.
        GET_STATE_INFO_SIZE => result([0, 0x1000, 0, 0]),
        CLEAR_STATE_INFO | MC_RENDEZ | MC_SET_PARAMS | REGISTER_PHYSICAL_ADDR | CACHE_FLUSH | CACHE_INIT => {
            result([0; 4])
        }
        PCI_CONFIG_READ => {
            let [address, size, kind, ..] = arguments;
            result(match configuration_address(address, kind, size) {
                Some(address) => [0, u64::from(pci.load(address, size)), 0, 0],
                None => [INVALID_ARGUMENT, 0, 0, 0],
            })
        }
        PCI_CONFIG_WRITE => {
            let [address, size, value, kind, ..] = arguments;
            result(match configuration_address(address, kind, size) {
                Some(address) => {
                    pci.store(address, size, value as u32);
                    [0; 4]
                }
                None => [INVALID_ARGUMENT, 0, 0, 0],
            })
        }
        FREQ_BASE => match arguments[0] {
            0 => result([0, super::pal::BASE_FREQUENCY, u64::MAX, 0]),
            1 | 2 => result([0, TICKS_PER_SECOND, u64::MAX, 0]),
            _ => result([INVALID_ARGUMENT, 0, 0, 0]),
        },
        // Every processor has a socket of its own.
        PHYSICAL_ID_INFO => result([0, processor, 0, 0]),
        // There is no memory that holds a PAL which could be replaced.
        UPDATE_PAL => result(match arguments[0] {
            0 => [INVALID_ARGUMENT, 0, 0, 0],
            _ => [ERROR, 0, 0, 0],
        }),
        _ => result([NOT_IMPLEMENTED, 0, 0, 0]),
    }
}

/// Takes an address of PCI configuration space apart (SAL specification, PCI configuration): of the compatible kind
/// (0), whose registers have 8 bits, or the extended one (1), whose have 12. `None` if it or the size is wrong.
fn configuration_address(address: u64, kind: u64, size: u64) -> Option<Address> {
    let (register_bits, segment_bits) = match kind {
        0 => (8, 8),
        1 => (12, 16),
        _ => return None,
    };
    let above = address >> register_bits;
    let address = Address {
        register: (address & ((1 << register_bits) - 1)) as u16,
        function: (above & 7) as u8,
        slot: (above >> 3 & 31) as u8,
        bus: (above >> 8) as u8,
        segment: u16::try_from(above >> 16)
            .ok()
            .filter(|segment| u32::from(*segment) >> segment_bits == 0)?,
    };
    let aligned = matches!(size, 1 | 2 | 4) && u64::from(address.register).is_multiple_of(size);
    aligned.then_some(address)
}

/// The configuration table entry that names the SAL system table.
pub const TABLE_GUID: [u8; 16] = guid(
    0xeb9d_2d32,
    0x2d88,
    0x11d3,
    [0x9a, 0x16, 0, 0x90, 0x27, 0x3f, 0xc1, 0x4d],
);

/// The system table with its descriptors: entry points, no platform features, and how processors are woken.
pub fn system_table(pal: u64, sal: u64, global_pointer: u64) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut entry_points = vec![0; 8];
    for value in [pal, sal, global_pointer, 0, 0] {
        entry_points.extend_from_slice(&value.to_le_bytes());
    }
    entries.extend_from_slice(&entry_points);
    let mut features = vec![2];
    features.resize(16, 0);
    entries.extend_from_slice(&features);
    let mut wakeup = vec![5];
    wakeup.resize(8, 0);
    wakeup.extend_from_slice(&u64::from(WAKEUP_VECTOR).to_le_bytes());
    entries.extend_from_slice(&wakeup);

    const HEADER: usize = 96;
    let mut table = b"SST_".to_vec();
    table.extend_from_slice(&((HEADER + entries.len()) as u32).to_le_bytes());
    table.extend_from_slice(&[0x20, 0x03]); // revision 3.20 of the specification
    table.extend_from_slice(&3u16.to_le_bytes());
    table.resize(20, 0); // the checksum and reserved bytes
    table.extend_from_slice(&[0x00, 0x01, 0x00, 0x01]); // versions of SAL_A and SAL_B: 1.00
    let mut oem = b"Sidestep".to_vec();
    oem.resize(32, 0);
    let mut product = b"virtual machine".to_vec();
    product.resize(32, 0);
    table.extend_from_slice(&oem);
    table.extend_from_slice(&product);
    table.resize(HEADER, 0);
    table.extend_from_slice(&entries);
    table[12] = checksum(&table);
    table
}

/// What makes the sum of all bytes zero.
pub fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0u8, |sum, &byte| sum.wrapping_sub(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with(procedure: u64, arguments: &[u64]) -> ([u64; 4], Effect) {
        let mut all = [0; 7];
        all[..arguments.len()].copy_from_slice(arguments);
        call(procedure, all, 3, &Bus::new())
    }

    #[test]
    fn vectors_are_set_and_the_rendezvous_is_kept() {
        let effect = Effect::SetRendezvous {
            entry: 0x1000,
            global_pointer: 0x2000,
        };
        assert_eq!(with(index::SET_VECTORS, &[2, 0x1000, 0x2000]), ([0; 4], effect));
        assert_eq!(with(index::SET_VECTORS, &[0, 0x1000]), ([0; 4], Effect::None));
        assert_eq!(with(index::SET_VECTORS, &[3]).0[0], INVALID_ARGUMENT);
    }

    #[test]
    fn configuration_space_reads_as_ones_where_nothing_is() {
        let read = |address, size, kind| with(index::PCI_CONFIG_READ, &[address, size, kind]).0;
        for (size, ones) in [(1, 0xff), (2, 0xffff), (4, 0xffff_ffff)] {
            assert_eq!(read(1 << 11, size, 0)[..2], [0, ones]);
            assert_eq!(read(1 << 15, size, 1)[..2], [0, ones]);
        }
        assert_eq!(read(0, 4, 0)[..2], read(0, 4, 1)[..2], "the bridge");
        assert_ne!(read(0, 4, 0)[1], 0xffff_ffff);
        for (address, size, kind) in [
            (0, 0, 0),
            (0, 3, 0),
            (0, 8, 0),
            (0, u64::MAX, 0),
            (2, 4, 0),
            (0, 4, 2),
            (1 << 32, 4, 0),
            (1 << 44, 4, 1),
        ] {
            assert_eq!(read(address, size, kind)[0], INVALID_ARGUMENT);
            let write = with(index::PCI_CONFIG_WRITE, &[address, size, 0, kind]).0;
            assert_eq!(write[0], INVALID_ARGUMENT);
        }
        assert_eq!(with(index::PCI_CONFIG_WRITE, &[4, 2, 7, 0]).0[0], 0);
    }

    #[test]
    fn clocks_and_records() {
        assert_eq!(
            with(index::FREQ_BASE, &[0]).0[..2],
            [0, super::super::pal::BASE_FREQUENCY]
        );
        assert_eq!(with(index::FREQ_BASE, &[1]).0[..2], [0, TICKS_PER_SECOND]);
        assert_eq!(with(index::FREQ_BASE, &[9]).0[0], INVALID_ARGUMENT);
        assert_eq!(with(index::GET_STATE_INFO, &[0]).0[0], NO_INFORMATION);
    }

    #[test]
    fn every_procedure_of_the_specification_is_there() {
        let numbered = [0, 1, 2, 3, 4, 5, 6, 8, 9, 0x10, 0x11, 0x12, 0x13, 0x20];
        for number in 0..0x40 {
            let is_there = with(0x0100_0000 + number, &[0]).0[0] != NOT_IMPLEMENTED;
            assert_eq!(is_there, numbered.contains(&number), "procedure {number:#x}");
        }
        assert_eq!(with(0x0200_0000, &[0]).0[0], NOT_IMPLEMENTED, "no platform's own");
        assert_eq!(with(index::PHYSICAL_ID_INFO, &[]).0, [0, 3, 0, 0]);
        assert_eq!(with(index::UPDATE_PAL, &[0]).0[0], INVALID_ARGUMENT);
        assert_eq!(with(index::UPDATE_PAL, &[0x1000]).0[0], ERROR);
    }

    #[test]
    fn the_system_table_counts_its_entries() {
        let table = system_table(0x1000, 0x2000, 0);
        assert_eq!(checksum(&table), 0);
        assert_eq!(
            u32::from_le_bytes(table[4..8].try_into().expect("four bytes")) as usize,
            table.len()
        );
        let (mut at, mut kinds) = (96, Vec::new());
        while at < table.len() {
            kinds.push(table[at]);
            // The sizes of descriptors by their type.
            at += [48, 32, 16, 32, 16, 16][usize::from(table[at])];
        }
        assert_eq!(at, table.len());
        assert_eq!(kinds, [0, 2, 5], "entry points, features, the wake-up");
        assert_eq!(u16::from_le_bytes([table[10], table[11]]) as usize, kinds.len());
    }

    proptest! {
        #[test]
        fn any_call_has_an_answer(
            procedure in prop_oneof![0x0100_0000u64..0x0100_0020, any::<u64>()],
            arguments: [u64; 7],
        ) {
            let _ = call(procedure, arguments, 0, &Bus::new());
        }
    }
}
