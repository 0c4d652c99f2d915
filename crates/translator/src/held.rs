//! What is worth a register of the host where a node of a loop begins: what it, or what follows it in the same loop,
//! uses before anything has changed it. What is in no loop loads what it uses.

use std::sync::Arc;

use sidestep_ia64::encoding::{
    Effects, FixedRounding, FloatFormat, FloatTransfer, Instruction, Operation, Precision, Resource,
    StatusField,
};
use sidestep_ia64::registers::application::FPSR;
use sidestep_ia64::registers::frame::ROTATING_FLOATING;

use crate::node::Node;
use crate::slots::{Slot, Slots};

/// A set of floating-point registers, f0 the lowest bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FloatRegisters(u128);

impl FloatRegisters {
    /// The registers that an instruction writes, but for the constant ones.
    pub fn written_by(instruction: &Instruction) -> FloatRegisters {
        float_registers(instruction.destinations().iter())
    }

    /// None.
    pub const NONE: FloatRegisters = FloatRegisters(0);

    /// Whether a register is one of them.
    pub fn contains(self, register: u8) -> bool {
        self.0 >> register & 1 != 0
    }

    /// Adds a register.
    pub fn insert(&mut self, register: u8) {
        self.0 |= 1 << register;
    }

    /// Takes a register away.
    pub fn remove(&mut self, register: u8) {
        self.0 &= !(1 << register);
    }

    /// Those of either set.
    pub fn union(self, other: FloatRegisters) -> FloatRegisters {
        FloatRegisters(self.0 | other.0)
    }

    /// Those that are not in another set.
    pub fn without(self, other: FloatRegisters) -> FloatRegisters {
        FloatRegisters(self.0 & !other.0)
    }

    /// Those of both sets.
    pub fn intersection(self, other: FloatRegisters) -> FloatRegisters {
        FloatRegisters(self.0 & other.0)
    }

    /// Its registers, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..128).filter(move |&register| self.contains(register))
    }

    /// The registers that have these names once all that rotate have rotated, by their names before.
    fn before_rotation(self) -> FloatRegisters {
        let first = 128 - ROTATING_FLOATING;
        let fixed = self.0 & ((1 << first) - 1);
        let others = self.0 ^ fixed;
        let down = others >> 1 & !((1 << first) - 1);
        FloatRegisters(fixed | down | (others >> first & 1) << 127)
    }
}

impl FromIterator<u8> for FloatRegisters {
    fn from_iter<I: IntoIterator<Item = u8>>(registers: I) -> FloatRegisters {
        let bits = registers.into_iter().map(|register| 1 << (register & 127));
        FloatRegisters(bits.fold(0, |set, bit: u128| set | bit))
    }
}

/// What may be worth registers.
trait Places: Copy + Default + PartialEq {
    const ALL: Self;
    fn union(self, other: Self) -> Self;
    fn without(self, other: Self) -> Self;
    /// What an instruction reads in such a way that having it at hand is worth something.
    fn read_by(instruction: &Instruction) -> Self;
    fn written_by(instruction: &Instruction) -> Self;
    fn before_rotation(self) -> Self;
}

impl Places for Slots {
    const ALL: Slots = Slots::ALL;

    fn union(self, other: Slots) -> Slots {
        self.union(other)
    }

    fn without(self, other: Slots) -> Slots {
        self.without(other)
    }

    /// Arithmetic looks at FPSR where it is.
    fn read_by(instruction: &Instruction) -> Slots {
        let mut read = Slots::read_by(instruction);
        read.remove(Slot::application(FPSR));
        read
    }

    fn written_by(instruction: &Instruction) -> Slots {
        Slots::written_by(instruction)
    }

    /// They are moved, and where they come from as well.
    fn before_rotation(self) -> Slots {
        self
    }
}

impl Places for FloatRegisters {
    const ALL: FloatRegisters = FloatRegisters(u128::MAX);

    fn union(self, other: FloatRegisters) -> FloatRegisters {
        self.union(other)
    }

    fn without(self, other: FloatRegisters) -> FloatRegisters {
        self.without(other)
    }

    fn read_by(instruction: &Instruction) -> FloatRegisters {
        match computes_doubles(instruction) {
            true => float_registers(instruction.sources().iter()),
            false => FloatRegisters::default(),
        }
    }

    fn written_by(instruction: &Instruction) -> FloatRegisters {
        FloatRegisters::written_by(instruction)
    }

    fn before_rotation(self) -> FloatRegisters {
        self.before_rotation()
    }
}

/// Those that are no constants.
fn float_registers<'a>(resources: impl Iterator<Item = &'a Resource>) -> FloatRegisters {
    let registers = resources.filter_map(|resource| match resource {
        Resource::Float(register) => Some(*register),
        _ => None,
    });
    registers.filter(|&register| register > 1).collect()
}

/// Whether an instruction is emitted as arithmetic on doubles.
pub fn computes_doubles(instruction: &Instruction) -> bool {
    match instruction.operation {
        Operation::FloatMultiplyAdd {
            precision, status, ..
        } => precision != Precision::Dynamic && status != StatusField::S1,
        Operation::ConvertToFixed { rounding, .. } => rounding == FixedRounding::Truncate,
        Operation::FloatCompare { .. } => true,
        _ => false,
    }
}

