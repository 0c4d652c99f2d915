//! Tight loops: those of a region that call nothing and keep the frame, whose registers of the host are worth more
//! than that memory is up to date at each step.
//!
//! What such a loop changes stays in variables from iteration to iteration, and memory gets it where the loop is left
//! and where something rare looks at it.

use std::sync::Arc;

use sidestep_ia64::encoding::{
    BaseUpdate, BranchKind, Effects, Instruction, LoadKind, Operation, Resource, StatusField,
};

use crate::held::{FloatRegisters, changes_controls, computes_doubles, delivers_double};
use crate::node::{Node, rotates};
use crate::slots::{Slot, Slots};

/// Slots that a loop may change: above, no register of the host is left for them anyway.
const CHANGED_MAX: usize = 24;
/// Doubles up to which memory gets them late: each way to the interpreter's functions stores all of them, so with
/// more, which a loop with much arithmetic has, there is too much of such code.
const DOUBLES_MAX: usize = 6;

/// A loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TightLoop {
    /// What memory may lack where its nodes begin.
    pub late: Slots,
    /// The same of floating-point registers: those that it writes as doubles alone.
    pub late_doubles: FloatRegisters,
    /// The general registers that its loads and stores find memory with, which stay where they are or go on by
    /// constants.
    pub bases: Slots,
    /// The status fields of its arithmetic on doubles, whose controls it leaves alone.
    pub status_fields: Vec<StatusField>,
    /// The highest register that it writes.
    pub highest_target: u8,
    /// What its branches rotate, if some do.
    pub rotation: Option<Rotation>,
}

/// What the branches of a loop rotate, beside the predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// So many general registers.
    pub size: u8,
    /// Whether the loop names floating-point registers, so that their rename base has to be right.
    pub names_floats: bool,
}

/// What of a node is in a tight loop.
#[derive(Clone, Debug)]
pub struct Member {
    /// The loop.
    pub tight_loop: Arc<TightLoop>,
    /// The last operation with which control may stay in the loop.
    pub last: usize,
}

impl TightLoop {
    /// The loop of some nodes, of each the instructions up to one, and of what it rotates, if anything.
    fn of(nodes: &[(&Node, usize)], rotation: Option<Rotation>) -> TightLoop {
        let instructions = || {
            nodes
                .iter()
                .flat_map(|&(node, last)| instructions(node).take(last + 1))
        };
        let changed = instructions().fold(Slots::NONE, |changed, instruction| {
            changed.union(Slots::written_by(instruction))
        });
        // These are where they are by their names only until the loop rotates.
        let rotates = |slot: &Slot| rotation.is_some_and(|rotation| slot.rotates_among(rotation.size));
        let late = changed.iter().filter(|slot| slot.may_be_late() && !rotates(slot));
        let mut late: Slots = late.collect();
        for slot in [Slot::PREDICATES, Slot::RETIRED] {
            late.insert(slot);
        }
        let written = |as_doubles: bool| {
            let instructions =
                instructions().filter(|instruction| delivers_double(instruction) == as_doubles);
            instructions.fold(FloatRegisters::NONE, |written, instruction| {
                written.union(FloatRegisters::written_by(instruction))
            })
        };
        let doubles = written(true).without(written(false));
        let bases: Slots = instructions()
            .filter_map(base_of)
            .filter(|base| !rotates(base))
            .collect();
        let far = instructions().fold(Slots::NONE, |far, instruction| far.union(lands_far(instruction)));
        let is_controlled = instructions().any(changes_controls);
        let mut status_fields: Vec<StatusField> = instructions()
            .filter(|instruction| !is_controlled && computes_doubles(instruction))
            .filter_map(|instruction| match instruction.operation {
                Operation::FloatMultiplyAdd { status, .. } => Some(status),
                _ => None,
            })
            .collect();
        status_fields.sort_unstable();
        status_fields.dedup();
        let highest_targets = nodes.iter().map(|(node, _)| node.block.highest_target);
        TightLoop {
            late,
            late_doubles: match doubles.iter().count() {
                0..=DOUBLES_MAX if rotation.is_none() => doubles,
                _ => FloatRegisters::NONE,
            },
            bases: bases.without(far),
            status_fields,
            highest_target: highest_targets.max().unwrap_or(0),
            rotation,
        }
    }

