//! How the processor reaches guest memory.
//!
//! The environment describes guest memory as an [`AddressSpace`], which finds the host page behind a
//! guest page. The processor keeps what it was told in a software TLB (`tlb`) and reads and writes through host
//! pointers, a [`Value`] at a time.

pub mod physical;
pub(crate) mod tlb;
mod value;
pub(crate) mod windows;

pub use physical::{GlobalPurge, MemoryRegion, PhysicalMemory};
pub use value::Value;
pub use windows::Windows;

use crate::address::VirtualAddress;
use crate::fault::Access;

/// The smallest guest page, and the granule of the software TLB.
pub const GRANULE_LOG2: u32 = 12;

/// A guest page that is backed by host memory.
#[derive(Clone, Copy, Debug)]
pub struct HostPage {
    /// The guest address of the page's first byte.
    pub start: VirtualAddress,
    /// The page's size: 2 to this power, in bytes; 12 at least.
    pub size_log2: u32,
    /// The host address of the page's first byte.
    pub host: *mut u8,
    /// Whether loads are allowed.
    pub readable: bool,
    /// Whether stores are allowed.
    pub writable: bool,
    /// Whether instruction fetches are allowed.
    pub executable: bool,
}

// SAFETY: a page is a description; whoever follows its host address answers for that access.
unsafe impl Send for HostPage {}
// SAFETY: as above.
unsafe impl Sync for HostPage {}

/// Why an address space offers no page for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing is mapped there.
    NotPresent,
    /// Something is mapped there, but not for this kind of access.
    AccessRights,
    /// The address is not one that the processor implements.
    Unimplemented,
}

/// Guest memory, as the processor finds it when its software TLB has no answer.
///
/// # Safety
///
/// For every page that `resolve` returned, `host` must stay valid for reads (and for writes, if the page
/// is writable) of the whole page until every processor of this address space has either called
/// [`Processor::flush_translations`](crate::Processor::flush_translations) or been dropped. Other threads
/// and processes may access the same bytes at any time; the processor uses atomic accesses throughout.
pub unsafe trait AddressSpace: Send + Sync {
    /// Finds the host page behind `address` for `access`, growing or loading it if the environment does so.
    fn resolve(&self, address: VirtualAddress, access: Access) -> Result<HostPage, Refusal>;

    /// Tells that instructions at `address` may have changed (`fc`, `fc.i`), for the other processors.
    fn instructions_changed(&self, address: VirtualAddress) {
        let _ = address;
    }

    /// Where the memory lies in the host's, if back ends may touch it there without asking: what a guest may load or
    /// store the host lets, all else raises one of its memory faults, and whoever runs processors has emitted code go
    /// on where its back end says then. What is answered may change when
    /// [`Processor::flush_data_translations`](crate::Processor::flush_data_translations) is called.
    fn windows(&self) -> Option<Windows> {
        None
    }

    /// Whether other processors use this memory, so that acquiring operations must also forget
    /// advanced loads. What is answered may change as for [`AddressSpace::windows`].
    fn is_shared(&self) -> bool {
        false
    }
}
