//! What a function reaches of memory by itself: RAM, as long as its driver lets it master the bus.
//!
//! Without that, an access ends as one to where nothing is (section 6.2.2 of the specification: the function may not
//! begin any), so that a driver which forgets to allow it is found out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use sidestep_ia64::PhysicalAddress;

use crate::memory::{GuestMemory, MemoryError};

/// Whether a function may master the bus; clones follow it.
#[derive(Clone, Debug, Default)]
pub struct Mastering {
    own: Arc<AtomicBool>,
    /// Of the bridge before it, if one is.
    bridge: Arc<OnceLock<Mastering>>,
}

impl Mastering {
    /// Whether it may, and every bridge on the way to memory.
    pub fn is_allowed(&self) -> bool {
        self.own.load(Ordering::Relaxed) && self.bridge.get().is_none_or(Mastering::is_allowed)
    }

    pub(super) fn allow(&self, is_allowed: bool) {
        self.own.store(is_allowed, Ordering::Relaxed);
    }

    /// Puts the function behind a bridge, once.
    pub(super) fn put_behind(&self, bridge: Mastering) {
        let was_free = self.bridge.set(bridge).is_ok();
        debug_assert!(was_free, "a function is behind one bridge");
    }
}

/// Memory as a function reaches it by itself.
#[derive(Clone)]
pub struct BusMaster {
    memory: Arc<GuestMemory>,
    mastering: Mastering,
}

impl BusMaster {
    /// This memory for a function.
    pub fn new(memory: Arc<GuestMemory>, mastering: Mastering) -> BusMaster {
        BusMaster { memory, mastering }
    }

    /// Fills `bytes` from RAM.
    ///
    /// # Errors
    /// If they are not all RAM, or the function may not.
    pub fn read_ram(&self, address: PhysicalAddress, bytes: &mut [u8]) -> Result<(), MemoryError> {
        self.check(address, bytes.len())?;
        self.memory.read_ram(address, bytes)
    }

    /// Writes `bytes` to RAM; nothing if not all of them fit.
    ///
    /// # Errors
    /// As [`read_ram`](Self::read_ram).
    pub fn write_ram(&self, address: PhysicalAddress, bytes: &[u8]) -> Result<(), MemoryError> {
        self.check(address, bytes.len())?;
        self.memory.write_ram(address, bytes)
    }

    fn check(&self, address: PhysicalAddress, bytes: usize) -> Result<(), MemoryError> {
        let size = bytes as u64;
        match self.mastering.is_allowed() {
            true => Ok(()),
            false => Err(MemoryError { address, size }),
        }
    }
}
