//! Regions: which blocks are translated together, where control goes between them, and what loops keep in registers.
//!
//! A region grows from its root, a hot block, along the direct branches and the ends of its blocks, over blocks of the
//! same page that have been executed as well; over the places behind calls only where what is called is a part of it
//! up to its return. Its nodes are whole blocks, as the interpreter divides them: what the
//! interpreter does between two blocks, translated code does there, too.

use std::sync::Arc;

use sidestep_ia64::encoding::{Effects, Instruction, Operation, Resource};
use sidestep_ia64::float::StatusRegister;
use sidestep_ia64::registers::status::psr;

use crate::held::{self, FloatRegisters};
use crate::node::Node;
use crate::slots::Slots;
use crate::tight_loops::{self, Member, TightLoop};

/// Blocks that are translated together; the first is the root.
pub struct Region {
    /// The blocks, in the order in which they are emitted.
    pub nodes: Vec<Arc<Node>>,
    /// For each, the slots that are in variables where it begins, wherever control comes from.
    pub held: Vec<Slots>,
    /// For each, the floating-point registers that are at hand as doubles there.
    pub held_doubles: Vec<FloatRegisters>,
    /// For each, what of it is in a tight loop.
    pub tight_loops: Vec<Option<Member>>,
    /// For each, the nodes behind calls at which execution may go on when it returns.
    pub return_points: Vec<Vec<usize>>,
    /// For each, whether one place alone leads to it, and that is in a node before it or, to the root, outside.
    pub has_one_way_in: Vec<bool>,
    /// The guest's address of the root's first bundle; of a program, whose code stays where it is.
    pub base: u64,
    /// For code that gathers, what of the root's instructions: so many of the first.
    pub gathers: Option<usize>,
}

impl Region {
    /// The region of a root that stands at the guest's address `base`: `find` knows the blocks at other places,
    /// and whether they go back to themselves often each time that they are reached, `instructions_max` bounds their
    /// sum. If the frame `is_usual`, as many registers are taken to rotate as did when the blocks were interpreted.
    pub fn new(
        root: Arc<Node>,
        base: u64,
        (instructions_max, is_usual): (usize, bool),
        mut find: impl FnMut(u64) -> Option<(Arc<Node>, bool)>,
    ) -> Region {
        let mut size = root.block.instructions.len();
        let mut tried = vec![root.place];
        let mut nodes = vec![root];
        let mut stay_long = vec![false];
        let mut next = 0;
        while next < nodes.len() {
            let places: Vec<u64> = nodes[next..]
                .iter()
                .flat_map(|node| node.ways())
                .map(|(_, place)| place)
                .collect();
            next = nodes.len();
            let behind = returned_to(&nodes).into_iter().flatten();
            for place in places.into_iter().chain(behind) {
                if tried.contains(&place) {
                    continue;
                }
                tried.push(place);
                let Some((found, stays_long)) = find(place) else {
                    continue;
                };
                if size + found.block.instructions.len() <= instructions_max {
                    size += found.block.instructions.len();
                    nodes.push(found);
                    stay_long.push(stays_long);
                }
            }
        }
        let index_of = |place: u64| nodes.iter().position(|node| node.place == place);
        let return_points: Vec<Vec<usize>> = returned_to(&nodes)
            .into_iter()
            .map(|places| places.into_iter().filter_map(index_of).collect())
            .collect();
        let is_point = |node: usize| return_points.iter().any(|points| points.contains(&node));
        let successors = successors(&nodes);
        let has_one_way_in: Vec<bool> = (0..nodes.len())
            .map(|node| {
                let ways = successors.iter().enumerate();
                let ways = ways.flat_map(|(from, next)| next.iter().map(move |&to| (from, to)));
                let mut ways = ways.filter(|&(_, to)| to == node).map(|(from, _)| from);
                // The root is entered from outside.
                let is_before = node == 0 || ways.next().is_some_and(|from| from < node);
                is_before && ways.next().is_none() && !is_point(node)
            })
            .collect();
        let tight_loops = tight_loops::find(&nodes, is_usual);
        let held = held::slots(&nodes, &successors, &stay_long)
            .into_iter()
            .zip(&tight_loops);
        let held = held.map(|(held, member)| match member {
            Some(member) => held.union(member.tight_loop.held()),
            None => held,
        });
        Region {
            held: held.collect(),
            held_doubles: held::doubles(&nodes, &successors),
            return_points,
            tight_loops,
            has_one_way_in,
            nodes,
            base,
            gathers: None,
        }
    }

