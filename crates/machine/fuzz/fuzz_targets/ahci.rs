//! Any driver of the AHCI controller, its commands and its disks leaves the host program alone.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/registers/probe.rs"]
#[allow(dead_code, reason = "only its cable and its console are of use here")]
mod probe;
#[path = "../../tests/registers/requests.rs"]
mod requests;

fuzz_target!(|data: &[u8]| {
    requests::request(requests::Device::Ahci, data);
});