    /// The slots that are in variables where its nodes begin.
    pub fn held(&self) -> Slots {
        self.late.union(self.bases)
    }
}

/// The instructions of a node.
fn instructions(node: &Node) -> impl Iterator<Item = &Instruction> {
    let entries = node.block.instructions.iter();
    entries.map_while(|entry| entry.decoded.instruction.as_ref().ok())
}

/// The general register with which a load or store finds memory.
fn base_of(instruction: &Instruction) -> Option<Slot> {
    match instruction.operation {
        Operation::Load { .. }
        | Operation::Store { .. }
        | Operation::LoadFloat { .. }
        | Operation::StoreFloat { .. } => {
            Some(Slot::general(instruction.r3())).filter(|&base| base != Slot::general(0))
        }
        _ => None,
    }
}

/// The slots that an instruction may make anything of: all that it writes, but for what it adds a constant to.
fn lands_far(instruction: &Instruction) -> Slots {
    let mut written = Slots::written_by(instruction);
    let base = Slot::general(instruction.r3());
    let goes_on = match instruction.operation {
        Operation::Load { update, .. }
        | Operation::LoadFloat { update, .. }
        | Operation::Store { update, .. }
        | Operation::StoreFloat { update, .. }
        | Operation::LineFetch { update, .. } => update == BaseUpdate::Immediate,
        Operation::AddImmediate => Slot::general(instruction.r1()) == base,
        _ => false,
    };
    if goes_on {
        written.remove(base);
    }
    written
}

/// What a loop of some nodes rotates, of each the instructions up to one, if it does; nothing where it uses what
/// rotates otherwise than by its names.
fn rotation(nodes: &[(&Node, usize)]) -> Option<Option<Rotation>> {
    let rotate =
        |&&(node, last): &&(&Node, usize)| node.rotates() && last + 1 >= node.block.instructions.len();
    let mut sizes = nodes.iter().filter(rotate).map(|(node, _)| node.rotating());
    let Some(size) = sizes.next() else {
        return Some(None);
    };
    let used = || {
        let parts = nodes.iter();
        parts.flat_map(|&(node, last)| instructions(node).take(last + 1))
    };
    let rotation = Rotation {
        size,
        names_floats: used().any(names_floats),
    };
    (sizes.all(|other| other == size) && used().all(names_registers_only)).then_some(Some(rotation))
}

/// Whether an instruction names floating-point registers.
fn names_floats(instruction: &Instruction) -> bool {
    let (sources, destinations) = (instruction.sources(), instruction.destinations());
    let mut named = sources.iter().chain(destinations.iter());
    named.any(|resource| matches!(resource, Resource::Float(_)))
}

/// Whether an instruction uses rotating general registers and predicates by their names alone, so that it does not
/// depend on their rename bases: the table of advanced loads has registers' places, and what moves between the
/// predicates and a general register stands unrotated.
fn names_registers_only(instruction: &Instruction) -> bool {
    use LoadKind as K;
    let (sources, destinations) = (instruction.sources(), instruction.destinations());
    let mut named = sources.iter().chain(destinations.iter());
    let is_unrotated =
        |resource: &Resource| matches!(resource, Resource::Predicates | Resource::RotatingPredicates);
    match instruction.operation {
        Operation::Branch { .. } => true,
        Operation::CheckAdvanced { .. } => false,
        Operation::Load { kind, .. } => {
            matches!(kind, K::Normal | K::Speculative | K::Acquire | K::Bias | K::Fill)
        }
        _ => !named.any(is_unrotated),
    }
}

/// Whether an instruction may stand in a tight loop.
fn is_plain(instruction: &Instruction) -> bool {
    match instruction.operation {
        Operation::Branch { kind, .. } => {
            let is_plain = matches!(kind, BranchKind::Conditional | BranchKind::CountedLoop);
            (is_plain || rotates(kind)) && instruction.is_relative()
        }
        Operation::CheckAdvanced { .. } | Operation::CheckSpeculative => true,
        _ => {
            let others = Effects::CHANGES_FRAME | Effects::CHANGES_STATUS | Effects::TRANSFERS;
            !instruction.effects().intersects(others)
        }
    }
}

