//! The physical memory that a guest believes in, and the machine's memory behind it.
//!
//! A guest-physical address is translated to a machine address by adding the machine address where the virtual
//! machine's memory begins; machine memory of others has other addresses and is in no shadow. Three kinds of machine
//! address belong to a virtual machine:
//!
//! ```text
//!   bits 49..40   its number + 1
//!   bit  39       0: its memory, at the guest-physical address in the bits below
//!                 1: the monitor's: bit 38 clear, the shadow table of the virtual processor in bits 37..24;
//!                                   bit 38 set, of the virtual processor in 37..16: below bit 15 the window on its
//!                                   request page, above it the monitor's record of it
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_ia64::memory::GlobalPurge;
use sidestep_ia64::{MemoryRegion, PhysicalAddress, PhysicalMemory};
use sidestep_machine::machine::platform::Platform;
use sidestep_machine::memory::{GuestMemory, INTERRUPT_BLOCK, INTERRUPT_BLOCK_SIZE};

use super::compression::Replaced;
use crate::sidecall::page;

/// Guest-physical addresses below this can be memory.
pub(super) const GUEST_MEMORY_MAX: u64 = 1 << 39;
const MONITOR: u64 = 1 << 39;
const WINDOW: u64 = 1 << 38;
const OWNER_SHIFT: u32 = 40;

/// The machine address of guest-physical memory.
pub(super) fn machine_address(owner: usize, guest: u64) -> u64 {
    (owner as u64 + 1) << OWNER_SHIFT | guest
}

/// The machine address of a virtual processor's shadow table.
pub(super) fn table_address(owner: usize, processor: usize) -> u64 {
    machine_address(owner, MONITOR | (processor as u64) << 24)
}

/// The machine address of the window on a virtual processor's request page.
pub(super) fn window_address(owner: usize, processor: usize) -> u64 {
    machine_address(owner, MONITOR | WINDOW | (processor as u64) << 16)
}

/// The machine address of the monitor's record of a virtual processor, which guests have no translation for.
pub(super) fn record_address(owner: usize, processor: usize) -> u64 {
    const RECORD: u64 = 1 << 15;
    const { assert!(page::SIZE <= RECORD) };
    window_address(owner, processor) + RECORD
}

/// What a virtual machine's processors leave for the monitor while they execute.
#[derive(Default)]
pub(super) struct Outbox {
    /// Global purges of the guest, to be done to the other virtual processors.
    pub purges: Vec<GlobalPurge>,
    /// Messages to the processor interrupt block: offset and data.
    pub messages: VecDeque<(u64, u64)>,
    /// Whether a processor has changed instructions that others may have decoded.
    pub instructions_changed: bool,
}

/// What the processors of a virtual machine share.
pub(super) struct Shared {
    pub memory: Arc<GuestMemory>,
    /// The devices, if it is a whole machine.
    pub platform: Option<Arc<Platform>>,
    pub replaced: Replaced,
    outbox: Mutex<Outbox>,
}

impl Shared {
    pub fn new(memory: Arc<GuestMemory>, platform: Option<Arc<Platform>>) -> Shared {
        Shared {
            memory,
            platform,
            replaced: Replaced::default(),
            outbox: Mutex::default(),
        }
    }

    pub fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Physical memory as the guest believes in it.
pub(super) struct GuestView(pub Arc<Shared>);

// SAFETY: the regions are those of `GuestMemory`, which `Shared` keeps mapped as long as it lives.
unsafe impl PhysicalMemory for GuestView {
    fn region(&self, address: PhysicalAddress) -> Option<MemoryRegion> {
        self.0.memory.region(address)
    }

    fn load_device(&self, address: PhysicalAddress, size: u64) -> Option<u64> {
        if interrupt_offset(address).is_some() {
            return Some(0);
        }
        self.0.platform.as_ref()?.bus.load(address, size)
    }

    fn store_device(&self, address: PhysicalAddress, size: u64, value: u64) -> bool {
        if let Some(offset) = interrupt_offset(address) {
            if size == 8 {
                self.0.outbox().messages.push_back((offset, value));
            }
            return true;
        }
        (self.0.platform.as_ref()).is_some_and(|platform| platform.bus.store(address, size, value))
    }

    fn purge_others(&self, purge: GlobalPurge) -> Vec<GlobalPurge> {
        self.0.outbox().purges.push(purge);
        Vec::new()
    }

