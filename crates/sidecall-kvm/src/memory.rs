//! The guest's memory: words that the guest may change at any moment.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{PAGE_WORDS, page};

/// A page; page-aligned, as KVM wants memory to be.
#[repr(align(4096))]
struct Page([AtomicU64; PAGE_WORDS]);

/// The memory of a guest. Every access is atomic: a guest that changes a word while it is read chooses which value is
/// seen, and nothing else.
pub struct GuestMemory(Box<[Page]>);

impl GuestMemory {
    /// Memory of zeros.
    pub fn new() -> Self {
        let zeros = || Page([const { AtomicU64::new(0) }; PAGE_WORDS]);
        Self((0..page::COUNT).map(|_| zeros()).collect())
    }

    /// Word `word` of page `page`.
    ///
    /// # Panics
    /// When there is no such page or word: both are the monitor's own numbers, or checked ones.
    pub fn word(&self, page: usize, word: usize) -> &AtomicU64 {
        &self.0[page].0[word]
    }

    /// Reads a word.
    pub fn load(&self, page: usize, word: usize) -> u64 {
        self.word(page, word).load(Ordering::Acquire)
    }

    /// Writes a word.
    pub fn store(&self, page: usize, word: usize, value: u64) {
        self.word(page, word).store(value, Ordering::Release);
    }

    /// Where it lies in the program's memory, and its bytes.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.0.as_ptr() as u64, size_of_val::<[Page]>(&self.0) as u64)
    }
}

impl Default for GuestMemory {
    fn default() -> Self {
        Self::new()
    }
}
