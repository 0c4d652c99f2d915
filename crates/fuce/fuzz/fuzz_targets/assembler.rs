//! Any text: the assembler answers with an image or with errors.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sidestep_fuce::assembler::assemble_text;

fuzz_target!(|source: &str| {
    let _ = assemble_text("fuzz.s", source);
});
