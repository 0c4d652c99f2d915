//! External interrupts of one processor: what is requested, what is in service, and what is masked.
//!
//! Manual volume 2, section 5.8. Requests may come from any thread (devices, other processors); the processor
//! looks at them at block boundaries.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// IVR reads this vector when no interrupt is pending that may be delivered.
pub const SPURIOUS: u8 = 15;
/// The non-maskable interrupt.
const NON_MASKABLE: u8 = 2;
/// Vectors below 16 are special: 0 (from an 8259), 2 (non-maskable); the others are reserved.
const FIRST_VECTOR: u32 = 16;

/// The requested interrupts of a processor, and the flag that makes it look.
#[derive(Default)]
pub struct Interrupts {
    requested: [AtomicU64; 4],
    changed: AtomicBool,
}

impl Interrupts {
    /// Requests interrupt `vector`; reserved vectors are ignored.
    pub fn request(&self, vector: u8) {
        if u32::from(vector) < FIRST_VECTOR && vector != 0 && vector != NON_MASKABLE {
            return;
        }
        self.requested[usize::from(vector / 64)].fetch_or(1 << (vector % 64), Ordering::AcqRel);
        self.signal();
    }

    /// Makes the processor look at its interrupts at the next block boundary.
    pub(crate) fn signal(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// Whether [`signal`](Self::signal) was called since the last `take_signal`.
    #[inline(always)]
    pub(crate) fn is_signalled(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// The flag that [`signal`](Self::signal) sets.
    pub(crate) fn signalled(&self) -> &AtomicBool {
        &self.changed
    }

    /// Whether there was a signal; takes it.
    pub(crate) fn take_signal(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// IRR: 64 of the 256 request bits.
    pub fn requests(&self, word: usize) -> u64 {
        self.requested[word & 3].load(Ordering::Acquire)
    }

    /// Makes `requests` the four words of IRR, whatever was requested before.
    pub(crate) fn restore(&self, requests: [u64; 4]) {
        for (word, requests) in self.requested.iter().zip(requests) {
            word.store(requests, Ordering::Release);
        }
        self.signal();
    }

    /// The requested interrupt of the highest priority.
    pub(crate) fn highest(&self) -> Option<u8> {
        if self.requests(0) >> NON_MASKABLE & 1 != 0 {
            return Some(NON_MASKABLE);
        }
        if self.requests(0) & 1 != 0 {
            return Some(0);
        }
        highest_of(std::array::from_fn(|word| self.requests(word)))
    }

    /// Withdraws a request, when it is accepted.
    pub(crate) fn accept(&self, vector: u8) {
        self.requested[usize::from(vector / 64)].fetch_and(!(1 << (vector % 64)), Ordering::AcqRel);
    }
}

/// The highest bit of 256.
pub(crate) fn highest_of(words: [u64; 4]) -> Option<u8> {
    let word = words.iter().rposition(|&word| word != 0)?;
    Some((word as u32 * 64 + 63 - words[word].leading_zeros()) as u8)
}

/// Whether an interrupt may be delivered over one in service and the task priority register (manual volume
/// 2, table 5-8): the non-maskable one always, others if their class of 16 vectors is above both.
pub(crate) fn may_interrupt(vector: u8, in_service: Option<u8>, task_priority: u64) -> bool {
    if vector == NON_MASKABLE {
        return in_service != Some(NON_MASKABLE);
    }
    if in_service == Some(NON_MASKABLE) {
        return false;
    }
    // An interrupt of an 8259 counts as the lowest priority.
    let class = |vector: u8| u64::from(vector) >> 4;
    let masks_all = task_priority >> 16 & 1 != 0;
    let masked_class = task_priority >> 4 & 0xf;
    !masks_all
        && in_service.is_none_or(|serving| class(vector) > class(serving))
        && (class(vector) > masked_class || masked_class == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_request_comes_first_and_the_non_maskable_one_before_all() {
        let interrupts = Interrupts::default();
        interrupts.request(0x31);
        interrupts.request(0xef);
        assert_eq!(interrupts.highest(), Some(0xef));
        interrupts.request(2);
        assert_eq!(interrupts.highest(), Some(2));
        interrupts.accept(2);
        interrupts.accept(0xef);
        assert_eq!(interrupts.highest(), Some(0x31));
        interrupts.request(7);
        assert_eq!(
            interrupts.requests(0) >> 7 & 1,
            0,
            "reserved vectors are not requested"
        );
    }

    #[test]
    fn priority_is_by_class() {
        assert!(may_interrupt(0x40, Some(0x3f), 0));
        assert!(!may_interrupt(0x4f, Some(0x40), 0));
        assert!(!may_interrupt(0x40, None, 4 << 4));
        assert!(may_interrupt(0x50, None, 4 << 4));
        assert!(!may_interrupt(0xf0, None, 1 << 16));
        assert!(may_interrupt(2, Some(0xff), 1 << 16));
    }
}
