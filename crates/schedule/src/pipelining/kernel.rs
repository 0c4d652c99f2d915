//! Loops that rotate registers already: what a pass of the kernel does stays, in another order.
//!
//! Stages and names of registers are the source's. An order is good if the passes behind it do not wait: what one
//! writes late the next ones read, under names that are one higher for each.

use sidestep_ia64::encoding::Resource;
use sidestep_itanium2::Parameters;
use sidestep_itanium2::scoreboard::Operand;

use super::distances::{Distance, keep_longest};
use super::modulo::schedule;
use super::{INTERVALS, Loop};
use crate::block::Block;
use crate::bound;
use crate::bundle::{Packer, Placed};
use crate::capacity::Capacity;
use crate::graph::facts::Facts;
use crate::graph::latency_of;
use crate::rename::File;

/// Passes over which a value is followed.
const PASSES: u8 = 8;

/// Orders of a kernel.
pub(super) struct Orders {
    /// Cycles that the units take for a pass, at least.
    pub units: u32,
    /// Cycles that the chains from one pass to those behind it take, at least.
    pub recurrence: u32,
    /// The orders, with the cycles of a pass as planned, the shortest first.
    pub found: Vec<(u32, Vec<Placed>)>,
}

/// Orders of a kernel.
pub(super) fn orders(given: &Loop<'_>, parameters: &Parameters) -> Orders {
    let count = given.block.items.len() - 1;
    let mut packer = Packer::new(&given.block.items, parameters);
    let mut present = vec![0; packer.signature_count()];
    (0..=count).for_each(|item| present[packer.signature(item)] += 1);
    let units = bound::units(&packer, &Capacity::new(&packer, &present), count + 1);
    let mut body = given.block.clone();
    body.items.truncate(count);
    let distances = distances(&body, given.surroundings.rotating, parameters);
    let chain = super::distances::recurrence(&distances, count);
    let first = units.max(chain);
    let orders = (first..first + INTERVALS).filter_map(|interval| {
        let (modulo, bundles) = schedule(&distances, &mut packer, count, interval, 1)?;
        (modulo.stages() == 1).then_some((interval, bundles))
    });
    Orders {
        units,
        recurrence: chain,
        found: orders.collect(),
    }
}

/// What the instructions of a pass, and of those behind it, wait for.
fn distances(body: &Block, rotating: u8, parameters: &Parameters) -> Vec<Distance> {
    let count = body.items.len();
    let facts = Facts::new(body);
    let mut found = Vec::new();
    for from in 0..count {
        for to in from + 1..count {
            if let Some(cycles) = facts.order(from, to) {
                found.push(Distance {
                    from,
                    to,
                    iterations: 0,
                    cycles: cycles.max(0) as u32,
                });
            }
        }
    }
    for to in 0..count {
        for file in super::values::FILES {
            let bits = file.all(&body.items[to].effects.reads);
            for register in file.registers().filter(|register| bits >> register & 1 != 0) {
                found.extend(wait(body, (file, register), to, rotating, parameters));
            }
        }
    }
    keep_longest(&mut found);
    found
}

/// What an instruction waits for that reads a register: the last that has written it, in this pass or one before.
fn wait(
    body: &Block,
    (file, register): (File, u8),
    to: usize,
    rotating: u8,
    parameters: &Parameters,
) -> Option<Distance> {
    let region = match file {
        File::General => 32..32 + rotating,
        File::Float => 32..128,
        File::Predicate => 16..64,
    };
    let resource = |register| match file {
        File::General => Resource::General(register),
        File::Float => Resource::Float(register),
        File::Predicate => Resource::Predicate(register),
    };
    (0..=PASSES).find_map(|passes| {
        let named = match region.contains(&register) {
            true => register
                .checked_sub(passes)
                .filter(|named| region.contains(named))?,
            false => register,
        };
        let end = if passes == 0 { to } else { body.items.len() };
        let writes = |item: &crate::block::Item| file.all(&item.effects.all_writes()) >> named & 1 != 0;
        let from = body.items[..end].iter().rposition(writes)?;
        let operands = (Operand::of(resource(named))?, Operand::of(resource(register))?);
        let cycles = latency_of(&body.items[from], &body.items[to], operands, parameters)?;
        Some(Distance {
            from,
            to,
            iterations: passes.into(),
            cycles,
        })
    })
}
