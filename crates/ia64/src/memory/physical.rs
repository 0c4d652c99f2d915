//! Physical memory and devices, as a processor in system mode reaches them.

use std::sync::Arc;

use crate::address::{PhysicalAddress, VirtualAddress};

/// A stretch of physical memory that host memory backs.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRegion {
    /// Its first address; a multiple of 64 kB.
    pub start: PhysicalAddress,
    /// Its size in bytes; a multiple of 64 kB.
    pub size: u64,
    /// The host address of its first byte, aligned to 4 kB at least.
    pub host: *mut u8,
    /// Whether stores reach it. Where they do not, as in a ROM, they go to [`PhysicalMemory::store_device`], which may
    /// drop them.
    pub writable: bool,
}

// SAFETY: a region is a description; whoever follows its host address answers for that access.
unsafe impl Send for MemoryRegion {}
// SAFETY: as above.
unsafe impl Sync for MemoryRegion {}

/// What is behind the physical addresses of a machine.
///
/// # Safety
///
/// The host memory of every region that `region` returned must stay valid for reads (and for writes, if
/// writable) as long as the object lives. Processors access it atomically.
pub unsafe trait PhysicalMemory: Send + Sync {
    /// The memory region that holds an address, if it is memory.
    fn region(&self, address: PhysicalAddress) -> Option<MemoryRegion>;

    /// Loads from a device: `size` is 1, 2, 4 or 8 bytes. `None`: nothing answers there.
    fn load_device(&self, address: PhysicalAddress, size: u64) -> Option<u64>;

    /// Stores to a device, or to memory that is not writable. False: nothing answers there.
    fn store_device(&self, address: PhysicalAddress, size: u64, value: u64) -> bool;

    /// Broadcasts a global purge (`ptc.g`, `ptc.ga`) to the other processors, and comes back when none of them
    /// executes with the old translation. Returns the purges that others have broadcast meanwhile, which this
    /// processor makes before its instruction ends.
    fn purge_others(&self, purge: GlobalPurge) -> Vec<GlobalPurge> {
        let _ = purge;
        Vec::new()
    }

    /// Tells that this processor is about to decode instructions from a page of the host's memory, by its number
    /// ([`HOST_PAGE_LOG2`](crate::HOST_PAGE_LOG2)): whoever writes there without a processor, as a device does, must
    /// have it forget them ([`Processor::forget_instructions_of`](crate::Processor::forget_instructions_of)).
    fn instructions_read(&self, page: u64) {
        let _ = page;
    }

    /// Tells that this processor has executed `fc` or `fc.i`: the other processors must not execute what they decoded
    /// before ([`Processor::forget_instructions`](crate::Processor::forget_instructions)).
    fn instructions_changed(&self) {}
}

/// A global purge of translation caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalPurge {
    /// A virtual address in the purged range.
    pub address: VirtualAddress,
    /// The region identifier.
    pub region: u32,
    /// The range's size: 2 to this power.
    pub size_log2: u32,
    /// Whether advanced loads are forgotten as well (`ptc.ga`).
    pub advanced_loads: bool,
}

/// Shared physical memory.
pub type SharedPhysicalMemory = Arc<dyn PhysicalMemory>;