/// Whether an instruction delivers a double, mostly.
pub fn delivers_double(instruction: &Instruction) -> bool {
    match instruction.operation {
        Operation::FloatMultiplyAdd { .. } => computes_doubles(instruction),
        Operation::LoadFloat { format, .. } => matches!(format, FloatFormat::Single | FloatFormat::Double),
        Operation::SetFloat { form } => matches!(form, FloatTransfer::Single | FloatTransfer::Double),
        Operation::FloatMerge { .. } | Operation::FloatExtremum { .. } | Operation::ConvertFromFixed => true,
        _ => false,
    }
}

/// Whether an instruction may change more of FPSR than set flags.
pub fn changes_controls(instruction: &Instruction) -> bool {
    match instruction.operation {
        Operation::FloatSetControls { .. } | Operation::FloatClearFlags { .. } => true,
        Operation::MoveToApplication { .. } => instruction.ar3() == FPSR,
        _ => false,
    }
}

/// The slots that are worth it for each node. One that goes back to itself, and does `stay_long`, has what it uses
/// itself: what passes it by only waits in memory, so that registers of the host are left for the loop.
pub fn slots(nodes: &[Arc<Node>], successors: &[Vec<usize>], stay_long: &[bool]) -> Vec<Slots> {
    let mut loops = loops(successors);
    for node in 0..nodes.len() {
        if stay_long[node] && successors[node].contains(&node) {
            // No other node has a name that is beyond all nodes.
            loops[node] = nodes.len() + node;
        }
    }
    held(nodes, &loops)
}

/// The floating-point registers that are worth it for each node, as doubles.
pub fn doubles(nodes: &[Arc<Node>], successors: &[Vec<usize>]) -> Vec<FloatRegisters> {
    held(nodes, &loops(successors))
}

/// What a block reads before anything else has changed it, and what has changed in front of each of its instructions
/// and at its end.
fn used_and_changed<P: Places>(node: &Node) -> (P, Vec<P>) {
    let (mut used, mut changed) = (P::default(), P::default());
    let mut all_changed = Vec::new();
    for entry in &node.block.instructions {
        all_changed.push(changed);
        let Ok(instruction) = &entry.decoded.instruction else {
            continue;
        };
        used = used.union(P::read_by(instruction).without(changed));
        if instruction.effects().contains(Effects::CHANGES_FRAME)
            && !instruction.effects().contains(Effects::LAST_SLOT)
        {
            changed = P::ALL;
        } else if instruction.predicate() == 0 {
            changed = changed.union(P::written_by(instruction));
        }
    }
    all_changed.push(changed);
    (used, all_changed)
}

/// What is worth it for each node, where those of one loop have one name.
fn held<P: Places>(nodes: &[Arc<Node>], loops: &[usize]) -> Vec<P> {
    let index_of = |place: u64| nodes.iter().position(|node| node.place == place);
    // By node what it uses, and the ways that stay in its loop, each with what has changed until there.
    let blocks = nodes.iter().enumerate().map(|(index, node)| {
        let (used, changed) = used_and_changed::<P>(node);
        let end = changed.len() - 1;
        let returns = node.calls().map(|(_, behind)| (end, behind));
        let ways = node.ways().chain(returns).filter_map(|(with, place)| {
            let next = index_of(place).filter(|&next| loops[next] == loops[index])?;
            // What a branch changes it changes where it is taken, too.
            Some((changed[(with + 1).min(end)], next))
        });
        let ways: Vec<(P, usize)> = ways.collect();
        (used, ways)
    });
    let blocks: Vec<(P, Vec<(P, usize)>)> = blocks.collect();
    let mut held: Vec<P> = blocks.iter().map(|&(used, _)| used).collect();
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        for node in (0..nodes.len()).rev() {
            let (used, ways) = &blocks[node];
            let now = ways.iter().fold(*used, |now, &(changed, next)| {
                let later = match nodes[node].rotates() {
                    true => held[next].before_rotation(),
                    false => held[next],
                };
                now.union(later.without(changed))
            });
            is_changed |= now != held[node];
            held[node] = now;
        }
    }
    for (held, (_, ways)) in held.iter_mut().zip(&blocks) {
        if ways.is_empty() {
            *held = P::default();
        }
    }
    held
}

/// Names for each node the loop that it is in: nodes that reach each other have one name, others have their own.
fn loops(successors: &[Vec<usize>]) -> Vec<usize> {
    let reached: Vec<Vec<bool>> = (0..successors.len())
        .map(|start| {
            let mut reached = vec![false; successors.len()];
            let mut left: Vec<usize> = successors[start].clone();
            while let Some(node) = left.pop() {
                if !std::mem::replace(&mut reached[node], true) {
                    left.extend(&successors[node]);
                }
            }
            reached
        })
        .collect();
    (0..successors.len())
        .map(|node| {
            let mut others = 0..node;
            others
                .find(|&other| reached[node][other] && reached[other][node])
                .unwrap_or(node)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emitter::rotated;

    #[test]
    fn names_before_a_rotation_are_those_that_it_changes() {
        for register in 0..128 {
            let after: FloatRegisters = [rotated(register)].into_iter().collect();
            assert_eq!(after.before_rotation().iter().collect::<Vec<_>>(), [register]);
        }
        assert_eq!([31, 32, 127].map(rotated), [31, 33, 32]);
    }
}