/// A way from one node to another one, with the operation that goes it.
#[derive(Clone, Copy)]
struct Way {
    from: usize,
    to: usize,
    with: usize,
}

/// For each node what of it is in a tight loop. Such a loop rotates no registers unless it is likely that as many do as
/// did before.
pub fn find(nodes: &[Arc<Node>], may_rotate: bool) -> Vec<Option<Member>> {
    let index_of = |place: u64| nodes.iter().position(|node| node.place == place);
    let ways = nodes.iter().enumerate().flat_map(|(from, node)| {
        let plain = instructions(node)
            .take_while(|instruction| is_plain(instruction))
            .count();
        // Whoever leaves the block at its end has all of it behind.
        let count = node.block.instructions.len();
        let is_plain = move |with: usize| with < plain || plain == count;
        let ways = node.ways().filter(move |&(with, _)| is_plain(with));
        ways.filter_map(move |(with, place)| index_of(place).map(|to| Way { from, to, with }))
    });
    let ways: Vec<Way> = ways.collect();
    let mut found = vec![None; nodes.len()];
    // A block that goes back to itself is a loop within all others.
    let goes_back = |node: &usize| ways.iter().any(|way| way.from == *node && way.to == *node);
    let (innermost, others): (Vec<usize>, Vec<usize>) = (0..nodes.len()).partition(goes_back);
    let mut left: Vec<Vec<usize>> = innermost.into_iter().map(|node| vec![node]).collect();
    left.push(others);
    while let Some(among) = left.pop() {
        for members in components(&among, &ways) {
            let lasts = members.iter().map(|member| {
                let stays = ways
                    .iter()
                    .filter(|way| way.from == *member && members.contains(&way.to));
                stays.map(|way| way.with).max().unwrap_or(0)
            });
            let lasts: Vec<usize> = lasts.collect();
            let parts = members
                .iter()
                .zip(&lasts)
                .map(|(&member, &last)| (&*nodes[member], last));
            let parts: Vec<(&Node, usize)> = parts.collect();
            let rotation = rotation(&parts).filter(|rotation| may_rotate || rotation.is_none());
            let Some(rotation) = rotation else {
                let others = members.into_iter().filter(|&member| !nodes[member].rotates());
                left.push(others.collect());
                continue;
            };
            let tight_loop = TightLoop::of(&parts, rotation);
            if tight_loop.late.iter().count() <= CHANGED_MAX {
                let tight_loop = Arc::new(tight_loop);
                for (member, last) in members.into_iter().zip(lasts) {
                    let tight_loop = Arc::clone(&tight_loop);
                    found[member] = Some(Member { tight_loop, last });
                }
            } else {
                // Without the node that the region found first, loops within it are left.
                left.push(members[1..].to_vec());
            }
        }
    }
    found
}

/// The sets of nodes that reach each other, and themselves, among some nodes.
fn components(among: &[usize], ways: &[Way]) -> Vec<Vec<usize>> {
    let reached: Vec<Vec<usize>> = among
        .iter()
        .map(|&start| {
            let mut reached = Vec::new();
            let mut left = vec![start];
            while let Some(node) = left.pop() {
                for way in ways
                    .iter()
                    .filter(|way| way.from == node && among.contains(&way.to))
                {
                    if !reached.contains(&way.to) {
                        reached.push(way.to);
                        left.push(way.to);
                    }
                }
            }
            reached
        })
        .collect();
    let reach_each_other = |one: usize, other: usize| {
        reached[one].contains(&among[other]) && reached[other].contains(&among[one])
    };
    (0..among.len())
        .filter(|&first| reach_each_other(first, first))
        .filter(|&first| (0..first).all(|other| !reach_each_other(first, other)))
        .map(|first| {
            let members = (first..among.len()).filter(|&other| reach_each_other(first, other));
            members.map(|member| among[member]).collect()
        })
        .collect()
}
