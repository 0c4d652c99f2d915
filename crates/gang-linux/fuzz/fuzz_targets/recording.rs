//! Any text is a recording or is refused; a recording that is read is consistent.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use sidestep_gang_linux::recording::Recording;

fuzz_target!(|text: &str| {
    if let Ok(recording) = Recording::parse(Path::new("fuzz"), text) {
        assert_eq!(recording.threads.len(), recording.matrix.tasks());
    }
});
