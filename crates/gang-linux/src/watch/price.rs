//! What a scan, a fault and its report take on this host, measured when a watch begins.
//!
//! Pages of the watcher's own are touched for the first time, with and without reports. Such a fault also finds and
//! clears a page, which a hint fault does not; a hint fault's page was taken away by a scan before, and the processor
//! forgot its translation. A hint fault is therefore charged as two first touches. What a scan does to a page is what
//! forbidding all access to it does.

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};
use rustix::time::{ClockId, clock_gettime};

use super::budget::Prices;
use super::fault::Faults;
use crate::memory::PAGE;

/// Pages of a batch: few enough for the measurement to take a millisecond or two in all.
const PAGES: usize = 64;
/// Batches with and without reports each; the cheapest counts, as any other was disturbed.
const BATCHES: usize = 8;

/// What is charged where nothing can be measured: a slow host's.
const DEAR: Prices = Prices {
    hint_fault_ns: 5_000,
    report_ns: 2_000,
    scanned_ns: 100,
};

/// What is charged for a fault that another thread resolves, where that cannot be measured.
pub(super) const DEAR_ROUND_TRIP_NS: u64 = 50_000;

/// Measures the prices; leaves the reports on.
pub(super) fn measure(faults: &Faults) -> Prices {
    let (mut least, mut least_scan) = ([u64::MAX; 2], u64::MAX);
    for _ in 0..BATCHES {
        for is_reported in [false, true] {
            faults.report(is_reported);
            let Some((batch_ns, scan_ns)) = first_touches_and_scan_ns() else {
                faults.report(true);
                return DEAR;
            };
            let slot = &mut least[usize::from(is_reported)];
            *slot = batch_ns.min(*slot);
            least_scan = scan_ns.min(least_scan);
        }
    }
    let touches = PAGES as u64;
    Prices {
        hint_fault_ns: (2 * least[0]).div_ceil(touches),
        report_ns: least[1].saturating_sub(least[0]).div_ceil(touches),
        scanned_ns: least_scan.div_ceil(touches),
    }
}

/// This thread's time on a core.
pub(super) fn own_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The time that the first touches of a batch of new pages take, and that it takes to forbid access to them; `None` if
/// there is no memory for them.
fn first_touches_and_scan_ns() -> Option<(u64, u64)> {
    let length = PAGES * PAGE;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping at an address of the kernel's choice; nothing of ours is there.
    let memory =
        unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the range is the mapping just made. A kernel without huge pages refuses, and has no need of it.
    let _ = unsafe { madvise(memory, length, Advice::LinuxNoHugepage) };
    let began = own_time_ns();
    for page in 0..PAGES {
        // SAFETY: within the mapping, which is writable and not seen by anyone else.
        unsafe { memory.cast::<u8>().add(page * PAGE).write_volatile(1) };
    }
    let touched = own_time_ns();
    // SAFETY: the range is the mapping just made, and nobody else knows of it.
    let forbidden = unsafe { mprotect(memory, length, MprotectFlags::empty()) };
    let scanned = own_time_ns();
    // SAFETY: this mapping was made above with this length, and no reference to it is left.
    let unmapped = unsafe { munmap(memory, length) };
    debug_assert!(unmapped.is_ok(), "a mapping of ours can be unmapped");
    forbidden.ok()?;
    Some((touched - began, scanned - touched))
}
