//! Any driver of a virtio device, which the first byte chooses, leaves the host program alone.

#![no_main]

use libfuzzer_sys::fuzz_target;
use requests::Device;

#[path = "../../tests/registers/probe.rs"]
#[allow(dead_code, reason = "only its cable and its console are of use here")]
mod probe;
#[path = "../../tests/registers/requests.rs"]
mod requests;

const DEVICES: [Device; 6] = [
    Device::Block,
    Device::Network,
    Device::Console,
    Device::Entropy,
    Device::Folder,
    Device::LegacyBlock,
];

fuzz_target!(|data: &[u8]| {
    if let Some((which, acts)) = data.split_first() {
        requests::request(DEVICES[usize::from(*which) % DEVICES.len()], acts);
    }
});
