//! The guest's memory: words that the guest may change at any moment.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use sidestep_sidecall::line::{Line, WORDS};

use crate::layout::{PAGE_BYTES, PAGE_WORDS, PROCESSORS_MAX, page};

const BYTES: usize = page::COUNT * PAGE_BYTES;

/// A page.
type Page = [AtomicU64; PAGE_WORDS];

/// The memory of a guest. Every access is atomic: a guest that changes a word while it is read chooses which value is
/// seen, and nothing else.
pub struct GuestMemory(NonNull<[Page; page::COUNT]>);

// SAFETY: the mapping belongs to nobody else and consists of atomic words, which any thread may use.
unsafe impl Send for GuestMemory {}
// SAFETY: as above.
unsafe impl Sync for GuestMemory {}

impl GuestMemory {
    /// Memory of zeros.
    ///
    /// # Errors
    /// When the kernel has none.
    pub fn new() -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // Shared memory is a file, so its contents stay when the kernel drops what maps them: see `flush`.
        // SAFETY: the kernel chooses addresses that nothing has.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), BYTES, access, MapFlags::SHARED) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self(start))
    }

    #[inline]
    fn pages(&self) -> &[Page; page::COUNT] {
        // SAFETY: the mapping has so many bytes, is aligned to pages, holds zeros or what was stored since, of which
        // all are valid, and stays until this is dropped.
        unsafe { self.0.as_ref() }
    }

    /// Word `word` of page `page`.
    ///
    /// # Panics
    /// When there is no such page or word: both are the monitor's own numbers, or checked ones.
    #[inline]
    pub fn word(&self, page: usize, word: usize) -> &AtomicU64 {
        &self.pages()[page][word]
    }

    /// Reads a word.
    #[inline]
    pub fn load(&self, page: usize, word: usize) -> u64 {
        self.word(page, word).load(Ordering::Acquire)
    }

    /// Writes a word.
    #[inline]
    pub fn store(&self, page: usize, word: usize, value: u64) {
        self.word(page, word).store(value, Ordering::Release);
    }

    /// Copies the first bytes of a page, as many as there is room for.
    ///
    /// # Panics
    /// When there is no such page, or it has fewer bytes.
    pub fn read_page(&self, page: usize, bytes: &mut [u8]) {
        assert!(bytes.len() <= PAGE_BYTES, "{} bytes of a page", bytes.len());
        for (bytes, word) in bytes.chunks_mut(8).zip(&self.pages()[page]) {
            let word = word.load(Ordering::Relaxed).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
    }

    /// Fills a page.
    ///
    /// # Panics
    /// When there is no such page.
    pub fn write_page(&self, page: usize, bytes: &[u8; PAGE_BYTES]) {
        let (words, _) = bytes.as_chunks();
        for (word, bytes) in self.pages()[page].iter().zip(words) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
    }

    /// The line of a processor.
    ///
    /// # Panics
    /// When a guest cannot have so many processors.
    #[inline]
    pub fn line(&self, processor: usize) -> Line<'_> {
        assert!(processor < PROCESSORS_MAX, "processor {processor}");
        let page = &self.pages()[page::REQUEST + processor * page::PROCESSOR];
        Line::new(
            page.first_chunk::<WORDS>()
                .expect("a page has more words than a line"),
        )
    }

    /// Has every processor of the guest forget which addresses showed this page.
    ///
    /// The kernel drops its own mapping of the page and, since it may no longer be there, all that guests have of it:
    /// shadow entries or nested ones, and the translations of processors that run meanwhile, which it interrupts. The
    /// contents are a file's and stay.
    ///
    /// # Errors
    /// When the kernel refuses.
    ///
    /// # Panics
    /// When there is no such page.
    pub fn flush(&self, page: usize) -> io::Result<()> {
        let page = (&raw const self.pages()[page]).cast_mut();
        // SAFETY: the page is one of the mapping's, whose contents stay as they are.
        Ok(unsafe { madvise(page.cast(), PAGE_BYTES, Advice::LinuxDontNeed) }?)
    }

    /// Where it lies in the program's memory, and its bytes.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.0.as_ptr().expose_provenance() as u64, BYTES as u64)
    }
}

impl Drop for GuestMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing borrows it. It cannot fail for such a mapping.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), BYTES) };
    }
}
