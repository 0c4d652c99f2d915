//! A block against its schedule on random states, on the interpreter: registers with their NaT bits, memory, where it
//! goes, and whether it faults.
//!
//! The state is that of a kernel at privilege level 0. What comes first of two faults may change, as the instructions
//! may.

use sidestep_ia64::encoding::{Bundle, Effects, Form, Instruction, LoadKind, Operation, Template, Unit};

use super::assertions::{References, as_asserted, exclusive, is_absent};
use super::ground::{CODE_END, End, Ground, INSTRUCTIONS_MAX, Setting, State};
use crate::block::{Block, Item};
use crate::bundle::{Content, Placed};
use crate::sequencing::Parts;

/// Where the code that recovers behind checks stands, two bundles for each item: behind what branch registers point to.
const RECOVERY: u64 = CODE_END + 0x1800;

/// How many states were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// States in which neither faulted.
    pub completed: u32,
    /// States in which both did.
    pub faulted: u32,
    /// States in which what the source says of addresses does not hold, that what is resident is in memory among it.
    pub excluded: u32,
}

/// A state in which block and schedule differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schedule differs from the original in the random state {seed}: {what}")]
pub struct Difference {
    /// The seed of the state.
    pub seed: u64,
    /// What differs.
    pub what: String,
}

/// Code that is run: a block's bundles, and for each of its items the one of the original that it was.
struct Code<'a> {
    block: &'a Block,
    original: &'a Block,
    origins: &'a [usize],
    bundles: &'a [Placed],
    /// Whether speculative loads defer that a page is not mapped.
    defers: bool,
}

impl Code<'_> {
    /// Where its first bundle stands.
    fn start(&self) -> u64 {
        CODE_END - 16 * self.bundles.len() as u64
    }
}

/// Compares a block with its schedule in as many random states. The schedule is of a block with the same instructions
/// in another order, each with its origin in the first; registers may differ where nobody reads them.
///
/// A random state takes a branch soon. So in most states the first few of those that go on are left out, in both.
///
/// # Errors
/// [`Difference`], of the first state that shows one.
pub fn compare(
    block: &Block,
    (scheduled, origins, bundles): (&Block, &[usize], &[Placed]),
    states: u64,
) -> Result<Compared, Difference> {
    let alone: Vec<Placed> = (0..block.items.len())
        .map(|item| alone(&block.items[item], item))
        .collect();
    let (ref block, ref scheduled) = (as_asserted(block), as_asserted(scheduled));
    let own: Vec<usize> = (0..block.items.len()).collect();
    let defers = has_checks_alone(block, scheduled);
    let original = Code {
        block,
        original: block,
        origins: &own,
        bundles: &alone,
        defers,
    };
    let schedule = Code {
        block: scheduled,
        original: block,
        origins,
        bundles,
        defers,
    };
    let exits: Vec<usize> = own
        .iter()
        .copied()
        .filter(|item| block.items[*item].is_branch())
        .collect();
    let side_exits = &exits[..exits.len().saturating_sub(1)];
    let mut compared = Compared::default();
    for seed in 0..states {
        // All in half of the states, so that what is behind them is seen as often.
        let left_out = match seed % 2 {
            0 => side_exits.len(),
            _ => (seed / 2) as usize % (side_exits.len() + 1),
        };
        let left_out = &side_exits[..left_out];
        let mut seen = References::default();
        let first = run(&original, left_out, seed, &mut seen);
        if seen.overlap(&block.areas, original.start()) {
            compared.excluded += 1;
            continue;
        }
        let second = run(&schedule, left_out, seed, &mut References::default());
        match (first, second) {
            (End::Faulted(_, ip), _) if is_absent(block, (ip - original.start()) / 16) => {
                compared.excluded += 1
            }
            (End::Faulted(..), End::Faulted(..)) => compared.faulted += 1,
            // Of a fault and a branch behind it the branch may come first, where nobody reads what has faulted.
            (End::Faulted(..), End::Reached(state)) if is_at_side_exit(&state, block) => {
                compared.faulted += 1
            }
            (End::Reached(first), End::Reached(second)) => {
                if let Some(what) = first.difference(&second, &dead(&first, block)) {
                    return Err(Difference { seed, what });
                }
                compared.completed += 1;
            }
            (first, second) => {
                return Err(Difference {
                    seed,
                    what: format!("the original {first}, the schedule {second}"),
                });
            }
        }
    }
    Ok(compared)
}

/// An item in a bundle and a group of its own.
pub(super) fn alone(item: &Item, index: usize) -> Placed {
    let mut slots = [Content::Nop; 3];
    let content = Content::Item(index);
    let template = match item.instruction.unit {
        Unit::M => {
            slots[0] = content;
            0x08
        }
        Unit::I => {
            slots[1] = content;
            0x00
        }
        Unit::F => {
            slots[1] = content;
            0x0c
        }
        Unit::B => {
            slots[2] = content;
            0x10
        }
        Unit::L | Unit::X => {
            slots = [Content::Nop, Content::Half, content];
            0x04
        }
    };
    Placed {
        template,
        stop: true,
        slots,
    }
}

