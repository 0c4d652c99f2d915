//! Memory whose missing pages the program brings itself (`userfaultfd`).
//!
//! A thread that touches such a page sleeps in the host's kernel until another thread has brought it. A processor must
//! not sleep there, since it is inside the [`World`](crate::world::World), which nobody could stop meanwhile. So a page
//! of watched memory is not shown to a processor before its thread has touched it from outside, where a signal ends
//! the sleep. What was touched is known until the next exclusive change of the memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::mapping::Protection;
use super::window::{PAGE, page_floor};
use super::{Denial, Memory, Need};
use crate::host::{self, Touch};

/// A page of the host, which watches memory in its own pages.
const HOST_PAGE: usize = 4096;

/// Pages of watched memory that are known to be there.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// The exclusive changes there had been.
    changes: u64,
    /// Their addresses.
    pages: HashMap<u64, Stored>,
}

/// Whether a page was touched by a store.
#[derive(Clone, Copy, Debug)]
struct Stored(bool);

impl Memory {
    fn touched(&self) -> std::sync::MutexGuard<'_, Touched> {
        self.touched
            .lock()
            .expect("no thread panics while it notes what it touched")
    }

    /// What may be done with a page of watched memory: nothing before it was touched, and no store before it was
    /// touched by one.
    pub(super) fn known_rights(&self, address: u64, protection: Protection) -> Protection {
        let touched = self.touched();
        match touched.pages.get(&page_floor(address)) {
            Some(Stored(stored)) if touched.changes == self.world.changes() => match stored {
                true => protection,
                false => protection.without_stores(),
            },
            _ => Protection::NONE,
        }
    }

    /// Touches the page of watched memory that has kept an access from being made, if that is what kept it, and sleeps
    /// until it is there or `pending` says that a signal waits.
    pub fn await_page(&self, address: u64, need: Need, pending: &AtomicU32) -> Option<Touch> {
        match self.view(address, need) {
            Err(Denial::Absent) => {}
            // Another thread has touched it since.
            Ok(_) if self.protection_at(address)?.watched => return Some(Touch::Present),
            _ => return None,
        }
        let changes = self.world.changes();
        let page = page_floor(address);
        let host = self.windows.host(page);
        for offset in (0..PAGE as usize).step_by(HOST_PAGE) {
            // SAFETY: the page lies within the windows, and the caller's word is its inbox's.
            let touch = unsafe { host::touch(pending, host.wrapping_add(offset), need.write) };
            if touch != Touch::Present {
                return Some(touch);
            }
        }
        let mut touched = self.touched();
        if touched.changes != changes {
            touched.pages.clear();
            touched.changes = changes;
        }
        touched.pages.insert(page, Stored(need.write));
        Some(Touch::Present)
    }

    /// Whether any memory was ever watched, or may be watched in another process by this one.
    pub fn knows_watching(&self) -> bool {
        self.knows_watching.load(Ordering::Relaxed)
    }

    /// Notes that this process has to do with watched memory, its own or that of others.
    pub fn note_watching(&self) {
        self.knows_watching.store(true, Ordering::Relaxed);
        self.close_windows();
    }

    /// Changes how the host watches a range, by what it is asked to do: whether at all, or only which pages are there.
    pub fn watch<T, E>(
        &self,
        range: Range<u64>,
        watched: Option<bool>,
        on_host: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.world.exclusively(|| {
            let result = on_host()?;
            let Some(watched) = watched else {
                return Ok(result);
            };
            let mut mappings = self.mappings_mut();
            for (part, mapping) in mappings.within(range) {
                mappings.insert(part, super::Mapping { watched, ..mapping });
            }
            Ok(result)
        })
    }

    /// The guest's address of an address of the host in the windows.
    pub fn guest(&self, host: u64) -> Option<u64> {
        self.windows.guest(std::ptr::without_provenance(host as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::super::changes::MapRequest;
    use super::*;

    #[test]
    fn a_page_that_another_thread_has_touched_meanwhile_is_there() {
        let memory = Memory::new().expect("an address space");
        let address = memory.map(&MapRequest::anonymous(2 * PAGE)).expect("room");
        let watched = address..address + PAGE;
        let result: Result<(), ()> = memory.watch(watched, Some(true), || Ok(()));
        assert_eq!(result, Ok(()));
        let need = Need {
            read: true,
            write: false,
            execute: false,
        };
        let pending = AtomicU32::new(0);
        assert_eq!(memory.view(address, need).err(), Some(Denial::Absent));
        // Two threads have found it absent.
        for _ in 0..2 {
            assert_eq!(memory.await_page(address, need, &pending), Some(Touch::Present));
            assert!(memory.view(address, need).is_ok());
        }
        // What nobody watches is kept from nobody by this.
        assert_eq!(memory.await_page(address + PAGE, need, &pending), None);
    }
}
