//! Memory with a file behind it, mapped shared: what a VMM that lets others see its guest's memory uses for it, and
//! what programs share with each other.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::HostError;

/// Shared memory of whole pages. The mapping stays where it is as long as this lives.
#[derive(Debug)]
pub struct SharedMemory {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the memory is accessed through atomics only, by whichever thread.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

/// The size of a page.
pub const PAGE: usize = 4096;

impl SharedMemory {
    /// At least so many bytes, with no name in any folder.
    ///
    /// # Errors
    /// When there is no memory for it.
    ///
    /// # Panics
    /// Of no bytes.
    pub fn new(bytes: usize) -> Result<Self, HostError> {
        let file = memfd_create("guest-memory", MemfdFlags::CLOEXEC);
        Self::of(file.map_err(failed("memfd_create", bytes))?, bytes)
    }

    /// The first bytes of a file, at least so many; the file becomes as long as that. Every process that opens it has
    /// the same memory.
    ///
    /// # Errors
    /// When the file cannot be opened or mapped.
    ///
    /// # Panics
    /// Of no bytes.
    pub fn open(path: &Path, bytes: usize) -> Result<Self, HostError> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        Self::of(file.map_err(HostError::file("open", path))?.into(), bytes)
    }

    fn of(file: OwnedFd, bytes: usize) -> Result<Self, HostError> {
        assert!(bytes > 0, "memory has at least one page");
        let failed = |call| failed(call, bytes);
        let whole = bytes.checked_next_multiple_of(PAGE);
        let whole = whole.ok_or_else(|| failed("mmap")(rustix::io::Errno::NOMEM))?;
        ftruncate(&file, whole as u64).map_err(failed("ftruncate"))?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; nothing of ours is there.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                whole,
                protection,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )
        }
        .map_err(failed("mmap"))?;
        Ok(Self {
            start: start.cast(),
            bytes: whole,
        })
    }

    /// Where it is.
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// How much it is.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Its words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, readable, writable, of this length and lives as long as `self`; any
        // bytes are a value of atomics, through which alone it is accessed here.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes / size_of::<AtomicU64>()) }
    }
}

fn failed(call: &'static str, bytes: usize) -> impl FnOnce(rustix::io::Errno) -> HostError {
    move |source| HostError::Call {
        call,
        subject: format!("{bytes} bytes of shared memory"),
        source: source.into(),
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: this mapping was made in `new` with this length, and no reference to it outlives `self`.
        let unmapped = unsafe { munmap(self.start.cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours can be unmapped");
    }
}
