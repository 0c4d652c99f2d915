//! A piece of code by itself: in which cycle each instruction issues, and why not earlier.
//!
//! [`time`] shows bundles in their order, no branch taken; [`execution`] runs them.

pub mod execution;

use sidestep_ia64::encoding::Bundle;
use sidestep_ia64::execution::{Dynamic, Observer, Place, Untranslated};
use sidestep_itanium2::profile::Group;
use sidestep_itanium2::{Parameters, Pipeline};

use sidestep_symbols::Section;

/// Cycles that the pipeline rests between the pass that warms the caches and the one that is shown.
const REST: u64 = 200;

/// Shows the bundles to a pipeline twice: once to warm it, once for the table.
pub fn time(parameters: &Parameters, section: &Section<'_>, range: std::ops::Range<usize>) -> Vec<Group> {
    let mut pipeline = Pipeline::new(parameters.clone());
    let start = range.start & !15;
    let pass = |pipeline: &mut Pipeline| {
        for offset in (start..range.end).step_by(16) {
            if let Some(bundle) = bundle_at(section, offset) {
                show(pipeline, section.address + offset as u64, bundle);
            }
        }
    };
    pass(&mut pipeline);
    pipeline.rest(REST);
    pipeline.enable_timeline();
    pass(&mut pipeline);
    pipeline.take_timeline()
}

/// The bundle at an offset of a section, if it has all of its bytes.
pub fn bundle_at(section: &Section<'_>, offset: usize) -> Option<Bundle> {
    let bytes = section.data.get(offset..offset + 16)?;
    Some(Bundle::from_bytes(bytes.try_into().ok()?))
}

fn show(pipeline: &mut Pipeline, ip: u64, bundle: Bundle) {
    for decoded in bundle.decode() {
        let Ok(instruction) = decoded.instruction else {
            continue;
        };
        let known = pipeline.decode(&instruction, &decoded);
        let slot = decoded.slot;
        pipeline.retired(
            &known,
            &Dynamic {
                place: Place { ip, slot },
                executed: true,
                reference: None,
                taken: None,
                memory: &Untranslated,
            },
        );
    }
}
