//! Minor faults of memory that a VMM lets a watcher see, by `userfaultfd`.
//!
//! Nothing of the host changes, and nobody but this one VMM pays. It has to cooperate: its guest's memory is shared
//! memory (a memfd, or a file of huge pages), and it offers it on a socket ([`Offer`]). A watcher that connects
//! ([`Guest`]) gets a userfaultfd with which the memory is registered, and asks now and then for a part of it to fault
//! again. The VMM takes that part out of its page tables; the bytes stay, as they are the file's. The next thread that
//! touches such a page waits until the watcher, which is told thread and address, lets it go on.
//!
//! **Nobody waits for a watcher that is gone.** When it ends, however it does, its connection ends with it, and when it
//! says nothing for [`PATIENCE`] (it is stopped, or the host starves it) it counts as gone. Then the VMM takes back the
//! registration, which lets all waiting threads go on, and that needs nobody's help but the kernel's.
//!
//! Memory is named by its file, so that what several processes share and offer is the same memory in all of them.
//!
//! Limits: one watcher at a time; threads have the numbers of the VMM's own PID namespace; a page that is in memory for
//! the first time is no minor fault and not seen; a VMM that unmaps offered memory has to end the offer first.

mod guest;
mod kernel;
mod offer;
mod protocol;

pub use guest::Guest;
pub use offer::{Offer, PATIENCE};
pub use protocol::{GuestRegion, Hello, Request, VERSION};

pub(super) use guest::round_trip_ns;
