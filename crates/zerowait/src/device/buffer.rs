//! Buffers for device operations: a fixed pool, allocated once, shared by all cores.
//!
//! A buffer is reached by an index that can travel in a continuation's words, so nothing in the type system
//! keeps two threads from naming the same one. Each buffer therefore has a state; whoever wants its bytes
//! changes it from owned to locked first, and the device keeps it locked while an operation is in flight.
//! Misuse is a contained panic.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::payload::{Payload, Words};
use crate::queue::FreeList;

/// In the pool.
const FREE: u32 = 0;
/// Some thread's, and idle.
const OWNED: u32 = 1;
/// A guard or a device uses its bytes.
const LOCKED: u32 = 2;

/// A device buffer out of the pool.
#[derive(Debug, PartialEq, Eq)]
pub struct Buffer {
    index: u32,
}

impl Buffer {
    pub(crate) fn from_index(index: u32) -> Self {
        Self { index }
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }
}

impl Payload for Buffer {
    fn into_words(self) -> Words {
        [u64::from(self.index), 0, 0, 0]
    }
    fn from_words(words: Words) -> Self {
        Self {
            index: words[0] as u32,
        }
    }
}

/// All buffers of an executor.
pub(crate) struct BufferPool {
    memory: Box<[UnsafeCell<u8>]>,
    size: usize,
    states: Box<[AtomicU32]>,
    free: FreeList,
}

// SAFETY: a buffer's bytes are reached only by whoever changed its state from OWNED to LOCKED, until it
// changes it back.
unsafe impl Sync for BufferPool {}

impl BufferPool {
    /// `count` buffers of `size` bytes each.
    pub(crate) fn new(count: usize, size: usize) -> Self {
        Self {
            memory: (0..count * size).map(|_| UnsafeCell::new(0)).collect(),
            size,
            states: (0..count).map(|_| AtomicU32::new(FREE)).collect(),
            free: FreeList::new(0, count),
        }
    }

    pub(crate) fn take(&self) -> Option<Buffer> {
        let index = self.free.take()?;
        self.states[index as usize].store(OWNED, Relaxed);
        Some(Buffer { index })
    }

    pub(crate) fn put_back(&self, buffer: Buffer) {
        self.change(&buffer, OWNED, FREE, "given back");
        self.free.give(buffer.index);
    }

    fn change(&self, buffer: &Buffer, from: u32, to: u32, what: &str) {
        let state = self
            .states
            .get(buffer.index as usize)
            .expect("a buffer of this executor");
        let changed = state.compare_exchange(from, to, AcqRel, Acquire);
        assert!(
            changed.is_ok(),
            "device buffer {} is {what} while it is in use or free",
            buffer.index
        );
    }

    pub(crate) fn lock<'a>(&'a self, buffer: &'a Buffer) -> BufferGuard<'a> {
        self.change(buffer, OWNED, LOCKED, "accessed");
        BufferGuard { pool: self, buffer }
    }

    /// Locks a buffer for a device and says where its bytes are; they stay there while the pool lives.
    pub(crate) fn lock_for_device(&self, buffer: &Buffer) -> *mut u8 {
        self.change(buffer, OWNED, LOCKED, "submitted");
        self.memory[buffer.index as usize * self.size].get()
    }

    /// The device is done with the buffer.
    pub(crate) fn unlock_from_device(&self, buffer: &Buffer) {
        self.change(buffer, LOCKED, OWNED, "completed");
    }

    /// Bytes in each buffer.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// How many buffers are out of the pool.
    pub(crate) fn in_use(&self) -> usize {
        self.states
            .iter()
            .filter(|state| state.load(Relaxed) != FREE)
            .count()
    }
}

/// The bytes of a buffer, for as long as the guard lives.
pub struct BufferGuard<'a> {
    pool: &'a BufferPool,
    buffer: &'a Buffer,
}

impl BufferGuard<'_> {
    fn cells(&self) -> &[UnsafeCell<u8>] {
        &self.pool.memory[self.buffer.index as usize * self.pool.size..][..self.pool.size]
    }
}

impl Deref for BufferGuard<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let cells = self.cells();
        // SAFETY: the guard holds the buffer locked, so nobody writes these bytes; `UnsafeCell<u8>` is laid
        // out as `u8`.
        unsafe { std::slice::from_raw_parts(cells.as_ptr().cast::<u8>(), cells.len()) }
    }
}

impl DerefMut for BufferGuard<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        let cells = self.cells();
        let (start, length) = (UnsafeCell::raw_get(cells.as_ptr()), cells.len());
        // SAFETY: the guard holds the buffer locked and is borrowed mutably, so nobody else reads or writes
        // these bytes; the pointer comes from the cells themselves, which permit writing through a shared
        // reference.
        unsafe { std::slice::from_raw_parts_mut(start, length) }
    }
}

impl Drop for BufferGuard<'_> {
    fn drop(&mut self) {
        self.pool.unlock_from_device(self.buffer);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_buffer_goes_round_and_keeps_its_bytes_while_it_is_out() {
        let pool = BufferPool::new(2, 4);
        let buffer = pool.take().expect("two");
        pool.lock(&buffer).copy_from_slice(b"abcd");
        assert_eq!(&*pool.lock(&buffer), b"abcd");
        let other = pool.take().expect("one more");
        assert!(pool.take().is_none());
        assert_eq!(&*pool.lock(&other), [0; 4]);
        pool.put_back(buffer);
        assert_eq!(pool.in_use(), 1);
    }

    #[test]
    fn a_forged_or_busy_buffer_is_refused() {
        let pool = BufferPool::new(1, 4);
        let refused = |use_it: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(use_it)).is_err());
        refused(&|| drop(pool.lock(&Buffer { index: 0 })));
        refused(&|| drop(pool.lock(&Buffer { index: 7 })));
        let buffer = pool.take().expect("one");
        pool.lock_for_device(&buffer);
        refused(&|| drop(pool.lock(&buffer)));
        refused(&|| pool.put_back(Buffer { index: 0 }));
        pool.unlock_from_device(&buffer);
        pool.put_back(buffer);
        refused(&|| pool.put_back(Buffer { index: 0 }));
    }
}
