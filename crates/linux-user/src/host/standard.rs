//! Standard descriptors that were closed when this process began.
//!
//! Rust's runtime opens `/dev/null` in their place before `main`, so that no other file gets their numbers; a program
//! is to find them closed, as it was started.

use std::sync::atomic::{AtomicU8, Ordering};

/// The standard descriptors.
const STANDARD: [i32; 3] = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO];

/// A bit for each that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Has [`note`] called before the runtime looks.
// SAFETY: what is in this section is called once, with three arguments that `note` need not take; the symbol has no
// other use.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    for descriptor in STANDARD {
        // SAFETY: asking for a descriptor's flags touches no memory.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}

/// Closes again what was closed when the process began, once: later it may be somebody's.
pub fn close_again() {
    let closed = CLOSED.swap(0, Ordering::Relaxed);
    for descriptor in STANDARD {
        if closed >> descriptor & 1 != 0 {
            // SAFETY: nobody but the runtime has opened it, which leaves it alone from then on.
            unsafe { libc::close(descriptor) };
        }
    }
}