    /// The region of one block of a program, at the guest's address `base`, that gathers what so many of its first
    /// instructions do. Whatever its last branch leads to is entered anew.
    pub fn gathering(block: Arc<Node>, base: u64, length: usize) -> Region {
        Region {
            nodes: vec![block],
            held: vec![Slots::NONE],
            held_doubles: vec![FloatRegisters::default()],
            tight_loops: vec![None],
            return_points: vec![Vec::new()],
            has_one_way_in: vec![true],
            base,
            gathers: Some(length),
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

    /// The tight loop that a node begins in.
    pub fn tight_loop(&self, node: usize) -> Option<&TightLoop> {
        let member = self.tight_loops[node].as_ref()?;
        Some(&*member.tight_loop)
    }

    /// The floating-point registers that memory may lack where a node begins.
    pub fn late_doubles(&self, node: usize) -> FloatRegisters {
        let tight_loop = self.tight_loop(node);
        tight_loop.map_or(FloatRegisters::NONE, |tight_loop| tight_loop.late_doubles)
    }

    /// Whether two nodes are in one tight loop.
    pub fn are_in_one_loop(&self, one: usize, other: usize) -> bool {
        match (&self.tight_loops[one], &self.tight_loops[other]) {
            (Some(one), Some(other)) => Arc::ptr_eq(&one.tight_loop, &other.tight_loop),
            _ => false,
        }
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

    /// The bits of PSR that say which floating-point registers were written, of those that its instructions write;
    /// `None` if it may clear some.
    pub fn marked(&self) -> Option<u64> {
        self.instructions().try_fold(0, |bits, instruction| {
            let is_return = matches!(instruction.operation, Operation::Return);
            let may_clear = instruction.effects().contains(Effects::CHANGES_STATUS) && !is_return;
            let written = FloatRegisters::written_by(instruction);
            let written = written.iter().fold(bits, |bits, register| match register {
                0..32 => bits | psr::MFL,
                _ => bits | psr::MFH,
            });
            (!may_clear && self.gathers.is_none()).then_some(written)
        })
    }

    /// The bits of FPSR that its arithmetic depends on; `None` if it may change some but for setting flags.
    pub fn control_bits(&self) -> Option<u64> {
        self.instructions().try_fold(0, |bits, instruction| {
            let is_kept = !held::changes_controls(instruction) && self.gathers.is_none();
            let decisive = match instruction.operation {
                Operation::FloatMultiplyAdd { status, .. }
                | Operation::ParallelFloatMultiplyAdd { status, .. } => StatusRegister::control_bits(status),
                _ => 0,
            };
            is_kept.then_some(bits | decisive)
        })
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

/// For each node the nodes that its branches and its end lead to, once for each, and those behind its calls.
fn successors(nodes: &[Arc<Node>]) -> Vec<Vec<usize>> {
    let index_of = |place: u64| nodes.iter().position(|node| node.place == place);
    nodes
        .iter()
        .map(|node| {
            let ways = node.ways().map(|(_, place)| place);
            let behind = node.calls().map(|(_, behind)| behind);
            ways.chain(behind).filter_map(index_of).collect()
        })
        .collect()
}

/// For each node that returns the places, behind calls of the nodes, that it may return to: it is in what they call.
fn returned_to(nodes: &[Arc<Node>]) -> Vec<Vec<u64>> {
    let index_of = |place: u64| nodes.iter().position(|node| node.place == place);
    let mut points = vec![Vec::new(); nodes.len()];
    let calls = nodes.iter().flat_map(|node| node.calls());
    for (callee, behind) in calls.filter_map(|(callee, behind)| Some((index_of(callee)?, behind))) {
        let mut body = vec![callee];
        let mut next = 0;
        while let Some(&member) = body.get(next) {
            next += 1;
            let node = &nodes[member];
            if node.returns() && !points[member].contains(&behind) {
                points[member].push(behind);
            }
            let is_called = |place: &u64| node.calls().any(|(callee, _)| callee == *place);
            let ways = node
                .ways()
                .map(|(_, place)| place)
                .filter(|place| !is_called(place));
            let behind_calls = node.calls().map(|(_, behind)| behind);
            for member in ways.chain(behind_calls).filter_map(index_of) {
                if !body.contains(&member) {
                    body.push(member);
                }
            }
        }
    }
    points
}
