//! Any bytes as a kernel or bare image, also a compressed one: loaded inside memory, or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sidestep_machine::compressed;
use sidestep_machine::image;
use sidestep_machine::memory::{GuestMemory, MemoryRange};

fuzz_target!(|bytes: &[u8]| {
    let range = MemoryRange::ram(0x10_0000, 1 << 20);
    let Ok(expanded) = compressed::expand(bytes, 4 << 20) else {
        return;
    };
    assert!(expanded.len() <= 4 << 20);
    let memory = GuestMemory::new(&[range]).expect("a good layout");
    if let Ok(loaded) = image::load(&memory, &expanded) {
        assert!(loaded.entry.0.is_multiple_of(16));
        assert!(range.start <= loaded.start && loaded.start < loaded.end && loaded.end.0 <= range.end());
    }
});