    fn instructions_changed(&self) {
        self.0.outbox().instructions_changed = true;
    }
}

fn interrupt_offset(address: PhysicalAddress) -> Option<u64> {
    let offset = address.0.checked_sub(INTERRUPT_BLOCK.0)?;
    (offset < INTERRUPT_BLOCK_SIZE).then_some(offset)
}

/// A virtual processor's request page, as the monitor sees it.
///
/// To the guest the page is memory like any other, and to the host it costs what memory costs. The monitor's window
/// on it tells of stores to a slot's status and of loads of the status of a request that is being served, so that
/// virtual time need not follow every turn of a guest's polling loop.
pub(super) struct RequestPage {
    /// The guest-physical address of the page; all ones: none.
    address: AtomicU64,
    /// One bit for each slot whose request is being served.
    served: AtomicU64,
    /// One bit for each slot whose status was set to requested.
    rung: AtomicU64,
    /// One bit for each slot being served whose status was read.
    polled: AtomicU64,
    /// Stops the processor at the next block.
    attention: Arc<AtomicBool>,
}

impl RequestPage {
    pub fn new(attention: Arc<AtomicBool>) -> RequestPage {
        RequestPage {
            address: AtomicU64::new(u64::MAX),
            served: AtomicU64::default(),
            rung: AtomicU64::default(),
            polled: AtomicU64::default(),
            attention,
        }
    }

    /// The guest-physical address of the page, if the guest has registered one.
    pub fn address(&self) -> Option<u64> {
        Some(self.address.load(Ordering::Relaxed)).filter(|address| *address != u64::MAX)
    }

    pub fn set_address(&self, address: u64) {
        self.address.store(address, Ordering::Relaxed);
    }

    /// Notes that a slot's request is being served, or no longer.
    pub fn set_served(&self, slot: usize, served: bool) {
        if served {
            self.served.fetch_or(1 << slot, Ordering::Relaxed);
        } else {
            self.served.fetch_and(!(1 << slot), Ordering::Relaxed);
        }
    }

    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Takes the slots whose status was set to requested.
    pub fn take_rung(&self) -> u64 {
        self.rung.swap(0, Ordering::Relaxed)
    }

    /// Takes the served slots that were polled.
    pub fn take_polled(&self) -> u64 {
        self.polled.swap(0, Ordering::Relaxed)
    }

    fn stored(&self, offset: u64, size: u64, value: u64) {
        if let Some(slot) = page::slot_of_status(offset)
            && size == 8
            && value == page::status::REQUESTED
        {
            self.rung.fetch_or(1 << slot, Ordering::Relaxed);
            self.attention.store(true, Ordering::Relaxed);
        }
    }

    fn loaded(&self, offset: u64) {
        if let Some(slot) = page::slot_of_status(offset)
            && self.served() >> slot & 1 != 0
        {
            self.polled.fetch_or(1 << slot, Ordering::Relaxed);
            self.attention.store(true, Ordering::Relaxed);
        }
    }
}

/// Machine memory, as far as a virtual processor's shadow can name it.
pub(super) struct MachineView {
    pub owner: usize,
    pub processor: usize,
    pub shared: Arc<Shared>,
    pub table: Arc<GuestMemory>,
    pub requests: Arc<RequestPage>,
}

impl MachineView {
    /// The guest-physical address behind an address of the window on the request page.
    fn behind_window(&self, address: PhysicalAddress, size: u64) -> Option<(u64, u64)> {
        let offset = address
            .0
            .checked_sub(window_address(self.owner, self.processor))?;
        (offset + size <= page::SIZE).then_some(())?;
        Some((offset, self.requests.address()? + offset))
    }
}

// SAFETY: the regions are those of `GuestMemory`s that the view keeps mapped as long as it lives.
unsafe impl PhysicalMemory for MachineView {
    fn region(&self, address: PhysicalAddress) -> Option<MemoryRegion> {
        let moved = |region: MemoryRegion, base: u64| MemoryRegion {
            start: PhysicalAddress(region.start.0 + base),
            ..region
        };
        let table = table_address(self.owner, self.processor);
        if let Some(offset) = address.0.checked_sub(table)
            && let Some(region) = self.table.region(PhysicalAddress(offset))
        {
            return Some(moved(region, table));
        }
        let base = machine_address(self.owner, 0);
        let guest = address
            .0
            .checked_sub(base)
            .filter(|guest| *guest < GUEST_MEMORY_MAX)?;
        let region = self.shared.memory.region(PhysicalAddress(guest))?;
        Some(moved(region, base))
    }

    fn instructions_changed(&self) {
        self.shared.outbox().instructions_changed = true;
    }

    fn load_device(&self, address: PhysicalAddress, size: u64) -> Option<u64> {
        let (offset, guest) = self.behind_window(address, size)?;
        self.requests.loaded(offset);
        let mut bytes = [0; 8];
        let some = &mut bytes[..size as usize];
        self.shared.memory.read(PhysicalAddress(guest), some).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn store_device(&self, address: PhysicalAddress, size: u64, value: u64) -> bool {
        let Some((offset, guest)) = self.behind_window(address, size) else {
            return false;
        };
        let bytes = value.to_le_bytes();
        let written = self
            .shared
            .memory
            .write(PhysicalAddress(guest), &bytes[..size as usize]);
        self.requests.stored(offset, size, value);
        written.is_ok()
    }
}
