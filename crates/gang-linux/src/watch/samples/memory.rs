//! The memory that an interrupted thread sees.
//!
//! What is on its stack was reported with the interruption. All else is read from the process when it is looked at, a
//! page at once, so that all that is followed then sees it as it was at one time.

use std::cell::RefCell;
use std::collections::HashMap;

use super::record::Interrupted;
use super::red_zone::RED_ZONE_BYTES;
use crate::memory::PAGE;
use crate::watch::ahead::{Memory, STACK_POINTER};

/// How far from the stack pointer a stack is taken to reach, either way.
const STACK_REACH: u64 = 1 << 16;

/// The memory of a process as it is now; a page is read when it is asked for first.
pub(super) struct Pages {
    process: i32,
    /// By their addresses; none where there is no memory.
    read: RefCell<HashMap<u64, Option<Box<[u8; PAGE]>>>>,
}

impl Pages {
    /// Of a process.
    pub(super) fn of(process: i32) -> Self {
        Self {
            process,
            read: RefCell::default(),
        }
    }

    /// What is within a page.
    fn read_within(&self, address: u64, bytes: &mut [u8]) -> bool {
        let mut read = self.read.borrow_mut();
        let offset = address as usize % PAGE;
        let page = read
            .entry(address - offset as u64)
            .or_insert_with_key(|page| read_page(self.process, *page));
        let Some(page) = page else {
            return false;
        };
        bytes.copy_from_slice(&page[offset..offset + bytes.len()]);
        true
    }
}

impl Memory for Pages {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let first = bytes.len().min(PAGE - address as usize % PAGE);
        let (before, behind) = bytes.split_at_mut(first);
        let next = address.wrapping_add(first as u64);
        self.read_within(address, before) && (behind.is_empty() || self.read_within(next, behind))
    }
}

fn read_page(process: i32, page: u64) -> Option<Box<[u8; PAGE]>> {
    let mut bytes = Box::new([0; PAGE]);
    let ours = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: PAGE,
    };
    let theirs = libc::iovec {
        iov_base: page as *mut _,
        iov_len: PAGE,
    };
    // SAFETY: the kernel writes at most a page to `bytes`, which is as large and lives as long as the call; what is at
    // the other end it checks itself.
    let read = unsafe { libc::process_vm_readv(process, &ours, 1, &theirs, 1, 0) };
    (read == PAGE as isize).then_some(bytes)
}

/// The memory of a thread as it was when it was interrupted.
pub(super) struct Seen<'a> {
    pub(super) interrupted: &'a Interrupted<'a>,
    /// What it keeps below the stack pointer, where that was told.
    pub(super) red_zone: Option<[u8; RED_ZONE_BYTES]>,
    pub(super) pages: &'a Pages,
}

impl Memory for Seen<'_> {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let stack = self.interrupted.registers.general[STACK_POINTER];
        let red_zone = self.red_zone.as_ref().map_or(&[][..], |zone| zone);
        let below = stack.wrapping_sub(RED_ZONE_BYTES as u64);
        for (from, told) in [(stack, self.interrupted.stack), (below, red_zone)] {
            let told = address
                .checked_sub(from)
                .and_then(|at| told.get(at as usize..)?.get(..bytes.len()));
            if let Some(told) = told {
                bytes.copy_from_slice(told);
                return true;
            }
        }
        // Below the red zone is what functions left that have returned, which has changed by now.
        let is_left = address < stack && stack - address <= STACK_REACH;
        !is_left && self.pages.read(address, bytes)
    }

    fn is_as_it_was(&self, address: u64) -> bool {
        let told = self.interrupted.stack.len() as u64;
        let above = address.wrapping_sub(self.interrupted.registers.general[STACK_POINTER]);
        !(told..STACK_REACH).contains(&above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::ahead::Registers;

    #[test]
    fn own_memory_is_read_and_none_is_not() {
        let own = Pages::of(std::process::id() as i32);
        let numbers: Vec<u8> = (0..3 * PAGE).map(|number| number as u8).collect();
        let mut bytes = [0; 8];
        for offset in [0, 100, PAGE - 3, 2 * PAGE] {
            assert!(own.read(&raw const numbers[offset] as u64, &mut bytes));
            assert_eq!(bytes, numbers[offset..offset + 8]);
        }
        for nowhere in [0, u64::MAX - 3, u64::MAX] {
            assert!(!own.read(nowhere, &mut bytes), "{nowhere:#x}");
        }
    }

    #[test]
    fn a_stack_is_as_it_was_and_below_it_nothing_is() {
        let now = vec![1_u8; 4 * PAGE];
        let stack = &raw const now[2 * PAGE] as u64;
        let mut registers = Registers::default();
        registers.general[STACK_POINTER] = stack;
        let interrupted = Interrupted {
            process: 0,
            thread: 0,
            registers,
            stack: &[2; 64],
        };
        let mut seen = Seen {
            interrupted: &interrupted,
            red_zone: None,
            pages: &Pages::of(std::process::id() as i32),
        };
        let at = |seen: &Seen, offset: i64| {
            let mut bytes = [0; 8];
            let is_known = seen.read(stack.wrapping_add_signed(offset), &mut bytes);
            is_known.then_some(bytes[0])
        };
        assert_eq!(
            [0, 56, 64].map(|offset| at(&seen, offset)),
            [Some(2), Some(2), Some(1)]
        );
        assert_eq!([-8, -128, -136].map(|offset| at(&seen, offset)), [None; 3]);
        seen.red_zone = Some([3; RED_ZONE_BYTES]);
        assert_eq!(
            [-8, -128, -136].map(|offset| at(&seen, offset)),
            [Some(3), Some(3), None]
        );
    }
}
