//! Addresses of the machine's memory, which is behind the physical memory that guests believe in.
//!
//! A guest-physical address becomes a machine address by [`of_guest`](MachineAddress::of_guest) alone, which adds the
//! machine address where its virtual machine's memory begins; machine memory of others has other addresses and is in
//! no shadow. Three kinds of machine address belong to a virtual machine:
//!
//! ```text
//!   bits 49..40   its number + 1
//!   bit  39       0: its memory, at the guest-physical address in the bits below
//!                 1: the monitor's: bit 38 clear, the shadow table of the virtual processor in bits 37..24;
//!                                   bit 38 set, of the virtual processor in 37..16: with bits 15 and 14 clear the
//!                                   window on its request page, with bit 14 that on the counts of its interface's
//!                                   rings, with bit 15 the monitor's record of it
//! ```
//!
//! What handlers of exits touch of the monitor's own memory belongs to none, and is where nobody's number is.

use sidestep_ia64::PhysicalAddress;

use crate::nic::ring;
use crate::sidecall::page;

/// Guest-physical addresses below this can be memory.
pub(super) const GUEST_MEMORY_MAX: PhysicalAddress = PhysicalAddress(1 << 39);
const MONITOR: u64 = 1 << 39;
const WINDOW: u64 = 1 << 38;
const RECORD: u64 = 1 << 15;
const RINGS: u64 = 1 << 14;
const OWNER_SHIFT: u32 = 40;

/// An address of the machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineAddress(u64);

impl MachineAddress {
    /// Where the memory of virtual machine `owner` begins.
    pub(super) fn of_memory(owner: usize) -> MachineAddress {
        MachineAddress((owner as u64 + 1) << OWNER_SHIFT)
    }

    /// Where guest-physical memory is.
    pub(super) fn of_guest(owner: usize, guest: PhysicalAddress) -> MachineAddress {
        MachineAddress::of_memory(owner).with(guest.0)
    }

    /// The guest-physical address behind it, if it is memory of virtual machine `owner` and not the monitor's.
    pub(super) fn to_guest(self, owner: usize) -> Option<PhysicalAddress> {
        let guest = PhysicalAddress(self.offset_from(MachineAddress::of_memory(owner))?);
        (guest < GUEST_MEMORY_MAX).then_some(guest)
    }

    /// Where a virtual processor's shadow table is.
    pub(super) fn of_table(owner: usize, processor: usize) -> MachineAddress {
        MachineAddress::of_memory(owner).with(MONITOR | (processor as u64) << 24)
    }

    /// Where the window on a virtual processor's request page is.
    pub(super) fn of_window(owner: usize, processor: usize) -> MachineAddress {
        MachineAddress::of_memory(owner).with(MONITOR | WINDOW | (processor as u64) << 16)
    }

    /// Where the window on the counts of its interface's rings is.
    pub(super) fn of_rings(owner: usize, processor: usize) -> MachineAddress {
        const { assert!(page::SIZE <= RINGS && ring::PAGE <= RINGS) };
        MachineAddress::of_window(owner, processor).with(RINGS)
    }

    /// Where the monitor's record of a virtual processor is, which guests have no translation for.
    pub(super) fn of_record(owner: usize, processor: usize) -> MachineAddress {
        const { assert!(page::SIZE <= RECORD) };
        MachineAddress::of_window(owner, processor).with(RECORD)
    }

    /// Where the memory is that handlers of exits touch, whoever they work for.
    pub(super) fn of_handlers() -> MachineAddress {
        MachineAddress(MONITOR)
    }

    /// What a processor in the monitor's state means by a physical address: it has machine memory for its own.
    pub(super) fn from_hardware(address: PhysicalAddress) -> MachineAddress {
        MachineAddress(address.0)
    }

    /// The same for the processor.
    pub fn on_hardware(self) -> PhysicalAddress {
        PhysicalAddress(self.0)
    }

    /// So many bytes on.
    pub(super) fn offset_by(self, bytes: u64) -> MachineAddress {
        MachineAddress(self.0 + bytes)
    }

    /// How many bytes it is behind `base`; `None` if it lies before.
    pub(super) fn offset_from(self, base: MachineAddress) -> Option<u64> {
        self.0.checked_sub(base.0)
    }

    fn with(self, bits: u64) -> MachineAddress {
        MachineAddress(self.0 | bits)
    }
}
