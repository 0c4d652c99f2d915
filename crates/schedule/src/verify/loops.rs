//! A loop against its pipelined version, or branches against predicates, in random states with random counts, and the
//! cycles of both on the model.

use sidestep_ia64::FaultKind;
use sidestep_ia64::encoding::{Bundle, Effects, Instruction, Template, Unit};
use sidestep_ia64::execution::Observer;
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_itanium2::{Parameters, Pipeline};

use super::REST;
use super::assertions::{References, is_absent};
use super::equivalence::{Compared, Difference, alone};
use super::ground::{CODE_END, End, Ground, Setting};
use crate::block::Block;
use crate::bundle::nop;
use crate::sanitizer::Sanitizer;
use crate::sequencing::Parts;

/// Instructions that a run has at most.
const INSTRUCTIONS_MAX: u64 = 200_000;
/// Instructions behind which a loop counts as one whose condition does not end it in this state.
const ENDLESS: u64 = 1_000;

/// Code with one loop in it.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// Its bundles.
    pub bundles: &'a [Bundle],
    /// The one that the loop's branch goes to.
    pub kernel: usize,
    /// Branches that go elsewhere: the bundle that one is in, the one that it goes to.
    pub aims: &'a [(usize, usize)],
    /// The frame in which it runs.
    pub frame: FrameMarker,
    /// The predicate of the compare that ends it, as that names it, if a condition does.
    pub condition: Option<u8>,
}

/// A compare that ends a loop, and how often it is to say that it goes on.
struct Forced {
    place: (u64, u8),
    /// Its own predicate.
    qualifier: u8,
    /// The predicate that it writes to say so, and the other one.
    targets: (u8, u8),
    left: u64,
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
            let aim = self.aims.iter().find(|(from, _)| *from == index);
            let target = aim.map_or(self.kernel, |(_, to)| *to);
            let distance = (target as i64 - index as i64) * 16;
            let aimed = aimed(*bundle, distance);
            ground
                .code
                .push((self.start() + 16 * index as u64, aimed.to_bytes()));
        }
        ground
    }

    /// The compare that ends the loop, for as many iterations.
    fn forced(&self, count: u64) -> Option<Forced> {
        let condition = self.condition?;
        let bundles = self.bundles.iter().enumerate().skip(self.kernel);
        let found = bundles.flat_map(|(index, bundle)| {
            let decoded = bundle
                .decode()
                .filter_map(|slot| Some((slot.slot, slot.instruction.ok()?)));
            decoded.map(move |(slot, instruction)| (index, slot, instruction))
        });
        // A move to all predicates writes it too.
        let writes = |instruction: &Instruction| {
            let effects = crate::sequencing::Effects::of(instruction);
            effects.complements && effects.all_writes().predicate >> condition & 1 != 0
        };
        let found = found.filter(|(_, _, instruction)| writes(instruction));
        let (index, slot, compare) = found.last()?;
        let (first, second) = (compare.p1(), compare.p2());
        Some(Forced {
            place: (self.start() + 16 * index as u64, slot),
            qualifier: compare.predicate(),
            targets: (condition, if first == condition { second } else { first }),
            left: count,
        })
    }

    /// Runs from where the processor stands; the condition says that the loop ends behind as many iterations, or what
    /// it says by itself.
    fn run<O: Observer>(&self, ground: &mut Ground, count: Option<u64>, limit: u64, observer: &mut O) -> End {
        let Some(mut forced) = count.and_then(|count| self.forced(count)) else {
            return ground.run(limit, observer);
        };
        ground.run_stepwise(limit, observer, |processor, place, predicates| {
            if place != forced.place || predicates >> forced.qualifier & 1 == 0 {
                return;
            }
            forced.left = forced.left.saturating_sub(1);
            processor.set_predicate(forced.targets.0, forced.left > 0);
            processor.set_predicate(forced.targets.1, forced.left == 0);
        })
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
        // Half of the loops that a condition ends do so when their data say, the others at a number of iterations.
        let count = (original.condition.is_some() && seed % 2 == 1).then_some(1 + seed / 2 % 8);
        let limit = match original.condition {
            None => INSTRUCTIONS_MAX,
            Some(_) => ENDLESS,
        };
        let first = one_by_one.run(&mut begin(&one_by_one), count, limit, &mut seen);
        if original.condition.is_some() && matches!(first, End::Faulted(FaultKind::SingleStep, _)) {
            compared.excluded += 1;
            continue;
        }
        if seen.overlap(&block.areas, one_by_one.start()) {
            compared.excluded += 1;
            continue;
        }
        // With the values that there are: predicates, and which registers rotating ones are.
        let mut groups = Sanitizer::new(false);
        let second = pipelined.run(&mut begin(pipelined), count, INSTRUCTIONS_MAX, &mut groups);
        if let Some(found) = groups.findings().iter().next() {
            let what = format!("a group of the pipelined loop has a dependency on {}", found.on);
            return Err(Difference { seed, what });
        }
        match (first, second) {
            (End::Faulted(_, ip), _) if is_absent(block, (ip - one_by_one.start()) / 16) => {
                compared.excluded += 1;
            }
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

/// Compares code with branches with another version of it in as many random states, one way and the other in turn: a
/// condition that is said twice is on.
///
/// # Errors
/// [`Difference`], of the first state that shows one.
pub fn compare_ways(original: &Trial<'_>, other: &Trial<'_>, states: u64) -> Result<Compared, Difference> {
    let mut compared = Compared::default();
    for seed in 0..states {
        let run = |trial: &Trial<'_>| {
            let mut ground = trial.ground(seed);
            ground.begin(trial.start(), &trial.setting(), |bits| bits);
            trial.run(&mut ground, Some(1 + seed / 4 % 2), INSTRUCTIONS_MAX, &mut ())
        };
        match (run(original), run(other)) {
            (End::Faulted(..), End::Faulted(..)) => compared.faulted += 1,
            (End::Reached(first), End::Reached(second)) => {
                if let Some(what) = first.difference(&second, &Parts::NONE) {
                    return Err(Difference { seed, what });
                }
                compared.completed += 1;
            }
            (first, second) => {
                let what = format!("with branches it {first}, with predicates {second}");
                return Err(Difference { seed, what });
            }
        }
    }
    Ok(compared)
}

/// Cycles of so many iterations on the model, from before the loop to behind it, every reference a hit.
pub fn cycles(trial: &Trial<'_>, count: u64, parameters: &Parameters) -> u64 {
    let mut pipeline = Pipeline::new(parameters.clone());
    // Memory of a loop that a condition ends holds small numbers, so that it can be a list.
    let mut ground = trial.ground(u64::from(trial.condition.is_some()));
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
        trial.run(&mut ground, Some(count), INSTRUCTIONS_MAX, &mut pipeline);
        pipeline.rest(0);
        taken = pipeline.cycles() - before;
    }
    taken
}
