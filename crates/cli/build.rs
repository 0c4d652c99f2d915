//! Links the command at a fixed address.
//!
//! An Itanium program that executes another starts the command anew, a configure script thousands of times. As a
//! position-independent executable it has 31,000 pointers to relocate each time, in 120 pages that are copied for it: a
//! quarter of the time until the program's first instruction. Heap, stack, libraries and what guests map stay at
//! addresses that nobody can foretell.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let setting = |name: &str| env::var(name).unwrap_or_default();
    let is_dynamic = !setting("CARGO_CFG_TARGET_FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static");
    // A static one is told by `-C relocation-model`, as contrib/release/build does.
    if setting("CARGO_CFG_TARGET_OS") == "linux" && setting("CARGO_CFG_TARGET_ENV") == "gnu" && is_dynamic {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
