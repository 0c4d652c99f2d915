//! Any text as a description: an error that names its place, or a description; and of a bare machine, a machine or an
//! error that says why not.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use serde::de::DeserializeOwned;
use sidestep_machine::description::{self, bare, kernel};

/// Reads a description of one kind; where it is none, its error stands inside the text.
fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    match description::parse("fuzz.toml", text) {
        Ok(description) => Some(description),
        Err(error) => {
            let line = text.split('\n').nth(error.line - 1).expect("a line of the text");
            assert!(error.column <= line.chars().count() + 1, "{error}");
            assert!(!error.message.is_empty());
            None
        }
    }
}

fuzz_target!(|text: &str| {
    read::<kernel::Description>(text);
    let Some(mut description) = read::<bare::Description>(text) else {
        return;
    };
    // Which files the host has is not the input's to say.
    description.image.file = "machine-console".into();
    description
        .memory
        .iter_mut()
        .for_each(|memory| memory.file = None);
    description.machine.processors = description.machine.processors.min(1000);
    let images = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../guests/ia64/bin"));
    if let Err(error) = description.build(images, Box::new(std::io::sink())) {
        assert!(!error.to_string().is_empty());
    }
});
