//! Whatever a kernel's driver does to the virtio device in front of its interface, another virtual machine gets what it
//! gets alone.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/hostile/mod.rs"]
mod hostile;

fuzz_target!(|data: &[u8]| hostile::driver_is_harmless(data));
