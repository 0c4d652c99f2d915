//! Regions: which blocks are translated together, where control goes between them, and what loops keep in registers.
//!
//! A region grows from its root, a hot block, along the direct branches and the ends of its blocks, over blocks of the
//! same page that have been executed as well. Its nodes are whole blocks, as the interpreter divides them: what the
//! interpreter does between two blocks, translated code does there, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use sidestep_ia64::Processor;
use sidestep_ia64::encoding::{BranchKind, Effects, Instruction, Operation, Resource};
use sidestep_ia64::execution::{DecodedBlock, MicroOperation};
use sidestep_ia64::registers::status::psr;

use crate::held::{self, FloatRegisters};
use crate::slots::Slots;

/// A block with what the interpreter executes for it, operation by operation; one more leaves it.
pub struct Node {
    /// The host address of its first bundle, with the slot of its first instruction in the low bits.
    pub place: u64,
    /// The host addresses of the page that it stands on: the first, and the one behind the last.
    pub page: (u64, u64),
    /// Its instructions.
    pub block: DecodedBlock,
    /// What the interpreter executes.
    pub operations: Box<[MicroOperation]>,
    /// How many general registers rotated when it was executed last before it was translated; of a block that ends by
    /// rotating them.
    pub rotating: AtomicU8,
}

impl Node {
    /// The host address and slot so many bytes behind its first bundle, if that is on its page.
    pub fn at(&self, offset: i64, slot: u8) -> Option<u64> {
        let address = (self.place & !15).wrapping_add_signed(offset);
        (self.page.0..self.page.1)
            .contains(&address)
            .then_some(address | u64::from(slot))
    }

    /// The places on its page at which execution may go on behind it.
    pub fn successors(&self) -> impl Iterator<Item = u64> {
        let branches = self.block.instructions.iter().filter_map(|entry| {
            let offset = branch_offset(entry.decoded.instruction.as_ref().ok()?, entry.bundle)?;
            self.at(offset, 0)
        });
        let branches = branches.chain(self.return_points());
        let (bundle, slot) = self.block.next;
        let end = self.at(i64::from(bundle) * 16, slot);
        branches.chain(end.filter(|_| !self.ends_by_leaving()))
    }

    /// The places on its page at which execution goes on when what it calls returns.
    fn return_points(&self) -> impl Iterator<Item = u64> {
        self.block.instructions.iter().filter_map(|entry| {
            let instruction = entry.decoded.instruction.as_ref().ok()?;
            let calls = matches!(instruction.operation, Operation::Call { .. });
            self.at(i64::from(entry.bundle) * 16 + 16, 0).filter(|_| calls)
        })
    }

    /// Whether it ends with a loop branch that rotates registers.
    pub fn rotates(&self) -> bool {
        let last = self.block.instructions.last();
        last.is_some_and(|entry| match &entry.decoded.instruction {
            Ok(instruction) => matches!(
                instruction.operation,
                Operation::Branch {
                    kind: BranchKind::CountedTop
                        | BranchKind::CountedExit
                        | BranchKind::WhileTop
                        | BranchKind::WhileExit,
                    ..
                }
            ),
            Err(_) => false,
        })
    }

    /// Notes how many general registers rotate on the processor that is about to execute it.
    pub fn note_rotating(&self, processor: &Processor) {
        self.rotating
            .store(processor.frame.rotating as u8, Ordering::Relaxed);
    }

    /// How many general registers are likely to rotate where it ends by rotating them.
    pub fn rotating(&self) -> u8 {
        self.rotating.load(Ordering::Relaxed)
    }

    /// Whether its last instruction always goes elsewhere.
    pub fn ends_by_leaving(&self) -> bool {
        let last = self.block.instructions.last();
        last.is_some_and(|entry| match &entry.decoded.instruction {
            Ok(instruction) => instruction.always_transfers(),
            Err(_) => true,
        })
    }
}

/// How far behind the block's first bundle the direct target of a branch, call or check is.
pub fn branch_offset(instruction: &Instruction, bundle: u16) -> Option<i64> {
    let is_direct = instruction.is_relative() && instruction.effects().contains(Effects::TRANSFERS);
    is_direct.then(|| {
        i64::from(bundle)
            .wrapping_mul(16)
            .wrapping_add(instruction.immediate)
    })
}

