//! A process that stands for a VMM with a thread for each of four vCPUs: its guest's memory is a memfd's, and whoever
//! wants to know which vCPUs share it can watch.
//!
//! ```text
//! cargo run -p sidestep-gang-linux --example guest_memory -- /tmp/guest.socket &
//! sidestep gang watch --userfaultfd /tmp/guest.socket
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sidestep_gang_linux::HostError;
use sidestep_gang_linux::memory::{PAGE, SharedMemory};
use sidestep_gang_linux::watch::userfault::{GuestRegion, Offer};

const VCPUS: usize = 4;
const PAGES_EACH: usize = 256;
const WORDS: usize = PAGE / size_of::<AtomicU64>();

fn main() -> Result<(), HostError> {
    let socket = std::env::args().nth(1).unwrap_or("guest.socket".to_owned());
    let ram = SharedMemory::new(VCPUS * PAGES_EACH * PAGE)?;
    let region = GuestRegion {
        address: ram.address(),
        size: ram.bytes(),
        page_size: PAGE as u64,
    };
    // SAFETY: the offer is dropped before the memory, which stays mapped until then.
    let offer = unsafe { Offer::new(Path::new(&socket), vec![region]) }?;
    println!("guest memory is offered on {socket} for a minute");
    let began = Instant::now();
    std::thread::scope(|scope| {
        for vcpu in 0..VCPUS {
            let ram = ram.words();
            scope.spawn(move || {
                // vCPUs 0 and 1 share a part of the memory, and so do 2 and 3.
                let from = vcpu / 2 * 2 * PAGES_EACH;
                while began.elapsed() < Duration::from_secs(60) {
                    for page in from..from + 2 * PAGES_EACH {
                        ram[page * WORDS + vcpu].fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    drop(offer);
    Ok(())
}
