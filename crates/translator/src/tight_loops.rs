//! Tight loops: those of a region that call nothing and keep the frame, whose registers of the host are worth more
//! than that memory is up to date at each step.
//!
//! What such a loop changes stays in variables from iteration to iteration, and memory gets it where the loop is left
//! and where something rare looks at it.

use std::sync::Arc;

use sidestep_ia64::encoding::{BaseUpdate, BranchKind, Effects, Instruction, Operation, StatusField};

use crate::held::computes_doubles;
use crate::node::Node;
use crate::slots::{Slot, Slots};

/// Slots that a loop may change: above, no register of the host is left for them anyway.
const CHANGED_MAX: usize = 24;

/// A loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TightLoop {
    /// What memory may lack where its nodes begin.
    pub late: Slots,
    /// The general registers that its loads and stores find memory with, which stay where they are or go on by
    /// constants.
    pub bases: Slots,
    /// The status fields of its arithmetic on doubles, whose controls it leaves alone.
    pub status_fields: Vec<StatusField>,
    /// The highest register that it writes.
    pub highest_target: u8,
}

impl TightLoop {
    fn of(nodes: &[&Node]) -> TightLoop {
        let instructions = || nodes.iter().flat_map(|node| instructions(node));
        let changed = instructions().fold(Slots::NONE, |changed, instruction| {
            changed.union(Slots::written_by(instruction))
        });
        let mut late: Slots = changed.iter().filter(|slot| slot.may_be_late()).collect();
        for slot in [Slot::PREDICATES, Slot::RETIRED, Slot::COMPLETED] {
            late.insert(slot);
        }
        let moved = instructions().filter_map(base_of).collect::<Slots>();
        let jumps = instructions().fold(Slots::NONE, |jumps, instruction| {
            jumps.union(lands_far(instruction))
        });
        let is_controlled = instructions().any(|instruction| {
            matches!(
                instruction.operation,
                Operation::FloatSetControls { .. }
                    | Operation::FloatClearFlags { .. }
                    | Operation::MoveToApplication { .. }
            )
        });
        let mut status_fields: Vec<StatusField> = instructions()
            .filter(|instruction| !is_controlled && computes_doubles(instruction))
            .filter_map(|instruction| match instruction.operation {
                Operation::FloatMultiplyAdd { status, .. } => Some(status),
                _ => None,
            })
            .collect();
        status_fields.sort_unstable();
        status_fields.dedup();
        TightLoop {
            late,
            bases: moved.without(jumps),
            status_fields,
            highest_target: nodes
                .iter()
                .map(|node| node.block.highest_target)
                .max()
                .unwrap_or(0),
        }
    }

    /// The slots that are in variables where its nodes begin.
    pub fn held(&self) -> Slots {
        let words = [Slot::END, Slot::ATTENTION].into_iter().collect();
        self.late.union(self.bases).union(words)
    }
}

/// The instructions of a node.
fn instructions(node: &Node) -> impl Iterator<Item = &Instruction> {
    let entries = node.block.instructions.iter();
    entries.filter_map(|entry| entry.decoded.instruction.as_ref().ok())
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

/// Whether a node may be part of a tight loop.
fn is_plain(node: &Node) -> bool {
    node.block.instructions.iter().all(|entry| {
        let Ok(instruction) = &entry.decoded.instruction else {
            return false;
        };
        match instruction.operation {
            Operation::Branch { kind, .. } => {
                matches!(kind, BranchKind::Conditional | BranchKind::CountedLoop) && instruction.is_relative()
            }
            Operation::CheckAdvanced { .. } | Operation::CheckSpeculative => true,
            _ => {
                let others = Effects::CHANGES_FRAME | Effects::CHANGES_STATUS | Effects::TRANSFERS;
                !instruction.effects().intersects(others)
            }
        }
    })
}

/// For each node the tight loop that it is in, if it is in one: the same for all of its nodes, which are at different
/// numbers of the vector.
pub fn find(nodes: &[Arc<Node>], successors: &[Vec<usize>]) -> Vec<Option<Arc<TightLoop>>> {
    let mut found = vec![None; nodes.len()];
    let mut left = vec![
        (0..nodes.len())
            .filter(|&node| is_plain(&nodes[node]))
            .collect::<Vec<usize>>(),
    ];
    while let Some(among) = left.pop() {
        for members in components(&among, successors) {
            let tight = TightLoop::of(&members.iter().map(|&node| &*nodes[node]).collect::<Vec<&Node>>());
            if tight.late.iter().count() <= CHANGED_MAX {
                let tight = Arc::new(tight);
                for &member in &members {
                    found[member] = Some(Arc::clone(&tight));
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
fn components(among: &[usize], successors: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let reached: Vec<Vec<usize>> = among
        .iter()
        .map(|&start| {
            let mut reached = Vec::new();
            let mut left = vec![start];
            while let Some(node) = left.pop() {
                for &next in successors[node].iter().filter(|next| among.contains(next)) {
                    if !reached.contains(&next) {
                        reached.push(next);
                        left.push(next);
                    }
                }
            }
            reached
        })
        .collect();
    let reaches = |from: usize, to: usize| reached[from].contains(&among[to]);
    (0..among.len())
        .filter(|&first| reaches(first, first))
        .filter(|&first| (0..first).all(|other| !(reaches(first, other) && reaches(other, first))))
        .map(|first| {
            let members =
                (first..among.len()).filter(|&other| reaches(first, other) && reaches(other, first));
            members.map(|member| among[member]).collect()
        })
        .collect()
}