/// Blocks that are translated together; the first is the root.
pub struct Region {
    /// The blocks, in the order in which they are emitted.
    pub nodes: Vec<Arc<Node>>,
    /// For each, the slots that are in variables where it begins, wherever control comes from.
    pub held: Vec<Slots>,
    /// For each, the floating-point registers that are at hand as doubles there.
    pub held_doubles: Vec<FloatRegisters>,
    /// The nodes at which execution goes on behind calls.
    pub return_points: Vec<usize>,
    /// For each, whether one place alone leads to it, and that is in a node before it.
    pub has_one_way_in: Vec<bool>,
    /// The guest's address of the root's first bundle; of a program, whose code stays where it is.
    pub base: u64,
}

impl Region {
    /// The region of a root that stands at the guest's address `base`: `find` knows the blocks at other places,
    /// `instructions_max` bounds their sum.
    pub fn new(
        root: Arc<Node>,
        base: u64,
        instructions_max: usize,
        mut find: impl FnMut(u64) -> Option<Arc<Node>>,
    ) -> Region {
        let mut size = root.block.instructions.len();
        let mut nodes = vec![root];
        let mut next = 0;
        while let Some(node) = nodes.get(next).map(Arc::clone) {
            next += 1;
            for place in node.successors() {
                if nodes.iter().any(|known| known.place == place) {
                    continue;
                }
                let Some(found) = find(place) else { continue };
                if size + found.block.instructions.len() <= instructions_max {
                    size += found.block.instructions.len();
                    nodes.push(found);
                }
            }
        }
        let points: Vec<u64> = nodes.iter().flat_map(|node| node.return_points()).collect();
        let is_point = |&node: &usize| points.contains(&nodes[node].place);
        let successors = successors(&nodes);
        let has_one_way_in: Vec<bool> = (0..nodes.len())
            .map(|node| {
                let ways = successors.iter().enumerate();
                let ways = ways.flat_map(|(from, next)| next.iter().map(move |&to| (from, to)));
                let mut ways = ways.filter(|&(_, to)| to == node).map(|(from, _)| from);
                let is_before = ways.next().is_some_and(|from| from < node);
                node > 0 && is_before && ways.next().is_none() && !is_point(&node)
            })
            .collect();
        Region {
            held: held::slots(&nodes, &successors),
            held_doubles: held::doubles(&nodes, &successors),
            return_points: (0..nodes.len()).filter(is_point).collect(),
            has_one_way_in,
            nodes,
            base,
        }
    }

    /// How many instructions retire at most when a node and those behind it are executed once.
    pub fn retired_from(&self, node: usize) -> u64 {
        let behind = self.nodes[node..].iter();
        behind.map(|node| u64::from(node.block.retired)).sum()
    }

    /// The node that begins so many bytes behind the first bundle of another, at a slot.
    pub fn node_at(&self, from: usize, offset: i64, slot: u8) -> Option<usize> {
        let place = self.nodes[from].at(offset, slot)?;
        self.nodes.iter().position(|node| node.place == place)
    }

    /// How many bytes a node's first bundle is behind the root's.
    pub fn offset(&self, node: usize) -> i64 {
        let (root, node) = (self.nodes[0].place & !15, self.nodes[node].place & !15);
        node.wrapping_sub(root).cast_signed()
    }

    /// The general registers that its instructions name.
    pub fn general_registers(&self) -> [u64; 2] {
        let named = self.instructions().fold(Slots::NONE, |named, instruction| {
            named
                .union(Slots::read_by(instruction))
                .union(Slots::written_by(instruction))
        });
        named.general_registers()
    }

    /// The bits of PSR that disable floating-point registers which its instructions name. A kernel runs with most of
    /// them disabled, so that it need not save them.
    pub fn disabling_bits(&self) -> u64 {
        self.instructions().fold(0, |bits, instruction| {
            let (sources, destinations) = (instruction.sources(), instruction.destinations());
            let named = sources.iter().chain(destinations.iter());
            named.fold(bits, |bits, resource| match resource {
                Resource::Float(2..32) => bits | psr::DFL,
                Resource::Float(32..) => bits | psr::DFH,
                _ => bits,
            })
        })
    }

    fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        let entries = self.nodes.iter().flat_map(|node| &node.block.instructions);
        entries.filter_map(|entry| entry.decoded.instruction.as_ref().ok())
    }
}

/// For each node the nodes that its branches and its end lead to, once for each.
fn successors(nodes: &[Arc<Node>]) -> Vec<Vec<usize>> {
    let index_of = |place: u64| nodes.iter().position(|node| node.place == place);
    nodes
        .iter()
        .map(|node| node.successors().filter_map(index_of).collect())
        .collect()
}
