//! Whatever a guest writes into its rings and stores for the card, another virtual machine gets what it gets alone.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/hostile/mod.rs"]
mod hostile;

fuzz_target!(|data: &[u8]| hostile::rings_are_harmless(data));
