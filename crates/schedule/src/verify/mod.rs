//! The result against the original: on the pipeline, cycle by cycle, and on the interpreter, in random states.

mod assertions;
pub mod equivalence;
mod ground;
pub mod loops;

use sidestep_ia64::encoding::{Bundle, Operation};
use sidestep_ia64::execution::{Dynamic, Observer, Place, Untranslated};
use sidestep_itanium2::{Group, Parameters, Pipeline};

use crate::worlds::{World, Worlds};

/// Where the bundles stand: the front end takes pairs from there.
pub(crate) const CODE: u64 = 0x10000;
/// Cycles that the pipeline rests between the pass that warms the caches and the one that is measured.
const REST: u64 = 200;

/// The groups of bundles, one after the other, no branch taken, every load a hit, as the model issues them in a world;
/// cycles count from the first.
pub fn timeline(bundles: &[Bundle], world: &World, parameters: &Parameters) -> Vec<Group> {
    let mut pipeline = Pipeline::new(parameters.clone());
    show(&mut pipeline, bundles, world);
    pipeline.rest(REST);
    pipeline.enable_timeline();
    show(&mut pipeline, bundles, world);
    let mut groups = pipeline.take_timeline();
    let first = groups.first().map_or(0, |group| group.cycle);
    for group in &mut groups {
        group.cycle -= first;
    }
    groups
}

/// The same in the worst of several worlds.
pub fn worst(bundles: &[Bundle], worlds: &Worlds, parameters: &Parameters) -> Vec<Group> {
    let timelines = worlds.iter().map(|world| timeline(bundles, world, parameters));
    // Of several as bad the first.
    let worst = timelines.reduce(|worst, next| match length(&next) > length(&worst) {
        true => next,
        false => worst,
    });
    worst.unwrap_or_default()
}

/// Cycles of groups, from the first issue to the last.
pub(crate) fn length(groups: &[Group]) -> u32 {
    groups.last().map_or(0, |group| group.cycle as u32 + 1)
}

/// Cycles of bundles on the model in the worst of several worlds.
pub fn cycles(bundles: &[Bundle], worlds: &Worlds, parameters: &Parameters) -> u32 {
    length(&worst(bundles, worlds, parameters))
}

/// The same of the worlds that are seen in the bundles themselves.
pub fn cycles_of_code(bundles: &[Bundle], parameters: &Parameters) -> u32 {
    cycles(bundles, &Worlds::of_code(bundles), parameters)
}

/// The cycle of each instruction of bundles that is no `nop`, in order, in a world.
pub fn placement(bundles: &[Bundle], world: &World, parameters: &Parameters) -> Vec<u32> {
    let mut cycles = Vec::new();
    for group in timeline(bundles, world, parameters) {
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

fn show(pipeline: &mut Pipeline, bundles: &[Bundle], world: &World) {
    let mut executed = world.iter();
    for (index, bundle) in bundles.iter().enumerate() {
        for decoded in bundle.decode() {
            let Ok(instruction) = decoded.instruction else {
                continue;
            };
            let is_nop = instruction.operation == Operation::Nop;
            let known = pipeline.decode(&instruction, &decoded);
            let dynamic = Dynamic {
                place: Place {
                    ip: CODE + 16 * index as u64,
                    slot: decoded.slot,
                },
                executed: is_nop || executed.next().is_none_or(|executed| *executed),
                reference: None,
                taken: None,
                memory: &Untranslated,
            };
            pipeline.retired(&known, &dynamic);
        }
    }
}
