//! Any text as the description of a host, or as a table of costs: an error that names its place, or what it describes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::de::DeserializeOwned;
use sidestep_hypervisor::HostCosts;
use sidestep_hypervisor::description::Description;
use sidestep_machine::description;

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
    read::<Description>(text);
    let _ = HostCosts::parse(text);
});
