//! Loops that a condition ends: an iteration exists if the compare of the one before has said so.
//!
//! The compare's predicate rotates, and takes the place of the stages' predicates: instructions of an iteration are
//! under that of the one before. `br.wtop` goes by the newest that is known, and goes on as often as iterations that
//! have begun need to end (manual 1:4.5.1).

use sidestep_ia64::encoding::{Effects, Resource};
use sidestep_itanium2::Parameters;
use sidestep_itanium2::scoreboard::Operand;

use super::modulo::Modulo;
use super::suitable::maker;
use super::values::{Access, Home, Values};
use crate::block::{Block, Item};
use crate::graph::facts::is_load;
use crate::graph::latency;
use crate::rename::File;

/// What ends a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    /// Its predicate in the source.
    pub predicate: u8,
    /// The value that the predicate is.
    pub value: usize,
    /// The compare that makes it.
    pub maker: usize,
    /// Cycles behind the compare in which the branch can go by it.
    pub delay: u32,
}

impl Condition {
    /// The condition of a loop's instructions, whose values are these, and its branch.
    ///
    /// # Errors
    /// Why iterations cannot go by it.
    pub fn new(
        body: &Block,
        (branch, predicate): (&Item, u8),
        values: &Values,
        parameters: &Parameters,
    ) -> Result<Condition, String> {
        let is_it = |value: &super::values::Value| {
            (value.file, value.register) == (File::Predicate, predicate)
                && value.is_last
                && value.home == Home::Rotating
        };
        let found = maker(&body.items, predicate).zip(values.values.iter().position(is_it));
        let Some((maker, value)) = found else {
            return Err(format!(
                "p{predicate}, which ends it, is not made anew in each iteration"
            ));
        };
        let compare = &body.items[maker];
        let parted = compare.effects.conflict(&branch.effects).is_parted_by_stop();
        let waits = operand(predicate).and_then(|operand| latency(compare, branch, operand, parameters));
        Ok(Condition {
            predicate,
            value,
            maker,
            delay: waits.unwrap_or(0).max(u32::from(parted)),
        })
    }

    /// How many iterations before the newest one that is whose condition the branch goes by, which is in the last cycle
    /// of each interval.
    pub fn stage(&self, cycles: &[u32], interval: u32) -> u32 {
        (cycles[self.maker] + self.delay) / interval
    }

    /// Whether the first iteration exists whatever the schedule is. Where the compare is not in the first stage, that
    /// of an iteration before the first one is in the kernel as well, with its own predicate off: it must leave alone
    /// what says that there is a first one. So it clears nothing: the branch has, when it made a new predicate of it.
    /// The other predicate of the compare has no such luck, and nobody may read it. What the predicate decides in its
    /// own iteration is in the first stage: behind it, it would be done for the iteration before the first as well.
    pub fn is_kept(&self, body: &Block, values: &Values, schedule: &Modulo) -> bool {
        let mut own = values.values[self.value].accesses.iter();
        if own.any(|access| access.reads && !access.is_next && schedule.stage(access.item) > 0) {
            return false;
        }
        let compare = &body.items[self.maker];
        let other = |value: &super::values::Value| {
            let is_own = value.accesses.first().map(|access| access.item) == Some(self.maker);
            is_own && value.register != self.predicate && value.file == File::Predicate
        };
        let is_read = |value: &super::values::Value| value.accesses.iter().any(|access| access.reads);
        let mut others = values.values.iter().filter(|value| other(value));
        schedule.stage(self.maker) == 0 || compare.effects.qualifier == 0 && !others.any(is_read)
    }

    /// What ar.ec begins with: passes in which the branch goes on though its predicate is off. Those of the first
    /// iterations, whose conditions are not known, but for the one that the first iteration exists; and those in which
    /// the last iterations end.
    pub fn epilogue(&self, schedule: &Modulo) -> u32 {
        schedule.condition.saturating_sub(1) + schedule.stages() - schedule.condition
    }
}

fn operand(predicate: u8) -> Option<Operand> {
    Operand::of(Resource::Predicate(predicate))
}

/// Cycles from the compare to an instruction of the next iteration, which exists by it.
pub(super) fn wait(compare: &Item, guarded: &Item, predicate: u8, parameters: &Parameters) -> u32 {
    let waits = operand(predicate).and_then(|operand| latency(compare, guarded, operand, parameters));
    waits.unwrap_or(0).max(1)
}

/// Puts down in the values of a loop which instructions go by its condition.
pub(super) fn guard(values: &mut Values, condition: &Condition, is_staged: &[bool]) {
    let guarded = (0..is_staged.len()).filter(|item| is_staged[*item]);
    let accesses = guarded.map(|item| Access {
        item,
        writes: false,
        reads: true,
        is_next: true,
    });
    values.values[condition.value].accesses.extend(accesses);
}

/// Whether an instruction of an iteration that does not exist does no harm: it cannot fault, and what it writes is a
/// new value of that iteration. A load is one if the source says that what it refers to is there, as a speculative one.
pub(super) fn is_harmless(item: &Item, is_resident: bool, values: &Values) -> bool {
    let written = item.effects.all_writes();
    let is_private = super::values::FILES.iter().all(|file| {
        let bits = file.all(&written);
        let mut registers = file.registers().filter(|register| bits >> register & 1 != 0);
        registers.all(|register| {
            let mut own = values.of(*file, register).peekable();
            own.peek().is_some()
                && !values.bound.contains(&(*file, register))
                && own.all(|value| value.home == Home::Rotating)
        })
    });
    let computes = item.instruction.effects().contains(Effects::COMPUTES);
    is_private
        && item.effects.qualifier == 0
        && written.predicate & !1 == 0
        && (computes || is_resident && is_load(item))
}
