//! Any text is a journal or is refused.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use sidestep_gang_linux::journal;

fuzz_target!(|text: &str| {
    let _ = journal::parse(Path::new("fuzz"), text);
});
