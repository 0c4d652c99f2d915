//! Which memory processors have decoded instructions from, so that they read again what a device writes there.
//!
//! Instruction caches of the architecture follow what devices write: Linux flushes no page of a program that a driver
//! has read from a disk. Only what processors store needs `fc`.

use std::collections::BTreeSet;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sidestep_ia64::{HOST_PAGE_LOG2, MemoryRegion};

/// The pages of a memory that instructions were read from, and whom to tell of changes.
#[derive(Debug)]
pub(super) struct CodeWatch {
    regions: Vec<Pages>,
    readers: OnceLock<Vec<Reader>>,
}

/// The pages of a region.
#[derive(Debug)]
struct Pages {
    /// The number of its first page in the host's memory.
    first: u64,
    /// A bit for each page: whether some processor has read instructions from it since it was written last.
    hold_code: Vec<AtomicU64>,
}

/// A processor.
#[derive(Debug)]
struct Reader {
    /// The host's numbers of pages that were written since it has asked.
    changed: Mutex<BTreeSet<u64>>,
    attention: Arc<AtomicBool>,
}

impl CodeWatch {
    pub fn new(regions: &[MemoryRegion]) -> CodeWatch {
        let pages = |region: &MemoryRegion| Pages {
            first: region.host as u64 >> HOST_PAGE_LOG2,
            hold_code: (0..(region.size >> HOST_PAGE_LOG2).div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
        };
        CodeWatch {
            regions: regions.iter().map(pages).collect(),
            readers: OnceLock::new(),
        }
    }

    /// Names the processors, by what makes them come back to whoever runs them; once.
    pub fn connect(&self, attention: impl IntoIterator<Item = Arc<AtomicBool>>) {
        let reader = |attention| Reader {
            changed: Mutex::default(),
            attention,
        };
        // A memory has the processors of one machine, whose platform sees to that.
        let _ = self.readers.set(attention.into_iter().map(reader).collect());
    }

    /// Notes that a processor is about to read instructions from a page of the host's.
    pub fn instructions_read(&self, page: u64) {
        let place = self.regions.iter().find_map(|pages| pages.bit(page));
        if let Some((word, bit)) = place
            && word.load(Ordering::Relaxed) & bit == 0
        {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        // Either it reads what is being written, or whoever writes sees the bit.
        fence(Ordering::SeqCst);
    }

    /// Has processors forget the instructions of these pages of a region.
    pub fn written(&self, region: usize, pages: impl Iterator<Item = u64>) {
        fence(Ordering::SeqCst);
        let of_region = &self.regions[region];
        for page in pages {
            let page = of_region.first + page;
            let Some((word, bit)) = of_region.bit(page) else {
                continue;
            };
            if word.load(Ordering::Relaxed) & bit == 0 {
                continue;
            }
            word.fetch_and(!bit, Ordering::Relaxed);
            for reader in self.readers.get().into_iter().flatten() {
                reader
                    .changed
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(page);
                reader.attention.store(true, Ordering::Release);
            }
        }
    }

    /// The pages whose instructions processor `index` must forget; each is told once.
    pub fn take_changed(&self, index: usize) -> BTreeSet<u64> {
        let reader = self.readers.get().and_then(|readers| readers.get(index));
        reader.map_or_else(BTreeSet::new, |reader| {
            mem::take(&mut *reader.changed.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }
}

impl Pages {
    /// Where a page's bit is.
    fn bit(&self, page: u64) -> Option<(&AtomicU64, u64)> {
        let index = page.checked_sub(self.first)?;
        let word = self.hold_code.get((index / 64) as usize)?;
        Some((word, 1 << (index % 64)))
    }
}
