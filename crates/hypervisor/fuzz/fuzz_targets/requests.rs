//! Whatever a guest asks for, by exit, by slot or by call, another virtual machine gets what it gets alone.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/hostile/mod.rs"]
mod hostile;

fuzz_target!(|data: &[u8]| hostile::script_is_harmless(data));
