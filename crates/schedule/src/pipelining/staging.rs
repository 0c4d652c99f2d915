//! Which instructions of an iteration are under the predicate that says whether it exists.

use sidestep_ia64::encoding::Effects;
use sidestep_itanium2::Parameters;

use super::Surroundings;
use super::condition::{Condition, guard, is_harmless};
use super::distances::{Distance, distances};
use super::suitable::Ending;
use super::values::{FILES, Home, Values};
use crate::assembly::{Text, speculative};
use crate::block::{Block, Item};
use crate::graph::facts::is_load;
use crate::rename::File;

/// A loop's values, and what is executed in iterations that exist alone.
pub(super) struct Staging {
    pub values: Values,
    /// By instruction, whether the predicate of its iteration goes before it.
    pub is_staged: Vec<bool>,
    /// What ends the loop, if it is not ar.lc.
    pub condition: Option<Condition>,
    /// By instruction, whether it may be one of an iteration that does not exist.
    is_speculated: Vec<bool>,
}

impl Staging {
    /// What is staged of a loop's instructions with these values; `branch` is the loop's.
    ///
    /// # Errors
    /// Why the loop cannot be pipelined so.
    pub fn new(
        (body, branch, ending): (&Block, &Item, Ending),
        mut values: Values,
        speculates: bool,
        surroundings: &Surroundings,
        parameters: &Parameters,
    ) -> Result<Staging, String> {
        let mut is_staged = staged(body, &values, surroundings)?;
        let mut is_speculated = vec![false; is_staged.len()];
        let mut condition = None;
        if let Ending::Condition(predicate) = ending {
            let found = Condition::new(body, (branch, predicate), &values, parameters)?;
            if speculates {
                for (index, item) in body.items.iter().enumerate() {
                    is_speculated[index] = is_harmless(item, body.resident[index], &values);
                    is_staged[index] &= !is_speculated[index];
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
/// not exist, as its own predicate is off, or because nobody reads what it writes.
///
/// # Errors
/// Why one can have neither.
fn staged(body: &Block, values: &Values, surroundings: &Surroundings) -> Result<Vec<bool>, String> {
    let rotates = |file: File, register: u8| {
        let mut same = values
            .values
            .iter()
            .filter(|value| (value.file, value.register) == (file, register));
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
    let staged = body.items.iter().map(|item| {
        let effects = &item.effects;
        let qualifier = effects.qualifier;
        if qualifier == 0 {
            return Ok(true);
        }
        let is_off = values.values.iter().any(|value| {
            let is_it = (value.file, value.register) == (File::Predicate, qualifier);
            is_it && value.home == Home::Rotating
        }) && rotates(File::Predicate, qualifier);
        let written = effects.all_writes();
        let is_private = FILES.iter().all(|file| {
            let registers = file.registers();
            let bits = file.all(&written);
            registers
                .into_iter()
                .all(|register| bits >> register & 1 == 0 || rotates(*file, register))
        });
        let is_computation = item.instruction.effects().contains(Effects::COMPUTES);
        match is_off || is_private && is_computation {
            true => Ok(false),
            false => Err(format!(
                "p{qualifier}, which is not made anew in each iteration, decides what it does"
            )),
        }
    });
    staged.collect()
}
