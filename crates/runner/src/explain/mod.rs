//! A piece of code by itself: in which cycle each instruction issues, and why not earlier.
//!
//! [`time`] shows bundles in their order, no branch taken; [`execution`] runs them.

pub mod execution;

use std::sync::Arc;

use sidestep_ia64::encoding::Bundle;
use sidestep_ia64::execution::{Observer, Retired};
use sidestep_ia64::{Access, AddressSpace, HostPage, Processor, Refusal, VirtualAddress};
use sidestep_itanium2::profile::Group;
use sidestep_itanium2::{Parameters, Pipeline};

use crate::image::Section;

/// Cycles that the pipeline rests between the pass that warms the caches and the one that is shown.
const REST: u64 = 200;

/// Shows the bundles to a pipeline twice: once to warm it, once for the table.
pub fn time(parameters: &Parameters, section: &Section<'_>, range: std::ops::Range<usize>) -> Vec<Group> {
    let mut pipeline = Pipeline::new(parameters.clone());
    let processor = Processor::new(Arc::new(Nothing));
    let start = range.start & !15;
    let pass = |pipeline: &mut Pipeline| {
        for offset in (start..range.end).step_by(16) {
            if let Some(bundle) = bundle_at(section, offset) {
                show(pipeline, &processor, section.address + offset as u64, bundle);
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

fn show(pipeline: &mut Pipeline, processor: &Processor, ip: u64, bundle: Bundle) {
    for decoded in bundle.decode() {
        let Ok(instruction) = decoded.instruction else {
            continue;
        };
        pipeline.retired(
            processor,
            &Retired {
                ip,
                slot: decoded.slot,
                instruction: &instruction,
                stop: decoded.stop,
                template: decoded.template,
                executed: true,
                reference: None,
                taken: None,
            },
        );
    }
}

/// Memory that nobody looks at: nothing executes.
struct Nothing;

// SAFETY: no page is ever returned.
unsafe impl AddressSpace for Nothing {
    fn resolve(&self, _: VirtualAddress, _: Access) -> Result<HostPage, Refusal> {
        Err(Refusal::NotPresent)
    }
}
