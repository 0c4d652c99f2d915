//! Any guest in system mode leaves the host program alone, and behaves the same when it is stopped or watched.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/random_guest/mod.rs"]
mod random_guest;

fuzz_target!(|data: &[u8]| {
    let difference = random_guest::compare(data, 1000);
    assert!(difference.is_none(), "{difference:#x?}");
});
