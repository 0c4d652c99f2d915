//! A loop against its pipelined version, in random states with random counts, and the cycles of both on the model.

use sidestep_ia64::encoding::{Bundle, Effects, Template, Unit};
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_itanium2::{Parameters, Pipeline};

use super::REST;
use super::assertions::References;
use super::equivalence::{Compared, Difference, alone};
use super::ground::{CODE_END, End, Ground, Setting};
use crate::block::Block;
use crate::bundle::nop;
use crate::sanitizer::Sanitizer;
use crate::sequencing::Parts;

/// Instructions that a run has at most.
const INSTRUCTIONS_MAX: u64 = 200_000;

/// Code with one loop in it.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// Its bundles.
    pub bundles: &'a [Bundle],
    /// The one that the loop's branch goes to.
    pub kernel: usize,
    /// The frame in which it runs.
    pub frame: FrameMarker,
}

impl Trial<'_> {
    /// Where it begins: with a pair of bundles, as the front end takes them.
    fn start(&self) -> u64 {
        CODE_END - 16 * self.bundles.len().next_multiple_of(2) as u64
    }

    /// Memory with the code, its branch aimed.
    fn ground(&self, seed: u64) -> Ground {
        let mut ground = Ground::new(seed);
        let nops = Bundle::new(Template::new(0x10), [nop(Unit::M), nop(Unit::I), nop(Unit::B)]);
        let padding = (self.bundles.len() % 2 == 1).then_some(&nops);
        for (index, bundle) in self.bundles.iter().chain(padding).enumerate() {
            let distance = (self.kernel as i64 - index as i64) * 16;
            let aimed = aimed(*bundle, distance);
            ground
                .code
                .push((self.start() + 16 * index as u64, aimed.to_bytes()));
        }
        ground
    }

    fn setting(&self) -> Setting {
        Setting {
            frame: self.frame,
            ..Setting::straight(false)
        }
    }
}

/// A bundle whose branches go so many bytes on.
fn aimed(bundle: Bundle, distance: i64) -> Bundle {
    let mut slots = [bundle.slot(0), bundle.slot(1), bundle.slot(2)];
    for decoded in bundle.decode() {
        let Ok(instruction) = decoded.instruction else {
            continue;
        };
        if !instruction.is_relative() || !instruction.effects().contains(Effects::TRANSFERS) {
            continue;
        }
        let mut operands = instruction.form().operands.iter();
        let operand = operands.find(|operand| format!("{operand:?}").starts_with("Target"));
        let inserted =
            operand.and_then(|operand| operand.insert(distance, instruction.slot & !operand.mask(), 0));
        if let Some((bits, _)) = inserted {
            slots[usize::from(decoded.slot)] = bits;
        }
    }
    Bundle::new(bundle.template(), slots)
}

/// Compares a loop with another version of it in as many random states, but for what is dead behind it. Of the block's
/// instructions, one after the other, those that the source says to refer to areas of memory that lie apart do so, or
/// the state is left out.
///
/// # Errors
/// [`Difference`], of the first state that shows one.
pub fn compare(
    block: &Block,
    original: &Trial<'_>,
    pipelined: &Trial<'_>,
    dead: &Parts,
    states: u64,
) -> Result<Compared, Difference> {
    let bundles: Vec<Bundle> = (0..block.items.len())
        .map(|item| alone(&block.items[item], item).encode(&block.items))
        .collect();
    let one_by_one = Trial {
        bundles: &bundles,
        ..*original
    };
    let has_areas = block.areas.iter().any(Option::is_some);
    let mut compared = Compared::default();
    for seed in 0..states {
        let begin = |trial: &Trial<'_>| {
            let mut ground = trial.ground(seed);
            let setting = Setting {
                // Of random pointers into few places some nearly always meet.
                is_tame: has_areas && !seed.is_multiple_of(4),
                ..trial.setting()
            };
            ground.begin(trial.start(), &setting, |bits| bits);
            ground
        };
        let mut seen = References::default();
        let first = begin(&one_by_one).run(INSTRUCTIONS_MAX, &mut seen);
        if seen.overlap(&block.areas, one_by_one.start()) {
            compared.excluded += 1;
            continue;
        }
        // With the values that there are: predicates, and which registers rotating ones are.
        let mut groups = Sanitizer::new(false);
        let second = begin(pipelined).run(INSTRUCTIONS_MAX, &mut groups);
        if let Some(found) = groups.findings().iter().next() {
            let what = format!("a group of the pipelined loop has a dependency on {}", found.on);
            return Err(Difference { seed, what });
        }
        match (first, second) {
            (End::Faulted(..), End::Faulted(..)) => compared.faulted += 1,
            (End::Reached(first), End::Reached(second)) => {
                if let Some(what) = first.difference(&second, dead) {
                    return Err(Difference { seed, what });
                }
                compared.completed += 1;
            }
            (first, second) => {
                return Err(Difference {
                    seed,
                    what: format!("the loop {first}, pipelined {second}"),
                });
            }
        }
    }
    Ok(compared)
}

/// Cycles of so many iterations on the model, from before the loop to behind it, every reference a hit.
pub fn cycles(trial: &Trial<'_>, count: u64, parameters: &Parameters) -> u64 {
    let mut pipeline = Pipeline::new(parameters.clone());
    let mut ground = trial.ground(0);
    let setting = Setting {
        count: Some(count.saturating_sub(1)),
        is_tame: true,
        ..trial.setting()
    };
    let mut taken = 0;
    // The first pass warms the caches and shows the branch's way.
    for _ in 0..2 {
        ground.begin(trial.start(), &setting, |bits| bits);
        pipeline.detach();
        pipeline.rest(REST);
        let before = pipeline.cycles();
        ground.run(INSTRUCTIONS_MAX, &mut pipeline);
        pipeline.rest(0);
        taken = pipeline.cycles() - before;
    }
    taken
}
