//! What bounds the mappings beside the address space: the program's own limits, and what the host grants.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Mappings, Memory};
use crate::host::Errno;

/// Mappings of the host that are left for the emulator itself: its heap, the stacks of its threads.
const KEPT: usize = 1024;
/// The kernel's default for `vm.max_map_count`.
const USUAL_MOST: usize = 65530;

/// The bounds.
#[derive(Debug)]
pub struct Limits {
    /// Bytes that may be mapped (the soft `RLIMIT_AS`).
    mapped: AtomicU64,
    /// Bytes of private memory that may be written (the soft `RLIMIT_DATA`).
    data: AtomicU64,
    /// Mappings of the host; looked up when there are many.
    pieces: OnceLock<usize>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            mapped: AtomicU64::new(u64::MAX),
            data: AtomicU64::new(u64::MAX),
            pieces: OnceLock::new(),
        }
    }
}

impl Limits {
    /// Whether `size` more bytes may be mapped; `ENOMEM` otherwise.
    pub fn check(&self, mappings: &Mappings, size: u64, is_data: bool) -> Result<(), Errno> {
        let (mapped_most, data_most) = (
            self.mapped.load(Ordering::Relaxed),
            self.data.load(Ordering::Relaxed),
        );
        if mapped_most != u64::MAX || data_most != u64::MAX {
            let (mapped, data) = mappings.sizes();
            let too_much = |most: u64, now: u64| most != u64::MAX && now.saturating_add(size) > most;
            if too_much(mapped_most, mapped) || is_data && too_much(data_most, data) {
                return Err(Errno(libc::ENOMEM));
            }
        }
        if mappings.pieces() > USUAL_MOST / 4
            && mappings.pieces() + KEPT > *self.pieces.get_or_init(most_pieces)
        {
            return Err(Errno(libc::ENOMEM));
        }
        Ok(())
    }

    /// Whether `size` bytes that are mapped may become data; `ENOMEM` otherwise.
    pub fn check_data(&self, mappings: &Mappings, size: u64) -> Result<(), Errno> {
        let most = self.data.load(Ordering::Relaxed);
        if size > 0 && most != u64::MAX && mappings.sizes().1.saturating_add(size) > most {
            return Err(Errno(libc::ENOMEM));
        }
        Ok(())
    }
}

fn most_pieces() -> usize {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    text.trim().parse().unwrap_or(USUAL_MOST)
}

impl Memory {
    /// Sets the program's own limits, where it has some.
    pub fn set_limits(&self, mapped: Option<u64>, data: Option<u64>) {
        self.limits
            .mapped
            .store(mapped.unwrap_or(u64::MAX), Ordering::Relaxed);
        self.limits
            .data
            .store(data.unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
