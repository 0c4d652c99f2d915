//! Any text is a VMM's hello or is refused; the regions of one that is read lie within the address space, apart.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidestep_gang_linux::watch::userfault::Hello;

fuzz_target!(|text: &str| {
    if let Ok(hello) = Hello::parse(text) {
        for (number, region) in hello.regions.iter().enumerate() {
            assert!(region.holds(region.address, region.size));
            let others = hello.regions.iter().enumerate().filter(|&(other, _)| other != number);
            assert!(others.into_iter().all(|(_, other)| other.page_of(region.address).is_none()));
        }
    }
});