/// Where a branch of the original goes: those to one label to one place.
fn target(original: &Block, item: usize) -> u64 {
    let label = original.targets[item];
    let first = label.and_then(|_| original.targets.iter().position(|other| *other == label));
    CODE_END + 16 * (1 + first.unwrap_or(item) as u64)
}

/// Runs bundles in a random state; branches that are left out are `nop`s.
fn run(code: &Code<'_>, left_out: &[usize], seed: u64, seen: &mut References) -> End {
    let start = code.start();
    let mut ground = Ground::new(seed);
    let mut recoveries = Vec::new();
    for (index, placed) in code.bundles.iter().enumerate() {
        let address = start + 16 * index as u64;
        let mut placed = *placed;
        for content in &mut placed.slots {
            if matches!(*content, Content::Item(item) if left_out.contains(&code.origins[item])) {
                *content = Content::Nop;
            }
        }
        let bundle = aimed(code, &placed, address, recoveries.len());
        ground.code.push((address, bundle.to_bytes()));
        if let Content::Item(item) = placed.slots[0]
            && let Some(load) = &code.block.items[item].recovers
        {
            recoveries.push((*load, address));
        }
    }
    for (number, (load, check)) in recoveries.iter().enumerate() {
        let at = recovery(number);
        ground
            .code
            .push((at, recovering(load, check.wrapping_sub(at) as i64).to_bytes()));
    }
    let setting = Setting {
        defers: code.defers,
        ..Setting::straight(code.original.areas.iter().any(Option::is_some))
    };
    ground.begin(start, &setting, |bits| exclusive(code.original, bits));
    ground.run(INSTRUCTIONS_MAX, seen)
}

/// Whether all speculative loads of a schedule are those with checks: others, of what is resident or of the original,
/// would get a NaT that nobody looks for.
fn has_checks_alone(original: &Block, scheduled: &Block) -> bool {
    let is_speculative = |item: &Item| {
        let operation = item.instruction.operation;
        matches!(
            operation,
            Operation::Load {
                kind: LoadKind::Speculative,
                ..
            }
        )
    };
    scheduled.items.iter().any(|item| item.recovers.is_some())
        && !original.resident.contains(&true)
        && !original.items.iter().any(is_speculative)
}

/// Where the code of a check stands.
fn recovery(number: usize) -> u64 {
    RECOVERY + Bundle::BYTES * number as u64
}

/// A load, whatever its predicate is, and a branch.
fn recovering(load: &Instruction, distance: i64) -> Bundle {
    const PREDICATE: u64 = 0x3f;
    let branch = Form::named("br.cond").find(|form| form.operands.len() == 1 && form.immediate.is_some());
    let branch = branch.expect("a branch to an address");
    let branch = branch.encode(0, &[distance], &[]).expect("it is near");
    let nop = Form::named("nop.i").next().expect("it is an instruction");
    let nop = nop.encode(0, &[0], &[]).expect("a number");
    // MIB, with a stop at its end.
    Bundle::new(
        Template::new(0x11),
        [load.slot & !PREDICATE, nop.slot, branch.slot],
    )
}

/// The bundle at an address, each branch of which goes to a place of its own; checks go to the code of so many before.
fn aimed(code: &Code<'_>, placed: &Placed, address: u64, recoveries: usize) -> Bundle {
    let mut bundle = placed.encode(&code.block.items);
    for slot in 0..3u8 {
        let Content::Item(index) = placed.slots[usize::from(slot)] else {
            continue;
        };
        let instruction = &code.block.items[index].instruction;
        if !instruction.is_relative() || !instruction.effects().contains(Effects::TRANSFERS) {
            continue;
        }
        let target = match code.block.items[index].recovers {
            Some(_) => recovery(recoveries),
            None => target(code.original, code.origins[index]),
        };
        let operand = instruction
            .form()
            .operands
            .iter()
            .find(|operand| format!("{operand:?}").starts_with("Target"));
        let inserted = operand.and_then(|operand| {
            let distance = target.wrapping_sub(address) as i64;
            operand.insert(distance, instruction.slot & !operand.mask(), 0)
        });
        if let Some((bits, _)) = inserted {
            let mut slots = [bundle.slot(0), bundle.slot(1), bundle.slot(2)];
            slots[usize::from(slot)] = bits;
            bundle = Bundle::new(bundle.template(), slots);
        }
    }
    bundle
}

/// Whether a branch to a label behind which a block goes on was taken.
fn is_at_side_exit(state: &State, block: &Block) -> bool {
    let mut exits = (0..block.items.len()).filter(|item| block.targets[*item].is_some());
    exits.any(|item| target(block, item) == state.ip)
}

/// What nobody reads where a run has ended, by what a block's branches say of their targets.
fn dead(state: &State, block: &Block) -> Parts {
    let relative = (0..block.items.len()).find(|item| target(block, *item) == state.ip);
    let exits = (0..block.items.len()).filter(|item| match relative {
        Some(relative) => *item == relative,
        None => block.items[*item].is_branch() && !block.items[*item].instruction.is_relative(),
    });
    let dead = exits.map(|exit| block.dead[exit]).reduce(Parts::and);
    dead.filter(|_| state.ip != CODE_END).unwrap_or_default()
}
