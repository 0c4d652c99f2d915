//! The guests of these experiments: kernel and programs, assembled from the sources in `guests/cefos`.

use std::collections::BTreeMap;

use sidestep_fuce::assembler::assemble;
use sidestep_fuce::image::Image;
use sidestep_guests::cefos::SOURCES;
use sidestep_lab::PointError;

use crate::failed;

/// Assembles a program, with or without software queues before the gates.
pub fn build(name: &str, software_queue: bool) -> Result<Image, PointError> {
    let read = |wanted: &str| {
        let found = SOURCES.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, source)| source.to_string())
    };
    let source = read(name).ok_or_else(|| PointError::Failed(format!("no guest is called {name}")))?;
    let constants = BTreeMap::from([("SOFTWARE_QUEUE".to_string(), i64::from(software_queue))]);
    assemble(name, &source, &constants, &read)
        .map(|assembly| assembly.image)
        .map_err(failed)
}
