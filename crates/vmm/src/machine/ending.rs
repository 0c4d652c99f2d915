//! How devices and firmware end the machine.

use std::sync::atomic::{AtomicU64, Ordering};

const NONE: u64 = u64::MAX;

/// The machine's end, as long as nobody has asked for it: none.
#[derive(Debug)]
pub struct Ending(AtomicU64);

impl Default for Ending {
    fn default() -> Ending {
        Ending(AtomicU64::new(NONE))
    }
}

impl Ending {
    /// Ends the machine with this exit code, at the end of the current time slice; the first to ask decides.
    pub fn request(&self, code: u32) {
        let _ = self
            .0
            .compare_exchange(NONE, u64::from(code), Ordering::AcqRel, Ordering::Acquire);
    }

    /// The exit code, if somebody has asked for the end.
    pub fn code(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|&code| code != NONE)
    }
}
