//! Any guest leaves the host program alone, and its virtual machine does the same each time.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/hostile/mod.rs"]
mod hostile;

fuzz_target!(|data: &[u8]| {
    assert_eq!(hostile::outcome(data), hostile::outcome(data));
});
