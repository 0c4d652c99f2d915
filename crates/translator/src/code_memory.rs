//! Host memory for emitted code: bounded, and never writable and executable at once.

use std::ops::Range;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

const PAGE: usize = 4096;
/// Functions begin at multiples of this: where the host fetches instructions from.
const ALIGNMENT: usize = 32;

/// Memory that code is put into, piece behind piece. Nothing that was put in is moved or changed before it is emptied.
#[derive(Debug)]
pub struct CodeMemory {
    start: NonNull<u8>,
    size: usize,
    used: usize,
}

// SAFETY: the memory belongs to the object alone; what runs in it is its users' affair.
unsafe impl Send for CodeMemory {}
// SAFETY: it is written through exclusive references only.
unsafe impl Sync for CodeMemory {}

impl CodeMemory {
    /// Reserves room for `size` bytes, rounded up to pages; the host provides them as they are used.
    ///
    /// # Errors
    /// The host grants no memory.
    pub fn new(size: usize) -> Result<CodeMemory, Errno> {
        let size = size.max(PAGE).next_multiple_of(PAGE);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh mapping without access, where the kernel finds room.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), size, ProtFlags::empty(), flags) }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(CodeMemory { start, size, used: 0 })
    }

    /// The addresses that code may have.
    pub fn addresses(&self) -> Range<usize> {
        let start = self.start.as_ptr().expose_provenance();
        start..start + self.size
    }

    /// How many bytes hold code.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Puts code in, and answers where it is; `None` where there is no room left, or the host refuses.
    pub fn put(&mut self, code: &[u8]) -> Option<*const u8> {
        let end = self
            .used
            .checked_add(code.len())
            .filter(|&end| end <= self.size)?;
        let first_page = self.used / PAGE * PAGE;
        let length = end.next_multiple_of(PAGE) - first_page;
        let pages = self.start.as_ptr().wrapping_add(first_page).cast();
        // SAFETY: the pages are this object's. Nothing executes in them: translating and executing exclude each other,
        // as both need the translator.
        unsafe { mprotect(pages, length, MprotectFlags::READ | MprotectFlags::WRITE) }.ok()?;
        let place = self.start.as_ptr().wrapping_add(self.used);
        // SAFETY: the place and what follows lie within the pages that were made writable.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), place, code.len()) };
        // SAFETY: as above.
        unsafe { mprotect(pages, length, MprotectFlags::READ | MprotectFlags::EXEC) }.ok()?;
        self.used = end.next_multiple_of(ALIGNMENT).min(self.size);
        Some(place)
    }

    /// Forgets all code. None of it may be executed any more.
    pub fn clear(&mut self) {
        self.used = 0;
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's, and whoever holds an address of it holds the object.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_where_it_was_put_and_the_bound_holds() {
        // mov eax, edi; ret
        const CODE: [u8; 3] = [0x89, 0xf8, 0xc3];
        let mut memory = CodeMemory::new(PAGE).expect("a page");
        let places: Vec<_> = (0..2).map(|_| memory.put(&CODE).expect("room")).collect();
        for place in places {
            // SAFETY: the code is a whole function of this type.
            let identity: extern "C" fn(u32) -> u32 = unsafe { std::mem::transmute(place) };
            assert_eq!(identity(7), 7);
        }
        assert!(memory.put(&[0; PAGE]).is_none());
        assert!(memory.used() <= PAGE);
        memory.clear();
        assert!(memory.put(&[0xc3; PAGE]).is_some());
    }
}
