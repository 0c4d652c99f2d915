//! The physical memory that a guest believes in, and the machine's memory behind it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_ia64::memory::GlobalPurge;
use sidestep_ia64::{MemoryRegion, PhysicalAddress, PhysicalMemory};
use sidestep_machine::machine::platform::Platform;
use sidestep_machine::memory::{GuestMemory, INTERRUPT_BLOCK, INTERRUPT_BLOCK_SIZE};

use super::compression::Replaced;
use super::machine_address::{GUEST_MEMORY_MAX, MachineAddress};
use crate::nic::ring::Store;
use crate::sidecall::page;

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
    /// Where the guest may store to a device without an exit.
    pub doorbells: Option<Range<PhysicalAddress>>,
    /// The same of the block device, while sidecores look there.
    disk_doorbells: Mutex<Option<Range<PhysicalAddress>>>,
    pub replaced: Replaced,
    outbox: Mutex<Outbox>,
}

impl Shared {
    pub fn new(
        memory: Arc<GuestMemory>,
        platform: Option<Arc<Platform>>,
        doorbells: Option<Range<PhysicalAddress>>,
    ) -> Shared {
        Shared {
            memory,
            platform,
            doorbells,
            disk_doorbells: Mutex::default(),
            replaced: Replaced::default(),
            outbox: Mutex::default(),
        }
    }

    /// Whether the guest may store to an address without an exit: a doorbell is there at which the card looks, or a
    /// sidecore.
    pub fn is_doorbell(&self, address: PhysicalAddress) -> bool {
        let disk = self.disk_doorbells.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = self.doorbells.as_ref().into_iter().chain(disk.as_ref());
        pages.into_iter().any(|doorbells| doorbells.contains(&address))
    }

    /// Has stores to a block device's doorbells be without an exit from now on, or with one again.
    pub fn set_disk_doorbells(&self, doorbells: Option<Range<PhysicalAddress>>) {
        *self.disk_doorbells.lock().unwrap_or_else(PoisonError::into_inner) = doorbells;
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

    fn instructions_read(&self, page: u64) {
        self.0.memory.instructions_read(page);
    }

    fn instructions_changed(&self) {
        self.0.outbox().instructions_changed = true;
    }
}

fn interrupt_offset(address: PhysicalAddress) -> Option<u64> {
    let offset = address.offset_from(INTERRUPT_BLOCK)?;
    (offset < INTERRUPT_BLOCK_SIZE).then_some(offset)
}

/// Where a page is that a guest has registered, once it has.
pub(super) struct RegisteredPage(
    /// The guest-physical address; all ones: none.
    AtomicU64,
);

impl Default for RegisteredPage {
    fn default() -> RegisteredPage {
        RegisteredPage(AtomicU64::new(u64::MAX))
    }
}

impl RegisteredPage {
    /// The guest-physical address, if the guest has registered one.
    pub fn address(&self) -> Option<PhysicalAddress> {
        let address = self.0.load(Ordering::Relaxed);
        (address != u64::MAX).then_some(PhysicalAddress(address))
    }

    pub fn set_address(&self, address: Option<PhysicalAddress>) {
        let address = address.map_or(u64::MAX, |address| address.0);
        self.0.store(address, Ordering::Relaxed);
    }
}

/// A virtual processor's request page, as the monitor sees it.
///
/// To the guest the page is memory like any other, and to the host it costs what memory costs. The monitor's window
/// on it tells of stores to a slot's status and of loads of the status of a request that is being served, so that
/// virtual time need not follow every turn of a guest's polling loop.
pub(super) struct RequestPage {
    /// Where it is.
    pub page: RegisteredPage,
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
            page: RegisteredPage::default(),
            served: AtomicU64::default(),
            rung: AtomicU64::default(),
            polled: AtomicU64::default(),
            attention,
        }
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

/// The page of a virtual processor's interface that its guest stores counts to, as the monitor sees it.
///
/// The card polls the page, and sees a store when it is made: to the cycle, however the guest's execution is cut into
/// runs. So the window refuses stores, and the monitor executes the instruction alone.
pub(super) struct RingPage {
    /// Where it is.
    pub page: RegisteredPage,
    /// What was stored, in order.
    stores: Mutex<Vec<Store>>,
    /// Whether the window takes stores now.
    is_open: AtomicBool,
}

impl RingPage {
    pub fn new() -> RingPage {
        RingPage {
            page: RegisteredPage::default(),
            stores: Mutex::default(),
            is_open: AtomicBool::new(false),
        }
    }

