//! Any guest leaves the host program alone, whatever it does to devices and their queues.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/registers/probe.rs"]
mod probe;

fuzz_target!(|data: &[u8]| {
    probe::probe(data);
});
