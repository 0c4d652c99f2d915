//! Where things are in the physical address space of a machine with firmware.
//!
//! | Addresses | |
//! |---|---|
//! | 0 – 3 GB | RAM; the firmware has 1 MB from [`FIRMWARE`] on |
//! | 0xe0000000 | registers of PCI devices: 256 MB |
//! | 0xfec00000 | IOSAPIC |
//! | 0xfed00000 | the high-precision event timer, if there is one; chip set: reads as ones |
//! | 0xfee00000 | processor interrupt block |
//! | 0xff5c0000 | power management registers |
//! | 0xff5e0000 | 16550 serial port |
//! | 0xff600000 | virtio devices that are not on PCI, 4 kB apart |
//! | 4 GB – | the rest of RAM |
//! | 0xffffc000000 | I/O ports, sparse: 64 MB |

use std::ops::Range;

use crate::memory::{GRANULE, MemoryRange};

/// RAM below this; the rest begins at [`HIGH_MEMORY`].
pub const LOW_MEMORY_MAX: u64 = 0xc000_0000;
/// Where RAM goes on.
pub const HIGH_MEMORY: u64 = 1 << 32;
/// The firmware's own memory.
pub const FIRMWARE: u64 = 0x10_0000;
/// Stubs and function descriptors: code and data of EFI and SAL.
pub const RUNTIME_CODE: u64 = FIRMWARE;
/// The stub of PAL, on a page of its own.
pub const PAL_CODE: u64 = FIRMWARE + 0x1_0000;
/// Tables of EFI and SAL.
pub const RUNTIME_DATA: u64 = FIRMWARE + 0x2_0000;
/// ACPI tables.
pub const ACPI_TABLES: u64 = FIRMWARE + 0x4_0000;
/// The boot parameter block, the command line and the memory map.
pub const BOOT_DATA: u64 = FIRMWARE + 0x8_0000;
/// First register stacks of the processors, 1 kB each.
pub const STACKS: u64 = FIRMWARE + 0xa_0000;
/// Behind the firmware's memory.
pub const FIRMWARE_END: u64 = FIRMWARE + 0x10_0000;

/// What the PCI host bridge passes on.
pub const PCI: u64 = 0xe000_0000;
/// Bytes of it.
pub const PCI_SIZE: u64 = 256 << 20;
/// Where firmware puts the registers of controllers, behind those of virtio devices.
pub const PCI_CONTROLLERS: u64 = PCI + (1 << 20);
/// The first I/O port of controllers and of virtio devices: behind those that once were a PC's own.
pub const PCI_CONTROLLER_PORTS: u32 = 0x1000;
/// What bridges pass on of the ports.
pub const PCI_BRIDGE_PORTS: std::ops::Range<u32> = PCI_CONTROLLER_PORTS..0x3000;
/// The IOSAPIC.
pub const IOSAPIC: u64 = 0xfec0_0000;
/// The high-precision event timer, where every system has it.
pub const HPET: u64 = 0xfed0_0000;
/// Registers of a chip set, of which there are none: behind the timer's page.
pub const CHIPSET: u64 = HPET + 0x1000;
/// Bytes of them.
pub const CHIPSET_SIZE: u64 = 0x10_0000 - 0x1000;
/// The power management registers.
pub const POWER: u64 = 0xff5c_0000;
/// The serial port.
pub const SERIAL: u64 = 0xff5e_0000;
/// Its global system interrupt.
pub const SERIAL_INTERRUPT: u32 = 4;
/// The global system interrupt of power management.
pub const POWER_INTERRUPT: u32 = 9;
/// The first virtio device with registers in memory, and how far they are apart.
pub const VIRTIO: u64 = 0xff60_0000;
/// Bytes of a virtio device's registers.
pub const VIRTIO_SIZE: u64 = 0x1000;
/// The global system interrupt of the first virtio device, whatever its transport.
pub const VIRTIO_INTERRUPT: u32 = 16;
/// The most virtio devices: one for each slot of PCI behind the bridge.
pub const VIRTIO_MAX: usize = 31;
/// The I/O ports.
pub const PORTS: u64 = 0xfff_fc00_0000;
/// Bytes of their address space.
pub const PORTS_SIZE: u64 = 64 << 20;

/// Boundaries between the RAM of two nodes are multiples of this, as kernels with pages of any size want them.
pub const NODE_GRANULE: u64 = 64 << 20;

/// Processors and RAM that are close to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its processors, by number.
    pub processors: Range<usize>,
    /// Its RAM: beginnings and sizes.
    pub memory: Vec<(u64, u64)>,
}

/// Divides a machine's processors and `size` bytes of RAM into nodes, as evenly as may be.
pub fn nodes(count: usize, processors: usize, size: u64) -> Vec<Node> {
    let share = |index: usize| match index == count {
        true => size,
        false => size / NODE_GRANULE * index as u64 / count as u64 * NODE_GRANULE,
    };
    let node = |index: usize| {
        let (mut start, mut left) = (share(index), share(index + 1) - share(index));
        let mut memory = Vec::new();
        // Counted without the hole.
        let mut before = 0;
        for range in self::memory(size) {
            let skipped = start.saturating_sub(before).min(range.size);
            let here = (range.size - skipped).min(left);
            if here > 0 {
                memory.push((range.start.0 + skipped, here));
                (start, left) = (start + here, left - here);
            }
            before += range.size;
        }
        Node {
            processors: processors * index / count..processors * (index + 1) / count,
            memory,
        }
    };
    (0..count).map(node).collect()
}

/// The RAM of a machine with `size` bytes of it, rounded down to [`GRANULE`].
pub fn memory(size: u64) -> Vec<MemoryRange> {
    let size = size / GRANULE * GRANULE;
    let low = size.min(LOW_MEMORY_MAX);
    let mut ranges = vec![MemoryRange::ram(0, low)];
    if size > low {
        ranges.push(MemoryRange::ram(HIGH_MEMORY, size - low));
    }
    ranges
}
