//! The result against the original: on the pipeline, cycle by cycle, and on the interpreter, in random states.

mod assertions;
pub mod equivalence;
mod ground;
pub mod loops;

use sidestep_ia64::encoding::{Bundle, Operation};
use sidestep_ia64::execution::{Dynamic, Observer, Place, Untranslated};
use sidestep_itanium2::{Group, Parameters, Pipeline};

/// Where the bundles stand: the front end takes pairs from there.
pub(crate) const CODE: u64 = 0x10000;
/// Cycles that the pipeline rests between the pass that warms the caches and the one that is measured.
const REST: u64 = 200;

/// The groups of bundles, one after the other, no branch taken, every predicate on, every load a hit, as the model
/// issues them; cycles count from the first.
pub fn timeline(bundles: &[Bundle], parameters: &Parameters) -> Vec<Group> {
    let mut pipeline = Pipeline::new(parameters.clone());
    show(&mut pipeline, bundles);
    pipeline.rest(REST);
    pipeline.enable_timeline();
    show(&mut pipeline, bundles);
    let mut groups = pipeline.take_timeline();
    let first = groups.first().map_or(0, |group| group.cycle);
    for group in &mut groups {
        group.cycle -= first;
    }
    groups
}

/// Cycles of bundles on the model, from the first issue to the last.
pub fn cycles(bundles: &[Bundle], parameters: &Parameters) -> u32 {
    timeline(bundles, parameters)
        .last()
        .map_or(0, |group| group.cycle as u32 + 1)
}

/// The cycle of each instruction of bundles that is no `nop`, in order.
pub fn placement(bundles: &[Bundle], parameters: &Parameters) -> Vec<u32> {
    let mut cycles = Vec::new();
    for group in timeline(bundles, parameters) {
        for issued in group.instructions {
            let bundle = bundles[((issued.ip - CODE) / 16) as usize];
            let decoded = bundle.decode().find(|decoded| decoded.slot == issued.slot);
            let instruction = decoded.and_then(|decoded| decoded.instruction.ok());
            if instruction.is_some_and(|instruction| instruction.operation != Operation::Nop) {
                cycles.push(group.cycle as u32);
            }
        }
    }
    cycles
}

fn show(pipeline: &mut Pipeline, bundles: &[Bundle]) {
    for (index, bundle) in bundles.iter().enumerate() {
        for decoded in bundle.decode() {
            let Ok(instruction) = decoded.instruction else {
                continue;
            };
            let known = pipeline.decode(&instruction, &decoded);
            let dynamic = Dynamic {
                place: Place {
                    ip: CODE + 16 * index as u64,
                    slot: decoded.slot,
                },
                executed: true,
                reference: None,
                taken: None,
                memory: &Untranslated,
            };
            pipeline.retired(&known, &dynamic);
        }
    }
}