    /// Whether a guest-physical address lies on it.
    pub fn holds(&self, address: PhysicalAddress) -> bool {
        let page = self.page.address();
        page.is_some_and(|page| {
            address
                .offset_from(page)
                .is_some_and(|offset| offset < page::SIZE)
        })
    }

    /// Has the window take stores, or refuse them.
    pub fn open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Relaxed);
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Takes what was stored since the last time.
    pub fn take_stores(&self) -> Vec<Store> {
        std::mem::take(&mut *self.stores.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn stored(&self, offset: u64, size: u64, value: u64) {
        if let (8, Some(store)) = (size, Store::at(offset, value)) {
            let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
            stores.push(store);
        }
    }
}

/// Which page a window is on.
enum Window {
    Requests,
    Rings,
}

/// Machine memory, as far as a virtual processor's shadow can name it.
pub(super) struct MachineView {
    pub owner: usize,
    pub processor: usize,
    pub shared: Arc<Shared>,
    pub table: Arc<GuestMemory>,
    pub requests: Arc<RequestPage>,
    pub rings: Arc<RingPage>,
}

impl MachineView {
    /// Which window an access goes to, at which offset, and the guest-physical address behind that.
    fn behind_window(&self, address: PhysicalAddress, size: u64) -> Option<(Window, u64, PhysicalAddress)> {
        let address = MachineAddress::from_hardware(address);
        let rings = MachineAddress::of_rings(self.owner, self.processor);
        let requests = MachineAddress::of_window(self.owner, self.processor);
        let (window, offset, page) = match address.offset_from(rings) {
            Some(offset) => (Window::Rings, offset, self.rings.page.address()),
            None => (
                Window::Requests,
                address.offset_from(requests)?,
                self.requests.page.address(),
            ),
        };
        (offset + size <= page::SIZE).then_some(())?;
        Some((window, offset, page? + offset))
    }
}

// SAFETY: the regions are those of `GuestMemory`s that the view keeps mapped as long as it lives.
unsafe impl PhysicalMemory for MachineView {
    fn region(&self, address: PhysicalAddress) -> Option<MemoryRegion> {
        let address = MachineAddress::from_hardware(address);
        let moved = |region: MemoryRegion, base: MachineAddress| MemoryRegion {
            start: base.offset_by(region.start.0).on_hardware(),
            ..region
        };
        let table = MachineAddress::of_table(self.owner, self.processor);
        if let Some(offset) = address.offset_from(table)
            && let Some(region) = self.table.region(PhysicalAddress(offset))
        {
            return Some(moved(region, table));
        }
        let memory = MachineAddress::of_memory(self.owner);
        let guest = PhysicalAddress(address.offset_from(memory)?);
        if guest >= GUEST_MEMORY_MAX {
            return None;
        }
        let region = self.shared.memory.region(guest)?;
        Some(moved(region, memory))
    }

    fn instructions_read(&self, page: u64) {
        self.shared.memory.instructions_read(page);
    }

    fn instructions_changed(&self) {
        self.shared.outbox().instructions_changed = true;
    }

    fn load_device(&self, address: PhysicalAddress, size: u64) -> Option<u64> {
        let (window, offset, guest) = self.behind_window(address, size)?;
        if let Window::Requests = window {
            self.requests.loaded(offset);
        }
        let mut bytes = [0; 8];
        let some = &mut bytes[..size as usize];
        self.shared.memory.read(guest, some).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn store_device(&self, address: PhysicalAddress, size: u64, value: u64) -> bool {
        let Some((window, offset, guest)) = self.behind_window(address, size) else {
            return false;
        };
        if matches!(window, Window::Rings) && !self.rings.is_open() {
            return false;
        }
        let bytes = value.to_le_bytes();
        let written = self.shared.memory.write(guest, &bytes[..size as usize]);
        match window {
            Window::Requests => self.requests.stored(offset, size, value),
            Window::Rings => self.rings.stored(offset, size, value),
        }
        written.is_ok()
    }
}
