//! Which instructions of an iteration are under the predicate that says whether it exists.

use sidestep_ia64::encoding::Effects;
use sidestep_itanium2::Parameters;

use super::Surroundings;
use super::condition::{Condition, guard, is_harmless};
use super::distances::{Distance, distances};
use super::modulo::Modulo;
use super::suitable::Ending;
use super::values::{FILES, Home, Value, Values};
use crate::assembly::{Text, speculative};
use crate::block::{Block, Item};
use crate::graph::facts::is_load;
use crate::rename::File;

/// What of iterations that are not known to exist is executed, in loops that a condition ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Ahead {
    Nothing,
    /// What does no harm, but for values that the next iteration reads.
    Temporaries,
    /// What does no harm.
    All,
}

/// A loop's values, and what is executed in iterations that exist alone.
pub(super) struct Staging {
    pub values: Values,
    /// By instruction, whether the predicate of its iteration goes before it.
    pub is_staged: Vec<bool>,
    /// What ends the loop, if it is not ar.lc.
    pub condition: Option<Condition>,
    /// By instruction, whether it may be one of an iteration that does not exist.
    is_speculated: Vec<bool>,
    /// By instruction, whether it does nothing in an iteration that does not exist.
    is_quiet: Vec<bool>,
}

impl Staging {
    /// What is staged of a loop's instructions with these values; `branch` is the loop's.
    ///
    /// # Errors
    /// Why the loop cannot be pipelined so.
    pub fn new(
        (body, branch, ending): (&Block, &Item, Ending),
        mut values: Values,
        ahead: Ahead,
        surroundings: &Surroundings,
        parameters: &Parameters,
    ) -> Result<Staging, String> {
        let (mut is_staged, mut is_quiet) = staged(body, &values, surroundings)?;
        let mut is_speculated = vec![false; is_staged.len()];
        let mut condition = None;
        if let Ending::Condition(predicate) = ending {
            let found = Condition::new(body, (branch, predicate), &values, parameters)?;
            if !is_quiet[found.maker] {
                return Err(undecided(body.items[found.maker].effects.qualifier));
            }
            if ahead != Ahead::Nothing {
                for (index, item) in body.items.iter().enumerate() {
                    is_speculated[index] = is_harmless(item, body.resident[index], &values)
                        && (ahead == Ahead::All || !values.is_carried_from(index));
                    is_staged[index] &= !is_speculated[index];
                    is_quiet[index] &= !is_speculated[index];
                }
            }
            guard(&mut values, &found, &is_staged);
            condition = Some(found);
        }
        Ok(Staging {
            values,
            is_staged,
            condition,
            is_speculated,
            is_quiet,
        })
    }

    /// Whether iterations before the first one do no harm, with which instructions behind the first stage begin: what
    /// the first iteration reads of the one before it, which was there before the loop, stays until then, and nothing
    /// is loaded, as there is no address.
    pub fn keeps_first(&self, body: &Block, schedule: &Modulo) -> bool {
        let mut items = body.items.iter().enumerate();
        items.all(|(index, item)| {
            self.is_quiet[index]
                || schedule.stage(index) == 0
                || !self.values.is_carried_from(index) && !is_load(item)
        })
    }

    /// The distances that the instructions keep.
    pub fn distances(&self, body: &Block, parameters: &Parameters) -> Vec<Distance> {
        distances(body, &self.values, self.condition.as_ref(), parameters)
    }

    /// The texts of the instructions: loads of iterations that need not exist are speculative ones.
    pub fn texts(&self, texts: &[Text], body: &Block) -> Vec<Text> {
        let each = texts.iter().zip(&body.items).zip(&self.is_speculated);
        let texts = each.map(
            |((text, item), is_speculated)| match *is_speculated && is_load(item) {
                true => Text {
                    instruction: speculative(&text.instruction),
                    ..text.clone()
                },
                false => text.clone(),
            },
        );
        texts.collect()
    }
}

/// By instruction, whether the predicate of its stage goes before it: else it does no harm in an iteration that does
/// not exist, as its own predicate is off, or because nobody reads what it writes. And whether it does nothing there,
/// by either predicate.
///
/// # Errors
/// Why one can have neither.
fn staged(
    body: &Block,
    values: &Values,
    surroundings: &Surroundings,
) -> Result<(Vec<bool>, Vec<bool>), String> {
    let rotates = |file: File, register: u8| {
        let mut same = values.of(file, register);
        same.all(|value| value.home == Home::Rotating) && !values.bound.contains(&(file, register))
    };
    for value in &values.values {
        if value.file == File::Predicate && value.is_carried() {
            return Err(format!("p{} goes from one iteration to the next", value.register));
        }
    }
    let floats = values
        .values
        .iter()
        .any(|value| value.file == File::Float && value.home == Home::Rotating);
    if floats && surroundings.used_outside.float >> 32 != 0 {
        return Err("the function keeps floating-point registers that would rotate".to_owned());
    }
    let mut is_staged = Vec::with_capacity(body.items.len());
    let mut is_quiet: Vec<bool> = Vec::with_capacity(body.items.len());
    for item in &body.items {
        let effects = &item.effects;
        let qualifier = effects.qualifier;
        let writes_in_any_case = effects.writes_when_off || effects.complements && qualifier == 0;
        let written = effects.writes.predicate & !1;
        let mut predicates = File::Predicate
            .registers()
            .filter(|register| written >> register & 1 != 0);
        if let Some(kept) =
            predicates.find(|register| writes_in_any_case && !rotates(File::Predicate, *register))
        {
            return Err(format!(
                "p{kept}, which keeps what it was in the iteration before, is also written anew"
            ));
        }
        // A predicate is off if who writes it does nothing; predicates go to what is behind that alone.
        let is_off = values.of(File::Predicate, qualifier).next().is_some()
            && rotates(File::Predicate, qualifier)
            && values
                .of(File::Predicate, qualifier)
                .flat_map(Value::writers)
                .all(|writer| is_quiet.get(writer.item) == Some(&true));
        is_staged.push(qualifier == 0);
        is_quiet.push(qualifier == 0 || is_off);
        if qualifier == 0 || is_off {
            continue;
        }
        let written = effects.all_writes();
        let is_private = FILES.iter().all(|file| {
            let registers = file.registers();
            let bits = file.all(&written);
            registers
                .into_iter()
                .all(|register| bits >> register & 1 == 0 || rotates(*file, register))
        });
        if !is_private || !item.instruction.effects().contains(Effects::COMPUTES) {
            return Err(undecided(qualifier));
        }
    }
    Ok((is_staged, is_quiet))
}

/// Why an instruction under a predicate cannot be kept from iterations that do not exist.
fn undecided(qualifier: u8) -> String {
    format!("p{qualifier}, which is not made anew in each iteration, decides what it does")
}
